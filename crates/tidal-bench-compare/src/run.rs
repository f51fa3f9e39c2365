//! One run: where its files are, and how large it is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tidal_bench::{Scale, build_events, build_leavers};

/// What every row is given.
#[derive(Debug)]
pub(crate) struct Run {
    /// Where fixtures and databases are: on the disk that is measured.
    pub(crate) folder: PathBuf,
    /// Where the two builds of the gate worker are.
    pub(crate) workers: PathBuf,
    pub(crate) scale: Scale,
}

impl Run {
    /// Three amounts of data, each ten times the one before.
    pub(crate) fn sizes(&self, largest: u64) -> [u64; 3] {
        let largest = self.scale.pick(largest, largest / 100);
        [largest / 100, largest / 10, largest]
    }

    /// Three amounts of signals. The largest is checkpointed and sorted by user in part even if it is quick.
    pub(crate) fn event_sizes(&self) -> [u64; 3] {
        self.scale.pick([100_000, 1_000_000, 10_000_000], [3_000, 30_000, 300_000])
    }

    /// A file in which so many users have left. Not to be changed: see [`copy`](Self::copy).
    pub(crate) fn leavers(&self, leavers: u64) -> PathBuf {
        self.fixture(&format!("leavers-{leavers}.tidal"), |path| build_leavers(path, leavers))
    }

    /// A file with so many signals and as many aggregates. Not to be changed.
    pub(crate) fn events(&self, signals: u64) -> PathBuf {
        self.fixture(&format!("events-{signals}.tidal"), |path| build_events(path, signals))
    }

    /// A file that is built once for all rows. What was left half built is built anew.
    pub(crate) fn fixture(&self, name: &str, build: impl FnOnce(&Path)) -> PathBuf {
        let path = self.folder.join(name);
        if !path.exists() {
            let unfinished = self.folder.join(format!("{name}.unfinished"));
            let _was_there = std::fs::remove_file(&unfinished);
            let began = Instant::now();
            build(&unfinished);
            std::fs::rename(&unfinished, &path).unwrap();
            eprintln!("built {name} in {:.1} s", began.elapsed().as_secs_f64());
        }
        path
    }

    /// A place of its own for files that are gone with it.
    pub(crate) fn scratch(&self) -> tempfile::TempDir {
        tempfile::tempdir_in(&self.folder).unwrap()
    }

    /// This program again, for what needs a process of its own.
    pub(crate) fn again(row: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(row);
        command
    }
}

/// A copy of a fixture that may be changed.
pub(crate) fn copy(fixture: &Path, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::copy(fixture, &path).unwrap();
    // What the copy left to be written would disturb what is measured next.
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    path
}
