//! From arguments to the command that they name.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::commands::{aggregates, history, layer, profile, rebuild, replay, signal, top, verify};
use crate::failure::{Failure, fold};
use crate::output::{Effect, Output};

/// Signals of users who can leave: replay, inspect and operate a tidal database.
#[derive(Debug, Parser)]
#[command(name = "tidal", version, arg_required_else_help = true)]
#[command(after_help = "Results go to stdout, all else to stderr. \
                        Exit code 0: done; 1: failed, or could not say what it did; 2: wrong usage.")]
struct Arguments {
    /// Print one JSON object a line
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Replay(replay::Replay),
    Signal(signal::RecordSignal),
    Join(profile::Join),
    Quit(profile::Quit),
    User(profile::SetAttribute),
    Leave(layer::Leave),
    Rejoin(layer::Rejoin),
    Status(layer::Status),
    Left(layer::ListLeft),
    Aggregates(aggregates::Aggregates),
    Top(top::Top),
    History(history::History),
    Verify(verify::Verify),
    Rebuild(rebuild::Rebuild),
}

impl Command {
    fn effect(&self) -> Effect {
        match self {
            Self::Replay(_)
            | Self::Signal(_)
            | Self::Join(_)
            | Self::Quit(_)
            | Self::User(_)
            | Self::Rebuild(_)
            | Self::Leave(_)
            | Self::Rejoin(_)
            // Its exit code is the answer, which must not change with who reads the rest of it.
            | Self::Verify(_) => Effect::Changes,
            Self::Status(_) | Self::Left(_) | Self::Aggregates(_) | Self::Top(_) | Self::History(_) => Effect::Reads,
        }
    }

    fn run(&self, output: &mut Output) -> Result<(), Failure> {
        match self {
            Self::Replay(command) => command.run(output),
            Self::Signal(command) => command.run(output),
            Self::Join(command) => command.run(output),
            Self::Quit(command) => command.run(output),
            Self::User(command) => command.run(output),
            Self::Leave(command) => command.run(output),
            Self::Rejoin(command) => command.run(output),
            Self::Status(command) => command.run(output),
            Self::Left(command) => command.run(output),
            Self::Aggregates(command) => command.run(output),
            Self::Top(command) => command.run(output),
            Self::History(command) => command.run(output),
            Self::Verify(command) => command.run(output),
            Self::Rebuild(command) => command.run(output),
        }
    }
}

/// Runs the `tidal` command with the arguments of a process, its own name first.
///
/// Results go to stdout, all else to stderr. The exit code is 0 if it was done, 1 if it failed or could not say what
/// it did, 2 if the arguments were wrong.
///
/// It is the whole program and no stable API: arguments, output and this function may change in any release.
pub fn run<T: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = T>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return report_usage(&error),
    };
    // What the libraries log, such as a last write that failed on drop, is no result. Only the first call in a
    // process can set this up, and a later one has nothing to add.
    let _already_set = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(tracing::Level::WARN)
        .without_time()
        // It would say so with a panic if stderr is closed.
        .log_internal_errors(false)
        .try_init();
    let mut output = Output::new(arguments.json, arguments.command.effect());
    let outcome = arguments.command.run(&mut output);
    // What was found before a failure is handed on too. A failure of the command outweighs one of stdout.
    let finished = output.finish();
    match outcome.and(finished) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints help as it is, and a wrong usage as one line.
fn report_usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Help goes where clap sends it; if nobody reads it, nothing is lost.
        let _unread = error.print();
        return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
    }
    let text = error.render().to_string();
    let text = text.split("\n\nFor more information").next().unwrap_or(&text);
    let (message, usage) = match text.split_once("\n\nUsage: ") {
        Some((message, usage)) => (message, format!("usage: {}", fold(usage))),
        None => (text, "see 'tidal --help'".to_owned()),
    };
    let message = fold(message.strip_prefix("error: ").unwrap_or(message));
    Failure::Usage(format!("{message}; {usage}")).report()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
