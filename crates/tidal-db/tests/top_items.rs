//! The best items are those of a full sort, whatever was signalled, in whatever order.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

#[path = "model/full_sort.rs"]
mod full_sort;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use full_sort::FullSort;
use proptest::prelude::*;
use tidal_db::{
    Config, Durability, Error, ManualClock, Schema, SchemaError, Scope, Storage, TidalDb, Weight,
};
use tidal_storage::{MemoryMedium, WriteBatch};

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;
const NOW_NS: u64 = 50 * 365 * DAY_NS;

/// The shortest half-life, one in common use, and the longest.
const SIGNAL_TYPES: [(&str, u64); 3] =
    [("view", SECOND_NS), ("like", 7 * DAY_NS), ("submit", 36_525 * DAY_NS)];

fn schema() -> Schema {
    let builder = SIGNAL_TYPES.into_iter().fold(Schema::builder(), |builder, (name, half_life_ns)| {
        builder.signal(name, Duration::from_nanos(half_life_ns))
    });
    builder.cohorts_by("region").build().unwrap()
}

fn config(clock: &Arc<ManualClock>) -> Config {
    let durability = Durability::Batched { max_events: usize::MAX, max_delay: Duration::from_secs(3_600) };
    TidalDb::builder().schema(schema()).clock(clock.clone()).durability(durability)
}

fn scopes() -> [Scope; 6] {
    let cohort = |name: &str| Scope::Cohort(name.to_owned());
    [
        Scope::Global,
        cohort("region=Scotland"),
        cohort("region=Wales"),
        cohort("region=Nowhere"),
        Scope::Community(4),
        Scope::Community(5),
    ]
}

/// A database, in which user 1 is in Scotland and community 4, user 2 in Wales and both communities, 3 nowhere.
fn populate(db: &TidalDb) {
    db.set_user_attribute(1, "region", "Scotland").unwrap();
    db.set_user_attribute(2, "region", "Wales").unwrap();
    for (user, community) in [(1, 4), (2, 4), (2, 5)] {
        db.join_community(user, community).unwrap();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Signal { user: u64, item: u64, signal_type: &'static str, nanos: i64, at_ns: u64 },
    Leave { user: u64 },
    Reopen,
}

/// Few different times and weights, so that scores are often equal; others that are near, or decades apart.
fn steps() -> impl Strategy<Value = Step> {
    let items = prop_oneof![8 => 0..40_u64, 1 => Just(u64::MAX)];
    let signal_types = prop::sample::select(&SIGNAL_TYPES[..]).prop_map(|(name, _)| name);
    let nanos = prop_oneof![
        5 => Just(1_000_000_000),
        4 => prop_oneof![Just(1), 1..4_000_000_000_i64, Just(Weight::MAX.nanos())],
        1 => prop_oneof![Just(-1_000_000_000), -4_000_000_000..0_i64],
    ];
    let times = prop_oneof![
        6 => Just(NOW_NS),
        2 => Just(NOW_NS - 3 * SECOND_NS),
        2 => (0..100_u64).prop_map(|ns| NOW_NS - 3 * SECOND_NS + ns),
        2 => (0..60_u64).prop_map(|minutes| NOW_NS - DAY_NS + minutes * 60 * SECOND_NS),
        1 => Just(NOW_NS - 30 * 365 * DAY_NS),
        1 => Just(0),
    ];
    prop_oneof![
        60 => (1..4_u64, items, signal_types, nanos, times).prop_map(|(user, item, signal_type, nanos, at_ns)| {
            Step::Signal { user, item, signal_type, nanos, at_ns }
        }),
        1 => Just(Step::Leave { user: 2 }),
        1 => Just(Step::Reopen),
    ]
}

/// Compares every scope and signal type, at the time of the database and long after.
fn check(db: &TidalDb, times_ns: &BTreeSet<u64>, k: usize) -> Result<(), String> {
    let times_ns: Vec<u64> = times_ns.iter().copied().collect();
    for at_ns in [db.score_time_ns(), NOW_NS + 400 * 365 * DAY_NS, NOW_NS - 365 * DAY_NS] {
        let sorted = FullSort::new(db, at_ns, &times_ns).map_err(|error| format!("{error:?}"))?;
        for scope in scopes() {
            for (signal_type, _) in SIGNAL_TYPES {
                sorted.same(db, &scope, signal_type, k)?;
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_best_are_those_of_a_full_sort_at_every_step(
        steps in prop::collection::vec((steps(), 0..60_usize), 1..120),
    ) {
        let (medium, clock) = (Arc::new(MemoryMedium::default()), Arc::new(ManualClock::new(NOW_NS)));
        let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
        let mut db = TidalDb::from_parts(storage, config(&clock)).unwrap();
        populate(&db);
        let mut times_ns = BTreeSet::new();
        for (step, k) in steps {
            match step {
                Step::Signal { user, item, signal_type, nanos, at_ns } => {
                    let weight = Weight::from_nanos(nanos).unwrap();
                    db.signal_exact(user, item, signal_type, weight, Some(at_ns)).unwrap();
                    times_ns.insert(at_ns);
                }
                Step::Leave { user } => drop(db.leave_community_layer(user).unwrap()),
                Step::Reopen => {
                    db.close().unwrap();
                    let storage = Storage::options().open_on(medium.clone()).unwrap();
                    db = TidalDb::from_parts(storage, config(&clock)).unwrap();
                    // What was rebuilt is the whole of it, also beyond the number of items.
                    check(&db, &times_ns, usize::MAX).map_err(TestCaseError::fail)?;
                }
            }
            check(&db, &times_ns, k).map_err(TestCaseError::fail)?;
        }
    }
}

/// Many more items than one block of the index has, all of which sink below others and rise again.
#[test]
fn thousands_of_items_sink_and_rise() {
    let clock = Arc::new(ManualClock::new(NOW_NS));
    let db = config(&clock).ephemeral().open().unwrap();
    populate(&db);
    for round in 0..5_u64 {
        for item in 0..5_000_u64 {
            let dice = (item + 1).wrapping_mul(round + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let weight = if dice.is_multiple_of(10) { -2.5 } else { (dice % 8) as f64 };
            db.signal_at(1, item * 1_000_003, "like", weight, NOW_NS - dice % 4 * DAY_NS).unwrap();
        }
        let sorted = FullSort::new(&db, NOW_NS, &[]).unwrap();
        for k in [0, 1, 10, 64, 65, 4_999, 5_000, usize::MAX] {
            for scope in [Scope::Global, Scope::Community(4)] {
                sorted.same(&db, &scope, "like", k).unwrap();
            }
        }
    }
}

#[test]
fn threads_that_signal_and_ask_end_with_a_full_sort() {
    const THREADS: u64 = 3;
    let clock = Arc::new(ManualClock::new(NOW_NS));
    let db = config(&clock).ephemeral().open().unwrap();
    populate(&db);
    let (start, is_over) = (Barrier::new(THREADS as usize + 2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (db, start, is_over) = (&db, &start, &is_over);
        let signalling: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    start.wait();
                    let mut dice = thread + 1;
                    for _ in 0..4_000 {
                        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let (item, weight) = ((dice >> 33) % 700, ((dice >> 50) % 10) as f64 - 1.0);
                        db.signal_at(
                            1 + thread % 2,
                            item,
                            "like",
                            weight,
                            NOW_NS - (dice >> 44) % 9 * DAY_NS,
                        )
                        .unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(move || {
                start.wait();
                while !is_over.load(Ordering::Acquire) {
                    for k in [1, 10, 300] {
                        let top = db.top_items(&Scope::Community(4), "like", k).unwrap();
                        assert!(
                            top.len() <= k && top.is_sorted_by(|a, b| a.1 > b.1 || (a.1 == b.1 && a.0 < b.0))
                        );
                    }
                }
            });
        }
        for thread in signalling {
            thread.join().unwrap();
        }
        is_over.store(true, Ordering::Release);
    });
    let sorted = FullSort::new(&db, NOW_NS, &[]).unwrap();
    for scope in scopes() {
        for k in [0, 1, 10, 699, usize::MAX] {
            sorted.same(&db, &scope, "like", k).unwrap();
        }
    }
}

#[test]
fn long_after_the_last_signal_the_order_stays() {
    let clock = Arc::new(ManualClock::new(NOW_NS));
    let db = config(&clock).ephemeral().open().unwrap();
    let weights = [(1, -1.0), (2, 1.0), (3, 2.0), (4, 0.0), (5, 2.0), (6, -2.0)];
    for (item, weight) in weights {
        db.signal_at(1, item, "view", weight, NOW_NS).unwrap();
    }
    let items = |at_ns| -> Vec<u64> {
        let top = db.top_items_at(&Scope::Global, "view", 10, at_ns).unwrap();
        top.into_iter().map(|(item, _)| item).collect()
    };
    assert_eq!(items(NOW_NS), [3, 5, 2, 4, 1, 6]);
    assert_eq!(items(u64::MAX), items(NOW_NS));
    assert_eq!(items(0), items(NOW_NS));
    clock.set(NOW_NS + DAY_NS);
    let top = db.top_items(&Scope::Global, "view", 2).unwrap();
    assert_eq!(top, [(3, 0.0), (5, 0.0)]);
    assert_eq!(db.top_items_at(&Scope::Global, "view", 1, 0).unwrap(), [(3, f64::MAX)]);
}

#[test]
fn scopes_and_names_are_resolved_as_for_aggregates() {
    let clock = Arc::new(ManualClock::new(NOW_NS));
    let db = config(&clock).ephemeral().open().unwrap();
    populate(&db);
    db.signal(1, 9, "like", 1.0).unwrap();
    let top = |scope: &Scope, signal_type: &str| db.top_items(scope, signal_type, 10);
    for nobody in [Scope::Community(77), Scope::Cohort("region=Nowhere".to_owned()), Scope::Community(5)] {
        assert_eq!(top(&nobody, "like").unwrap(), []);
    }
    assert_eq!(top(&Scope::Global, "view").unwrap(), []);
    assert_eq!(top(&Scope::Community(4), "like").unwrap(), [(9, 1.0)]);
    assert!(matches!(top(&Scope::Global, "share"), Err(Error::UndeclaredSignalType { .. })));
    let undeclared = top(&Scope::Cohort("plan=pro".to_owned()), "like");
    assert!(matches!(undeclared, Err(Error::Schema(SchemaError::UnknownCohort { .. }))), "{undeclared:?}");
    db.clone().close().unwrap();
    assert!(matches!(top(&Scope::Global, "like"), Err(Error::Closed)));
}
