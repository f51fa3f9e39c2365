//! A disk that gets full.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidal_storage::{Medium, MemoryMedium};

const PAGE_BYTES: u64 = 4096;

/// How a full disk refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuses {
    /// A file does not get longer.
    Length,
    /// It does, and a part of it that was never written cannot be.
    Pages,
}

/// Bytes in memory, of which only so many pages may be used.
#[derive(Debug)]
pub struct SmallDisk {
    bytes: MemoryMedium,
    refuses: Refuses,
    used: Mutex<Used>,
}

#[derive(Debug)]
struct Used {
    pages: HashSet<u64>,
    room_pages: u64,
}

impl SmallDisk {
    pub fn new(refuses: Refuses, room_pages: u64) -> Self {
        let used = Mutex::new(Used { pages: HashSet::new(), room_pages });
        Self { bytes: MemoryMedium::default(), refuses, used }
    }

    /// Somebody makes room, or takes what is left of it.
    pub fn set_room(&self, room_pages: u64) {
        self.used().room_pages = room_pages;
    }

    /// How many pages are in use.
    pub fn used_pages(&self) -> u64 {
        match self.refuses {
            Refuses::Length => self.bytes.snapshot().len() as u64 / PAGE_BYTES,
            Refuses::Pages => self.used().pages.len() as u64,
        }
    }

    pub fn snapshot(&self) -> Vec<u8> {
        self.bytes.snapshot()
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn full<T>() -> io::Result<T> {
    Err(io::ErrorKind::StorageFull.into())
}

impl Medium for SmallDisk {
    fn len(&self) -> io::Result<u64> {
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.bytes.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let grows = len > self.bytes.len()?;
        if self.refuses == Refuses::Length && grows && len > self.used().room_pages * PAGE_BYTES {
            return full();
        }
        self.used().pages.retain(|page| page * PAGE_BYTES < len);
        self.bytes.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.bytes.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.refuses == Refuses::Pages && !data.is_empty() {
            let mut used = self.used();
            for page in offset / PAGE_BYTES..=(offset + data.len() as u64 - 1) / PAGE_BYTES {
                if !used.pages.contains(&page) {
                    if used.pages.len() as u64 >= used.room_pages {
                        return full();
                    }
                    used.pages.insert(page);
                }
            }
        }
        self.bytes.write(offset, data)
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.bytes.try_lock()
    }

    fn unlock(&self) {
        self.bytes.unlock();
    }
}
