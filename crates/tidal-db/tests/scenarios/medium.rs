//! A medium that remembers what was written between two syncs, so that every state in which a
//! crash can leave the file is known.

use std::io;
use std::sync::{Mutex, PoisonError};

use tidal_storage::Medium;

/// One thing done to the file.
#[derive(Clone, Debug)]
pub enum Step {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
    Sync,
}

/// The bytes, and how they came to be.
#[derive(Debug, Default)]
pub struct RecordingMedium {
    inner: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    live: Vec<u8>,
    steps: Vec<Step>,
}

impl RecordingMedium {
    /// A medium that holds these bytes, all of them synced.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { inner: Mutex::new(Recorded { live: bytes, steps: Vec::new() }) }
    }

    /// How many steps were taken so far.
    pub fn steps_len(&self) -> usize {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).steps.len()
    }

    /// All steps so far.
    pub fn steps(&self) -> Vec<Step> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).steps.clone()
    }
}

/// Does one step to a file of bytes.
pub fn take_step(bytes: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Write { offset, bytes: written } => {
            let start = usize::try_from(*offset).expect("a small file");
            let end = start + written.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[start..end].copy_from_slice(written);
        }
        Step::SetLen(len) => bytes.resize(usize::try_from(*len).expect("a small file"), 0),
        Step::Sync => {}
    }
}

impl Medium for RecordingMedium {
    fn len(&self) -> io::Result<u64> {
        Ok(self.inner.lock().unwrap_or_else(PoisonError::into_inner).live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = inner.live.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.record(Step::SetLen(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.record(Step::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.record(Step::Write { offset, bytes: data.to_vec() });
        Ok(())
    }
}

impl RecordingMedium {
    fn record(&self, step: Step) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        take_step(&mut inner.live, &step);
        inner.steps.push(step);
    }
}
