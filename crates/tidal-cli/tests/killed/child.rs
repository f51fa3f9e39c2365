//! The process that is killed: opens the database, and says each operation before and after it.

use std::io::{Write, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidal_db::{Action, Config, Durability, Event, ManualClock, Schema, TidalDb, Weight};

use crate::op::{Op, Sent};

/// What the parent tells its child in the environment: path, durability, seed and what to do.
pub const ORDER: &str = "TIDAL_KILLED_CHILD";
pub const THREADS: u64 = 2;
pub const USERS_PER_THREAD: u64 = 6;
const ITEMS: u64 = 4;
const COMMUNITIES: u64 = 3;
const REGIONS: u64 = 3;
/// So small that checkpoints and runs are made and merged all the time.
const RECOVERY_ENTRIES: u64 = 64;
const RUN_ENTRIES: u64 = 32;
/// Operations after which a child that nobody killed ends by itself.
const MAX_OPS: u64 = 5_000;

pub fn schema() -> Schema {
    Schema::builder().signal("view", Duration::from_secs(3600)).cohorts_by("region").build().unwrap()
}

/// How parent and child open the database.
pub fn config(path: &Path, durability: Durability) -> Config {
    TidalDb::builder()
        .path(path)
        .durability(durability)
        .recovery_entries(RECOVERY_ENTRIES)
        .run_entries(RUN_ENTRIES)
}

pub fn source(thread: u64) -> String {
    format!("queue {thread}")
}

/// The users whom only this thread touches.
pub fn users_of(thread: u64) -> impl Iterator<Item = u64> {
    (0..USERS_PER_THREAD).map(move |user| thread * 1_000 + user)
}

/// Small random numbers, the same for the same seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}

fn say(line: &str) {
    let mut out = stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

/// Does what the parent ordered, if this process is a child.
pub fn obey() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let [durability, seed, first_serial, work, path] = order.splitn(5, ' ').collect::<Vec<_>>()[..] else {
        panic!("{order:?} is no order");
    };
    let durability = if durability == "immediate" { Durability::Immediate } else { BATCHED };
    let clock = Arc::new(ManualClock::new(1));
    let config = config(Path::new(path), durability).create(true).schema(schema()).clock(clock.clone());
    say("opening");
    let db = config.open().unwrap();
    // Time goes on from where it was, whatever the machine's clock does.
    clock.set(db.newest_time_ns() + 1);
    say("opened");
    if work == "open" {
        return;
    }
    let (seed, first_serial): (u64, i64) = (seed.parse().unwrap(), first_serial.parse().unwrap());
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (db, clock) = (&db, &clock);
            threads.spawn(move || act(db, clock, thread, Dice(seed + thread + 1), first_serial));
        }
    });
    say("closing");
    db.close().unwrap();
}

pub const BATCHED: Durability = Durability::Batched { max_events: 40, max_delay: Duration::from_millis(20) };

fn act(db: &TidalDb, clock: &ManualClock, thread: u64, mut dice: Dice, first_serial: i64) {
    // Threads share the serial numbers, and so do the children of one database.
    let mut serial = first_serial + i64::try_from(thread).unwrap();
    let mut next_serial = || {
        serial += i64::try_from(THREADS).unwrap();
        serial
    };
    let mut position = db.position(&source(thread)).unwrap().unwrap_or(0);
    let mut delivered: Option<(u64, Vec<Event>)> = None;
    for _ in 0..MAX_OPS {
        clock.advance(1);
        let user = thread * 1_000 + dice.below(USERS_PER_THREAD);
        let mut sent = |user, dice: &mut Dice| Sent { user, item: dice.below(ITEMS), serial: next_serial() };
        let op = match dice.below(20) {
            0..10 => Op::Signal(sent(user, &mut dice)),
            10..12 => Op::Leave(user),
            12..14 => Op::Rejoin(user),
            14..16 => Op::Join(user, dice.below(COMMUNITIES)),
            16 => Op::Quit(user, dice.below(COMMUNITIES)),
            17 => Op::Region(user, dice.below(REGIONS)),
            _ => {
                let users: Vec<_> = (0..=dice.below(6)).map(|_| dice.below(USERS_PER_THREAD)).collect();
                let sent = users.into_iter().map(|user| sent(thread * 1_000 + user, &mut dice)).collect();
                Op::Apply(position + 1, sent)
            }
        };
        say(&format!("try {thread} {op}"));
        match op {
            Op::Signal(Sent { user, item, serial }) => {
                let weight = Weight::from_nanos(serial).unwrap();
                db.signal_exact(user, item, "view", weight, None).map(drop)
            }
            Op::Leave(user) => db.leave_community_layer(user).map(drop),
            Op::Rejoin(user) => db.rejoin_community_layer(user).map(drop),
            Op::Join(user, community) => db.join_community(user, community),
            Op::Quit(user, community) => db.quit_community(user, community),
            Op::Region(user, region) => db.set_user_attribute(user, "region", &region.to_string()),
            Op::Apply(first, sent) => {
                let at_ns = db.newest_time_ns() + 1;
                let events: Vec<_> = sent.iter().map(|sent| event(at_ns, sent)).collect();
                position = first + events.len() as u64 - 1;
                // What came before, once more: nothing of it counts twice.
                let (from, mut again) = delivered.take().unwrap_or((first, Vec::new()));
                again.extend(events.iter().cloned());
                delivered = Some((first, events));
                db.apply(&source(thread), from, again).map(drop)
            }
        }
        .unwrap();
        say(&format!("done {thread}"));
    }
}

fn event(at_ns: u64, sent: &Sent) -> Event {
    let weight = Weight::from_nanos(sent.serial).unwrap();
    let action = Action::Signal { user: sent.user, item: sent.item, signal_type: "view".to_owned(), weight };
    Event { at_ns, action }
}
