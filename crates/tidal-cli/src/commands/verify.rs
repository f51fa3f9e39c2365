//! `tidal verify`: everything stored, against what the log says.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tidal_db::DifferenceKind;

use crate::database::Database;
use crate::failure::Failure;
use crate::output::Output;

/// Recompute everything from the log and name each difference; exit code 1 if there is any
#[derive(Args, Debug)]
pub(crate) struct Verify {
    #[command(flatten)]
    database: Database,
}

/// One thing that is not what the log says.
#[derive(Serialize)]
struct Line {
    difference: String,
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.difference)
    }
}

/// How many there are.
#[derive(Serialize)]
struct Summary {
    differences: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "differences {}", self.differences)
    }
}

/// What to do about differences of these kinds.
fn way_back(mut kinds: impl Iterator<Item = DifferenceKind>) -> &'static str {
    use DifferenceKind::{Aggregate, History, Ranking, StoredAggregate};
    if kinds.all(|kind| matches!(kind, StoredAggregate | Aggregate | Ranking | History)) {
        "all of them in what only repeats the log: make it anew with 'tidal rebuild --db PATH'"
    } else {
        "restore it from a backup (users who left since must be marked as left again)"
    }
}

impl Verify {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.database.with(|db| {
            let report = db.verify()?;
            let differences = report.differences.len();
            for difference in &report.differences {
                output.write(&Line { difference: difference.to_string() })?;
            }
            output.write(&Summary { differences })?;
            if differences == 0 {
                return Ok(());
            }
            Err(Failure::Failed(format!(
                "the database differs from its log in {differences} places; {}, and report this",
                way_back(report.differences.iter().map(|difference| difference.kind))
            )))
        })
    }
}

#[cfg(test)]
mod tests {
    use tidal_db::DifferenceKind::{
        Aggregate, History, LeaveRecord, Ranking, Row, Status, StoredAggregate, Withheld,
    };

    use super::way_back;

    #[test]
    fn only_what_repeats_the_log_is_made_anew() {
        let repeats = [StoredAggregate, Aggregate, Ranking, History];
        assert!(way_back(repeats.into_iter()).contains("tidal rebuild --db PATH"));
        for other in [Row, LeaveRecord, Status, Withheld] {
            let advice = way_back([StoredAggregate, other].into_iter());
            assert!(advice.contains("backup") && !advice.contains("rebuild"), "{other:?}: {advice}");
        }
    }
}
