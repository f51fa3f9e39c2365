//! Bad input: a clear error, nothing half done, no panic. And input at the edges, which is good.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    dead_code,
    reason = "tests fail by panicking, and use a part of what is shared"
)]

mod common;
#[path = "scenarios/faulty.rs"]
mod faulty;

use std::fmt::{Debug, Write as _};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::{
    A, COMMUNITY, aggregate, c, config, create_on, global, history, join, leave, leave_key, names_in,
    open_image, p, place, rejoin, said, schema, view, view_of, visible,
};
use faulty::{Counted, Fails, FaultyMedium};
use tempfile::TempDir;
use tidal_db::{
    Action, Config, Durability, Error, Event, MAX_COMMUNITIES_PER_USER, MembershipStatus, Predicate, Schema,
    Scope, Storage, StorageError, TidalDb, Weight,
};
use tidal_storage::MemoryMedium;

/// Nothing is flushed before it is asked for.
const UNHURRIED: Durability =
    Durability::Batched { max_events: 1_000_000, max_delay: Duration::from_secs(3600) };

/// A clock long after 1970.
const NOW_NS: u64 = 1_700_000_000_000_000_000;

/// A database in which something of everything has happened.
fn lived_in(path: &Path) -> TidalDb {
    let (clock, config) = config(NOW_NS);
    let db = config.path(path).create(true).open().unwrap();
    for user in [7, 8] {
        db.join_community(user, COMMUNITY).unwrap();
        db.set_user_attribute(user, "region", "Scotland").unwrap();
        db.signal(user, A, "view", 2.5).unwrap();
    }
    db.leave_community_layer(7).unwrap();
    db.signal(7, A, "view", 1.0).unwrap();
    db.leave_community_layer(8).unwrap();
    clock.advance(10);
    db.rejoin_community_layer(8).unwrap();
    db.signal_at(8, A, "view", 1.0, NOW_NS + 5).unwrap();
    db.apply("queue", 1, [view(NOW_NS, 999), join(NOW_NS, 999)]).unwrap();
    db
}

/// What a list of bad calls is answered, one by one, none of which changes anything.
struct Refusals<'a> {
    db: &'a TidalDb,
    text: String,
}

impl<'a> Refusals<'a> {
    fn of(db: &'a TidalDb) -> Self {
        Self { db, text: String::new() }
    }

    fn add<T: Debug>(&mut self, asked: &str, call: impl FnOnce(&TidalDb) -> tidal_db::Result<T>) {
        let before = visible(self.db);
        let error = call(self.db).expect_err(asked);
        assert_eq!(visible(self.db), before, "{asked} was refused and changed something");
        writeln!(self.text, "{asked}\n  -> {}", said(&error)).unwrap();
    }
}

/// Runs bad calls on a database on disk: what it shows is the same before, after and reopened.
fn refusals(calls: impl FnOnce(&mut Refusals<'_>)) -> String {
    let (_folder, path) = place();
    let db = lived_in(&path);
    let before = visible(&db);
    let mut refusals = Refusals::of(&db);
    calls(&mut refusals);
    let text = refusals.text;
    db.close().unwrap();
    let db = config(NOW_NS + 10).1.path(&path).open().unwrap();
    assert_eq!(visible(&db), before, "reopened it is another");
    text
}

#[test]
fn weights_that_are_none_are_refused() {
    let text = refusals(|refusals| {
        let weights = [
            ("NaN", f64::NAN),
            ("infinity", f64::INFINITY),
            ("-infinity", f64::NEG_INFINITY),
            ("just above 1e9", 1e9_f64.next_up()),
            ("just below -1e9", (-1e9_f64).next_down()),
            ("the largest f64", f64::MAX),
        ];
        for (name, weight) in weights {
            refusals.add(&format!("signal of {name}"), |db| db.signal(8, A, "view", weight));
            refusals.add(&format!("signal_at of {name}"), |db| db.signal_at(8, A, "view", weight, NOW_NS));
        }
    });
    insta::assert_snapshot!("weights", text);
}

#[test]
fn names_that_are_not_declared_are_refused() {
    let text = refusals(|refusals| {
        let long = "x".repeat(100_000);
        for name in ["like", "View", "view ", "", long.as_str()] {
            let shown: String = name.chars().take(10).collect();
            refusals.add(&format!("signal {shown:?}"), |db| db.signal(8, A, name, 1.0));
            refusals.add(&format!("signal_at {shown:?}"), |db| db.signal_at(8, A, name, 1.0, NOW_NS));
            refusals.add(&format!("aggregate {shown:?}"), |db| db.aggregate(&Scope::Global, A, name));
        }
        refusals
            .add("apply of an undeclared signal", |db| db.apply("other", 1, [view_of(NOW_NS, 8, "like")]));
        for name in ["north", "plan=trial", "region", "", "=Scotland"] {
            let cohort = Scope::Cohort(name.to_owned());
            refusals.add(&format!("aggregate of cohort {name:?}"), |db| db.aggregate(&cohort, A, "view"));
            refusals.add(&format!("aggregates of cohort {name:?}"), |db| {
                db.aggregates(Some(&cohort)).map(Vec::from_iter)
            });
        }
    });
    insta::assert_snapshot!("undeclared_names", text);
}

#[test]
fn an_error_stays_one_line_however_long_the_input() {
    let db = config(NOW_NS).1.ephemeral().open().unwrap();
    let long = "x".repeat(100_000);
    let errors = [
        db.signal(8, A, &long, 1.0).map(drop),
        db.aggregate(&Scope::Global, A, &long).map(drop),
        db.aggregate(&Scope::Cohort(long.clone()), A, "view").map(drop),
        db.aggregates(Some(&Scope::Cohort(long.clone()))).map(drop),
        db.set_user_attribute(8, &long, "x"),
        db.set_user_attribute(8, "region", &long),
        db.apply(&long, 1, []).map(drop),
        db.apply("queue", 1, [view_of(NOW_NS, 8, &long)]).map(drop),
    ];
    for (nth, error) in errors.into_iter().enumerate() {
        let text = said(&error.unwrap_err());
        assert!(text.len() < 1_000, "error {nth} has {} bytes", text.len());
    }
}

#[test]
fn scopes_that_took_nothing_are_no_error() {
    let (_folder, path) = place();
    let db = lived_in(&path);
    for scope in
        [Scope::Cohort("region=Nowhere".into()), Scope::Cohort("region=".into()), Scope::Community(77)]
    {
        assert_eq!(aggregate(&db, &scope), None);
        assert_eq!(db.aggregates(Some(&scope)).unwrap().count(), 0);
    }
    for item in [0, A + 1, u64::MAX] {
        assert_eq!(db.aggregate(&Scope::Global, item, "view").unwrap(), None);
    }
    assert_eq!(db.position("never delivered").unwrap(), None);
    assert!(history(&db, 12_345).is_empty());
    assert!(db.membership_history(12_345).unwrap().is_empty());
    assert!(db.communities_of(12_345).is_empty());
}

#[test]
fn times_too_far_ahead_are_refused() {
    const LIMIT_NS: u64 = NOW_NS + 10 + 300_000_000_000;
    let text = refusals(|refusals| {
        refusals.add("signal_at the end of time", |db| db.signal_at(8, A, "view", 1.0, u64::MAX));
        let at_ns = LIMIT_NS + 1;
        refusals.add("signal_at", |db| db.signal_at(8, A, "view", 1.0, at_ns));
        let attribute = Action::SetAttribute { user: 8, name: "region".into(), value: "Wales".into() };
        let quit = Action::Quit { user: 8, community: COMMUNITY };
        let events = [
            view(at_ns, 8),
            leave(at_ns, 8),
            rejoin(at_ns, 7),
            join(at_ns, 7),
            Event { at_ns, action: quit },
            Event { at_ns, action: attribute },
        ];
        for event in events {
            refusals.add(&format!("apply of {:?}", event.action), |db| db.apply("other", 1, [event]));
        }
    });
    insta::assert_snapshot!("too_far_ahead", text);
}

#[test]
fn names_and_values_beyond_their_limits_are_refused() {
    let (long_name, long_value) = ("n".repeat(256), "ü".repeat(513));
    let text = refusals(|refusals| {
        for name in ["", "a=b", "=", long_name.as_str()] {
            let shown: String = name.chars().take(10).collect();
            refusals.add(&format!("attribute {shown:?}"), |db| db.set_user_attribute(8, name, "x"));
            let action = Action::SetAttribute { user: 8, name: name.into(), value: "x".into() };
            refusals.add(&format!("apply of attribute {shown:?}"), |db| {
                db.apply("other", 1, [Event { at_ns: NOW_NS, action }])
            });
        }
        refusals.add("a long value", |db| db.set_user_attribute(8, "region", &long_value));
        for source in ["", long_name.as_str()] {
            refusals.add("apply of a source of no good name", |db| db.apply(source, 1, [view(NOW_NS, 8)]));
        }
    });
    insta::assert_snapshot!("limits", text);
}

#[test]
fn a_user_is_in_no_more_communities_than_the_limit() {
    let limit = u64::try_from(MAX_COMMUNITIES_PER_USER).unwrap();
    let db = config(NOW_NS).1.ephemeral().open().unwrap();
    let joins =
        (0..=limit).map(|community| Event { at_ns: NOW_NS, action: Action::Join { user: 7, community } });
    let error = db.apply("queue", 0, joins).unwrap_err();
    let mut text = format!("one join too many by apply\n  -> {}\n", said(&error));
    let mut refusals = Refusals::of(&db);
    refusals.add("one join too many", |db| db.join_community(7, limit));
    text += &refusals.text;
    insta::assert_snapshot!("too_many_communities", text);
    assert_eq!(db.communities_of(7).len(), MAX_COMMUNITIES_PER_USER);
    // To join again what one is in is no join.
    db.join_community(7, 0).unwrap();
    assert_eq!(db.signal(7, A, "view", 1.0).unwrap().communities, 4096);
    db.quit_community(7, 0).unwrap();
    db.join_community(7, limit).unwrap();
}

/// Without the folder, which is another in every run.
fn without_folder(text: &str, folder: &TempDir) -> String {
    text.replace(folder.path().to_str().unwrap(), "[folder]")
}

#[test]
fn files_that_are_no_good_database_are_refused_and_left_alone() {
    let (folder, path) = place();
    lived_in(&path).close().unwrap();
    let whole = fs::read(&path).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        (name.to_owned(), path)
    };
    let version_at = whole.windows(12).rposition(|bytes| bytes == b"tidal\0db\x01\0\0\0").unwrap();
    let mut newer = whole.clone();
    newer[version_at + 8] = 2;
    let mut no_magic = whole.clone();
    no_magic[version_at] ^= 1;
    let bad = [
        ("missing".to_owned(), folder.path().join("missing")),
        ("in a missing folder".to_owned(), folder.path().join("missing/signals.tidal")),
        ("a folder".to_owned(), folder.path().to_owned()),
        file("empty", b""),
        file("one byte", b"t"),
        file("text", b"at,action,user,item,signal,weight,community,attribute\n"),
        file("zeros", &vec![0; 100_000]),
        file("cut in the header", &whole[..100]),
        file("cut in the middle", &whole[..whole.len() / 2]),
        file("cut at the end", &whole[..whole.len() - 1]),
        file("newer format", &newer),
        file("no marker", &no_magic),
    ];
    let names = names_in(folder.path());
    let mut text = String::new();
    for (name, path) in &bad {
        let before = fs::read(path).ok();
        for check in [true, false] {
            for may_create in [false, true] {
                if may_create && before.is_none() && name == "missing" {
                    continue;
                }
                let config = config(NOW_NS).1.path(path).check_integrity(check).create(may_create);
                let error = config.open().expect_err(name);
                assert_eq!(fs::read(path).ok(), before, "{name} was written to");
                assert_eq!(names_in(folder.path()), names, "{name}: a file was made");
                if !check && !may_create {
                    let error = without_folder(&said(&error), &folder);
                    writeln!(text, "{name}\n  -> {error}").unwrap();
                }
            }
        }
    }
    insta::assert_snapshot!("files", text);
}

#[test]
fn a_database_is_open_once_at_a_time() {
    let (folder, path) = place();
    let db = lived_in(&path);
    let before = visible(&db);
    let mut text = String::new();
    for may_create in [false, true] {
        let error = config(NOW_NS).1.path(&path).create(may_create).open().unwrap_err();
        writeln!(text, "opened twice\n  -> {}", without_folder(&said(&error), &folder)).unwrap();
    }
    insta::assert_snapshot!("opened_twice", text);
    assert_eq!(visible(&db), before);
    let clone = db.clone();
    db.close().unwrap();
    let again = config(NOW_NS + 10).1.path(&path).open().unwrap();
    assert_eq!(visible(&again), before);
    // What is left of the first has no say any more.
    drop(clone);
    again.signal(8, A, "view", 1.0).unwrap();
    assert!(config(NOW_NS).1.path(&path).open().is_err());
}

#[test]
fn one_storage_carries_one_database_at_a_time() {
    let storage = tidal_storage::Storage::in_memory().unwrap();
    // A refused open gives its claim back.
    assert!(TidalDb::from_parts(storage.clone(), TidalDb::builder()).is_err());
    let db = TidalDb::from_parts(storage.clone(), config(NOW_NS).1).unwrap();
    db.leave_community_layer(8).unwrap();
    assert!(TidalDb::from_parts(storage, config(NOW_NS).1).is_err());
    assert_eq!(db.left_count(), 1);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let (folder, path) = place();
    let mut text = String::new();
    let mut add = |asked: &str, config: Config| {
        let error = config.open().expect_err(asked);
        writeln!(text, "{asked}\n  -> {}", without_folder(&said(&error), &folder)).unwrap();
        assert!(names_in(folder.path()).is_empty(), "{asked}: a file was made");
    };
    add("no place", TidalDb::builder().schema(schema()));
    add("in memory without a schema", TidalDb::builder().ephemeral());
    add("created without a schema", TidalDb::builder().path(&path).create(true));
    add("not created", TidalDb::builder().schema(schema()).path(&path));
    insta::assert_snapshot!("options", text);
}

#[test]
fn a_schema_that_differs_is_refused() {
    let (_folder, path) = place();
    let hour = Duration::from_secs(3600);
    let stored = || {
        Schema::builder()
            .signal("view", hour)
            .cohorts_by("region")
            .cohort("north", Predicate::eq("region", "Wales"))
    };
    let config = || TidalDb::builder().path(&path);
    let db = config().schema(stored().build().unwrap()).create(true).open().unwrap();
    db.signal(7, A, "view", 1.0).unwrap();
    drop(db);
    let base = || Schema::builder().signal("view", hour);
    let other = [
        ("another half-life", Schema::builder().signal("view", hour * 2).cohorts_by("region")),
        ("a signal type more", stored().signal("like", hour)),
        ("no signal type", Schema::builder().cohorts_by("region")),
        ("a cohort less", base().cohorts_by("region")),
        ("a cohort more", stored().cohort("south", Predicate::eq("region", "Kent"))),
        ("another predicate", base().cohorts_by("region").cohort("north", Predicate::eq("region", "Kent"))),
        ("an attribute less", base().cohort("north", Predicate::eq("region", "Wales"))),
        ("an attribute more", stored().cohorts_by("plan")),
    ];
    let mut text = String::new();
    for (asked, other) in other {
        let other = other.build().unwrap();
        let error = config().schema(other.clone()).open().expect_err(asked);
        writeln!(text, "{asked}\n  -> {}", said(&error)).unwrap();
        if !asked.ends_with("more") {
            let error = config().schema(other).extend_schema(true).open().expect_err(asked);
            writeln!(text, "{asked}, to be extended\n  -> {}", said(&error)).unwrap();
        }
    }
    insta::assert_snapshot!("schema_differs", text);
    let db = config().open().unwrap();
    assert_eq!(*db.schema(), stored().build().unwrap());
    assert_eq!(global(&db), 1);
}

#[test]
fn an_extended_schema_is_not_stored_by_an_open_that_fails() {
    let (_folder, path) = place();
    lived_in(&path).close().unwrap();
    let more = || {
        let builder = Schema::builder().signal("view", Duration::from_secs(3600)).cohorts_by("region");
        builder.signal("like", Duration::from_secs(60)).build().unwrap()
    };
    let config = TidalDb::builder().schema(more()).extend_schema(true).path(&path);
    let error = config.expect_at_least(1_000_000).open().unwrap_err();
    assert!(matches!(error, Error::BehindExpected { expected: 1_000_000, .. }), "{error}");
    let db = TidalDb::builder().schema(schema()).path(&path).open();
    assert_eq!(*db.expect("the schema is still the one before").schema(), schema());
}

#[test]
fn an_older_copy_is_refused_by_what_is_expected() {
    let (_folder, path) = place();
    let db = lived_in(&path);
    let older = db.durable_sequence();
    db.close().unwrap();
    let copy = fs::read(&path).unwrap();
    let expecting = |sequence| config(NOW_NS + 10).1.path(&path).expect_at_least(sequence).open();
    let db = expecting(older).unwrap();
    db.leave_community_layer(8).unwrap();
    let newest = db.durable_sequence();
    assert!(newest > older);
    db.close().unwrap();
    expecting(newest).unwrap().close().unwrap();
    let mut text = format!("expected: 1 more\n  -> {}\n", said(&expecting(newest + 1).unwrap_err()));

    fs::write(&path, copy).unwrap();
    writeln!(text, "an older copy\n  -> {}", said(&expecting(newest).unwrap_err())).unwrap();
    insta::assert_snapshot!("behind_expected", text);
    assert_eq!(expecting(0).unwrap().durable_sequence(), older);
}

#[test]
fn a_lost_file_is_not_made_anew_where_something_is_expected() {
    let (folder, path) = place();
    let opened = config(NOW_NS).1.path(&path).create(true).expect_at_least(5).open();
    assert!(opened.is_err(), "{opened:?}");
    assert!(names_in(folder.path()).is_empty(), "a database was made in place of the one that is lost");
}

#[test]
fn a_malformed_key_is_refused_and_nothing_is_stored() {
    let storage = Storage::in_memory().unwrap();
    let users = storage.users_engine();
    let leave_with_suffix = [leave_key(7).as_ref(), b"x"].concat();
    let mut text = String::new();
    let bad: [&[u8]; 5] = [
        b"",
        b"seven",
        &[0, 0, 0, 0, 0, 0, 0, 7, 1, 0x11],
        &[0, 0, 0, 0, 0, 0, 0, 7, 0, 0x7f],
        &leave_with_suffix,
    ];
    for key in bad {
        let error = users.put(key, b"x").unwrap_err();
        assert!(users.delete(key).is_err() && users.get(key).is_err());
        writeln!(text, "{}", said(&error.into())).unwrap();
    }
    insta::assert_snapshot!("malformed_keys", text);
    assert_eq!(users.scan_prefix(b"").unwrap().count(), 0);
}

#[test]
fn damaged_records_are_named_in_the_report() {
    let mut text = String::new();
    let records: [&[u8]; 7] = [
        b"",
        &[1],
        &[1, 100, 0, 0, 0, 0, 0, 0],
        &[1, 100, 0, 0, 0, 0, 0, 0, 0, 0],
        &[2, 100, 0, 0, 0, 0, 0, 0, 0],
        &[0, 100, 0, 0, 0, 0, 0, 0, 0],
        &[1, 101, 0, 0, 0, 0, 0, 0, 0],
    ];
    for record in records {
        let medium = Arc::new(MemoryMedium::default());
        let (db, storage) = create_on(&medium, config(100).1);
        db.leave_community_layer(7).unwrap();
        storage.users_engine().put(&leave_key(7), record).unwrap();
        drop((db, storage));
        let (db, _) = open_image(medium.snapshot(), config(200).1);
        let damaged = &db.open_report().damaged;
        assert_eq!(damaged.len(), 1);
        writeln!(text, "{record:?}\n  -> {}: {}", damaged[0].user_id, damaged[0].cause).unwrap();
    }
    // A record without any history, of somebody who never called.
    let storage = Storage::in_memory().unwrap();
    storage.users_engine().put(&leave_key(9), &[1, 100, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let db = TidalDb::from_parts(storage, config(200).1).unwrap();
    let damaged = &db.open_report().damaged;
    writeln!(text, "no history\n  -> {}: {}", damaged[0].user_id, damaged[0].cause).unwrap();
    let mut refusals = Refusals::of(&db);
    refusals.add("rejoin of a damaged user", |db| db.rejoin_community_layer(9));
    refusals.add("apply of a rejoin of a damaged user", |db| db.apply("queue", 3, [rejoin(150, 9)]));
    text += &refusals.text;
    insta::assert_snapshot!("damaged_records", text);
    // Once it is repaired, the source goes on.
    db.repair_community_layer(9).unwrap();
    assert_eq!(db.apply("queue", 3, [rejoin(250, 9)]).unwrap().applied, 1);
    assert_eq!(db.community_layer_status(9).status, MembershipStatus::Active);
}

#[test]
fn a_repair_of_what_is_sound_changes_nothing() {
    let (_folder, path) = place();
    let db = lived_in(&path);
    let before = visible(&db);
    for user in common::USERS {
        assert_eq!(db.repair_community_layer(user).unwrap(), db.community_layer_status(user));
    }
    assert_eq!(visible(&db), before);
}

#[test]
fn an_apply_that_stops_keeps_what_came_before() {
    let bad_events = [
        ("an undeclared signal", view_of(NOW_NS, 8, "like")),
        ("a time too far ahead", leave(u64::MAX, 8)),
        (
            "an attribute without a name",
            Event {
                at_ns: NOW_NS,
                action: Action::SetAttribute { user: 8, name: String::new(), value: "x".into() },
            },
        ),
    ];
    let mut text = String::new();
    for (what, bad) in bad_events {
        // The first chunk, the last event of a chunk, the first of the next, and beyond.
        for good in [0, 1, 4095, 4096, 5_000_u64] {
            let medium = Arc::new(MemoryMedium::default());
            let (db, _) = create_on(&medium, config(NOW_NS).1);
            let stages = [join(10, 8), view(20, 8), leave(30, 8), view(40, 8), rejoin(50, 8)];
            let good_events = stages.into_iter().chain((0..good).map(|_| view(45, 8)));
            let good_events = good_events.take(usize::try_from(good).unwrap());
            let events = good_events.chain([bad.clone(), leave(60, 9), view(70, 9)]);
            let error = db.apply("queue", 10, events).unwrap_err();
            if good < 2 {
                writeln!(text, "{what} after {good}\n  -> {}", said(&error)).unwrap();
            }
            assert_eq!(error.position(), Some(10 + good));
            let Error::Apply { report, .. } = error else { panic!("{error:?}") };
            let reached = (good > 0).then(|| 9 + good);
            assert_eq!((report.applied, report.skipped, report.position), (good, 0, reached));
            assert_eq!(db.position("queue").unwrap(), reached);
            assert_eq!(db.left_users().iter().filter(|left| left.user_id == 9).count(), 0);
            let before = visible(&db);
            let (db, _) = open_image(medium.snapshot(), config(NOW_NS).1);
            assert_eq!(visible(&db), before, "{what} after {good}");
            // With the bad event mended, the source goes on where it stopped.
            let report = db.apply("queue", 10 + good, [view(60, 9)]).unwrap();
            assert_eq!((report.applied, report.position), (1, Some(10 + good)));
        }
    }
    insta::assert_snapshot!("apply_stops", text);
}

#[test]
fn a_source_whose_content_was_replaced_is_refused() {
    let text = refusals(|refusals| {
        let events = || vec![view(NOW_NS, 999), join(NOW_NS, 999)];
        let replaced = |place: usize, event| {
            let mut events = events();
            events[place] = event;
            events
        };
        refusals.add("another first event", |db| db.apply("queue", 1, replaced(0, view(NOW_NS, 8))));
        refusals.add("another time", |db| db.apply("queue", 1, replaced(1, join(NOW_NS + 1, 999))));
        let longer = || {
            [view(NOW_NS, 8)]
                .into_iter()
                .chain([join(NOW_NS, 999)])
                .chain((0..10_000).map(|_| view(NOW_NS, 8)))
        };
        refusals.add("another and longer", |db| db.apply("queue", 1, longer()));
        assert_eq!(refusals.db.apply("queue", 1, events()).unwrap().skipped, 2);
    });
    insta::assert_snapshot!("source_replaced", text);
}

#[test]
fn a_closed_database_says_so_to_every_clone() {
    let (_folder, path) = place();
    let db = lived_in(&path);
    let clone = db.clone();
    let late_iterator = clone.history(8).unwrap();
    let before = visible(&db);
    db.close().unwrap();
    let db = clone;
    let mut text = String::new();
    let mut add = |asked: &str, error: Option<Error>| {
        let error = error.expect(asked);
        assert!(matches!(error, Error::Closed), "{asked}: {error:?}");
        writeln!(text, "{asked}\n  -> {}", said(&error)).unwrap();
    };
    add("signal", db.signal(8, A, "view", 1.0).err());
    add("signal_at", db.signal_at(8, A, "view", 1.0, 5).err());
    add("leave", db.leave_community_layer(8).err());
    add("leave again", db.leave_community_layer(7).err());
    add("rejoin", db.rejoin_community_layer(7).err());
    add("rejoin again", db.rejoin_community_layer(999).err());
    add("repair", db.repair_community_layer(7).err());
    add("join", db.join_community(8, 5).err());
    add("join again", db.join_community(8, COMMUNITY).err());
    add("quit", db.quit_community(8, COMMUNITY).err());
    add("attribute", db.set_user_attribute(8, "region", "Wales").err());
    add("aggregate", db.aggregate(&Scope::Global, A, "view").err());
    add("aggregates", db.aggregates(None).err());
    add("history", db.history(8).err());
    add("membership_history", db.membership_history(8).err());
    add("apply", db.apply("queue", 1, [view(5, 8)]).err());
    add("position", db.position("queue").err());
    add("flush", db.flush().err());
    add("close", db.clone().close().err());
    insta::assert_snapshot!("closed", text);
    // It ends, with what it had or with an error, and does not hang or panic.
    let _ended: Vec<_> = late_iterator.collect();
    drop(db);
    assert_eq!(visible(&config(NOW_NS + 10).1.path(&path).open().unwrap()), before);
}

#[test]
fn a_drop_brings_what_is_pending_to_disk() {
    let (_folder, path) = place();
    let db = config(NOW_NS).1.path(&path).create(true).durability(UNHURRIED).open().unwrap();
    db.join_community(8, COMMUNITY).unwrap();
    let durable = db.durable_sequence();
    let clone = db.clone();
    for _ in 0..100 {
        db.signal(8, A, "view", 1.0).unwrap();
    }
    assert_eq!(db.durable_sequence(), durable);
    assert_eq!(p(&db, 8), 100);
    drop(db);
    clone.signal(8, A, "view", 1.0).unwrap();
    drop(clone);
    let db = config(NOW_NS).1.path(&path).open().unwrap();
    assert_eq!((c(&db), p(&db, 8), db.durable_sequence()), (101, 101, durable + 101));
}

#[test]
fn a_failed_background_flush_is_said_by_later_calls() {
    let medium = Arc::new(MemoryMedium::default());
    create_on(&medium, config(NOW_NS).1).0.close().unwrap();
    let faulty = Arc::new(FaultyMedium::from_bytes(medium.snapshot()));
    let storage = Storage::options().open_on(faulty.clone()).unwrap();
    let often = Durability::Batched { max_events: 1_000, max_delay: Duration::from_millis(1) };
    let db = TidalDb::from_parts(storage, config(NOW_NS).1.durability(often)).unwrap();
    faulty.fail_at(0, Counted::All, Fails::ForGood);
    db.signal(8, A, "view", 1.0).unwrap();
    let started = Instant::now();
    let error = loop {
        match db.signal(8, A, "view", 1.0) {
            Ok(_) => assert!(started.elapsed() < Duration::from_secs(20), "the failed flush is not said"),
            Err(error) => break error,
        }
        thread::sleep(Duration::from_millis(1));
    };
    insta::assert_snapshot!("latched", said(&error));
    for error in [db.flush(), db.join_community(8, 1), db.leave_community_layer(8).map(drop)] {
        assert!(matches!(error, Err(Error::Latched { .. })), "{error:?}");
    }
    assert!(db.close().is_err());
}

#[test]
fn a_batch_of_no_events_at_all_is_a_commit_a_call() {
    for (max_events, max_delay) in
        [(0, Duration::from_secs(3600)), (1, Duration::MAX), (usize::MAX, Duration::ZERO)]
    {
        let medium = Arc::new(MemoryMedium::default());
        let durability = Durability::Batched { max_events, max_delay };
        let (db, _) = create_on(&medium, config(NOW_NS).1.durability(durability));
        for _ in 0..20 {
            db.signal(8, A, "view", 1.0).unwrap();
            if max_events < 2 {
                assert_eq!(p(&open_image(medium.snapshot(), config(NOW_NS).1).0, 8), p(&db, 8));
            }
        }
        db.flush().unwrap();
        assert_eq!(p(&db, 8), 20);
        db.close().unwrap();
    }
}

/// Processor time that the flush threads of this process have used, in ticks of 10 ms.
#[cfg(target_os = "linux")]
fn flush_thread_ticks() -> u64 {
    let ticks = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let (name, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace().skip(11).map(|field| field.parse::<u64>().unwrap());
        let used = fields.next()? + fields.next()?;
        name.ends_with("(tidal-flush").then_some(used)
    };
    fs::read_dir("/proc/self/task").unwrap().filter_map(|task| ticks(task.ok()?)).sum()
}

#[cfg(target_os = "linux")]
#[test]
fn a_flush_thread_with_nothing_to_do_sleeps() {
    for max_events in [0, 1, 1_000] {
        let durability = Durability::Batched { max_events, max_delay: Duration::from_secs(3600) };
        let medium = Arc::new(MemoryMedium::default());
        let (db, _) = create_on(&medium, config(NOW_NS).1.durability(durability));
        db.signal(8, A, "view", 1.0).unwrap();
        let before = flush_thread_ticks();
        thread::sleep(Duration::from_millis(500));
        // Threads of other tests may have ended meanwhile.
        let used = flush_thread_ticks().saturating_sub(before);
        assert!(used < 15, "with max_events {max_events} it used {used}0 of 500 ms");
        drop(db);
    }
}

#[test]
fn weights_of_events_are_checked_where_they_are_made() {
    let mut text = String::new();
    for decimal in ["", "abc", "1_0", "NaN", "inf", "1000000000.0000000001", "-1e10", " 1", "1e"] {
        let error = decimal.parse::<Weight>().unwrap_err();
        writeln!(text, "{decimal:?}\n  -> {}", said(&error.into())).unwrap();
    }
    for nanos in [i64::MAX, i64::MIN, 1_000_000_000_000_000_001] {
        writeln!(text, "{nanos} nanos\n  -> {}", said(&Weight::from_nanos(nanos).unwrap_err().into()))
            .unwrap();
    }
    insta::assert_snapshot!("weights_of_events", text);
}

#[test]
fn a_transition_that_changes_nothing_takes_no_sequence() {
    let (_folder, path) = place();
    let db = lived_in(&path);
    let before = visible(&db);
    db.leave_community_layer(7).unwrap();
    db.rejoin_community_layer(8).unwrap();
    db.rejoin_community_layer(12_345).unwrap();
    db.join_community(8, COMMUNITY).unwrap();
    db.quit_community(8, 5).unwrap();
    db.set_user_attribute(8, "region", "Scotland").unwrap();
    assert_eq!(visible(&db), before);
    drop(db);
    assert_eq!(visible(&config(NOW_NS + 10).1.path(&path).open().unwrap()), before);
}

#[test]
fn a_storage_error_names_the_place() {
    let (folder, path) = place();
    lived_in(&path).close().unwrap();
    fs::write(&path, b"").unwrap();
    let error = config(NOW_NS).1.path(&path).open().unwrap_err();
    assert!(matches!(error, Error::Storage(StorageError::Empty { .. })));
    assert!(error.to_string().contains(folder.path().to_str().unwrap()));
}
