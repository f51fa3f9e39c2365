//! The items of one scope and signal type by score, so that the best are found without looking at
//! the others.
//!
//! Each item has a slot. Blocks of 64 slots keep which of them is the best; blocks of 64 such bests
//! keep the best of those, and so on up to one block at the top: a tree of maxima, in which an item
//! can sink as well as rise. Ranks know no time ([`ScoreRank`]), so nothing moves by itself.
//!
//! An item that is not the best of its block and does not become it ends after one comparison, under
//! the lock of one block; otherwise its way up goes on until a block keeps its best.
//!
//! Locks: the slots, then blocks **from the bottom up**, each taken before the one below is let go. A
//! query goes down, but holds one block at a time. Nothing else is locked under them.
//!
//! What a query sees: every item as it was at one moment while it ran. An item that nobody changed
//! meanwhile stands before all that were lower and after all that were higher.

mod block;
mod frontier;
mod level;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use tidal_entities::ScoreRank;

use self::block::{Block, Entry};
use self::frontier::{Candidate, Frontier};
use self::level::Level;
use crate::sync::lock;

/// How many slots, or blocks below, one block covers.
const FAN_OUT: u32 = 64;

/// 64^6 is more than there are slots.
const MAX_HEIGHT: usize = 6;
const UPPER_LEVELS: usize = MAX_HEIGHT - 1;

/// Where an item stands in its ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// The items of one scope and signal type by score. See the module's head.
#[derive(Debug)]
pub(crate) struct Ranking {
    slots: Mutex<Slots>,
    /// How many levels there are. Raised under the lock of the block that was the top so far, and read
    /// under it, so that no change of that block is missed by the new top.
    height: AtomicUsize,
    /// The first block. Most scopes have no other.
    first: Mutex<Block>,
    rest: OnceLock<Box<Rest>>,
}

#[derive(Debug, Default)]
struct Slots {
    len: u32,
    free: Vec<u32>,
}

/// The blocks of a ranking of more than 64 items.
#[derive(Debug, Default)]
struct Rest {
    bottom: Level,
    upper: [OnceLock<Box<Level>>; UPPER_LEVELS],
}

impl Default for Ranking {
    fn default() -> Self {
        Self {
            slots: Mutex::default(),
            height: AtomicUsize::new(1),
            first: Mutex::default(),
            rest: OnceLock::new(),
        }
    }
}

impl Ranking {
    /// Takes in an item. Its slot is its own until it is removed.
    pub(crate) fn insert(&self, item: u64, rank: ScoreRank) -> Slot {
        let mut slots = lock(&self.slots);
        let slot = slots.free.pop().unwrap_or_else(|| {
            let slot = slots.len;
            // As many aggregates as would overflow this fit no memory.
            slots.len = slots.len.saturating_add(1);
            self.make_room(slot);
            slot
        });
        self.put(slot, Entry { rank, item: Reverse(item) });
        Slot(slot)
    }

    /// Moves the item in `slot` to where its new rank belongs.
    pub(crate) fn set(&self, slot: Slot, item: u64, rank: ScoreRank) {
        self.put(slot.0, Entry { rank, item: Reverse(item) });
    }

    /// Takes an item out.
    pub(crate) fn remove(&self, slot: Slot) {
        let mut slots = lock(&self.slots);
        self.put(slot.0, Entry::VACANT);
        slots.free.push(slot.0);
    }

    /// The `k` best items, best first, equal ones by id.
    pub(crate) fn top(&self, k: usize) -> Vec<(u64, ScoreRank)> {
        self.walk(&mut Frontier::for_best(), k)
            // What was left aside could have come next after all; looking at everything leaves nothing aside.
            .or_else(|| self.walk(&mut Frontier::for_all(), k))
            .unwrap_or_default()
    }

    /// Goes down from the top, always where the best is. `None` if something that was left aside for
    /// the sake of a better one may be missing, since the better one sank meanwhile.
    fn walk(&self, frontier: &mut Frontier, k: usize) -> Option<Vec<(u64, ScoreRank)>> {
        let mut found = Vec::new();
        let mut next = Candidate::top(self.height.load(Ordering::Acquire));
        while found.len() < k {
            if next.height == 0 {
                found.push((next.entry.item.0, next.entry.rank));
            } else {
                let block = self.block(next.height - 1, next.number)?;
                let has_sunk = block.best() < next.entry;
                if has_sunk && frontier.has_left_aside() {
                    return None;
                }
                for (entry, position) in block.entries().iter().zip(0..) {
                    let number = next.number * FAN_OUT + position;
                    frontier.push(Candidate { entry: *entry, height: next.height - 1, number });
                }
                drop(block);
                frontier.prune(k - found.len());
            }
            let Some(best) = frontier.pop() else { break };
            next = best;
        }
        // In order already, unless an item rose in a block that was looked at late.
        found.sort_by_key(|(item, rank)| Reverse((*rank, Reverse(*item))));
        Some(found)
    }

    /// Puts an entry into its slot, and what becomes the best of its block into the block above.
    fn put(&self, slot: u32, mut entry: Entry) {
        let (mut number, mut position) = (slot / FAN_OUT, slot % FAN_OUT);
        let mut level = 0;
        // Every slot that was given out has its blocks.
        let Some(mut block) = self.block(level, number) else { return };
        while let Some(best) = block.put(position, entry) {
            level += 1;
            if level >= self.height.load(Ordering::Acquire) {
                return;
            }
            (number, position) = (number / FAN_OUT, number % FAN_OUT);
            let Some(above) = self.block(level, number) else { return };
            (block, entry) = (above, best);
        }
    }

    /// Makes the blocks for a slot that is given out for the first time. Called under the lock of the
    /// slots, in the order of the slots.
    fn make_room(&self, slot: u32) {
        let mut number = slot / FAN_OUT;
        let mut level = 0;
        while number > 0 {
            self.level(level).make_room(number);
            level += 1;
            number /= FAN_OUT;
        }
        if level < self.height.load(Ordering::Acquire) {
            return;
        }
        self.level(level).make_room(0);
        if let Some(below) = self.block(level - 1, 0) {
            if let Some(mut top) = self.block(level, 0) {
                top.put(0, below.best());
            }
            self.height.store(level + 1, Ordering::Release);
        }
    }

    fn level(&self, level: usize) -> &Level {
        let rest = self.rest.get_or_init(Box::default);
        match level.checked_sub(1).and_then(|upper| rest.upper.get(upper)) {
            Some(upper) => upper.get_or_init(Box::default),
            None => &rest.bottom,
        }
    }

    fn block(&self, level: usize, number: u32) -> Option<MutexGuard<'_, Block>> {
        if (level, number) == (0, 0) {
            return Some(lock(&self.first));
        }
        self.level(level).get(number).map(lock)
    }
}

#[cfg(test)]
mod tests;
