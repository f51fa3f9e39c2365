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

/// Of so many images of a second crash, one first crash is recovered from.
const IMAGES_PER_SECOND_CRASH: usize = 150;

/// A file to go on from, and the interval in which the crash left it.
type Start = (Interval, Vec<u8>);

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

/// Tries at least `images` images of one workload, if it has so many.
pub fn try_workload(workload: &Workload, images: usize, adapt: Adapt<'_>) -> Seen<Tried> {
    let trace = Trace::record(workload, adapt)?;
    let second_images = images * SECOND_CRASHES_PERCENT / 100;
    let seconds = second_images.div_ceil(IMAGES_PER_SECOND_CRASH);
    let (mut tried, starts) = try_trace(&trace, images - second_images, seconds, adapt)?;
    for (interval, image) in starts {
        let Some(second) = Trace::go_on(&trace, image, trace.required(interval.end), adapt)? else {
            continue;
        };
        let (again, _) = try_trace(&second, second_images.div_ceil(seconds), 0, adapt)?;
        tried.add(Tried { crashes_again: again.images, ..again });
    }
    Ok(tried)
}

/// Tries about so many images of one trace, and keeps some of them to go on from.
fn try_trace(trace: &Trace, images: usize, kept: usize, adapt: Adapt<'_>) -> Seen<(Tried, Vec<Start>)> {
    let intervals = intervals(&trace.steps);
    let limit = limit_for(trace, &intervals, images);
    let checker = Checker::new(trace, adapt);
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let outcomes = Mutex::new(BTreeMap::new());
    let every = (images / kept.max(1)).max(1);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(interval) = intervals.get(index).filter(|_| !has_failed.load(Ordering::Relaxed))
                    else {
                        return;
                    };
                    let outcome = try_interval(&checker, trace, *interval, limit);
                    has_failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    outcomes.lock().expect("no thread panics with it").insert(index, outcome);
                }
            });
        }
    });
    let mut tried = Tried { intervals: intervals.len(), ..Tried::default() };
    let mut starts = Vec::new();
    for (index, outcome) in outcomes.into_inner().expect("no thread panicked") {
        let before = tried.images / every;
        tried.images += outcome?;
        let interval = intervals[index];
        tried.exhaustive += usize::from(interval.is_exhaustive(limit));
        // One of every so many images is gone on from: another one each time.
        if tried.images / every > before && starts.len() < kept {
            let choices = interval.choices(trace, limit, SEED);
            let chosen = &choices[starts.len() * 7 % choices.len()];
            if trace.required(interval.end).is_created {
                starts.push((interval, interval.image(trace, &interval.base(trace), chosen)));
            }
        }
    }
    tried.distinct = checker.distinct();
    Ok((tried, starts))
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
