//! `tidal rebuild`: what only repeats the log, made anew from it.

use std::fmt;

use clap::Args;
use serde::Serialize;

use crate::database::Database;
use crate::failure::Failure;
use crate::output::Output;

/// Make stored aggregates and histories anew from the log; nobody's status changes
#[derive(Args, Debug)]
pub(crate) struct Rebuild {
    #[command(flatten)]
    database: Database,
}

/// What was done.
#[derive(Serialize)]
struct Summary {
    entries: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "made anew from {} entries of the log", self.entries)
    }
}

impl Rebuild {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.database.with_rebuilt(|db| output.write(&Summary { entries: db.open_report().replayed_entries }))
    }
}
