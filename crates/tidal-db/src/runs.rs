//! Runs: signals sorted by user, so that a history is found without reading the log.
//!
//! A run holds all signals of one part of the log; parts do not overlap, and what one run after the
//! other says of a user is therefore in order of delivery. Each row names the last place of the row
//! before it and the index names the last place of each run, so that a row which is gone is missed by
//! whoever would have read it.

use tidal_entities::{
    Run, RunIndex, RunPlace, RunRow, decode_run_index, parse_run_row_key, run_index_key, run_row_key,
};
use tidal_keys::Tag;
use tidal_storage::{Scan, Storage};

use crate::{Error, Result};

/// Reads which runs are whole; without a row there are none.
pub(crate) fn read_run_index(storage: &Storage) -> Result<RunIndex> {
    let key = run_index_key();
    let Some(value) = storage.system_engine().get(&key)? else { return Ok(RunIndex::default()) };
    decode_run_index(&key, &value)
        .map_err(|cause| Error::damaged_view("the index of runs does not decode", Some(cause)))
}

/// Opens all runs that are whole, as they are at one moment: what `open` makes of each. Returns up to
/// which sequence they hold every signal.
pub(crate) fn open_runs<T>(storage: &Storage, open: impl Fn(&Run) -> Result<T>) -> Result<(u64, Vec<T>)> {
    loop {
        let index = read_run_index(storage)?;
        let opened = index.runs.iter().map(&open).collect::<Result<Vec<_>>>()?;
        // Rows of a run are removed only once it is not in the index, and no number is given twice:
        // a run that is still there was whole when it was opened.
        let now = read_run_index(storage)?;
        if index.runs.iter().all(|run| now.runs.contains(run)) {
            return Ok((index.through, opened));
        }
    }
}

/// What the next row must say of the row before it.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// It ends exactly there.
    At(RunPlace),
    /// It holds nothing of this user, nor of a later one.
    User(u64),
}

/// The rows of one run in order, from a place on to the end.
#[derive(Debug)]
pub(crate) struct RunScan {
    run: Run,
    /// None if nothing of the run is asked for.
    rows: Option<Scan>,
    before: Before,
}

impl RunScan {
    /// The rows behind `place`, which must be the last of a row, or the start.
    pub(crate) fn after(storage: &Storage, run: &Run, place: RunPlace) -> Result<Self> {
        // Sequences end below 2^64 - 1.
        let next = RunPlace { sequence: place.sequence.saturating_add(1), ..place };
        Self::from(storage, run, next, Before::At(place))
    }

    /// The rows that can hold something of `user`, and those behind them.
    pub(crate) fn of_user(storage: &Storage, run: &Run, user: u64) -> Result<Self> {
        Self::from(storage, run, RunPlace { user, sequence: 0 }, Before::User(user))
    }

    fn from(storage: &Storage, run: &Run, place: RunPlace, before: Before) -> Result<Self> {
        let rows = if run.last < place {
            None
        } else {
            let key = run_row_key(run.number, place);
            Some(storage.system_engine().scan_tag_from(Tag::MaterializedView, &key)?)
        };
        Ok(Self { run: *run, rows, before })
    }

    /// The next row, if there is one.
    pub(crate) fn next_row(&mut self) -> Result<Option<RunRow>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let number = self.run.number;
        let undecodable = |cause| {
            let what = format!("a row of run {number} of signals by user does not decode");
            Error::damaged_view(what, Some(cause))
        };
        let Some((key, value)) = rows.next().transpose()? else { return Err(self.missing()) };
        if parse_run_row_key(&key).map_err(undecodable)?.0 != number {
            return Err(self.missing());
        }
        let row = RunRow::decode(&key, &value).map_err(undecodable)?;
        let follows = match self.before {
            Before::At(place) => row.previous() == place,
            Before::User(user) => row.previous() == RunPlace::START || row.previous().user < user,
        };
        if !follows || row.last() > self.run.last {
            return Err(self.missing());
        }
        self.before = Before::At(row.last());
        if row.last() == self.run.last {
            self.rows = None;
        }
        Ok(Some(row))
    }

    fn missing(&self) -> Error {
        let after = match self.before {
            Before::At(place) if place == RunPlace::START => "its first row".to_owned(),
            Before::At(place) => format!("the row after user {}, sequence {}", place.user, place.sequence),
            Before::User(user) => format!("the row of user {user}"),
        };
        let Run { number, first_sequence, last_sequence, .. } = self.run;
        let what = format!(
            "run {number} of signals by user, for sequences {first_sequence} to {last_sequence}, is not whole: \
             {after} is missing"
        );
        Error::damaged_view(what, None)
    }
}
