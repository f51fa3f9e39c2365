//! One row as a process of its own: what it says is kept, also if it fails, or does not end.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::line::Line;
use super::report::Outcome;
use super::rows::Row;

/// A row that takes longer is ended. The longest builds files of some gigabytes.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// So long the output of a row that ended is waited for.
const LATE_OUTPUT: Duration = Duration::from_secs(5);

/// Lines of complaint that are kept for the report.
const KEPT_LINES: usize = 3;

/// Runs one row to its end.
pub(crate) fn run(row: Row, program: &Path, folder: &Path, quick: bool) -> Outcome {
    println!("\n==> {}", row.name);
    let began = Instant::now();
    let mut command = Command::new(program);
    command.arg(row.name).arg("--folder").arg(folder).arg("--workers").arg(folder);
    if quick {
        command.arg("--quick");
    }
    // The reason of a failure is its last line, and shall not be a trace.
    command.env("RUST_BACKTRACE", "0");
    let (lines, failure) = match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => follow(child),
        Err(error) => (Vec::new(), Some(format!("cannot start {}: {error}", program.display()))),
    };
    Outcome { row, lines, failure, seconds: began.elapsed().as_secs_f64() }
}

/// Reads what the row says until it ends.
fn follow(mut child: Child) -> (Vec<Line>, Option<String>) {
    let said = child.stdout.take().map(|output| Reader::start(output, |line| println!("{line}")));
    let complaints = child.stderr.take().map(|output| Reader::start(output, |line| eprintln!("{line}")));
    let ended = wait(&mut child);
    let texts = said.map(Reader::end).unwrap_or_default();
    let complaints = complaints.map(Reader::end).unwrap_or_default();
    let mut failure = ended.err().map(|ended| format!("{ended}: {}", reason(&complaints)));
    let mut lines = Vec::new();
    for text in texts {
        match Line::parse(&text) {
            Ok(line) => lines.push(line),
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    }
    (lines, failure)
}

/// The last complaints; how to get a backtrace is none.
fn reason(complaints: &[String]) -> String {
    let complaints: Vec<&str> =
        complaints.iter().map(String::as_str).filter(|line| !line.starts_with("note: ")).collect();
    let kept = complaints.len().saturating_sub(KEPT_LINES);
    complaints.into_iter().skip(kept).collect::<Vec<_>>().join(" ")
}

/// Keeps the lines that a process writes, and shows them as they come.
struct Reader {
    lines: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn start(output: impl Read + Send + 'static, show: impl Fn(&str) + Send + 'static) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&lines);
        let thread = std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                show(&line);
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Self { lines, thread }
    }

    /// What there was. The output of a row that was killed may stay open in what it had started: that is not waited for.
    fn end(self) -> Vec<String> {
        let began = Instant::now();
        while !self.thread.is_finished() && began.elapsed() < LATE_OUTPUT {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn wait(child: &mut Child) -> Result<(), String> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) if began.elapsed() > LONGEST => {
                let _ended = child.kill();
                let _ended = child.wait();
                return Err(format!("it was ended after {} minutes", LONGEST.as_secs() / 60));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(100)),
            Err(error) => return Err(format!("it cannot be waited for: {error}")),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::super::line::Line;
    use super::follow;

    fn follow_script(script: &str) -> (Vec<Line>, Option<String>) {
        let mut command = Command::new("sh");
        follow(command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    #[test]
    fn what_a_row_said_before_it_failed_is_kept() {
        let note = r#"{"kind":"note","text":"b"}"#;
        let (lines, failure) = follow_script(&format!("echo '{note}'; echo why >&2; exit 3"));
        assert_eq!(lines, [Line::Note { text: "b".into() }]);
        let failure = failure.unwrap();
        assert!(failure.contains('3') && failure.contains("why"), "{failure}");
    }

    #[test]
    fn what_a_row_started_and_left_is_not_waited_for() {
        let (_, failure) = follow_script("sleep 15 & echo why >&2; exit 3");
        assert!(failure.unwrap().contains("why"));
    }

    #[test]
    fn a_row_that_says_what_is_no_line_fails() {
        let (lines, failure) = follow_script("echo nonsense");
        assert_eq!(lines, []);
        assert!(failure.unwrap().contains("nonsense"));
        assert_eq!(follow_script("exit 0"), (Vec::new(), None));
    }
}
