//! The log as it is on disk is the order of everything: run through the plain model, it says what
//! every answer and every aggregate must have been.

use std::collections::HashMap;
use std::sync::Arc;

use tidal_db::{Action, Event, SignalReceipt, Storage, Withheld};
use tidal_entities::{LogEntry, LogRow, SignalEntry};
use tidal_keys::Tag;
use tidal_storage::MemoryMedium;

use crate::compare::{Same, ok, same};
use crate::oracle::{Oracle, Source, When};

/// What was sent, by its weight in 1e-9, which no other signal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub when: When,
    /// `None` for events of a source, which get no receipt each.
    pub receipt: Option<SignalReceipt>,
}

pub type AllSent = HashMap<i64, Sent>;

/// Reads the log of a file, and builds what the database must be from it. Checks on the way that
/// the order it tells is one in which every promise was kept.
pub fn oracle_of(image: &[u8], sent: &AllSent) -> Same<Oracle> {
    let medium = Arc::new(MemoryMedium::from_bytes(image.to_vec()));
    let storage = ok("open_on", Storage::options().open_on(medium))?;
    let mut oracle = Oracle::default();
    for row in ok("scan_tag", storage.system_engine().scan_tag(Tag::Event))? {
        let (key, value) = ok("a row of the log", row)?;
        for entry in ok("a row of the log", LogRow::decode(&key, &value))?.entries() {
            let (sequence, entry) = ok("an entry of the log", entry)?;
            take(&mut oracle, entry, sent).map_err(|said| format!("sequence {sequence}: {said}"))?;
        }
    }
    Ok(oracle)
}

fn take(oracle: &mut Oracle, entry: LogEntry, sent: &AllSent) -> Same {
    match entry {
        LogEntry::Signal(signal) => return take_signal(oracle, &signal, sent),
        LogEntry::Leave { user, at_ns } => {
            same(|| format!("whether {user}, who leaves, had left"), &oracle.user(user).left, &false)?;
            oracle.leave(user, at_ns);
        }
        LogEntry::Rejoin { user, at_ns } => {
            same(|| format!("whether {user}, who rejoins, had left"), &oracle.user(user).left, &true)?;
            oracle.rejoin(user, at_ns);
        }
        LogEntry::Join { user, community, at_ns } => {
            let was_in = oracle.user(user).communities.contains(&community);
            same(|| format!("whether {user}, who joins {community}, was in it"), &was_in, &false)?;
            oracle.join(user, community, at_ns);
        }
        LogEntry::Quit { user, community, at_ns } => {
            let was_in = oracle.user(user).communities.contains(&community);
            same(|| format!("whether {user}, who quits {community}, was in it"), &was_in, &true)?;
            oracle.quit(user, community, at_ns);
        }
        LogEntry::SetAttribute { user, at_ns, name, value } => {
            ok("an attribute of the log", oracle.set_attribute(user, &name, &value, at_ns))?;
        }
        LogEntry::SourcePosition { source, first_position, position, .. } => {
            let stand_in = Event { at_ns: 0, action: Action::Leave { user: 0 } };
            oracle.sources.insert(source, Source { first_position, applied: vec![(position, stand_in)] });
        }
        other => return Err(format!("an unknown entry: {other:?}")),
    }
    Ok(())
}

fn take_signal(oracle: &mut Oracle, signal: &SignalEntry, sent: &AllSent) -> Same {
    let SignalEntry { user, item, weight, event_time_ns, withheld, .. } = *signal;
    let sent = sent.get(&weight.nanos()).copied();
    // Of a signal whose call a crash cut off, only the time is known.
    let when = sent.map_or(When::At(event_time_ns), |sent| sent.when);
    let gate = oracle.gate(user, when);
    // A rejoin lets signals flow when it returns, which is later than its place in the order.
    let rejoin_under_way = withheld == Some(Withheld::Left) && !oracle.user(user).transitions.is_empty();
    let unknown_kind = sent.is_none() && withheld.is_none() && gate == Some(Withheld::AwayPeriod);
    if withheld != gate && !rejoin_under_way && !unknown_kind {
        return Err(format!("{signal:?} was withheld as {withheld:?}, and the order says {gate:?}"));
    }
    let kind = usize::from(signal.signal_type.0);
    let receipt = oracle.record(user, item, kind, weight.nanos(), event_time_ns, withheld);
    let Some(answer) = sent.and_then(|sent| sent.receipt) else { return Ok(()) };
    let shown = (answer.cohorts as usize, answer.communities as usize, answer.withheld);
    let expected = (receipt.cohorts, receipt.communities, receipt.withheld);
    same(|| format!("the receipt of {signal:?}"), &shown, &expected)
}
