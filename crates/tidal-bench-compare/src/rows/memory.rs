//! What a leaver and an aggregate take of memory: how much a fresh process has grown by once it opened a file.

use std::path::Path;

use tidal_bench::{Bound, Figure, note, point, resident_bytes};
use tidal_db::TidalDb;

use crate::run::Run;

/// So that pages of the file are a small part.
const CACHE_BYTES: usize = 1024 * 1024;

pub(crate) fn run(run: &Run) {
    let [_, some, many] = run.sizes(10_000_000);
    for leavers in [some, many] {
        print("leaver", leavers, &run.leavers(leavers), 110.0);
    }
    let [_, some, many] = run.event_sizes();
    for events in [some, many] {
        print("aggregate", events, &run.events(events), 180.0);
    }
    note(
        "Resident memory of a process that did nothing but open the file, with up to 1 MiB of its pages; what the open itself needed and gave back counts where the allocator kept it. Aggregates include the \
         profiles of one user for a hundred of them.",
    );
}

fn print(what: &str, len: u64, path: &Path, bound: f64) {
    let output = Run::again("resident").arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let grown: u64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let each = grown as f64 / len as f64;
    Figure::new(format!("memory for each {what}, of {len}"), each, "bytes")
        .target(Bound::AtMost(bound))
        .bounded_by(match what {
            "leaver" => {
                "A map of records that doubles when it is full, so between 8/7 and 16/7 places for each."
            }
            _ => "State and place in the ranking of each, and a map that doubles when it is full.",
        })
        .print();
    point("memory", format!("bytes for each {what}"), len as f64, each);
}

/// Says how much this process has grown by opening a file.
pub(crate) fn print_resident(arguments: &[String]) {
    let path = arguments.first().expect("the file");
    let before = resident_bytes();
    let config = TidalDb::builder().path(path).check_integrity(false).cache_size_bytes(CACHE_BYTES);
    let db = config.open().unwrap();
    println!("{}", resident_bytes().saturating_sub(before));
    db.close().unwrap();
}
