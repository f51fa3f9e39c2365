use std::{ops::Bound, sync::Arc};

use bytes::Bytes;
use redb::{AccessGuard, ReadTransaction};
use tidal_keys::parse_key;

use super::{
    Fault, Key, Value,
    health::{Action, Contained, Health},
    open_table,
};
use crate::{StorageError, hex::Hex, table::Table};

// A chunk is big enough to make the cost of a call small beside that of its rows, and small enough that a row which
// the caller keeps does not hold much else in memory.
const CHUNK_ROWS: usize = 4096;
const CHUNK_BYTES: usize = 64 * 1024;

/// A range of keys, as bytes.
pub(crate) struct KeyRange {
    first: Vec<u8>,
    // The first key after the range; nothing if it goes on to the last key there is.
    end: Option<Vec<u8>>,
}

impl KeyRange {
    pub(crate) fn all() -> Self {
        Self::starting_at(&[])
    }

    pub(crate) fn starting_at(first: &[u8]) -> Self {
        Self { first: first.to_vec(), end: None }
    }

    pub(crate) fn with_prefix(prefix: &[u8]) -> Self {
        Self { first: prefix.to_vec(), end: after_prefix(prefix) }
    }

    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let end = self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(self.first.as_slice()), end)
    }
}

/// The first key behind all keys with this prefix. There is none behind a prefix of `0xff` alone, which is what the
/// highest ids begin with.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut end = prefix.get(..=last)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

/// Rows read in one go.
pub(crate) struct Chunk {
    /// The keys and values, one after the other.
    pub(crate) buffer: Bytes,
    /// How long each key and its value are.
    pub(crate) lens: Vec<(usize, usize)>,
    /// Set if these are the last rows: there are no more, or an error came after them.
    pub(crate) end: Option<Result<(), StorageError>>,
}

/// A place in the merged rows of some tables, within one snapshot.
///
/// It keeps the snapshot alive, not the database: it holds no handle that would keep the file open.
pub(crate) struct Cursor {
    streams: Contained<Vec<Stream>>,
    // How much the chunk before held: as much is set aside for the next, so that it need not be moved as it grows.
    rows_before: usize,
    bytes_before: usize,
}

/// The rows of one table, the first of which is at hand.
struct Stream {
    table: Table,
    head: Row,
    rest: redb::Range<'static, Key, Value>,
}

type Row = (AccessGuard<'static, Key>, AccessGuard<'static, Value>);

impl Cursor {
    pub(super) fn over(
        transaction: &ReadTransaction,
        tables: &[Table],
        range: &KeyRange,
        health: Arc<Health>,
    ) -> Result<Self, Fault> {
        let mut streams = Vec::with_capacity(tables.len());
        for &table in tables {
            let mut rest = open_table(transaction, table)?.range::<&[u8]>(range.bounds())?;
            if let Some(head) = rest.next().transpose()? {
                check_key(table, head.0.value())?;
                streams.push(Stream { table, head, rest });
            }
        }
        Ok(Self { streams: Contained::new(streams, health), rows_before: 0, bytes_before: 0 })
    }

    /// The next rows.
    pub(crate) fn next_chunk(&mut self) -> Chunk {
        let mut buffer = Vec::with_capacity(self.bytes_before);
        let mut lens = Vec::with_capacity(self.rows_before);
        let end = match self.fill(&mut buffer, &mut lens) {
            Ok(true) => None,
            Ok(false) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        (self.rows_before, self.bytes_before) = (lens.len(), buffer.len());
        Chunk { buffer: Bytes::from(buffer), lens, end }
    }

    /// Appends rows, and the lengths of their keys and values. `false` if there are no more.
    fn fill(&mut self, buffer: &mut Vec<u8>, lens: &mut Vec<(usize, usize)>) -> Result<bool, StorageError> {
        self.streams.health().check_readable()?;
        self.streams.contain(Action::Read, |streams| {
            while lens.len() < CHUNK_ROWS && buffer.len() < CHUNK_BYTES {
                // At most one stream a tag, so looking at each beats any cleverer order.
                let lowest = streams.iter_mut().enumerate().min_by(|(_, a), (_, b)| a.key().cmp(b.key()));
                let Some((position, stream)) = lowest else { return Ok(false) };
                let (key, value) = (stream.head.0.value(), stream.head.1.value());
                buffer.extend_from_slice(key);
                buffer.extend_from_slice(value);
                lens.push((key.len(), value.len()));
                if !stream.advance()? {
                    streams.swap_remove(position);
                }
            }
            Ok(true)
        })
    }
}

impl Stream {
    fn key(&self) -> &[u8] {
        self.head.0.value()
    }

    /// Goes on to the next row. `false` if there is none.
    fn advance(&mut self) -> Result<bool, Fault> {
        let Some(head) = self.rest.next().transpose()? else { return Ok(false) };
        check_key(self.table, head.0.value())?;
        self.head = head;
        Ok(true)
    }
}

/// Finds a key that could not have been stored in this table.
pub(super) fn check_key(table: Table, key: &[u8]) -> Result<(), Fault> {
    match parse_key(key) {
        Ok((_, tag, _)) if tag == table.tag => Ok(()),
        Ok((_, tag, _)) => Err(Fault::Damaged(format!(
            "table {} holds the key {} of tag {:#04x}",
            table.name(),
            Hex(key),
            tag.as_u8()
        ))),
        Err(error) => Err(Fault::Damaged(format!(
            "table {} holds the malformed key {}: {error}",
            table.name(),
            Hex(key)
        ))),
    }
}
