//! What the gate adds to a signal of somebody who stays: the same build with and without it, in turn.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tidal_bench::{Bound, Figure, Sample, note, point, ratio};

use crate::run::{Run, copy};

const BOUNDED_BY: &str = "One shard's read lock, one count of waiting writers and one lookup a signal. That a user \
                          has no record is read off the control bytes of the map, 17 MB with ten million records, so \
                          mostly not in a cache: two thirds of the samples that a profiler takes in the recording of \
                          a signal wait for that one line. Lock and count on one line would not save it, since both \
                          are in the nearest cache; a filter in front of the map that is as seldom wrong is no \
                          smaller than those bytes; striped locks in place of the shard's cost a quarter to two \
                          fifths more; and an answer kept with the user's profile, which is fetched in any case, \
                          would be a second truth that every leave has to take back in time. What a signal costs \
                          besides has become less, so the same wait weighs more.";

/// So many callers at once.
const THREADS: [u64; 2] = [1, 2];

/// A gate worker, built one way or the other.
struct Worker {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    has_gate: bool,
}

impl Worker {
    fn start(program: &Path, file: &Path, has_gate: bool) -> Self {
        let mut process = Command::new(program)
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output, has_gate }
    }

    /// Waits until it has opened its file and knows its users.
    fn wait_until_ready(&mut self) {
        assert_eq!(self.answer(), format!("ready {}", self.has_gate), "the right build");
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Nanoseconds a signal.
    fn round(&mut self, signals: u64, threads: u64) -> f64 {
        writeln!(self.input, "{signals} {threads}").unwrap();
        let ns: f64 = self.answer().parse().expect("a time");
        ns * threads as f64 / signals as f64
    }

    /// Lets it look at its totals.
    fn end(self) {
        let Self { mut process, input, .. } = self;
        drop(input);
        assert!(process.wait().unwrap().success(), "the totals of a worker are right");
    }
}

pub(crate) fn run(run: &Run) {
    let few = run.scale.pick(20_000, 2_000);
    let [_, some, many] = run.sizes(10_000_000);
    for leavers in [few, some, many] {
        let measured = measure(run, leavers);
        for (threads, Measured { with, without }) in THREADS.into_iter().zip(measured) {
            let (times, spread) = ratio(&with, &without);
            let bound = match (leavers == many, threads) {
                (true, _) => Bound::AtMost(1.15),
                (false, 1) => Bound::AtMost(1.05),
                (false, _) => Bound::AtMost(1.10),
            };
            let what = format!("signal, {leavers} left of 20 million, {threads} at once: gate against none");
            Figure::new(what, times, "times").between(spread).target(bound).bounded_by(BOUNDED_BY).print();
            let what = format!("the same with the gate, {leavers} left, {threads} at once");
            Figure::new(what, with.median(), "ns a signal and thread").between(with.quartiles()).print();
            point("gate", format!("{threads} at once"), leavers as f64, times);
        }
    }
    note(
        "Where a process has its maps in memory makes some hundredths of a difference that stays for as long as it runs, \
         so the rounds are those of several pairs of processes.",
    );
}

/// Nanoseconds a signal and thread, round by round.
#[derive(Default)]
struct Measured {
    with: Sample,
    without: Sample,
}

/// What each of [`THREADS`] takes.
fn measure(run: &Run, leavers: u64) -> [Measured; 2] {
    let signals = run.scale.pick(200_000, 20_000);
    let (pairs, rounds) = run.scale.pick((3, 12), (2, 3));
    let file = run.leavers(leavers);
    let mut measured = [Measured::default(), Measured::default()];
    for _ in 0..pairs {
        let folder = run.scratch();
        let start = |name: &str, has_gate| {
            let program = run.workers.join(name);
            Worker::start(&program, &copy(&file, folder.path(), name), has_gate)
        };
        let mut gated = start("gate-worker", true);
        let mut bare = start("gate-worker-without-gate", false);
        for worker in [&mut gated, &mut bare] {
            worker.wait_until_ready();
        }
        for (threads, Measured { with, without }) in THREADS.into_iter().zip(&mut measured) {
            for round in 0..=rounds {
                let (a, b) = if round % 2 == 0 {
                    let a = gated.round(signals, threads);
                    (a, bare.round(signals, threads))
                } else {
                    let b = bare.round(signals, threads);
                    (gated.round(signals, threads), b)
                };
                // The first round warms both up.
                if round > 0 {
                    with.push(a);
                    without.push(b);
                }
            }
        }
        gated.end();
        bare.end();
    }
    measured
}
