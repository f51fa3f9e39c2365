//! Whether checkpoints and runs have followed the log: what is measured next shall not pay for what was before.

use std::time::{Duration, Instant};

use tidal_db::{Storage, TidalDb};
use tidal_entities::{checkpoint_key, decode_checkpoint, decode_run_index, run_index_key};

/// A checkpoint begins at a quarter of the entries that an open may have to read.
const CHECKPOINT_ENTRIES: u64 = tidal_db::DEFAULT_RECOVERY_ENTRIES / 4;
const RUN_ENTRIES: u64 = 32_768;
const MERGED_RUNS: usize = 8;
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
    }
    began.elapsed()
}

fn is_behind(db: &TidalDb, storage: &Storage) -> bool {
    let system = storage.system_engine();
    let key = checkpoint_key();
    let floor = system.get(&key).unwrap().map_or(0, |value| decode_checkpoint(&key, &value).unwrap().floor);
    let key = run_index_key();
    let runs =
        system.get(&key).unwrap().map(|value| decode_run_index(&key, &value).unwrap()).unwrap_or_default();
    let last = db.durable_sequence();
    let is_mergeable =
        (0..16).any(|level| runs.runs.iter().filter(|run| run.level == level).count() >= MERGED_RUNS);
    is_mergeable
        || last.saturating_sub(floor) >= CHECKPOINT_ENTRIES
        || last.saturating_sub(runs.through) >= RUN_ENTRIES + SLACK_ENTRIES
}
