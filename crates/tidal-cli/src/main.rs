//! The `tidal` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidal_cli::run(std::env::args_os())
}
