//! `cargo xtask ci`: everything that must hold before a change lands.
//!
//! All steps but the format look at the workspace's default members. The benches that need no other engine, and the
//! sources under a scheduler, have steps of their own; the other benches are compiled by `cargo xtask bench`.

use std::process::{Command, ExitCode};

use crate::snapshots::{self, References};
use crate::step::{Failure, Steps, answers, cargo, execute};
use crate::{canaries, isolation, soak, tidy};

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
    steps.run("format", || {
        execute(cargo().args(["fmt", "--all", "--check"]))?;
        // The fuzzers are a workspace of their own.
        execute(cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
    })?;
    steps.run("tidy", tidy::check)?;
    steps.run("lower crates stand alone", isolation::check)?;
    steps.run("the gate stays in", isolation::check_gate)?;
    steps.run("pending snapshots", || {
        snapshots::refuse("snapshots wait for a review", "accept or delete each", &snapshots::pending()?)
    })?;
    steps.run("clippy", || execute(&mut clippy(&[])))?;
    steps.run("clippy of the others", || {
        execute(&mut clippy(&["--package", "tidal-bench", "--package", "tidal-interleavings"]))
    })?;
    steps.run("clippy with canaries", || execute(&mut clippy(&canaries::FEATURES)))?;
    steps.run("docs", || {
        let mut docs = cargo();
        docs.args(["doc", "--locked", "--no-deps"]);
        execute(docs.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    steps.run("doctests", || execute(cargo().args(["test", "--locked", "--doc"])))?;
    let has_nextest = has_nextest();
    steps.run("tests of the benches", || {
        execute(tests(has_nextest).args(["--package", "tidal-bench", "--lib"]))
    })?;
    steps.run("interleavings", || {
        execute(tests(has_nextest).args(["--package", "tidal-interleavings", "--tests"]))
    })?;
    let references = References::start()?;
    steps.run("canaries", || {
        canaries::every_break_is_tried()?;
        let mut tests = tests(has_nextest);
        tests.args(canaries::FEATURES).args(canaries::TESTS);
        references.note_in(&mut tests);
        execute(&mut tests)
    })?;
    // Optimised, since there are many; some hundred others are among the tests, as everyone builds them.
    steps.run("sequences", || {
        soak::run_step("sequences", "10000")?;
        soak::run_step("map", "10000")
    })?;
    // The tests come last, so that the closing lines of their runner are the last of any runner.
    steps.run("tests", || {
        let mut tests = tests(has_nextest);
        tests.arg("--tests");
        references.note_in(&mut tests);
        execute(&mut tests)
    })?;
    steps.run("unseen snapshots", || {
        let unseen = references.unseen()?;
        snapshots::refuse("no test asserts these snapshots", "delete each or test it", &unseen)?;
        snapshots::refuse("the tests wrote snapshots", "accept or delete each", &snapshots::pending()?)
    })
}

fn clippy(features: &[&str]) -> Command {
    let mut clippy = cargo();
    clippy.args(["clippy", "--locked", "--all-targets"]).args(features);
    clippy.args(["--", "--deny", "warnings"]);
    clippy
}

/// nextest where it is installed, for its speed and isolation; plain cargo test elsewhere.
fn tests(has_nextest: bool) -> Command {
    let mut tests = cargo();
    if has_nextest {
        tests.args(["nextest", "run"]);
    } else {
        println!("cargo-nextest is not installed: using cargo test");
        tests.arg("test");
    }
    tests.args(["--locked", "--no-fail-fast"]);
    tests
}

fn has_nextest() -> bool {
    answers(cargo().args(["nextest", "--version"]))
}
