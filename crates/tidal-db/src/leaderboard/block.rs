use std::cmp::Reverse;

use tidal_entities::{AggregateState, Contribution, SubtractError};

use super::{Entry, FAN_OUT};

/// One aggregate, or a free slot if there is no signal in it.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) item: u64,
    pub(crate) state: AggregateState,
}

// There may be millions in memory.
const _: () = assert!(size_of::<Cell>() == 80);

impl Cell {
    pub(super) fn entry(&self) -> Entry {
        if self.state.is_empty() {
            return Entry::VACANT;
        }
        Entry { rank: self.state.score().rank(), item: Reverse(self.item) }
    }
}

/// Up to 64 aggregates, of which one is known to be the best.
#[derive(Debug)]
pub(super) struct Block {
    cells: Vec<Cell>,
    best: Entry,
}

impl Default for Block {
    fn default() -> Self {
        Self { cells: Vec::new(), best: Entry::VACANT }
    }
}

#[expect(clippy::indexing_slicing, reason = "positions are given out by push")]
impl Block {
    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The best entry; vacant if there is none.
    pub(super) fn best(&self) -> Entry {
        self.best
    }

    pub(super) fn is_full(&self) -> bool {
        self.cells.len() == FAN_OUT
    }

    /// Appends an aggregate without signals; returns its position.
    pub(super) fn push(&mut self, item: u64) -> usize {
        if self.cells.len() == self.cells.capacity() {
            // From one on, since many scopes have few items.
            self.cells.reserve_exact(self.cells.len().max(1));
        }
        self.cells.push(Cell { item, state: AggregateState::default() });
        self.cells.len() - 1
    }

    /// Gives a position that is free to an item.
    pub(super) fn take(&mut self, position: usize, item: u64) {
        self.cells[position] = Cell { item, state: AggregateState::default() };
    }

    /// Adds a signal; `true` if the best changed.
    pub(super) fn add(&mut self, position: usize, contribution: &Contribution) -> bool {
        self.add_unranked(position, contribution);
        self.place(position)
    }

    pub(super) fn add_unranked(&mut self, position: usize, contribution: &Contribution) {
        self.cells[position].state.add_contribution(contribution);
    }

    /// Takes a signal away; `true` if the best changed.
    pub(super) fn subtract(
        &mut self,
        position: usize,
        contribution: &Contribution,
    ) -> Result<bool, SubtractError> {
        self.cells[position].state.subtract_contribution(contribution)?;
        Ok(self.place(position))
    }

    /// Sets an aggregate; `true` if the best changed.
    pub(super) fn restore(&mut self, position: usize, state: AggregateState) -> bool {
        self.cells[position].state = state;
        self.place(position)
    }

    /// Compares a changed aggregate with the best; `true` if that changed.
    fn place(&mut self, position: usize) -> bool {
        let cell = &self.cells[position];
        let entry = cell.entry();
        if entry > self.best {
            self.best = entry;
            return true;
        }
        if self.best.item.0 != cell.item || entry == self.best {
            return false;
        }
        // The best sank, so it is looked for.
        self.best = self.cells.iter().map(Cell::entry).max().unwrap_or(Entry::VACANT);
        true
    }
}
