//! What one signal, one aggregate and one leave take on disk.

use std::path::Path;

use tidal_bench::{Figure, note};

use crate::live_bytes::{TableBytes, tables};
use crate::run::Run;

pub(crate) fn run(run: &Run) {
    let [_, _, signals] = run.event_sizes();
    let events = run.events(signals);
    let of_events = tables(&events);
    let table = |name: &str| of_events.get(name).copied().unwrap_or_default();
    print("a signal in the log", signals, &[table("system/01")]);
    print("a signal in runs by user", signals, &[table("system/05")]);
    print("an aggregate", signals, &[table("items/02")]);
    whole("a signal with its aggregate, the whole file", signals, &events);
    let [_, _, left] = run.sizes(10_000_000);
    let leavers = run.leavers(left);
    let of_leavers = tables(&leavers);
    let table = |name: &str| of_leavers.get(name).copied().unwrap_or_default();
    print("a leave: record and transition", left, &[table("users/11"), table("users/12")]);
    print("a leave in the log", left, &[table("system/01")]);
    whole("a leave, the whole file", left, &leavers);
    note("Pages of a table count what is free in them; the whole file also what is free between.");
}

fn print(what: &str, len: u64, tables: &[TableBytes]) {
    let sum = |of: fn(&TableBytes) -> u64| tables.iter().map(of).sum::<u64>() as f64 / len as f64;
    let stored = sum(|table| table.stored);
    assert!(stored > 0.0, "{what} is stored somewhere");
    Figure::new(format!("on disk, {what}: keys and values"), stored, "bytes").print();
    Figure::new(format!("on disk, {what}: pages"), sum(|table| table.pages), "bytes").print();
}

fn whole(what: &str, len: u64, path: &Path) {
    let bytes = path.metadata().unwrap().len() as f64;
    Figure::new(format!("on disk, {what}"), bytes / len as f64, "bytes").print();
    let stored: u64 = tables(path).values().map(|table| table.stored).sum();
    Figure::new(format!("on disk, {what}, against keys and values"), bytes / stored as f64, "times").print();
}
