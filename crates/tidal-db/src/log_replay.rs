//! What the log says: the aggregates, and what every other row must agree with.

use std::collections::HashMap;

use tidal_entities::{
    Contribution, LogEntry, LogRow, Schema, ScopeId, SignalEntry, SourcePosition, Transition, TransitionKind,
    WithheldCounts,
};
use tidal_keys::Tag;
use tidal_storage::Storage;

use crate::aggregates::{AggregateKey, Aggregates};
use crate::scopes::Interner;
use crate::{Error, Result};

/// What the log says.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) last_sequence: u64,
    pub(crate) newest_time_ns: u64,
    pub(crate) entries: u64,
    pub(crate) withheld: WithheldCounts,
    pub(crate) sources: HashMap<String, SourcePosition>,
    /// Sequence of the join, by user and community.
    pub(crate) memberships: HashMap<(u64, u64), u64>,
    /// Sequence and value, by user and name.
    pub(crate) attributes: HashMap<(u64, String), (u64, String)>,
    pub(crate) transitions: HashMap<u64, Vec<Transition>>,
}

/// Reads the log from its beginning, adds every signal to the scopes that took it, and notes what
/// the other rows have to say.
pub(crate) fn replay_log(
    storage: &Storage,
    schema: &Schema,
    interner: &Interner,
    aggregates: &Aggregates,
) -> Result<Replayed> {
    let mut replayed = Replayed::default();
    for row in storage.system_engine().scan_tag(Tag::Event)? {
        let (key, value) = row?;
        let undecodable = |cause| Error::undecodable("a row of the log does not decode", cause);
        let row = LogRow::decode(&key, &value).map_err(undecodable)?;
        if row.first_sequence() != replayed.last_sequence + 1 {
            return Err(Error::damaged(format!(
                "the log goes on at sequence {} after {}",
                row.first_sequence(),
                replayed.last_sequence
            )));
        }
        if row.newest_time_ns() < replayed.newest_time_ns {
            return Err(Error::damaged(format!(
                "the newest time steps back from {} to {} ns at sequence {}",
                replayed.newest_time_ns,
                row.newest_time_ns(),
                row.first_sequence()
            )));
        }
        for entry in row.entries() {
            let (sequence, entry) = entry.map_err(undecodable)?;
            replayed.last_sequence = sequence;
            replayed.entries += 1;
            match entry {
                LogEntry::Signal(signal) => {
                    add_signal(schema, interner, aggregates, sequence, &signal)?;
                    if let Some(reason) = signal.withheld {
                        replayed.withheld.add(reason);
                    }
                }
                other => note(&mut replayed, sequence, other)?,
            }
        }
        replayed.newest_time_ns = row.newest_time_ns();
    }
    Ok(replayed)
}

fn add_signal(
    schema: &Schema,
    interner: &Interner,
    aggregates: &Aggregates,
    sequence: u64,
    signal: &SignalEntry,
) -> Result<()> {
    let scope_set = interner.set(signal.scope_set).ok_or_else(|| {
        Error::damaged(format!(
            "the signal at sequence {sequence} names set of scopes {}, which is not stored",
            signal.scope_set.0
        ))
    })?;
    let declared = schema.signal_type_by_id(signal.signal_type).ok_or_else(|| {
        Error::damaged(format!("the signal at sequence {sequence} is of a type that is not in the schema"))
    })?;
    let contribution = Contribution::new(signal.weight, signal.event_time_ns, declared.half_life);
    let global = std::iter::once(&ScopeId::GLOBAL);
    for scope in global.chain(&scope_set.cohorts).chain(&scope_set.communities) {
        let key = AggregateKey { scope: *scope, signal_type: signal.signal_type, item: signal.item };
        aggregates.add(key, &contribution);
    }
    Ok(())
}

fn note(replayed: &mut Replayed, sequence: u64, entry: LogEntry) -> Result<()> {
    let transition = |kind, at_ns| Transition { sequence, kind, at_ns };
    match entry {
        LogEntry::Leave { user, at_ns } => {
            replayed.transitions.entry(user).or_default().push(transition(TransitionKind::Leave, at_ns));
        }
        LogEntry::Rejoin { user, at_ns } => {
            replayed.transitions.entry(user).or_default().push(transition(TransitionKind::Rejoin, at_ns));
        }
        LogEntry::Join { user, community, .. } => {
            replayed.memberships.insert((user, community), sequence);
        }
        LogEntry::Quit { user, community, .. } => {
            replayed.memberships.remove(&(user, community));
        }
        LogEntry::SetAttribute { user, name, value, .. } => {
            replayed.attributes.insert((user, name), (sequence, value));
        }
        LogEntry::SourcePosition { source, first_position, position, digest } => {
            replayed.sources.insert(source, SourcePosition { first_position, position, digest });
        }
        other => {
            return Err(Error::damaged(format!(
                "the entry at sequence {sequence} is of an unknown kind: {other:?}"
            )));
        }
    }
    Ok(())
}
