//! `cargo xtask canaries`: every deliberate break, and the test that must notice it.

use std::fs;
use std::process::ExitCode;

use crate::files;
use crate::step::{Failure, cargo, conclude, execute};

/// What switches safeguards off. All else is built without it, as it is shipped.
///
/// It is asked of all default members, so that the libraries below are built one way and not twice.
pub(crate) const FEATURES: [&str; 2] = ["--features", "tidal-db/canaries"];

/// The tests that are only there with it.
pub(crate) const TESTS: [&str; 4] = ["--test", "canaries", "--test", "panicking_threads"];

/// Where breaks are declared, and where they are tried.
const DECLARED: &str = "crates/tidal-db/src/canary.rs";
const TRIED: [&str; 3] = [
    "crates/tidal-db/tests/canaries.rs",
    "crates/tidal-db/tests/panicking_threads.rs",
    "crates/tidal-interleavings/tests/linear.rs",
];

/// Breaks one guarantee after the other, and says in which words each break was noticed.
pub(crate) fn run() -> ExitCode {
    conclude("canaries", all())
}

fn all() -> Result<(), Failure> {
    every_break_is_tried()?;
    let mut canaries = cargo();
    canaries.args(["test", "--locked", "--no-fail-fast"]).args(FEATURES).args(TESTS);
    execute(canaries.args(["--", "--nocapture", "--test-threads=1"]))?;
    let mut schedules = cargo();
    schedules.args(["test", "--locked", "--package", "tidal-interleavings", "--test", "linear"]);
    execute(schedules.args(["is_found", "--", "--nocapture", "--test-threads=1"]))
}

/// Refuses a break that no test names.
pub(crate) fn every_break_is_tried() -> Result<(), Failure> {
    let read = |name: &str| {
        fs::read_to_string(files::root().join(name)).map_err(|error| format!("cannot read {name}: {error}"))
    };
    let tried = TRIED.iter().map(|name| read(name)).collect::<Result<String, _>>()?;
    let declared = read(DECLARED)?;
    let untried = untried(&declared, &tried);
    if untried.is_empty() { Ok(()) } else { Err(format!("no test tries {}", untried.join(", "))) }
}

/// The variants of the enum in `declared` that `tried` does not name.
fn untried<'a>(declared: &'a str, tried: &str) -> Vec<&'a str> {
    let variants = declared.lines().skip_while(|line| !line.starts_with("pub enum Break")).skip(1);
    let variants = variants.take_while(|line| *line != "}").map(str::trim);
    let names = variants.filter(|line| !line.starts_with("//")).map(|line| line.trim_end_matches(','));
    let is_named = |name: &str| {
        tried.split("Break::").skip(1).any(|rest| {
            rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
        })
    };
    names.filter(|name| !is_named(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::untried;

    #[test]
    fn a_break_that_no_test_names_is_found() {
        let declared =
            "pub enum Break {\n    /// One.\n    Gate,\n    GateTwice,\n    Third,\n}\nfn other() {}\n";
        assert_eq!(untried(declared, "broken(Break::GateTwice)"), ["Gate", "Third"]);
        assert!(untried(declared, "Break::Gate, Break::GateTwice; Break::Third)").is_empty());
    }
}
