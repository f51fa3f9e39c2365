//! Where callers wait for the commit that carries what they staged.
//!
//! Nobody waits for any commit but the one under way and the next, so there is a place for even numbers and one for
//! odd: the end of a commit wakes whom it concerns, and of those who wait for the next only one, to make it. Whoever
//! is woken needs the log's lock only to make a commit or to learn why none can be made.
//!
//! The places are locked last, under the log's lock where both are needed, and what is said in them is said under the
//! log's lock: who enters a place sees every commit that ends later. The notices go out after it, since the woken
//! would run into it.

use std::sync::PoisonError;

use crate::sync::{Condvar, Mutex, lock};

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The commit is on disk.
    Durable,
    /// The commit is to be made, or there will be none: the log knows.
    AskLog,
}

/// Whom to wake, once the log's lock is given back. To drop it would be to let them sleep.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notices {
    next_number: u64,
    has_leader: bool,
    /// How many waited for the commit that ended.
    pub(crate) callers: usize,
}

impl Notices {
    /// Whether anybody waited for this commit or the next.
    pub(crate) fn has_company(self) -> bool {
        self.callers > 0 || self.has_leader
    }
}

#[derive(Debug)]
pub(crate) struct CommitWaits {
    even: Place,
    odd: Place,
}

#[derive(Debug)]
struct Place {
    waiting: Mutex<Waiting>,
    told: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    callers: usize,
    /// The last commit of this place that is on disk.
    durable_number: u64,
    /// The commit that one of the callers is to make; the first to see it takes it away.
    number_to_lead: Option<u64>,
    has_failed: bool,
}

impl CommitWaits {
    pub(crate) fn new() -> Self {
        let place = || Place { waiting: Mutex::default(), told: Condvar::new() };
        Self { even: place(), odd: place() }
    }

    fn place(&self, number: u64) -> &Place {
        if number.is_multiple_of(2) { &self.even } else { &self.odd }
    }

    /// Waits for the commit `number`, which is under way or follows the one that is. `log` is what is locked, and is
    /// given back as soon as nothing can be missed.
    pub(crate) fn wait<G>(&self, log: G, number: u64) -> Woken {
        let place = self.place(number);
        let mut waiting = lock(&place.waiting);
        drop(log);
        waiting.callers += 1;
        let woken = loop {
            if waiting.durable_number >= number {
                break Woken::Durable;
            }
            if waiting.has_failed {
                break Woken::AskLog;
            }
            if waiting.number_to_lead.take_if(|to_lead| *to_lead == number).is_some() {
                break Woken::AskLog;
            }
            waiting = place.told.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        };
        waiting.callers -= 1;
        woken
    }

    /// The commit `number` is on disk. Said under the log's lock, with none under way.
    pub(crate) fn say_durable(&self, number: u64) -> Notices {
        let next_number = number + 1;
        let callers = {
            let mut waiting = lock(&self.place(number).waiting);
            waiting.durable_number = number;
            waiting.callers
        };
        let mut next = lock(&self.place(next_number).waiting);
        let has_leader = next.callers > 0;
        if has_leader {
            next.number_to_lead = Some(next_number);
        }
        Notices { next_number, has_leader, callers }
    }

    /// Wakes whom the end of a commit concerns; the next commit comes first, since all others wait for it in the end.
    pub(crate) fn send(&self, notices: Notices) {
        if notices.has_leader {
            // One who is still to be told that an earlier commit ended may take this for that; then the notice to
            // all of them is under way, and tells who is meant.
            self.place(notices.next_number).told.notify_one();
        }
        if notices.callers > 0 {
            self.place(notices.next_number + 1).told.notify_all();
        }
    }

    /// Nothing can be committed any more. Said once the log knows why.
    pub(crate) fn fail(&self) {
        for place in [&self.even, &self.odd] {
            lock(&place.waiting).has_failed = true;
            place.told.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::{CommitWaits, Woken};
    use crate::sync::{lock, thread};

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Calls `told` once `len` callers wait for `number`, and returns how the waits ended that did end.
    fn ends_of(number: u64, len: usize, told: impl FnOnce(&CommitWaits)) -> Vec<Woken> {
        let waits = CommitWaits::new();
        let (sender, ends) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..len {
                let (sender, waits) = (sender.clone(), &waits);
                scope.spawn(move || sender.send(waits.wait((), number)));
            }
            while lock(&waits.place(number).waiting).callers < len {
                thread::yield_now();
            }
            told(&waits);
            let ends = (0..len).map_while(|_| ends.recv_timeout(PATIENCE).ok()).collect();
            // Ends what is left, so that a notice that is missing fails the test and does not hang it.
            waits.fail();
            ends
        })
    }

    #[test]
    fn all_who_wait_for_a_commit_are_told_that_it_is_on_disk() {
        let ends = ends_of(4, 3, |waits| waits.send(waits.say_durable(4)));
        assert_eq!(ends, [Woken::Durable; 3]);
    }

    #[test]
    fn one_who_waits_for_the_next_commit_is_woken_to_make_it() {
        let mut left = 0;
        let ends = ends_of(5, 3, |waits| {
            waits.send(waits.say_durable(4));
            let began_at = Instant::now();
            while lock(&waits.odd.waiting).callers == 3 && began_at.elapsed() < PATIENCE {
                thread::yield_now();
            }
            left = lock(&waits.odd.waiting).callers;
            waits.send(waits.say_durable(5));
        });
        assert_eq!(left, 2, "the others sleep on");
        assert_eq!(ends.iter().filter(|end| **end == Woken::AskLog).count(), 1, "{ends:?}");
        assert_eq!(ends.len(), 3);
    }

    #[test]
    fn a_failure_wakes_who_waits_for_any_commit() {
        for number in [4, 5] {
            assert_eq!(ends_of(number, 2, CommitWaits::fail), [Woken::AskLog; 2]);
        }
    }

    #[test]
    fn a_caller_alone_has_no_company() {
        assert!(!CommitWaits::new().say_durable(4).has_company());
    }
}
