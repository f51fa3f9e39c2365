use std::{
    io,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::{BackendError, StorageBackend};

use crate::Medium;

/// A medium of the caller's own as the engine wants it.
#[derive(Debug)]
pub(super) struct MediumBackend {
    medium: Arc<dyn Medium>,
    // Whether the lock is ours to give back. Swapped, so that it is given back once; the medium's own lock does the
    // ordering, so Relaxed is enough here.
    locked: AtomicBool,
}

impl MediumBackend {
    pub(super) fn new(medium: Arc<dyn Medium>) -> Self {
        Self { medium, locked: AtomicBool::new(false) }
    }

    fn unlock(&self) {
        if self.locked.swap(false, Ordering::Relaxed) {
            self.medium.unlock();
        }
    }
}

impl StorageBackend for MediumBackend {
    fn len(&self) -> io::Result<u64> {
        self.medium.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.medium.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.medium.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.medium.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.medium.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.unlock();
        Ok(())
    }

    // A medium is locked whole or not at all. The engine asks for ranges first and falls back to the whole when they
    // are not supported.
    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        match (start, end) {
            (Bound::Unbounded | Bound::Included(0), Bound::Unbounded) => {
                let taken = self.medium.try_lock()?;
                if taken {
                    self.locked.store(true, Ordering::Relaxed);
                }
                Ok(taken)
            }
            _ => Err(BackendError::Unsupported),
        }
    }

    fn unlock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<(), BackendError> {
        self.unlock();
        Ok(())
    }
}

impl Drop for MediumBackend {
    // The engine may never come to its close, if it panics.
    fn drop(&mut self) {
        self.unlock();
    }
}
