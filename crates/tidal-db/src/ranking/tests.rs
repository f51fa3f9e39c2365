//! The ranking against a plain map that is sorted anew for each question.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use tidal_entities::{HalfLife, ScoreRank, ScoreSums, Weight};

use super::{Ranking, Slot};

/// The rank of one signal of this weight, in units of 1e-9.
fn rank(nanos: i64) -> ScoreRank {
    let mut sums = ScoreSums::default();
    sums.add(Weight::from_nanos(nanos).unwrap(), 0, HalfLife::MIN);
    sums.rank()
}

/// A ranking, and what it should hold.
#[derive(Default)]
struct Pair {
    ranking: Ranking,
    items: BTreeMap<u64, (Slot, ScoreRank)>,
}

impl Pair {
    fn put(&mut self, item: u64, nanos: i64) {
        let rank = rank(nanos);
        let slot = match self.items.get(&item) {
            Some((slot, _)) => {
                self.ranking.set(*slot, item, rank);
                *slot
            }
            None => self.ranking.insert(item, rank),
        };
        self.items.insert(item, (slot, rank));
    }

    fn remove(&mut self, item: u64) {
        if let Some((slot, _)) = self.items.remove(&item) {
            self.ranking.remove(slot);
        }
    }

    fn sorted(&self) -> Vec<(u64, ScoreRank)> {
        let mut items: Vec<_> = self.items.iter().map(|(item, (_, rank))| (*item, *rank)).collect();
        items.sort_by_key(|(item, rank)| (Reverse(*rank), *item));
        items
    }

    fn check(&self, k: usize) {
        let mut expected = self.sorted();
        expected.truncate(k);
        assert_eq!(self.ranking.top(k), expected, "best {k}");
    }
}

#[test]
fn an_empty_ranking_has_no_best() {
    let mut pair = Pair::default();
    assert_eq!(pair.ranking.top(0), []);
    assert_eq!(pair.ranking.top(10), []);
    pair.put(u64::MAX, -1);
    pair.check(10);
    pair.remove(u64::MAX);
    assert_eq!(pair.ranking.top(10), []);
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
        let best = pair.ranking.top(1)[0];
        assert!(best.0 != item && best.1 > rank(-1_000_000));
    }
    pair.check(1_000);
    for item in 0..64_u64.pow(3) {
        pair.remove(item);
    }
    pair.check(10);
    // Free slots are taken again.
    pair.put(7, 5);
    assert_eq!(pair.ranking.slots.lock().unwrap().len, 64_u32.pow(3) + 1);
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

/// Two threads move items of their own up and down, in blocks that they share, while a third asks.
#[test]
fn items_that_stay_are_never_missed() {
    const MOVING: u64 = 3_000;
    let ranking = Ranking::default();
    let steady: Vec<(u64, ScoreRank)> =
        (0..40).map(|nth| (nth * 1_000, rank(1_000 - i64::try_from(nth).unwrap()))).collect();
    let mut slots = Vec::new();
    for nth in 0..MOVING {
        if let Some((item, rank)) = steady.iter().find(|(item, _)| item / 1_000 * 70 == nth) {
            ranking.insert(*item, *rank);
        }
        let item = nth * 1_000 + 1;
        slots.push((item, ranking.insert(item, rank(-1))));
    }
    let (start, is_over) = (Barrier::new(3), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (ranking, slots, steady) = (&ranking, &slots, &steady);
        let (start, is_over) = (&start, &is_over);
        let mut threads = Vec::new();
        for parity in 0..2 {
            threads.push(scope.spawn(move || {
                start.wait();
                let mut state = 1 + parity as u64;
                for _ in 0..60_000 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let nth = (state >> 33) as usize % (slots.len() / 2) * 2 + parity;
                    // Above all steady items, among them, or below.
                    ranking.set(
                        slots[nth].1,
                        slots[nth].0,
                        rank([2_000, 980, -5][(state >> 20) as usize % 3]),
                    );
                }
            }));
        }
        let asker = scope.spawn(move || {
            start.wait();
            let mut asked = 0_u32;
            while !is_over.load(Ordering::Acquire) || asked < 10 {
                asked += 1;
                for k in [10, 100, 2_500, usize::MAX] {
                    let top = ranking.top(k);
                    assert_eq!(top.len(), k.min(40 + slots.len()));
                    assert!(
                        top.is_sorted_by(|a, b| (Reverse(a.1), a.0) < (Reverse(b.1), b.0)),
                        "not in order"
                    );
                    let last = top[top.len() - 1];
                    let shown: Vec<_> = top.iter().filter(|(item, _)| item % 1_000 == 0).copied().collect();
                    let expected: Vec<_> = steady
                        .iter()
                        .filter(|(item, rank)| (Reverse(*rank), *item) <= (Reverse(last.1), last.0))
                        .copied()
                        .collect();
                    assert_eq!(shown, expected);
                }
            }
        });
        for thread in threads {
            thread.join().unwrap();
        }
        is_over.store(true, Ordering::Release);
        asker.join().unwrap();
    });
    // Nobody is at it any more: every block says what is below it.
    let all = ranking.top(usize::MAX);
    assert_eq!(all.len(), 40 + slots.len());
    for k in [1, 10, 500] {
        assert_eq!(ranking.top(k), all[..k]);
    }
}
