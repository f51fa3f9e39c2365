//! `cargo xtask fuzz`: every fuzzer for a while.

use std::fs;
use std::process::ExitCode;

use crate::files;
use crate::step::{Failure, answers, capture, conclude, execute, nightly_cargo, skip};

/// How long each fuzzer runs unless told otherwise, in seconds.
pub(crate) const DEFAULT_SECONDS: &str = "60";

/// Runs every fuzzer for so many seconds.
pub(crate) fn run(seconds: &str) -> ExitCode {
    if !answers(nightly_cargo().arg("--version")) {
        return skip("fuzz", "there is no nightly toolchain; `rustup toolchain install nightly` brings one");
    }
    if !answers(nightly_cargo().args(["fuzz", "--version"])) {
        return skip("fuzz", "cargo-fuzz is not installed; `cargo install cargo-fuzz` brings it");
    }
    conclude("fuzz", all(seconds))
}

fn all(seconds: &str) -> Result<(), Failure> {
    let targets = capture(nightly_cargo().args(["fuzz", "list"]))?;
    for target in targets.lines() {
        println!("\n==> {target}");
        // What is found goes into the first folder; the seeds beside it stay as they are.
        let (found, seeds) = (format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}"));
        fs::create_dir_all(files::root().join(&found))
            .map_err(|error| format!("cannot make {found}: {error}"))?;
        let mut fuzzer = nightly_cargo();
        fuzzer.args(["fuzz", "run", target, &found, &seeds, "--"]);
        fuzzer.args([&format!("-max_total_time={seconds}"), "-print_final_stats=1"]);
        execute(&mut fuzzer)?;
    }
    Ok(())
}
