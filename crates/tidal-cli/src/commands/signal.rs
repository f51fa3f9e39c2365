//! `tidal signal`: records one act.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tidal_db::Weight;

use crate::database::Database;
use crate::failure::{Failure, explain_with_declared};
use crate::id::parse_id;
use crate::output::Output;

/// Record one act of a user on an item, now
#[derive(Args, Debug)]
pub(crate) struct RecordSignal {
    /// Who acts
    #[arg(value_parser = parse_id)]
    user: u64,
    /// On what
    #[arg(value_parser = parse_id)]
    item: u64,
    /// The signal type, as declared in the schema
    #[arg(value_name = "TYPE")]
    signal_type: String,
    /// How much it counts: a decimal number from -1e9 to 1e9, rounded to 1e-9
    #[arg(default_value = "1", allow_negative_numbers = true)]
    weight: Weight,
    #[command(flatten)]
    database: Database,
}

/// What became of it.
#[derive(Serialize)]
struct Receipt {
    cohorts: u32,
    communities: u32,
    withheld: Option<&'static str>,
}

impl fmt::Display for Receipt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.withheld {
            Some(reason) => write!(formatter, "recorded, but withheld: {reason}"),
            None => {
                write!(formatter, "recorded; cohorts: {}, communities: {}", self.cohorts, self.communities)
            }
        }
    }
}

impl RecordSignal {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.database.with(|db| {
            let receipt = db
                .signal_exact(self.user, self.item, &self.signal_type, self.weight, None)
                .map_err(|error| Failure::Failed(explain_with_declared(db, &error)))?;
            output.write(&Receipt {
                cohorts: receipt.cohorts,
                communities: receipt.communities,
                withheld: receipt.withheld.map(tidal_db::Withheld::as_str),
            })
        })
    }
}
