//! How a command ends that did not do what it was asked.

use std::error::Error;
use std::io;
use std::process::ExitCode;

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

    /// Tells it on stderr and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Usage(message) => {
                eprintln!("tidal: {message}");
                ExitCode::from(2)
            }
            Self::Failed(message) => {
                eprintln!("tidal: {message}");
                ExitCode::FAILURE
            }
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Failed(format!("cannot write the result: {error}"))
        }
    }
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
            "the schema differs from the stored one: {difference}; leave out --signal and --cohorts-by to use the \
             stored one"
        ),
        tidal_db::Error::UndeclaredSignalType { name } => format!(
            "signal type {name:?} is not declared; use one that was declared with --signal when the database was made"
        ),
        tidal_db::Error::SourceReplaced { source_name, position } => format!(
            "the content of source {source_name:?} up to row {position} is not what was applied before; nothing was \
             applied; give other content a name of its own with --source"
        ),
        tidal_db::Error::DamagedRecord { user_id, cause } => format!(
            "the leave record of user {user_id} is damaged ({cause}), so the user stays out; settle it with \
             'tidal leave {user_id}', then rejoin"
        ),
        other => one_line(other),
    }
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
    use super::one_line;

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
}
