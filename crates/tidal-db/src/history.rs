//! A user's own history: every signal, withheld or not.
//!
//! Three places have it, one after the other in the order of delivery: the runs, in which a user's
//! signals lie together; the log on disk after them; and what is not on disk yet.

use std::collections::VecDeque;

use tidal_entities::{LogEntry, LogRow, RunEntry, Weight, Withheld, log_row_key};
use tidal_keys::Tag;
use tidal_storage::Scan;

use crate::log_writer::UndurableRows;
use crate::runs::{RunScan, open_runs};
use crate::{Error, Result, TidalDb};

/// One signal of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEvent {
    /// Its place in the order of all events and transitions.
    pub sequence: u64,
    /// What it was about.
    pub item: u64,
    /// What it was.
    pub signal_type: String,
    /// How much it weighs.
    pub weight: Weight,
    /// When it took place, ns since the Unix epoch.
    pub event_time_ns: u64,
    /// Why no cohort or community took it; `None` if it was not withheld.
    pub withheld: Option<Withheld>,
}

/// The history of one user as it was when it was asked for, in order of delivery.
#[derive(Debug)]
struct History {
    user_id: u64,
    signal_types: Vec<String>,
    runs: VecDeque<RunScan>,
    /// The log after the runs, and the sequence that its next row begins with.
    disk: Scan,
    next_sequence: u64,
    /// Entries up to here are read from disk, later ones from memory.
    durable_sequence: u64,
    memory: VecDeque<(Vec<u8>, Vec<u8>)>,
    found: VecDeque<HistoryEvent>,
    ended: bool,
}

impl History {
    /// Reads the next row of the first of the runs that are left.
    fn take_run_row(&mut self, run: &mut RunScan) -> Result<bool> {
        let Some(row) = run.next_row()? else { return Ok(false) };
        let user_id = self.user_id;
        let entries = row.entries();
        let start = entries.partition_point(|entry| entry.place.user < user_id);
        for entry in entries.iter().skip(start).take_while(|entry| entry.place.user == user_id) {
            if entry.place.sequence <= self.durable_sequence {
                self.take(entry)?;
            }
        }
        Ok(row.last().user <= user_id)
    }

    fn take_log_row(&mut self, key: &[u8], value: &[u8], from_disk: bool) -> Result<()> {
        let undecodable = |cause| Error::undecodable("a row of the log does not decode", cause);
        let row = LogRow::decode(key, value).map_err(undecodable)?;
        if from_disk {
            if row.first_sequence() != self.next_sequence {
                return Err(self.gap());
            }
            self.next_sequence = row.next_sequence();
        }
        for entry in row.entries() {
            let (sequence, entry) = entry.map_err(undecodable)?;
            let LogEntry::Signal(signal) = entry else { continue };
            if signal.user == self.user_id && (sequence <= self.durable_sequence) == from_disk {
                self.take(&RunEntry::new(sequence, &signal))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, entry: &RunEntry) -> Result<()> {
        let (sequence, index) = (entry.place.sequence, usize::from(entry.signal_type.0));
        let signal_type = self.signal_types.get(index).cloned().ok_or_else(|| {
            Error::damaged(format!(
                "the entry at sequence {sequence} names signal type {index}, which is not in the schema"
            ))
        })?;
        self.found.push_back(HistoryEvent {
            sequence,
            item: entry.item,
            signal_type,
            weight: entry.weight,
            event_time_ns: entry.event_time_ns,
            withheld: entry.withheld,
        });
        Ok(())
    }

    fn gap(&self) -> Error {
        Error::damaged(format!(
            "the row of the log that begins at sequence {} is missing",
            self.next_sequence
        ))
    }

    /// Reads one more row; `false` at the end.
    fn read_on(&mut self) -> Result<bool> {
        if let Some(mut run) = self.runs.pop_front() {
            if self.take_run_row(&mut run)? {
                self.runs.push_front(run);
            }
            return Ok(true);
        }
        if let Some(row) = self.disk.next() {
            let (key, value) = row?;
            self.take_log_row(&key, &value, true)?;
            return Ok(true);
        }
        if self.next_sequence <= self.durable_sequence {
            return Err(self.gap());
        }
        let Some((key, value)) = self.memory.pop_front() else { return Ok(false) };
        self.take_log_row(&key, &value, false)?;
        Ok(true)
    }
}

impl Iterator for History {
    type Item = Result<HistoryEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.found.pop_front() {
                return Some(Ok(event));
            }
            if self.ended {
                return None;
            }
            match self.read_on() {
                Ok(more) => self.ended = !more,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl TidalDb {
    /// All signals of `user_id` in order of delivery, those included that are not on disk yet, as
    /// they are at the moment of the call. On disk it reads little more than what it returns, and the
    /// newest part of the log: some 32,768 entries, or more while the background work catches up with
    /// many signals at once. Of a database that is never on disk it reads the whole log.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], [`Error::Storage`], [`Error::Damaged`], [`Error::DamagedView`] for a run that is damaged; the
    /// iterator ends after its first error.
    pub fn history(&self, user_id: u64) -> Result<impl Iterator<Item = Result<HistoryEvent>> + use<>> {
        self.inner.log.check_open()?;
        // Memory first: what is committed in between is then read from memory, not twice.
        let UndurableRows { durable_sequence, in_flight, pending } = self.inner.log.undurable_rows();
        let storage = &self.inner.storage;
        let (through, runs) = open_runs(storage, |run| RunScan::of_user(storage, run, user_id))?;
        let next_sequence = through.saturating_add(1);
        let disk = storage.system_engine().scan_tag_from(Tag::Event, &log_row_key(next_sequence))?;
        let in_flight = in_flight.iter().flat_map(|rows| rows.iter().cloned());
        let memory = in_flight.chain(pending).map(|(key, value)| (key.as_ref().to_vec(), value)).collect();
        let signal_types =
            self.inner.schema.signal_types().iter().map(|declared| declared.name.clone()).collect();
        Ok(History {
            user_id,
            signal_types,
            runs: runs.into(),
            disk,
            next_sequence,
            durable_sequence,
            memory,
            found: VecDeque::new(),
            ended: false,
        })
    }
}
