//! Measures rows of figures, tidal and other engines side by side, and prints one JSON object a line.
//!
//! `bench-rows ROW --folder FOLDER [--quick] [--workers FOLDER]`; `cargo xtask bench` calls it for each row, so that
//! one that fails takes no other with it. Fixtures are built in the folder by the first row that needs them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a bench fails by panicking, and casts what it made itself"
)]

mod engines;
mod live_bytes;
mod rows;
mod run;

use std::path::PathBuf;

use tidal_bench::Scale;

use crate::run::Run;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let row = arguments.next().expect("the name of a row");
    let mut run = Run { folder: PathBuf::from("."), workers: PathBuf::from("."), scale: Scale::Full };
    let mut rest = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => run.scale = Scale::Quick,
            "--folder" => run.folder = arguments.next().expect("a folder").into(),
            "--workers" => run.workers = arguments.next().expect("a folder").into(),
            _ => rest.push(argument),
        }
    }
    match row.as_str() {
        "gate" => rows::gate::run(&run),
        "ingest" => rows::ingest::run(&run),
        "engines" => rows::engines::run(&run),
        "delay" => rows::delay::run(&run),
        "immediate" => rows::immediate::run(&run),
        "leave" => rows::leave::run(&run),
        "restore" => rows::restore::run(&run),
        "open" => rows::open::run(&run),
        "top" => rows::top::run(&run),
        "history" => rows::history::run(&run),
        "memory" => rows::memory::run(&run),
        "disk" => rows::disk::run(&run),
        // What rows start as processes of their own.
        "resident" => rows::memory::print_resident(&rest),
        "signal-until-killed" => rows::open::signal_until_killed(&rest),
        other => panic!("there is no row {other}"),
    }
}
