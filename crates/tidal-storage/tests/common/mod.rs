//! What the integration tests share.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tidal_keys::{EncodedKey, EntityId, Tag, encode_key};
use tidal_storage::{
    Engine, Medium, MemoryMedium, Partition, Scan, Storage, StorageError, StorageOptions, WriteBatch,
};

/// The seed's value for a user who left at 100.
pub const LEFT_AT_100: [u8; 9] = [1, 100, 0, 0, 0, 0, 0, 0, 0];

pub fn key(id: u64, tag: Tag, suffix: &[u8]) -> EncodedKey {
    encode_key(EntityId::new(id), tag, suffix)
}

pub fn leave_key(user: u64) -> EncodedKey {
    key(user, Tag::CommunityLeave, b"")
}

pub fn engine(storage: &Storage, partition: Partition) -> &Engine {
    match partition {
        Partition::Items => storage.items_engine(),
        Partition::Users => storage.users_engine(),
        Partition::Creators => storage.creators_engine(),
        Partition::System => storage.system_engine(),
        _ => panic!("a partition that the tests do not know"),
    }
}

pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

pub fn rows(scan: Scan) -> Result<Rows, StorageError> {
    scan.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

/// Every record of every partition.
pub fn everything(storage: &Storage) -> Result<Vec<(Partition, Rows)>, StorageError> {
    Partition::ALL
        .iter()
        .map(|&partition| Ok((partition, rows(engine(storage, partition).scan_prefix(&[])?)?)))
        .collect()
}

/// A first batch that puts something into each partition.
pub fn sample_batch() -> WriteBatch {
    let mut batch = WriteBatch::new();
    for id in [0, 7, 300, u64::MAX] {
        batch.put(Partition::Users, &leave_key(id), &LEFT_AT_100);
        batch.put(Partition::Users, &key(id, Tag::Metadata, b"region"), b"Scotland");
        batch.put(Partition::Items, &key(id, Tag::Metadata, b"title"), b"Loch");
        batch.put(Partition::Creators, &key(id, Tag::Index, b""), b"");
        batch.put(Partition::System, &key(id, Tag::Event, b""), &[0xab; 600]);
    }
    batch
}

/// The bytes of a closed database that holds [`sample_batch`].
pub fn sample_bytes() -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::default());
    let storage = StorageOptions::new().create_on(medium.clone(), sample_batch()).unwrap();
    storage.close().unwrap();
    medium.snapshot()
}

/// What the medium was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Len,
    Read,
    SetLen(u64),
    Sync,
    Write(u64, Vec<u8>),
}

impl Call {
    pub fn changes_bytes(&self) -> bool {
        matches!(self, Self::SetLen(_) | Self::Write(..))
    }

    pub fn is_read(&self) -> bool {
        matches!(self, Self::Len | Self::Read)
    }
}

/// What becomes of the call whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Fails,
    Panics,
}

type Counts = fn(&Call) -> bool;

/// A medium that records every call, and lets one of them fail or panic.
#[derive(Debug, Default)]
pub struct TestMedium {
    pub memory: MemoryMedium,
    pub calls: Mutex<Vec<Call>>,
    plan: Mutex<Option<(Fate, Counts, usize)>>,
    struck: AtomicBool,
}

impl TestMedium {
    pub fn from_bytes(bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Self { memory: MemoryMedium::from_bytes(bytes), ..Self::default() })
    }

    /// Lets the call number `position` (from 0) of those that `counts` accepts meet its fate, once.
    pub fn plan(&self, fate: Fate, counts: Counts, position: usize) {
        *self.plan.lock().unwrap() = Some((fate, counts, position));
        self.struck.store(false, Ordering::SeqCst);
    }

    /// Takes back what was planned and has not come.
    pub fn clear_plan(&self) {
        *self.plan.lock().unwrap() = None;
    }

    /// Whether the planned call came.
    pub fn has_struck(&self) -> bool {
        self.struck.load(Ordering::SeqCst)
    }

    pub fn count(&self, counts: Counts) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| counts(call)).count()
    }

    fn note(&self, call: Call) -> io::Result<()> {
        let fate = {
            let mut plan = self.plan.lock().unwrap();
            match &mut *plan {
                Some((fate, counts, position)) if counts(&call) => {
                    let fate = *fate;
                    if *position == 0 {
                        *plan = None;
                        Some(fate)
                    } else {
                        *position -= 1;
                        None
                    }
                }
                _ => None,
            }
        };
        self.calls.lock().unwrap().push(call);
        if fate.is_some() {
            self.struck.store(true, Ordering::SeqCst);
        }
        match fate {
            None => Ok(()),
            Some(Fate::Fails) => Err(io::Error::other("planned failure")),
            Some(Fate::Panics) => panic!("planned panic"),
        }
    }
}

impl Medium for TestMedium {
    fn len(&self) -> io::Result<u64> {
        self.note(Call::Len)?;
        self.memory.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.note(Call::Read)?;
        self.memory.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note(Call::SetLen(len))?;
        self.memory.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.note(Call::Sync)?;
        self.memory.sync_data()
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.note(Call::Write(offset, bytes.to_vec()))?;
        self.memory.write(offset, bytes)
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.memory.try_lock()
    }

    fn unlock(&self) {
        self.memory.unlock();
    }
}
