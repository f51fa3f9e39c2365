//! What a signal costs whose user stays, among many who left, and one whose user left.
//!
//! A signal here makes five updates: the item, one cohort, three communities. The same five updates
//! on a bare map, without gate, log, profile and receipt, are the yardstick.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench fails by panicking, and its macros write undocumented functions"
)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use dashmap::DashMap;
use tidal_bench::{EVENT_TIME_NS, HALF_LIFE, schema};
use tidal_db::{Action, Event, HalfLife, Scope, TidalDb, Weight, Withheld};
use tidal_entities::AggregateState;

const USER: u64 = 7;
const ITEMS: u64 = 1024;
const COMMUNITIES: [u64; 3] = [4, 5, 6];
const LEAVERS: u64 = 20_000;
/// Ids of leavers lie above those of anybody else.
const FIRST_LEAVER: u64 = 1_000_000;

/// A database in memory in which `USER` matches one cohort and is in three communities.
fn database(leavers: u64) -> TidalDb {
    let db = TidalDb::builder().schema(schema()).ephemeral().open().unwrap();
    db.set_user_attribute(USER, "region", "Scotland").unwrap();
    for community in COMMUNITIES {
        db.join_community(USER, community).unwrap();
    }
    let leave = |nth| Event { at_ns: EVENT_TIME_NS, action: Action::Leave { user: FIRST_LEAVER + nth } };
    let report = db.apply("leavers", 1, (0..leavers).map(leave)).unwrap();
    assert_eq!((report.applied, db.left_count()), (leavers, leavers));
    db
}

/// Sends one signal after another, and checks at the end that each was counted where it belongs.
fn signals(criterion: &mut Criterion, name: &str, db: &TidalDb, withheld: Option<Withheld>) {
    let mut sent = 0;
    criterion.benchmark_group("signal").bench_function(name, |bench| {
        bench.iter(|| {
            sent += 1;
            let receipt = db.signal(USER, sent % ITEMS, "view", 1.0).unwrap();
            assert_eq!(receipt.withheld, withheld);
        });
    });
    let taken = |scope: Scope| -> u64 {
        db.aggregates(Some(&scope)).unwrap().map(|row| row.unwrap().aggregate.count).sum()
    };
    let forwarded = if withheld.is_some() { 0 } else { sent };
    assert_eq!(taken(Scope::Global), sent);
    assert_eq!(taken(Scope::Cohort("region=Scotland".to_owned())), forwarded);
    for community in COMMUNITIES {
        assert_eq!(taken(Scope::Community(community)), forwarded);
    }
    assert_eq!(db.withheld_counts().left, sent - forwarded);
}

fn bare_updates(criterion: &mut Criterion) {
    let aggregates: DashMap<(u32, u16, u64), AggregateState> = DashMap::new();
    let half_life = HalfLife::try_from(HALF_LIFE).unwrap();
    let weight = Weight::try_from(1.0).unwrap();
    let mut sent = 0;
    criterion.benchmark_group("signal").bench_function("bare_dashmap", |bench| {
        bench.iter(|| {
            sent += 1;
            for scope in 0..5 {
                let key = black_box((scope, 0, sent % ITEMS));
                aggregates.entry(key).or_default().add(weight, EVENT_TIME_NS, half_life);
            }
        });
    });
    let counted: u64 = aggregates.iter().map(|state| state.snapshot(EVENT_TIME_NS, half_life).count).sum();
    assert_eq!(counted, 5 * sent);
}

fn gate(criterion: &mut Criterion) {
    bare_updates(criterion);
    signals(criterion, "active_among_0_leavers", &database(0), None);
    signals(criterion, "active_among_20000_leavers", &database(LEAVERS), None);
    let db = database(0);
    db.leave_community_layer(USER).unwrap();
    signals(criterion, "left", &db, Some(Withheld::Left));
}

criterion_group! {
    name = benches;
    // Every signal stays in the log in memory, so the time is bounded.
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    targets = gate
}
criterion_main!(benches);
