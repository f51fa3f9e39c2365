//! How a command ends that did not do what it was asked.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use tidal_db::{StorageError, TidalDb};

use crate::time::{format_duration_ns, format_time_ns};

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments contradict each other: exit code 2.
    Usage(String),
    /// It could not be done: exit code 1.
    Failed(String),
    /// Whoever read the results stopped reading, as `head` does. Nobody is left to be told.
    OutputClosed,
}

impl Failure {
    /// A failure that says what happened and why, causes included.
    pub(crate) fn from_error(error: &dyn Error) -> Self {
        Self::Failed(one_line(error))
    }

    /// The same failure, with what it happened to before it.
    pub(crate) fn about(self, what: &str) -> Self {
        match self {
            Self::Failed(message) => Self::Failed(format!("{what}: {message}")),
            other => other,
        }
    }

    /// The same failure, with what else there is to know behind it.
    pub(crate) fn and(self, what: &str) -> Self {
        match self {
            Self::Failed(message) => Self::Failed(format!("{message}; {what}")),
            other => other,
        }
    }

    /// A command that only reads could not write what it found.
    pub(crate) fn unwritten(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Failed(format!("cannot write the result: {error}"))
        }
    }

    /// A command did all it was asked, and could not say so. That nobody reads is no excuse here: whoever relies on
    /// the result must not take silence for it.
    pub(crate) fn untold(error: &io::Error) -> Self {
        Self::Failed(format!(
            "all of it was done, but the result could not be written ({error}); look before you do it again, with \
             'tidal status USER --db PATH' or 'tidal history USER --db PATH'"
        ))
    }

    /// Tells it on stderr and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Usage(message) => {
                tell(message);
                ExitCode::from(2)
            }
            Self::Failed(message) => {
                tell(message);
                ExitCode::FAILURE
            }
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

/// Says something on stderr. If that is closed there is no other place to say it, and it must not stop the work, as
/// the panic of `eprintln!` would.
pub(crate) fn tell(message: &str) {
    let _unheard = writeln!(io::stderr(), "tidal: {message}");
}

impl From<tidal_db::Error> for Failure {
    fn from(error: tidal_db::Error) -> Self {
        Self::Failed(explain(&error))
    }
}

/// The error on one line. Where the library advises a call, the command advises what can be typed.
pub(crate) fn explain(error: &tidal_db::Error) -> String {
    match error {
        tidal_db::Error::SchemaDiffers { difference } => format!(
            "the schema differs from the stored one: {difference}; leave out --signal, --windowed and --cohorts-by \
             to use the stored one"
        ),
        tidal_db::Error::UndeclaredSignalType { name } => format!(
            "signal type {name:?} is not declared; use one that was declared with --signal or --windowed when the database was made"
        ),
        tidal_db::Error::SourceReplaced { source_name, position } => format!(
            "the content of source {source_name:?} up to row {position} is not what was applied before; nothing was \
             applied; give other content a name of its own with --source"
        ),
        // Times are not typed in nanoseconds here, so there is no unit to be wrong.
        tidal_db::Error::TooFarAhead { at_ns, now_ns, allowed_skew_ns } => format!(
            "time {} is more than {} ahead of the clock, which reads {}; correct the time, or the clock",
            format_time_ns(*at_ns),
            format_duration_ns(*allowed_skew_ns),
            format_time_ns(*now_ns)
        ),
        tidal_db::Error::DamagedRecord { user_id, cause } => format!(
            "the leave record of user {user_id} is damaged ({cause}), so the user stays out; settle it with \
             'tidal leave {user_id} --db PATH', then rejoin"
        ),
        tidal_db::Error::DamagedView { what, .. } => {
            format!("{what}; it only repeats what the log says: make it anew with 'tidal rebuild --db PATH'")
        }
        // Whoever types a command has no handle to close.
        tidal_db::Error::Latched { cause } => {
            format!("nothing more was written after a failure: {}", explain(cause))
        }
        tidal_db::Error::Storage(StorageError::Io { place, action, source })
            if !matches!(*action, "creating" | "opening" | "syncing") =>
        {
            format!("i/o error while {action} {place}: {source}; see to the disk, then run it again")
        }
        other => one_line(other),
    }
}

/// The same with what is declared, where that is what was asked for in vain.
pub(crate) fn explain_with_declared(db: &TidalDb, error: &tidal_db::Error) -> String {
    let explained = explain(error);
    if !matches!(error, tidal_db::Error::UndeclaredSignalType { .. }) {
        return explained;
    }
    let names: Vec<String> =
        db.schema().signal_types().iter().map(|declared| format!("{:?}", declared.name)).collect();
    format!("{explained}: {}", names.join(", "))
}

/// The error and what caused it on one line. A cause whose words stand there already is not repeated.
pub(crate) fn one_line(error: &dyn Error) -> String {
    let mut line = fold(&error.to_string());
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = fold(&error.to_string());
        if !line.contains(&words) {
            line.push_str(": ");
            line.push_str(&words);
        }
        cause = error.source();
    }
    line
}

/// All lines as one.
pub(crate) fn fold(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidal_db::{Action, Event, Schema, TidalDb};

    use super::{Failure, one_line};

    #[derive(Debug, thiserror::Error)]
    #[error("{message}")]
    struct Layer {
        message: &'static str,
        source: Option<Box<Layer>>,
    }

    #[test]
    fn causes_follow_once_each() {
        let root = Layer { message: "disk\nfull", source: None };
        let middle = Layer { message: "cannot write: disk full", source: Some(Box::new(root)) };
        let top = Layer { message: "leave of user 7 failed", source: Some(Box::new(middle)) };
        assert_eq!(one_line(&top), "leave of user 7 failed: cannot write: disk full");
    }

    /// Errors of the library that show their cause among their own words, and name it as their source too.
    #[test]
    fn what_an_error_shows_of_its_cause_is_not_said_again() {
        let schema = Schema::builder().signal("view", Duration::from_secs(60)).build().unwrap();
        let db = TidalDb::builder().schema(schema).ephemeral().open().unwrap();
        let name = "n".repeat(300);
        let event = Event { at_ns: 0, action: Action::SetAttribute { user: 7, name, value: String::new() } };
        let error = db.apply("queue", 1, [event]).unwrap_err();
        assert!(matches!(error, tidal_db::Error::Apply { .. }));
        let Failure::Failed(line) = Failure::from(error) else { panic!("it is no failure") };
        assert_eq!(line.matches("has 300 bytes").count(), 1, "{line}");

        let too_short = Schema::builder().signal("view", Duration::ZERO).build().unwrap_err();
        let line = one_line(&too_short);
        assert_eq!(line.matches("half-life 0ns").count(), 1, "{line}");
    }
}
