use std::{fs::File, ops::Bound, sync::Arc};

use redb::{
    BackendError, StorageBackend,
    backends::{FileBackend, InMemoryBackend},
};

use super::{Fault, medium_backend::MediumBackend};
use crate::Medium;

/// What a database lies on.
pub(crate) enum Source {
    /// A file, opened to read and write.
    File(File),
    /// A medium of the caller's own.
    Medium(Arc<dyn Medium>),
    /// Memory.
    Memory,
}

impl Source {
    pub(super) fn into_backend(self) -> Result<AnyBackend, Fault> {
        Ok(AnyBackend(match self {
            Self::File(file) => Box::new(FileBackend::new(file)?),
            Self::Medium(medium) => Box::new(MediumBackend::new(medium)),
            Self::Memory => Box::new(InMemoryBackend::new()),
        }))
    }
}

/// One type for all backends, since the engine wants to know the type.
#[derive(Debug)]
pub(super) struct AnyBackend(Box<dyn StorageBackend>);

/// Forwards everything. The lock methods have defaults that lock nothing, so each must be forwarded by name.
impl StorageBackend for AnyBackend {
    fn len(&self) -> std::io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> std::io::Result<()> {
        self.0.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.query_lock_range(start, end)
    }
}
