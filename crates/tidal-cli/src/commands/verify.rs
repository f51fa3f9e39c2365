//! `tidal verify`: everything stored, against what the log says.

use std::fmt;

use clap::Args;
use serde::Serialize;

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
                "the database differs from its log in {differences} places; restore it from a backup, and report this"
            )))
        })
    }
}
