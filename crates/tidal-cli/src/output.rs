//! Results on stdout: one JSON object a line, or text.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write as _};

use serde::Serialize;

use crate::failure::Failure;

/// What it means for a command that its results cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It only reads: it stops, and if nobody reads on, as after `head`, nothing is lost.
    Reads,
    /// It changes something, or its exit code is the answer: it goes on to its end, and then fails because it could
    /// not say what it did.
    Changes,
}

/// Where a command writes its results.
pub(crate) struct Output {
    is_json: bool,
    effect: Effect,
    stdout: BufWriter<StdoutLock<'static>>,
    /// The first failure to write of a command that went on.
    failure: Option<io::Error>,
}

impl Output {
    pub(crate) fn new(is_json: bool, effect: Effect) -> Self {
        Self { is_json, effect, stdout: BufWriter::new(io::stdout().lock()), failure: None }
    }

    /// Writes one result: what `--json` prints is how it serializes, the text is how it displays.
    ///
    /// It never fails for a command that changes something, so that no change is left out because the one before
    /// it could not be told.
    pub(crate) fn write(&mut self, result: &(impl Serialize + Display)) -> Result<(), Failure> {
        // After a gap, later results would look as if they followed.
        if self.failure.is_some() {
            return Ok(());
        }
        match (self.write_line(result), self.effect) {
            (Ok(()), _) => Ok(()),
            (Err(error), Effect::Reads) => Err(Failure::unwritten(&error)),
            (Err(error), Effect::Changes) => {
                self.failure = Some(error);
                Ok(())
            }
        }
    }

    /// Hands everything on. Without this, what is buffered is lost in silence when stdout fails.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let failure = self.failure.take().or_else(|| self.stdout.flush().err());
        match (failure, self.effect) {
            (None, _) => Ok(()),
            (Some(error), Effect::Reads) => Err(Failure::unwritten(&error)),
            (Some(error), Effect::Changes) => Err(Failure::untold(&error)),
        }
    }

    fn write_line(&mut self, result: &(impl Serialize + Display)) -> io::Result<()> {
        if self.is_json {
            serde_json::to_writer(&mut self.stdout, result)?;
            self.stdout.write_all(b"\n")
        } else {
            writeln!(self.stdout, "{result}")
        }
    }
}
