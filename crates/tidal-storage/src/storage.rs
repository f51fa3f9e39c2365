use std::{
    fmt,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use crate::{Claim, Engine, Partition, StorageError, StorageOptions, WriteBatch, store::Store};

/// A database: four partitions over one file.
///
/// A clone is another handle to the same database. It is closed by [`close`](Self::close), or when the last handle
/// is dropped; an error at that drop has nobody to go to, so call `close` where it matters. Handles may be used from
/// any number of threads: readers do not wait for writers, writers take turns.
///
/// ```
/// use tidal_keys::{EntityId, Tag, encode_key};
/// use tidal_storage::Storage;
///
/// # fn main() -> Result<(), tidal_storage::StorageError> {
/// let storage = Storage::in_memory()?;
/// let key = encode_key(EntityId::new(7), Tag::CommunityLeave, b"");
/// storage.users_engine().put(&key, &[1, 100, 0, 0, 0, 0, 0, 0, 0])?;
/// assert!(storage.users_engine().get(&key)?.is_some());
/// assert!(storage.items_engine().get(&key)?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Storage {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<Store>,
    items: Engine,
    users: Engine,
    creators: Engine,
    system: Engine,
    is_claimed: Arc<AtomicBool>,
}

impl Storage {
    /// Creates an empty database under `path` with the default options, and opens it.
    ///
    /// # Errors
    ///
    /// As [`StorageOptions::create_with`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, StorageError> {
        StorageOptions::new().create(path)
    }

    /// Opens the database under `path` with the default options. It never makes one.
    ///
    /// # Errors
    ///
    /// As [`StorageOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StorageError> {
        StorageOptions::new().open(path)
    }

    /// Makes a database that is gone when its last handle is dropped.
    ///
    /// # Errors
    ///
    /// As [`StorageOptions::in_memory`].
    pub fn in_memory() -> Result<Self, StorageError> {
        StorageOptions::new().in_memory()
    }

    /// The default options, to be changed and then used to create or open.
    pub fn options() -> StorageOptions {
        StorageOptions::new()
    }

    /// The partition of items.
    #[must_use]
    pub fn items_engine(&self) -> &Engine {
        &self.shared.items
    }

    /// The partition of users.
    #[must_use]
    pub fn users_engine(&self) -> &Engine {
        &self.shared.users
    }

    /// The partition of creators.
    #[must_use]
    pub fn creators_engine(&self) -> &Engine {
        &self.shared.creators
    }

    /// The partition of what belongs to no entity.
    #[must_use]
    pub fn system_engine(&self) -> &Engine {
        &self.shared.system
    }

    /// Stores a batch in one durable commit: when this returns `Ok`, all of it is on disk.
    ///
    /// A batch that touches [`Tag::CommunityLeave`](tidal_keys::Tag::CommunityLeave) is committed in two phases, so
    /// that later damage to the file is an error and never a silent return to the commit before. An empty batch
    /// costs nothing.
    ///
    /// # Errors
    ///
    /// [`StorageError::Key`] and [`StorageError::TooLong`] if any change is not sound: nothing is written then.
    /// [`StorageError::Latched`] after an earlier failure and [`StorageError::Closed`] after a close: nothing is
    /// written either. After [`StorageError::Io`] and [`StorageError::EnginePanicked`] the batch is on disk whole or
    /// not at all, and only opening again tells which.
    #[allow(clippy::needless_pass_by_value, reason = "a batch is spent by its commit")]
    pub fn commit(&self, batch: WriteBatch) -> Result<(), StorageError> {
        self.shared.store.commit(&batch.checked()?)
    }

    /// Takes the sole right to mirror the contents in memory, for a layer above that does so.
    ///
    /// ```
    /// use tidal_storage::Storage;
    ///
    /// # fn main() -> Result<(), tidal_storage::StorageError> {
    /// let storage = Storage::in_memory()?;
    /// let claim = storage.claim()?;
    /// assert!(storage.clone().claim().is_err());
    /// drop(claim);
    /// assert!(storage.claim().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StorageError::AlreadyOpen`] if it is taken, through this handle or a clone.
    pub fn claim(&self) -> Result<Claim, StorageError> {
        Claim::take(&self.shared.is_claimed)
            .ok_or_else(|| StorageError::AlreadyOpen { place: self.shared.store.place().clone() })
    }

    /// Closes the database, for all clones of this handle, once a commit under way is done.
    ///
    /// Later calls, on any clone, give [`StorageError::Closed`], also another `close`. The file can then be opened
    /// again, even while a [`Scan`](crate::Scan) is still around.
    ///
    /// # Errors
    ///
    /// [`StorageError::Io`] if the last write fails and [`StorageError::Latched`] after an earlier failure. The
    /// database is closed then too, and every commit that returned `Ok` is still on disk; the next open repairs what
    /// is left to repair.
    pub fn close(&self) -> Result<(), StorageError> {
        self.shared.store.close()
    }

    /// The path of the file, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.shared.store.place().path()
    }

    pub(crate) fn over(store: Store) -> Self {
        let store = Arc::new(store);
        let engine = |partition| Engine::new(Arc::clone(&store), partition);
        let [items, users, creators, system] =
            [Partition::Items, Partition::Users, Partition::Creators, Partition::System].map(engine);
        Self {
            shared: Arc::new(Shared { store, items, users, creators, system, is_claimed: Arc::default() }),
        }
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Storage").field("place", self.shared.store.place()).finish_non_exhaustive()
    }
}
