//! What can go wrong, in words a person can act on.

use std::sync::Arc;

use tidal_entities::{CodecError, LimitError, SchemaError, WeightError, WindowError};
use tidal_storage::StorageError;

use crate::ApplyReport;

/// The result of an operation on the database.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused or failed. A refusal changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not be opened, read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),

    /// A commit failed, this call's or an earlier one, so nothing more is written through this handle.
    #[error(
        "a commit failed, so nothing more is written through this handle; close the database and open it again"
    )]
    Latched {
        /// What made the commit fail.
        #[source]
        cause: Arc<Error>,
    },

    /// The database was closed, through this handle or a clone of it.
    #[error("the database is closed; open it again")]
    Closed,

    /// The weight is not finite, out of range or no number.
    #[error(transparent)]
    Weight(#[from] WeightError),

    /// The schema is not valid, or a cohort that it does not declare was named.
    #[error(transparent)]
    Schema(#[from] SchemaError),

    /// The schema given at open is not the stored one.
    #[error(
        "the schema differs from the stored one: {difference}; open without a schema to use the stored one; \
         to add signal types and cohorts, give all that is stored as well and open with extend_schema(true)"
    )]
    SchemaDiffers {
        /// The first difference found.
        difference: String,
    },

    /// A new database was asked for without saying what its signals are.
    #[error("a new database needs a schema; give one with schema(..)")]
    SchemaMissing,

    /// No such signal type is declared in the schema.
    #[error(
        "signal type {name:?} is not declared in the schema; declare it with signal({name:?}, half_life) and open with \
         extend_schema(true)"
    )]
    UndeclaredSignalType {
        /// The name that was given.
        name: String,
    },

    /// No windows are kept of this signal type.
    #[error(
        "no windows are kept of signal type {name:?}; declare one with windowed(.., half_life) under a name that is \
         not stored yet, since the past signals of {name:?} are not told apart by time"
    )]
    NotWindowed {
        /// The signal type.
        name: String,
    },

    /// The window reaches back to times that are no longer kept apart.
    #[error(transparent)]
    Window(#[from] WindowError),

    /// The time lies further ahead of the clock than is allowed.
    #[error(
        "time {at_ns} ns is more than the allowed {allowed_skew_ns} ns ahead of the clock, which reads {now_ns} ns; \
             check the unit (nanoseconds since 1970) and the sender's clock"
    )]
    TooFarAhead {
        /// The time that was given, in ns.
        at_ns: u64,
        /// What the clock read, in ns.
        now_ns: u64,
        /// How far ahead is allowed, in ns.
        allowed_skew_ns: u64,
    },

    /// A name or value is empty, too long or not allowed.
    #[error(transparent)]
    Limit(#[from] LimitError),

    /// The user is in as many communities as one may be in.
    #[error(
        "user {user_id} is in {limit} communities, the most there may be, and cannot join {community}; \
             quit one first"
    )]
    TooManyCommunities {
        /// The user.
        user_id: u64,
        /// The community that was to be joined.
        community: u64,
        /// The most there may be.
        limit: usize,
    },

    /// The user has as many attributes as one may have.
    #[error(
        "user {user_id} has {limit} attributes, the most there may be, and {name:?} would be another; set one that is there"
    )]
    TooManyAttributes {
        /// The user.
        user_id: u64,
        /// The attribute that was to be set.
        name: String,
        /// The most there may be.
        limit: usize,
    },

    /// The user's record is damaged, so a rejoin cannot be believed.
    #[error(
        "the leave record of user {user_id} is damaged ({cause}), so the user stays out; \
             settle it with repair_community_layer({user_id}) or a leave, then rejoin"
    )]
    DamagedRecord {
        /// The user.
        user_id: u64,
        /// What is wrong with the record.
        cause: String,
    },

    /// Another source's content was delivered under a known name.
    #[error(
        "the content of source {source_name:?} up to position {position} is not what was applied before; \
         nothing was applied; if an event was left out on purpose, deliver from position {} on; if the content is \
         another, give it a source name of its own",
        position.saturating_add(1)
    )]
    SourceReplaced {
        /// The source.
        source_name: String,
        /// The position up to which the two should agree.
        position: u64,
    },

    /// A delivery begins before the first position that was ever applied from the source.
    #[error(
        "source {source_name:?} was first applied at position {known_first}, and what lies before was not; \
         {first_position} is before it; nothing was applied; give the earlier content a source name of its own"
    )]
    BeforeSource {
        /// The source.
        source_name: String,
        /// Where this delivery begins.
        first_position: u64,
        /// Where the source began.
        known_first: u64,
    },

    /// `apply` stopped; everything before the position was applied and is on disk unless the cause is the store.
    #[error("source {source_name:?} stopped at position {position}: {cause}")]
    Apply {
        /// The source.
        source_name: String,
        /// The position of the event that was not applied.
        position: u64,
        /// What was done before it.
        report: Box<ApplyReport>,
        /// Why it was not applied.
        #[source]
        cause: Box<Error>,
    },

    /// The event is of a kind that this version does not know.
    #[error("action {action} is of a kind that this version cannot apply; use a newer one")]
    UnknownAction {
        /// The action.
        action: String,
    },

    /// Positions of a source would pass `u64::MAX`.
    #[error("source {source_name:?}, starting at {first_position}, needs more positions than there are; the last is {}", u64::MAX - 1)]
    PositionOverflow {
        /// The source.
        source_name: String,
        /// Where the delivery started.
        first_position: u64,
    },

    /// Stored rows contradict each other or do not decode.
    #[error(
        "the database is damaged: {what}; restore it from a backup (users who left since must be marked as left \
         again), or copy the file and report it"
    )]
    Damaged {
        /// What was found, and where.
        what: String,
        /// The codec's word on it, if it was a row that did not decode.
        #[source]
        cause: Option<CodecError>,
    },

    /// Stored aggregates, or the signals by user of which histories are made, are damaged. Both only repeat what the
    /// log says.
    #[error(
        "{what}; it only repeats what the log says: open once with rebuild(true) to make it anew from the log"
    )]
    DamagedView {
        /// What was found, and where.
        what: String,
        /// The codec's word on it, if it was a row that did not decode.
        #[source]
        cause: Option<CodecError>,
    },

    /// An entry does not fit the format of the log.
    #[error("{what}; nothing was recorded")]
    Unloggable {
        /// What does not fit.
        what: &'static str,
        /// Why.
        #[source]
        cause: CodecError,
    },

    /// The file ends before what the caller knows to have been acknowledged.
    #[error(
        "the database ends at sequence {found}, but sequence {expected} was acknowledged before; \
             this is an older copy or a damaged file; put back the newest one"
    )]
    BehindExpected {
        /// What the caller expects at least.
        expected: u64,
        /// What the file holds.
        found: u64,
    },

    /// The options contradict each other.
    #[error("{reason}")]
    Config {
        /// What to change.
        reason: &'static str,
    },

    /// A background thread, a commit or an addition panicked, so nothing more is recorded through this handle.
    #[error("a background thread, a commit or an addition panicked; close the database and open it again")]
    ThreadPanicked,

    /// A background thread could not be started.
    #[error("a thread of the database could not be started")]
    Thread(#[source] std::io::Error),
}

impl Error {
    /// A row that does not decode, or contradicts another.
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), cause: None }
    }

    /// A row that does not decode.
    pub(crate) fn undecodable(what: impl Into<String>, cause: CodecError) -> Self {
        Self::Damaged { what: what.into(), cause: Some(cause) }
    }

    /// A row that repeats what the log says does not decode, or contradicts another.
    pub(crate) fn damaged_view(what: impl Into<String>, cause: Option<CodecError>) -> Self {
        Self::DamagedView { what: what.into(), cause }
    }

    /// The position at which an `apply` stopped.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        match self {
            Self::Apply { position, .. } => Some(*position),
            _ => None,
        }
    }
}
