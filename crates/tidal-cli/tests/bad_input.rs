//! Each wrong input: its message, its exit code, and that nothing was half done.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::fs;

use support::{Folder, HEADER};
use tidal_db::TidalDb;
use tidal_keys::{EntityId, Tag, encode_key};
use tidal_storage::Storage;

const GOOD_ROWS: &str = "\
2012-03-28T00:00:00Z,join,7,,,,4,
2012-03-28T00:00:01Z,signal,7,9,view,2.5,,
";

const CREATE: [&str; 7] = ["replay", "good.csv", "--db", "x.tidal", "--create", "--signal", "view=7d"];

/// A folder with the database `x.tidal`, made by replaying `good.csv`.
fn created() -> Folder {
    let folder = Folder::new();
    folder.write_events("good.csv", GOOD_ROWS);
    folder.stdout(&CREATE);
    folder
}

#[test]
fn wrong_usage() {
    let folder = created();
    let transcript = folder.transcript(&[
        &["forget", "7", "--db", "x.tidal"],
        &["leave", "7"],
        &["leave", "--db", "x.tidal"],
        &["leave", "seven", "--db", "x.tidal"],
        &["leave", "-7", "--db", "x.tidal"],
        &["leave", "18446744073709551616", "--db", "x.tidal"],
        &["signal", "7", "9", "view", "NaN", "--db", "x.tidal"],
        &["signal", "7", "9", "view", "inf", "--db", "x.tidal"],
        &["signal", "7", "9", "view", "1000000000.000000001", "--db", "x.tidal"],
        &["signal", "7", "9", "view", "", "--db", "x.tidal"],
        &["user", "7", "region", "--db", "x.tidal"],
        &["user", "7", "=Scotland", "--db", "x.tidal"],
        &["aggregates", "--scope", "planet", "--db", "x.tidal"],
        &["aggregates", "--scope", "community:four", "--db", "x.tidal"],
        &["aggregates", "--at", "yesterday", "--db", "x.tidal"],
        &["replay", "good.csv", "--db", "x.tidal", "--signal", "view"],
        &["replay", "good.csv", "--db", "x.tidal", "--signal", "view=7y"],
        &["replay", "good.csv", "--db", "new.tidal", "--create"],
        &["replay", "good.csv", "--db", "new.tidal", "--create", "--signal", "view=0s"],
        &[
            "replay",
            "good.csv",
            "--db",
            "new.tidal",
            "--create",
            "--signal",
            "view=7d",
            "--signal",
            "view=8d",
        ],
    ]);
    insta::assert_snapshot!("wrong_usage", transcript);
    assert!(!folder.path("new.tidal").exists());
    assert_eq!(folder.json(&["history", "7", "--db", "x.tidal"]).len(), 1);
}

#[test]
fn what_is_not_declared() {
    let folder = created();
    let transcript = folder.transcript(&[
        &["signal", "7", "9", "submit", "--db", "x.tidal"],
        &["aggregates", "--scope", "cohort:planet=Mars", "--db", "x.tidal"],
        &["replay", "good.csv", "--db", "x.tidal", "--signal", "view=8d"],
        &["replay", "good.csv", "--db", "x.tidal", "--signal", "view=7d", "--cohorts-by", "region"],
        &["replay", "good.csv", "--db", "x.tidal", "--signal", "view=7d", "--signal", "submit=7d"],
        &["replay", "good.csv", "--db", "x.tidal", "--create", "--cohorts-by", "region"],
    ]);
    insta::assert_snapshot!("not_declared", transcript);
}

#[test]
fn what_is_no_database() {
    let folder = created();
    let whole = fs::read(folder.path("x.tidal")).unwrap();
    folder.write("empty.tidal", "");
    folder.write("cut.tidal", &whole[..whole.len() / 2]);
    folder.write("foreign.tidal", "a letter\n".repeat(10_000));
    fs::create_dir(folder.path("folder.tidal")).unwrap();
    let names =
        ["missing.tidal", "empty.tidal", "cut.tidal", "foreign.tidal", "folder.tidal", "missing/x.tidal"];

    let mut transcript = String::new();
    for name in names {
        transcript.push_str(
            &folder.transcript(&[&["status", "7", "--db", name], &["replay", "good.csv", "--db", name]]),
        );
    }
    // Nor is one made in place of a file that is there.
    for name in ["empty.tidal", "cut.tidal", "foreign.tidal", "folder.tidal"] {
        let arguments = ["replay", "good.csv", "--db", name, "--create", "--signal", "view=7d"];
        transcript.push_str(&folder.transcript(&[&arguments]));
    }
    // Nor is a folder made.
    let arguments = ["replay", "good.csv", "--db", "missing/x.tidal", "--create", "--signal", "view=7d"];
    transcript.push_str(&folder.transcript(&[&arguments]));
    assert!(!folder.path("missing").exists());
    // What the engine says about where the damage is may change with its version.
    insta::assert_snapshot!("no_database", transcript);

    assert!(!folder.path("missing.tidal").exists());
    assert_eq!(fs::read(folder.path("empty.tidal")).unwrap(), b"");
    assert_eq!(fs::read(folder.path("cut.tidal")).unwrap(), &whole[..whole.len() / 2]);
    assert_eq!(fs::read(folder.path("foreign.tidal")).unwrap(), "a letter\n".repeat(10_000).as_bytes());
}

#[test]
fn a_database_that_is_open_elsewhere() {
    let folder = created();
    let db = TidalDb::builder().path(folder.path("x.tidal")).open().unwrap();
    let transcript = folder.transcript(&[&["leave", "7", "--db", "x.tidal"]]);
    db.close().unwrap();
    insta::assert_snapshot!("open_elsewhere", transcript);
}

#[test]
fn replay_stops_at_a_bad_row_and_keeps_what_came_before() {
    let bad_rows = [
        ("unknown-action.csv", "2012-03-28T00:00:02Z,sginal,7,9,view,1,,"),
        ("bad-number.csv", "2012-03-28T00:00:02Z,signal,7,nine,view,1,,"),
        ("bad-time.csv", "28 March 2012,signal,7,9,view,1,,"),
        ("before-1970.csv", "1969-12-31T23:59:59Z,signal,7,9,view,1,,"),
        ("empty-weight.csv", "2012-03-28T00:00:02Z,signal,7,9,view,,,"),
        ("bad-weight.csv", "2012-03-28T00:00:02Z,signal,7,9,view,1e10,,"),
        ("undeclared.csv", "2012-03-28T00:00:02Z,signal,7,9,submit,1,,"),
        ("long-name.csv", &format!("2012-03-28T00:00:02Z,user,7,,,,,{}=x", "n".repeat(300))),
    ];
    let mut transcript = String::new();
    for (name, row) in bad_rows {
        let folder = Folder::new();
        folder.write_events(name, &format!("{GOOD_ROWS}{row}\n2012-03-28T00:00:03Z,signal,7,9,view,1,,\n"));
        let arguments = ["replay", name, "--db", "x.tidal", "--create", "--signal", "view=7d"];
        transcript.push_str(&folder.transcript(&[&arguments]));
        // The row before the bad one is there, the one behind it is not; and again, nothing is done twice.
        assert_eq!(folder.json(&["history", "7", "--db", "x.tidal"]).len(), 1, "{name}");
        let again = folder.run(&["replay", name, "--db", "x.tidal"]);
        assert_eq!(again.status.code(), Some(1));
        assert_eq!(folder.json(&["history", "7", "--db", "x.tidal"]).len(), 1, "{name}");
    }
    let folder = Folder::new();
    let latin_1 =
        [HEADER.as_bytes(), GOOD_ROWS.as_bytes(), b"2012-03-28T00:00:02Z,user,7,,,,,region=Z\xfcrich\n"];
    folder.write("latin-1.csv", latin_1.concat());
    transcript.push_str(&folder.transcript(&[
        &["replay", "latin-1.csv", "--db", "x.tidal", "--create", "--signal", "view=7d"],
        &["replay", "latin-1.csv", "--db", "x.tidal"],
    ]));
    insta::assert_snapshot!("bad_rows_in_replay", transcript);
}

#[test]
fn a_row_too_far_ahead_of_the_clock() {
    let folder = Folder::new();
    folder.write_events("events.csv", &format!("{GOOD_ROWS}2500-01-01T00:00:00Z,leave,7,,,,,\n"));
    let output = folder.run(&["replay", "events.csv", "--db", "x.tidal", "--create", "--signal", "view=7d"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    // The message names the time of the clock too, so it is another each time.
    let start = "tidal: events.csv, line 4: time 2500-01-01T00:00:00Z is more than 5 minutes ahead of the clock, \
                 which reads 2";
    assert!(message.starts_with(start), "{message}");
    let end = "Z; correct the time, or the clock; rows applied before it: 2\n";
    assert!(message.ends_with(end), "{message}");
    assert_eq!(folder.json(&["left", "--count", "--db", "x.tidal"])[0]["left"], 0);
}

#[test]
fn files_that_are_none_make_no_database() {
    let folder = Folder::new();
    folder.write("no-weight.csv", "at,action,user,item,signal,community,attribute\n");
    folder.write("empty.csv", "");
    folder.write_events("plain.csv.gz", GOOD_ROWS);
    let mut transcript = String::new();
    std::fs::create_dir(folder.path("folder.csv")).unwrap();
    for name in ["missing.csv", "no-weight.csv", "empty.csv", "plain.csv.gz", "folder.csv", ".."] {
        let arguments = ["replay", name, "--db", "x.tidal", "--create", "--signal", "view=7d"];
        transcript.push_str(&folder.transcript(&[&arguments]));
        assert!(!folder.path("x.tidal").exists(), "{name}");
    }
    insta::assert_snapshot!("no_event_files", transcript);
}

#[test]
fn a_source_whose_content_was_replaced() {
    let folder = created();
    let mut transcript = String::new();
    let replaced = [
        ("other content", GOOD_ROWS.replace("2.5", "2.6") + "2012-03-28T00:00:02Z,leave,7,,,,,\n"),
        ("fewer rows", GOOD_ROWS.lines().next().unwrap().to_owned() + "\n"),
        ("no rows", String::new()),
    ];
    for (what, rows) in replaced {
        folder.write_events("good.csv", &rows);
        transcript.push_str(what);
        transcript.push('\n');
        transcript.push_str(&folder.transcript(&[&["replay", "good.csv", "--db", "x.tidal"]]));
        assert_eq!(folder.json(&["left", "--count", "--db", "x.tidal"])[0]["left"], 0);
    }
    // The same content and more is no replacement.
    folder.write_events("good.csv", &format!("{GOOD_ROWS}2012-03-28T00:00:02Z,leave,7,,,,,\n"));
    transcript.push_str("more rows\n");
    transcript.push_str(&folder.transcript(&[&["replay", "good.csv", "--db", "x.tidal", "--json"]]));
    insta::assert_snapshot!("replaced_source", transcript);
}

#[test]
fn a_damaged_leave_record() {
    let folder = created();
    folder.stdout(&["leave", "7", "--db", "x.tidal"]);
    let storage = Storage::open(folder.path("x.tidal")).unwrap();
    let key = encode_key(EntityId::new(7), Tag::CommunityLeave, b"");
    storage.users_engine().put(&key, &[2; 9]).unwrap();
    storage.close().unwrap();
    let transcript = folder.transcript(&[
        &["left", "--count", "--db", "x.tidal"],
        &["signal", "7", "9", "view", "--db", "x.tidal"],
        &["rejoin", "7", "--db", "x.tidal"],
    ]);
    insta::assert_snapshot!("damaged_record", transcript);
    // A leave settles it, and the next one finds nothing to say.
    folder.run(&["leave", "7", "--db", "x.tidal"]);
    folder.stdout(&["rejoin", "7", "--db", "x.tidal"]);
}
