//! G2, G3 and G7 over crashes: whatever subset of the unsynced writes is on disk, the file opens, what
//! was acknowledged is there, the views follow the log, and who left is out. Then once more, for a
//! crash while or after the file is recovered.

pub mod check;
pub mod images;
pub mod trace;
pub mod visible;
pub mod workload;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use check::Checker;
use images::{EXHAUSTIVE_WRITES, Interval, intervals};
use tidal_db::Config;
use trace::{Adapt, Trace};
use workload::Workload;

use super::Seen;

/// By which the subsets are chosen where not all are tried.
pub const SEED: u64 = 0x5EED_0F71_DA10;

/// Of a hundred images, so many are of a second crash.
const SECOND_CRASHES_PERCENT: usize = 30;

/// So many images at least are tried of each second crash.
const IMAGES_PER_SECOND_CRASH: usize = 150;

/// How many images were tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    pub images: usize,
    pub distinct: usize,
    pub intervals: usize,
    /// Intervals of which every subset of the writes was tried.
    pub exhaustive: usize,
    pub crashes_again: usize,
}

impl Tried {
    pub fn add(&mut self, other: Self) {
        self.images += other.images;
        self.distinct += other.distinct;
        self.intervals += other.intervals;
        self.exhaustive += other.exhaustive;
        self.crashes_again += other.crashes_again;
    }
}

/// Tries some hundred images of the script that has every kind of transition.
pub fn every_crash_keeps_what_was_acknowledged(adapt: impl Fn(Config) -> Config + Sync) -> Seen<usize> {
    Ok(try_workload(&workload::transitions(), 600, &adapt)?.images)
}

/// Tries at least `images` images of one workload.
pub fn try_workload(workload: &Workload, images: usize, adapt: Adapt<'_>) -> Seen<Tried> {
    let trace = Trace::record(workload, adapt)?;
    let (mut tried, limit) = try_trace(&trace, images * (100 - SECOND_CRASHES_PERCENT) / 100, adapt)?;
    let starts = starts(&trace);
    let mut nth = 0;
    while tried.images < images {
        // Odd, so that every interval has its turn, and another image of it each time.
        let interval = starts[nth * 17 % starts.len()];
        let choices = interval.choices(&trace, limit, SEED);
        let image = interval.image(&trace, &interval.base(&trace), &choices[nth * 7 % choices.len()]);
        nth += 1;
        let second = Trace::go_on(&trace, image, trace.required(interval.end), adapt)?;
        let Some(second) = second else { continue };
        let (again, _) = try_trace(&second, IMAGES_PER_SECOND_CRASH, adapt)?;
        tried.add(Tried { crashes_again: again.images, ..again });
    }
    Ok(tried)
}

/// The intervals after a crash in which there is a database to go on with.
fn starts(trace: &Trace) -> Vec<Interval> {
    let can_go_on = |interval: &Interval| {
        let required = trace.required(interval.end);
        required.is_created && !required.is_rebuilding
    };
    intervals(&trace.steps).into_iter().filter(can_go_on).collect()
}

/// Tries about so many images of one trace. Returns the limit of subsets that this came to as well.
fn try_trace(trace: &Trace, images: usize, adapt: Adapt<'_>) -> Seen<(Tried, usize)> {
    let intervals = intervals(&trace.steps);
    let limit = limit_for(trace, &intervals, images);
    let checker = Checker::new(trace, adapt);
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let outcomes = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let next = intervals.get(index).filter(|_| !has_failed.load(Ordering::Relaxed));
                    let Some(interval) = next else { return };
                    let outcome = try_interval(&checker, trace, *interval, limit);
                    has_failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    outcomes.lock().expect("no thread panics with it").insert(index, outcome);
                }
            });
        }
    });
    let mut tried = Tried { intervals: intervals.len(), ..Tried::default() };
    for (index, outcome) in outcomes.into_inner().expect("no thread panicked") {
        tried.images += outcome?;
        tried.exhaustive += usize::from(intervals[index].is_exhaustive(limit));
    }
    tried.distinct = checker.distinct();
    Ok((tried, limit))
}

/// How many subsets of an interval are tried, so that it comes to so many images.
fn limit_for(trace: &Trace, intervals: &[Interval], images: usize) -> usize {
    let mut limit = 4;
    let total = |limit| intervals.iter().map(|each| each.choices(trace, limit, SEED).len()).sum::<usize>();
    while limit < 1 << EXHAUSTIVE_WRITES && total(limit) < images {
        limit += limit.div_ceil(4);
    }
    limit.min(1 << EXHAUSTIVE_WRITES)
}

fn try_interval(checker: &Checker<'_>, trace: &Trace, interval: Interval, limit: usize) -> Seen<usize> {
    let base = interval.base(trace);
    let required = trace.required(interval.end);
    let mut images = 0;
    for kept in interval.choices(trace, limit, SEED) {
        let image = interval.image(trace, &base, &kept);
        if let Err(seen) = checker.check(image.clone(), required) {
            return Err(format!(
                "{}: a crash before step {} of {}, with {kept:?}, kept as {}: {seen}",
                trace.workload.name,
                interval.end,
                trace.steps.len(),
                keep(&image)
            ));
        }
        images += 1;
    }
    Ok(images)
}

/// Keeps an image that failed, to be looked at.
fn keep(image: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-{}.tidal", std::process::id()));
    match std::fs::write(&path, image) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("nothing ({error})"),
    }
}
