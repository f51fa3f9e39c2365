use std::{fmt, iter::FusedIterator, vec};

use bytes::Bytes;

use crate::{
    StorageError,
    store::{Chunk, Cursor},
};

/// Records in the order of their keys, as an iterator of key and value.
///
/// It sees what was committed when it was made, and owns all it needs: the storage may go on being written to, or
/// be closed (the next item may then be [`StorageError::Closed`]). Records are read some thousand at a time into one
/// buffer, and the [`Bytes`] handed out share it: to keep a few records for long, copy them.
///
/// The first error ends it: what comes after would be a list with a hole.
#[must_use = "a scan reads nothing until it is iterated"]
pub struct Scan {
    rows: vec::IntoIter<(Bytes, Bytes)>,
    // What comes after `rows`, if that is known: an error, or nothing.
    end: Option<Result<(), StorageError>>,
    // Where the rows after those are read; nothing once the end is reached.
    cursor: Option<Cursor>,
}

impl Scan {
    pub(crate) fn new(cursor: Cursor) -> Self {
        Self { rows: Vec::new().into_iter(), end: None, cursor: Some(cursor) }
    }
}

impl Iterator for Scan {
    type Item = Result<(Bytes, Bytes), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Ok(row));
            }
            if let Some(end) = self.end.take() {
                // The snapshot is given up at once, and nothing follows an error.
                self.cursor = None;
                return end.err().map(Err);
            }
            let Chunk { rows, end } = self.cursor.as_mut()?.next_chunk();
            self.rows = rows.into_iter();
            self.end = end;
        }
    }
}

impl FusedIterator for Scan {}

impl fmt::Debug for Scan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Scan")
            .field("ready_rows", &self.rows.len())
            .field("ended", &self.cursor.is_none())
            .finish_non_exhaustive()
    }
}
