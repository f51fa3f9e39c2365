//! What each command prints, as text and as JSON.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::time::SystemTime;

use serde_json::Value;
use support::Folder;
use tidal_db::{Scope, TidalDb, Window};
use tidal_keys::{EntityId, Tag, encode_key};
use tidal_storage::{Partition, Storage, WriteBatch};

/// Users who act, leave, come back and are late.
const EVENTS: &str = "\
2012-03-28T00:00:00Z,user,7,,,,,region=Scotland
2012-03-28T00:00:01Z,join,7,,,,4,
2012-03-28T00:00:02Z,signal,7,9,view,2.5,,
2012-03-28T00:00:02Z,signal,8,9,view,-0.000000001,,
2012-03-28T00:00:03Z,leave,7,,,,,
2012-03-28T00:00:03Z,signal,7,9,view,4,,
2012-03-28T00:00:04Z,rejoin,7,,,,,
2012-03-28T00:00:03.999999999Z,signal,7,9,view,8,,
2012-03-28T00:00:04Z,signal,7,10,view,16,,
2012-03-28T00:00:05Z,leave,8,,,,,
2012-03-28T00:00:06Z,leave,18446744073709551615,,,,,
";

const REPLAY: [&str; 10] = [
    "replay",
    "events.csv",
    "--db",
    "x.tidal",
    "--create",
    "--signal",
    "view=4s",
    "--cohorts-by",
    "region",
    "--source",
];

fn replayed() -> Folder {
    let folder = Folder::new();
    folder.write_events("events.csv", EVENTS);
    folder.stdout(&[&REPLAY[..], &["queue"]].concat());
    folder
}

#[test]
fn replay_tells_what_it_did() {
    let folder = Folder::new();
    folder.write_events("events.csv", EVENTS);
    let first = [&REPLAY[..], &["queue"]].concat();
    let transcript = folder.transcript(&[
        &first,
        // The schema is stored, so that later runs need not say it again.
        &["replay", "events.csv", "--db", "x.tidal", "--source", "queue", "--json"],
    ]);
    insta::assert_snapshot!("replay", transcript);
}

#[test]
fn inspecting_commands() {
    let folder = replayed();
    let transcript = folder.transcript(&[
        &["status", "7", "8", "9", "18446744073709551615", "--db", "x.tidal"],
        &["status", "7", "8", "9", "18446744073709551615", "--db", "x.tidal", "--json"],
        &["left", "--db", "x.tidal"],
        &["left", "--db", "x.tidal", "--json"],
        &["left", "--count", "--db", "x.tidal"],
        &["left", "--count", "--db", "x.tidal", "--json"],
        &["history", "7", "--db", "x.tidal"],
        &["history", "7", "--db", "x.tidal", "--json"],
        &["history", "9", "--db", "x.tidal"],
    ]);
    insta::assert_snapshot!("inspecting", transcript);
}

#[test]
fn aggregates_of_each_scope() {
    let folder = replayed();
    let transcript = folder.transcript(&[
        &["aggregates", "--db", "x.tidal"],
        &["aggregates", "--db", "x.tidal", "--json"],
        &["aggregates", "--scope", "global", "--db", "x.tidal", "--json"],
        &["aggregates", "--scope", "cohort", "--db", "x.tidal", "--json"],
        &["aggregates", "--scope", "cohort:region=Scotland", "--db", "x.tidal", "--json"],
        &["aggregates", "--scope", "cohort:region=Wales", "--db", "x.tidal", "--json"],
        &["aggregates", "--scope", "community", "--db", "x.tidal", "--json"],
        &["aggregates", "--scope", "community:4", "--db", "x.tidal", "--json"],
        &["aggregates", "--scope", "community:5", "--db", "x.tidal", "--json"],
        &["aggregates", "--scope", "community:4", "--at", "2012-03-28T00:00:02Z", "--db", "x.tidal"],
    ]);
    insta::assert_snapshot!("aggregates", transcript);
}

#[test]
fn top_of_each_scope() {
    let folder = replayed();
    let transcript = folder.transcript(&[
        &["top", "--scope", "global", "--signal", "view", "--db", "x.tidal"],
        &["top", "--scope", "global", "--signal", "view", "--db", "x.tidal", "--json"],
        &["top", "--scope", "global", "--signal", "view", "-k", "1", "--db", "x.tidal", "--json"],
        &["top", "--scope", "global", "--signal", "view", "-k", "0", "--db", "x.tidal", "--json"],
        &["top", "--scope", "cohort:region=Scotland", "--signal", "view", "--db", "x.tidal", "--json"],
        &["top", "--scope", "cohort:region=Wales", "--signal", "view", "--db", "x.tidal", "--json"],
        &["top", "--scope", "community:4", "--signal", "view", "--db", "x.tidal", "--json"],
        &["top", "--scope", "community:5", "--signal", "view", "--db", "x.tidal", "--json"],
        &[
            "top",
            "--scope",
            "community:4",
            "--signal",
            "view",
            "--at",
            "2012-03-28T00:00:04Z",
            "--db",
            "x.tidal",
        ],
        &["top", "--scope", "community", "--signal", "view", "--db", "x.tidal"],
        &["top", "--scope", "community:x", "--signal", "view", "--db", "x.tidal"],
        &["top", "--scope", "global", "--signal", "like", "--db", "x.tidal"],
        &["top", "--scope", "cohort:plan=pro", "--signal", "view", "--db", "x.tidal"],
        &["top", "--signal", "view", "--db", "x.tidal"],
    ]);
    insta::assert_snapshot!("top", transcript);
}

#[test]
fn changing_commands() {
    let folder = replayed();
    let transcript = folder.transcript(&[
        &["user", "3", "region=a=b", "--db", "x.tidal"],
        &["user", "3", "region=Scotland", "--db", "x.tidal", "--json"],
        &["join", "3", "4", "--db", "x.tidal"],
        &["join", "3", "5", "--db", "x.tidal", "--json"],
        &["quit", "3", "5", "--db", "x.tidal"],
        &["quit", "3", "5", "--db", "x.tidal", "--json"],
        &["signal", "3", "9", "view", "--db", "x.tidal"],
        &["signal", "3", "9", "view", "-0.5", "--db", "x.tidal", "--json"],
        &["signal", "8", "9", "view", "1e-9", "--db", "x.tidal"],
        &["signal", "8", "9", "view", "--db", "x.tidal", "--json"],
        // Leaving again changes nothing, nor does a return of someone who is in.
        &["leave", "8", "--db", "x.tidal"],
        &["rejoin", "7", "--db", "x.tidal", "--json"],
        &["rejoin", "8", "--db", "x.tidal"],
    ]);
    insta::assert_snapshot!("changing", transcript);
}

#[test]
fn a_leave_from_the_command_is_now_and_stays() {
    let now_ns = || u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos()).unwrap();
    let folder = replayed();
    let before_ns = now_ns();
    let left = folder.json(&["leave", "1", "2", "--db", "x.tidal"]);
    let after_ns = now_ns();
    for (standing, user) in left.iter().zip([1, 2]) {
        assert_eq!(standing["user"], user);
        assert_eq!(standing["status"], "left");
        let left_at_ns = standing["left_at_ns"].as_u64().unwrap();
        assert!((before_ns..=after_ns).contains(&left_at_ns), "{before_ns} {left_at_ns} {after_ns}");
    }
    assert_eq!(folder.json(&["status", "1", "2", "--db", "x.tidal"]), left);
    let receipt = folder.json(&["signal", "1", "9", "view", "--db", "x.tidal"]);
    assert_eq!(receipt[0]["withheld"], "left");
    let rejoined = folder.json(&["rejoin", "1", "--db", "x.tidal"]);
    assert_eq!(rejoined[0]["status"], "active");
    assert_eq!(rejoined[0]["left_at_ns"], left[0]["left_at_ns"]);
    assert_eq!(folder.json(&["signal", "1", "9", "view", "--db", "x.tidal"])[0]["withheld"], Value::Null);
    assert_eq!(folder.json(&["history", "1", "--db", "x.tidal"]).len(), 2);
}

#[test]
fn help_names_every_command() {
    let folder = Folder::new();
    let commands = [
        "replay",
        "signal",
        "join",
        "quit",
        "user",
        "leave",
        "rejoin",
        "status",
        "left",
        "aggregates",
        "top",
        "history",
        "rebuild",
    ];
    let mut transcript = folder.transcript(&[&["--help"]]);
    for command in commands {
        transcript.push_str(&folder.transcript(&[&[command, "--help"]]));
    }
    insta::assert_snapshot!("help", transcript);
}

#[test]
fn readme_names_every_command() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let help = Folder::new().stdout(&["--help"]);
    let commands: Vec<_> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .map_while(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        assert!(readme.contains(&format!("`{command}`")), "{command}");
    }
}

#[test]
fn replay_help_names_every_column() {
    let help = Folder::new().stdout(&["replay", "--help"]);
    for column in support::HEADER.trim_end().split(',') {
        assert!(help.lines().any(|line| line.split_whitespace().next() == Some(column)), "{column}");
    }
}

#[test]
fn windows_are_declared_where_they_are_kept() {
    fn replay<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["replay", "events.csv", "--db", "x.tidal"], more].concat()
    }
    let folder = Folder::new();
    folder.write_events("events.csv", EVENTS);
    folder.stdout(&replay(&["--create", "--windowed", "view=4s", "--signal", "like=1d"]));
    // Again, and the stored types are those that are declared, in whatever order.
    let again = folder.json(&replay(&["--signal", "like=1d", "--windowed", "view=4s"]));
    assert_eq!(again[0]["skipped"], 11);
    let transcript = folder.transcript(&[
        &replay(&["--signal", "view=4s", "--signal", "like=1d"]),
        &replay(&["--windowed", "view=4s", "--windowed", "like=1d"]),
        &replay(&["--windowed", "view=5s", "--signal", "like=1d"]),
        &replay(&["--windowed", "view=4s", "--signal", "view=4s"]),
    ]);
    insta::assert_snapshot!("windowed", transcript);

    let db = TidalDb::builder().path(folder.path("x.tidal")).open().unwrap();
    let newest_ns = db.newest_time_ns();
    let hour = db.aggregate_window_at(&Scope::Global, 9, "view", Window::Hour, newest_ns).unwrap().unwrap();
    assert_eq!(hour.count, 4);
}

#[test]
fn what_repeats_the_log_is_rebuilt() {
    let folder = replayed();
    let commands: [&[&str]; 3] = [
        &["aggregates", "--db", "x.tidal"],
        &["history", "7", "--db", "x.tidal"],
        &["left", "--db", "x.tidal"],
    ];
    let before = folder.transcript(&commands);
    let storage = Storage::open(folder.path("x.tidal")).unwrap();
    let mut damage = WriteBatch::new();
    let key = encode_key(EntityId::new(0), Tag::Metadata, b"checkpoint");
    damage.put(Partition::System, &key, b"no checkpoint");
    storage.commit(damage).unwrap();
    storage.close().unwrap();
    let transcript = folder.transcript(&[
        &["status", "7", "--db", "x.tidal"],
        &["rebuild", "--db", "x.tidal"],
        &["rebuild", "--db", "x.tidal", "--json"],
        &["verify", "--db", "x.tidal"],
        &["rebuild", "--db", "nowhere.tidal"],
    ]);
    insta::assert_snapshot!("rebuild", transcript);
    assert_eq!(folder.transcript(&commands), before);
}

#[test]
fn a_file_without_rows_has_no_empty_brackets() {
    let folder = Folder::new();
    folder.write_events("none.csv", "");
    let text = folder.stdout(&["replay", "none.csv", "--db", "x.tidal", "--create", "--signal", "view=4s"]);
    assert_eq!(text.lines().next(), Some("rows       0"));
}
