//! A disk that knows what was synced, and on which a chosen operation fails.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidal_storage::Medium;

/// Keeps every unsynced write, as a killed process does.
pub const ALL: u64 = u64::MAX;

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl Change {
    fn make(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes: written } => {
                let end = offset + written.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*offset..end].copy_from_slice(written);
            }
            Self::SetLen(len) => bytes.resize(*len, 0),
        }
    }
}

#[derive(Debug, Default)]
struct Contents {
    live: Vec<u8>,
    synced: Vec<u8>,
    unsynced: Vec<Change>,
    /// Operations still to succeed before one fails, and whether all fail from then on.
    plan: Option<(u64, bool)>,
    broken: bool,
    struck: bool,
    locked: bool,
}

impl Contents {
    fn change(&mut self, change: Change) {
        change.make(&mut self.live);
        self.unsynced.push(change);
    }

    /// Whether the operation fails.
    fn count(&mut self) -> io::Result<()> {
        if !self.broken {
            match &mut self.plan {
                None => return Ok(()),
                Some((left, _)) if *left > 0 => {
                    *left -= 1;
                    return Ok(());
                }
                Some((_, for_good)) => self.broken = *for_good,
            }
            self.plan = None;
            self.struck = true;
        }
        Err(io::Error::other("a planned failure"))
    }
}

#[derive(Debug, Default)]
pub struct Disk {
    contents: Mutex<Contents>,
}

impl Disk {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets operation `nth` from now on fail, and all after it if `for_good`. What fails in writing does half.
    pub fn fail_at(&self, nth: u64, for_good: bool) {
        self.contents().plan = Some((nth, for_good));
    }

    /// Whether the plan came to its failure.
    pub fn struck(&self) -> bool {
        self.contents().struck
    }

    /// The disk as the next process finds it: all that was synced, and of the rest what the bits of `kept` say.
    pub fn after_crash(&self, kept: u64) -> Self {
        let contents = self.contents();
        let mut image = contents.synced.clone();
        for (place, change) in contents.unsynced.iter().enumerate() {
            if kept >> (place % 64) & 1 == 1 {
                change.make(&mut image);
            }
        }
        Self { contents: Mutex::new(Contents { live: image.clone(), synced: image, ..Contents::default() }) }
    }
}

impl Medium for Disk {
    fn len(&self) -> io::Result<u64> {
        let mut contents = self.contents();
        contents.count()?;
        Ok(contents.live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut contents = self.contents();
        contents.count()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = contents.live.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut contents = self.contents();
        contents.count()?;
        contents.change(Change::SetLen(usize::try_from(len).map_err(io::Error::other)?));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut contents = self.contents();
        contents.count()?;
        let Contents { synced, unsynced, .. } = &mut *contents;
        for change in unsynced.drain(..) {
            change.make(synced);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut contents = self.contents();
        let counted = contents.count();
        let done = if counted.is_ok() { data } else { &data[..data.len() / 2] };
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        contents.change(Change::Write { offset, bytes: done.to_vec() });
        counted
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(!std::mem::replace(&mut self.contents().locked, true))
    }

    fn unlock(&self) {
        self.contents().locked = false;
    }
}
