use std::{io, path::PathBuf};

use tidal_keys::KeyError;

use crate::{Partition, Place, hex::Hex};

/// Why something could not be stored, read, opened or created.
///
/// Every message names the database and says what to do. The cause, where there is one, is the
/// [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// There is nothing under this path.
    #[error("{place} does not exist: check the path, or create a database there first")]
    NotFound {
        /// Where the database was looked for.
        place: Place,
    },

    /// The file has no bytes.
    #[error(
        "{place} is empty: it is no database, or it was truncated; restore it from a backup \
             (users who left since must be marked as left again)"
    )]
    Empty {
        /// Where the database was looked for.
        place: Place,
    },

    /// What is there was not written by this crate.
    #[error("{place} is not a tidal database ({reason}): check the path")]
    NotADatabase {
        /// Where the database was looked for.
        place: Place,
        /// What shows it.
        reason: String,
    },

    /// A newer version of this crate wrote the database.
    #[error(
        "{place} has format version {found}, and this program reads up to {supported}: use a newer program"
    )]
    NewerFormat {
        /// The database.
        place: Place,
        /// The format version it has.
        found: u32,
        /// The newest format version that this program reads.
        supported: u32,
    },

    /// There is no directory that could hold the database, so nothing was created.
    #[error("the directory {} does not exist: create it, or check the path", directory.display())]
    NoDirectory {
        /// The directory.
        directory: PathBuf,
    },

    /// Something is there already, so nothing was created.
    #[error("{place} exists already: open it, or choose another path")]
    AlreadyExists {
        /// Where the database should have been created.
        place: Place,
    },

    /// Another process, or another handle of this one, has the database open.
    #[error("{place} is open elsewhere: one process at a time can have it open; close the other one first")]
    AlreadyOpen {
        /// The database.
        place: Place,
    },

    /// The database is not as it was written.
    #[error(
        "{place} is damaged ({detail}): restore it from a backup \
             (users who left since must be marked as left again)"
    )]
    Damaged {
        /// The database.
        place: Place,
        /// What was found.
        detail: String,
    },

    /// The engine below panicked. The panic was caught here and went no further.
    #[error(
        "the engine panicked while {action} {place} ({message}): close and open it with the integrity check"
    )]
    EnginePanicked {
        /// The database.
        place: Place,
        /// What was being done.
        action: &'static str,
        /// The message of the panic.
        message: String,
    },

    /// The operating system, or the medium, reported an error.
    #[error("i/o error while {action} {place}: {}", advice(action))]
    Io {
        /// The database, or the directory that should hold it.
        place: Place,
        /// What was being done.
        action: &'static str,
        /// What was reported.
        source: io::Error,
    },

    /// An earlier failure left this handle unfit for the operation.
    #[error("{place} refuses this after an earlier failure ({cause}): close and open it again")]
    Latched {
        /// The database.
        place: Place,
        /// The earlier failure.
        cause: String,
    },

    /// The database was closed through this handle or a clone of it.
    #[error("{place} was closed: open it again")]
    Closed {
        /// The database.
        place: Place,
    },

    /// The bytes are not a key, so nothing was read or written.
    #[error("malformed key {} for partition {partition}: build keys with encode_key", Hex(key))]
    Key {
        /// The partition it was meant for.
        partition: Partition,
        /// The bytes.
        key: Box<[u8]>,
        /// What is wrong with them.
        source: KeyError,
    },

    /// A key or a value is longer than the store takes, so nothing was written.
    #[error(
        "{what} of {len_bytes} bytes for partition {partition} is too long: at most {max_bytes} bytes are stored; \
         split the record"
    )]
    TooLong {
        /// The partition it was meant for.
        partition: Partition,
        /// `key` or `value`.
        what: &'static str,
        /// How long it is, in bytes.
        len_bytes: usize,
        /// How long it may be, in bytes.
        max_bytes: usize,
    },

    /// The engine failed in a way that this version has no name for.
    #[error("the engine failed while {action} {place} ({detail}): close and open it again")]
    Engine {
        /// The database.
        place: Place,
        /// What was being done.
        action: &'static str,
        /// The reason, in the engine's words.
        detail: String,
    },
}

/// What to do after an i/o error: until the database is open there is nothing to close.
fn advice(action: &str) -> &'static str {
    match action {
        "creating" => "check the path, your rights and the disk, then try again",
        // An open marks the file, and recovers it where it was not closed.
        "opening" => {
            "check the path, your rights and the disk, then try again (to read it takes the right to write, too)"
        }
        // Only the directory of a new database is synced by itself.
        "syncing" => "see to the disk, then open the database, which is there",
        _ => "see to the disk, then close and open it again",
    }
}
