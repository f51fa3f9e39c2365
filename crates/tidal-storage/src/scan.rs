use std::{fmt, iter::FusedIterator, ops::Range, vec};

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
    // The rows at hand, of which those before `start` were given out.
    buffer: Bytes,
    start: usize,
    lens: vec::IntoIter<(usize, usize)>,
    // What comes after the rows at hand, if that is known: an error, or nothing.
    end: Option<Result<(), StorageError>>,
    // Where the rows after those are read; nothing once the end is reached.
    cursor: Option<Cursor>,
}

/// Where a row lies in the buffer.
struct RowRange {
    key: Range<usize>,
    value: Range<usize>,
}

impl Scan {
    pub(crate) fn new(cursor: Cursor) -> Self {
        Self { buffer: Bytes::new(), start: 0, lens: Vec::new().into_iter(), end: None, cursor: Some(cursor) }
    }

    /// The next row, lent: for who only looks at each, without the cost of sharing the buffer. It may take turns with
    /// [`next`](Iterator::next).
    ///
    /// # Errors
    ///
    /// Those of [`next`](Iterator::next), after which there is nothing more.
    #[expect(clippy::type_complexity, reason = "a pair of slices, or none, or an error")]
    pub fn next_row(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        let Some(RowRange { key, value }) = self.advance().transpose()? else { return Ok(None) };
        Ok(self.buffer.get(key).zip(self.buffer.get(value)))
    }

    fn advance(&mut self) -> Option<Result<RowRange, StorageError>> {
        loop {
            if let Some((key_len, value_len)) = self.lens.next() {
                let key = self.start..self.start + key_len;
                let value = key.end..key.end + value_len;
                self.start = value.end;
                return Some(Ok(RowRange { key, value }));
            }
            if let Some(end) = self.end.take() {
                // The snapshot is given up at once, and nothing follows an error.
                self.cursor = None;
                return end.err().map(Err);
            }
            let Chunk { buffer, lens, end } = self.cursor.as_mut()?.next_chunk();
            self.buffer = buffer;
            self.start = 0;
            self.lens = lens.into_iter();
            self.end = end;
        }
    }
}

impl Iterator for Scan {
    type Item = Result<(Bytes, Bytes), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let place = self.advance()?;
        Some(place.map(|RowRange { key, value }| (self.buffer.slice(key), self.buffer.slice(value))))
    }
}

impl FusedIterator for Scan {}

impl fmt::Debug for Scan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Scan")
            .field("ready_rows", &self.lens.len())
            .field("ended", &self.cursor.is_none())
            .finish_non_exhaustive()
    }
}
