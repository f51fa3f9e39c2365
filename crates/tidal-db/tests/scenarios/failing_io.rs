//! G3 over failing I/O: whichever operation fails, in a workload or while a file is opened and recovered, nobody
//! who left is taken for Active, in this process or the next, and what was acknowledged is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tidal_db::{MembershipStatus, Scope, Storage, TidalDb};
use tidal_storage::{MemoryMedium, WriteBatch};

use super::crash::check::Checker;
use super::crash::images::intervals;
use super::crash::trace::{
    Acknowledged, Adapt, Trace, configure, configure_first, damaged_base, make, open_on,
};
use super::crash::workload::{self, Call, Workload};
use super::crash::{SEED, images::Interval};
use super::faulty::{Counted, Fails, FaultyMedium};
use super::{ITEM, Seen, ok};
use crate::ensure;

/// With no cache, pages are read again and again.
const CACHES_BYTES: [usize; 2] = [1 << 20, 0];

/// How many failures were injected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Injected {
    pub by_operation: BTreeMap<&'static str, u64>,
    /// After how many of them an open was refused.
    pub refused: u64,
}

impl Injected {
    pub fn total(&self) -> u64 {
        self.by_operation.values().sum()
    }

    pub fn add(&mut self, other: &Self) {
        for (operation, times) in &other.by_operation {
            *self.by_operation.entry(operation).or_default() += times;
        }
        self.refused += other.refused;
    }
}

/// Lets every `step`th operation of the script with every kind of transition fail.
pub fn every_failure_of_the_transitions_keeps_the_gate_shut(adapt: Adapt<'_>, step: u64) -> Seen<Injected> {
    every_failure_of(&workload::transitions(), adapt, step)
}

/// Lets every `step`th operation of a workload fail.
pub fn every_failure_of(workload: &Workload, adapt: Adapt<'_>, step: u64) -> Seen<Injected> {
    // What is broken must not be taken for what should be.
    let trace = Trace::record(workload, &|config| config)?;
    let checker = Checker::new(&trace, &|config| config);
    let base = base_of(workload)?;
    let mut injected = Injected::default();
    for cache_bytes in CACHES_BYTES {
        let fails = |nth, how| run_with_failure(&checker, &trace, &base, (nth, how, cache_bytes), adapt);
        injected.add(&in_turn(step, fails)?);
    }
    Ok(injected)
}

/// Lets every operation of opening fail, for files that crashes of the first script left, of which every `step`th is
/// taken.
pub fn every_failure_while_opening_keeps_the_gate_shut(adapt: Adapt<'_>, step: usize) -> Seen<Injected> {
    every_failure_while_opening(&workload::transitions(), adapt, 24 * step)
}

/// Lets every operation of opening fail, for files that crashes in every `step`th interval of a workload left.
pub fn every_failure_while_opening(workload: &Workload, adapt: Adapt<'_>, step: usize) -> Seen<Injected> {
    // Only what opening does with a failure counts here.
    let trace = Trace::record(workload, &|config| config)?;
    let checker = Checker::new(&trace, &|config| config);
    let mut injected = Injected::default();
    for interval in intervals(&trace.steps).into_iter().skip(step / 2).step_by(step) {
        let required = trace.required(interval.end);
        if !required.is_created || required.is_rebuilding {
            continue;
        }
        let image = some_image(&trace, interval);
        for cache_bytes in CACHES_BYTES {
            let fails = |nth, how| {
                open_with_failure(&checker, required, &image, (nth, how, cache_bytes), &trace, adapt)
            };
            injected.add(&in_turn(1, fails)?);
        }
    }
    Ok(injected)
}

/// Of one interval: as a killed process leaves the file, or as a power loss may.
fn some_image(trace: &Trace, interval: Interval) -> Vec<u8> {
    let choices = interval.choices(trace, 8, SEED);
    let chosen = interval.end / 2 % choices.len();
    interval.image(trace, &interval.base(trace), &choices[chosen])
}

/// What an injection came to: which operation was struck, and whether an open was refused.
type Struck = Option<(&'static str, bool)>;

/// Lets operation after operation fail, once and for good, until none is struck any more.
fn in_turn(step: u64, fails: impl Fn(u64, Fails) -> Seen<Struck> + Sync) -> Seen<Injected> {
    let injected = Mutex::new(Injected::default());
    let first_seen = Mutex::new(None);
    for how in [Fails::Once, Fails::ForGood] {
        let next = AtomicU64::new(0);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let nth = next.fetch_add(step, Ordering::Relaxed);
                        match fails(nth, how) {
                            Ok(Some((operation, is_refused))) => {
                                let mut injected = injected.lock().expect("no thread panics with it");
                                *injected.by_operation.entry(operation).or_default() += 1;
                                injected.refused += u64::from(is_refused);
                                continue;
                            }
                            Ok(None) => {}
                            Err(seen) => {
                                let seen = format!("operation {nth} failed {how:?}: {seen}");
                                first_seen.lock().expect("no thread panics with it").get_or_insert(seen);
                            }
                        }
                        is_over.store(true, Ordering::Relaxed);
                    }
                });
            }
        });
    }
    match first_seen.into_inner().expect("no thread panicked") {
        Some(seen) => Err(seen),
        None => Ok(injected.into_inner().expect("no thread panicked")),
    }
}

/// The closed database on which a workload begins.
fn base_of(workload: &Workload) -> Seen<Vec<u8>> {
    if workload.is_damaged {
        return damaged_base(workload);
    }
    let medium = Arc::new(MemoryMedium::default());
    let (_, config) = configure_first(workload, &|config| config, 1_000);
    let storage = ok(Storage::options().create_on(medium.clone(), WriteBatch::new()))?;
    ok(ok(TidalDb::from_parts(storage, config))?.close())?;
    Ok(medium.snapshot())
}

/// Which operation fails, how, and with how much cache.
type Failure = (u64, Fails, usize);

fn run_with_failure(
    checker: &Checker<'_>,
    trace: &Trace,
    base: &[u8],
    (nth, how, cache_bytes): Failure,
    adapt: Adapt<'_>,
) -> Seen<Struck> {
    let medium = Arc::new(FaultyMedium::from_bytes(base.to_vec()));
    let (clock, config) = configure(&trace.workload, adapt, 1_000);
    let options = Storage::options().cache_size_bytes(cache_bytes);
    let storage = ok(options.open_on(medium.clone()))?;
    let first = configure_first(&trace.workload, adapt, 1_000).1.clock(Arc::clone(&clock) as _);
    let db = ok(TidalDb::from_parts(storage, first))?;
    let mut now = Shut::begin(&trace.workload);
    medium.fail_at(nth, Counted::All, how);

    let mut open = Some(db);
    for call in &trace.workload.calls {
        let Some(db) = open.take() else { break };
        match call {
            Call::Advance(by_ns) => clock.advance(*by_ns),
            Call::Settle => settle(&medium),
            Call::Reopen | Call::Rebuild => {
                let closed = db.close();
                ensure!(closed.is_err() || !now.has_failed, "a call failed, and closing says nothing");
                if closed.is_ok() {
                    let rebuilds = matches!(call, Call::Rebuild);
                    let config = config.clone().rebuild(rebuilds);
                    let opened = options.open_on(medium.clone()).map_err(tidal_db::Error::from);
                    open = opened.and_then(|storage| TidalDb::from_parts(storage, config)).ok();
                    now.on_disk.is_rebuilding = rebuilds && open.is_none();
                }
                continue;
            }
            call => now.make(call, &db)?,
        }
        open = Some(db);
    }
    let struck = medium.struck();
    if let Some(db) = open {
        now.stays_shut(&db)?;
        let closed = db.close();
        ensure!(closed.is_err() || !now.has_failed, "a call failed, and closing says nothing");
    }
    // A plan that only the close came to counts as well.
    let struck = struck.or_else(|| medium.struck());
    checker.check(medium.snapshot(), &now.on_disk)?;
    Ok(struck.map(|operation| (operation, false)))
}

/// Waits a little for the background.
fn settle(medium: &FaultyMedium) {
    for _ in 0..50 {
        let before = medium.operations();
        thread::sleep(Duration::from_millis(1));
        if medium.operations() == before {
            return;
        }
    }
}

/// Who must be out, in this process and on disk.
struct Shut {
    here: BTreeSet<u64>,
    on_disk: Acknowledged,
    has_failed: bool,
}

impl Shut {
    fn begin(workload: &Workload) -> Self {
        let out: BTreeSet<u64> = workload.is_damaged.then_some(7).into_iter().collect();
        let on_disk = Acknowledged {
            is_created: true,
            is_clean: !workload.is_damaged,
            out: out.clone(),
            ..Acknowledged::default()
        };
        Self { here: out, on_disk, has_failed: false }
    }

    fn make(&mut self, call: &Call, db: &TidalDb) -> Seen {
        for user in call.rejoins() {
            self.on_disk.out.remove(&user);
        }
        let outcome = make(call, db);
        ensure!(outcome.is_err() || !self.has_failed, "{call:?} succeeds after a failure");
        self.has_failed |= outcome.is_err();
        match (&outcome, call) {
            (Ok(()), _) => {
                for user in call.rejoins() {
                    self.here.remove(&user);
                }
                self.here.extend(call.leaves());
                self.on_disk.out.extend(call.leaves());
                self.on_disk.is_clean |= matches!(call, Call::Repair(_));
                self.on_disk.sequence = db.durable_sequence();
            }
            // What an apply had come to is not known here.
            (Err(_), Call::Apply(..)) => {
                for user in call.rejoins() {
                    self.here.remove(&user);
                }
            }
            // A leave that failed shuts, a return that failed does not open.
            (Err(_), _) => self.here.extend(call.leaves()),
        }
        self.stays_shut(db)
    }

    /// Nobody who is out passes the gate.
    fn stays_shut(&self, db: &TidalDb) -> Seen {
        let statuses = self.here.iter().map(|user| (*user, db.community_layer_status(*user).status));
        for (user, status) in statuses {
            ensure!(status == MembershipStatus::Left, "user {user} is out, and the status says {status}");
        }
        if self.has_failed {
            for user in &self.here {
                passes_nothing(db, *user)?;
            }
        }
        Ok(())
    }
}

/// A signal of a user who is out changes no cohort and no community.
fn passes_nothing(db: &TidalDb, user: u64) -> Seen {
    let shared = |db: &TidalDb| -> Seen<u64> {
        let mut taken = 0;
        for row in ok(db.aggregates(None))? {
            let row = ok(row)?;
            taken += if row.scope == Scope::Global { 0 } else { row.aggregate.count };
        }
        Ok(taken)
    };
    let before = shared(db)?;
    let receipt = db.signal(user, ITEM, "view", 1.0);
    ensure!(
        receipt.as_ref().map_or(true, |receipt| receipt.withheld.is_some()),
        "user {user} is out, and a signal says {receipt:?}"
    );
    let after = shared(db)?;
    ensure!(before == after, "user {user} is out, and others see {after} signals after {before}");
    Ok(())
}

fn open_with_failure(
    checker: &Checker<'_>,
    required: &Acknowledged,
    image: &[u8],
    (nth, how, cache_bytes): Failure,
    trace: &Trace,
    adapt: Adapt<'_>,
) -> Seen<Struck> {
    let medium = Arc::new(FaultyMedium::from_bytes(image.to_vec()));
    medium.fail_at(nth, Counted::All, how);
    let (_, config) = configure(&trace.workload, adapt, 100_000);
    let options = Storage::options().cache_size_bytes(cache_bytes);
    let opened = options.open_on(medium.clone()).map_err(tidal_db::Error::from);
    let opened = opened.and_then(|storage| TidalDb::from_parts(storage, config));
    let is_refused = opened.is_err();
    if let Ok(db) = opened {
        let now = Shut {
            here: required.out.clone(),
            on_disk: required.clone(),
            has_failed: medium.struck().is_some(),
        };
        now.stays_shut(&db)?;
    }
    let struck = medium.struck();
    // What failed has passed, and the next open finds all of it: at most what was probed is more.
    if is_refused {
        checker.check(medium.snapshot(), required)?;
    } else {
        let (_, config) = configure(&trace.workload, adapt, 100_000);
        let again = open_on(Arc::new(MemoryMedium::from_bytes(medium.snapshot())), config)?;
        for user in &required.out {
            let status = again.community_layer_status(*user).status;
            ensure!(
                status == MembershipStatus::Left,
                "opened again: user {user} is out, and the status says {status}"
            );
        }
    }
    Ok(struck.map(|operation| (operation, is_refused)))
}
