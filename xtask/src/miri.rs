//! `cargo xtask miri`: the tests of the pure crates, with every access to memory checked.

use std::process::ExitCode;

use crate::step::{answers, conclude, execute, nightly_cargo, skip};

/// Runs the tests of keys and entities under miri.
pub(crate) fn run() -> ExitCode {
    if !answers(nightly_cargo().args(["miri", "--version"])) {
        let reason = "no nightly toolchain has miri; `rustup +nightly component add miri rust-src` brings it";
        return skip("miri", reason);
    }
    let mut tests = nightly_cargo();
    tests.args(["miri", "test", "--locked", "-p", "tidal-keys", "-p", "tidal-entities"]);
    // Snapshots are files, which isolation keeps away; and miri is slow, so few cases of each property are tried.
    tests.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", "8");
    conclude("miri", execute(&mut tests))
}
