//! The stored aggregates: what all runs of the checkpoint say, added up aggregate by aggregate.

use std::collections::VecDeque;

use tidal_entities::{
    AggregateKey, AggregateRow, AggregateRun, AggregateState, ScopeId, SignalTypeId, aggregate_row_key,
};
use tidal_keys::Tag;
use tidal_storage::{Scan, Storage};

use crate::{Error, Result};

/// The rows of one run in order.
#[derive(Debug)]
struct RunRows {
    run: AggregateRun,
    /// None until more is asked for.
    rows: Option<Scan>,
    reached: Option<AggregateKey>,
    found_count: u64,
}

impl RunRows {
    fn of(run: &AggregateRun) -> Self {
        Self { run: *run, rows: None, reached: None, found_count: 0 }
    }

    /// What is read of the store as it is now, or as it was when it was opened.
    fn open(&mut self, storage: &Storage) -> Result<&mut Scan> {
        let rows = match self.rows.take() {
            Some(rows) => rows,
            None => scan_after(storage, &self.run, self.reached)?,
        };
        Ok(self.rows.insert(rows))
    }

    /// Lets go of what the store was; the next row is read of what it is then.
    fn let_go(&mut self) {
        self.rows = None;
    }

    /// The next row, if there is one.
    fn next_row(&mut self, storage: &Storage) -> Result<Option<AggregateRow>> {
        let AggregateRun { number, aggregate_count, last, .. } = self.run;
        if self.reached == Some(last) {
            return if self.found_count == aggregate_count { Ok(None) } else { Err(self.missing()) };
        }
        let undecodable = |cause| {
            let what = format!("a row of run {number} of stored aggregates does not decode");
            Error::damaged_view(what, Some(cause))
        };
        let Some((key, value)) = self.open(storage)?.next_row()? else { return Err(self.missing()) };
        let row = AggregateRow::decode(key, value).map_err(undecodable)?;
        if row.run() != number || row.previous() != self.reached || row.last() > last {
            return Err(self.missing());
        }
        self.reached = Some(row.last());
        self.found_count += row.aggregates().len() as u64;
        Ok(Some(row))
    }

    fn missing(&self) -> Error {
        let what = match self.reached {
            None => "its first row".to_owned(),
            Some(AggregateKey { item, scope, signal_type }) => {
                format!(
                    "a row or its end after item {item}, scope {}, signal type {}",
                    scope.0, signal_type.0
                )
            }
        };
        let number = self.run.number;
        Error::damaged_view(format!("run {number} of stored aggregates lacks {what}, or has too many"), None)
    }
}

fn scan_after(storage: &Storage, run: &AggregateRun, reached: Option<AggregateKey>) -> Result<Scan> {
    let mut start = Vec::new();
    match reached {
        None => start.extend_from_slice(&aggregate_row_key(run.number, LOWEST)),
        // The next key after this one.
        Some(reached) => {
            start.extend_from_slice(&aggregate_row_key(run.number, reached));
            start.push(0);
        }
    }
    Ok(storage.items_engine().scan_tag_from(Tag::SignalState, &start)?)
}

const LOWEST: AggregateKey = AggregateKey { item: 0, scope: ScopeId::GLOBAL, signal_type: SignalTypeId(0) };

/// One of the runs that are added up.
#[derive(Debug)]
struct Input {
    /// None once they were all read.
    rows: Option<RunRows>,
    aggregates: VecDeque<(AggregateKey, AggregateState)>,
}

/// Several runs, added up.
#[derive(Debug)]
pub(crate) struct StoredAggregates {
    inputs: Vec<Input>,
    /// None if everything is read of one state of the store.
    rows_at_a_time: Option<usize>,
}

impl StoredAggregates {
    /// These runs as they are now. As long as it is held, pages of the store that are given up are not used again.
    pub(crate) fn of(storage: &Storage, runs: &[AggregateRun]) -> Result<Self> {
        let mut sums = Self { inputs: runs.iter().map(Input::of).collect(), rows_at_a_time: None };
        for rows in sums.inputs.iter_mut().filter_map(|input| input.rows.as_mut()) {
            rows.open(storage)?;
        }
        Ok(sums)
    }

    /// The same runs, for whoever takes long and makes sure that none is removed meanwhile: so many rows of one are
    /// read at once, and no state of the store is held in between.
    pub(crate) fn in_steps(runs: &[AggregateRun], rows_at_a_time: usize) -> Self {
        Self { inputs: runs.iter().map(Input::of).collect(), rows_at_a_time: Some(rows_at_a_time) }
    }

    /// The next aggregate, in ascending order of keys.
    pub(crate) fn next(&mut self, storage: &Storage) -> Result<Option<(AggregateKey, AggregateState)>> {
        let mut lowest: Option<AggregateKey> = None;
        for input in &mut self.inputs {
            if let Some(key) = input.head(storage, self.rows_at_a_time)?
                && lowest.is_none_or(|lowest| key < lowest)
            {
                lowest = Some(key);
            }
        }
        let Some(key) = lowest else { return Ok(None) };
        let mut sum: Option<AggregateState> = None;
        for state in self.inputs.iter_mut().filter_map(|input| input.take(key)) {
            match &mut sum {
                None => sum = Some(state),
                Some(sum) => sum.merge(&state),
            }
        }
        Ok(sum.map(|sum| (key, sum)))
    }
}

impl Input {
    fn of(run: &AggregateRun) -> Self {
        Self { rows: Some(RunRows::of(run)), aggregates: VecDeque::new() }
    }

    fn head(&mut self, storage: &Storage, rows_at_a_time: Option<usize>) -> Result<Option<AggregateKey>> {
        if self.aggregates.is_empty()
            && let Some(rows) = &mut self.rows
        {
            for _ in 0..rows_at_a_time.unwrap_or(1) {
                let Some(row) = rows.next_row(storage)? else {
                    self.rows = None;
                    return Ok(self.front());
                };
                self.aggregates.extend(row.into_aggregates());
            }
            if rows_at_a_time.is_some() {
                rows.let_go();
            }
        }
        Ok(self.front())
    }

    fn front(&self) -> Option<AggregateKey> {
        self.aggregates.front().map(|(key, _)| *key)
    }

    fn take(&mut self, key: AggregateKey) -> Option<AggregateState> {
        if self.aggregates.front()?.0 != key {
            return None;
        }
        self.aggregates.pop_front().map(|(_, state)| state)
    }
}

#[cfg(test)]
mod tests;
