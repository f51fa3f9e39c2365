use std::{path::Path, sync::Arc};

use crate::{
    Medium, Place, Storage, StorageError, WriteBatch, create,
    store::{Source, Store},
};

const DEFAULT_CACHE_SIZE_BYTES: usize = 64 * 1024 * 1024;

/// How a database is created or opened.
///
/// ```
/// use tidal_storage::{StorageOptions, WriteBatch};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let directory = tempfile::tempdir()?;
/// let options = StorageOptions::new().cache_size_bytes(16 * 1024 * 1024);
/// let storage = options.create(directory.path().join("example.tidal"))?;
/// # storage.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct StorageOptions {
    cache_size_bytes: usize,
    check_integrity: bool,
}

impl StorageOptions {
    /// The defaults: 64 MiB of cache, integrity checked at open.
    pub fn new() -> Self {
        Self { cache_size_bytes: DEFAULT_CACHE_SIZE_BYTES, check_integrity: true }
    }

    /// How much memory may hold pages of the file, in bytes. The default is 64 MiB.
    pub fn cache_size_bytes(self, cache_size_bytes: usize) -> Self {
        Self { cache_size_bytes, ..self }
    }

    /// Whether every page of the file is checked when it is opened. The default is `true`.
    ///
    /// The check reads the whole file, so it takes time in proportion to its size. Without it a damaged file may
    /// open, and give wrong values or errors later on; damage is then found only as far as the values carry checks
    /// of their own.
    pub fn check_integrity(self, check_integrity: bool) -> Self {
        Self { check_integrity, ..self }
    }

    /// Creates a database whose first commit is `first`, and opens it.
    ///
    /// The database is built beside its place and moved there when it is complete and on disk: under its name there
    /// is nothing or the whole of it, whenever the process is killed. A kill may leave a file `.tidal-*.new` in the
    /// directory, which can be removed. The file is readable by its owner alone.
    ///
    /// # Errors
    ///
    /// [`StorageError::AlreadyExists`] if anything is there, a broken link included; [`StorageError::Key`] or
    /// [`StorageError::TooLong`] if `first` is not sound; [`StorageError::NoDirectory`] if the directory is missing;
    /// [`StorageError::Io`] if it does not let a file be written. If only the last sync of the directory fails, the
    /// database is there all the same.
    #[allow(clippy::needless_pass_by_value, reason = "a batch is spent by its commit")]
    pub fn create_with(&self, path: impl AsRef<Path>, first: WriteBatch) -> Result<Storage, StorageError> {
        create::create_file(path.as_ref(), self, &first)?;
        self.open(path)
    }

    /// Creates an empty database, and opens it. As [`create_with`](Self::create_with) with an empty batch.
    ///
    /// # Errors
    ///
    /// As [`create_with`](Self::create_with).
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Storage, StorageError> {
        self.create_with(path, WriteBatch::new())
    }

    /// Opens a database that is there. It never makes one, and if it fails, the file is as it was.
    ///
    /// # Errors
    ///
    /// [`StorageError::NotFound`], [`StorageError::Empty`], [`StorageError::NotADatabase`],
    /// [`StorageError::NewerFormat`] and [`StorageError::Damaged`] by what is there; [`StorageError::AlreadyOpen`] if
    /// it is in use; [`StorageError::Io`] if it cannot be read and written.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Storage, StorageError> {
        let place = Place::File(path.as_ref().to_owned());
        let file = create::open_file(&place, path.as_ref())?;
        Ok(Storage::over(Store::open(Source::File(file), place, self)?))
    }

    /// Makes a database that is gone when its last handle is dropped.
    ///
    /// # Errors
    ///
    /// None that can be provoked; the type is the one of all other ways.
    pub fn in_memory(&self) -> Result<Storage, StorageError> {
        let first = WriteBatch::new();
        Ok(Storage::over(Store::create(Source::Memory, Place::Memory, self, &first.checked()?)?))
    }

    /// Creates a database on a medium of the caller's own, whose first commit is `first`, and opens it.
    ///
    /// There is no place beside it, so a failure may leave part of a database on the medium.
    ///
    /// # Errors
    ///
    /// [`StorageError::AlreadyExists`] if the medium holds any bytes; otherwise as
    /// [`create_with`](Self::create_with).
    #[allow(clippy::needless_pass_by_value, reason = "a batch is spent by its commit")]
    pub fn create_on(&self, medium: Arc<dyn Medium>, first: WriteBatch) -> Result<Storage, StorageError> {
        let source = Source::Medium(Arc::clone(&medium));
        Store::create(source, Place::Medium, self, &first.checked()?)?.close()?;
        self.open_on(medium)
    }

    /// Opens the database on a medium of the caller's own.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_on(&self, medium: Arc<dyn Medium>) -> Result<Storage, StorageError> {
        Ok(Storage::over(Store::open(Source::Medium(medium), Place::Medium, self)?))
    }

    pub(crate) fn cache_size(&self) -> usize {
        self.cache_size_bytes
    }

    pub(crate) fn checks_integrity(&self) -> bool {
        self.check_integrity
    }
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self::new()
    }
}
