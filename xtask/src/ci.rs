//! `cargo xtask ci`: everything that must hold before a change lands.

use std::process::{Command, ExitCode, Stdio};

use crate::snapshots::{self, References};
use crate::step::{Failure, Steps, cargo, execute};
use crate::{isolation, tidy};

/// Builds the tests that prove, by switching a safeguard off, that the others would notice.
const CANARIES: [&str; 2] = ["--features", "tidal-db/canaries"];

/// Runs every step and prints a summary.
pub(crate) fn run() -> ExitCode {
    let mut steps = Steps::default();
    let outcome = all(&mut steps);
    println!("\n{}", steps.summary());
    match outcome {
        Ok(()) => {
            println!("ci: all checks passed");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("ci: failed at {failure}");
            ExitCode::FAILURE
        }
    }
}

fn all(steps: &mut Steps) -> Result<(), Failure> {
    steps.run("format", || execute(cargo().args(["fmt", "--all", "--check"])))?;
    steps.run("tidy", tidy::check)?;
    steps.run("lower crates stand alone", isolation::check)?;
    steps.run("pending snapshots", || {
        snapshots::refuse("snapshots wait for a review", "accept or delete each", &snapshots::pending()?)
    })?;
    steps.run("clippy", || {
        let mut clippy = cargo();
        clippy.args(["clippy", "--locked", "--workspace", "--all-targets"]).args(CANARIES);
        execute(clippy.args(["--", "--deny", "warnings"]))
    })?;
    steps.run("docs", || {
        let mut docs = cargo();
        docs.args(["doc", "--locked", "--workspace", "--no-deps"]);
        execute(docs.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    steps.run("doctests", || {
        execute(cargo().args(["test", "--locked", "--workspace", "--doc"]).args(CANARIES))
    })?;
    // The tests come last, so that the closing lines of their runner are the last of any runner.
    let references = References::start()?;
    steps.run("tests", || {
        let mut tests = test_runner();
        tests.args(["--locked", "--workspace", "--tests", "--no-fail-fast"]).args(CANARIES);
        references.note_in(&mut tests);
        execute(&mut tests)
    })?;
    steps.run("unseen snapshots", || {
        let unseen = references.unseen()?;
        snapshots::refuse("no test asserts these snapshots", "delete each or test it", &unseen)?;
        snapshots::refuse("the tests wrote snapshots", "accept or delete each", &snapshots::pending()?)
    })
}

/// nextest where it is installed, for its speed and isolation; plain cargo test elsewhere.
fn test_runner() -> Command {
    let mut tests = cargo();
    let has_nextest = cargo()
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if has_nextest {
        tests.args(["nextest", "run"]);
    } else {
        println!("cargo-nextest is not installed: using cargo test");
        tests.arg("test");
    }
    tests
}
