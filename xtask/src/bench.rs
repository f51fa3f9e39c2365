//! `cargo xtask bench`: tidal beside other engines and against its targets, in one run.
//!
//! All rows at full size write `docs/benchmarks.md` and its charts; what is less is written beside what is built.

mod chart;
mod line;
mod machine;
mod number;
mod process;
mod report;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use self::report::Outcome;
use self::rows::{ROWS, Row};
use crate::files;
use crate::step::{Failure, cargo, execute};

/// Said to the compiler for the one build that lacks the gate.
pub(crate) const WITHOUT_GATE_VARIABLE: &str = "TIDAL_BENCH_WITHOUT_GATE";

/// What was asked for.
#[derive(Clone, Debug)]
struct Options {
    quick: bool,
    rows: Vec<Row>,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self, Failure> {
        let mut options = Self { quick: false, rows: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--quick" => options.quick = true,
                "--only" => {
                    let name = words.next().ok_or("--only needs the name of a row")?;
                    let row = ROWS.iter().find(|row| row.name == *name).ok_or_else(|| {
                        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
                        format!("there is no row {name}; take one of {}", names.join(", "))
                    })?;
                    options.rows.push(*row);
                }
                other => return Err(format!("unknown argument {other}; there are --quick and --only ROW")),
            }
        }
        if options.rows.is_empty() {
            options.rows = ROWS.to_vec();
        }
        Ok(options)
    }

    /// Only then the figures are those of one run at the sizes of the targets.
    fn is_whole(&self) -> bool {
        !self.quick && self.rows.len() == ROWS.len()
    }
}

const QUICK: &str = "A quick run, to see whether all of it works: sizes are a hundredth of those of the targets, and neither figures nor verdicts mean anything.";

/// Measures, prints and writes.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let options = match Options::parse(words) {
        Ok(options) => options,
        Err(failure) => {
            eprintln!("bench: {failure}");
            return ExitCode::from(2);
        }
    };
    match measure(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("bench: {failed} rows failed");
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Returns how many rows failed. A missed target is a finding, no failure.
fn measure(options: &Options) -> Result<usize, Failure> {
    let built = built_folder()?;
    let folder = built.join("bench");
    // What an earlier run left may be of another build.
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    }
    make_folder(&folder)?;
    println!(
        "Each row says what it measures as it goes; all of them take some twenty minutes, a table follows."
    );
    let program = build(&built, &folder)?;
    let mut machine = machine::describe(&folder);
    let began = Instant::now();
    let outcomes: Vec<Outcome> =
        options.rows.iter().map(|row| process::run(*row, &program, &folder, options.quick)).collect();
    machine.push(("load after", machine::load()));
    machine.push(("the run took", format!("{:.0} minutes", began.elapsed().as_secs_f64() / 60.0)));

    println!("{}", report::table(&outcomes));
    if options.quick {
        println!("{QUICK}");
    }
    let misses: usize = outcomes.iter().map(Outcome::misses).sum();
    let kept: usize = outcomes.iter().flat_map(Outcome::figures).filter(|f| f.passes() == Some(true)).count();
    let not_measured = outcomes.iter().flat_map(Outcome::not_measured).count();
    println!("{kept} targets kept, {misses} missed, {not_measured} not measured");
    remove_fixtures(&folder)?;
    let written = write(options, &folder, &machine, &outcomes)?;
    println!("written: {}", written.display());
    Ok(outcomes.iter().filter(|outcome| outcome.failure.is_some()).count())
}

/// Where cargo puts what it builds: this program is in it.
fn built_folder() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let folder = program.ancestors().nth(2).ok_or("this program is in no folder of cargo's")?;
    Ok(folder.to_owned())
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))
}

/// Builds the rows, and the gate worker with and without the gate. Returns the program of the rows.
fn build(built: &Path, folder: &Path) -> Result<PathBuf, Failure> {
    let bench = ["build", "--locked", "--release", "--bins", "--target-dir"];
    let release = built.join("release");
    let keep = |name: &str, kept: &str| {
        let (from, to) = (release.join(name), folder.join(kept));
        fs::copy(&from, &to).map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
        Ok::<_, Failure>(to)
    };
    execute(cargo().args(bench).arg(built).args(["-p", "tidal-bench", "-p", "tidal-bench-compare"]))?;
    let program = keep("bench-rows", "bench-rows")?;
    keep("gate-worker", "gate-worker")?;
    let mut without_gate = cargo();
    without_gate.args(bench).arg(built).args(["-p", "tidal-bench", "--features", "bench-without-gate"]);
    execute(without_gate.env(WITHOUT_GATE_VARIABLE, "1"))?;
    keep("gate-worker", "gate-worker-without-gate")?;
    // So that no program without the gate lies where programs are run from.
    let left = release.join("gate-worker");
    fs::remove_file(&left).map_err(|error| format!("cannot remove {}: {error}", left.display()))?;
    Ok(program)
}

/// They are gigabytes, and built anew by the next run.
fn remove_fixtures(folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("cannot clear {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            // What a row that was killed did not clear.
            fs::remove_dir_all(path).map_err(failed)?;
        } else if files::has_extension(&path, &["tidal", "unfinished"]) {
            fs::remove_file(path).map_err(failed)?;
        }
    }
    Ok(())
}

/// Writes the document and its charts, and returns where.
fn write(
    options: &Options,
    folder: &Path,
    machine: &[(&'static str, String)],
    outcomes: &[Outcome],
) -> Result<PathBuf, Failure> {
    let (place, headline) = if options.is_whole() {
        (
            files::root().join("docs"),
            "What tidal costs, beside other engines and against its targets. Written by `cargo xtask bench`, whose figures are all here, those that are lost too.",
        )
    } else if options.quick {
        (folder.to_owned(), QUICK)
    } else {
        (folder.to_owned(), "Some rows alone.")
    };
    let charts = place.join("charts");
    make_folder(&charts)?;
    let put = |path: &Path, text: String| {
        fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    for outcome in outcomes {
        let points = outcome.points();
        if let Some(chart) = outcome.row.chart.filter(|_| !points.is_empty()) {
            let svg = chart::svg(outcome.row.title, chart.x, chart.y, &points);
            put(&charts.join(format!("{}.svg", chart.name)), svg)?;
        }
    }
    let document = place.join("benchmarks.md");
    put(&document, report::document(headline, machine, outcomes, "charts"))?;
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::Options;
    use super::rows::ROWS;

    #[test]
    fn only_all_rows_at_full_size_are_a_whole_run() {
        assert!(Options::parse(&[]).unwrap().is_whole());
        assert!(!Options::parse(&["--quick"]).unwrap().is_whole());
        let some = Options::parse(&["--only", "gate", "--only", "top"]).unwrap();
        assert_eq!(some.rows.iter().map(|row| row.name).collect::<Vec<_>>(), ["gate", "top"]);
        assert!(!some.is_whole());
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        assert!(Options::parse(&["--only", "nonsense"]).unwrap_err().contains("nonsense"));
        assert!(Options::parse(&["--only"]).is_err());
        assert!(Options::parse(&["--fast"]).unwrap_err().contains("--fast"));
    }

    #[test]
    fn each_row_has_a_name_and_a_chart_of_its_own() {
        for (place, row) in ROWS.iter().enumerate() {
            assert_eq!(ROWS.iter().position(|other| other.name == row.name), Some(place));
            if let Some(chart) = row.chart {
                assert_eq!(chart.name, row.name);
            }
        }
    }
}
