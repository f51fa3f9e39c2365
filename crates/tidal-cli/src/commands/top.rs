//! `tidal top`: the items with the highest scores.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tidal_db::Scope;

use crate::database::Database;
use crate::failure::{Failure, explain_with_declared};
use crate::output::Output;
use crate::scope::parse_scope;
use crate::time::parse_time_ns;

/// List the items with the highest scores, best first
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// Whose: global, cohort:NAME or community:ID
    #[arg(long, value_parser = parse_scope)]
    scope: Scope,
    /// By which signals
    #[arg(long, value_name = "TYPE")]
    signal: String,
    /// How many items at most
    #[arg(short, value_name = "COUNT", default_value_t = 10)]
    k: usize,
    /// When the scores are to hold, as RFC 3339; the newest time in the database unless given. Nothing is left out:
    /// what took place after it counts too, and for more than its weight
    #[arg(long, value_name = "TIME", value_parser = |text: &str| parse_time_ns(text))]
    at: Option<u64>,
    #[command(flatten)]
    database: Database,
}

/// One item.
#[derive(Serialize)]
struct Line {
    item: u64,
    score: f64,
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { item, score } = self;
        write!(formatter, "item {item}: score {score:?}")
    }
}

impl Top {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.database.with(|db| {
            // The clock is not asked: the same file gives the same scores on every day.
            let at_ns = self.at.unwrap_or_else(|| db.newest_time_ns());
            let items = db
                .top_items_at(&self.scope, &self.signal, self.k, at_ns)
                .map_err(|error| Failure::Failed(explain_with_declared(db, &error)))?;
            for (item, score) in items {
                output.write(&Line { item, score })?;
            }
            Ok(())
        })
    }
}
