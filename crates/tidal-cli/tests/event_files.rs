//! The event file through its public interface: what is read, and how each fault is named.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::error::Error;
use std::fmt::Write as _;
use std::io::{Read, Write as _};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use support::{Folder, HEADER, Recorded};
use tidal_cli::event_file::{EventFile, EventFileError, EventFileErrorKind};
use tidal_db::{Action, Event};

/// All events, and the error that ended them.
fn read_all(name: &str, content: &[u8]) -> (Vec<Event>, Option<EventFileError>) {
    let file = match EventFile::from_reader(name, content) {
        Ok(file) => file,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut events = Vec::new();
    for event in file {
        match event {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error)),
        }
    }
    (events, None)
}

fn compressed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// The error and its causes.
fn told(error: &EventFileError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(text, "\n    because: {error}").unwrap();
        cause = error.source();
    }
    text
}

#[test]
fn every_action_is_read() {
    let rows = "1970-01-01T00:00:00Z,user,7,,,,,a=b=c\n\
                 1970-01-01T00:00:00.000000001Z,join,0,,,,18446744073709551615,\n\
                 1970-01-01T01:00:00+01:00,quit,1,,,,2,\n\
                 2012-03-28T16:28:14.929583699Z,signal,1,2,submit,-0.000000001,,\n\
                 2012-03-28T16:28:14.929583699Z,leave,1,,,,,\n\
                 2012-03-28T16:28:14.929583699Z,rejoin,1,,,,,\n\
                 2012-03-28T16:28:14.929583699Z,user,7,,,,,empty=\n";
    let (events, error) = read_all("x.csv", format!("{HEADER}{rows}").as_bytes());
    assert!(error.is_none(), "{error:?}");
    let at_ns = 1_332_952_094_929_583_699;
    let set =
        |name: &str, value: &str| Action::SetAttribute { user: 7, name: name.into(), value: value.into() };
    let signal = Action::Signal {
        user: 1,
        item: 2,
        signal_type: "submit".into(),
        weight: "-0.000000001".parse().unwrap(),
    };
    let expected = [
        Event { at_ns: 0, action: set("a", "b=c") },
        Event { at_ns: 1, action: Action::Join { user: 0, community: u64::MAX } },
        Event { at_ns: 0, action: Action::Quit { user: 1, community: 2 } },
        Event { at_ns, action: signal },
        Event { at_ns, action: Action::Leave { user: 1 } },
        Event { at_ns, action: Action::Rejoin { user: 1 } },
        Event { at_ns, action: set("empty", "") },
    ];
    assert_eq!(events, expected);
}

#[test]
fn line_ends_marks_quotes_compression_and_order_of_columns_do_not_matter() {
    let plain = format!(
        "{HEADER}1970-01-01T00:00:00Z,user,7,,,,,\"region=Ystrad, \"\"Fawr\"\"\"\n1970-01-01T00:00:01Z,join,7,,,,4,\n"
    );
    let (expected, error) = read_all("x.csv", plain.as_bytes());
    assert!(error.is_none());
    assert_eq!(expected.len(), 2);

    let crlf = plain.replace('\n', "\r\n");
    let marked = format!("\u{feff}{plain}");
    let quoted = plain.replace("join", "\"join\"").replace("action", "\"action\"");
    let turned = "more,attribute,community,weight,signal,item,user,action,at\n\
                 x,\"region=Ystrad, \"\"Fawr\"\"\",,,,,7,user,1970-01-01T00:00:00Z\n\
                 ,,4,,,,7,join,1970-01-01T00:00:01Z";
    for text in [crlf.as_str(), &marked, &quoted, turned] {
        let (events, error) = read_all("x.csv", text.as_bytes());
        assert!(error.is_none(), "{text}: {error:?}");
        assert_eq!(events, expected, "{text}");
    }
    // Two members one after the other are one file, as cat makes them.
    let (head, tail) = plain.split_at(70);
    let members = [compressed(head.as_bytes()), compressed(tail.as_bytes())].concat();
    assert_eq!(read_all("x.csv.gz", &members).0, expected);
}

#[test]
fn rows_know_their_lines() {
    let text = format!(
        "{HEADER}1970-01-01T00:00:00Z,leave,1,,,,,\n\n\n1970-01-01T00:00:00Z,user,2,,,,,\"a=\nb\"\n\
                 1970-01-01T00:00:00Z,leave,3,,,,,\n1970-01-01T00:00:00Z,leave,4,,,,,\n"
    );
    let mut file = EventFile::from_reader("x.csv", text.as_bytes()).unwrap();
    assert_eq!(file.by_ref().map(Result::unwrap).count(), 4);
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(|row| file.line_of(row)),
        [None, Some(2), Some(5), Some(7), Some(8), None]
    );
    assert_eq!((file.rows().leave, file.rows().user, file.rows().total()), (3, 1, 4));
}

#[test]
fn after_an_error_the_file_ends() {
    let text = format!("{HEADER}x,leave,1,,,,,\n1970-01-01T00:00:00Z,leave,1,,,,,\n");
    let mut file = EventFile::from_reader("x.csv", text.as_bytes()).unwrap();
    assert!(file.next().unwrap().is_err());
    assert!(file.next().is_none());
    assert_eq!(file.rows().total(), 0);
}

#[test]
fn each_fault_is_named() {
    let good = "2012-03-28T00:00:00Z,join,7,,,,4,\n";
    let rows = [
        "2012-03-28T00:00:00Z,sginal,7,9,view,1,,",
        "2012-03-28T00:00:00Z,,7,9,view,1,,",
        "2012-03-28T00:00:00Z,signal,seven,9,view,1,,",
        "2012-03-28T00:00:00Z,signal,7,-9,view,1,,",
        "2012-03-28T00:00:00Z,signal,7,+9,view,1,,",
        "2012-03-28T00:00:00Z,join,7,,,,18446744073709551616,",
        "2012-03-28T00:00:00Z,signal,7,9,view,,,",
        "2012-03-28T00:00:00Z,signal,7,9,view,heavy,,",
        "2012-03-28T00:00:00Z,signal,7,9,view,NaN,,",
        "2012-03-28T00:00:00Z,signal,7,9,view,1000000000.1,,",
        "2012-03-28T00:00:00Z,signal,7,,view,1,,",
        "2012-03-28T00:00:00Z,signal,7,9,,1,,",
        "2012-03-28T00:00:00Z,join,7,,,,,",
        "2012-03-28T00:00:00Z,leave,,,,,,",
        "2012-03-28T00:00:00Z,user,7,,,,,",
        "2012-03-28T00:00:00Z,user,7,,,,,region",
        "2012-03-28T00:00:00Z,user,7,,,,,=Scotland",
        "2012-03-28T00:00:00Z,leave,7,,,,4,",
        "2012-03-28T00:00:00Z,rejoin,7,,,,4,",
        "2012-03-28T00:00:00Z,leave,7,9,,,,",
        "2012-03-28T00:00:00Z,join,7,,view,,4,",
        "2012-03-28T00:00:00Z,quit,7,,,1,4,",
        "2012-03-28T00:00:00Z,signal,7,9,view,1,4,",
        "2012-03-28T00:00:00Z,signal,7,9,view,1,,region=Scotland",
        "2012-03-28T00:00:00Z,user,7,,,,4,region=Scotland",
        ",leave,7,,,,,",
        "28 March 2012,leave,7,,,,,",
        "1332892800,leave,7,,,,,",
        "2012-03-28T00:00:00,leave,7,,,,,",
        "2012-03-28T00:00:00Z[Europe/London],leave,7,,,,,",
        "1969-12-31T23:59:59.999999999Z,leave,7,,,,,",
        "2554-07-21T23:34:33.709551616Z,leave,7,,,,,",
        "2012-03-28T00:00:00Z,leave,7,,,,",
        "2012-03-28T00:00:00Z,user,7,,,,,region=Ystrad, Fawr",
        "2012-03-28T00:00:00Z,user,7,,,,,\"region=Scotland",
        "2012-03-28T00:00:00Z,user,7,,,,,\"region=\"Scotland\"\"",
    ];
    let mut report = String::new();
    for row in rows {
        let (events, error) = read_all("events.csv", format!("{HEADER}{good}{row}\n{good}").as_bytes());
        let error = error.unwrap();
        assert_eq!((events.len(), error.line()), (1, Some(3)), "{row}");
        writeln!(report, "{row}\n  {}\n", told(&error)).unwrap();
    }
    insta::assert_snapshot!("bad_rows", report);
}

#[test]
fn each_file_that_is_none_is_named() {
    let events = format!("{HEADER}2012-03-28T00:00:00Z,join,7,,,,4,\n");
    let gzip = compressed(events.repeat(100).as_bytes());
    let long = format!("{HEADER}{}", "x".repeat(100_000));
    let latin_1 = [HEADER.as_bytes(), b"2012-03-28T00:00:00Z,user,7,,,,,region=Z\xfcrich\n"].concat();
    let files: [(&str, &str, &[u8]); 11] = [
        ("empty", "events.csv", b""),
        ("only empty lines", "events.csv", b"\n\r\n"),
        ("no header", "events.csv", b"2012-03-28T00:00:00Z,join,7,,,,4,\n"),
        ("a column is missing", "events.csv", b"at,action,user,item,signal,community,attribute\n"),
        (
            "a column stands twice",
            "events.csv",
            b"at,action,user,item,signal,weight,community,attribute,user\n",
        ),
        ("not UTF-8", "events.csv", &latin_1),
        ("UTF-16", "events.csv", b"\xff\xfea\0t\0"),
        ("a line without end", "events.csv", long.as_bytes()),
        ("gzip without the name", "events.csv", &gzip),
        ("the name without gzip", "events.csv.gz", events.as_bytes()),
        ("gzip cut in the middle", "events.csv.gz", &gzip[..gzip.len() / 2]),
    ];
    let mut report = String::new();
    for (what, name, content) in files {
        let (_, error) = read_all(name, content);
        writeln!(report, "{what}\n  {}\n", told(&error.unwrap())).unwrap();
    }
    insta::assert_snapshot!("bad_files", report);
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let folder = Folder::new();
    let path = folder.path("missing.csv");
    let error = EventFile::open(&path).unwrap_err();
    assert_eq!((error.path(), error.line()), (path.as_path(), None));
    assert!(matches!(error.kind(), EventFileErrorKind::Open { .. }));
    // A folder opens on some systems and cannot be read then.
    assert!(EventFile::open(folder.path("")).is_err());
}

#[test]
fn a_cut_anywhere_is_an_error_or_a_shorter_file() {
    let recorded = Recorded::read("late");
    let whole = std::fs::read(&recorded.events).unwrap();
    let mut text = Vec::new();
    MultiGzDecoder::new(whole.as_slice()).read_to_end(&mut text).unwrap();
    let (all, _) = read_all("events.csv", &text);
    for cut in (0..500).chain((500..text.len()).step_by(199_999)) {
        let (events, _) = read_all("events.csv", &text[..cut]);
        // What a cut leaves of a row may still be one, so the last may differ.
        let sure = events.len().saturating_sub(1);
        assert_eq!(events[..sure], all[..sure], "cut at {cut}");
    }
    // A compressed file knows where it ends.
    for cut in (1..whole.len()).step_by(99_991) {
        assert!(read_all("events.csv.gz", &whole[..cut]).1.is_some(), "cut at {cut}");
    }
}

#[test]
fn the_recorded_files_have_the_expected_rows() {
    for name in ["oulad", "late"] {
        let recorded = Recorded::read(name);
        let mut file = EventFile::open(&recorded.events).unwrap();
        assert!(file.by_ref().all(|event| event.is_ok()));
        assert_eq!(serde_json::to_value(file.rows()).unwrap(), recorded.expected["rows"]);
    }
}
