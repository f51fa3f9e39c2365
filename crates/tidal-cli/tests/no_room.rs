//! A file that may not grow any further: what is said to be on disk is there, and running it again goes on behind it.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::process::{Command, Output};

use support::{Folder, Recorded};

/// Runs the command with a limit on the length of files, in units of the shell's: 512 bytes or 1 KiB.
fn run_within(folder: &Folder, limit: &str, arguments: &[&str]) -> Output {
    let command = folder.command(arguments);
    // Ignored, the signal becomes an error of the write; and what is ignored stays so in what is run.
    let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .output()
        .unwrap()
}

/// What stderr says, which must be one line.
fn only_line(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said.trim_end().to_owned()
}

#[test]
fn a_replay_says_what_is_on_disk_and_goes_on_behind_it() {
    let (folder, recorded) = (Folder::new(), Recorded::read("oulad"));
    let events = recorded.events.to_str().unwrap();
    let create = ["replay", events, "--db", "x.tidal", "--create", "--signal", "submit=7d"];
    let said = only_line(&run_within(&folder, "4000", &create));
    let start = format!(
        "tidal: {events}: nothing more was written after a failure: i/o error while writing x.tidal: "
    );
    assert!(said.starts_with(&start), "{said}");
    assert!(said.contains("; see to the disk, then run it again; rows known to be on disk: "), "{said}");
    let known: u64 = said.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(known > 0, "{said}");

    let summary = &folder.json(&["replay", events, "--db", "x.tidal"])[0];
    let (applied, skipped) = (summary["applied"].as_u64().unwrap(), summary["skipped"].as_u64().unwrap());
    assert!(skipped >= known, "{skipped} rows were on disk, not {known}");
    assert_eq!(applied + skipped, recorded.row_count());
}

#[test]
fn where_nothing_could_be_created_nothing_is_to_be_closed() {
    let (folder, recorded) = (Folder::new(), Recorded::read("oulad"));
    let events = recorded.events.to_str().unwrap();
    for limit in ["0", "8", "64"] {
        let create = ["replay", events, "--db", "x.tidal", "--create", "--signal", "submit=7d"];
        let said = only_line(&run_within(&folder, limit, &create));
        let start = "tidal: i/o error while creating x.tidal: check the path, your rights and the disk, then try again";
        assert!(said.starts_with(start), "{limit}: {said}");
        assert!(!folder.path("x.tidal").exists(), "{limit}");
    }
}
