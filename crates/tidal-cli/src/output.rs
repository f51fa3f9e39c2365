//! Results on stdout: one JSON object a line, or text.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write as _};

use serde::Serialize;

use crate::failure::Failure;

/// Where a command writes its results.
pub(crate) struct Output {
    is_json: bool,
    stdout: BufWriter<StdoutLock<'static>>,
}

impl Output {
    pub(crate) fn new(is_json: bool) -> Self {
        Self { is_json, stdout: BufWriter::new(io::stdout().lock()) }
    }

    /// Writes one result: what `--json` prints is how it serializes, the text is how it displays.
    pub(crate) fn write(&mut self, result: &(impl Serialize + Display)) -> Result<(), Failure> {
        if self.is_json {
            serde_json::to_writer(&mut self.stdout, result).map_err(io::Error::from)?;
            self.stdout.write_all(b"\n")?;
        } else {
            writeln!(self.stdout, "{result}")?;
        }
        Ok(())
    }

    /// Hands everything on. Without this, what is buffered is lost in silence when stdout fails.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        Ok(self.stdout.flush()?)
    }
}
