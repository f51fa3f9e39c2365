//! Several runs of aggregates become one, a slice at a time.

use tidal_entities::AggregateRun;
use tidal_storage::{Storage, WriteBatch};

use crate::aggregate_output::AggregateOutput;
use crate::give_way::GiveWay;
use crate::stored_aggregates::StoredAggregates;
use crate::{Error, Result};

/// A run is merged with all after it once it is at most so many times as long as these together. So when no merge is
/// due, the whole is at most half again as long as its longest run, and each run more than twice as long as the next.
const GROWTH: u64 = 2;

/// Rows read of a run at a time. A scan held for longer would keep old pages from being used again.
const ROWS_AT_A_TIME: usize = 4;

/// The first of the runs that are to become one, up to the last.
pub(crate) fn first_to_merge(runs: &[AggregateRun]) -> Option<usize> {
    let mut bytes_after = 0_u64;
    let mut first = None;
    for (position, run) in runs.iter().enumerate().rev() {
        if bytes_after > 0 && run.byte_count <= bytes_after.saturating_mul(GROWTH) {
            first = Some(position);
        }
        bytes_after = bytes_after.saturating_add(run.byte_count);
    }
    first
}

/// What one step of a merge leads to.
#[derive(Debug)]
pub(crate) enum Merged {
    /// A slice of the new run, and what is left to do.
    Slice(WriteBatch, AggregateMerge),
    /// The last slice, the new run, and the numbers of those that it replaces.
    Whole(WriteBatch, AggregateRun, Vec<u64>),
}

/// A merge under way.
#[derive(Debug)]
pub(crate) struct AggregateMerge {
    replaced: Vec<u64>,
    sums: StoredAggregates,
    output: AggregateOutput,
}

impl AggregateMerge {
    pub(crate) fn new(runs: &[AggregateRun], output: AggregateOutput) -> Self {
        let replaced = runs.iter().map(|run| run.number).collect();
        Self { replaced, sums: StoredAggregates::in_steps(runs, ROWS_AT_A_TIME), output }
    }

    /// Goes on for one slice.
    pub(crate) fn step(mut self, storage: &Storage) -> Result<Merged> {
        let mut give_way = GiveWay::default();
        while let Some((key, sum)) = self.sums.next(storage)? {
            give_way.step();
            if let Some(slice) = self.output.push(key, &sum) {
                return Ok(Merged::Slice(slice, self));
            }
        }
        let (slice, run) = self.output.finish();
        let run = run.ok_or_else(|| Error::damaged_view("runs of stored aggregates are empty", None))?;
        Ok(Merged::Whole(slice, run, self.replaced))
    }
}

#[cfg(test)]
mod tests {
    use tidal_entities::{AggregateKey, AggregateRun, ScopeId, SignalTypeId};

    use super::first_to_merge;

    fn runs(lens: &[u64]) -> Vec<AggregateRun> {
        let last = AggregateKey { item: 1, scope: ScopeId::GLOBAL, signal_type: SignalTypeId(0) };
        let run =
            |byte_count: &u64| AggregateRun { number: 1, aggregate_count: 1, byte_count: *byte_count, last };
        lens.iter().map(run).collect()
    }

    #[test]
    fn a_run_is_merged_when_what_came_after_is_half_as_long() {
        for (lens, expected) in [
            (&[][..], None),
            (&[9], None),
            (&[9, 4], None),
            (&[9, 5], Some(0)),
            (&[100, 9, 5], Some(1)),
            (&[100, 20, 4, 2], Some(2)),
            (&[30, 9, 4, 2], Some(0)),
            (&[5, 100], Some(0)),
            (&[u64::MAX, u64::MAX, u64::MAX], Some(0)),
        ] {
            assert_eq!(first_to_merge(&runs(lens)), expected, "{lens:?}");
        }
    }
}
