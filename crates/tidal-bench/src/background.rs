//! Whether checkpoints and runs have followed the log: what is measured next shall not pay for what was before.

use std::time::{Duration, Instant};

use tidal_db::{Storage, TidalDb};
use tidal_entities::{AggregateRun, checkpoint_key, decode_checkpoint, decode_run_index, run_index_key};

/// A checkpoint begins at a quarter of the entries that an open may have to read.
const CHECKPOINT_ENTRIES: u64 = tidal_db::DEFAULT_RECOVERY_ENTRIES / 4;
const RUN_ENTRIES: u64 = 32_768;
const MERGED_RUNS: usize = 8;
/// A run of aggregates is merged with those after it until it is more than so many times as long.
const AGGREGATE_GROWTH: u64 = 2;
/// A row of the log and more: what may be left over without anything to do.
const SLACK_ENTRIES: u64 = 8_192;
const PATIENCE: Duration = Duration::from_secs(600);

/// Brings everything to disk, and waits until nothing is left to do in the background. Returns how long
/// that took.
///
/// # Panics
///
/// If that takes ten minutes.
#[allow(clippy::must_use_candidate, reason = "most callers only want it done")]
pub fn wait_until_caught_up(db: &TidalDb, storage: &Storage) -> Duration {
    let began = Instant::now();
    db.flush().unwrap();
    while is_behind(db, storage) {
        assert!(began.elapsed() < PATIENCE, "checkpoints and runs do not catch up");
        std::thread::sleep(Duration::from_millis(5));
        // Writes nothing, and says so if what is done in the background has failed.
        db.flush().unwrap();
    }
    began.elapsed()
}

fn is_behind(db: &TidalDb, storage: &Storage) -> bool {
    let system = storage.system_engine();
    let key = checkpoint_key();
    let checkpoint =
        system.get(&key).unwrap().map(|value| decode_checkpoint(&key, &value).unwrap()).unwrap_or_default();
    let key = run_index_key();
    let runs =
        system.get(&key).unwrap().map(|value| decode_run_index(&key, &value).unwrap()).unwrap_or_default();
    let last = db.durable_sequence();
    let is_mergeable =
        (0..16).any(|level| runs.runs.iter().filter(|run| run.level == level).count() >= MERGED_RUNS);
    is_mergeable
        || are_mergeable(&checkpoint.runs)
        || last.saturating_sub(checkpoint.floor) >= CHECKPOINT_ENTRIES
        || last.saturating_sub(runs.through) >= RUN_ENTRIES + SLACK_ENTRIES
}

fn are_mergeable(runs: &[AggregateRun]) -> bool {
    let mut bytes_after = 0;
    runs.iter().rev().any(|run| {
        let is_short = bytes_after > 0 && run.byte_count <= AGGREGATE_GROWTH * bytes_after;
        bytes_after += run.byte_count;
        is_short
    })
}
