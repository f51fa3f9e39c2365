//! The stored format: its tables and its marker, read with the engine alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod common;

use std::fmt::Write as _;

use common::{key, leave_key};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use tidal_keys::Tag;
use tidal_storage::{FORMAT_VERSION, Partition, StorageOptions, WriteBatch};

type Bytes = &'static [u8];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn stored_tables(first: WriteBatch) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.tidal");
    StorageOptions::new().create_with(&path, first).unwrap().close().unwrap();

    let database = Database::open(&path).unwrap();
    let transaction = database.begin_read().unwrap();
    assert_eq!(transaction.list_multimap_tables().unwrap().count(), 0);
    let mut text = String::new();
    for handle in transaction.list_tables().unwrap() {
        writeln!(text, "{}", handle.name()).unwrap();
        let table = transaction.open_table(TableDefinition::<Bytes, Bytes>::new(handle.name())).unwrap();
        for row in table.iter().unwrap() {
            let (key, value) = row.unwrap();
            writeln!(text, "  key    {}\n  value  {}", hex(key.value()), hex(value.value())).unwrap();
        }
    }
    text
}

#[test]
fn tables_of_an_empty_database_are_pinned() {
    insta::assert_snapshot!("v1_tables", stored_tables(WriteBatch::new()));
}

#[test]
fn records_lie_in_the_table_of_their_partition_and_tag() {
    let mut first = WriteBatch::new();
    first.put(Partition::Users, &leave_key(7), &common::LEFT_AT_100);
    first.put(Partition::Users, &key(7, Tag::Metadata, b"region"), b"Scotland");
    first.put(Partition::Items, &key(7, Tag::Metadata, b"title"), b"Loch");
    first.put(Partition::Creators, &key(u64::MAX, Tag::PurgeManifest, b""), b"\0");
    first.put(Partition::System, &key(1, Tag::Event, b""), b"events");
    let text = stored_tables(first);
    let used: Vec<_> = text.lines().collect();
    // Empty tables are in the other snapshot already.
    let used: Vec<_> = used
        .iter()
        .enumerate()
        .filter(|(at, line)| {
            line.starts_with(' ') || used.get(at + 1).is_some_and(|next| next.starts_with(' '))
        })
        .map(|(_, line)| *line)
        .collect();
    insta::assert_snapshot!("v1_records", used.join("\n"));
}

#[test]
fn format_version_is_one() {
    assert_eq!(FORMAT_VERSION, 1);
}
