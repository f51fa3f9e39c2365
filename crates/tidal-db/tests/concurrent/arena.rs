//! One database that many threads use at once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidal_db::{Action, Config, Durability, Event, ManualClock, SignalReceipt, Storage, TidalDb, Weight};
use tidal_storage::{MemoryMedium, WriteBatch};

use crate::compare::{Same, ok, same, same_all};
use crate::log::{AllSent, Sent, oracle_of};
use crate::oracle::{Oracle, When};
use crate::world::{FIRST_NOW_NS, TIMES_NS, schema};

pub struct Arena {
    pub db: TidalDb,
    pub medium: Arc<MemoryMedium>,
    pub clock: Arc<ManualClock>,
    durability: Durability,
    next_weight: AtomicI64,
    sent: Mutex<AllSent>,
}

fn config(durability: Durability, clock: &Arc<ManualClock>) -> Config {
    // The clock jumps about, and nothing is to be refused for that.
    TidalDb::builder()
        .clock(Arc::<ManualClock>::clone(clock))
        .allowed_skew(Duration::MAX)
        // Checkpoints come again and again.
        .recovery_entries(64)
        // Runs are made and merged all the time.
        .run_entries(8)
        .durability(durability)
}

impl Arena {
    pub fn new(durability: Durability) -> Self {
        let medium = Arc::new(MemoryMedium::default());
        let clock = Arc::new(ManualClock::new(FIRST_NOW_NS));
        let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
        let db = TidalDb::from_parts(storage, config(durability, &clock).schema(schema())).unwrap();
        Self { db, medium, clock, durability, next_weight: AtomicI64::new(1), sent: Mutex::default() }
    }

    /// A weight that no other signal has, so that each can be told from all others.
    fn own_weight(&self) -> Weight {
        Weight::from_nanos(self.next_weight.fetch_add(1, Ordering::Relaxed)).unwrap()
    }

    fn note(&self, weight: Weight, sent: Sent) {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).insert(weight.nanos(), sent);
    }

    pub fn signal(&self, user: u64, item: u64, signal_type: &str, at_ns: Option<u64>) -> SignalReceipt {
        let weight = self.own_weight();
        let receipt = match at_ns {
            None => self.db.signal(user, item, signal_type, weight.to_f64()),
            Some(at_ns) => self.db.signal_at(user, item, signal_type, weight.to_f64(), at_ns),
        };
        let receipt = receipt.unwrap();
        let when = at_ns.map_or(When::Now(0), When::At);
        self.note(weight, Sent { when, receipt: Some(receipt) });
        receipt
    }

    /// A signal for a source to deliver.
    pub fn signal_event(&self, user: u64, item: u64, signal_type: &str, at_ns: u64) -> Event {
        let weight = self.own_weight();
        self.note(weight, Sent { when: When::At(at_ns), receipt: None });
        Event { at_ns, action: Action::Signal { user, item, signal_type: signal_type.to_owned(), weight } }
    }

    /// The database that a crash at this moment leaves, its log, and that the two agree.
    pub fn crashed_copy(&self) -> Same<(TidalDb, Oracle)> {
        let acknowledged = self.sent_so_far();
        let image = self.medium.snapshot();
        let (copy, oracle) = agreed(&image, &self.sent_so_far())?;
        if self.durability == Durability::Immediate {
            let logged: HashSet<i64> = oracle
                .users
                .values()
                .flat_map(|user| &user.history)
                .map(|acted| acted.weight_nanos)
                .collect();
            let lost: Vec<_> = acknowledged
                .iter()
                .filter(|(weight, sent)| sent.receipt.is_some() && !logged.contains(weight))
                .collect();
            same(|| "the list of acknowledged signals that were lost".to_owned(), &lost, &Vec::new())?;
        }
        Ok((copy, oracle))
    }

    fn sent_so_far(&self) -> AllSent {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All threads are done: memory and disk say what the log says. Returns what that is.
    pub fn settle(self) -> Same<Oracle> {
        self.clock.set(TIMES_NS[0]);
        ok("flush", self.db.flush())?;
        let sent = self.sent.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut oracle = oracle_of(&self.medium.snapshot(), &sent)?;
        same(|| "the number of signals in the log".to_owned(), &signals(&oracle), &sent.len())?;
        same(|| "left_count".to_owned(), &self.db.left_count(), &(self.db.left_users().len() as u64))?;
        // Events that changed nothing move the newest time without an entry in the log.
        oracle.newest_ns = self.db.newest_time_ns();
        same_all(&self.db, &oracle, TIMES_NS[0]).map_err(|said| format!("memory and log: {said}"))?;
        ok("close", self.db.close())?;
        let (reopened, from_disk) = agreed(&self.medium.snapshot(), &sent)?;
        same(|| "the newest time after reopening".to_owned(), &reopened.newest_time_ns(), &oracle.newest_ns)?;
        same(|| "the number of signals after closing".to_owned(), &signals(&from_disk), &sent.len())?;
        Ok(oracle)
    }
}

fn signals(oracle: &Oracle) -> usize {
    oracle.users.values().map(|user| user.history.len()).sum()
}

/// Opens a copy of a file and compares it with its log.
fn agreed(image: &[u8], sent: &AllSent) -> Same<(TidalDb, Oracle)> {
    let mut oracle = oracle_of(image, sent)?;
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image.to_vec())));
    let clock = Arc::new(ManualClock::new(TIMES_NS[0]));
    let db = TidalDb::from_parts(ok("open_on", storage)?, config(Durability::Immediate, &clock));
    let db = ok("from_parts", db)?;
    same(|| "whether the open report is clean".to_owned(), &db.open_report().is_clean(), &true)?;
    oracle.newest_ns = oracle.newest_ns.max(db.newest_time_ns());
    same_all(&db, &oracle, TIMES_NS[0]).map_err(|said| format!("disk and log: {said}"))?;
    Ok((db, oracle))
}

/// Numbers that follow from a seed, so that a run can be told again.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        // The finaliser of splitmix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
