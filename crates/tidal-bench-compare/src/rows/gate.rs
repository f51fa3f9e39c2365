//! What the gate adds to a signal of somebody who stays: the same build with and without it, in turn.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tidal_bench::{Bound, Figure, Sample, point, ratio};

use crate::run::{Run, copy};

const BOUNDED_BY: &str = "One shard's read lock, one count of waiting writers and one lookup a signal; beyond the \
                          caches, the lookup's misses.";

/// A gate worker, built one way or the other.
struct Worker {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
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
        let mut worker = Self { process, input, output };
        assert_eq!(worker.answer(), format!("ready {has_gate}"), "the right build");
        worker
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
    let signals = run.scale.pick(200_000, 20_000);
    let rounds = run.scale.pick(25, 5);
    let few = run.scale.pick(20_000, 2_000);
    let [_, some, many] = run.sizes(10_000_000);
    for leavers in [few, some, many] {
        let file = run.leavers(leavers);
        let folder = run.scratch();
        let start = |name: &str, has_gate| {
            let program = run.workers.join(name);
            Worker::start(&program, &copy(&file, folder.path(), name), has_gate)
        };
        let mut gated = start("gate-worker", true);
        let mut bare = start("gate-worker-without-gate", false);
        for threads in [1, 2] {
            let (mut with, mut without) = (Sample::new(), Sample::new());
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
        gated.end();
        bare.end();
    }
}
