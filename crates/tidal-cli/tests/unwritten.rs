//! Results that cannot be written: what was asked is done all the same, and the exit code tells.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::io::PipeWriter;
use std::process::Output;

use support::Folder;
use tidal_keys::{EntityId, Tag, encode_key};
use tidal_storage::Storage;

/// So many results do not fit the buffer before stdout.
const MANY: u64 = 400;

/// A pipe that nobody reads.
fn closed() -> PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
}

/// A folder with a database in which user 7 acted, and is in community 4.
fn created() -> Folder {
    let folder = Folder::new();
    folder.write_events(
        "events.csv",
        "2012-03-28T00:00:00Z,join,7,,,,4,\n2012-03-28T00:00:01Z,signal,7,9,view,2.5,,\n",
    );
    folder.stdout(&[
        "replay",
        "events.csv",
        "--db",
        "x.tidal",
        "--create",
        "--signal",
        "view=7d",
        "--cohorts-by",
        "region",
    ]);
    folder
}

fn run_unread(folder: &Folder, arguments: &[&str]) -> Output {
    folder.command(arguments).stdout(closed()).output().unwrap()
}

/// It failed in one line, and says that it was done.
fn assert_untold(output: &Output) {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.starts_with("tidal: all of it was done, but the result could not be written ("),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

fn left_count(folder: &Folder) -> u64 {
    folder.json(&["left", "--count", "--db", "x.tidal"])[0]["left"].as_u64().unwrap()
}

/// `command`, then the ids 1000 and following.
fn of_many(command: &str) -> Vec<String> {
    let ids = (1000..1000 + MANY).map(|id| id.to_string());
    [command, "--db", "x.tidal"].into_iter().map(str::to_owned).chain(ids).collect()
}

#[test]
fn every_user_leaves_and_returns_though_nobody_reads() {
    let folder = created();
    for (command, form, expected) in
        [("leave", "--json", MANY), ("rejoin", "--json", 0), ("leave", "", MANY), ("rejoin", "", 0)]
    {
        let arguments = of_many(command);
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        arguments.extend(Some(form).filter(|form| !form.is_empty()));
        assert_untold(&run_unread(&folder, &arguments));
        assert_eq!(left_count(&folder), expected, "{command} {form}");
    }
}

#[test]
fn every_change_is_made_though_nobody_reads() {
    let folder = created();
    folder.write_events("more.csv", "2012-03-28T00:00:02Z,leave,8,,,,,\n");
    let changes: [&[&str]; 7] = [
        &["replay", "more.csv", "--db", "x.tidal"],
        &["signal", "7", "9", "view", "--db", "x.tidal"],
        &["quit", "7", "4", "--db", "x.tidal"],
        &["join", "7", "5", "--db", "x.tidal"],
        &["user", "7", "region=Scotland", "--db", "x.tidal"],
        &["leave", "7", "--db", "x.tidal"],
        &["rejoin", "7", "--db", "x.tidal"],
    ];
    for change in changes {
        assert_untold(&run_unread(&folder, change));
        if change[0] == "leave" {
            assert_eq!(left_count(&folder), 2);
        }
    }
    assert_eq!(left_count(&folder), 1);
    assert_eq!(folder.json(&["history", "7", "--db", "x.tidal"]).len(), 2);
    let receipt = folder.stdout(&["signal", "7", "9", "view", "--db", "x.tidal"]);
    assert_eq!(receipt, "recorded; cohorts: 1, communities: 1\n");
    let communities: Vec<_> = folder
        .json(&["aggregates", "--scope", "community", "--db", "x.tidal"])
        .iter()
        .map(|row| (row["id"].clone(), row["count"].clone()))
        .collect();
    assert_eq!(communities, [("4".into(), 2.into()), ("5".into(), 1.into())]);
}

#[test]
fn a_change_that_failed_says_why_though_nobody_reads() {
    let folder = created();
    let output = run_unread(&folder, &["signal", "7", "9", "submit", "--db", "x.tidal"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("tidal: signal type \"submit\" is not declared"), "{stderr}");
}

#[test]
fn what_only_reads_ends_in_silence_when_nobody_reads() {
    let folder = created();
    folder.stdout(&of_many("leave").iter().map(String::as_str).collect::<Vec<_>>());
    let status_of_many = of_many("status");
    let reads: [&[&str]; 6] = [
        &["status", "7", "--db", "x.tidal"],
        &status_of_many.iter().map(String::as_str).collect::<Vec<_>>(),
        &["left", "--db", "x.tidal"],
        &["left", "--count", "--db", "x.tidal"],
        &["aggregates", "--db", "x.tidal"],
        &["history", "7", "--db", "x.tidal"],
    ];
    for read in reads {
        let output = run_unread(&folder, read);
        assert_eq!(output.status.code(), Some(0), "{read:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{read:?}");
    }
}

/// Otherwise a pipe into `head` would turn a database that differs into one that does not.
#[test]
fn what_answers_by_its_exit_code_does_not_end_in_silence() {
    assert_untold(&run_unread(&created(), &["verify", "--db", "x.tidal"]));
}

/// A device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_stdout_is_told_and_keeps_nobody_in() {
    let folder = created();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let arguments = of_many("leave");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    assert_untold(&folder.command(&arguments).stdout(full()).output().unwrap());
    assert_eq!(left_count(&folder), MANY);
    let output = folder.command(&["left", "--db", "x.tidal"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("tidal: cannot write the result: "), "{stderr}");
}

#[test]
fn a_notice_that_nobody_hears_keeps_nobody_in() {
    let folder = created();
    folder.stdout(&["leave", "7", "--db", "x.tidal"]);
    let storage = Storage::open(folder.path("x.tidal")).unwrap();
    let key = encode_key(EntityId::new(7), Tag::CommunityLeave, b"");
    storage.users_engine().put(&key, &[2; 9]).unwrap();
    storage.close().unwrap();
    // The damaged record is spoken of on stderr before anybody leaves.
    let run_unheard =
        |arguments: &[&str]| folder.command(arguments).stderr(closed()).output().unwrap().status.code();
    assert_eq!(run_unheard(&["leave", "8", "7", "--db", "x.tidal"]), Some(0));
    assert_eq!(left_count(&folder), 2);
    // Nor does a failure become another one.
    assert_eq!(run_unheard(&["signal", "7", "9", "submit", "--db", "x.tidal"]), Some(1));
    assert_eq!(run_unheard(&["leave", "seven", "--db", "x.tidal"]), Some(2));
}

#[test]
fn a_bulk_that_stops_says_how_many_were_not_come_to() {
    let folder = created();
    folder.stdout(&["leave", "6", "7", "8", "9", "--db", "x.tidal"]);
    let storage = Storage::open(folder.path("x.tidal")).unwrap();
    let key = encode_key(EntityId::new(7), Tag::CommunityLeave, b"");
    storage.users_engine().put(&key, &[2; 9]).unwrap();
    storage.close().unwrap();
    let output = folder.run(&["rejoin", "6", "7", "8", "9", "--db", "x.tidal"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.ends_with("; users after this one, not tried: 2\n"), "{stderr}");
    // The record is damaged still, of which stderr speaks.
    let left = folder.run(&["left", "--count", "--db", "x.tidal"]);
    assert_eq!(String::from_utf8(left.stdout).unwrap(), "3\n");
}
