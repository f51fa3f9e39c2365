//! The rows beneath: the log, the runs and their index.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tidal_db::{HistoryEvent, Storage, TidalDb};
use tidal_entities::{
    LogEntry, LogRow, RunIndex, RunPlace, decode_run_index, parse_run_row_key, run_index_key, run_row_key,
};
use tidal_keys::Tag;

/// The signals of each user.
pub type Signals = BTreeMap<u64, Vec<HistoryEvent>>;

pub fn shown(db: &TidalDb, user: u64) -> tidal_db::Result<Vec<HistoryEvent>> {
    db.history(user)?.collect()
}

/// What the log on disk says, read row by row.
pub fn logged(storage: &Storage) -> Signals {
    let mut signals = Signals::new();
    for row in storage.system_engine().scan_tag(Tag::Event).unwrap() {
        let (key, value) = row.unwrap();
        for entry in LogRow::decode(&key, &value).unwrap().entries() {
            let (sequence, LogEntry::Signal(signal)) = entry.unwrap() else { continue };
            signals.entry(signal.user).or_default().push(HistoryEvent {
                sequence,
                item: signal.item,
                signal_type: "view".to_owned(),
                weight: signal.weight,
                event_time_ns: signal.event_time_ns,
                withheld: signal.withheld,
            });
        }
    }
    signals
}

pub fn index(storage: &Storage) -> RunIndex {
    let key = run_index_key();
    let value = storage.system_engine().get(&key).unwrap();
    value.map_or_else(RunIndex::default, |value| decode_run_index(&key, &value).unwrap())
}

/// Key and value of every row of every run.
pub fn run_rows(storage: &Storage) -> Vec<(Vec<u8>, Vec<u8>)> {
    let start = run_row_key(1, RunPlace::START);
    let rows = storage.system_engine().scan_tag_from(Tag::MaterializedView, &start).unwrap();
    rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// The numbers of all runs that have rows.
pub fn run_numbers(storage: &Storage) -> BTreeSet<u64> {
    run_rows(storage).iter().map(|(key, _)| parse_run_row_key(key).unwrap().0).collect()
}

/// Waits until there is nothing to make, to merge or to remove.
pub fn wait_until_tidy(storage: &Storage, run_entries: u64) {
    let patience = Instant::now();
    loop {
        let now = index(storage);
        let last = storage.system_engine().last(Tag::Event).unwrap();
        let last_sequence =
            last.map_or(0, |(key, value)| LogRow::decode(&key, &value).unwrap().next_sequence() - 1);
        let mut levels = BTreeMap::<u8, usize>::new();
        for run in &now.runs {
            *levels.entry(run.level).or_default() += 1;
        }
        let whole: BTreeSet<u64> = now.runs.iter().map(|run| run.number).collect();
        if last_sequence.saturating_sub(now.through) < run_entries
            && levels.values().all(|runs| *runs < 8)
            && run_numbers(storage) == whole
        {
            return;
        }
        assert!(patience.elapsed() < Duration::from_secs(60), "runs are not tidy: {now:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
