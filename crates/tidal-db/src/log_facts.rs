//! What the whole log says of everything that has rows of its own. Read only when those rows do not
//! fit the log's fingerprint, or to verify: an open does not depend on the length of the log.

use std::collections::HashMap;

use tidal_entities::{LogEntry, SourcePosition, Transition, TransitionKind};
use tidal_storage::Storage;

use crate::log_rows::visit_entries;
use crate::{Error, Result};

/// The log's word on every other row.
#[derive(Debug, Default)]
pub(crate) struct LogFacts {
    pub(crate) sources: HashMap<String, SourcePosition>,
    /// Sequence of the join, by user and community.
    pub(crate) memberships: HashMap<(u64, u64), u64>,
    /// Sequence and value, by user and name.
    pub(crate) attributes: HashMap<(u64, String), (u64, String)>,
    pub(crate) transitions: HashMap<u64, Vec<Transition>>,
}

impl LogFacts {
    /// Reads the log from its beginning.
    pub(crate) fn read(storage: &Storage) -> Result<Self> {
        let mut facts = Self::default();
        visit_entries(storage, 0, |sequence, entry| facts.note(sequence, entry), |_| false)?;
        Ok(facts)
    }

    /// What the user did last, as far as the log was read.
    pub(crate) fn last_transition(&self, user: u64) -> Option<&Transition> {
        self.transitions.get(&user).and_then(|transitions| transitions.last())
    }

    /// Takes in one entry; signals say nothing of other rows.
    pub(crate) fn note(&mut self, sequence: u64, entry: LogEntry) -> Result<()> {
        let transition = |kind, at_ns| Transition { sequence, kind, at_ns };
        match entry {
            LogEntry::Leave { user, at_ns } => {
                self.transitions.entry(user).or_default().push(transition(TransitionKind::Leave, at_ns));
            }
            LogEntry::Rejoin { user, at_ns } => {
                self.transitions.entry(user).or_default().push(transition(TransitionKind::Rejoin, at_ns));
            }
            LogEntry::Join { user, community, .. } => {
                self.memberships.insert((user, community), sequence);
            }
            LogEntry::Quit { user, community, .. } => {
                self.memberships.remove(&(user, community));
            }
            LogEntry::SetAttribute { user, name, value, .. } => {
                self.attributes.insert((user, name), (sequence, value));
            }
            LogEntry::SourcePosition { source, first_position, position, digest } => {
                self.sources.insert(source, SourcePosition { first_position, position, digest });
            }
            LogEntry::Signal(_) => {}
            other => {
                return Err(Error::damaged(format!(
                    "the entry at sequence {sequence} is of an unknown kind: {other:?}"
                )));
            }
        }
        Ok(())
    }
}
