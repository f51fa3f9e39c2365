use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::Entry;

/// An item, or a place in the tree that stands for the best item below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) entry: Entry,
    /// How many levels lie below: 0 is an item.
    pub(super) height: usize,
    /// Of the slot, block or entry.
    pub(super) number: usize,
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
#[derive(Debug, Default)]
pub(super) struct Frontier {
    candidates: BinaryHeap<Candidate>,
    /// The worst candidate that can matter, once some were left aside.
    floor: Option<Entry>,
}

impl Frontier {
    pub(super) fn push(&mut self, candidate: Candidate) {
        if self.floor.is_none_or(|floor| candidate.entry >= floor) {
            self.candidates.push(candidate);
        }
    }

    /// Takes out the best candidate.
    pub(super) fn pop(&mut self) -> Option<Candidate> {
        self.candidates.pop()
    }

    /// Leaves aside what cannot matter when `wanted` items, at least one, are still to be found.
    pub(super) fn prune(&mut self, wanted: usize) {
        if self.candidates.len() <= wanted.saturating_mul(2).saturating_add(SLACK) {
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
