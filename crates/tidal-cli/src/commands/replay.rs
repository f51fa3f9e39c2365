//! `tidal replay`: applies an event file, once however often it is started.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tidal_db::{ApplyReport, Config, Event, Schema, TidalDb};

use crate::database::{self, Database};
use crate::event_file::{EventFile, EventFileError, RowCounts};
use crate::failure::{Failure, explain, explain_with_declared, one_line};
use crate::half_life::{DeclaredSignal, parse_declared_signal};
use crate::output::Output;

const COLUMNS_HELP: &str = "\
The event file is CSV. Its first line names all eight columns, in any order; a field that the
action does not need stays empty:
  at         when it took place, as RFC 3339 to the nanosecond
  action     user, join, quit, signal, leave or rejoin
  user       id
  item       id, for signal
  signal     signal type, for signal
  weight     decimal number from -1e9 to 1e9, rounded to 1e-9, for signal
  community  id, for join and quit
  attribute  name=value, for user
Leaves and rejoins count in the order of delivery, whatever their times: a rejoin of a second source, or of the same
file under another name, can undo a leave.
Of what is told at the end, forwarded counts the signals that were not withheld, also those that no
cohort or community took; left counts the users of the whole database.";

/// Apply the events of a CSV file in order; started again, it goes on where it stopped
#[derive(Args, Debug)]
#[command(after_help = COLUMNS_HELP)]
pub(crate) struct Replay {
    /// The event file; a name that ends in .gz is read through gzip
    file: PathBuf,
    #[command(flatten)]
    database: Database,
    /// Make the database if there is none; needs --signal or --windowed
    #[arg(long)]
    create: bool,
    /// Declare a signal type and its half-life, such as submit=7d (units s, m, h, d, w)
    #[arg(long = "signal", value_name = "NAME=HALFLIFE", value_parser = parse_declared_signal)]
    signals: Vec<DeclaredSignal>,
    /// Declare a signal type of which the last hour, day and week are kept apart as well, such as view=7d;
    /// only the library reads these windows
    #[arg(long, value_name = "NAME=HALFLIFE", value_parser = parse_declared_signal)]
    windowed: Vec<DeclaredSignal>,
    /// Make a cohort of the users of each value of this attribute
    #[arg(long = "cohorts-by", value_name = "ATTRIBUTE")]
    cohorts_by: Vec<String>,
    /// The name under which the position reached is kept; the file's name without its folders unless given, so two
    /// files of one name are one source, and a file that was renamed is another, whose rows count again
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

/// What a replay did.
#[derive(Serialize)]
struct Summary {
    rows: RowCounts,
    applied: u64,
    skipped: u64,
    forwarded: u64,
    withheld: WithheldSummary,
    left: u64,
}

#[derive(Serialize)]
struct WithheldSummary {
    left: u64,
    away_period: u64,
    unknown: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.rows.total();
        let by_action: Vec<String> = self
            .rows
            .by_action()
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(action, count)| format!("{count} {action}"))
            .collect();
        let WithheldSummary { left, away_period, unknown } = &self.withheld;
        match total {
            0 => writeln!(formatter, "rows       0")?,
            _ => writeln!(formatter, "rows       {total} ({})", by_action.join(", "))?,
        }
        writeln!(formatter, "applied    {}", self.applied)?;
        writeln!(formatter, "skipped    {} (applied before)", self.skipped)?;
        writeln!(formatter, "forwarded  {} signals", self.forwarded)?;
        writeln!(
            formatter,
            "withheld   {} signals ({left} left, {away_period} away period, {unknown} unknown)",
            left + away_period + unknown
        )?;
        write!(formatter, "left       {} users", self.left)
    }
}

impl Replay {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        let source = self.source_name()?;
        let does_exist = database::exists(&self.database.path)?;
        if !does_exist && !self.create {
            return Err(Failure::Failed(database::missing(&self.database.path)));
        }
        if !does_exist && self.signals.is_empty() && self.windowed.is_empty() {
            return Err(Failure::Usage(
                "--create makes a new database here, so it needs at least one --signal NAME=HALFLIFE or \
                 --windowed NAME=HALFLIFE"
                    .to_owned(),
            ));
        }
        let builder = self.builder()?;
        let progress = Progress::start(&self.file);
        // The header is read before anything is made, so that a wrong file leaves no empty database.
        let file = progress.open(&self.file).map_err(|error| Failure::from_error(&error))?;
        database::with_opened(builder, |db| {
            let summary = replay(db, &source, Rows { file, failure: None });
            progress.clear();
            output.write(&summary?)
        })
    }

    fn source_name(&self) -> Result<String, Failure> {
        if let Some(name) = &self.source {
            return Ok(name.clone());
        }
        let name = self.file.file_name().and_then(|name| name.to_str());
        name.map(str::to_owned).ok_or_else(|| {
            Failure::Usage(format!(
                "{} has no name that can be kept; give one with --source",
                self.file.display()
            ))
        })
    }

    fn builder(&self) -> Result<Config, Failure> {
        let builder = TidalDb::builder().path(&self.database.path).create(self.create);
        if self.signals.is_empty() && self.windowed.is_empty() && self.cohorts_by.is_empty() {
            return Ok(builder);
        }
        let declared = self
            .signals
            .iter()
            .fold(Schema::builder(), |schema, signal| schema.signal(signal.name.as_str(), signal.half_life));
        let declared = self
            .windowed
            .iter()
            .fold(declared, |schema, signal| schema.windowed(signal.name.as_str(), signal.half_life));
        let declared = self.cohorts_by.iter().fold(declared, |schema, name| schema.cohorts_by(name.as_str()));
        let schema = declared.build().map_err(|error| Failure::Usage(one_line(&error)))?;
        Ok(builder.schema(schema))
    }
}

/// Applies all rows. What came before an error is applied and the error says how much that was.
fn replay(db: &TidalDb, source: &str, mut rows: Rows<'_>) -> Result<Summary, Failure> {
    let outcome = db.apply(source, 1, &mut rows);
    let Rows { file, failure } = rows;
    let name = file.path().display();
    let report = match (outcome, failure) {
        (Ok(report), None) => report,
        (Ok(report), Some(failure)) => {
            return Err(Failure::Failed(format!("{}; {}", one_line(&failure), done_before(&report))));
        }
        // Events are taken ahead, so a row that cannot be read may stand behind the one that stopped it.
        // No row is to blame, and of those whose write failed the report cannot say that they are kept.
        (Err(tidal_db::Error::Apply { report, cause, .. }), _) if is_unwritten(&cause) => {
            return Err(Failure::Failed(format!(
                "{name}: {}; rows known to be on disk: {}",
                explain(&cause),
                report.position.unwrap_or(0)
            )));
        }
        (Err(tidal_db::Error::Apply { position, report, cause, .. }), _) => {
            let line = file.line_of(position).map_or_else(String::new, |line| format!(", line {line}"));
            return Err(Failure::Failed(format!(
                "{name}{line}: {}{}; {}",
                explain_with_declared(db, &cause),
                way_out(&cause),
                done_before(&report)
            )));
        }
        (Err(error), _) => return Err(Failure::from(error).about(&name.to_string())),
    };
    let counts = file.rows();
    // Nothing of a file that ends too early is compared with what was applied, so its length must tell.
    if let Some(position) = report.position.filter(|position| *position > counts.total()) {
        return Err(Failure::Failed(format!(
            "{name}: the file ends at row {}, but row {position} of source {source:?} was applied before, so its \
             content was replaced; nothing was applied; give other content a name of its own with --source",
            counts.total()
        )));
    }
    Ok(Summary {
        rows: counts,
        applied: report.applied,
        skipped: report.skipped,
        forwarded: report.forwarded,
        withheld: WithheldSummary {
            left: report.withheld.left,
            away_period: report.withheld.away_period,
            unknown: report.withheld.unknown,
        },
        left: db.left_count(),
    })
}

/// What else there is to do about an undeclared type: a command alone cannot add one.
fn way_out(cause: &tidal_db::Error) -> &'static str {
    if matches!(cause, tidal_db::Error::UndeclaredSignalType { .. }) {
        "; if --create has just made it with a wrong name, delete the new file and start again, or add the type with \
         extend_schema(true) of the library"
    } else {
        ""
    }
}

/// Whether it stopped because nothing more could be written.
fn is_unwritten(cause: &tidal_db::Error) -> bool {
    use tidal_db::Error::{Latched, Storage, ThreadPanicked};
    matches!(cause, Latched { .. } | Storage(_) | ThreadPanicked)
}

fn done_before(report: &ApplyReport) -> String {
    let earlier = match report.skipped {
        0 => String::new(),
        skipped => format!(", in an earlier run: {skipped}"),
    };
    format!("rows applied before it: {}{earlier}", report.applied)
}

/// The events of a file up to the first row that cannot be read.
struct Rows<'reader> {
    file: EventFile<'reader>,
    failure: Option<EventFileError>,
}

impl Iterator for Rows<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        match self.file.next()? {
            Ok(event) => Some(event),
            Err(failure) => {
                self.failure = Some(failure);
                None
            }
        }
    }
}

/// How much of the file is read, on a terminal.
struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over the size of the file, compressed as it may be; hidden where nobody watches.
    fn start(path: &Path) -> Self {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let size_bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let bar = ProgressBar::with_draw_target(Some(size_bytes), target);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3}% {elapsed}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    fn open(&self, path: &Path) -> Result<EventFile<'static>, EventFileError> {
        let file = File::open(path).map_err(|cause| EventFileError::cannot_open(path, cause))?;
        EventFile::from_reader(path, self.bar.wrap_read(file))
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
