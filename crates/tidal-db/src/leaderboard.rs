//! The aggregates of one scope and signal type, kept so that the best items are found without
//! looking at the others.
//!
//! Each aggregate has a slot. A block of 64 slots knows the best of its items; 64 such bests have a
//! best of their own one level up, and so on until one is left: a tree of maxima, in which an item
//! can sink as well as rise. Ranks know no time ([`ScoreRank`]), so nothing moves by itself.
//!
//! An item that neither is the best of its block nor becomes it ends after one comparison;
//! otherwise its way up goes on until a level keeps its best.
//!
//! The tree is all that is known of a board for whose best nobody asks. To one that is asked belongs a
//! short list of what was found, which says the same as the tree as long as it is there.

mod block;
mod frontier;
mod shortlist;

use std::cmp::Reverse;
use std::hint::black_box;

use tidal_entities::{AggregateState, Contribution, ScoreRank, SubtractError};

use self::block::Block;
pub(crate) use self::block::Cell;
use self::frontier::{Candidate, Frontier};
use self::shortlist::{Listed, Shortlist};

/// How many slots, or entries below, one block or entry stands for.
const FAN_OUT: usize = 64;

/// For so many items at most a list is kept.
const MAX_WANTED: usize = 128;

/// How many more than twice as many as are wanted a list begins with where items sink.
const RESERVE: usize = 12;

/// An item and its rank. The greater is the better: of equal ranks, the smaller id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    rank: ScoreRank,
    item: Reverse<u64>,
}

impl Entry {
    /// What stands in a slot without an item: worse than every item.
    const VACANT: Self = Self { rank: ScoreRank::LOWEST, item: Reverse(u64::MAX) };
}

/// Where an aggregate is in its leaderboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    /// No aggregate has this slot: as many would fit no memory.
    pub(crate) const NONE: Self = Self(u32::MAX);

    fn at(number: usize) -> Self {
        // As many aggregates as would overflow this fit no memory.
        Self(u32::try_from(number).unwrap_or(u32::MAX))
    }

    fn split(self) -> (usize, usize) {
        (self.0 as usize / FAN_OUT, self.0 as usize % FAN_OUT)
    }
}

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Leaderboard {
    blocks: Vec<Block>,
    /// The bests of 64 blocks each, then the bests of 64 of those, up to one. None for one block.
    levels: Vec<Vec<Entry>>,
    free: Vec<Slot>,
    /// What the last who asked were told; boxed, since most boards are never asked.
    shortlist: Option<Box<Shortlist>>,
}

// A slot is given out by the leaderboard that is asked for it, and blocks never go away.
#[expect(clippy::indexing_slicing, reason = "every slot is within its block, every entry within its level")]
impl Leaderboard {
    /// Makes room for an aggregate without signals. Its slot is its own until it is empty again.
    pub(crate) fn insert(&mut self, item: u64) -> Slot {
        if let Some(slot) = self.free.pop() {
            let (block, position) = slot.split();
            self.blocks[block].take(position, item);
            return slot;
        }
        if self.blocks.last().is_none_or(Block::is_full) {
            self.push_block();
        }
        let block = self.blocks.len() - 1;
        let position = self.blocks[block].push(item);
        Slot::at(block * FAN_OUT + position)
    }

    /// The aggregate in a slot.
    pub(crate) fn get(&self, slot: Slot) -> &AggregateState {
        let (block, position) = slot.split();
        &self.blocks[block].cells()[position].state
    }

    /// Reads what adding to an aggregate reads, or with no slot what making a new one does.
    pub(crate) fn touch(&self, slot: Slot) {
        let (block, position) = slot.split();
        let block = self.blocks.get(block).or(self.blocks.last());
        let cell = block.and_then(|block| block.cells().get(position).or(block.cells().last()));
        black_box(cell.map(|cell| (cell.item, cell.state.count(), cell.state.score().is_empty())));
    }

    /// Adds a signal.
    pub(crate) fn add(&mut self, slot: Slot, contribution: &Contribution) {
        let (block, position) = slot.split();
        let before = self.blocks[block].best();
        if self.blocks[block].add(position, contribution) {
            self.lift(block, before);
        }
        if self.shortlist.is_some() {
            self.note(slot);
        }
    }

    /// Adds a signal and does not tell the list of the best, for a canary.
    pub(crate) fn add_unlisted(&mut self, slot: Slot, contribution: &Contribution) {
        let shortlist = self.shortlist.take();
        self.add(slot, contribution);
        self.shortlist = shortlist;
    }

    /// Adds a signal and leaves the maxima as they were, for a canary.
    pub(crate) fn add_unranked(&mut self, slot: Slot, contribution: &Contribution) {
        let (block, position) = slot.split();
        self.blocks[block].add_unranked(position, contribution);
    }

    /// Takes a signal away; `true` if the aggregate is empty now, and its slot no longer its own.
    pub(crate) fn subtract(
        &mut self,
        slot: Slot,
        contribution: &Contribution,
    ) -> Result<bool, SubtractError> {
        let (block, position) = slot.split();
        let before = self.blocks[block].best();
        if self.blocks[block].subtract(position, contribution)? {
            self.lift(block, before);
        }
        self.note(slot);
        let is_empty = self.get(slot).is_empty();
        if is_empty {
            self.free.push(slot);
        }
        Ok(is_empty)
    }

    /// Sets an aggregate found at open.
    pub(crate) fn restore(&mut self, slot: Slot, state: AggregateState) {
        let (block, position) = slot.split();
        let before = self.blocks[block].best();
        if self.blocks[block].restore(position, state) {
            self.lift(block, before);
        }
        self.note(slot);
    }

    /// Up to 64 aggregates, those without signals included; `None` after the last.
    pub(crate) fn cells(&self, block: usize) -> Option<&[Cell]> {
        self.blocks.get(block).map(Block::cells)
    }

    /// The `k` best items, best first, equal ones by id.
    pub(crate) fn top(&mut self, k: usize) -> Vec<(u64, ScoreRank)> {
        let mut wanted = k;
        // Taken out, since it asks for entries meanwhile.
        if let Some(mut shortlist) = self.shortlist.take() {
            let found = shortlist.best(k, |slot| self.entry_in(slot)).map(|best| named(best.iter()));
            if k > MAX_WANTED || found.is_some() {
                self.shortlist = Some(shortlist);
            } else if shortlist.wanted() >= k {
                // Some of the best sank, and more may: with some in reserve the next list lasts longer.
                wanted = 2 * k + RESERVE;
            }
            if let Some(found) = found {
                return found;
            }
        }
        let mut best = self.walk(wanted);
        if (1..=MAX_WANTED).contains(&k) {
            let found = named(best.iter().take(k));
            best.shrink_to_fit();
            self.shortlist = Some(Box::new(Shortlist::new(best, wanted)));
            return found;
        }
        named(best.iter())
    }

    /// Whether the best are listed.
    pub(crate) fn has_shortlist(&self) -> bool {
        self.shortlist.is_some()
    }

    /// Lets the list of the best go.
    pub(crate) fn drop_shortlist(&mut self) {
        self.shortlist = None;
    }

    /// Finds the `k` best in the tree.
    fn walk(&self, k: usize) -> Vec<Listed> {
        let mut found = Vec::new();
        let mut frontier = Frontier::default();
        let mut next = Candidate { entry: self.best(), height: self.levels.len() + 1, number: 0 };
        while found.len() < k && next.entry != Entry::VACANT {
            if next.height == 0 {
                found.push(Listed { entry: next.entry, slot: Slot::at(next.number) });
            } else {
                let height = next.height - 1;
                let first = next.number * FAN_OUT;
                self.for_each_below(next, |offset, entry| {
                    frontier.push(Candidate { entry, height, number: first + offset });
                });
                frontier.prune(k - found.len());
            }
            let Some(best) = frontier.pop() else { break };
            next = best;
        }
        found
    }

    /// Names what the maxima, and the list of the best, say that is not so.
    pub(crate) fn wrong_maxima(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for height in 1..=self.levels.len() + 1 {
            for number in 0..self.len_at(height) {
                let entry = self.entry_at(height, number);
                let expected = self.max_below(height, number);
                if entry != expected {
                    wrong.push(format!(
                        "item {} stands for the best of {number} at height {height}, but that is item {}",
                        entry.item.0, expected.item.0
                    ));
                }
            }
        }
        if let Some(shortlist) = &self.shortlist {
            let cells = self.blocks.iter().enumerate().flat_map(|(block, of_block)| {
                let cells = of_block.cells().iter().enumerate();
                cells.map(move |(position, cell)| Listed {
                    entry: cell.entry(),
                    slot: Slot::at(block * FAN_OUT + position),
                })
            });
            wrong.extend(shortlist.differences(cells));
        }
        wrong
    }

    fn entry_in(&self, slot: Slot) -> Entry {
        let (block, position) = slot.split();
        self.blocks[block].cells()[position].entry()
    }

    fn best(&self) -> Entry {
        let top = self.levels.len() + 1;
        if self.blocks.is_empty() { Entry::VACANT } else { self.entry_at(top, 0) }
    }

    fn push_block(&mut self) {
        self.blocks.push(Block::default());
        let mut len = self.blocks.len();
        let mut level = 0;
        while len > 1 {
            len = len.div_ceil(FAN_OUT);
            if level == self.levels.len() {
                // The first of a new level stands for all that was there before.
                let best = self.best();
                self.levels.push(vec![best]);
            } else if self.levels[level].len() < len {
                self.levels[level].push(Entry::VACANT);
            }
            level += 1;
        }
    }

    /// Tells the list of the best, if there is one, that the aggregate in a slot changed.
    #[inline(never)]
    fn note(&mut self, slot: Slot) {
        let (block, position) = slot.split();
        let block = &self.blocks[block];
        // Nothing in a block is better than its best.
        if let Some(shortlist) = &mut self.shortlist
            && block.best() >= shortlist.floor()
            && !shortlist.note(slot, block.cells()[position].entry())
        {
            self.shortlist = None;
        }
    }

    /// Brings the maxima above a block after its best, which was `before`.
    fn lift(&mut self, block: usize, mut before: Entry) {
        let (mut child, mut entry) = (block, self.blocks[block].best());
        for level in 0..self.levels.len() {
            let number = child / FAN_OUT;
            let old = self.levels[level][number];
            let new = if entry > old {
                entry
            } else if before == old {
                // The best sank, so it is looked for.
                self.max_below(level + 2, number)
            } else {
                return;
            };
            if new == old {
                return;
            }
            self.levels[level][number] = new;
            (child, before, entry) = (number, old, new);
        }
    }

    fn max_below(&self, height: usize, number: usize) -> Entry {
        let mut best = Entry::VACANT;
        self.for_each_below(Candidate { entry: best, height, number }, |_, entry| best = best.max(entry));
        best
    }

    fn for_each_below(&self, parent: Candidate, mut visit: impl FnMut(usize, Entry)) {
        if parent.height == 1 {
            for (offset, cell) in self.blocks[parent.number].cells().iter().enumerate() {
                visit(offset, cell.entry());
            }
            return;
        }
        let first = parent.number * FAN_OUT;
        let len = self.len_at(parent.height - 1);
        for number in first..len.min(first + FAN_OUT) {
            visit(number - first, self.entry_at(parent.height - 1, number));
        }
    }

    fn len_at(&self, height: usize) -> usize {
        if height == 1 { self.blocks.len() } else { self.levels[height - 2].len() }
    }

    fn entry_at(&self, height: usize, number: usize) -> Entry {
        if height == 1 { self.blocks[number].best() } else { self.levels[height - 2][number] }
    }
}

fn named<'a>(best: impl Iterator<Item = &'a Listed>) -> Vec<(u64, ScoreRank)> {
    best.map(|listed| (listed.entry.item.0, listed.entry.rank)).collect()
}

#[cfg(test)]
mod tests;
