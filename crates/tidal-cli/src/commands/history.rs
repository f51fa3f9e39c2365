//! `tidal history`: what a user did, forwarded or not.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tidal_db::HistoryEvent;

use crate::database::Database;
use crate::failure::Failure;
use crate::id::parse_id;
use crate::output::Output;
use crate::time::format_time_ns;

/// List a user's signals in order of delivery
#[derive(Args, Debug)]
pub(crate) struct History {
    /// Whose signals
    #[arg(value_parser = parse_id)]
    user: u64,
    #[command(flatten)]
    database: Database,
}

/// One signal of the user.
#[derive(Serialize)]
struct Line {
    sequence: u64,
    item: u64,
    signal: String,
    weight: String,
    event_time_ns: u64,
    withheld: Option<&'static str>,
}

impl From<HistoryEvent> for Line {
    fn from(event: HistoryEvent) -> Self {
        Self {
            sequence: event.sequence,
            item: event.item,
            signal: event.signal_type,
            weight: event.weight.to_string(),
            event_time_ns: event.event_time_ns,
            withheld: event.withheld.map(tidal_db::Withheld::as_str),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sequence, item, signal, weight, event_time_ns, withheld } = self;
        let time = format_time_ns(*event_time_ns);
        write!(formatter, "{sequence}: {time} {signal} item {item}, weight {weight}")?;
        withheld.map_or(Ok(()), |reason| write!(formatter, ", withheld: {reason}"))
    }
}

impl History {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.database.with(|db| {
            for event in db.history(self.user)? {
                output.write(&Line::from(event?))?;
            }
            Ok(())
        })
    }
}
