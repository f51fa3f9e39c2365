use std::{fmt, sync::Arc};

use bytes::Bytes;
use tidal_keys::{EntityId, KeyError, Tag, encode_key};

use crate::{
    Partition, Scan, StorageError,
    batch::{Changes, table_of},
    store::{KeyRange, Store, tables_of},
    table::Table,
};

/// One partition of a [`Storage`](crate::Storage).
///
/// A clone is another handle to the same partition, and keeps the database open as a handle of the storage does.
#[derive(Clone)]
pub struct Engine {
    store: Arc<Store>,
    partition: Partition,
}

impl Engine {
    /// Which partition this is.
    #[must_use]
    pub fn partition(&self) -> Partition {
        self.partition
    }

    /// The value under `key`, if there is one.
    ///
    /// # Errors
    ///
    /// [`StorageError::Key`] if `key` is malformed; [`StorageError::Io`], [`StorageError::Damaged`] and the like if
    /// it cannot be read. An error never means that there is no value.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        self.store.get(table_of(self.partition, key)?, key)
    }

    /// Stores `value` under `key` in a durable commit of its own.
    ///
    /// # Errors
    ///
    /// As [`Storage::commit`](crate::Storage::commit).
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.store.commit(&Changes::single(self.partition, key, Some(value))?)
    }

    /// Removes `key` and its value in a durable commit of its own. It need not be there.
    ///
    /// # Errors
    ///
    /// As [`Storage::commit`](crate::Storage::commit).
    pub fn delete(&self, key: &[u8]) -> Result<(), StorageError> {
        self.store.commit(&Changes::single(self.partition, key, None)?)
    }

    /// Every record whose key begins with `prefix`, in the order of keys.
    ///
    /// Any prefix will do, also a part of an id or none at all; it then merges the tables of all tags. A prefix of 10
    /// bytes or more names the tag, and only that tag's table is read.
    ///
    /// # Errors
    ///
    /// [`StorageError::Key`] if no sound key begins with `prefix`, and as [`get`](Self::get).
    ///
    /// ```
    /// use tidal_keys::{EntityId, Tag, encode_key, entity_prefix};
    /// use tidal_storage::Storage;
    ///
    /// # fn main() -> Result<(), tidal_storage::StorageError> {
    /// let storage = Storage::in_memory()?;
    /// let users = storage.users_engine();
    /// users.put(&encode_key(EntityId::new(7), Tag::Relationship, &4u64.to_be_bytes()), b"joined")?;
    /// users.put(&encode_key(EntityId::new(7), Tag::Metadata, b"region"), b"Scotland")?;
    /// users.put(&encode_key(EntityId::new(8), Tag::Metadata, b"region"), b"Wales")?;
    ///
    /// let values: Result<Vec<_>, _> =
    ///     users.scan_prefix(&entity_prefix(EntityId::new(7)))?.map(|row| row.map(|(_, value)| value)).collect();
    /// assert_eq!(values?, ["Scotland", "joined"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan_prefix(&self, prefix: &[u8]) -> Result<Scan, StorageError> {
        const SEPARATOR_OFFSET: usize = 8;
        const TAG_OFFSET: usize = 9;

        let range = KeyRange::with_prefix(prefix);
        if prefix.len() > TAG_OFFSET {
            return self.scan(&[table_of(self.partition, prefix)?], &range);
        }
        if let Some(&found) = prefix.get(SEPARATOR_OFFSET)
            && found != 0
        {
            let source = KeyError::Separator { found };
            return Err(StorageError::Key { partition: self.partition, key: prefix.into(), source });
        }
        let tables: Vec<_> = tables_of(self.partition).collect();
        self.scan(&tables, &range)
    }

    /// Every record under `tag`, in the order of keys. It costs what those records cost, however many others there
    /// are.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn scan_tag(&self, tag: Tag) -> Result<Scan, StorageError> {
        self.scan(&[self.table(tag)?], &KeyRange::all())
    }

    /// Every record under `tag` from `start_key` on, that one included, in the order of keys.
    ///
    /// # Errors
    ///
    /// [`StorageError::Key`] if `start_key` is malformed, and as [`get`](Self::get).
    pub fn scan_tag_from(&self, tag: Tag, start_key: &[u8]) -> Result<Scan, StorageError> {
        table_of(self.partition, start_key)?;
        self.scan(&[self.table(tag)?], &KeyRange::starting_at(start_key))
    }

    /// The record with the highest key under `tag`, if there is any.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn last(&self, tag: Tag) -> Result<Option<(Bytes, Bytes)>, StorageError> {
        self.store.last(self.table(tag)?)
    }

    pub(crate) fn new(store: Arc<Store>, partition: Partition) -> Self {
        Self { store, partition }
    }

    /// The table of a tag, found as that of a key is, so that both refuse the same tags.
    fn table(&self, tag: Tag) -> Result<Table, StorageError> {
        table_of(self.partition, &encode_key(EntityId::new(0), tag, b""))
    }

    fn scan(&self, tables: &[Table], range: &KeyRange) -> Result<Scan, StorageError> {
        Ok(Scan::new(self.store.cursor(tables, range)?))
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Engine")
            .field("partition", &self.partition)
            .field("place", self.store.place())
            .finish_non_exhaustive()
    }
}
