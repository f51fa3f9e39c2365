//! The leaderboard against a plain map that is sorted anew for each question.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proptest::prelude::*;
use tidal_entities::{Contribution, HalfLife, ScoreRank, ScoreSums, Weight};

use super::{Leaderboard, Slot};

/// One signal of this weight, in units of 1e-9.
fn signal(nanos: i64) -> Contribution {
    Contribution::new(Weight::from_nanos(nanos).unwrap(), 0, HalfLife::MIN)
}

fn rank(nanos: i64) -> ScoreRank {
    let mut sums = ScoreSums::default();
    sums.add_contribution(&signal(nanos));
    sums.rank()
}

/// A leaderboard in which every item has one signal, and what it should hold.
#[derive(Default)]
struct Pair {
    board: Leaderboard,
    items: BTreeMap<u64, (Slot, i64)>,
}

impl Pair {
    /// Replaces the signal of an item by another.
    fn put(&mut self, item: u64, nanos: i64) {
        let slot = if let Some((slot, before)) = self.items.get(&item) {
            self.board.add(*slot, &signal(nanos));
            assert_eq!(self.board.subtract(*slot, &signal(*before)), Ok(false));
            *slot
        } else {
            let slot = self.board.insert(item);
            self.board.add(slot, &signal(nanos));
            slot
        };
        self.items.insert(item, (slot, nanos));
    }

    fn remove(&mut self, item: u64) {
        if let Some((slot, nanos)) = self.items.remove(&item) {
            assert_eq!(self.board.subtract(slot, &signal(nanos)), Ok(true));
        }
    }

    fn sorted(&self) -> Vec<(u64, ScoreRank)> {
        let mut items: Vec<_> = self.items.iter().map(|(item, (_, nanos))| (*item, rank(*nanos))).collect();
        items.sort_by_key(|(item, rank)| (Reverse(*rank), *item));
        items
    }

    fn check(&self, k: usize) {
        let mut expected = self.sorted();
        expected.truncate(k);
        assert_eq!(self.board.top(k), expected, "best {k}");
        assert_eq!(self.board.wrong_maxima(), Vec::<String>::new());
    }
}

#[test]
fn an_empty_board_has_no_best() {
    let mut pair = Pair::default();
    assert_eq!(pair.board.top(0), []);
    assert_eq!(pair.board.top(10), []);
    pair.put(u64::MAX, -1);
    pair.check(10);
    pair.remove(u64::MAX);
    assert_eq!(pair.board.top(10), []);
}

#[test]
fn ranks_that_are_equal_come_by_id() {
    let mut pair = Pair::default();
    // More than one level, in an order that is not that of the ids.
    for item in 0..5_000_u64 {
        pair.put(item.wrapping_mul(0x9e37_79b9_7f4a_7c15), i64::from(item % 3 == 0));
    }
    for k in [0, 1, 2, 10, 100, 4_999, 5_000, 5_001, usize::MAX] {
        pair.check(k);
    }
}

#[test]
fn levels_grow_and_shrinking_leaves_no_ghost() {
    let mut pair = Pair::default();
    let mut state = 1_u64;
    for item in 0..=64_u64.pow(3) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        pair.put(item, (state >> 44).cast_signed() - (1 << 19));
        if [0, 1, 63, 64, 65, 4_095, 4_096, 4_097].contains(&item) {
            pair.check(10);
        }
    }
    pair.check(10);
    // The best sink one by one, below all others.
    for (item, _) in pair.sorted().into_iter().take(300) {
        pair.put(item, -1_000_000);
        let best = pair.board.top(1)[0];
        assert!(best.0 != item && best.1 > rank(-1_000_000));
    }
    pair.check(1_000);
    for item in 0..64_u64.pow(3) {
        pair.remove(item);
    }
    pair.check(10);
    // Free slots are taken again.
    let blocks = pair.board.blocks.len();
    pair.put(7, 5);
    assert_eq!(pair.board.blocks.len(), blocks);
    pair.check(10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_best_are_those_of_a_full_sort(
        steps in prop::collection::vec((0..200_u64, -20..20_i64, 0..10_u8), 0..600),
        k in 0..220_usize,
    ) {
        let mut pair = Pair::default();
        for (place, (item, nanos, kind)) in steps.into_iter().enumerate() {
            if kind == 0 { pair.remove(item) } else { pair.put(item, nanos) }
            if place % 7 == 0 {
                pair.check(k);
            }
        }
        pair.check(k);
        pair.check(usize::MAX);
    }
}
