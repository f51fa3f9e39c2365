//! Damage to what only repeats the log, which an open refuses or a history names, until it is made anew.

use tidal_db::{Error, Storage};
use tidal_entities::{
    RunPlace, checkpoint_key, decode_checkpoint, parse_aggregate_row_key, run_index_key, run_row_key,
};
use tidal_keys::Tag;
use tidal_storage::{Partition, WriteBatch};

use super::compare::{Same, ok};

/// Which row is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Aggregate,
    Checkpoint,
    RunIndex,
    /// A row that may be of a run that the index no longer names.
    RunRow,
}

/// Cuts the first row of its kind short. Returns whether there was one.
pub fn damage(storage: &Storage, view: View) -> Same<bool> {
    let system = storage.system_engine();
    let (partition, row) = match view {
        View::Aggregate => {
            // Rows of other runs count for nothing.
            let key = checkpoint_key();
            let checkpoint =
                ok("get", system.get(&key))?.map(|value| decode_checkpoint(&key, &value).unwrap());
            let runs = checkpoint.unwrap_or_default().runs;
            let rows = ok("scan", storage.items_engine().scan_tag(Tag::SignalState))?;
            let keys = rows.map(|row| row.unwrap().0);
            let is_named = |key: &[u8]| {
                let (number, _) = parse_aggregate_row_key(key).unwrap();
                runs.iter().any(|run| run.number == number)
            };
            (Partition::Items, keys.map(|key| key.to_vec()).find(|key| is_named(key)))
        }
        View::RunRow => {
            let start = run_row_key(1, RunPlace::START);
            let mut rows = ok("scan", system.scan_tag_from(Tag::MaterializedView, &start))?;
            (Partition::System, ok("scan", rows.next().transpose())?.map(|(key, _)| key.to_vec()))
        }
        View::Checkpoint => (Partition::System, is_there(storage, &checkpoint_key())?),
        View::RunIndex => (Partition::System, is_there(storage, &run_index_key())?),
    };
    let Some(key) = row else { return Ok(false) };
    let mut change = WriteBatch::new();
    change.put(partition, &key, b"cut");
    ok("the damage", storage.commit(change))?;
    Ok(true)
}

fn is_there(storage: &Storage, key: &[u8]) -> Same<Option<Vec<u8>>> {
    Ok(ok("get", storage.system_engine().get(key))?.map(|_| key.to_vec()))
}

/// Whether it is only a view that is damaged.
pub fn is_of_a_view(error: &Error) -> bool {
    matches!(error, Error::DamagedView { .. })
}
