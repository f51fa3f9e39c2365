//! What can be wrong with an event file.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tidal_db::WeightError;

use super::header::COLUMNS;
use super::record::MAX_RECORD_BYTES;
use crate::time::TimeError;

/// The longest part of a bad value that an error repeats, in characters.
const MAX_SHOWN_CHARS: usize = 64;

/// What is wrong with an event file, and where.
#[derive(Debug)]
pub struct EventFileError {
    path: PathBuf,
    line: Option<u64>,
    kind: EventFileErrorKind,
}

impl fmt::Display for EventFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(formatter, ", line {line}")?;
        }
        write!(formatter, ": {}", self.kind)
    }
}

impl Error for EventFileError {
    /// The kind's words stand in the error's own, so its cause follows.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.kind.source()
    }
}

impl EventFileError {
    pub(super) fn new(path: &Path, line: Option<u64>, kind: EventFileErrorKind) -> Self {
        Self { path: path.to_path_buf(), line, kind }
    }

    pub(crate) fn cannot_open(path: &Path, cause: io::Error) -> Self {
        Self::new(path, None, EventFileErrorKind::Open { cause })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The line, counted from 1 (the header, usually); `None` if the file could not even be opened.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &EventFileErrorKind {
        &self.kind
    }
}

/// What is wrong with a line of an event file. Values are cut to their first 64 characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventFileErrorKind {
    /// The file could not be opened.
    #[error("cannot be opened; check the name and your rights")]
    Open {
        /// What the system said.
        #[source]
        cause: io::Error,
    },

    /// Reading failed; a compressed file that was cut or damaged fails like this.
    #[error("cannot be read any further; get a whole copy of the file")]
    Read {
        /// What the system, or the decompression, said.
        #[source]
        cause: io::Error,
    },

    /// Named `.gz`, but not compressed.
    #[error("the name ends in .gz, but the content is not gzip; rename the file or compress it")]
    NotGzip,

    /// Compressed, but not named `.gz`.
    #[error("the content is gzip; give the file a name that ends in .gz")]
    GzipUnnamed,

    /// Not even a header.
    #[error("the file is empty; its first line must name the columns {}", COLUMNS.join(","))]
    Empty,

    /// The header lacks a column.
    #[error("the header has no column {column:?}; it must name {}", COLUMNS.join(","))]
    MissingColumn {
        /// The column.
        column: &'static str,
    },

    /// The header names a column twice.
    #[error("the header names column {column:?} twice; leave one out")]
    RepeatedColumn {
        /// The column.
        column: &'static str,
    },

    /// The line is not UTF-8.
    #[error("the line is not UTF-8; convert the file to UTF-8")]
    NotUtf8,

    /// A quote is opened and never closed.
    #[error("a quote that opens here is never closed; close it, and write a quote within quotes twice")]
    UnclosedQuote,

    /// Something other than a comma follows a closing quote.
    #[error("text follows a closing quote; put a comma there, and write a quote within quotes twice")]
    TextAfterQuote,

    /// The row is longer than any event.
    #[error(
        "the row is longer than {MAX_RECORD_BYTES} bytes; this is no event file, or a quote is not closed"
    )]
    TooLong,

    /// More or fewer fields than the header has.
    #[error("the row has {found} fields, but the header has {expected}; quote fields that hold a comma")]
    FieldCount {
        /// Fields of the row.
        found: usize,
        /// Fields of the header.
        expected: usize,
    },

    /// No such action.
    #[error("unknown action {value:?}; use user, join, quit, signal, leave or rejoin")]
    UnknownAction {
        /// What stands there.
        value: String,
    },

    /// A field that the action needs is empty.
    #[error("column {column:?} is empty, but action {action:?} needs it; fill it in")]
    EmptyField {
        /// The column.
        column: &'static str,
        /// The action.
        action: &'static str,
    },

    /// A field that the action does not use is filled in, so the row may mean something else.
    #[error(
        "column {column:?} holds {value:?}, but action {action:?} does not use it; {}",
        advice(action, column)
    )]
    UnusedField {
        /// The column.
        column: &'static str,
        /// What stands there.
        value: String,
        /// The action.
        action: &'static str,
    },

    /// Not an id.
    #[error("{value:?} in column {column:?} is no id; write a whole number from 0 to {}", u64::MAX)]
    BadNumber {
        /// The column.
        column: &'static str,
        /// What stands there.
        value: String,
    },

    /// Not a time, or one that cannot be stored.
    #[error("time {message}")]
    BadTime {
        /// The value, what is wrong with it and what to do.
        message: String,
    },

    /// Not a weight, or one out of range.
    #[error(transparent)]
    BadWeight(#[from] WeightError),

    /// An attribute without `=`.
    #[error("attribute {value:?} has no '='; write name=value")]
    AttributeWithoutEquals {
        /// What stands there.
        value: String,
    },

    /// An attribute without a name.
    #[error("attribute {value:?} has no name before the '='; write name=value")]
    AttributeWithoutName {
        /// What stands there.
        value: String,
    },
}

impl From<TimeError> for EventFileErrorKind {
    fn from(error: TimeError) -> Self {
        Self::BadTime { message: error.to_string() }
    }
}

/// What to do about a field that the action does not use.
fn advice(action: &str, column: &str) -> &'static str {
    match (action, column) {
        ("leave", "community") => {
            "it concerns the whole community layer: use quit for one community, or leave the field empty"
        }
        ("rejoin", "community") => {
            "it concerns the whole community layer: use join for one community, or leave the field empty"
        }
        _ => "leave it empty, or correct the action",
    }
}

/// The value as an error repeats it.
pub(crate) fn shown(value: &str) -> String {
    let mut characters = value.chars();
    let mut shown: String = characters.by_ref().take(MAX_SHOWN_CHARS).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}
