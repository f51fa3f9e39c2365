//! Recorded events as a file.
//!
//! The file is CSV with a header line; a name that ends in `.gz` is read through gzip:
//!
//! ```text
//! at,action,user,item,signal,weight,community,attribute
//! 2012-03-28T00:00:00Z,user,183714,,,,,region=South West Region
//! 2012-03-28T00:00:00Z,join,183714,,,,4,
//! 2012-04-16T09:30:00.25+01:00,signal,183714,25334,submit,78,,
//! 2012-05-02T00:00:00Z,leave,183714,,,,,
//! ```
//!
//! | column | what it holds | needed by |
//! | --- | --- | --- |
//! | `at` | RFC 3339 time to the nanosecond, any offset: when the act took place | all |
//! | `action` | `user`, `join`, `quit`, `signal`, `leave` or `rejoin` | all |
//! | `user` | id, 0 to `u64::MAX` | all |
//! | `item` | id | `signal` |
//! | `signal` | signal type | `signal` |
//! | `weight` | decimal number, read exactly | `signal` |
//! | `community` | id | `join`, `quit` |
//! | `attribute` | `name=value`, split at the first `=` | `user` |
//!
//! Rows stand in the order of delivery; their numbers count from 1 and are the positions that
//! [`TidalDb::apply`](tidal_db::TidalDb::apply) is given. Columns may stand in any order, and further ones are
//! ignored; a field that the action does not need stays empty. Line ends may be LF or CRLF, a byte order mark is
//! skipped, empty lines are too, and fields may be quoted. All else is an [`EventFileError`] that names the
//! file, the line and what to do.
//!
//! ```
//! use tidal_cli::event_file::EventFile;
//! use tidal_db::Action;
//!
//! let csv = "at,action,user,item,signal,weight,community,attribute\n\
//!            1970-01-01T00:00:01Z,join,7,,,,4,\n";
//! let mut events = EventFile::from_reader("events.csv", csv.as_bytes())?;
//! let event = events.next().transpose()?;
//! assert!(event.is_some_and(|event| event.at_ns == 1_000_000_000
//!     && matches!(event.action, Action::Join { user: 7, community: 4 })));
//! assert_eq!(events.rows().join, 1);
//! # Ok::<(), tidal_cli::event_file::EventFileError>(())
//! ```

mod counts;
mod error;
mod header;
mod quoting;
mod record;
mod row;

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use tidal_db::Event;

pub use self::counts::RowCounts;
pub(crate) use self::error::shown;
pub use self::error::{EventFileError, EventFileErrorKind};
use self::header::Columns;
use self::record::RecordReader;

/// How every gzip file begins.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// An event file that is being read: an iterator over its events, in file order.
///
/// After an error it ends: a row that cannot be read leaves unknown what the rows behind it build on.
pub struct EventFile<'reader> {
    path: PathBuf,
    records: RecordReader<Box<dyn BufRead + 'reader>>,
    columns: Columns,
    counts: RowCounts,
    lines: RowLines,
    has_ended: bool,
}

impl EventFile<'static> {
    /// Opens the file and reads its header.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or read, is empty, or its header lacks a column.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, EventFileError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|cause| EventFileError::cannot_open(path, cause))?;
        Self::from_reader(path, file)
    }
}

impl<'reader> EventFile<'reader> {
    /// Reads the header of a file that is already open; `path` is its name in errors, and tells whether it is
    /// compressed.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is empty, or its header lacks a column.
    pub fn from_reader(path: impl AsRef<Path>, reader: impl Read + 'reader) -> Result<Self, EventFileError> {
        let path = path.as_ref();
        let failed = |line, kind| EventFileError::new(path, Some(line), kind);
        let mut raw = BufReader::new(reader);
        let starts_as_gzip = raw
            .fill_buf()
            .map_err(|cause| match cause.kind() {
                // Some systems open a directory like a file, and say only here what it is.
                ErrorKind::IsADirectory => EventFileError::cannot_open(path, cause),
                _ => failed(1, EventFileErrorKind::Read { cause }),
            })?
            .starts_with(&GZIP_MAGIC);
        let is_named_gzip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        let text: Box<dyn BufRead + 'reader> = match (is_named_gzip, starts_as_gzip) {
            (true, true) => Box::new(BufReader::new(MultiGzDecoder::new(raw))),
            (true, false) => return Err(failed(1, EventFileErrorKind::NotGzip)),
            (false, true) => return Err(failed(1, EventFileErrorKind::GzipUnnamed)),
            (false, false) => Box::new(raw),
        };

        let mut records = RecordReader::new(text);
        let header = records.read().map_err(|fault| failed(fault.line, fault.kind))?;
        let Some(header_line) = header else { return Err(failed(1, EventFileErrorKind::Empty)) };
        let columns = Columns::find(records.fields()).map_err(|kind| failed(header_line, kind))?;
        Ok(Self {
            path: path.to_path_buf(),
            records,
            columns,
            counts: RowCounts::default(),
            lines: RowLines::default(),
            has_ended: false,
        })
    }

    /// The path that stands in errors.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The rows read so far, by action; all rows of the file once the iterator has ended without an error.
    #[must_use]
    pub fn rows(&self) -> RowCounts {
        self.counts
    }

    /// The line on which a row that was read begins, both counted from 1; the header is a line and no row.
    #[must_use]
    pub fn line_of(&self, row: u64) -> Option<u64> {
        (1..=self.counts.total()).contains(&row).then(|| self.lines.line_of(row))
    }

    /// Reads one row; `None` at the end of the file.
    fn read_event(&mut self) -> Result<Option<Event>, EventFileError> {
        let failed = |line, kind| EventFileError::new(&self.path, Some(line), kind);
        let Some(line) = self.records.read().map_err(|fault| failed(fault.line, fault.kind))? else {
            return Ok(None);
        };
        let event = row::parse(self.columns, self.records.fields()).map_err(|kind| failed(line, kind))?;
        self.counts.add(&event.action);
        self.lines.push(self.counts.total(), line);
        Ok(Some(event))
    }
}

impl Iterator for EventFile<'_> {
    type Item = Result<Event, EventFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let item = self.read_event().transpose();
        self.has_ended = !matches!(item, Some(Ok(_)));
        item
    }
}

impl std::iter::FusedIterator for EventFile<'_> {}

impl fmt::Debug for EventFile<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EventFile")
            .field("path", &self.path)
            .field("rows", &self.counts)
            .finish_non_exhaustive()
    }
}

/// Where rows begin. Only the rows are kept before which the distance between row and line grows: one, unless
/// the file has empty lines or line ends within quotes.
#[derive(Default)]
struct RowLines {
    steps: Vec<(u64, u64)>,
}

impl RowLines {
    fn push(&mut self, row: u64, line: u64) {
        if self.steps.is_empty() || self.line_of(row) != line {
            self.steps.push((row, line));
        }
    }

    fn line_of(&self, row: u64) -> u64 {
        let following = self.steps.partition_point(|(first_row, _)| *first_row <= row);
        // Without a step at or before it, a row follows the header line.
        let (first_row, first_line) =
            following.checked_sub(1).and_then(|at| self.steps.get(at)).copied().unwrap_or((1, 2));
        first_line + (row - first_row)
    }
}
