use tidal_keys::EncodedKey;

use super::{
    LogEntry, SignalEntry,
    codec::{decode_entry, encode_entry, encode_signal},
    log_row_key, parse_log_row_key,
};
use crate::{
    CodecError, Fingerprint, SEAL_LEN,
    reader::Reader,
    sealed::{seal_in_place, unseal},
};

const WHAT: &str = "row of the log";

const ENTRY_COUNT_LEN: usize = size_of::<u32>();
const NEWEST_TIME_LEN: usize = size_of::<u64>();
const FINGERPRINT_LEN: usize = size_of::<u64>();
const HEADER_LEN: usize = ENTRY_COUNT_LEN + NEWEST_TIME_LEN + FINGERPRINT_LEN;

const _: () = assert!(HEADER_LEN == 20);

/// Gathers the entries of one commit into one row of the log.
///
/// ```
/// use tidal_entities::{Fingerprint, LogEntry, LogRow, LogRowBuilder};
///
/// let mut builder = LogRowBuilder::new(41);
/// assert_eq!(builder.push(&LogEntry::Leave { user: 7, at_ns: 100 })?, 41);
/// assert_eq!(builder.push(&LogEntry::Rejoin { user: 7, at_ns: 200 })?, 42);
/// let (key, row) = builder.finish(200, Fingerprint::default());
///
/// let row = LogRow::decode(&key, &row)?;
/// assert_eq!((row.first_sequence(), row.entry_count(), row.newest_time_ns()), (41, 2, 200));
/// let entries: Vec<_> = row.entries().collect::<Result<_, _>>()?;
/// assert_eq!(entries[1], (42, LogEntry::Rejoin { user: 7, at_ns: 200 }));
/// # Ok::<(), tidal_entities::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LogRowBuilder {
    first_sequence: u64,
    entry_count: u32,
    /// Room for the header, and the entries; nothing without entries.
    row: Vec<u8>,
}

impl LogRowBuilder {
    /// A row without entries, whose first entry will have this sequence number.
    #[must_use]
    pub const fn new(first_sequence: u64) -> Self {
        Self::reusing(first_sequence, Vec::new())
    }

    /// The same in the memory of a row that is no longer needed.
    #[must_use]
    pub const fn reusing(first_sequence: u64, row: Vec<u8>) -> Self {
        Self { first_sequence, entry_count: 0, row }
    }

    /// Appends an entry, and gives its sequence number.
    ///
    /// # Errors
    ///
    /// [`CodecError::Limit`] if a name or a value is too long or empty, [`CodecError::TooMany`] if the row is full or
    /// the sequence numbers are used up. The row is then as it was.
    pub fn push(&mut self, entry: &LogEntry) -> Result<u64, CodecError> {
        let sequence = self.number_next()?;
        encode_entry(entry, self.row_with_header())?;
        self.entry_count += 1;
        Ok(sequence)
    }

    /// Appends a signal, and gives its sequence number.
    ///
    /// # Errors
    ///
    /// [`CodecError::TooMany`] if the row is full or the sequence numbers are used up. The row is then as it was.
    pub fn push_signal(&mut self, signal: &SignalEntry) -> Result<u64, CodecError> {
        let sequence = self.number_next()?;
        encode_signal(signal, self.row_with_header());
        self.entry_count += 1;
        Ok(sequence)
    }

    /// The sequence number of the first entry.
    #[must_use]
    pub const fn first_sequence(&self) -> u64 {
        self.first_sequence
    }

    /// The sequence number that the next entry gets.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        // `number_next` keeps the sum below u64::MAX.
        self.first_sequence.saturating_add(self.entry_count as u64)
    }

    /// How many entries there are.
    #[must_use]
    pub const fn entry_count(&self) -> u32 {
        self.entry_count
    }

    /// Whether there is no entry yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    /// How many bytes the value of the row takes if it is finished now.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        if self.is_empty() { HEADER_LEN + SEAL_LEN } else { self.row.len() + SEAL_LEN }
    }

    /// The entries so far, with their sequence numbers.
    #[must_use]
    pub fn entries(&self) -> LogEntries<'_> {
        let entries = if self.is_empty() { None } else { self.row.get(HEADER_LEN..) };
        LogEntries::new(self.first_sequence, self.entry_count, entries.unwrap_or_default())
    }

    /// Lays out key and value of the row.
    ///
    /// `newest_time_ns` is the latest time of all entries of the log up to the end of this row, in ns since the Unix
    /// epoch, so that it need not be searched for. `fingerprint` is that of the rows beside the log after the last entry
    /// of this row.
    #[must_use]
    pub fn finish(mut self, newest_time_ns: u64, fingerprint: Fingerprint) -> (EncodedKey, Vec<u8>) {
        let key = log_row_key(self.first_sequence);
        let header = header_of(self.entry_count, newest_time_ns, fingerprint);
        if let Some(room) = self.row_with_header().first_chunk_mut() {
            *room = header;
        }
        seal_in_place(&key, &mut self.row);
        (key, self.row)
    }

    /// What entries are appended to.
    fn row_with_header(&mut self) -> &mut Vec<u8> {
        if self.is_empty() {
            self.row.clear();
            self.row.resize(HEADER_LEN, 0);
        }
        &mut self.row
    }

    /// The number of the next entry, if there is room for it and for a number after it.
    fn number_next(&self) -> Result<u64, CodecError> {
        if self.entry_count == u32::MAX {
            return Err(CodecError::TooMany {
                what: "number of entries",
                found: u64::from(self.entry_count) + 1,
                limit: u64::from(u32::MAX),
            });
        }
        let sequence = self.next_sequence();
        if sequence == u64::MAX {
            return Err(CodecError::TooMany {
                what: "sequence number",
                found: sequence,
                limit: u64::MAX - 1,
            });
        }
        Ok(sequence)
    }
}

fn header_of(entry_count: u32, newest_time_ns: u64, fingerprint: Fingerprint) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    let numbers = [newest_time_ns.to_le_bytes(), fingerprint.get().to_le_bytes()];
    let fields = entry_count.to_le_bytes().into_iter().chain(numbers.into_iter().flatten());
    header.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
    header
}

/// A row of the log, checked against its seal.
#[derive(Clone, Debug)]
pub struct LogRow<'a> {
    first_sequence: u64,
    entry_count: u32,
    newest_time_ns: u64,
    fingerprint: Fingerprint,
    entries: &'a [u8],
}

impl<'a> LogRow<'a> {
    /// Checks key, seal and header of a row. The entries are decoded one by one as they are asked for.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if key or row are not what [`LogRowBuilder::finish`] lays out.
    pub fn decode(key: &[u8], value: &'a [u8]) -> Result<Self, CodecError> {
        let first_sequence = parse_log_row_key(key)?;
        let mut reader = Reader::new(WHAT, unseal(key, value)?);
        let entry_count = reader.u32()?;
        let newest_time_ns = reader.u64()?;
        let fingerprint = Fingerprint::from_stored(reader.u64()?);
        if entry_count == 0 {
            return Err(CodecError::Value {
                what: "number of entries in a row of the log",
                found: entry_count.to_string(),
                expected: "is at least 1",
            });
        }
        if first_sequence.checked_add(u64::from(entry_count)).is_none() {
            return Err(CodecError::Value {
                what: "number of entries in a row of the log",
                found: entry_count.to_string(),
                expected: "leaves the last sequence number below 2^64 - 1",
            });
        }
        Ok(Self { first_sequence, entry_count, newest_time_ns, fingerprint, entries: reader.rest() })
    }

    /// The sequence number of the first entry.
    #[must_use]
    pub const fn first_sequence(&self) -> u64 {
        self.first_sequence
    }

    /// The sequence number that follows the last entry: that of the first entry of the next row.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        // `decode` has refused rows in which the sum goes too far.
        self.first_sequence.saturating_add(self.entry_count as u64)
    }

    /// How many entries there are.
    #[must_use]
    pub const fn entry_count(&self) -> u32 {
        self.entry_count
    }

    /// The latest time of all entries of the log up to the end of this row, in ns since the Unix epoch.
    #[must_use]
    pub const fn newest_time_ns(&self) -> u64 {
        self.newest_time_ns
    }

    /// The fingerprint of the rows beside the log after the last entry of this row.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The entries with their sequence numbers, in ascending order.
    #[must_use]
    pub fn entries(&self) -> LogEntries<'a> {
        LogEntries::new(self.first_sequence, self.entry_count, self.entries)
    }
}

/// The entries of a row of the log with their sequence numbers, in ascending order.
///
/// Bytes and count must agree exactly: bytes that end early or go on after the last entry are an error in the
/// place of an entry, and nothing follows an error.
#[derive(Clone, Debug)]
pub struct LogEntries<'a> {
    next_sequence: u64,
    remaining: u32,
    reader: Reader<'a>,
}

impl<'a> LogEntries<'a> {
    fn new(first_sequence: u64, entry_count: u32, entries: &'a [u8]) -> Self {
        Self { next_sequence: first_sequence, remaining: entry_count, reader: Reader::new(WHAT, entries) }
    }

    fn fail(&mut self, error: CodecError) -> CodecError {
        self.remaining = 0;
        self.reader.rest();
        error
    }
}

impl Iterator for LogEntries<'_> {
    type Item = Result<(u64, LogEntry), CodecError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return match self.reader.end() {
                Ok(()) => None,
                Err(error) => Some(Err(self.fail(error))),
            };
        }
        match decode_entry(&mut self.reader) {
            Ok(entry) => {
                let sequence = self.next_sequence;
                self.remaining -= 1;
                self.next_sequence = sequence.saturating_add(1);
                Some(Ok((sequence, entry)))
            }
            Err(error) => Some(Err(self.fail(error))),
        }
    }
}

impl std::iter::FusedIterator for LogEntries<'_> {}
