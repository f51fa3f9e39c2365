//! The rows of the log on disk, in order and without gaps.

use tidal_entities::{Fingerprint, LogEntry, LogRow, log_row_key};
use tidal_keys::Tag;
use tidal_storage::Storage;

use crate::{Error, Result};

/// What the last row says of the whole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogHead {
    pub(crate) last_sequence: u64,
    pub(crate) newest_time_ns: u64,
    /// Of the rows beside the log.
    pub(crate) fingerprint: Fingerprint,
}

fn undecodable(cause: tidal_entities::CodecError) -> Error {
    Error::undecodable("a row of the log does not decode", cause)
}

/// Reads the last row of the log; an empty log ends at sequence 0.
pub(crate) fn log_head(storage: &Storage) -> Result<LogHead> {
    let Some((key, value)) = storage.system_engine().last(Tag::Event)? else { return Ok(LogHead::default()) };
    let row = LogRow::decode(&key, &value).map_err(undecodable)?;
    Ok(LogHead {
        last_sequence: row.next_sequence().saturating_sub(1),
        newest_time_ns: row.newest_time_ns(),
        fingerprint: row.fingerprint(),
    })
}

/// Visits the entries after `after` up to the row in which `stop` answers true, or to the end, and
/// returns the sequence of the last. Rows begin where `after` ends, since whole rows are visited.
pub(crate) fn visit_entries(
    storage: &Storage,
    after: u64,
    mut visit: impl FnMut(u64, LogEntry) -> Result<()>,
    mut stop: impl FnMut(u64) -> bool,
) -> Result<u64> {
    let mut last_sequence = after;
    let mut newest_time_ns = 0;
    for row in storage.system_engine().scan_tag_from(Tag::Event, &log_row_key(after.saturating_add(1)))? {
        let (key, value) = row?;
        let row = LogRow::decode(&key, &value).map_err(undecodable)?;
        if row.first_sequence() != last_sequence + 1 {
            return Err(Error::damaged(format!(
                "the log goes on at sequence {} after {last_sequence}",
                row.first_sequence()
            )));
        }
        if row.newest_time_ns() < newest_time_ns {
            return Err(Error::damaged(format!(
                "the newest time steps back from {newest_time_ns} to {} ns at sequence {}",
                row.newest_time_ns(),
                row.first_sequence()
            )));
        }
        newest_time_ns = row.newest_time_ns();
        for entry in row.entries() {
            let (sequence, entry) = entry.map_err(undecodable)?;
            visit(sequence, entry)?;
            last_sequence = sequence;
        }
        if stop(last_sequence) {
            break;
        }
    }
    Ok(last_sequence)
}
