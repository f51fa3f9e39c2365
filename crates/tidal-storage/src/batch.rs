use std::collections::BTreeMap;

use tidal_keys::{KeyError, Tag, parse_key};

use crate::{Partition, StorageError, store::has_tables_for, table::Table};

/// The longest key that is stored, in bytes.
pub const MAX_KEY_BYTES: usize = 4 * 1024;

/// The longest value that is stored, in bytes.
pub const MAX_VALUE_BYTES: usize = 64 * 1024 * 1024;

/// Changes that are stored together or not at all, in any number of partitions.
///
/// Of several changes to one key the last one counts. Keys and lengths are checked when the batch is committed.
///
/// ```
/// use tidal_keys::{EntityId, Tag, encode_key};
/// use tidal_storage::{Partition, Storage, WriteBatch};
///
/// # fn main() -> Result<(), tidal_storage::StorageError> {
/// let key = encode_key(EntityId::new(7), Tag::Metadata, b"region");
/// let mut batch = WriteBatch::new();
/// batch.put(Partition::Users, &key, b"Scotland");
/// batch.delete(Partition::Users, &key);
/// batch.put(Partition::Users, &key, b"Wales");
/// assert_eq!(batch.len(), 1);
///
/// let storage = Storage::in_memory()?;
/// storage.commit(batch)?;
/// assert_eq!(storage.users_engine().get(&key)?.as_deref(), Some(&b"Wales"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    // No value means that the key is deleted.
    changes: BTreeMap<(Partition, Vec<u8>), Option<Vec<u8>>>,
}

impl WriteBatch {
    /// A batch without changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores `value` under `key`, in place of what was there.
    pub fn put(&mut self, partition: Partition, key: &[u8], value: &[u8]) {
        self.changes.insert((partition, key.to_vec()), Some(value.to_vec()));
    }

    /// Removes `key` and its value. It need not be there.
    pub fn delete(&mut self, partition: Partition, key: &[u8]) {
        self.changes.insert((partition, key.to_vec()), None);
    }

    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// How many keys are changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// The changes by table, each table's in the order of keys, once all of them are found sound.
    pub(crate) fn checked(&self) -> Result<Changes<'_>, StorageError> {
        let mut changes = Changes::default();
        for ((partition, key), value) in &self.changes {
            changes.add(*partition, key, value.as_deref())?;
        }
        Ok(changes)
    }
}

/// What one commit writes: sound keys, sorted by table, so that each table is opened once.
#[derive(Default)]
pub(crate) struct Changes<'a> {
    by_table: BTreeMap<Table, Vec<Change<'a>>>,
}

/// A key and its new value; no value means that the key is deleted.
pub(crate) type Change<'a> = (&'a [u8], Option<&'a [u8]>);

impl<'a> Changes<'a> {
    pub(crate) fn single(
        partition: Partition,
        key: &'a [u8],
        value: Option<&'a [u8]>,
    ) -> Result<Self, StorageError> {
        let mut changes = Self::default();
        changes.add(partition, key, value)?;
        Ok(changes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_table.is_empty()
    }

    pub(crate) fn by_table(&self) -> impl Iterator<Item = (Table, &[Change<'a>])> {
        self.by_table.iter().map(|(table, changes)| (*table, changes.as_slice()))
    }

    /// Whether the commit must stay visible even if the file is damaged after the process was killed.
    ///
    /// A plain commit is found after a kill by its checksums: if one of its pages is damaged, the engine silently
    /// falls back to the commit before. For most records that is a crash like any other. For a leave it would undo
    /// a promise that was acknowledged. A two-phase commit is never fallen back from: damage to it is an error. It
    /// costs a second fsync, which is why only those commits pay it.
    pub(crate) fn need_two_phase_commit(&self) -> bool {
        self.by_table.keys().any(|table| table.tag == Tag::CommunityLeave)
    }

    fn add(
        &mut self,
        partition: Partition,
        key: &'a [u8],
        value: Option<&'a [u8]>,
    ) -> Result<(), StorageError> {
        let table = table_of(partition, key)?;
        check_len(partition, "key", key.len(), MAX_KEY_BYTES)?;
        check_len(partition, "value", value.map_or(0, <[u8]>::len), MAX_VALUE_BYTES)?;
        self.by_table.entry(table).or_default().push((key, value));
        Ok(())
    }
}

/// The table that a key belongs to.
pub(crate) fn table_of(partition: Partition, key: &[u8]) -> Result<Table, StorageError> {
    let refused = |source| StorageError::Key { partition, key: key.into(), source };
    match parse_key(key) {
        Ok((_, tag, _)) if has_tables_for(tag) => Ok(Table { partition, tag }),
        // The keys know it, this format does not.
        Ok((_, tag, _)) => Err(refused(KeyError::UnknownTag { tag: tag.as_u8() })),
        Err(source) => Err(refused(source)),
    }
}

fn check_len(
    partition: Partition,
    what: &'static str,
    len_bytes: usize,
    max_bytes: usize,
) -> Result<(), StorageError> {
    if len_bytes > max_bytes {
        return Err(StorageError::TooLong { partition, what, len_bytes, max_bytes });
    }
    Ok(())
}
