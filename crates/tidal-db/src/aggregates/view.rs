//! All aggregates of all scopes, as of one place in the log.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hint::black_box;

use tidal_entities::{AggregateState, Contribution, ScopeId, SignalTypeId, SubtractError};

use super::AggregateKey;
use super::update::Update;
use crate::canary::{Break, Canary};
use crate::fast_map::FastHasher;
use crate::leaderboard::{Cell, Leaderboard, Slot};

/// Where an aggregate is.
#[derive(Clone, Copy, Debug)]
struct Place {
    board: u32,
    slot: Slot,
}

type Index = HashMap<AggregateKey, Place, FastHasher>;

/// In so many parts, so that growing one stops the others' signals for well below a millisecond.
const INDEX_PARTS: usize = 256;

/// So many signals are looked up before the first is added.
const GROUP: usize = 8;

/// See the module's head. Nothing in it is locked: whoever has it, has it alone.
#[derive(Debug)]
pub(crate) struct AggregateView {
    index: Box<[Index]>,
    boards: Vec<Leaderboard>,
    board_scopes: Vec<(ScopeId, SignalTypeId)>,
    boards_by_scope: HashMap<(ScopeId, SignalTypeId), u32, FastHasher>,
    canary: Canary,
}

/// An item's aggregates share a part of the index.
fn part_of(item: u64) -> usize {
    // The golden ratio spreads consecutive ids; its product's highest 8 bits are below 256.
    (item.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
}

#[expect(
    clippy::indexing_slicing,
    reason = "parts are 256, and boards and slots are given out by their owners"
)]
impl AggregateView {
    pub(crate) fn new(canary: Canary) -> Self {
        let hasher = FastHasher::default();
        Self {
            index: (0..INDEX_PARTS).map(|_| Index::with_hasher(hasher.clone())).collect(),
            boards: Vec::new(),
            board_scopes: Vec::new(),
            boards_by_scope: HashMap::default(),
            canary,
        }
    }

    /// Adds signals. Their order does not matter.
    pub(crate) fn add_all(&mut self, updates: &[Update]) {
        let mut places = Vec::with_capacity(GROUP * 8);
        for group in updates.chunks(GROUP) {
            places.clear();
            for update in group {
                places.extend(update.keys().map(|key| self.place(key)));
            }
            // Reading them all first lets the processor wait for their memory once, not one by one.
            for place in &places {
                black_box(self.boards[place.board as usize].get(place.slot).count());
            }
            let mut places = places.iter();
            for update in group {
                for (_, place) in update.keys().zip(&mut places) {
                    let board = &mut self.boards[place.board as usize];
                    if self.canary.is(Break::RankingStale) {
                        board.add_unranked(place.slot, &update.contribution);
                    } else {
                        board.add(place.slot, &update.contribution);
                    }
                }
            }
        }
    }

    /// Adds one signal to one aggregate.
    pub(crate) fn add(&mut self, key: AggregateKey, contribution: &Contribution) {
        let place = self.place(key);
        self.boards[place.board as usize].add(place.slot, contribution);
    }

    /// Takes one signal away from the aggregate that it was added to; one without signals is gone.
    #[cfg_attr(not(test), expect(dead_code, reason = "purge and erasure stand on it"))]
    pub(crate) fn subtract(
        &mut self,
        key: AggregateKey,
        contribution: &Contribution,
    ) -> Result<(), SubtractError> {
        let Entry::Occupied(entry) = self.index[part_of(key.item)].entry(key) else {
            return Err(SubtractError::Empty);
        };
        let Place { board, slot } = *entry.get();
        if self.boards[board as usize].subtract(slot, contribution)? {
            entry.remove();
        }
        Ok(())
    }

    /// Sets an aggregate found at open.
    pub(crate) fn restore(&mut self, key: AggregateKey, state: AggregateState) {
        let place = self.place(key);
        self.boards[place.board as usize].restore(place.slot, state);
    }

    pub(crate) fn get(&self, key: AggregateKey) -> Option<&AggregateState> {
        let place = self.index[part_of(key.item)].get(&key)?;
        Some(self.boards[place.board as usize].get(place.slot))
    }

    /// The best items of one scope and signal type.
    pub(crate) fn board(&self, scope: ScopeId, signal_type: SignalTypeId) -> Option<&Leaderboard> {
        let board = self.boards_by_scope.get(&(scope, signal_type))?;
        self.boards.get(*board as usize)
    }

    /// Every scope and signal type that ever took a signal, with its number.
    pub(super) fn board_scopes(&self) -> &[(ScopeId, SignalTypeId)] {
        &self.board_scopes
    }

    /// Up to 64 aggregates, those without signals included; `None` after the last of the board.
    pub(super) fn cells(&self, board: usize, block: usize) -> Option<&[Cell]> {
        self.boards.get(board)?.cells(block)
    }

    /// Shows every aggregate, board by board.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(AggregateKey, &AggregateState)) {
        for ((scope, signal_type), board) in self.board_scopes.iter().zip(&self.boards) {
            let (scope, signal_type) = (*scope, *signal_type);
            for cell in (0..).map_while(|block| board.cells(block)).flatten() {
                if !cell.state.is_empty() {
                    visit(AggregateKey { item: cell.item, scope, signal_type }, &cell.state);
                }
            }
        }
    }

    /// Names the scope and signal type of each board whose maxima are wrong, and what they say.
    pub(crate) fn wrong_maxima(&self) -> Vec<(ScopeId, SignalTypeId, String)> {
        let boards = self.board_scopes.iter().zip(&self.boards);
        boards
            .flat_map(|((scope, signal_type), board)| {
                board.wrong_maxima().into_iter().map(|what| (*scope, *signal_type, what))
            })
            .collect()
    }

    fn place(&mut self, key: AggregateKey) -> Place {
        match self.index[part_of(key.item)].get(&key) {
            Some(place) => *place,
            None => self.insert(key),
        }
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, key: AggregateKey) -> Place {
        let next = self.boards.len();
        let board = *self.boards_by_scope.entry((key.scope, key.signal_type)).or_insert_with(|| {
            self.boards.push(Leaderboard::default());
            self.board_scopes.push((key.scope, key.signal_type));
            // As many scopes as would overflow this fit no memory.
            u32::try_from(next).unwrap_or(u32::MAX)
        });
        let place = Place { board, slot: self.boards[board as usize].insert(key.item) };
        self.index[part_of(key.item)].insert(key, place);
        place
    }
}
