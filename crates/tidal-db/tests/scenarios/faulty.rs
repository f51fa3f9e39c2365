//! A medium on which a chosen operation fails.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidal_storage::{Medium, MemoryMedium};

/// How long it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fails {
    Once,
    ForGood,
}

/// Which operations are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Reads,
    All,
}

#[derive(Debug, Default)]
struct Plan {
    /// Operations of the counted kind still to succeed, and what happens then.
    next: Option<(u64, Counted, Fails)>,
    broken: bool,
    /// What failed first.
    struck: Option<&'static str>,
    reads: u64,
    operations: u64,
}

/// Bytes in memory, and a plan of what is to fail. A write that fails does the first half of its work.
#[derive(Debug)]
pub struct FaultyMedium {
    bytes: MemoryMedium,
    plan: Mutex<Plan>,
}

impl FaultyMedium {
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes: MemoryMedium::from_bytes(bytes), plan: Mutex::default() }
    }

    /// Lets operation `nth` (from 0) of those counted from now on fail.
    pub fn fail_at(&self, nth: u64, counted: Counted, fails: Fails) {
        *self.plan() = Plan { next: Some((nth, counted, fails)), ..Plan::default() };
    }

    /// Which kind of operation failed, if the plan came to it.
    pub fn struck(&self) -> Option<&'static str> {
        self.plan().struck
    }

    /// How many reads there were since the last plan.
    pub fn reads(&self) -> u64 {
        self.plan().reads
    }

    /// How many operations there were since the last plan.
    pub fn operations(&self) -> u64 {
        self.plan().operations
    }

    /// The bytes as the next process would find them.
    pub fn snapshot(&self) -> Vec<u8> {
        self.bytes.snapshot()
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, what: &'static str) -> io::Result<()> {
        let mut plan = self.plan();
        let is_read = matches!(what, "read" | "len");
        plan.reads += u64::from(is_read);
        plan.operations += 1;
        if !plan.broken {
            let Some((left, counted, fails)) = &mut plan.next else { return Ok(()) };
            if *counted == Counted::Reads && !is_read {
                return Ok(());
            }
            if *left > 0 {
                *left -= 1;
                return Ok(());
            }
            let stays_broken = *fails == Fails::ForGood;
            plan.next = None;
            plan.broken = stays_broken;
            plan.struck = Some(what);
        }
        Err(io::Error::other("a planned failure"))
    }
}

impl Medium for FaultyMedium {
    fn len(&self) -> io::Result<u64> {
        self.step("len")?;
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.step("read")?;
        self.bytes.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.step("set_len")?;
        self.bytes.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.step("sync")?;
        self.bytes.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if let Err(error) = self.step("write") {
            self.bytes.write(offset, &data[..data.len() / 2])?;
            return Err(error);
        }
        self.bytes.write(offset, data)
    }
}
