use std::collections::BTreeSet;

use redb::{Database, ReadTransaction, ReadableDatabase, TableError, TableHandle, WriteTransaction};

use super::{Fault, definition};
use crate::table::Table;

/// The version of the stored format that this crate writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

const MARKER_TABLE: &str = "tidal";
const MARKER_KEY: &[u8] = b"format";

// Marker value: magic, then the format version.
const MAGIC: [u8; 8] = *b"tidal\0db";
const VERSION_OFFSET: usize = MAGIC.len();
const MARKER_LEN: usize = VERSION_OFFSET + size_of::<u32>();

const _: () = assert!(MARKER_LEN == 12);

/// Writes the marker and makes every table, empty.
pub(super) fn write(transaction: &WriteTransaction) -> Result<(), Fault> {
    let mut marker = [0; MARKER_LEN];
    let (magic, version) = marker.split_at_mut(VERSION_OFFSET);
    magic.copy_from_slice(&MAGIC);
    version.copy_from_slice(&FORMAT_VERSION.to_le_bytes());

    transaction.open_table(definition(MARKER_TABLE))?.insert(MARKER_KEY, marker.as_slice())?;
    for table in Table::all() {
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
    let mut missing: BTreeSet<String> = Table::all().map(Table::name).collect();
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
