//! Runs the command in a folder of its own.

#![allow(dead_code, reason = "each test file uses a part")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tidal_db::Weight;

/// The header of an event file.
pub(crate) const HEADER: &str = "at,action,user,item,signal,weight,community,attribute\n";

/// A folder that the command runs in, so that no path of this machine stands in what it prints.
pub(crate) struct Folder {
    folder: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Writes an event file: its header and these rows.
    pub(crate) fn write_events(&self, name: &str, rows: &str) {
        self.write(name, format!("{HEADER}{rows}"));
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidal"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs it and returns stdout; it must succeed.
    pub(crate) fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        assert_eq!(stderr, "", "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs it with `--json` and returns its lines; it must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        self.stdout(&arguments).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A transcript: what was typed, the exit code if it is not 0, and what came back.
    pub(crate) fn transcript(&self, commands: &[&[&str]]) -> String {
        let mut text = String::new();
        for arguments in commands {
            let output = self.run(arguments);
            writeln!(text, "$ tidal {}", arguments.join(" ")).unwrap();
            text.push_str(&String::from_utf8(output.stdout).unwrap());
            for line in String::from_utf8(output.stderr).unwrap().lines() {
                writeln!(text, "stderr: {line}").unwrap();
            }
            if !output.status.success() {
                writeln!(text, "exit code: {}", output.status.code().unwrap()).unwrap();
            }
            text.push('\n');
        }
        text
    }
}

/// Recorded events: the event file, and the totals that any right replay gives.
pub(crate) struct Recorded {
    pub(crate) events: PathBuf,
    pub(crate) expected: Value,
}

impl Recorded {
    pub(crate) fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        let expected = std::fs::read_to_string(folder.join("expected.json")).unwrap();
        Self { events: folder.join("events.csv.gz"), expected: serde_json::from_str(&expected).unwrap() }
    }

    /// How many signals were withheld for this reason; files in order of time withhold for one reason only.
    pub(crate) fn withheld(&self, reason: &str) -> u64 {
        let by_reason = &self.expected["signals_withheld"];
        match by_reason.as_u64() {
            Some(all_left) if reason == "left" => all_left,
            Some(_) => 0,
            None => by_reason[reason].as_u64().unwrap_or(0),
        }
    }

    pub(crate) fn signal_count(&self) -> u64 {
        self.expected["rows"]["signal"].as_u64().unwrap()
    }

    pub(crate) fn row_count(&self) -> u64 {
        self.expected["rows"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    }

    /// The half-life of `submit` with which the scores were calculated; any other does for files without.
    pub(crate) fn half_life(&self) -> String {
        format!("submit={}d", self.expected["half_life_days"].as_u64().unwrap_or(7))
    }

    /// Checks every aggregate of every scope, every status and the number of users who are out.
    pub(crate) fn assert_totals(&self, folder: &Folder, db: &str) {
        self.assert_aggregates(&folder.json(&["aggregates", "--db", db]));
        let expected = self.expected["status"].as_object().unwrap();
        let mut arguments = vec!["status", "--db", db];
        arguments.extend(expected.keys().map(String::as_str));
        let found = folder.json(&arguments);
        assert_eq!(found.len(), expected.len());
        for standing in &found {
            let mut expected = expected[&standing["user"].to_string()].clone();
            expected["user"] = standing["user"].clone();
            assert_eq!(standing, &expected);
        }
        assert_eq!(folder.json(&["verify", "--db", db]), [serde_json::json!({ "differences": 0 })]);
        let left_at_end = &self.expected["left_at_end"];
        assert_eq!(&folder.json(&["left", "--count", "--db", db])[0]["left"], left_at_end);
        assert_eq!(folder.json(&["left", "--db", db]).len() as u64, left_at_end.as_u64().unwrap());
    }

    /// Checks every aggregate; the rows are in the form that the command prints.
    pub(crate) fn assert_aggregates(&self, rows: &[Value]) {
        let mut expected_count = 0;
        for scope in ["global", "cohort", "community"] {
            expected_count += self.expected[scope].as_object().unwrap().len();
        }
        assert_eq!(rows.len(), expected_count);
        for row in rows {
            assert_eq!(row["signal"], "submit");
            let scope = row["scope"].as_str().unwrap();
            let key = match row["id"].as_str() {
                None => row["item"].to_string(),
                // One of the files names cohorts by their value alone.
                Some(id) if self.expected["half_life_days"].is_null() => {
                    format!("{}/{}", id.strip_prefix("region=").unwrap_or(id), row["item"])
                }
                Some(id) => format!("{id}/{}", row["item"]),
            };
            let expected = &self.expected[scope][&key];
            assert!(expected.is_object(), "{scope} {key} is not expected");
            assert_eq!(row["count"], expected["count"], "count of {scope} {key}");
            // Parsed and written again, since 3E-9 and 0.000000003 are the same number.
            let weight_sum = expected["weight_sum"].to_string();
            let weight_sum: Weight = weight_sum.trim_matches('"').parse().unwrap();
            assert_eq!(row["weight_sum"], weight_sum.to_string(), "weight_sum of {scope} {key}");
            if let (Some(score), Some(scale)) = (expected["score"].as_str(), expected["score_scale"].as_str())
            {
                let wanted: f64 = score.parse().unwrap();
                let tolerance = 1e-9 * scale.parse::<f64>().unwrap();
                let found = row["score"].as_f64().unwrap();
                assert!((found - wanted).abs() <= tolerance, "score of {scope} {key}: {found}, not {wanted}");
            }
        }
    }
}
