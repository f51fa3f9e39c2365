//! Letting go of what only repeats the log, so that it is made again from it.

use tidal_entities::{checkpoint_key, run_index_key};
use tidal_keys::Tag;
use tidal_storage::{Partition, Storage, WriteBatch};

use crate::Result;

/// Rows that one commit removes, of 16 KiB each: they are read on the way.
const SLICE_ROWS: usize = 256;

/// Removes the stored aggregates, and adds to `last` what says how far they and the runs have followed the log. If the
/// process ends in between, the checkpoint names aggregates that are gone, and an open refuses that until it rebuilds
/// as well. Rows of runs stay: without an index they count for nothing, and whoever makes runs removes them.
pub(crate) fn drop_views(storage: &Storage, last: &mut WriteBatch) -> Result<()> {
    loop {
        let mut slice = WriteBatch::new();
        for row in storage.items_engine().scan_tag(Tag::SignalState)?.take(SLICE_ROWS) {
            slice.delete(Partition::Items, &row?.0);
        }
        if slice.is_empty() {
            break;
        }
        storage.commit(slice)?;
    }
    last.delete(Partition::System, &checkpoint_key());
    last.delete(Partition::System, &run_index_key());
    Ok(())
}
