//! What went wrong elsewhere, and the right value: one test a case.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    A, COMMUNITY, c, config, create_on, global, history, join, leave, left, open_image, p, place, rejoin,
    view,
};
use proptest::prelude::*;
use tidal_db::{
    CommunityMembership, Config, Durability, Error, MembershipStatus, Storage, TidalDb, TransitionKind,
    Withheld,
};
use tidal_entities::community::deserialize_membership;
use tidal_keys::{Tag, parse_key};
use tidal_storage::MemoryMedium;

/// Nothing is flushed before it is asked for.
const UNHURRIED: Durability =
    Durability::Batched { max_events: 1_000_000, max_delay: Duration::from_secs(3600) };

fn open(path: &Path, now_ns: u64) -> tidal_db::Result<TidalDb> {
    config(now_ns).1.path(path).open()
}

fn create(path: &Path, now_ns: u64) -> TidalDb {
    config(now_ns).1.path(path).create(true).open().unwrap()
}

#[test]
fn case_1_a_leave_survives_a_drop_and_an_open() {
    let (_folder, path) = place();
    let db = create(&path, 100);
    db.join_community(7, COMMUNITY).unwrap();
    db.leave_community_layer(7).unwrap();
    drop(db);

    let db = open(&path, 300).unwrap();
    assert_eq!(db.signal(7, A, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
    assert_eq!(c(&db), 0);
    assert_eq!(p(&db, 7), 1);
    assert_eq!(db.community_layer_status(7), left(7, 100));
}

/// A million takes too long without optimization, so a debug build tries a fifth.
const LEAVERS: u64 = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };

#[test]
fn case_2_the_user_loaded_last_is_withheld_the_moment_open_returns() {
    let (_folder, path) = place();
    let db = create(&path, 100);
    // Ids are stored in their order, so the highest is loaded last.
    let first = u64::MAX - LEAVERS + 1;
    for user in [first, u64::MAX - LEAVERS / 2, u64::MAX] {
        db.join_community(user, COMMUNITY).unwrap();
    }
    let started = Instant::now();
    let report = db.apply("leavers", 1, (first..=u64::MAX).map(|user| leave(100, user))).unwrap();
    eprintln!("{} leaves applied in {:?}", report.applied, started.elapsed());
    assert_eq!(report.applied, LEAVERS);
    db.close().unwrap();

    let started = Instant::now();
    let db = open(&path, 300).unwrap();
    eprintln!("{LEAVERS} leavers restored in {:?}", started.elapsed());
    let receipt = db.signal(u64::MAX, A, "view", 1.0).unwrap();
    assert_eq!(receipt.withheld, Some(Withheld::Left));
    for user in [first, u64::MAX - LEAVERS / 2] {
        assert_eq!(db.signal(user, A, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
    }
    assert_eq!(c(&db), 0);
    assert_eq!(p(&db, u64::MAX), 1);
    assert_eq!(db.left_count(), LEAVERS);
}

/// Both ways to be durable.
const DURABILITIES: [Durability; 2] = [Durability::Immediate, UNHURRIED];

#[test]
fn case_5_what_is_buffered_when_a_leave_returns_reaches_nobody_later() {
    for durability in DURABILITIES {
        let medium = Arc::new(MemoryMedium::default());
        let (db, _) = create_on(&medium, config(100).1.durability(durability));
        db.join_community(7, COMMUNITY).unwrap();
        for _ in 0..100 {
            db.signal(7, A, "view", 1.0).unwrap();
        }
        db.leave_community_layer(7).unwrap();
        let at_return = c(&db);
        for _ in 0..100 {
            db.signal(7, A, "view", 1.0).unwrap();
        }
        db.flush().unwrap();
        assert_eq!((c(&db), p(&db, 7)), (at_return, 200));
        db.close().unwrap();
        let (db, _) = open_image(medium.snapshot(), config(300).1);
        assert_eq!((c(&db), p(&db, 7)), (at_return, 200));
    }
}

#[test]
fn case_6_no_total_moves_after_a_leave_in_the_middle_of_signals() {
    const THREADS: u64 = 8;
    // Each signal is a commit of its own with Immediate; in memory, but a debug build takes its time.
    for (durability, signals) in [(Durability::Immediate, 1_000), (UNHURRIED, 10_000)] {
        let (db, _) = create_on(&Arc::new(MemoryMedium::default()), config(100).1.durability(durability));
        db.join_community(7, COMMUNITY).unwrap();
        let sent = AtomicU64::new(0);
        let at_return = thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..signals {
                        db.signal(7, A, "view", 1.0).unwrap();
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while sent.load(Ordering::Relaxed) < THREADS * signals / 3 {
                thread::yield_now();
            }
            db.leave_community_layer(7).unwrap();
            c(&db)
        });
        assert_eq!(c(&db), at_return);
        assert!(at_return >= THREADS * signals / 3, "{at_return} were forwarded before the leave");
        assert_eq!(global(&db), THREADS * signals);
    }
}

#[test]
fn case_7_a_join_that_races_a_leave_brings_nothing_to_the_community() {
    for durability in DURABILITIES {
        let (db, _) = create_on(&Arc::new(MemoryMedium::default()), config(100).1.durability(durability));
        for user in 0..200 {
            let start = Barrier::new(2);
            thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    db.join_community(user, COMMUNITY).unwrap();
                });
                start.wait();
                db.leave_community_layer(user).unwrap();
            });
            assert_eq!(db.signal(user, A, "view", 1.0).unwrap().communities, 0);
            assert_eq!(db.communities_of(user), [COMMUNITY]);
        }
        assert_eq!(c(&db), 0);
    }
}

#[test]
fn case_8_rewriting_a_user_does_not_bring_him_back() {
    let (_folder, path) = place();
    let (clock, config) = config(100);
    let db = config.path(&path).create(true).open().unwrap();
    db.set_user_attribute(7, "region", "Scotland").unwrap();
    db.join_community(7, COMMUNITY).unwrap();
    db.leave_community_layer(7).unwrap();
    clock.set(200);
    for region in ["Wales", "", "Scotland"] {
        db.set_user_attribute(7, "region", region).unwrap();
    }
    db.quit_community(7, COMMUNITY).unwrap();
    db.join_community(7, 5).unwrap();
    db.join_community(7, COMMUNITY).unwrap();
    let attribute = tidal_db::Action::SetAttribute { user: 7, name: "plan".into(), value: "trial".into() };
    db.apply("profiles", 1, [join(150, 7), tidal_db::Event { at_ns: 150, action: attribute }]).unwrap();
    assert_eq!(db.community_layer_status(7), left(7, 100));
    drop(db);

    let db = open(&path, 300).unwrap();
    assert_eq!(db.community_layer_status(7), left(7, 100));
    assert_eq!(db.communities_of(7), [COMMUNITY, 5]);
    assert_eq!(db.signal(7, A, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
    assert_eq!(c(&db), 0);
}

/// Leave at 100, five signals while away, rejoin at 200, two signals.
fn away_and_back(alter: impl FnOnce(Config) -> Config) -> (Arc<MemoryMedium>, TidalDb) {
    let medium = Arc::new(MemoryMedium::default());
    let (clock, config) = config(90);
    let (db, _) = create_on(&medium, alter(config));
    db.join_community(7, COMMUNITY).unwrap();
    clock.set(100);
    db.leave_community_layer(7).unwrap();
    for at_ns in [110, 120, 130, 140, 150] {
        clock.set(at_ns);
        assert_eq!(db.signal(7, A, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
    }
    clock.set(200);
    db.rejoin_community_layer(7).unwrap();
    for at_ns in [210, 220] {
        clock.set(at_ns);
        assert_eq!(db.signal(7, A, "view", 1.0).unwrap().communities, 1);
    }
    (medium, db)
}

#[test]
fn case_9_what_was_withheld_is_dropped_not_held() {
    let (medium, db) = away_and_back(|config| config);
    assert_eq!(c(&db), 2);

    // The process dies, and the log is replayed.
    let (db, _) = open_image(medium.snapshot(), config(300).1);
    assert_eq!((c(&db), p(&db, 7), global(&db)), (2, 7, 7));
    assert_eq!(db.withheld_counts().left, 5);
}

#[test]
fn case_9_what_was_withheld_and_pending_is_dropped_not_held() {
    let (medium, db) = away_and_back(|config| config.durability(UNHURRIED));
    assert_eq!(c(&db), 2);
    db.flush().unwrap();
    assert_eq!(c(&db), 2);
    let (db, _) = open_image(medium.snapshot(), config(300).1);
    assert_eq!((c(&db), p(&db, 7)), (2, 7));
}

#[test]
fn case_9_what_comes_late_is_dropped_too() {
    let medium = Arc::new(MemoryMedium::default());
    let (clock, before) = config(90);
    let (db, _) = create_on(&medium, before);
    db.join_community(7, COMMUNITY).unwrap();
    for (at_ns, leaves) in [(100, true), (200, false)] {
        clock.set(at_ns);
        let moved = if leaves { db.leave_community_layer(7) } else { db.rejoin_community_layer(7) };
        moved.unwrap();
    }
    clock.set(220);
    for at_ns in [210, 220, 110, 120, 130] {
        db.signal_at(7, A, "view", 1.0, at_ns).unwrap();
    }
    assert_eq!(c(&db), 2);
    // The last two come after a crash.
    let (db, _) = open_image(medium.snapshot(), config(300).1);
    for at_ns in [140, 150] {
        let receipt = db.signal_at(7, A, "view", 1.0, at_ns).unwrap();
        assert_eq!(receipt.withheld, Some(Withheld::AwayPeriod));
    }
    assert_eq!((c(&db), p(&db, 7), db.withheld_counts().away_period), (2, 7, 5));
}

/// The users of the random sequences: both ends of the ids, and two that can meet in a shard.
const SOME_USERS: [u64; 4] = [0, 7, 8, u64::MAX];

#[derive(Clone, Debug)]
enum Step {
    Leave(u64),
    Rejoin(u64),
    Join(u64, u64),
    Quit(u64, u64),
    Signal(u64),
    SignalAt(u64, u64),
    Applied(Vec<(u64, bool)>),
    Clock(u64),
    Reopen,
    Crash,
}

fn any_step() -> impl Strategy<Value = Step> {
    let user = || prop::sample::select(SOME_USERS.as_slice());
    prop_oneof![
        4 => user().prop_map(Step::Leave),
        3 => user().prop_map(Step::Rejoin),
        1 => (user(), 1..3_u64).prop_map(|(user, community)| Step::Join(user, community)),
        1 => (user(), 1..3_u64).prop_map(|(user, community)| Step::Quit(user, community)),
        2 => user().prop_map(Step::Signal),
        1 => (user(), 0..1_000_u64).prop_map(|(user, at_ns)| Step::SignalAt(user, at_ns)),
        2 => prop::collection::vec((user(), any::<bool>()), 1..5).prop_map(Step::Applied),
        2 => (0..1_000_u64).prop_map(Step::Clock),
        1 => Just(Step::Reopen),
        1 => Just(Step::Crash),
    ]
}

/// The map says what the records say, of every user, and each says what was asked for last.
fn map_equals_store(
    db: &TidalDb,
    storage: &Storage,
    model: &[CommunityMembership],
) -> Result<(), TestCaseError> {
    let mut stored = Vec::new();
    for row in storage.users_engine().scan_tag(Tag::CommunityLeave).unwrap() {
        let (key, value) = row.unwrap();
        let user = parse_key(&key).unwrap().0.get();
        stored.push(deserialize_membership(user, &value).unwrap());
    }
    for user in SOME_USERS {
        let record = stored.iter().find(|record| record.user_id == user);
        let said = record.copied().unwrap_or(CommunityMembership::default_active(user));
        prop_assert_eq!(db.community_layer_status(user), said);
    }
    let is_left = |record: &&CommunityMembership| record.status == MembershipStatus::Left;
    let stored_left: Vec<_> = stored.iter().filter(is_left).copied().collect();
    prop_assert_eq!(db.left_count(), stored_left.len() as u64);
    prop_assert_eq!(db.left_users(), stored_left);
    for wanted in model {
        prop_assert_eq!(db.community_layer_status(wanted.user_id), *wanted);
        let last = db.membership_history(wanted.user_id).unwrap().last().map(|last| last.kind);
        let is_last = match wanted.status {
            MembershipStatus::Left => last == Some(TransitionKind::Leave),
            MembershipStatus::Active => last != Some(TransitionKind::Leave),
        };
        prop_assert!(is_last, "{:?} ends with {:?}", wanted, last);
    }
    prop_assert!(db.open_report().is_clean());
    Ok(())
}

fn moved(model: &mut [CommunityMembership], user: u64, leaves: bool, at_ns: u64) -> CommunityMembership {
    let record = model.iter_mut().find(|record| record.user_id == user).unwrap();
    match (record.status, leaves) {
        (MembershipStatus::Active, true) => *record = left(user, at_ns.max(1)),
        (MembershipStatus::Left, false) => record.status = MembershipStatus::Active,
        _ => {}
    }
    *record
}

fn run_steps(steps: Vec<Step>, durability: Durability) -> Result<(), TestCaseError> {
    let mut model = SOME_USERS.map(CommunityMembership::default_active);
    let mut medium = Arc::new(MemoryMedium::default());
    let (clock, first) = config(500);
    let again = || tidal_db::TidalDb::builder().clock(clock.clone()).durability(durability);
    let (mut db, mut storage) = create_on(&medium, first.durability(durability));
    let mut now_ns = 500;
    let mut position = 1;
    for step in steps {
        match step {
            Step::Leave(user) => {
                let said = db.leave_community_layer(user).unwrap();
                prop_assert_eq!(said, moved(&mut model, user, true, now_ns));
            }
            Step::Rejoin(user) => {
                let said = db.rejoin_community_layer(user).unwrap();
                prop_assert_eq!(said, moved(&mut model, user, false, now_ns));
            }
            Step::Join(user, community) => db.join_community(user, community).unwrap(),
            Step::Quit(user, community) => db.quit_community(user, community).unwrap(),
            Step::Signal(user) => {
                let record = model.iter().find(|record| record.user_id == user).unwrap();
                let is_left = record.status == MembershipStatus::Left;
                let receipt = db.signal(user, A, "view", 1.0).unwrap();
                prop_assert_eq!(receipt.withheld, is_left.then_some(Withheld::Left));
            }
            Step::SignalAt(user, at_ns) => drop(db.signal_at(user, A, "view", 1.0, at_ns).unwrap()),
            Step::Applied(transitions) => {
                let events = transitions.into_iter().map(|(user, leaves)| {
                    moved(&mut model, user, leaves, now_ns);
                    if leaves { leave(now_ns, user) } else { rejoin(now_ns, user) }
                });
                position = db.apply("queue", position, events).unwrap().position.unwrap() + 1;
            }
            Step::Clock(at_ns) => {
                clock.set(at_ns);
                now_ns = at_ns;
            }
            Step::Reopen => {
                db.close().unwrap();
                storage = Storage::options().open_on(medium.clone()).unwrap();
                db = TidalDb::from_parts(storage.clone(), again()).unwrap();
            }
            Step::Crash => {
                medium = Arc::new(MemoryMedium::from_bytes(medium.snapshot()));
                storage = Storage::options().open_on(medium.clone()).unwrap();
                db = TidalDb::from_parts(storage.clone(), again()).unwrap();
            }
        }
        map_equals_store(&db, &storage, &model)?;
    }
    Ok(())
}

#[test]
fn case_10_the_map_equals_the_store_after_every_operation() {
    // 10,000 take a minute and a half without optimization; ci runs those optimised.
    let cases = std::env::var("TIDAL_TEST_SEQUENCES").map_or(1_000, |count| count.parse().expect("a number"));
    let started = Instant::now();
    let durability = prop_oneof![Just(Durability::Immediate), Just(UNHURRIED)];
    let sequence = (prop::collection::vec(any_step(), 1..20), durability);
    let outcome = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    })
    .run(&sequence, |(steps, durability)| run_steps(steps, durability));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    eprintln!("{cases} sequences took {:?}; TIDAL_TEST_SEQUENCES sets how many", started.elapsed());
}

#[test]
fn case_12_a_repeated_leave_keeps_the_first_time() {
    let (_folder, path) = place();
    let (clock, config) = config(100);
    let db = config.path(&path).create(true).open().unwrap();
    for at_ns in [100, 999, 50] {
        clock.set(at_ns);
        assert_eq!(db.leave_community_layer(7).unwrap(), left(7, 100));
    }
    let one_leave = |db: &TidalDb| {
        let transitions = db.membership_history(7).unwrap();
        assert_eq!(transitions.len(), 1);
        assert_eq!((transitions[0].kind, transitions[0].at_ns), (TransitionKind::Leave, 100));
        assert_eq!(db.community_layer_status(7), left(7, 100));
    };
    one_leave(&db);
    drop(db);

    let (clock, again) = common::config(2_000);
    let db = again.path(&path).open().unwrap();
    one_leave(&db);
    for at_ns in [2_000, 50] {
        clock.set(at_ns);
        assert_eq!(db.leave_community_layer(7).unwrap(), left(7, 100));
    }
    assert_eq!(db.apply("queue", 1, [leave(70, 7), leave(80, 7)]).unwrap().applied, 2);
    one_leave(&db);
}

#[test]
fn case_13_a_user_never_seen_can_leave() {
    let (_folder, path) = place();
    let db = create(&path, 100);
    for _ in 0..2 {
        assert_eq!(db.leave_community_layer(999).unwrap(), left(999, 100));
    }
    drop(db);

    let db = open(&path, 300).unwrap();
    assert_eq!(db.community_layer_status(999), left(999, 100));
    db.join_community(999, COMMUNITY).unwrap();
    assert_eq!(db.signal(999, A, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
    assert_eq!((c(&db), p(&db, 999)), (0, 1));
}

#[test]
fn case_14_nothing_else_is_suppressed() {
    let (_folder, path) = place();
    let db = create(&path, 100);
    for user in [7, 8] {
        db.join_community(user, COMMUNITY).unwrap();
    }
    db.leave_community_layer(7).unwrap();
    for user in [7, 8] {
        db.signal(user, A, "view", 1.0).unwrap();
    }
    let counts = |db: &TidalDb| (c(db), p(db, 7), p(db, 8), global(db));
    assert_eq!(counts(&db), (1, 1, 1, 2));
    assert_eq!(history(&db, 8)[0].withheld, None);
    drop(db);
    assert_eq!(counts(&open(&path, 300).unwrap()), (1, 1, 1, 2));
}

#[test]
fn case_15_a_rejoin_of_one_leaves_what_is_pending_of_others() {
    let medium = Arc::new(MemoryMedium::default());
    let (db, _) = create_on(&medium, config(100).1.durability(UNHURRIED));
    db.join_community(8, COMMUNITY).unwrap();
    for _ in 0..3 {
        db.signal(8, A, "view", 1.0).unwrap();
    }
    let back = db.rejoin_community_layer(7).unwrap();
    assert_eq!(back, CommunityMembership::default_active(7));
    assert!(db.membership_history(7).unwrap().is_empty());
    db.flush().unwrap();
    assert_eq!((c(&db), p(&db, 8)), (3, 3));
    let (db, _) = open_image(medium.snapshot(), config(300).1);
    assert_eq!((c(&db), p(&db, 8)), (3, 3));
}

const MS_TAKEN_FOR_NS: u64 = 1_772_452_800_000;

#[test]
fn case_16_an_event_time_comes_back_as_it_went_in() {
    let times = [0, 1, MS_TAKEN_FOR_NS, i64::MAX as u64, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
    let medium = Arc::new(MemoryMedium::default());
    let (db, _) = create_on(&medium, config(u64::MAX).1);
    for at_ns in times {
        db.signal_at(7, A, "view", 1.0, at_ns).unwrap();
    }
    db.apply("queue", 1, times.map(|at_ns| view(at_ns, 8))).unwrap();
    let (reopened, _) = open_image(medium.snapshot(), config(u64::MAX).1);
    for db in [db, reopened] {
        for user in [7, 8] {
            let kept: Vec<u64> = history(&db, user).iter().map(|event| event.event_time_ns).collect();
            assert_eq!(kept, times);
        }
        assert_eq!(db.newest_time_ns(), u64::MAX);
        let score = common::aggregate(&db, &tidal_db::Scope::Global).unwrap().score;
        assert!(score.is_finite() && score > 0.0, "the score is {score}");
    }
}

#[test]
fn case_16_an_event_time_beyond_the_clock_is_refused() {
    let (_, config) = config(MS_TAKEN_FOR_NS * 1_000_000);
    let db = config.ephemeral().open().unwrap();
    for at_ns in [1 << 63, u64::MAX] {
        let error = db.signal_at(7, A, "view", 1.0, at_ns).unwrap_err();
        assert!(matches!(error, Error::TooFarAhead { at_ns: refused, .. } if refused == at_ns), "{error}");
    }
    db.signal_at(7, A, "view", 1.0, MS_TAKEN_FOR_NS).unwrap();
    assert_eq!(history(&db, 7)[0].event_time_ns, MS_TAKEN_FOR_NS);
}

#[test]
fn case_16_the_time_of_a_leave_comes_back_as_it_went_in() {
    let (_folder, path) = place();
    let (clock, config) = config(0);
    let db = config.path(&path).create(true).open().unwrap();
    // 0 stands for never, so a leave is at 1 at the earliest.
    let times =
        [(0, 1), (1, 1), (MS_TAKEN_FOR_NS, MS_TAKEN_FOR_NS), (1 << 63, 1 << 63), (u64::MAX, u64::MAX)];
    for (user, (now_ns, left_at_ns)) in (10..).zip(times) {
        clock.set(now_ns);
        assert_eq!(db.leave_community_layer(user).unwrap(), left(user, left_at_ns));
        db.apply("queue", user, [leave(now_ns, user + 100)]).unwrap();
    }
    drop(db);
    let db = open(&path, 0).unwrap();
    for (user, (_, left_at_ns)) in (10..).zip(times) {
        assert_eq!(db.community_layer_status(user), left(user, left_at_ns));
        assert_eq!(db.community_layer_status(user + 100), left(user + 100, left_at_ns));
        assert_eq!(db.membership_history(user).unwrap()[0].at_ns, left_at_ns);
    }
}

#[test]
fn case_22_every_withheld_signal_is_said_and_counted() {
    let (_folder, path) = place();
    let (clock, config) = config(100);
    let db = config.path(&path).create(true).open().unwrap();
    db.join_community(7, COMMUNITY).unwrap();
    db.leave_community_layer(7).unwrap();
    for _ in 0..5 {
        let receipt = db.signal(7, A, "view", 1.0).unwrap();
        assert_eq!((receipt.cohorts, receipt.communities, receipt.withheld), (0, 0, Some(Withheld::Left)));
    }
    // A user in no scope at all is withheld all the same.
    db.leave_community_layer(8).unwrap();
    assert_eq!(db.signal(8, A, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
    clock.set(200);
    db.rejoin_community_layer(7).unwrap();
    for at_ns in [100, 199] {
        let receipt = db.signal_at(7, A, "view", 1.0, at_ns).unwrap();
        assert_eq!(receipt.withheld, Some(Withheld::AwayPeriod));
    }
    let report = db.apply("queue", 1, [view(150, 7), view(210, 7), view(150, 8)]).unwrap();
    assert_eq!((report.forwarded, report.withheld.left, report.withheld.away_period), (1, 1, 1));
    let counts = db.withheld_counts();
    assert_eq!((counts.left, counts.away_period, counts.unknown), (7, 3, 0));
    drop(db);
    assert_eq!(open(&path, 300).unwrap().withheld_counts(), counts);
}

#[test]
fn case_23_an_event_time_too_far_ahead_is_refused() {
    const FIVE_MINUTES_NS: u64 = 300_000_000_000;
    let now_ns = 1_000;
    let db = config(now_ns).1.ephemeral().open().unwrap();
    db.join_community(7, COMMUNITY).unwrap();
    let limit_ns = now_ns + FIVE_MINUTES_NS;
    assert_eq!(db.signal_at(7, A, "view", 1.0, limit_ns).unwrap().communities, 1);
    let too_far = |error: &Error| match error {
        Error::TooFarAhead { at_ns, now_ns, allowed_skew_ns } => Some((*at_ns, *now_ns, *allowed_skew_ns)),
        _ => None,
    };
    let wanted = Some((limit_ns + 1, now_ns, FIVE_MINUTES_NS));
    let error = db.signal_at(7, A, "view", 1.0, limit_ns + 1).unwrap_err();
    assert_eq!(too_far(&error), wanted);
    let text = error.to_string();
    assert!(text.contains(&(limit_ns + 1).to_string()) && text.contains(" 1000 ns"), "{text}");
    assert_eq!((c(&db), p(&db, 7)), (1, 1));

    let late_events = [view, leave, rejoin, join].map(|event| event(limit_ns + 1, 7));
    for event in late_events {
        let error = db.apply("queue", 1, [event]).unwrap_err();
        let Error::Apply { position: 1, cause, .. } = error else { panic!("{error:?}") };
        assert_eq!(too_far(&cause), wanted);
    }
    assert_eq!((c(&db), db.left_count(), db.newest_time_ns()), (1, 0, limit_ns));
}

#[test]
fn case_23_the_allowed_skew_is_an_option() {
    let wider = config(1_000).1.allowed_skew(Duration::from_nanos(10)).ephemeral().open().unwrap();
    wider.signal_at(7, A, "view", 1.0, 1_010).unwrap();
    assert!(wider.signal_at(7, A, "view", 1.0, 1_011).is_err());
    let none = config(1_000).1.allowed_skew(Duration::ZERO).ephemeral().open().unwrap();
    none.signal_at(7, A, "view", 1.0, 1_000).unwrap();
    assert!(none.signal_at(7, A, "view", 1.0, 1_001).is_err());
    let any = config(1_000).1.allowed_skew(Duration::MAX).ephemeral().open().unwrap();
    any.signal_at(7, A, "view", 1.0, u64::MAX).unwrap();
}
