//! Snapshots that wait for a review, and snapshots that no test looks at.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files;
use crate::step::Failure;

/// The file into which insta writes the path of every snapshot that a test asserts.
///
/// It is what `cargo insta test --unreferenced` reads, and it is written whatever `INSTA_UPDATE` says.
const REFERENCES_VARIABLE: &str = "INSTA_SNAPSHOT_REFERENCES_FILE";

/// Where the tests of one run noted the snapshots they saw.
pub(crate) struct References {
    path: PathBuf,
}

impl References {
    /// An empty list beside what is built, so that two clones never share one.
    pub(crate) fn start() -> Result<Self, Failure> {
        let folder = std::env::current_exe()
            .ok()
            .and_then(|program| program.parent().map(Path::to_path_buf))
            .unwrap_or_else(std::env::temp_dir);
        let path = folder.join("snapshot-references.txt");
        fs::write(&path, "").map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Self { path })
    }

    /// Makes the tests note what they see, and change no snapshot.
    pub(crate) fn note_in(&self, tests: &mut Command) {
        tests.env(REFERENCES_VARIABLE, &self.path).env("INSTA_UPDATE", "no");
    }

    /// The snapshot files that no test asserted.
    pub(crate) fn unseen(&self) -> Result<Vec<String>, Failure> {
        let noted = fs::read_to_string(&self.path)
            .map_err(|error| format!("cannot read {}: {error}", self.path.display()))?;
        let seen: BTreeSet<PathBuf> = noted.lines().map(|line| canonical(Path::new(line))).collect();
        let unseen = files::all()?
            .iter()
            .filter(|path| files::has_extension(path, &["snap"]) && !seen.contains(&canonical(path)))
            .map(|path| files::relative(path))
            .collect();
        Ok(unseen)
    }
}

/// Snapshots that a run wrote and nobody accepted.
pub(crate) fn pending() -> Result<Vec<String>, Failure> {
    let pending = files::all()?
        .iter()
        .map(|path| files::relative(path))
        .filter(|path| path.ends_with(".snap.new") || path.ends_with(".pending-snap"))
        .collect();
    Ok(pending)
}

/// Refuses a list that is not empty.
pub(crate) fn refuse(what: &str, advice: &str, paths: &[String]) -> Result<(), Failure> {
    if paths.is_empty() {
        return Ok(());
    }
    Err(format!("{what}; {advice}:\n  {}", paths.join("\n  ")))
}

/// Paths reach us by different ways, so they are compared as the file system sees them.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
