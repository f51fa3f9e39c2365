use std::{
    fmt, io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// A storage medium of the caller's own, in place of a file: for tests that record or fail I/O, or for special
/// files.
///
/// It is a flat run of bytes, as a file is. Methods are called from several threads at once.
#[allow(clippy::len_without_is_empty, reason = "nobody asks a medium whether it is empty")]
pub trait Medium: fmt::Debug + Send + Sync {
    /// How many bytes there are.
    ///
    /// # Errors
    ///
    /// Whatever the medium reports.
    fn len(&self) -> io::Result<u64>;

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] if that reaches past the end; otherwise whatever the medium reports.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Sets how many bytes there are. New ones are zero.
    ///
    /// # Errors
    ///
    /// Whatever the medium reports.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns once everything written and every change of length is safe from a power loss.
    ///
    /// # Errors
    ///
    /// Whatever the medium reports. What was written since the last sync may then be lost in part.
    fn sync_data(&self) -> io::Result<()>;

    /// Writes bytes from `offset` on. They lie within the length.
    ///
    /// # Errors
    ///
    /// Whatever the medium reports.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Takes the medium for one storage alone, without waiting. `false` means that another one has it.
    ///
    /// Without an implementation nothing is locked, and it is up to the caller that only one storage at a time is
    /// open on the medium.
    ///
    /// # Errors
    ///
    /// Whatever the medium reports.
    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// Gives back what [`try_lock`](Self::try_lock) took. It is called once the storage is closed.
    fn unlock(&self) {}
}

/// A medium in memory, whose bytes can be copied out and altered.
///
/// ```
/// use std::sync::Arc;
/// use tidal_storage::{MemoryMedium, StorageOptions, WriteBatch};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let medium = Arc::new(MemoryMedium::default());
/// let storage = StorageOptions::new().create_on(medium.clone(), WriteBatch::new())?;
/// storage.close()?;
///
/// // What a power loss would leave, opened by itself.
/// let copy = Arc::new(MemoryMedium::from_bytes(medium.snapshot()));
/// StorageOptions::new().open_on(copy)?;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct MemoryMedium {
    bytes: Mutex<Vec<u8>>,
    // Swapped with Acquire and cleared with Release, so that the next holder sees all that the last one did.
    locked: AtomicBool,
}

impl MemoryMedium {
    /// A medium that holds these bytes.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes: Mutex::new(bytes), locked: AtomicBool::new(false) }
    }

    /// A copy of all bytes as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        self.bytes().clone()
    }

    // The bytes are whole even if a panic struck while they were held: nothing here panics half way.
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Medium for MemoryMedium {
    fn len(&self) -> io::Result<u64> {
        u64::try_from(self.bytes().len()).map_err(io::Error::other)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes();
        let wanted = span(offset, out.len()).and_then(|span| bytes.get(span));
        out.copy_from_slice(wanted.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        self.bytes().resize(len, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.bytes();
        let target = span(offset, data.len()).and_then(|span| bytes.get_mut(span));
        target.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(data);
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(!self.locked.swap(true, Ordering::Acquire))
    }

    fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }
}

impl fmt::Debug for MemoryMedium {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryMedium").field("len", &self.bytes().len()).finish_non_exhaustive()
    }
}

fn span(offset: u64, len: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    Some(start..start.checked_add(len)?)
}
