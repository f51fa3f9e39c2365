//! Every I/O operation in turn fails, once and for good: in workloads that come to every durable operation, and
//! while the files that crashes left are opened and recovered.
//!
//! `TIDAL_IO_FAILURE_STEP` says that every so manieth operation is tried; 1 tries each of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "tests fail by panicking, and use a part of the scenarios"
)]

mod scenarios;

use scenarios::crash::workload;
use scenarios::failing_io::{Injected, every_failure_of, every_failure_while_opening};

fn step() -> u64 {
    std::env::var("TIDAL_IO_FAILURE_STEP").map_or(61, |step| step.parse().expect("a number"))
}

#[test]
fn no_failure_of_a_workload_lets_anybody_back_in() {
    let mut total = Injected::default();
    for workload in workload::all() {
        let injected = every_failure_of(&workload, &|config| config, step()).unwrap();
        println!("{}: {injected:?}", workload.name);
        total.add(&injected);
    }
    println!("{} failures injected into workloads: {:?}", total.total(), total.by_operation);
    assert!(total.total() > 300, "only {total:?}");
}

#[test]
fn no_failure_of_a_recovery_lets_anybody_back_in() {
    let mut total = Injected::default();
    for workload in workload::all() {
        // Each file has hundreds of operations to fail, so a few files are as many failures.
        let each = usize::try_from(step()).unwrap() * 2;
        let injected = every_failure_while_opening(&workload, &|config| config, each).unwrap();
        println!("{}: {injected:?}", workload.name);
        total.add(&injected);
    }
    println!(
        "{} failures injected while opening: {:?}; {} of the opens were refused",
        total.total(),
        total.by_operation,
        total.refused
    );
    let has = |operation| total.by_operation.contains_key(operation);
    assert!(["len", "read", "sync", "write"].into_iter().all(has), "{total:?}");
}
