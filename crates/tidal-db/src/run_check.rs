//! The runs against the log: every signal once, under its user. Counts and sums of hashes tell whether
//! a run is right; only of one that is not, the signals are compared one by one.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use tidal_entities::{LogEntry, Run, RunEntry, RunPlace, SignalEntry};
use tidal_storage::Storage;

use crate::log_rows::visit_entries;
use crate::runs::{RunScan, open_runs};
use crate::{Error, Result};

/// Signals of one run that are named one by one.
const NAMED_SIGNALS: usize = 8;

/// What a set of signals comes to, in whatever order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    count: u64,
    sum: u64,
}

impl Tally {
    fn add(&mut self, entry: &RunEntry) {
        let mut hasher = DefaultHasher::new();
        entry.hash(&mut hasher);
        self.count += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

#[derive(Debug)]
struct CheckedRun {
    run: Run,
    /// What its rows hold, or why they cannot be read.
    stored: std::result::Result<Tally, String>,
    logged: Tally,
}

/// All runs at one moment, and what the log says of their parts.
#[derive(Debug, Default)]
pub(crate) struct CheckedRuns {
    through: u64,
    runs: Vec<CheckedRun>,
    /// The run that the log has come to.
    current: usize,
    /// The first signal that no run has a part for.
    in_no_run: Option<RunPlace>,
}

impl CheckedRuns {
    /// Reads every row of every run.
    pub(crate) fn read(storage: &Storage) -> Result<Self> {
        let (through, opened) =
            open_runs(storage, |run| Ok((*run, RunScan::after(storage, run, RunPlace::START)?)))?;
        let mut runs = Vec::new();
        for (run, rows) in opened {
            let stored = match tally(rows) {
                Ok(tally) => Ok(tally),
                Err(error @ Error::DamagedView { .. }) => Err(with_cause(&error)),
                Err(error) => return Err(error),
            };
            runs.push(CheckedRun { run, stored, logged: Tally::default() });
        }
        Ok(Self { through, runs, ..Self::default() })
    }

    /// Takes in the next signal of the log.
    pub(crate) fn note(&mut self, sequence: u64, signal: &SignalEntry) {
        if sequence > self.through {
            return;
        }
        while self.runs.get(self.current).is_some_and(|checked| checked.run.last_sequence < sequence) {
            self.current += 1;
        }
        let entry = RunEntry::new(sequence, signal);
        match self.runs.get_mut(self.current) {
            Some(checked) if checked.run.first_sequence <= sequence => checked.logged.add(&entry),
            _ => {
                self.in_no_run.get_or_insert(entry.place);
            }
        }
    }

    /// Names what differs, once the log was taken in.
    pub(crate) fn differences(self, storage: &Storage) -> Result<Vec<String>> {
        let mut differences = Vec::new();
        if let Some(RunPlace { user, sequence }) = self.in_no_run {
            differences.push(format!(
                "runs go up to sequence {}, but none is for the signal of user {user} at sequence {sequence}",
                self.through
            ));
        }
        for CheckedRun { run, stored, logged } in self.runs {
            match stored {
                Err(cause) => differences.push(cause),
                Ok(stored) if stored == logged && stored.count == run.entry_count => {}
                Ok(stored) => {
                    differences.push(format!(
                        "run {}, for sequences {} to {}, holds {} signals, {} in the index, and {} in the log \
                         or others than these",
                        run.number,
                        run.first_sequence,
                        run.last_sequence,
                        stored.count,
                        run.entry_count,
                        logged.count
                    ));
                    name_signals(storage, &run, &mut differences)?;
                }
            }
        }
        Ok(differences)
    }
}

fn tally(mut rows: RunScan) -> Result<Tally> {
    let mut tally = Tally::default();
    while let Some(row) = rows.next_row()? {
        row.entries().iter().for_each(|entry| tally.add(entry));
    }
    Ok(tally)
}

/// Compares one run signal by signal. One that was merged meanwhile is not there to be compared.
fn name_signals(storage: &Storage, run: &Run, differences: &mut Vec<String>) -> Result<()> {
    let open =
        |other: &Run| (other == run).then(|| RunScan::after(storage, other, RunPlace::START)).transpose();
    let Some(mut rows) = open_runs(storage, open)?.1.into_iter().flatten().next() else { return Ok(()) };
    let mut logged = BTreeMap::new();
    visit_entries(
        storage,
        run.first_sequence.saturating_sub(1),
        |sequence, entry| {
            if let LogEntry::Signal(signal) = entry {
                let entry = RunEntry::new(sequence, &signal);
                logged.insert(entry.place, entry);
            }
            Ok(())
        },
        |sequence| sequence >= run.last_sequence,
    )?;
    let place = |RunPlace { user, sequence }| format!("the signal of user {user} at sequence {sequence}");
    let mut named = Vec::new();
    while let Some(row) = rows.next_row()? {
        for entry in row.entries() {
            if logged.remove(&entry.place).as_ref() != Some(entry) {
                named.push(format!("{} in run {} is not what the log says", place(entry.place), run.number));
            }
        }
    }
    named.extend(logged.into_keys().map(|at| format!("{} is missing in run {}", place(at), run.number)));
    let unnamed = named.len().saturating_sub(NAMED_SIGNALS);
    differences.extend(named.into_iter().take(NAMED_SIGNALS));
    if unnamed > 0 {
        differences.push(format!("{unnamed} more signals of run {} differ", run.number));
    }
    Ok(())
}

pub(crate) fn with_cause(error: &Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
