//! The whole signal path with batched durability, on a file, against the same five updates on a bare
//! map in memory: one item, one cohort, three communities a signal; zipfian items; one thread.
//!
//! Both are measured in turn in one run, and the medians and their ratio are printed: the ratio
//! travels to other machines, the times do not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    missing_docs,
    reason = "a bench fails by panicking, and casts what it made itself"
)]

use std::time::{Duration, Instant};

use dashmap::DashMap;
use tidal_db::{Action, Durability, Event, HalfLife, Schema, Scope, TidalDb, Weight};
use tidal_entities::AggregateState;

const USERS: u64 = 20_000;
/// One user in fifty has left.
const LEFT_EVERY: u64 = 50;
const ITEMS: usize = 100_000;
const COMMUNITIES: u64 = 1_000;
const ROUNDS: usize = 11;
const SIGNALS_PER_ROUND: usize = 200_000;
const HALF_LIFE: Duration = Duration::from_secs(7 * 86_400);
const EVENT_TIME_NS: u64 = 1_700_000_000_000_000_000;

/// Numbers that only look random, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Who acts on what: users alike, items by Zipf's law with exponent 1.
fn signals(dice: &mut Dice) -> Vec<(u64, u64)> {
    let mut total = 0.0;
    let cumulative: Vec<f64> = (1..=ITEMS)
        .map(|rank| {
            total += 1.0 / rank as f64;
            total
        })
        .collect();
    (0..SIGNALS_PER_ROUND)
        .map(|_| {
            let point = dice.roll() as f64 / u64::MAX as f64 * total;
            let item = cumulative.partition_point(|sum| *sum < point);
            (dice.roll() % USERS, item as u64)
        })
        .collect()
}

fn region_of(user: u64) -> u64 {
    user % 12
}

fn communities_of(user: u64) -> [u64; 3] {
    [0, 1, 2].map(|nth| (user * 3 + nth * 331) % COMMUNITIES)
}

fn database(path: &std::path::Path) -> TidalDb {
    let schema = Schema::builder().signal("view", HALF_LIFE).cohorts_by("region").build().unwrap();
    let durability = Durability::Batched { max_events: 200_000, max_delay: Duration::from_millis(50) };
    let db = TidalDb::builder().schema(schema).path(path).create(true).durability(durability).open().unwrap();
    let event = |action| Event { at_ns: EVENT_TIME_NS, action };
    let set_up = (0..USERS).flat_map(|user| {
        let region = Action::SetAttribute { user, name: "region".into(), value: region_of(user).to_string() };
        let joins = communities_of(user).map(|community| event(Action::Join { user, community }));
        let leave = (user % LEFT_EVERY == 0).then(|| event(Action::Leave { user }));
        [event(region)].into_iter().chain(joins).chain(leave)
    });
    db.apply("set up", 1, set_up).unwrap();
    db
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder.path().join("ingest.tidal"));
    let bare: DashMap<(u32, u64), AggregateState, foldhash::fast::RandomState> =
        DashMap::with_hasher_and_shard_amount(foldhash::fast::RandomState::default(), 256);
    let half_life = HalfLife::try_from(HALF_LIFE).unwrap();
    let weight = Weight::ONE;
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let (mut bare_times, mut tidal_times) = (Vec::new(), Vec::new());
    let mut sent = 0;
    for round in 0..=ROUNDS {
        let signals = signals(&mut dice);

        let begin = Instant::now();
        for (user, item) in &signals {
            let [first, second, third] = communities_of(*user).map(|community| 100 + community as u32);
            for scope in [0, 1 + region_of(*user) as u32, first, second, third] {
                bare.entry((scope, *item)).or_default().add(weight, EVENT_TIME_NS, half_life);
            }
        }
        let bare_time = begin.elapsed();

        let begin = Instant::now();
        for (user, item) in &signals {
            db.signal_exact(*user, *item, "view", weight, Some(EVENT_TIME_NS)).unwrap();
        }
        let tidal_time = begin.elapsed();
        sent += signals.len() as u64;
        // The first round warms both up.
        if round > 0 {
            bare_times.push(bare_time);
            tidal_times.push(tidal_time);
        }
    }
    let counted: u64 =
        db.aggregates(Some(&Scope::Global)).unwrap().map(|row| row.unwrap().aggregate.count).sum();
    assert_eq!(counted, sent, "every signal is in the global aggregate of its item");
    assert!(db.withheld_counts().left > 0, "somebody has left");
    db.close().unwrap();

    let per_second = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        SIGNALS_PER_ROUND as f64 / times[times.len() / 2].as_secs_f64()
    };
    let (bare, tidal) = (per_second(&mut bare_times), per_second(&mut tidal_times));
    println!("five updates on a bare map, in memory   {bare:>12.0} signals/s");
    println!("signal, batched, on a file              {tidal:>12.0} signals/s");
    println!("ratio                                   {:>12.2}", tidal / bare);
}
