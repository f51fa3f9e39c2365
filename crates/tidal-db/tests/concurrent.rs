//! Many threads at once: whatever they do, there is one order in which it happened, the log tells
//! it, and memory, disk and every answer agree with it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "tests fail by panicking, and share a model of which each uses a part"
)]

#[path = "concurrent/arena.rs"]
mod arena;
#[path = "model/compare.rs"]
mod compare;
#[path = "model/full_sort.rs"]
mod full_sort;
#[path = "concurrent/log.rs"]
mod log;
#[path = "model/oracle.rs"]
mod oracle;
#[path = "model/world.rs"]
mod world;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use arena::{Arena, Dice};
use tidal_db::{Action, Durability, Event, MembershipStatus, Schema, TidalDb, Withheld};
use world::{COMMUNITIES, ITEMS, PLANS, REGIONS, TIMES_NS, USERS, signal_types};

const THREADS: u64 = 4;
const TURNS_PER_THREAD: u64 = 250;
const SHARED_EVENTS: u64 = 80;
const SHARED_SOURCE: &str = "queue";
const BATCHED: Durability = Durability::Batched { max_events: 16, max_delay: Duration::from_millis(1) };

/// The user whose leaves and rejoins only this thread makes.
fn own_user(thread: u64) -> u64 {
    1_000 + thread
}

fn any_user(dice: &mut Dice) -> u64 {
    if dice.below(3) == 0 { own_user(dice.below(THREADS)) } else { dice.pick(&USERS) }
}

fn any_signal_type(dice: &mut Dice) -> &'static str {
    dice.pick(signal_types(false)).0
}

fn any_event(arena: &Arena, dice: &mut Dice) -> Event {
    let at_ns = dice.pick(&TIMES_NS);
    let user = dice.pick(&USERS);
    let community = dice.pick(&COMMUNITIES);
    let action = match dice.below(10) {
        0 => Action::Join { user, community },
        1 => Action::Quit { user, community },
        2 => {
            let value = dice.pick(&REGIONS).to_owned();
            Action::SetAttribute { user, name: "region".to_owned(), value }
        }
        3 | 4 => Action::Leave { user },
        5 | 6 => Action::Rejoin { user },
        _ => {
            let (user, item) = (any_user(dice), dice.pick(&ITEMS));
            return arena.signal_event(user, item, any_signal_type(dice), at_ns);
        }
    };
    Event { at_ns, action }
}

/// One thread's part. Returns the last status that it gave its own user.
fn mix(arena: &Arena, thread: u64, seed: u64, shared: &[Event]) -> MembershipStatus {
    let db = &arena.db;
    let mut dice = Dice::new(seed * THREADS + thread);
    let mut own_status = MembershipStatus::Active;
    let mut own_position = 0;
    for turn in 0..TURNS_PER_THREAD {
        match dice.below(26) {
            0..=9 => {
                let (user, item) = (any_user(&mut dice), dice.pick(&ITEMS));
                let at_ns = (dice.below(2) == 0).then(|| dice.pick(&TIMES_NS));
                arena.signal(user, item, any_signal_type(&mut dice), at_ns);
            }
            10 | 11 => {
                let left = db.leave_community_layer(dice.pick(&USERS)).unwrap();
                assert_eq!(left.status, MembershipStatus::Left);
            }
            12 | 13 => {
                let back = db.rejoin_community_layer(dice.pick(&USERS)).unwrap();
                assert_eq!(back.status, MembershipStatus::Active);
            }
            14 | 15 => db.join_community(any_user(&mut dice), dice.pick(&COMMUNITIES)).unwrap(),
            16 => db.quit_community(any_user(&mut dice), dice.pick(&COMMUNITIES)).unwrap(),
            17 => db.set_user_attribute(any_user(&mut dice), "region", dice.pick(&REGIONS)).unwrap(),
            18 => db.set_user_attribute(any_user(&mut dice), "plan", dice.pick(&PLANS)).unwrap(),
            19 | 20 => {
                let events: Vec<_> = (0..=dice.below(6)).map(|_| any_event(arena, &mut dice)).collect();
                let source = format!("thread {thread}");
                let len = events.len() as u64;
                let report = db.apply(&source, own_position + 1, events).unwrap();
                own_position += len;
                assert_eq!((report.applied, report.position), (len, Some(own_position)));
            }
            21 => {
                // From the start, or from what is surely applied.
                let first = dice.below(2);
                let end = (first + 1 + turn * SHARED_EVENTS / TURNS_PER_THREAD) as usize;
                let events = shared[first as usize..end.min(shared.len())].to_vec();
                db.apply(SHARED_SOURCE, first + 1, events).unwrap();
            }
            22 => db.flush().unwrap(),
            23 => {
                db.leave_community_layer(own_user(thread)).unwrap();
                own_status = MembershipStatus::Left;
            }
            24 => {
                db.rejoin_community_layer(own_user(thread)).unwrap();
                own_status = MembershipStatus::Active;
            }
            _ => {
                // What this thread did to its user is in force as soon as the call returned.
                let left = own_status == MembershipStatus::Left;
                let receipt = arena.signal(own_user(thread), ITEMS[0], "view", None);
                assert_eq!(receipt.withheld, left.then_some(Withheld::Left), "seed {seed}");
                assert_eq!(db.community_layer_status(own_user(thread)).status, own_status);
            }
        }
        if turn == TURNS_PER_THREAD / 2 {
            let (copy, _) = arena.crashed_copy().unwrap();
            assert_eq!(copy.community_layer_status(own_user(thread)).status, own_status, "seed {seed}");
        }
    }
    own_status
}

/// Reads all there is, and moves the clock, until told to stop.
fn disturb(arena: &Arena, seed: u64, done: &AtomicBool) {
    let mut dice = Dice::new(seed);
    while !done.load(Ordering::Acquire) {
        arena.clock.set(dice.pick(&TIMES_NS));
        let db = &arena.db;
        for row in db.aggregates(None).unwrap() {
            let aggregate = row.unwrap().aggregate;
            assert!(aggregate.count > 0 && aggregate.score.is_finite(), "{aggregate:?}");
        }
        for user in USERS {
            let history: Vec<_> = db.history(user).unwrap().collect::<Result<_, _>>().unwrap();
            assert!(history.is_sorted_by(|a, b| a.sequence < b.sequence), "a signal is listed twice");
            let transitions = db.membership_history(user).unwrap();
            assert!(transitions.windows(2).all(|pair| pair[0].kind != pair[1].kind), "{transitions:?}");
        }
        assert!(db.left_users().len() <= USERS.len() + THREADS as usize);
        // Whatever is under way, nothing may differ.
        let verified = db.verify().unwrap();
        assert!(verified.differences.is_empty(), "{:?}", verified.differences);
        thread::yield_now();
    }
}

fn mixed(durability: Durability, seed: u64) {
    let arena = Arena::new(durability);
    let mut dice = Dice::new(seed);
    let shared: Vec<_> = (0..SHARED_EVENTS).map(|_| any_event(&arena, &mut dice)).collect();
    // So that no thread is the first to name the source.
    arena.db.apply(SHARED_SOURCE, 1, shared[..1].to_vec()).unwrap();
    let done = AtomicBool::new(false);
    let own_statuses = thread::scope(|scope| {
        let (arena, shared, done) = (&arena, &shared, &done);
        let disturbing = scope.spawn(move || disturb(arena, seed, done));
        let mixing: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || mix(arena, thread, seed, shared))).collect();
        let own_statuses: Vec<_> = mixing.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Release);
        disturbing.join().unwrap();
        own_statuses
    });
    let report = arena.db.apply(SHARED_SOURCE, 1, shared.clone()).unwrap();
    assert_eq!(report.position, Some(SHARED_EVENTS));
    let verified = arena.db.verify().unwrap();
    assert!(verified.differences.is_empty(), "{:?}", verified.differences);
    let oracle = arena.settle().unwrap_or_else(|said| panic!("seed {seed}: {said}"));
    for (thread, own_status) in (0..).zip(own_statuses) {
        let left = own_status.unwrap() == MembershipStatus::Left;
        assert_eq!(oracle.user(own_user(thread)).left, left, "seed {seed}, thread {thread}");
    }
}

#[test]
fn immediate_threads_agree_on_one_order() {
    for seed in 0..4 {
        mixed(Durability::Immediate, seed);
    }
}

#[test]
fn batched_threads_agree_on_one_order() {
    for seed in 100..104 {
        mixed(BATCHED, seed);
    }
}

/// Threads that toggle one user, and one that signals for him.
fn toggled(durability: Durability, seed: u64) {
    const TOGGLES_PER_THREAD: u64 = 60;
    let arena = Arena::new(durability);
    let user = USERS[0];
    arena.db.join_community(user, COMMUNITIES[0]).unwrap();
    let start = Barrier::new(THREADS as usize + 1);
    thread::scope(|scope| {
        let (arena, start) = (&arena, &start);
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut dice = Dice::new(seed * THREADS + thread);
                start.wait();
                for _ in 0..TOGGLES_PER_THREAD {
                    arena.clock.set(dice.pick(&TIMES_NS));
                    match dice.below(5) {
                        0 | 1 => drop(arena.db.leave_community_layer(user).unwrap()),
                        2 | 3 => drop(arena.db.rejoin_community_layer(user).unwrap()),
                        _ => {
                            let at_ns = dice.pick(&TIMES_NS);
                            let action = if dice.below(2) == 0 {
                                Action::Leave { user }
                            } else {
                                Action::Rejoin { user }
                            };
                            let signal = arena.signal_event(user, ITEMS[0], "view", at_ns);
                            let source = format!("thread {thread}");
                            let first_position = arena.db.position(&source).unwrap().unwrap_or(0) + 1;
                            let events = [Event { at_ns, action }, signal];
                            assert_eq!(arena.db.apply(&source, first_position, events).unwrap().applied, 2);
                        }
                    }
                }
            });
        }
        start.wait();
        for turn in 0..TOGGLES_PER_THREAD {
            arena.signal(user, ITEMS[0], "view", (turn % 2 == 0).then_some(TIMES_NS[4]));
        }
    });
    arena.settle().unwrap_or_else(|said| panic!("seed {seed}: {said}"));
}

#[test]
fn threads_that_toggle_one_user_leave_memory_and_disk_agreed() {
    for seed in 0..6 {
        toggled(Durability::Immediate, seed);
        toggled(BATCHED, seed);
    }
}

/// The events of a delivery may be taken from the caller while another delivery of the same source
/// begins and ends; that is no reason to call the source replaced.
#[test]
fn a_delivery_that_another_overtakes_is_not_a_replaced_source() {
    let schema = Schema::builder().signal("view", Duration::from_secs(3600)).build().unwrap();
    let db = TidalDb::builder().schema(schema).ephemeral().open().unwrap();
    let event = |community| Event { at_ns: 1, action: Action::Join { user: 7, community } };
    let mut overtaken = false;
    let late_part = (2..=4).map(event).inspect(|_| {
        if !std::mem::replace(&mut overtaken, true) {
            assert_eq!(db.apply("queue", 1, (1..=3).map(event)).unwrap().applied, 3);
        }
    });
    let report = db.apply("queue", 2, late_part).unwrap();
    assert_eq!((report.skipped, report.applied, report.position), (2, 1, Some(4)));
}
