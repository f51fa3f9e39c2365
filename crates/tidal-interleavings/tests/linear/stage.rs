//! A database for one schedule, and the calls that are made on it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidal_interleavings::{
    Break, Clock, CommunityMembership, Config, Durability, HistoryEvent, Schema, Scope, Storage, TidalDb,
    Transition, Weight, WithheldCounts,
};
use tidal_storage::{MemoryMedium, WriteBatch};

use crate::act::{Act, Call, Said};
use crate::program::Mode;
use crate::schedules::once;

/// What was seen, or what was wrong with it.
pub type Seen<T = ()> = Result<T, String>;

pub const USERS: [u64; 2] = [7, 8];
pub const ITEM: u64 = 1;

/// How many scopes take the signals of a user.
pub const SCOPES: usize = 4;
/// The place of the global scope among them.
pub const GLOBAL: usize = 0;

const TICK_NS: u64 = 1_000;
/// The time of the first call.
pub const FIRST_NS: u64 = TICK_NS;
/// About the time of the last call.
pub const LATEST_NS: u64 = 12 * TICK_NS;

pub fn scopes() -> [Scope; SCOPES] {
    [Scope::Global, Scope::Cohort("region=Scotland".to_owned()), Scope::Community(1), Scope::Community(2)]
}

/// Later with every reading. Not a step for the scheduler: time passes by itself.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now_ns(&self) -> u64 {
        self.0.fetch_add(TICK_NS, Ordering::SeqCst) + TICK_NS
    }
}

fn config() -> Config {
    TidalDb::builder().clock(Arc::new(Ticking::default())).allowed_skew(Duration::MAX)
}

/// How a database is opened in a mode.
pub fn config_of(mode: Mode, broken: Option<Break>) -> Config {
    let opened = match mode {
        Mode::Immediate => config().ephemeral().durability(Durability::Immediate),
        Mode::Batched => {
            config().ephemeral().durability(Durability::Batched { max_events: 4, max_delay: Duration::ZERO })
        }
        Mode::WithBackground => config().durability(Durability::Immediate).recovery_entries(4).run_entries(4),
    };
    match broken {
        Some(broken) => opened.broken(broken),
        None => opened,
    }
}

/// A database in which every user is in every scope and nothing happened yet. Made under a scheduler, of which
/// there is none at the call.
pub fn first_image() -> Vec<u8> {
    let (sender, receiver) = std::sync::mpsc::channel();
    once(move || {
        let schema = Schema::builder().signal("view", Duration::from_secs(3600)).cohorts_by("region").build();
        let medium = Arc::new(MemoryMedium::default());
        let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
        let db = TidalDb::from_parts(storage, config().ephemeral().schema(schema.unwrap())).unwrap();
        for user in USERS {
            db.set_user_attribute(user, "region", "Scotland").unwrap();
            db.join_community(user, 1).unwrap();
            db.join_community(user, 2).unwrap();
        }
        db.close().unwrap();
        sender.send(medium.snapshot()).unwrap();
    });
    receiver.recv().unwrap()
}

/// One database that the threads of a schedule share.
pub struct Stage {
    pub db: TidalDb,
    medium: Arc<MemoryMedium>,
    // Neither is a step for the scheduler.
    now: AtomicU64,
    next_signal: AtomicU32,
    calls: Mutex<Vec<Call>>,
}

impl Stage {
    pub fn new(image: &[u8], mode: Mode, broken: Option<Break>) -> Self {
        let medium = Arc::new(MemoryMedium::from_bytes(image.to_vec()));
        Self {
            db: open(&medium, config_of(mode, broken)),
            medium,
            now: AtomicU64::new(0),
            next_signal: AtomicU32::new(0),
            calls: Mutex::default(),
        }
    }

    /// Makes one call and notes it. What no order could explain is an error at once.
    pub fn call(&self, user: u64, act: Act) -> Seen {
        let made_at = self.now.fetch_add(1, Ordering::SeqCst);
        let said = match act {
            Act::Signal { at_ns } => self.signal(user, at_ns)?,
            Act::Leave => Said::Leave(ok(self.db.leave_community_layer(user))?),
            Act::Rejoin => Said::Rejoin(ok(self.db.rejoin_community_layer(user))?),
            Act::Status => Said::Status(self.db.community_layer_status(user)),
            Act::Read { scope } => Said::Read { scope, marks: self.marks(scope)? },
        };
        let returned_at = self.now.fetch_add(1, Ordering::SeqCst);
        let call = Call { user, made_at, returned_at, said };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        Ok(())
    }

    fn signal(&self, user: u64, at_ns: Option<u64>) -> Seen<Said> {
        let mark: u32 = 1 << self.next_signal.fetch_add(1, Ordering::SeqCst);
        let weight = ok(Weight::from_nanos(i64::from(mark)))?;
        let receipt = ok(self.db.signal_exact(user, ITEM, "view", weight, at_ns))?;
        let expected = if receipt.withheld.is_none() { (1, 2) } else { (0, 0) };
        if (receipt.cohorts, receipt.communities) != expected {
            return Err(format!(
                "a signal that was withheld as {:?} is in {} cohorts and {} of 2 communities",
                receipt.withheld, receipt.cohorts, receipt.communities
            ));
        }
        Ok(Said::Signal { mark, at_ns, withheld: receipt.withheld })
    }

    /// Which signals are in a scope.
    fn marks(&self, scope: usize) -> Seen<u32> {
        marks(&self.db, &scopes()[scope])
    }

    /// Reads all there is once nothing runs any more, closes the database and opens it again.
    pub fn settle(self) -> Seen<Settled> {
        for user in USERS {
            for scope in 0..SCOPES {
                self.call(user, Act::Read { scope })?;
            }
            self.call(user, Act::Status)?;
        }
        let in_memory = Totals::of(&self.db)?;
        let mut users = Vec::new();
        for user in USERS {
            users.push(SettledUser {
                user,
                transitions: ok(self.db.membership_history(user))?,
                history: ok(ok(self.db.history(user))?.collect::<Result<_, _>>())?,
            });
        }
        ok(self.db.close())?;
        let reopened = open(&self.medium, config().ephemeral());
        let on_disk = Totals::of(&reopened)?;
        let verified = ok(reopened.verify())?;
        ok(reopened.close())?;
        if in_memory != on_disk {
            return Err(format!("memory says {in_memory:?}, disk {on_disk:?}"));
        }
        if let Some(difference) = verified.differences.first() {
            return Err(format!("verify names {difference:?}"));
        }
        let calls = self.calls.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Settled { calls, users })
    }
}

/// All that happened in one schedule.
pub struct Settled {
    pub calls: Vec<Call>,
    pub users: Vec<SettledUser>,
}

/// What the log has of one user.
pub struct SettledUser {
    pub user: u64,
    pub transitions: Vec<Transition>,
    pub history: Vec<HistoryEvent>,
}

/// What must be the same in memory and on disk.
#[derive(Debug, PartialEq)]
struct Totals {
    marks: Vec<u32>,
    statuses: Vec<CommunityMembership>,
    left_count: u64,
    withheld: WithheldCounts,
}

impl Totals {
    fn of(db: &TidalDb) -> Seen<Self> {
        Ok(Self {
            marks: scopes().iter().map(|scope| marks(db, scope)).collect::<Seen<_>>()?,
            statuses: USERS.iter().map(|user| db.community_layer_status(*user)).collect(),
            left_count: db.left_count(),
            withheld: db.withheld_counts(),
        })
    }
}

fn open(medium: &Arc<MemoryMedium>, config: Config) -> TidalDb {
    // Nothing damages what is in memory.
    let storage = Storage::options().check_integrity(false).open_on(medium.clone()).unwrap();
    TidalDb::from_parts(storage, config).unwrap()
}

pub fn marks(db: &TidalDb, scope: &Scope) -> Seen<u32> {
    let Some(taken) = ok(db.aggregate(scope, ITEM, "view"))? else { return Ok(0) };
    let marks = u32::try_from(taken.weight_nanos).map_err(|error| error.to_string())?;
    if taken.count != u64::from(marks.count_ones()) {
        return Err(format!("{scope:?} holds {} signals, and the marks {marks:b}", taken.count));
    }
    Ok(marks)
}

pub fn ok<T, E: std::fmt::Display>(outcome: Result<T, E>) -> Seen<T> {
    outcome.map_err(|error| format!("a call failed: {error}"))
}
