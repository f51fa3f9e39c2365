use std::cmp::Reverse;
use std::sync::Mutex;

use tidal_entities::ScoreRank;

/// An item and its rank. The greater is the better: of equal ranks, the smaller id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) rank: ScoreRank,
    pub(super) item: Reverse<u64>,
}

const _: () = assert!(size_of::<Entry>() == 24);

impl Entry {
    /// What stands in a slot without an item: worse than every item.
    pub(super) const VACANT: Self = Self { rank: ScoreRank::LOWEST, item: Reverse(u64::MAX) };
}

/// Up to 64 entries, of which one is known to be the best.
#[derive(Debug)]
pub(super) struct Block {
    entries: Vec<Entry>,
    /// A copy, so that an entry is compared with it without waiting for another line of memory.
    best: Entry,
    best_position: u32,
}

const _: () = assert!(size_of::<Mutex<Block>>() == 64);

impl Default for Block {
    fn default() -> Self {
        Self { entries: Vec::new(), best: Entry::VACANT, best_position: 0 }
    }
}

impl Block {
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The best entry; vacant if there is none.
    pub(super) fn best(&self) -> Entry {
        self.best
    }

    /// Puts an entry to its position, at most one behind the last. Returns the best if that changed.
    pub(super) fn put(&mut self, position: u32, entry: Entry) -> Option<Entry> {
        match self.entries.get_mut(position as usize) {
            Some(old) => *old = entry,
            None => self.push(entry),
        }
        if entry > self.best {
            (self.best, self.best_position) = (entry, position);
            return Some(entry);
        }
        if position != self.best_position || entry == self.best {
            return None;
        }
        // The best sank, so it is looked for.
        let (best, best_position) = self.entries.iter().zip(0..).max_by_key(|(entry, _)| **entry)?;
        (self.best, self.best_position) = (*best, best_position);
        Some(self.best)
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() == self.entries.capacity() {
            // From one on, since many scopes have few items.
            self.entries.reserve_exact(self.entries.len().max(1));
        }
        self.entries.push(entry);
    }
}
