//! The leaderboard against a plain map that is sorted anew for each question.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proptest::prelude::*;
use tidal_entities::{Contribution, HalfLife, ScoreRank, ScoreSums, Weight};

use super::shortlist::{MAX_CHANGED, Shortlist};
use super::{Leaderboard, MAX_WANTED, Slot};

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

    /// Adds a signal to an item that has one, which then has the sum of both.
    fn raise(&mut self, item: u64, nanos: i64) {
        if let Some((slot, before)) = self.items.get(&item).copied() {
            self.put(item, before + nanos);
            self.items.insert(item, (slot, before + nanos));
        }
    }

    fn check(&mut self, k: usize) {
        let mut expected = self.sorted();
        expected.truncate(k);
        // Once before the list of the best is brought up to date, and once after.
        assert_eq!(self.board.wrong_maxima(), Vec::<String>::new());
        assert_eq!(self.board.top(k), expected, "best {k}");
        assert_eq!(self.board.wrong_maxima(), Vec::<String>::new());
        if let Some(shortlist) = &self.board.shortlist {
            assert!(shortlist.listed_len() <= MAX_LISTED, "{} are listed", shortlist.listed_len());
        }
    }
}

/// Twice as many as a list is made for where items sink, and what changed since somebody asked.
const MAX_LISTED: usize = 2 * (2 * MAX_WANTED + 12) + 32;

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

#[test]
fn what_rises_and_sinks_between_questions_is_found() {
    let mut pair = Pair::default();
    for item in 0..1_000 {
        pair.put(item, item.cast_signed());
    }
    pair.check(10);
    assert!(pair.board.has_shortlist());
    // Above the best, just above the floor, just below it, and among the worst.
    for (item, nanos) in [(3, 5_000), (4, 990), (5, 989), (6, -7)] {
        pair.put(item, nanos);
        pair.check(10);
    }
    // Of those that are equal to the tenth best, only smaller ids are better.
    let (_, tenth) = pair.items[&pair.sorted()[9].0];
    for item in [7, 1_001] {
        pair.put(item, tenth);
        pair.check(10);
    }
    for sinks in [998, 3, 999, 997] {
        pair.put(sinks, -1);
        pair.check(10);
    }
    // What sank rises again, all at once.
    for rises in [998, 3, 999, 997] {
        pair.put(rises, 6_000 + rises.cast_signed());
    }
    pair.check(10);
    assert!(pair.board.has_shortlist());
}

#[test]
fn a_slot_that_another_item_took_is_not_listed_for_the_first() {
    let mut pair = Pair::default();
    for item in 0..100 {
        pair.put(item, item.cast_signed());
    }
    pair.check(5);
    for (gone, comes, nanos) in [(99, 200, 1), (98, 201, 300), (97, 202, 97), (201, 203, 300)] {
        pair.remove(gone);
        pair.put(comes, nanos);
        pair.check(5);
    }
}

#[test]
fn a_list_that_nobody_asks_for_goes_away() {
    let mut pair = Pair::default();
    for item in 0..1_000 {
        pair.put(item, item.cast_signed());
    }
    assert!(!pair.board.has_shortlist());
    pair.check(10);
    // Hot items are noted once, and what stays below the floor not at all.
    for round in 0..1_000 {
        pair.put(999 - round % 10, 2_000 + round.cast_signed());
        pair.put(round % 900, 1);
    }
    assert!(pair.board.has_shortlist());
    pair.check(10);
    for item in 0..=MAX_CHANGED as u64 {
        assert!(pair.board.has_shortlist());
        pair.put(item, 10_000);
    }
    assert!(!pair.board.has_shortlist());
    pair.check(10);
}

#[test]
fn a_list_stays_short() {
    let mut pair = Pair::default();
    pair.check(10);
    // One better than all before, again and again.
    for item in 0..3_000 {
        pair.put(item, item.cast_signed());
        if item % 40 == 0 {
            pair.check(10);
            assert!(pair.board.shortlist.as_ref().is_some_and(|list| list.listed_len() <= 2 * 10 + 32));
        }
    }
    for k in [MAX_WANTED, MAX_WANTED + 1, 10, usize::MAX, 3, 0] {
        pair.check(k);
    }
    assert!(pair.board.has_shortlist());
}

#[test]
fn a_list_that_is_wrong_is_named() {
    let mut pair = Pair::default();
    for item in 0..100 {
        pair.put(item, item.cast_signed());
    }
    let named = |pair: &mut Pair, list: Shortlist| {
        pair.board.shortlist = Some(Box::new(list));
        pair.board.wrong_maxima().join("; ")
    };
    let best = pair.board.walk(5);
    assert_eq!(named(&mut pair, Shortlist::new(best.clone(), 5)), "");
    let without_one = [&best[..1], &best[2..]].concat();
    let said = named(&mut pair, Shortlist::new(without_one, 4));
    assert_eq!(said, "item 98 is among the best, but is not so listed");
    let swapped = vec![best[1], best[0], best[2]];
    assert_eq!(named(&mut pair, Shortlist::new(swapped, 3)), "the list of the best is not in order");
    // A list that claims to be of all items.
    let said = named(&mut pair, Shortlist::new(best.clone(), 6));
    assert_eq!(said.matches("is not so listed").count(), 95);
    // What was listed and sank is found out when it is asked for, and what rose must be noted.
    pair.board.shortlist = None;
    pair.put(99, -1);
    assert_eq!(named(&mut pair, Shortlist::new(best.clone(), 5)), "");
    pair.board.shortlist = None;
    pair.put(99, 1_000);
    assert_eq!(named(&mut pair, Shortlist::new(best, 5)), "item 99 is among the best, but is not so listed");
}

/// How many are asked for: few, or about as many as lists are kept of, or all.
fn questions() -> impl Strategy<Value = usize> {
    let about_as_many = MAX_WANTED - 2..MAX_WANTED + 3;
    prop_oneof![8 => 0..12_usize, 4 => 0..60_usize, 1 => about_as_many, 1 => Just(usize::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever is asked in between: every change after every question.
    #[test]
    fn the_best_are_those_of_a_full_sort_at_every_step(
        steps in prop::collection::vec(
            (0..200_u64, -20..40_i64, 0..20_u8, prop::option::of(questions())), 0..300,
        ),
        filled in 0..200_u64,
    ) {
        let mut pair = Pair::default();
        for item in 0..filled {
            pair.put(item, (item % 37).cast_signed());
        }
        for (item, nanos, kind, question) in steps {
            match kind {
                0..3 => pair.remove(item),
                3..7 => pair.raise(item, nanos),
                // What is best now, sinks or goes.
                7 => if let Some((best, _)) = pair.sorted().first() { pair.remove(*best) },
                8 | 9 => if let Some((best, _)) = pair.sorted().first() { pair.put(*best, nanos - 60) },
                _ => pair.put(item, nanos),
            }
            prop_assert_eq!(pair.board.wrong_maxima(), Vec::<String>::new());
            if let Some(k) = question {
                pair.check(k);
            }
        }
        pair.check(10);
        pair.check(usize::MAX);
    }

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
