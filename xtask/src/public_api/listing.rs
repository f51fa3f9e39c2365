//! The lines, and the order in which they stand.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What a line tells of its path; lines of one path stand in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Item,
    Impl,
}

/// Lines sorted by the parts of their path, so that members follow what they belong to.
#[derive(Default)]
pub(super) struct Listing {
    lines: BTreeSet<(Vec<String>, Kind, String)>,
}

impl Listing {
    /// Adds what `path` is: `path`, then `text`, then each mark in brackets.
    pub(super) fn item(&mut self, path: &str, text: &str, marks: &[String]) {
        self.add(path, Kind::Item, format!("{path}{text}"), marks);
    }

    /// Adds an `impl` line, which stands below `path`.
    pub(super) fn implementation(&mut self, path: &str, text: String, marks: &[String]) {
        self.add(path, Kind::Impl, text, marks);
    }

    pub(super) fn into_text(self) -> String {
        let mut text = String::new();
        for (_, _, line) in self.lines {
            // Writing to a String cannot fail.
            let _infallible = writeln!(text, "{line}");
        }
        text
    }

    fn add(&mut self, path: &str, kind: Kind, mut line: String, marks: &[String]) {
        let mut written = BTreeSet::new();
        for mark in marks.iter().filter(|mark| written.insert(*mark)) {
            let _infallible = write!(line, " [{mark}]");
        }
        self.lines.insert((path.split("::").map(str::to_owned).collect(), kind, line));
    }
}
