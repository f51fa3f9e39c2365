//! What a closed file of tidal holds, table by table, as the engine below counts it.

use std::collections::BTreeMap;
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableHandle};

/// One table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableBytes {
    /// Of keys and values.
    pub(crate) stored: u64,
    /// With inner pages, and what is free in pages in use.
    pub(crate) pages: u64,
}

/// Tables by name: partition and tag, as `docs/format.md` has them.
pub(crate) fn tables(path: &Path) -> BTreeMap<String, TableBytes> {
    let database = Database::open(path).unwrap();
    let transaction = database.begin_read().unwrap();
    let handles: Vec<_> = transaction.list_tables().unwrap().collect();
    handles
        .into_iter()
        .map(|handle| {
            let name = handle.name().to_owned();
            let stats = transaction.open_untyped_table(handle).unwrap().stats().unwrap();
            let stored = stats.stored_bytes();
            let pages = stored + stats.metadata_bytes() + stats.fragmented_bytes();
            (name, TableBytes { stored, pages })
        })
        .collect()
}

/// Keys and values of all tables.
pub(crate) fn stored_bytes(path: &Path) -> u64 {
    tables(path).values().map(|table| table.stored).sum()
}
