use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tidal_entities::ScoreRank;

use super::block::Entry;

/// An item, or a block that stands for the best item below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) entry: Entry,
    /// How many levels lie below: 0 is an item.
    pub(super) height: usize,
    /// Of the slot or block.
    pub(super) number: u32,
}

impl Candidate {
    /// The block above all others.
    pub(super) fn top(height: usize) -> Self {
        Self { entry: Entry { rank: ScoreRank::LOWEST, item: Reverse(u64::MAX) }, height, number: 0 }
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.entry.cmp(&other.entry)
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How many candidates more than twice as many as are wanted there may be before some are left aside.
const SLACK: usize = 32;

/// What a query may go on with. Every candidate stands for another item, so that with `n` to be found
/// only the `n` best can matter.
#[derive(Debug)]
pub(super) struct Frontier {
    candidates: BinaryHeap<Candidate>,
    keeps_all: bool,
    /// The worst candidate that can matter, once some were left aside.
    floor: Option<Entry>,
}

impl Frontier {
    /// Leaves aside what cannot matter, as long as no candidate turns out to be worse than it was.
    pub(super) fn for_best() -> Self {
        Self { candidates: BinaryHeap::new(), keeps_all: false, floor: None }
    }

    /// Leaves nothing aside.
    pub(super) fn for_all() -> Self {
        Self { keeps_all: true, ..Self::for_best() }
    }

    pub(super) fn has_left_aside(&self) -> bool {
        self.floor.is_some()
    }

    pub(super) fn push(&mut self, candidate: Candidate) {
        if self.floor.is_none_or(|floor| candidate.entry >= floor) {
            self.candidates.push(candidate);
        }
    }

    /// Takes out the best candidate; `None` if no item is left.
    pub(super) fn pop(&mut self) -> Option<Candidate> {
        self.candidates.pop().filter(|best| best.entry != Entry::VACANT)
    }

    /// Leaves aside what cannot matter when `wanted` items, at least one, are still to be found.
    pub(super) fn prune(&mut self, wanted: usize) {
        if self.keeps_all || self.candidates.len() <= wanted.saturating_mul(2).saturating_add(SLACK) {
            return;
        }
        let mut candidates = std::mem::take(&mut self.candidates).into_vec();
        let (_, worst, _) =
            candidates.select_nth_unstable_by_key(wanted - 1, |candidate| Reverse(*candidate));
        self.floor = Some(worst.entry);
        candidates.truncate(wanted);
        self.candidates = candidates.into();
    }
}
