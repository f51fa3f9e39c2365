//! `tidal aggregates`: what was counted, by scope.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use serde::Serialize;
use tidal_db::{AggregateRow, Scope, TidalDb, format_nanos};

use crate::database::Database;
use crate::failure::Failure;
use crate::output::Output;
use crate::scope::parse_scope;
use crate::time::parse_time_ns;

/// List count, sum of weights and score of every item
#[derive(Args, Debug)]
pub(crate) struct Aggregates {
    /// Only these: global, cohort, cohort:NAME, community or community:ID
    #[arg(long)]
    scope: Option<ScopeFilter>,
    /// When the scores are to hold, as RFC 3339; the newest time in the database unless given. Nothing is left out:
    /// what took place after it counts too, and for more than its weight
    #[arg(long, value_name = "TIME", value_parser = |text: &str| parse_time_ns(text))]
    at: Option<u64>,
    #[command(flatten)]
    database: Database,
}

/// Which scopes are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ScopeFilter {
    Cohorts,
    Communities,
    One(Scope),
}

impl FromStr for ScopeFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "cohort" => Ok(Self::Cohorts),
            "community" => Ok(Self::Communities),
            _ => match parse_scope(text) {
                Ok(scope) => Ok(Self::One(scope)),
                // An id that is none is worth more words than the list of forms.
                Err(advice) if text.starts_with("community:") => Err(advice),
                Err(_) => Err("use global, cohort, cohort:NAME, community or community:ID".to_owned()),
            },
        }
    }
}

impl ScopeFilter {
    /// The scope, if it is a single one.
    fn one(&self) -> Option<&Scope> {
        match self {
            Self::One(scope) => Some(scope),
            Self::Cohorts | Self::Communities => None,
        }
    }

    fn takes(&self, scope: &Scope) -> bool {
        match self {
            Self::One(one) => one == scope,
            Self::Cohorts => matches!(scope, Scope::Cohort(_)),
            Self::Communities => matches!(scope, Scope::Community(_)),
        }
    }
}

/// One aggregate.
#[derive(Serialize)]
struct Line {
    scope: &'static str,
    id: Option<String>,
    item: u64,
    signal: String,
    count: u64,
    weight_sum: String,
    score: f64,
}

impl From<AggregateRow> for Line {
    fn from(row: AggregateRow) -> Self {
        Self {
            scope: row.scope.kind(),
            id: row.scope.id(),
            item: row.item,
            signal: row.signal_type,
            count: row.aggregate.count,
            weight_sum: format_nanos(row.aggregate.weight_nanos),
            score: row.aggregate.score,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, id, item, signal, count, weight_sum, score } = self;
        formatter.write_str(scope)?;
        if let Some(id) = id {
            write!(formatter, " {id}")?;
        }
        write!(formatter, ", item {item}, {signal}: count {count}, weight_sum {weight_sum}, score {score:?}")
    }
}

impl Aggregates {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.database.with(|db| self.write(db, output))
    }

    fn write(&self, db: &TidalDb, output: &mut Output) -> Result<(), Failure> {
        // The clock is not asked: the same file gives the same scores on every day.
        let at_ns = self.at.unwrap_or_else(|| db.newest_time_ns());
        let scope = self.scope.as_ref().and_then(ScopeFilter::one);
        for row in db.aggregates_at(scope, at_ns)? {
            let row = row?;
            if self.scope.as_ref().is_none_or(|filter| filter.takes(&row.scope)) {
                output.write(&Line::from(row))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tidal_db::Scope;

    use super::ScopeFilter;

    #[test]
    fn scopes_are_read() {
        let filter = |text: &str| text.parse::<ScopeFilter>();
        assert_eq!(filter("global"), Ok(ScopeFilter::One(Scope::Global)));
        assert_eq!(filter("cohort"), Ok(ScopeFilter::Cohorts));
        assert_eq!(filter("cohort:a:b=c"), Ok(ScopeFilter::One(Scope::Cohort("a:b=c".into()))));
        assert_eq!(filter("community"), Ok(ScopeFilter::Communities));
        assert_eq!(filter("community:4"), Ok(ScopeFilter::One(Scope::Community(4))));
        for text in ["", "all", "cohort:", "community:", "community:x", "global:1"] {
            assert!(filter(text).is_err(), "{text}");
        }
    }
}
