//! Named steps, run one after another until one fails.

use std::fmt::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Why a step failed, in words a person can act on.
pub(crate) type Failure = String;

/// Runs steps, times them and keeps what the summary needs.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<(&'static str, f64)>,
}

impl Steps {
    /// Announces `name`, does `work` and notes how long it took.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        println!("\n==> {name}");
        let start = Instant::now();
        work().map_err(|failure| format!("{name}: {failure}"))?;
        self.done.push((name, start.elapsed().as_secs_f64()));
        Ok(())
    }

    /// One line a step, with its time in seconds.
    pub(crate) fn summary(&self) -> String {
        let mut lines = String::new();
        for (name, elapsed_s) in &self.done {
            // Writing to a String cannot fail.
            let _infallible = writeln!(lines, "  ok {elapsed_s:7.1} s  {name}");
        }
        lines
    }
}

/// The cargo that runs this command, so that every step uses the same toolchain.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::files::root());
    command
}

/// The same of a nightly toolchain, as rustup finds it.
pub(crate) fn nightly_cargo() -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").current_dir(crate::files::root());
    command
}

/// Whether a command is there: it runs and says that all is well.
pub(crate) fn answers(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Prints how it went, and makes it the exit code.
pub(crate) fn conclude(command: &str, outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{command}: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Says that nothing was checked, so that nobody takes it for a success.
pub(crate) fn skip(command: &str, reason: &str) -> ExitCode {
    eprintln!("{command}: SKIPPED, nothing was checked: {reason}");
    ExitCode::SUCCESS
}

/// Shows the command line, runs it and turns a bad exit into a failure.
pub(crate) fn execute(command: &mut Command) -> Result<(), Failure> {
    let line = describe(command);
    println!("$ {line}");
    let status = command.status().map_err(|error| format!("cannot start `{line}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` ended with {status}")) }
}

/// Runs the command quietly and returns what it printed.
pub(crate) fn capture(command: &mut Command) -> Result<String, Failure> {
    let line = describe(command);
    let output = command.output().map_err(|error| format!("cannot start `{line}`: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{line}` ended with {}: {}", output.status, stderr.trim()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("`{line}` printed what is not UTF-8: {error}"))
}

/// The command as one would type it.
fn describe(command: &Command) -> String {
    let mut line = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            let _infallible = write!(line, "{}={:?} ", name.to_string_lossy(), value.to_string_lossy());
        }
    }
    line.push_str("cargo");
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
