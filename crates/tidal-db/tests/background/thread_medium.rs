//! A medium that fails, or stops, for one thread and not for the others.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tidal_storage::{Medium, MemoryMedium};

#[derive(Debug, Default)]
struct Plan {
    /// The thread whose next sync waits.
    blocked_thread: Option<&'static str>,
    is_blocked: bool,
    /// The thread whose writes fail, after so many.
    full_for: Option<(&'static str, u64)>,
    all_fail: bool,
    has_failed: bool,
}

/// Bytes in memory.
#[derive(Debug, Default)]
pub struct ThreadMedium {
    bytes: MemoryMedium,
    plan: Mutex<Plan>,
    changed: Condvar,
}

fn is_current(name: &str) -> bool {
    thread::current().name() == Some(name)
}

impl ThreadMedium {
    pub fn snapshot(&self) -> Vec<u8> {
        self.bytes.snapshot()
    }

    /// Lets the next sync of this thread wait until it is released.
    pub fn block_sync(&self, thread: &'static str) {
        self.plan().blocked_thread = Some(thread);
    }

    pub fn wait_until_blocked(&self) {
        let mut plan = self.plan();
        while !plan.is_blocked {
            plan = self.changed.wait(plan).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn release(&self) {
        *self.plan() = Plan::default();
        self.changed.notify_all();
    }

    /// Lets writes of this thread fail for good, the one after `nth` others first.
    pub fn fail_writes(&self, thread: &'static str, nth: u64) {
        *self.plan() = Plan { full_for: Some((thread, nth)), ..Plan::default() };
    }

    /// Lets every write fail.
    pub fn fail_all(&self) {
        self.plan().all_fail = true;
    }

    pub fn has_failed(&self) -> bool {
        self.plan().has_failed
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_room(&self) -> io::Result<()> {
        let mut plan = self.plan();
        if plan.all_fail {
            return Err(io::Error::other("the disk is full"));
        }
        let Some((thread, left)) = plan.full_for else { return Ok(()) };
        if !is_current(thread) {
            return Ok(());
        }
        if left > 0 {
            plan.full_for = Some((thread, left - 1));
            return Ok(());
        }
        plan.has_failed = true;
        Err(io::Error::other("the disk is full"))
    }
}

impl Medium for ThreadMedium {
    fn len(&self) -> io::Result<u64> {
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.bytes.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_room()?;
        self.bytes.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut plan = self.plan();
        if plan.blocked_thread.is_some_and(is_current) {
            plan.is_blocked = true;
            self.changed.notify_all();
            while plan.is_blocked {
                plan = self.changed.wait(plan).unwrap_or_else(PoisonError::into_inner);
            }
        }
        drop(plan);
        self.bytes.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check_room()?;
        self.bytes.write(offset, data)
    }
}
