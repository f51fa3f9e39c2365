//! `cargo xtask soak`: what takes too long for every change. One line a step; what the environment sets already
//! stands, so that a step can be made shorter or longer.

use std::process::ExitCode;

use crate::step::{Failure, Steps, cargo, conclude, execute};

/// A test that does more of the same when the environment says so.
struct Soak {
    name: &'static str,
    /// What cargo runs.
    package: &'static str,
    test: &'static str,
    /// Which of its tests.
    filter: &'static str,
    /// How many of what.
    count: (&'static str, &'static str),
}

const SOAKS: [Soak; 8] = [
    soak("kills", "tidal-cli", "killed", "what_was_acknowledged", ("TIDAL_KILLS", "200")),
    soak("sequences", "tidal-db", "model", "sequences_do", ("TIDAL_SEQUENCES", "1000000")),
    soak("map", "tidal-db", "cases", "case_10", ("TIDAL_TEST_SEQUENCES", "10000")),
    soak("leaves", "tidal-db", "guarantees", "many_leaves", ("TIDAL_STRESS_LEAVES", "1000000")),
    soak("images", "tidal-db", "crash_images", "whatever_a_crash", ("TIDAL_CRASH_IMAGES", "50000")),
    // Each operation, byte and page, and not every so manieth.
    soak("failures", "tidal-db", "every_io_failure", "no_failure", ("TIDAL_IO_FAILURE_STEP", "1")),
    soak("damage", "tidal-db", "damage_everywhere", "no_", ("TIDAL_DAMAGE_STEP", "1")),
    // By each of two schedulers.
    soak(
        "interleavings",
        "tidal-interleavings",
        "linear",
        "have_one_order",
        ("TIDAL_INTERLEAVINGS", "500000"),
    ),
];

const fn soak(
    name: &'static str,
    package: &'static str,
    test: &'static str,
    filter: &'static str,
    count: (&'static str, &'static str),
) -> Soak {
    Soak { name, package, test, filter, count }
}

/// Runs the step of this name, or all.
pub(crate) fn run(only: Option<&str>) -> ExitCode {
    let chosen: Vec<&Soak> = SOAKS.iter().filter(|soak| only.is_none_or(|only| soak.name == only)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = SOAKS.iter().map(|soak| soak.name).collect();
        eprintln!(
            "soak: there is no step {:?}; the steps are {}",
            only.unwrap_or_default(),
            names.join(", ")
        );
        return ExitCode::from(2);
    }
    let mut steps = Steps::default();
    let outcome = chosen.into_iter().try_for_each(|soak| steps.run(soak.name, || soak.run_usual()));
    println!("\n{}", steps.summary());
    conclude("soak", outcome)
}

/// Runs the step of this name with a count of its own.
pub(crate) fn run_step(name: &str, count: &str) -> Result<(), Failure> {
    let soak = SOAKS.iter().find(|soak| soak.name == name);
    soak.ok_or_else(|| format!("there is no step {name:?}"))?.run(count)
}

impl Soak {
    /// As many as the environment says, or as is usual.
    fn run_usual(&self) -> Result<(), Failure> {
        let (variable, usual) = self.count;
        self.run(&std::env::var(variable).unwrap_or_else(|_| usual.to_owned()))
    }

    /// Optimised, with every assertion, and with the figures it prints.
    fn run(&self, count: &str) -> Result<(), Failure> {
        let (variable, _) = self.count;
        let mut test = cargo();
        test.args([
            "test",
            "--locked",
            "--profile",
            "checked",
            "--package",
            self.package,
            "--test",
            self.test,
        ]);
        // Panics of the engine are caught by the thousand; where each came from would take longer than all else.
        test.args([self.filter, "--", "--nocapture"]).env(variable, count).env("RUST_BACKTRACE", "0");
        execute(&mut test)
    }
}
