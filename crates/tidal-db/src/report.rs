//! What an open found.

use tidal_entities::Transition;

/// A user whose leave record cannot be believed: they count as Left until
/// [`repair_community_layer`](crate::TidalDb::repair_community_layer) or a leave settles it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedRecord {
    /// The user.
    pub user_id: u64,
    /// What is wrong, in words.
    pub cause: String,
}

/// What an open found. It stays as it was when the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// Users whose leave record is damaged, in order of their ids.
    pub damaged: Vec<DamagedRecord>,
    /// How many users have a leave record that is sound.
    pub sound_records: u64,
    /// How many entries of the log were read to bring the stored aggregates up to date.
    pub replayed_entries: u64,
    /// The last sequence on disk.
    pub last_sequence: u64,
}

impl OpenReport {
    /// Whether nothing was found that needs a person.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.damaged.is_empty()
    }
}

/// What is needed to settle a damaged user.
#[derive(Clone, Debug)]
pub(crate) struct DamagedUser {
    pub(crate) user_id: u64,
    pub(crate) cause: String,
    /// The user's transitions as the log has them.
    pub(crate) logged: Vec<Transition>,
}
