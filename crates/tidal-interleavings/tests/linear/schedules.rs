//! Running schedules, many of them, until something is seen that was not promised.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread;
use shuttle::{Config, Runner};
use tidal_interleavings::Break;

use crate::order::UserStory;
use crate::program::Program;
use crate::stage::{Seen, Stage, first_image};
use crate::{act, log};

/// A commit of the store is deep.
const STACK_BYTES: usize = 1 << 20;

/// How many times a thread is stopped in favour of another, at most, under [`By::FewPreemptions`].
const PREEMPTIONS: usize = 3;

/// Who chooses which thread goes on.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// At every step any thread that can.
    Random,
    /// The first of an order of the threads, which is thrown, and changed at few steps (PCT).
    FewPreemptions,
}

/// What is done in one schedule, on a database that begins with these bytes. Returns how many calls there were.
pub type Scenario = fn(&[u8], Option<Break>) -> Seen<usize>;

/// How many schedules, and which.
#[derive(Clone, Copy, Debug)]
pub struct Schedules {
    len: usize,
    seed: u64,
    scenario: Scenario,
}

impl Schedules {
    pub fn at_most(len: usize) -> Self {
        Self { len, seed: asked("TIDAL_INTERLEAVINGS_SEED").unwrap_or(1), scenario: act_out }
    }

    /// As many as the environment asks for.
    pub fn asked_for(otherwise: usize) -> Self {
        let len = asked("TIDAL_INTERLEAVINGS").and_then(|len| usize::try_from(len).ok()).unwrap_or(otherwise);
        Self::at_most(len)
    }

    /// The same number of another scenario.
    pub fn of(self, scenario: Scenario) -> Self {
        Self { scenario, ..self }
    }

    /// Runs them all. Panics at the first in which something was seen that was not promised; the scheduler
    /// prints the schedule.
    pub fn run(self, by: By) {
        let started_at = Instant::now();
        let tally = Arc::new(Tally::default());
        self.each(by, None, &tally);
        let tried = tally.tried.load(Ordering::Relaxed);
        assert_eq!(tried, self.len);
        println!(
            "{tried} interleavings of {} calls tried by {by:?}, seed {}, in {:.1} s",
            tally.calls.load(Ordering::Relaxed),
            self.seed,
            started_at.elapsed().as_secs_f64()
        );
    }

    /// Runs until `broken` is found, which it must be, and in one of these words.
    pub fn find(self, by: By, broken: Break, expected: &[&str]) {
        let tally = Arc::new(Tally::default());
        let outcome = catch_unwind(AssertUnwindSafe(|| self.each(by, Some(broken), &tally)));
        let tried = tally.tried.load(Ordering::Relaxed);
        let seen = tally.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        let seen = seen.unwrap_or_else(|| panic!("{by:?} did not find {broken:?} in {tried}: {outcome:?}"));
        assert!(expected.iter().any(|words| seen.contains(words)), "found was something else: {seen}");
        println!("{broken:?} found by {by:?} in interleaving {tried}: {seen}");
    }

    fn each(self, by: By, broken: Option<Break>, tally: &Arc<Tally>) {
        let image = first_image();
        let tally = Arc::clone(tally);
        let one = move || {
            tally.tried.fetch_add(1, Ordering::Relaxed);
            match (self.scenario)(&image, broken) {
                Ok(calls_len) => drop(tally.calls.fetch_add(calls_len, Ordering::Relaxed)),
                Err(said) => {
                    *tally.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(said.clone());
                    panic!("{said}");
                }
            }
        };
        match by {
            By::Random => Runner::new(RandomScheduler::new_from_seed(self.seed, self.len), config()).run(one),
            By::FewPreemptions => {
                // Other programs than the random schedules have.
                let seed = self.seed.wrapping_add(1);
                let scheduler = PctScheduler::new_from_seed(seed, PREEMPTIONS, self.len);
                Runner::new(scheduler, config()).run(one)
            }
        };
    }
}

/// What the schedules of one run came to.
#[derive(Default)]
struct Tally {
    tried: AtomicUsize,
    calls: AtomicUsize,
    /// What was seen that was not promised.
    seen: Mutex<Option<String>>,
}

/// Runs `work` under a scheduler.
pub fn once(work: impl Fn() + Send + Sync + 'static) {
    Runner::new(RandomScheduler::new_from_seed(1, 1), config()).run(work);
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    // The stand-ins are stricter than the processor: they order all that all threads do.
    config.silence_warnings = true;
    config
}

fn asked(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {value:?}")))
}

/// One schedule: a program is thrown and acted out, and what was seen is compared with what is promised.
/// Returns how many calls there were.
fn act_out(image: &[u8], broken: Option<Break>) -> Seen<usize> {
    let program = Program::thrown();
    let seen = seen_in(&program, image, broken);
    seen.map_err(|said| format!("{said}\nin {program:?}"))
}

/// The same for a program that is given.
pub fn seen_in(program: &Program, image: &[u8], broken: Option<Break>) -> Seen<usize> {
    let stage = Arc::new(Stage::new(image, program.mode, broken));
    for (user, act) in &program.before {
        stage.call(*user, *act)?;
    }
    let threads: Vec<_> = program
        .threads
        .iter()
        .cloned()
        .map(|part| {
            let stage = Arc::clone(&stage);
            thread::spawn(move || part.into_iter().try_for_each(|(user, act)| stage.call(user, act)))
        })
        .collect();
    let mut outcome = Ok(());
    for thread in threads {
        let ended = thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()));
        outcome = outcome.and(ended);
    }
    let stage = Arc::into_inner(stage).ok_or("a thread is still there")?;
    let settled = outcome.and_then(|()| stage.settle())?;
    for of in &settled.users {
        log::tells_the_same(of, &settled.calls)?;
        let calls = act::calls_on(of.user, &settled.calls);
        let story = UserStory { user: of.user, calls: &calls, transitions: &of.transitions };
        if !story.has_an_order() {
            return Err(format!(
                "no order of the calls explains {:#?}\nand {:?}",
                story.calls, story.transitions
            ));
        }
    }
    Ok(settled.calls.len())
}
