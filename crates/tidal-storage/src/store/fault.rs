use std::io;

use super::{
    FORMAT_VERSION,
    health::{Action, Health},
};
use crate::StorageError;

/// What went wrong inside [`Health::contain`], before it has the name of the place and of the action.
#[derive(Debug)]
pub(super) enum Fault {
    /// The engine returned an error.
    Engine(redb::Error),
    /// The operating system returned an error to us.
    Io(io::Error),
    /// What was read is not what was written.
    Damaged(String),
    /// There should be nothing, and there is something.
    NotEmpty,
    /// There should be something, and there is nothing.
    Empty,
    /// There is no database of ours.
    NotADatabase(String),
    /// There is one of a later format version.
    NewerFormat(u32),
}

impl Fault {
    /// The error for the caller. What makes the handle unfit to write is remembered on the way.
    pub(super) fn into_error(self, health: &Health, action: Action) -> StorageError {
        let place = health.place().clone();
        match self {
            Self::Io(source) => io_error(source, health, action),
            Self::Damaged(detail) => StorageError::Damaged { place, detail },
            Self::NotEmpty => StorageError::AlreadyExists { place },
            Self::Empty => StorageError::Empty { place },
            Self::NotADatabase(reason) => StorageError::NotADatabase { place, reason },
            Self::NewerFormat(found) => StorageError::NewerFormat { place, found, supported: FORMAT_VERSION },
            Self::Engine(error) => engine_error(error, health, action),
        }
    }
}

fn engine_error(error: redb::Error, health: &Health, action: Action) -> StorageError {
    use redb::Error;

    let place = health.place().clone();
    match error {
        Error::Io(source) => io_error(source, health, action),
        Error::Backend(source) => io_error(io::Error::other(source), health, action),
        Error::DatabaseAlreadyOpen | Error::LockProtocolMismatch => StorageError::AlreadyOpen { place },
        Error::DatabaseClosed => StorageError::Closed { place },
        Error::PreviousIo | Error::LockPoisoned(_) | Error::TransactionPoisoned => health.latched_error(),
        Error::UpgradeRequired(version) => StorageError::NotADatabase {
            place,
            reason: format!("it is a redb file of the older format {version}"),
        },
        Error::Corrupted(detail) => {
            health.latch_writes(format!("damage was found while {} it: {detail}", action.name()));
            StorageError::Damaged { place, detail }
        }
        // The tables were all there when the database was opened.
        error @ (Error::TableDoesNotExist(_)
        | Error::TableTypeMismatch { .. }
        | Error::TypeDefinitionChanged { .. }
        | Error::TableIsMultimap(_)) => {
            let detail = error.to_string();
            health.latch_writes(format!("damage was found while {} it: {detail}", action.name()));
            StorageError::Damaged { place, detail }
        }
        error => {
            let detail = error.to_string();
            // What has no name here may have happened after something was written, so nothing is put on top of it.
            if action == Action::Write {
                health.latch_writes(format!("the engine failed while {} it: {detail}", action.name()));
            }
            StorageError::Engine { place, action: action.name(), detail }
        }
    }
}

fn io_error(source: io::Error, health: &Health, action: Action) -> StorageError {
    let place = health.place().clone();
    match (action, source.kind()) {
        // The engine's way to say that the first bytes are not its own.
        (Action::Open, io::ErrorKind::InvalidData) => {
            StorageError::NotADatabase { place, reason: lowercase_first(&source.to_string()) }
        }
        (Action::Open, io::ErrorKind::UnexpectedEof) => {
            StorageError::Damaged { place, detail: "the file ends early".to_owned() }
        }
        _ => {
            // After an i/o error nobody knows what is on disk, so nothing more is put on top of it.
            health.latch_writes(format!("i/o error while {} it: {source}", action.name()));
            StorageError::Io { place, action: action.name(), source }
        }
    }
}

fn lowercase_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// Each of the engine's errors converts to its general one, and that to a fault, so that `?` does both.
macro_rules! fault_from {
    ($($error:ty),+) => {$(
        impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Self::Engine(error.into())
            }
        }
    )+};
}

fault_from!(
    redb::DatabaseError,
    redb::TransactionError,
    redb::TableError,
    redb::StorageError,
    redb::CommitError
);

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Fault, Health};
    use crate::{Place, StorageError};

    /// Meets an engine error that no arm above names.
    fn after_unnamed_error_while(action: Action) -> Health {
        let health = Health::new(Place::Medium);
        let met = health.contain(action, || Err::<(), _>(Fault::Engine(redb::Error::InvalidSavepoint)));
        assert!(matches!(&met, Err(StorageError::Engine { .. })), "{met:?}");
        health
    }

    #[test]
    fn unnamed_engine_error_during_a_write_latches() {
        let health = after_unnamed_error_while(Action::Write);
        let refusal = health.check_writable().unwrap_err();
        assert!(
            matches!(&refusal, StorageError::Latched { cause, .. } if cause.contains("writing")),
            "{refusal}"
        );
        health.check_readable().unwrap();
    }

    #[test]
    fn damage_that_the_engine_finds_in_a_read_latches() {
        let gone: fn() -> redb::Error = || redb::Error::TableDoesNotExist("users".to_owned());
        for damage in [|| redb::Error::Corrupted("a page".to_owned()), gone] {
            let health = Health::new(Place::Medium);
            let met = health.contain(Action::Read, || Err::<(), _>(Fault::Engine(damage())));
            assert!(matches!(&met, Err(StorageError::Damaged { .. })), "{met:?}");
            let refusal = health.check_writable().unwrap_err();
            assert!(
                matches!(&refusal, StorageError::Latched { cause, .. } if cause.contains("damage was found")),
                "{refusal}"
            );
            health.check_readable().unwrap();
        }
    }

    #[test]
    fn unnamed_engine_error_during_a_read_stays_with_it() {
        after_unnamed_error_while(Action::Read).check_writable().unwrap();
    }
}
