//! Which leaderboard is that of a scope and signal type.

use std::hash::BuildHasher;

use tidal_entities::{ScopeId, SignalTypeId};

use crate::fast_map::FastHasher;

/// The number of a leaderboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Board(pub(super) u32);

impl Board {
    /// No leaderboard has this number: as many would fit no memory.
    pub(super) const NONE: Self = Self(u32::MAX);
}

/// By which the aggregates of an item are spread over its table. Seeded, so that numbers cannot be chosen to collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoardHash(pub(super) u32);

/// So many scopes whose numbers follow each other share a page.
const PAGE: usize = 16;

type Page = [(Board, BoardHash); PAGE];

/// By signal type and scope. A page that no board is in takes 8 bytes for its 16 scopes.
#[derive(Debug, Default)]
pub(super) struct BoardNumbers {
    pages_by_type: Vec<Vec<Option<Box<Page>>>>,
    hasher: FastHasher,
}

impl BoardNumbers {
    /// The board of a scope and signal type, [`Board::NONE`] if there is none, and its hash.
    pub(super) fn get(&self, scope: ScopeId, signal_type: SignalTypeId) -> (Board, BoardHash) {
        let (page, place) = split(scope);
        let pages = self.pages_by_type.get(usize::from(signal_type.0));
        let page = pages.and_then(|pages| pages.get(page)).and_then(Option::as_deref);
        page.and_then(|page| page.get(place)).copied().unwrap_or((Board::NONE, BoardHash(0)))
    }

    /// Gives a board to a scope and signal type.
    pub(super) fn set(&mut self, scope: ScopeId, signal_type: SignalTypeId, board: Board) {
        let hash = self.hash(board);
        let (page, place) = split(scope);
        let pages = at(&mut self.pages_by_type, usize::from(signal_type.0));
        let page = at(pages, page).get_or_insert_with(|| Box::new([(Board::NONE, BoardHash(0)); PAGE]));
        if let Some(entry) = page.get_mut(place) {
            *entry = (board, hash);
        }
    }

    /// The hash of a board.
    pub(super) fn hash(&self, board: Board) -> BoardHash {
        // The highest half is as good as all of it.
        BoardHash((self.hasher.hash_one(board.0) >> 32) as u32)
    }
}

fn split(scope: ScopeId) -> (usize, usize) {
    let scope = scope.0 as usize;
    (scope / PAGE, scope % PAGE)
}

/// An element, for which room is made if there is none.
#[expect(clippy::indexing_slicing, reason = "it was made that long")]
fn at<T: Default>(elements: &mut Vec<T>, index: usize) -> &mut T {
    if elements.len() <= index {
        elements.resize_with(index + 1, T::default);
    }
    &mut elements[index]
}
