use std::collections::BTreeSet;

use redb::{Database, ReadTransaction, ReadableDatabase, TableError, TableHandle, WriteTransaction};
use tidal_keys::Tag;

use super::{Fault, definition};
use crate::{Partition, table::Table};

/// The version of the stored format that this crate writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

const MARKER_TABLE: &str = "tidal";
const MARKER_KEY: &[u8] = b"format";

// Marker value: magic, then the format version.
const MAGIC: [u8; 8] = *b"tidal\0db";
const VERSION_OFFSET: usize = MAGIC.len();
const MARKER_LEN: usize = VERSION_OFFSET + size_of::<u32>();

const _: () = assert!(MARKER_LEN == 12);

// What has a table in version 1, each named here rather than taken from the lists of all there are: files of this
// version stay whole when a later release of the keys knows more tags.
const PARTITIONS: [Partition; 4] =
    [Partition::Items, Partition::Users, Partition::Creators, Partition::System];
const TAGS: [Tag; 9] = [
    Tag::Event,
    Tag::SignalState,
    Tag::Metadata,
    Tag::Relationship,
    Tag::MaterializedView,
    Tag::Index,
    Tag::PurgeManifest,
    Tag::CommunityLeave,
    Tag::CommunityTransition,
];

/// Whether records under this tag can be stored. A table made for another one would be damage to the next open.
pub(crate) fn has_tables_for(tag: Tag) -> bool {
    TAGS.contains(&tag)
}

/// The tables of one partition, in the order of their tags.
pub(crate) fn tables_of(partition: Partition) -> impl Iterator<Item = Table> {
    TAGS.into_iter().map(move |tag| Table { partition, tag })
}

/// Every table but the marker's.
fn all_tables() -> impl Iterator<Item = Table> {
    PARTITIONS.into_iter().flat_map(tables_of)
}

/// Writes the marker and makes every table, empty.
pub(super) fn write(transaction: &WriteTransaction) -> Result<(), Fault> {
    let mut marker = [0; MARKER_LEN];
    let (magic, version) = marker.split_at_mut(VERSION_OFFSET);
    magic.copy_from_slice(&MAGIC);
    version.copy_from_slice(&FORMAT_VERSION.to_le_bytes());

    transaction.open_table(definition(MARKER_TABLE))?.insert(MARKER_KEY, marker.as_slice())?;
    for table in all_tables() {
        transaction.open_table(definition(&table.name()))?;
    }
    Ok(())
}

/// Finds a database of this format version with all of its tables and no other, or says what is there instead.
pub(super) fn verify(database: &Database) -> Result<(), Fault> {
    let transaction = database.begin_read()?;
    match read_version(&transaction)? {
        FORMAT_VERSION => verify_tables(&transaction),
        found if found > FORMAT_VERSION => Err(Fault::NewerFormat(found)),
        found => Err(Fault::Damaged(format!("its marker names format version {found}, which never was"))),
    }
}

fn read_version(transaction: &ReadTransaction) -> Result<u32, Fault> {
    let table = match transaction.open_table(definition(MARKER_TABLE)) {
        Ok(table) => table,
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Err(Fault::NotADatabase("it is a redb file of another program".to_owned())),
    };
    let marker = table.get(MARKER_KEY)?;
    let marker = marker.as_ref().map(redb::AccessGuard::value);
    let version = marker.and_then(|bytes| bytes.strip_prefix(&MAGIC)).and_then(<[u8]>::split_first_chunk);
    match version.map(|(version, rest)| (u32::from_le_bytes(*version), rest)) {
        // A later version may have more to say after its number, this one has not.
        Some((version, rest)) if version > FORMAT_VERSION || rest.is_empty() => Ok(version),
        _ => Err(Fault::Damaged("its format marker is malformed".to_owned())),
    }
}

fn verify_tables(transaction: &ReadTransaction) -> Result<(), Fault> {
    let mut missing: BTreeSet<String> = all_tables().map(Table::name).collect();
    missing.insert(MARKER_TABLE.to_owned());
    for table in transaction.list_tables()? {
        if !missing.remove(table.name()) {
            return Err(Fault::Damaged(format!("it has an unknown table {}", table.name())));
        }
        // A table of other types is found here rather than at its first use.
        transaction.open_table(definition(table.name()))?;
    }
    if let Some(name) = missing.first() {
        return Err(Fault::Damaged(format!("its table {name} is missing")));
    }
    if transaction.list_multimap_tables()?.next().is_some() {
        return Err(Fault::Damaged("it has a multimap table".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fails here was added without a table: it needs a new format version, and a way to read this one.
    #[test]
    fn all_there_is_can_be_stored() {
        assert_eq!(Partition::ALL, PARTITIONS);
        assert_eq!(Tag::ALL, TAGS);
    }
}
