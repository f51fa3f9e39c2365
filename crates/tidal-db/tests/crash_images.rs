//! Every file that a crash can leave, over workloads that come to every durable operation.
//!
//! `TIDAL_CRASH_IMAGES` says how many images are tried at least; without it a part of them.
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

use std::sync::Arc;

use scenarios::crash::trace::Trace;
use scenarios::crash::{SEED, Tried, try_workload, workload};
use scenarios::medium::take_step;
use tidal_db::Storage;
use tidal_entities::{
    checkpoint_key, decode_checkpoint, decode_run_index, decode_schema, run_index_key, schema_key,
};
use tidal_storage::MemoryMedium;

/// So many are tried among the other tests.
const IMAGES: usize = 4_000;

#[test]
fn whatever_a_crash_leaves_opens_with_all_that_was_acknowledged() {
    let wanted =
        std::env::var("TIDAL_CRASH_IMAGES").map_or(IMAGES, |images| images.parse().expect("a number"));
    let workloads = workload::all();
    let mut total = Tried::default();
    for workload in &workloads {
        let tried = try_workload(workload, wanted.div_ceil(workloads.len()), &|config| config).unwrap();
        println!("{}: {tried:?}", workload.name);
        total.add(tried);
    }
    println!(
        "{} crash images tried, {} of them after a second crash; {} different files opened; of {} intervals between \
         syncs {} with every subset of their writes; seed {SEED:#x}",
        total.images, total.crashes_again, total.distinct, total.intervals, total.exhaustive
    );
    assert!(total.images >= wanted, "only {} of {wanted} images were tried", total.images);
}

#[test]
fn the_workload_of_a_growing_schema_grows_it() {
    let workload = workload::all().into_iter().find(|workload| workload.grows).unwrap();
    let trace = Trace::record(&workload, &|config| config).unwrap();
    let mut bytes = trace.base;
    let mut stored = Vec::new();
    for step in &trace.steps {
        take_step(&mut bytes, step);
        if let Ok(storage) = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(bytes.clone())))
            && let Some(value) = storage.system_engine().get(&schema_key()).unwrap()
        {
            stored.push(decode_schema(&schema_key(), &value).unwrap().signal_types().len());
        }
    }
    stored.dedup();
    assert_eq!(stored, [1, 2]);
}

/// What a workload leaves, opened beneath the database.
fn left_by(name: &str) -> Storage {
    let workload = workload::all().into_iter().find(|workload| workload.name == name).unwrap();
    let trace = Trace::record(&workload, &|config| config).unwrap();
    let mut bytes = trace.base;
    for step in &trace.steps {
        take_step(&mut bytes, step);
    }
    Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(bytes))).unwrap()
}

#[test]
fn the_workloads_come_to_checkpoints_and_merged_runs() {
    let storage = left_by("checkpoints");
    let key = checkpoint_key();
    let value = storage.system_engine().get(&key).unwrap().unwrap();
    assert!(decode_checkpoint(&key, &value).unwrap().floor > 20);

    let storage = left_by("runs");
    let key = run_index_key();
    let value = storage.system_engine().get(&key).unwrap().unwrap();
    let index = decode_run_index(&key, &value).unwrap();
    assert!(index.runs.iter().any(|run| run.level == 1), "{index:?}");
}
