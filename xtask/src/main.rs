//! Checks that everyone runs, here and on the forge. This file only dispatches.

mod bench;
mod canaries;
mod ci;
mod files;
mod fuzz;
mod isolation;
mod miri;
mod public_api;
mod snapshots;
mod soak;
mod step;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  ci     every check, in the order in which they fail fastest; stops at the first failure
  tidy   the house rules alone: manifests, file lengths, left-over marks, paths, reasons, links
  bench  what tidal costs beside other engines, and docs/benchmarks.md: cargo xtask bench [--quick] [--only ROW]..
  api    every public name of a library, as the snapshots have them: cargo xtask api CRATE
  canaries
         every deliberate break, and in which words its test noticed it
  fuzz   every fuzzer for a while, where there is a nightly toolchain: cargo xtask fuzz [SECONDS]
  miri   the tests of keys and entities under miri, where a toolchain has it
  soak   hours of kills and random sequences: cargo xtask soak [STEP]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ci"] => ci::run(),
        ["tidy"] => tidy::run(),
        ["bench", rest @ ..] => bench::run(rest),
        ["canaries"] => canaries::run(),
        ["api", package] => public_api::run(package),
        ["fuzz"] => fuzz::run(fuzz::DEFAULT_SECONDS),
        ["fuzz", seconds] if seconds.parse::<u64>().is_ok() => fuzz::run(seconds),
        ["miri"] => miri::run(),
        ["soak"] => soak::run(None),
        ["soak", step] => soak::run(Some(step)),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
