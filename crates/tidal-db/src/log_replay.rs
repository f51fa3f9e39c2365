//! The aggregates: those that were stored, and what the log says since.

use tidal_entities::{Checkpoint, Contribution, LogEntry, Schema, ScopeId, SignalEntry, WithheldCounts};
use tidal_storage::Storage;

use crate::aggregates::{AggregateKey, AggregateView};
use crate::log_rows::{LogHead, visit_entries};
use crate::scopes::Interner;
use crate::state_rebuild::read_checkpoint;
use crate::stored_aggregates::StoredAggregates;
use crate::{Error, Result};

/// What the entries after the checkpoint came to.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) last_sequence: u64,
    pub(crate) entries: u64,
    pub(crate) withheld: WithheldCounts,
}

/// Brings the aggregates up to the end of the log: those that were stored, and what came after; or, if they are to be
/// made anew, what the whole log says.
pub(crate) fn rebuild_aggregates(
    storage: &Storage,
    schema: &Schema,
    interner: &Interner,
    view: &mut AggregateView,
    head: &LogHead,
    anew: bool,
) -> Result<(Checkpoint, Replayed)> {
    let checkpoint = match read_checkpoint(storage) {
        Err(Error::DamagedView { .. }) if anew => Checkpoint::default(),
        read => read?,
    };
    // The log has lost its end, which nothing can be made from.
    if checkpoint.floor > head.last_sequence {
        return Err(Error::damaged(format!(
            "the log ends at sequence {}, but a checkpoint has followed it to {}",
            head.last_sequence, checkpoint.floor
        )));
    }
    let checkpoint = if anew { Checkpoint::default() } else { checkpoint };
    restore_aggregates(storage, schema, interner, view, &checkpoint)?;
    let replayed = replay_log(storage, schema, interner, view, &checkpoint)?;
    if replayed.last_sequence != head.last_sequence {
        return Err(Error::damaged(format!(
            "the log ends at sequence {}, but after the checkpoint at {} only {} is reached",
            head.last_sequence, checkpoint.floor, replayed.last_sequence
        )));
    }
    Ok((checkpoint, replayed))
}

/// Reads the stored aggregates into memory.
fn restore_aggregates(
    storage: &Storage,
    schema: &Schema,
    interner: &Interner,
    view: &mut AggregateView,
    checkpoint: &Checkpoint,
) -> Result<()> {
    let scope_count = interner.scopes_len();
    let mut stored = StoredAggregates::of(storage, &checkpoint.runs)?;
    while let Some((key, state)) = stored.next(storage)? {
        let AggregateKey { item, scope, signal_type } = key;
        let what = || {
            format!(
                "the stored aggregate of item {item}, scope {} and signal type {}",
                scope.0, signal_type.0
            )
        };
        let declared = schema.signal_type_by_id(signal_type).filter(|_| scope.0 < scope_count);
        let Some(declared) = declared else {
            let what = format!("{} is of a scope or type that is not stored", what());
            return Err(Error::damaged_view(what, None));
        };
        if state.has_windows() != declared.is_windowed {
            let kept = if state.has_windows() { "has windows" } else { "has no windows" };
            let what = format!("{} {kept}, but its type says otherwise", what());
            return Err(Error::damaged_view(what, None));
        }
        view.restore(key, state);
    }
    Ok(())
}

/// Adds the signals after the checkpoint to the scopes that took them.
fn replay_log(
    storage: &Storage,
    schema: &Schema,
    interner: &Interner,
    view: &mut AggregateView,
    checkpoint: &Checkpoint,
) -> Result<Replayed> {
    let mut replayed = Replayed { withheld: checkpoint.withheld, ..Replayed::default() };
    replayed.last_sequence = visit_entries(
        storage,
        checkpoint.floor,
        |sequence, entry| {
            replayed.entries += 1;
            let LogEntry::Signal(signal) = entry else { return Ok(()) };
            if let Some(reason) = signal.withheld {
                replayed.withheld.add(reason);
            }
            for_each_aggregate(schema, interner, sequence, &signal, |key, contribution| {
                view.add(key, contribution);
            })
        },
        |_| false,
    )?;
    Ok(replayed)
}

/// Tells every aggregate that took `signal`, and what it contributes.
pub(crate) fn for_each_aggregate(
    schema: &Schema,
    interner: &Interner,
    sequence: u64,
    signal: &SignalEntry,
    mut visit: impl FnMut(AggregateKey, &Contribution),
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
    let contribution = declared.contribution(signal.weight, signal.event_time_ns);
    let global = std::iter::once(&ScopeId::GLOBAL);
    for scope in global.chain(&scope_set.cohorts).chain(&scope_set.communities) {
        visit(
            AggregateKey { scope: *scope, signal_type: signal.signal_type, item: signal.item },
            &contribution,
        );
    }
    Ok(())
}
