//! Rules on the text of one file.

use crate::files;

/// A file with more lines than this holds more than one concept.
const MAX_LINES: usize = 500;

/// What is written while working and must not stay. Spelled in halves, so that this file has none.
const MARKS: [&str; 8] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("TO", "DO"),
    concat!("<<<", "<<<<"),
];

/// Beginnings of paths that exist on one machine only.
const HOMES: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Use", "rs/"), concat!("\\Use", "rs\\")];

/// The crate that alone may name the engine, the one that measures what it costs bare, and the engine.
const ENGINE_CRATE: &str = "crates/tidal-storage/";
const COMPARING_CRATE: &str = "crates/tidal-bench-compare/";
const ENGINE: &str = "redb";

/// Left-over marks, each with its line.
pub(crate) fn marks(text: &str) -> Vec<String> {
    on_lines(text, |line| {
        MARKS.iter().find(|mark| line.contains(**mark)).map(|mark| format!("left-over mark `{mark}`"))
    })
}

/// Absolute paths into a home folder, or to this very clone.
pub(crate) fn machine_paths(text: &str) -> Vec<String> {
    let clone = files::root().to_string_lossy();
    on_lines(text, |line| {
        let is_home = HOMES.iter().any(|home| line.contains(home));
        (is_home || line.contains(clone.as_ref())).then(|| "path of one machine".to_owned())
    })
}

/// More lines than one concept needs, tests not counted.
pub(crate) fn long(name: &str, text: &str) -> Vec<String> {
    if name.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches")) {
        return Vec::new();
    }
    let line_count = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    if line_count <= MAX_LINES {
        return Vec::new();
    }
    vec![format!("{line_count} lines; split what is more than one concept (at most {MAX_LINES})")]
}

/// Attributes that silence a lint without saying why.
pub(crate) fn allows_without_reason(text: &str) -> Vec<String> {
    let mut lines = text.lines().zip(1..);
    let mut breaches = Vec::new();
    while let Some((line, number)) = lines.next() {
        let line = line.trim_start();
        if !["#[allow(", "#![allow(", "#[expect(", "#![expect("]
            .iter()
            .any(|opening| line.starts_with(opening))
        {
            continue;
        }
        let mut attribute = line.to_owned();
        while !attribute.contains(")]") {
            let Some((next, _)) = lines.next() else { break };
            attribute.push_str(next);
        }
        if !attribute.contains("reason = \"") {
            breaches.push(format!("line {number}: the attribute gives no reason"));
        }
    }
    breaches
}

/// The engine named in the sources or the manifest of any crate but the one that wraps it.
///
/// Tests may speak of it, but not reach for it.
pub(crate) fn engine_named(name: &str, text: &str) -> Vec<String> {
    let may_name = [ENGINE_CRATE, COMPARING_CRATE].iter().any(|folder| name.starts_with(folder));
    if !name.starts_with("crates/") || may_name {
        return Vec::new();
    }
    let is_source = name.contains("/src/") || name.ends_with("/Cargo.toml");
    let path = format!("{ENGINE}::");
    on_lines(text, |line| {
        let mut words = line.split(|character: char| !character.is_alphanumeric());
        let is_named = if is_source { words.any(|word| word == ENGINE) } else { line.contains(&path) };
        is_named.then(|| format!("only tidal-storage names {ENGINE}"))
    })
}

/// Applies a rule to each line and numbers what it finds.
fn on_lines(text: &str, rule: impl Fn(&str) -> Option<String>) -> Vec<String> {
    text.lines()
        .zip(1..)
        .filter_map(|(line, number)| rule(line).map(|breach| format!("line {number}: {breach}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{MARKS, MAX_LINES, allows_without_reason, engine_named, long, machine_paths, marks};

    const NONE: [&str; 0] = [];

    #[test]
    fn each_mark_is_found() {
        for mark in MARKS {
            assert_eq!(marks(&format!("fn f() {{}}\n// {mark}\n")).len(), 1, "{mark}");
        }
        assert_eq!(marks("// A sentence about what is to be done.\n"), NONE);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let home = concat!("open(\"/ho", "me/someone/x\")");
        assert_eq!(machine_paths(home), ["line 1: path of one machine"]);
        assert_eq!(machine_paths("open(\"/tmp/x\")"), NONE);
    }

    #[test]
    fn long_files_are_found_and_tests_are_not_counted() {
        let full = "// line\n".repeat(MAX_LINES);
        assert_eq!(long("crates/a/src/x.rs", &full), NONE);
        assert_eq!(long("crates/a/src/x.rs", &format!("{full}#[cfg(test)]\n{full}")), NONE);
        assert_eq!(long("crates/a/src/x.rs", &format!("{full}{full}")).len(), 1);
        assert_eq!(long("crates/a/tests/x.rs", &format!("{full}{full}")), NONE);
    }

    #[test]
    fn allows_need_a_reason() {
        let bare = concat!("fn f() {}\n#[all", "ow(dead_code)]\nfn g() {}\n");
        assert_eq!(allows_without_reason(bare).len(), 1);
        let explained = concat!("#![all", "ow(\n    dead_code,\n    reason = \"kept for (a) caller\"\n)]\n");
        assert_eq!(allows_without_reason(explained), NONE);
    }

    #[test]
    fn the_engine_is_named_in_one_crate() {
        let line = "use redb::Database;\n";
        assert_eq!(
            engine_named("crates/tidal-db/src/db.rs", line),
            ["line 1: only tidal-storage names redb"]
        );
        assert_eq!(engine_named("crates/tidal-storage/src/engine.rs", line), NONE);
        assert_eq!(engine_named("crates/tidal-bench-compare/src/engines/redb.rs", line), NONE);
        assert_eq!(engine_named("crates/tidal-bench/src/lib.rs", line).len(), 1);
        assert_eq!(engine_named("crates/tidal-db/src/db.rs", "let x = redbone;\n"), NONE);
        assert_eq!(engine_named("crates/tidal-db/Cargo.toml", "redb.workspace = true\n").len(), 1);
        assert_eq!(engine_named("crates/tidal-db/tests/db.rs", line).len(), 1);
        assert_eq!(engine_named("crates/tidal-db/tests/db.rs", "// What redb writes.\n"), NONE);
    }
}
