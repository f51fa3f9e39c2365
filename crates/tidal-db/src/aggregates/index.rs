//! Where each aggregate is. All aggregates of an item are named in one place, so that the few of a signal are found
//! with one look at the map, and those of an item that many act on stay in the processor's caches.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hint::black_box;

use super::board_numbers::{Board, BoardHash, BoardNumbers};
use crate::fast_map::FastHasher;
use crate::leaderboard::Slot;

/// Where an aggregate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) board: Board,
    pub(super) slot: Slot,
}

/// In so many parts, so that growing one stops the others' signals for well below a millisecond.
const PARTS: usize = 256;

#[derive(Debug)]
pub(super) struct Index {
    parts: Box<[HashMap<u64, Places, FastHasher>]>,
}

/// An item's aggregates share a part of the index.
fn part_of(item: u64) -> usize {
    // The golden ratio spreads consecutive ids; its product's highest 8 bits are below 256.
    (item.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
}

#[expect(clippy::indexing_slicing, reason = "parts are 256")]
impl Index {
    pub(super) fn new() -> Self {
        let hasher = FastHasher::default();
        Self { parts: (0..PARTS).map(|_| HashMap::with_hasher(hasher.clone())).collect() }
    }

    /// All aggregates of an item; `None` if there is none.
    pub(super) fn of_item(&self, item: u64) -> Option<&Places> {
        self.parts[part_of(item)].get(&item)
    }

    /// Names an aggregate that was not there.
    pub(super) fn insert(&mut self, item: u64, place: Place, boards: &BoardNumbers) {
        match self.parts[part_of(item)].entry(item) {
            Entry::Occupied(mut entry) => entry.get_mut().insert(place, boards),
            Entry::Vacant(entry) => {
                entry.insert(Places::One(place));
            }
        }
    }

    /// Forgets the aggregate of an item on a board.
    pub(super) fn remove(&mut self, item: u64, board: Board, boards: &BoardNumbers) {
        let Entry::Occupied(mut entry) = self.parts[part_of(item)].entry(item) else { return };
        match entry.get().without(board, boards) {
            Some(rest) => *entry.get_mut() = rest,
            None => {
                entry.remove();
            }
        }
    }
}

/// The aggregates of one item, at least one.
#[derive(Debug)]
pub(super) enum Places {
    One(Place),
    /// Each no further than [`REACH`] from where its board's hash says, with no vacancy in between; around the end.
    Many(Box<[Place]>),
}

// There may be as many as aggregates.
const _: () = assert!(size_of::<Place>() == 8 && size_of::<Places>() == 16);

/// How far a place is from where it is looked for first, at most: two lines of the processor's cache.
const REACH: usize = 16;

const VACANT: Place = Place { board: Board::NONE, slot: Slot::NONE };

impl Places {
    /// Reads where a board is looked for.
    pub(super) fn touch(&self, hash: BoardHash) {
        let places = self.as_slice();
        black_box(places.get(first_of(places.len(), hash)).map(|place| place.slot));
    }

    /// The slot on a board.
    pub(super) fn find(&self, board: Board, hash: BoardHash) -> Option<Slot> {
        let places = self.as_slice();
        let taken = reached(places, hash).take_while(|(_, place)| **place != VACANT);
        taken.map(|(_, place)| place).find(|place| place.board == board).map(|place| place.slot)
    }

    fn as_slice(&self) -> &[Place] {
        match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Many(table) => table,
        }
    }

    fn insert(&mut self, place: Place, boards: &BoardNumbers) {
        if let Self::Many(table) = self
            && put(table, place, boards)
        {
            return;
        }
        let grown = Self::of(&self.iter().chain([place]), self.as_slice().len(), boards);
        *self = grown;
    }

    /// The same without one; `None` if nothing is left.
    fn without(&self, board: Board, boards: &BoardNumbers) -> Option<Self> {
        let rest = self.iter().filter(|place| place.board != board);
        match rest.clone().count() {
            0 => None,
            1 => rest.last().map(Self::One),
            count => Some(Self::of(&rest, count / 2, boards)),
        }
    }

    /// A table of more than `capacity` with these places.
    fn of(
        places: &(impl Iterator<Item = Place> + Clone),
        mut capacity: usize,
        boards: &BoardNumbers,
    ) -> Self {
        loop {
            // An odd number, by which nothing is lost to how memory is given out.
            capacity = (capacity + capacity / 2 + 2) | 1;
            let mut table = vec![VACANT; capacity].into_boxed_slice();
            if places.clone().all(|place| put(&mut table, place, boards)) {
                return Self::Many(table);
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = Place> + Clone {
        self.as_slice().iter().copied().filter(|place| *place != VACANT)
    }
}

/// Where a board is looked for, first to last.
fn reached(table: &[Place], hash: BoardHash) -> impl Iterator<Item = (usize, &Place)> {
    let first = first_of(table.len(), hash);
    let (before, from_first) = table.split_at_checked(first).unwrap_or_default();
    let places = from_first.iter().enumerate().map(move |(at, place)| (first + at, place));
    places.chain(before.iter().enumerate()).take(REACH)
}

/// A hash times a length, cut, is below the length.
fn first_of(len: usize, hash: BoardHash) -> usize {
    // Tables are not much longer than there are boards.
    ((u64::from(hash.0) * len as u64) >> 32) as usize
}

/// Puts a place where it is looked for; `false` if there is no room.
fn put(table: &mut [Place], place: Place, boards: &BoardNumbers) -> bool {
    let vacancy = reached(table, boards.hash(place.board)).find(|(_, found)| **found == VACANT);
    let vacancy = vacancy.map(|(at, _)| at);
    let Some(vacant) = vacancy.and_then(|at| table.get_mut(at)) else { return false };
    *vacant = place;
    true
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::collections::hash_map::Entry;

    use proptest::prelude::*;
    use tidal_entities::{ScopeId, SignalTypeId};

    use super::{Board, BoardNumbers, Index, Place, Slot};
    use crate::leaderboard::Leaderboard;

    const BOARDS: u32 = 2_000;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10))]

        #[test]
        fn what_was_named_and_not_forgotten_is_found(
            steps in prop::collection::vec((0..4_u64, 0..BOARDS, 0..5_u8), 0..6_000),
        ) {
            let mut numbers = BoardNumbers::default();
            for board in 0..BOARDS {
                numbers.set(ScopeId(board * 7), SignalTypeId(1), Board(board));
            }
            let mut slots = Leaderboard::default();
            let (mut index, mut expected) = (Index::new(), HashMap::<(u64, u32), Slot>::new());
            for (item, board, kind) in steps {
                // One item is on few boards, and comes and goes.
                let board = if item == 0 { board % 5 } else { board };
                if kind == 0 || (item == 0 && kind < 3) {
                    index.remove(item, Board(board), &numbers);
                    expected.remove(&(item, board));
                } else if let Entry::Vacant(entry) = expected.entry((item, board)) {
                    let slot = *entry.insert(slots.insert(item));
                    index.insert(item, Place { board: Board(board), slot }, &numbers);
                }
            }
            for item in 0..4 {
                let of_item = index.of_item(item);
                prop_assert_eq!(of_item.is_some(), expected.keys().any(|key| key.0 == item));
                for scope in 0..BOARDS * 7 {
                    let (board, hash) = numbers.get(ScopeId(scope), SignalTypeId(1));
                    let found = of_item.and_then(|of_item| of_item.find(board, hash));
                    let is_board = scope % 7 == 0;
                    prop_assert_eq!(board, if is_board { Board(scope / 7) } else { Board::NONE });
                    prop_assert_eq!(found, expected.get(&(item, board.0)).copied());
                }
            }
            prop_assert_eq!(numbers.get(ScopeId(0), SignalTypeId(0)).0, Board::NONE);
        }
    }
}
