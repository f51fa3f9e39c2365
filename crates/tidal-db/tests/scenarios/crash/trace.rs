//! A workload that is run, with every write and sync of it, what was acknowledged when, and what was
//! visible at each sequence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidal_db::{Config, ManualClock, Storage, TidalDb};
use tidal_keys::{EntityId, Tag, encode_key};
use tidal_storage::{Medium, MemoryMedium, WriteBatch};

use super::visible::{SOURCE, Visible, visible};
use super::workload::{Call, Workload};
use crate::ensure;
use crate::scenarios::medium::{RecordingMedium, Step};
use crate::scenarios::{ITEM, Seen, config, ok, schema};

/// How a test changes every configuration; a canary breaks something.
pub type Adapt<'a> = &'a (dyn Fn(Config) -> Config + Sync);

/// What a crash after so many steps must leave.
#[derive(Clone, Debug, Default)]
pub struct Acknowledged {
    pub steps_len: usize,
    /// Whether there is a database: before that, an open may be refused.
    pub is_created: bool,
    pub sequence: u64,
    /// Users who are out, and whose return was not asked for.
    pub out: BTreeSet<u64>,
    /// Whether no record is damaged.
    pub is_clean: bool,
    /// Whether views are being made anew: until that has ended, an open may ask for it to be done again.
    pub is_rebuilding: bool,
}

/// What was visible at a sequence, and when.
#[derive(Clone, Debug)]
pub struct State {
    pub clock_ns: u64,
    pub visible: Visible,
}

/// A run of a workload.
#[derive(Debug)]
pub struct Trace {
    pub workload: Workload,
    pub base: Vec<u8>,
    pub steps: Vec<Step>,
    pub acknowledged: Vec<Acknowledged>,
    pub states: BTreeMap<u64, State>,
    /// Deliveries: the sequences before and after, and the call.
    pub deliveries: Vec<(u64, u64, Call)>,
}

/// A clock at `now_ns`, and the workload's configuration over it.
pub fn configure(workload: &Workload, adapt: Adapt<'_>, now_ns: u64) -> (Arc<ManualClock>, Config) {
    let (clock, config) = config();
    clock.set(now_ns);
    (clock, adapt((workload.configure)(config)))
}

/// The same for the open that creates the database.
pub fn configure_first(workload: &Workload, adapt: Adapt<'_>, now_ns: u64) -> (Arc<ManualClock>, Config) {
    let (clock, configured) = configure(workload, adapt, now_ns);
    if workload.grows {
        return (clock, configured.schema(schema()));
    }
    (clock, configured)
}

/// Opens what is on a medium.
pub fn open_on(medium: Arc<dyn Medium>, config: Config) -> Seen<TidalDb> {
    let storage = ok(Storage::options().open_on(medium))?;
    ok(TidalDb::from_parts(storage, config))
}

/// The bytes that a workload begins with, if it does not create its database.
pub fn damaged_base(workload: &Workload) -> Seen<Vec<u8>> {
    let medium = Arc::new(MemoryMedium::default());
    let (_, config) = configure_first(workload, &|config| config, 100);
    let storage = ok(Storage::options().create_on(medium.clone(), WriteBatch::new()))?;
    let db = ok(TidalDb::from_parts(storage.clone(), config))?;
    ok(db.join_community(7, 1))?;
    ok(db.leave_community_layer(7))?;
    let key = encode_key(EntityId::new(7), Tag::CommunityLeave, b"");
    ok(storage.users_engine().put(&key, b"damaged"))?;
    ok(db.close())?;
    Ok(medium.snapshot())
}

impl Trace {
    /// Runs a workload from its beginning.
    pub fn record(workload: &Workload, adapt: Adapt<'_>) -> Seen<Self> {
        let (clock, config) = configure_first(workload, adapt, 1_000);
        let base = if workload.is_damaged { damaged_base(workload)? } else { Vec::new() };
        let medium = Arc::new(RecordingMedium::from_bytes(base.clone()));
        let mut recorder = Recorder::new(workload, base, medium.clone(), Arc::clone(&clock));
        let db = if workload.is_damaged {
            recorder.now = Acknowledged { is_created: true, out: [7].into(), ..Acknowledged::default() };
            recorder.acknowledge();
            open_on(medium, config)?
        } else {
            recorder.now.is_clean = true;
            recorder.acknowledge();
            let storage = ok(Storage::options().create_on(medium, WriteBatch::new()))?;
            recorder.now.is_created = true;
            ok(TidalDb::from_parts(storage, config))?
        };
        recorder.run(db, &workload.calls, adapt)
    }

    /// Opens what a crash left, which must be what `before` had at a known sequence, and goes on with other calls.
    pub fn go_on(
        before: &Self,
        image: Vec<u8>,
        required: &Acknowledged,
        adapt: Adapt<'_>,
    ) -> Seen<Option<Self>> {
        let workload = Workload { calls: super::workload::after_a_crash(), ..before.workload.clone() };
        let now_ns = before.states.values().map(|state| state.clock_ns).max().unwrap_or(1_000) + 1_000;
        let (clock, config) = configure(&workload, adapt, now_ns);
        let medium = Arc::new(RecordingMedium::from_bytes(image.clone()));
        let mut recorder = Recorder::new(&workload, image, medium.clone(), clock);
        recorder.now = Acknowledged { steps_len: 0, ..required.clone() };
        recorder.acknowledge();
        let db = open_on(medium, config)?;
        let found = db.open_report().last_sequence;
        let Some(state) = before.states.get(&found) else { return Ok(None) };
        recorder.trace.states.insert(found, state.clone());
        recorder.now.is_clean = db.open_report().is_clean();
        recorder.now.out = db.left_users().iter().map(|user| user.user_id).collect();
        recorder.run(db, &workload.calls, adapt).map(Some)
    }

    /// What is required of a crash after `steps_len` steps.
    pub fn required(&self, steps_len: usize) -> &Acknowledged {
        let later = self.acknowledged.partition_point(|known| known.steps_len <= steps_len);
        &self.acknowledged[later.max(1) - 1]
    }
}

struct Recorder {
    medium: Arc<RecordingMedium>,
    clock: Arc<ManualClock>,
    now: Acknowledged,
    /// The last sequence that was given.
    staged: u64,
    trace: Trace,
}

impl Recorder {
    fn new(
        workload: &Workload,
        base: Vec<u8>,
        medium: Arc<RecordingMedium>,
        clock: Arc<ManualClock>,
    ) -> Self {
        let trace = Trace {
            workload: workload.clone(),
            base,
            steps: Vec::new(),
            acknowledged: Vec::new(),
            states: BTreeMap::new(),
            deliveries: Vec::new(),
        };
        Self { medium, clock, now: Acknowledged::default(), staged: 0, trace }
    }

    fn acknowledge(&mut self) {
        self.now.steps_len = self.medium.steps_len();
        self.trace.acknowledged.push(self.now.clone());
    }

    fn run(mut self, mut db: TidalDb, calls: &[Call], adapt: Adapt<'_>) -> Seen<Trace> {
        self.staged = db.durable_sequence();
        self.see(&db)?;
        for call in calls {
            for user in call.rejoins() {
                self.now.out.remove(&user);
            }
            self.now.is_rebuilding = matches!(call, Call::Rebuild);
            self.acknowledge();
            let before = self.staged;
            db = self.make(call, db, adapt)?;
            self.now.is_rebuilding = false;
            self.now.out.extend(call.leaves());
            self.now.is_clean |= matches!(call, Call::Repair(_));
            self.staged = match call {
                Call::Signal(..) | Call::Late(..) => before + 1,
                _ => self.staged.max(db.durable_sequence()),
            };
            if matches!(call, Call::Apply(..)) {
                self.trace.deliveries.push((before, self.staged, call.clone()));
            }
            if matches!(call, Call::Advance(_)) {
                // Scores are what they are at the later time.
                self.trace.states.remove(&self.staged);
            }
            self.see(&db)?;
        }
        ok(db.close())?;
        self.acknowledge();
        self.trace.steps = self.medium.steps();
        Ok(self.trace)
    }

    /// Notes what is said to be on disk, and what is visible.
    fn see(&mut self, db: &TidalDb) -> Seen {
        self.now.sequence = db.durable_sequence();
        let shown = State { clock_ns: self.clock_ns(), visible: visible(db)? };
        let known = self.trace.states.get(&self.staged);
        if known.is_some_and(|known| known.clock_ns == shown.clock_ns && known.visible != shown.visible) {
            // What a call changed must be on disk, whether or not the log is said to have grown.
            self.staged += 1;
            self.now.sequence = self.staged;
        }
        self.acknowledge();
        self.trace.states.entry(self.staged).or_insert(shown);
        Ok(())
    }

    fn clock_ns(&self) -> u64 {
        use tidal_db::Clock as _;
        self.clock.now_ns()
    }

    fn make(&self, call: &Call, db: TidalDb, adapt: Adapt<'_>) -> Seen<TidalDb> {
        match call {
            Call::Advance(by_ns) => self.clock.advance(*by_ns),
            Call::Settle => settle(&self.medium)?,
            Call::Reopen | Call::Rebuild => {
                ok(db.close())?;
                let (_, config) = configure(&self.trace.workload, adapt, 0);
                let config = config.rebuild(matches!(call, Call::Rebuild));
                return open_on(self.medium.clone(), config.clock(Arc::clone(&self.clock) as _));
            }
            call => ok(make(call, &db))?,
        }
        Ok(db)
    }
}

/// Makes a call that is one call of the database.
pub fn make(call: &Call, db: &TidalDb) -> tidal_db::Result<()> {
    match call {
        Call::Join(user, community) => db.join_community(*user, *community),
        Call::Quit(user, community) => db.quit_community(*user, *community),
        Call::Attribute(user, value) => db.set_user_attribute(*user, "region", value),
        Call::Signal(user, item) => db.signal(*user, *item, "view", 1.0).map(drop),
        Call::Late(user, at_ns) => db.signal_at(*user, ITEM, "view", 0.5, *at_ns).map(drop),
        Call::Leave(user) => db.leave_community_layer(*user).map(drop),
        Call::Rejoin(user) => db.rejoin_community_layer(*user).map(drop),
        Call::Repair(user) => db.repair_community_layer(*user).map(drop),
        Call::Apply(first, events) => db.apply(SOURCE, *first, events.clone()).map(drop),
        Call::Flush => db.flush(),
        Call::Advance(_) | Call::Settle | Call::Reopen | Call::Rebuild => Ok(()),
    }
}

/// Waits until the background has nothing to write for a while.
fn settle(medium: &RecordingMedium) -> Seen {
    let begun = Instant::now();
    let mut steps_len = medium.steps_len();
    loop {
        std::thread::sleep(Duration::from_millis(20));
        let now = medium.steps_len();
        if now == steps_len {
            return Ok(());
        }
        steps_len = now;
        ensure!(begun.elapsed() < Duration::from_secs(60), "the background writes without end");
    }
}
