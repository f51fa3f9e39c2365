//! What an open costs, part by part: after a close, and after a kill in the middle of signals.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use tidal_bench::{Bound, EVENT_TIME_NS, Figure, Sample, batched, note, point};
use tidal_db::{Storage, TidalDb, Weight};

use crate::run::{Run, copy};

/// So many signals are sent before the kill, fewer than a checkpoint waits for: all of them have to be read again.
const SIGNALS_BEFORE_KILL: u64 = 240_000;

const BOUNDED_BY: &str = "An open that checks pages reads them all, after a kill as after a close. One that checks none \
                          has to after a kill: the engine goes through all pages twice, to see that they are whole and \
                          which are free, at 1.8 us a page and time, half of it copies and room for them. A tenth went \
                          when tidal no longer asked for the length of the file before each page. Two-phase commits do \
                          not shorten it. The engine's quick repair does, to 1 ms in place of 2.1 s for 2.3 GB, but \
                          only if the last commit before the kill was one, so all have to be: in turn with plain ones a \
                          leave was 1.41 times a bare commit in place of 1.21, 1.55 times itself in a file of ten \
                          million leavers, and one caller of Immediate signals came to 2,800 a second in place of 4,900. \
                          It also leaves out the look at pages that a killed file gets now whatever was asked for.";

/// One open, in seconds.
#[derive(Clone, Copy, Debug)]
struct Parts {
    storage_s: f64,
    rebuild_s: f64,
    replayed: u64,
}

impl Parts {
    fn whole_s(self) -> f64 {
        self.storage_s + self.rebuild_s
    }
}

fn open(path: &Path, check: bool) -> Parts {
    let began = Instant::now();
    let storage = Storage::options().check_integrity(check).open(path).unwrap();
    let storage_s = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let db = TidalDb::from_parts(storage, TidalDb::builder().path(path)).unwrap();
    let rebuild_s = began.elapsed().as_secs_f64();
    assert!(db.open_report().is_clean());
    let replayed = db.open_report().replayed_entries;
    db.close().unwrap();
    Parts { storage_s, rebuild_s, replayed }
}

/// The one whose whole is in the middle.
fn median(mut opens: Vec<Parts>) -> Parts {
    opens.sort_by(|a, b| a.whole_s().total_cmp(&b.whole_s()));
    opens[opens.len() / 2]
}

pub(crate) fn run(run: &Run) {
    let sizes = run.event_sizes();
    let rounds = run.scale.pick(3, 2);
    for events in sizes {
        let path = run.events(events);
        let bytes = path.metadata().unwrap().len();
        // The first one warms up.
        open(&path, false);
        let unchecked = median((0..rounds).map(|_| open(&path, false)).collect());
        let checked = median((0..rounds).map(|_| open(&path, true)).collect());
        point("open", "no page checked", events as f64, unchecked.whole_s() * 1e3);
        point("open", "every page checked", events as f64, checked.whole_s() * 1e3);
        let what =
            format!("open after a close, {events} signals, {events} aggregates, {} MB", bytes / 1_000_000);
        print(&format!("{what}, no page checked"), unchecked);
        print(&format!("{what}, every page checked"), checked);
        if events == sizes[2] {
            after_kill(run, &path, events);
        }
    }
    note(
        "Files are in the page cache of the system. The store's part is the engine's open, and with the check reading \
         every page; the rest is tidal's: aggregates, who left, memberships, and the log since the last checkpoint.",
    );
}

fn print(what: &str, parts: Parts) {
    Figure::new(format!("{what}: the whole"), parts.whole_s() * 1e3, "ms").print();
    Figure::new(format!("{what}: the store"), parts.storage_s * 1e3, "ms").print();
    Figure::new(
        format!("{what}: tidal, {} entries of the log read", parts.replayed),
        parts.rebuild_s * 1e3,
        "ms",
    )
    .print();
}

fn after_kill(run: &Run, fixture: &Path, events: u64) {
    let folder = run.scratch();
    let killed = copy(fixture, folder.path(), "killed.tidal");
    let mut child = Run::again("signal-until-killed")
        .arg(&killed)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "sent");
    // SIGKILL on the systems that have it.
    child.kill().unwrap();
    child.wait().unwrap();

    let unchecked = measure_after_kill(run, &killed, folder.path(), events, false);
    measure_after_kill(run, &killed, folder.path(), events, true);
    let bound = tidal_db::DEFAULT_RECOVERY_ENTRIES as f64;
    Figure::new("entries of the log read after the kill", unchecked.replayed as f64, "entries")
        .target(Bound::AtMost(bound))
        .bounded_by("Checkpoints begin at a quarter of what an open may read, and signals wait where they cannot keep up.")
        .print();
    assert!(unchecked.replayed > 0, "the kill left something to read");
}

/// The first open mends the file, so each is of a copy of its own. The next one, after a close, has the same log to
/// read: what the kill costs lies between the two.
fn measure_after_kill(run: &Run, killed: &Path, folder: &Path, events: u64, check: bool) -> Parts {
    let (mut after_kill, mut after_close, mut times) = (Vec::new(), Vec::new(), Sample::new());
    for _ in 0..run.scale.pick(3, 2) {
        let path = copy(killed, folder, "opened.tidal");
        let (first, second) = (open(&path, check), open(&path, check));
        // A checkpoint may have begun between the two.
        assert!(second.replayed <= first.replayed, "nothing was added to the log");
        times.push(first.whole_s() / second.whole_s());
        after_kill.push(first);
        after_close.push(second);
    }
    let (after_kill, after_close) = (median(after_kill), median(after_close));
    let checked = if check { "every page checked" } else { "no page checked" };
    let what = format!("open after kill -9, {events} signals, {checked}");
    print(&what, after_kill);
    print(&format!("the same file after a close, {checked}"), after_close);
    Figure::new(
        format!("{what}: against the same file, with the same log to read, after a close"),
        times.median(),
        "times",
    )
    .between(times.quartiles())
    .target(Bound::AtMost(1.1))
    .bounded_by(BOUNDED_BY)
    .print();
    after_kill
}

/// Sends signals without an end; says so when enough are on disk.
pub(crate) fn signal_until_killed(arguments: &[String]) {
    let path = arguments.first().expect("the file");
    // Whoever is to kill this may be killed first: then the input is closed.
    std::thread::spawn(|| {
        let _closed = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
    let config = TidalDb::builder().path(path).check_integrity(false).durability(batched());
    let db = config.open().unwrap();
    for nth in 0..SIGNALS_BEFORE_KILL {
        db.signal_exact(nth % 1_000, nth, "view", Weight::ONE, Some(EVENT_TIME_NS)).unwrap();
    }
    db.flush().unwrap();
    println!("sent");
    // A commit is under way when the kill comes.
    for nth in 0..u64::MAX {
        db.signal_exact(7, nth % 100, "view", Weight::ONE, Some(EVENT_TIME_NS)).unwrap();
        db.flush().unwrap();
    }
}
