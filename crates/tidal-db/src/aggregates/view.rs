//! All aggregates of all scopes, as of one place in the log.

use std::collections::VecDeque;
use std::sync::Arc;

use tidal_entities::{AggregateState, Contribution, ScopeId, ScoreRank, SignalTypeId, SubtractError};

use super::AggregateKey;
use super::board_numbers::{Board, BoardHash, BoardNumbers};
use super::index::{Index, Place};
use super::update::Update;
use crate::canary::{Break, Canary};
use crate::leaderboard::{Cell, Leaderboard, Slot};
use crate::scopes::ScopeSet;

/// So many signals are looked up before the first is added.
const GROUP: usize = 16;

/// So many boards may keep a list of their best. Most lists take less than 1 KiB, none more than 36.
pub(super) const MAX_SHORTLISTS: usize = 1_024;

/// See the module's head. Nothing in it is locked: whoever has it, has it alone.
#[derive(Debug)]
pub(crate) struct AggregateView {
    index: Index,
    boards: Vec<Leaderboard>,
    board_scopes: Vec<(ScopeId, SignalTypeId)>,
    board_numbers: BoardNumbers,
    /// The board of each list of the best that was made lately, the last one last.
    shortlisted: VecDeque<Board>,
    canary: Canary,
}

/// What is to be added to one aggregate: which of a group of signals, and where.
#[derive(Clone, Copy, Debug)]
struct Addition {
    number: usize,
    scope: ScopeId,
    board: Board,
    hash: BoardHash,
    slot: Slot,
}

#[expect(
    clippy::indexing_slicing,
    reason = "boards and slots are given out by their owners, sets by the interner"
)]
impl AggregateView {
    pub(crate) fn new(canary: Canary) -> Self {
        Self {
            index: Index::new(),
            boards: Vec::new(),
            board_scopes: Vec::new(),
            board_numbers: BoardNumbers::default(),
            shortlisted: VecDeque::new(),
            canary,
        }
    }

    /// Adds signals, of which each names one of `sets`. Their order does not matter.
    ///
    /// Each step reads for many signals what the next one needs, and branches on nothing that it reads: so the
    /// processor waits for the memory of all of them at once, not one by one.
    pub(crate) fn add_all(&mut self, updates: &[Update], sets: &[Arc<ScopeSet>]) {
        let mut additions = Vec::new();
        for group in updates.chunks(GROUP) {
            additions.clear();
            let mut of_items = [const { None }; GROUP];
            for (number, update) in group.iter().enumerate() {
                of_items[number] = self.index.of_item(update.item());
                let signal_type = update.signal_type();
                additions.extend(update.scopes(&sets[update.scope_set().0 as usize]).map(|scope| {
                    let (board, hash) = self.board_numbers.get(scope, signal_type);
                    Addition { number, scope, board, hash, slot: Slot::NONE }
                }));
            }
            for Addition { number, hash, .. } in &additions {
                of_items[*number].inspect(|of_item| of_item.touch(*hash));
            }
            for Addition { number, board, hash, slot, .. } in &mut additions {
                *slot =
                    of_items[*number].and_then(|of_item| of_item.find(*board, *hash)).unwrap_or(Slot::NONE);
            }
            for Addition { board, slot, .. } in &additions {
                if let Some(board) = self.boards.get(board.0 as usize) {
                    board.touch(*slot);
                }
            }
            for Addition { number, scope, board, slot, .. } in &additions {
                let update = &group[*number];
                let Place { board, slot } = if *slot == Slot::NONE {
                    let (item, signal_type) = (update.item(), update.signal_type());
                    self.place(AggregateKey { item, scope: *scope, signal_type })
                } else {
                    Place { board: *board, slot: *slot }
                };
                let board = &mut self.boards[board.0 as usize];
                if self.canary.is(Break::RankingStale) {
                    board.add_unranked(slot, &update.contribution);
                } else if self.canary.is(Break::ShortlistStale) {
                    board.add_unlisted(slot, &update.contribution);
                } else {
                    board.add(slot, &update.contribution);
                }
            }
        }
    }

    /// Adds one signal to one aggregate.
    pub(crate) fn add(&mut self, key: AggregateKey, contribution: &Contribution) {
        let Place { board, slot } = self.place(key);
        self.boards[board.0 as usize].add(slot, contribution);
    }

    /// Takes one signal away from the aggregate that it was added to; one without signals is gone.
    #[cfg_attr(not(test), expect(dead_code, reason = "purge and erasure stand on it"))]
    pub(crate) fn subtract(
        &mut self,
        key: AggregateKey,
        contribution: &Contribution,
    ) -> Result<(), SubtractError> {
        let Some(Place { board, slot }) = self.find(key) else { return Err(SubtractError::Empty) };
        if self.boards[board.0 as usize].subtract(slot, contribution)? {
            self.index.remove(key.item, board, &self.board_numbers);
        }
        Ok(())
    }

    /// Sets an aggregate found at open.
    pub(crate) fn restore(&mut self, key: AggregateKey, state: AggregateState) {
        let Place { board, slot } = self.place(key);
        self.boards[board.0 as usize].restore(slot, state);
    }

    pub(crate) fn get(&self, key: AggregateKey) -> Option<&AggregateState> {
        let Place { board, slot } = self.find(key)?;
        Some(self.boards[board.0 as usize].get(slot))
    }

    /// The `k` best items of one scope and signal type.
    pub(super) fn top(
        &mut self,
        scope: ScopeId,
        signal_type: SignalTypeId,
        k: usize,
    ) -> Vec<(u64, ScoreRank)> {
        let (number, _) = self.board_numbers.get(scope, signal_type);
        let Some(board) = self.boards.get_mut(number.0 as usize) else { return Vec::new() };
        let was_listed = board.has_shortlist();
        let found = board.top(k);
        if !was_listed && board.has_shortlist() {
            self.shortlisted.push_back(number);
            if self.shortlisted.len() > MAX_SHORTLISTS
                && let Some(longest_ago) = self.shortlisted.pop_front()
            {
                self.boards[longest_ago.0 as usize].drop_shortlist();
            }
        }
        found
    }

    #[cfg(test)]
    pub(super) fn shortlists_len(&self) -> usize {
        self.boards.iter().filter(|board| board.has_shortlist()).count()
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

    fn find(&self, key: AggregateKey) -> Option<Place> {
        let (board, hash) = self.board_numbers.get(key.scope, key.signal_type);
        let slot = self.index.of_item(key.item)?.find(board, hash)?;
        Some(Place { board, slot })
    }

    fn place(&mut self, key: AggregateKey) -> Place {
        self.find(key).unwrap_or_else(|| self.insert(key))
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, key: AggregateKey) -> Place {
        let (mut board, _) = self.board_numbers.get(key.scope, key.signal_type);
        if board == Board::NONE {
            // As many scopes as would overflow this fit no memory.
            board = u32::try_from(self.boards.len()).map_or(Board::NONE, Board);
            self.boards.push(Leaderboard::default());
            self.board_scopes.push((key.scope, key.signal_type));
            self.board_numbers.set(key.scope, key.signal_type, board);
        }
        let place = Place { board, slot: self.boards[board.0 as usize].insert(key.item) };
        self.index.insert(key.item, place, &self.board_numbers);
        place
    }
}
