//! One short life of a database, call by call: what each call changed in the store, and how often it
//! synced.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tidal_db::{
    Action, Config, Durability, Event, ManualClock, MembershipStatus, Schema, Storage, TidalDb, Weight,
};
use tidal_entities::{
    checkpoint_key, decode_checkpoint, decode_run_index, decode_source_position, run_index_key, source_key,
};
use tidal_keys::Tag;
use tidal_storage::{Medium, MemoryMedium, Partition, WriteBatch};

pub const USER: u64 = 7;
pub const ITEM: u64 = 1752;
pub const HALF_LIFE: Duration = Duration::from_secs(7 * 86_400);
/// 2023-11-14T22:13:20Z, in ns.
pub const T: u64 = 1_700_000_000_000_000_000;

/// The first checkpoint goes up to here.
pub const CHECKPOINT_SEQUENCE: u64 = 12;

/// The first run goes up to here.
pub const RUN_SEQUENCE: u64 = CHECKPOINT_SEQUENCE + 1;

const SECOND_NS: u64 = 1_000_000_000;
/// The header and both commit slots of the engine.
pub const HEADER_LEN: usize = 320;

/// The byte of the header that holds the flags of the newest commit, and the flag of two phases.
pub const FLAGS: usize = 9;
const TWO_PHASE: u8 = 1 << 2;

/// A medium that counts its syncs and the changes of its length.
#[derive(Debug, Default)]
struct CountingMedium {
    bytes: MemoryMedium,
    syncs: AtomicU64,
    resizes: AtomicU64,
    is_recorded: AtomicBool,
    /// While it is recorded, what every sync left, and the counts by then.
    synced: Mutex<Vec<(Vec<u8>, [u64; 2])>>,
}

impl CountingMedium {
    fn counts(&self) -> [u64; 2] {
        [&self.syncs, &self.resizes].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Medium for CountingMedium {
    fn len(&self) -> io::Result<u64> {
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.bytes.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.resizes.fetch_add(1, Ordering::Relaxed);
        self.bytes.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.bytes.sync_data()?;
        if self.is_recorded.load(Ordering::Relaxed) {
            self.synced.lock().unwrap().push((self.bytes.snapshot(), self.counts()));
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.bytes.write(offset, data)
    }
}

/// Values by the name of the table and the key.
type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// What one call did to the store.
pub struct Step {
    pub name: &'static str,
    pub is_two_phase: bool,
    pub syncs: u64,
    pub resizes: u64,
    /// No value: the record was removed.
    pub changes: BTreeMap<(String, Vec<u8>), Option<Vec<u8>>>,
}

pub struct Story {
    pub steps: Vec<Step>,
    pub leave_sequence: u64,
    medium: Arc<CountingMedium>,
    storage: Storage,
    clock: Arc<ManualClock>,
    // Open until the story is dropped: what lies on the medium is what a kill leaves.
    db: TidalDb,
}

fn schema() -> Schema {
    Schema::builder().signal("view", HALF_LIFE).cohorts_by("region").build().unwrap()
}

fn config(clock: Arc<ManualClock>) -> Config {
    let config = TidalDb::builder().schema(schema()).clock(clock).durability(Durability::Immediate);
    // A checkpoint begins after a quarter of these entries.
    config.recovery_entries(4 * CHECKPOINT_SEQUENCE).run_entries(RUN_SEQUENCE)
}

impl Story {
    fn begun() -> Self {
        let medium = Arc::new(CountingMedium::default());
        let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
        let clock = Arc::new(ManualClock::new(T));
        let counts = medium.counts();
        let db = TidalDb::from_parts(storage.clone(), config(clock.clone())).unwrap();
        let mut story = Self { steps: Vec::new(), leave_sequence: 0, medium, storage, clock, db };
        story.note_live("first schema", &Rows::new(), counts);
        story
    }

    /// The whole of it: every kind of record that is stored, and every kind of entry.
    pub fn told() -> Self {
        let mut story = Self::begun();
        story.step("set attribute", |db| db.set_user_attribute(USER, "region", "Scotland"));
        story.step("join", |db| db.join_community(USER, 4));
        story.step("signal", |db| db.signal(USER, ITEM, "view", 2.5).map(drop));
        story.clock.set(T + SECOND_NS);
        story.step("leave", |db| db.leave_community_layer(USER).map(drop));
        story.step("withheld signal", |db| db.signal(USER, ITEM, "view", 1.0).map(drop));
        story.clock.set(T + 2 * SECOND_NS);
        story.step("rejoin", |db| db.rejoin_community_layer(USER).map(drop));
        story.step("quit", |db| db.quit_community(USER, 4));
        let [first, second] = Self::source_events();
        story.step("apply one", |db| db.apply("queue", 1, [first]).map(drop));
        story.step("apply another", |db| db.apply("queue", 2, [second]).map(drop));
        let checkpoint = ["last signal", "end of the checkpoint"];
        story.background(&checkpoint, Self::has_checkpoint);
        story.background(&["one more signal", "run"], Self::has_run);
        story
    }

    pub fn killed_after_a_leave() -> Self {
        let mut story = Self::begun();
        story.step("join", |db| db.join_community(USER, 4));
        story.step("leave", |db| db.leave_community_layer(USER).map(drop));
        story.leave_sequence = story.db.durable_sequence();
        story
    }

    pub fn killed_after_a_later_signal() -> Self {
        let mut story = Self::killed_after_a_leave();
        story.step("signal", |db| db.signal(USER, ITEM, "view", 1.0).map(drop));
        story
    }

    /// What "apply one" and "apply another" deliver, at positions 1 and 2.
    pub fn source_events() -> [Event; 2] {
        let weight = "2.5".parse::<Weight>().unwrap();
        let signal = Action::Signal { user: USER, item: ITEM, signal_type: "view".into(), weight };
        [Event { at_ns: T, action: signal }, Event { at_ns: T, action: Action::Leave { user: USER } }]
    }

    fn step(&mut self, name: &'static str, call: impl FnOnce(&TidalDb) -> tidal_db::Result<()>) {
        let before = self.all_rows();
        let counts = self.medium.counts();
        call(&self.db).unwrap();
        self.note_live(name, &before, counts);
    }

    /// One signal more, and what begins with it in the background: a step for each commit. That does
    /// not wait for anybody to look, so its commits are told from what each sync left.
    fn background(&mut self, names: &[&'static str], is_done: fn(&Self) -> bool) {
        let mut before = self.all_rows();
        let mut counts_before = self.medium.counts();
        self.medium.is_recorded.store(true, Ordering::Relaxed);
        self.db.signal(USER, ITEM, "view", 1.0).unwrap();
        let patience = Instant::now();
        while !is_done(self) {
            assert!(patience.elapsed() < Duration::from_secs(60), "{names:?} did not come");
            std::thread::sleep(Duration::from_millis(1));
        }
        self.medium.is_recorded.store(false, Ordering::Relaxed);
        let synced = std::mem::take(&mut *self.medium.synced.lock().unwrap());
        let mut names = names.iter();
        for (image, counts) in synced {
            let flags = image[FLAGS];
            let medium = Arc::new(MemoryMedium::from_bytes(image));
            let after = rows_by_table(&Storage::options().open_on(medium).unwrap());
            // A file that grows is synced before the commit.
            if after != before {
                let name = names.next().expect("no more commits than names");
                self.note(name, [counts_before, counts], flags, &before, &after);
                (before, counts_before) = (after, counts);
            }
        }
        assert_eq!(names.next(), None);
    }

    fn has_checkpoint(&self) -> bool {
        let key = checkpoint_key();
        let value = self.storage.system_engine().get(&key).unwrap();
        value.is_some_and(|value| decode_checkpoint(&key, &value).unwrap().floor == CHECKPOINT_SEQUENCE)
    }

    fn has_run(&self) -> bool {
        let key = run_index_key();
        let value = self.storage.system_engine().get(&key).unwrap();
        value.is_some_and(|value| decode_run_index(&key, &value).unwrap().through == RUN_SEQUENCE)
    }

    /// Notes what a call that has returned did.
    fn note_live(&mut self, name: &'static str, before: &Rows, counts_before: [u64; 2]) {
        let counts = [counts_before, self.medium.counts()];
        let (flags, after) = (self.image()[FLAGS], self.all_rows());
        self.note(name, counts, flags, before, &after);
    }

    fn note(&mut self, name: &'static str, counts: [[u64; 2]; 2], flags: u8, before: &Rows, after: &Rows) {
        let [[syncs_before, resizes_before], [syncs, resizes]] = counts;
        let (syncs, resizes) = (syncs - syncs_before, resizes - resizes_before);
        let is_two_phase = flags & TWO_PHASE != 0;
        let written = after.iter().filter(|(place, value)| before.get(*place) != Some(value));
        let mut changes: BTreeMap<_, _> =
            written.map(|(place, value)| (place.clone(), Some(value.clone()))).collect();
        let removed = before.keys().filter(|place| !after.contains_key(*place));
        changes.extend(removed.map(|place| (place.clone(), None)));
        self.steps.push(Step { name, is_two_phase, syncs, resizes, changes });
    }

    /// Everything that is stored at the end: partition, key, value.
    pub fn rows(&self) -> Vec<(Partition, Vec<u8>, Vec<u8>)> {
        rows_of(&self.storage)
    }

    fn all_rows(&self) -> Rows {
        rows_by_table(&self.storage)
    }

    /// The value under a key at the end.
    pub fn value(&self, partition: Partition, key: &[u8]) -> Vec<u8> {
        let found = self.rows().into_iter().find(|row| row.0 == partition && row.1 == key);
        found.unwrap_or_else(|| panic!("nothing under {key:02x?}")).2
    }

    /// The value that a call put under a key.
    pub fn value_after(&self, name: &str, partition: Partition, key: &[u8]) -> Vec<u8> {
        let step = self.steps.iter().find(|step| step.name == name).unwrap();
        let table = format!("{partition}/{:02x}", key[9]);
        step.changes[&(table, key.to_vec())].clone().unwrap()
    }

    pub fn digest_after(&self, name: &str) -> [u8; 32] {
        let key = source_key("queue");
        decode_source_position(&key, &self.value_after(name, Partition::System, &key)).unwrap().digest
    }

    /// The file as a kill would leave it now.
    pub fn image(&self) -> Vec<u8> {
        self.medium.bytes.snapshot()
    }

    /// Opens a file, with the sequence that it must have reached.
    pub fn open(&self, image: Vec<u8>, expected: Option<u64>) -> tidal_db::Result<TidalDb> {
        let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image)))?;
        let config = config(self.clock.clone());
        let config = expected.into_iter().fold(config, Config::expect_at_least);
        TidalDb::from_parts(storage, config)
    }

    /// Byte and bit of each flip in these bytes after which the file opens and the user is Active.
    pub fn bits_that_lose_the_leave(&self, bytes: Range<usize>) -> Vec<(usize, u32)> {
        let image = self.image();
        let mut lost = Vec::new();
        for byte in bytes {
            for bit in 0..8 {
                let mut flipped = image.clone();
                flipped[byte] ^= 1 << bit;
                let opened = self.open(flipped, None);
                let is_active =
                    |db: TidalDb| db.community_layer_status(USER).status == MembershipStatus::Active;
                if opened.is_ok_and(is_active) {
                    lost.push((byte, bit));
                }
            }
        }
        lost
    }
}

fn rows_of(storage: &Storage) -> Vec<(Partition, Vec<u8>, Vec<u8>)> {
    let engines =
        [storage.items_engine(), storage.users_engine(), storage.creators_engine(), storage.system_engine()];
    let mut rows = Vec::new();
    for engine in engines {
        for &tag in Tag::ALL {
            for row in engine.scan_tag(tag).unwrap() {
                let (key, value) = row.unwrap();
                rows.push((engine.partition(), key.to_vec(), value.to_vec()));
            }
        }
    }
    rows
}

fn rows_by_table(storage: &Storage) -> Rows {
    let table = |partition: Partition, key: &[u8]| format!("{partition}/{:02x}", key[9]);
    rows_of(storage)
        .into_iter()
        .map(|(partition, key, value)| ((table(partition, &key), key), value))
        .collect()
}
