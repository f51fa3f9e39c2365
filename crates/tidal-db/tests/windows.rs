//! Windows of signal types that declare them: against a recount, over restarts, crashes and checkpoints.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "tests fail by panicking, and use a part of the scenarios"
)]

mod scenarios;

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use scenarios::medium::{RecordingMedium, take_step};
use scenarios::open_image;
use tidal_db::{
    Action, Config, DifferenceKind, Error, Event, ManualClock, Schema, SchemaBuilder, Scope, Storage,
    TidalDb, Weight, Window, WindowError,
};
use tidal_entities::{checkpoint_key, decode_checkpoint, parse_aggregate_row_key, seal, unseal};
use tidal_keys::Tag;
use tidal_storage::{MemoryMedium, Partition, WriteBatch};

const MINUTE_NS: u64 = 60_000_000_000;
const HOUR_NS: u64 = 60 * MINUTE_NS;
const DAY_NS: u64 = 24 * HOUR_NS;
const BASE_NS: u64 = 20_000 * DAY_NS;
const END_NS: u64 = BASE_NS + 12 * DAY_NS;
const WINDOWS: [Window; 3] = [Window::Hour, Window::Day, Window::Week];
const USER: u64 = 7;
const GROUP: Scope = Scope::Community(4);

fn schema() -> SchemaBuilder {
    Schema::builder().signal("like", Duration::from_secs(3600)).windowed("view", Duration::from_secs(3600))
}

/// The clock stands beyond all events, so that none is ahead of it.
fn config() -> Config {
    config_of(schema(), END_NS)
}

fn config_of(schema: SchemaBuilder, now_ns: u64) -> Config {
    TidalDb::builder().schema(schema.build().unwrap()).clock(Arc::new(ManualClock::new(now_ns)))
}

fn counts(db: &TidalDb, scope: &Scope, item: u64) -> [Option<u64>; 3] {
    WINDOWS.map(|window| db.aggregate_window(scope, item, "view", window).unwrap().map(|found| found.count))
}

#[derive(Clone, Copy, Debug)]
struct View {
    item: u64,
    at_ns: u64,
    nanos: i64,
}

impl View {
    fn event(self, signal_type: &str) -> Event {
        let weight = Weight::from_nanos(self.nanos).unwrap();
        let action =
            Action::Signal { user: USER, item: self.item, signal_type: signal_type.to_owned(), weight };
        Event { at_ns: self.at_ns, action }
    }
}

/// Every window of every item is what the views give, as of a time that none is ahead of.
fn assert_windows_follow(db: &TidalDb, views: &[View], at_ns: u64) {
    for scope in [Scope::Global, GROUP] {
        for item in 0..3 {
            for window in WINDOWS {
                let found = db.aggregate_window_at(&scope, item, "view", window, at_ns).unwrap();
                let of_item = || views.iter().filter(|view| view.item == item);
                let from_ns = (at_ns / window.bucket_ns() + 1) * window.bucket_ns() - window.length_ns();
                let expected = of_item()
                    .filter(|view| view.at_ns >= from_ns)
                    .fold((0, 0), |(count, sum), view| (count + 1, sum + i128::from(view.nanos)));
                let expected = of_item().next().map(|_| expected);
                let said = found.map(|found| (found.count, found.weight_nanos));
                assert_eq!(said, expected, "{scope}, item {item}, {window:?}");
            }
        }
    }
}

fn assert_verified(db: &TidalDb) {
    assert_eq!(db.verify().unwrap().differences, []);
}

#[test]
fn a_type_without_windows_says_how_to_declare_them() {
    let db = config().ephemeral().open().unwrap();
    db.signal(USER, 1, "like", 1.0).unwrap();
    let error = db.aggregate_window(&Scope::Global, 1, "like", Window::Day).unwrap_err();
    assert!(matches!(&error, Error::NotWindowed { name } if name == "like"), "{error}");
    let undeclared = db.aggregate_window(&Scope::Global, 1, "share", Window::Day).unwrap_err();
    assert!(matches!(undeclared, Error::UndeclaredSignalType { .. }));
    let cohort = Scope::Cohort("nobody".to_owned());
    assert!(matches!(db.aggregate_window(&cohort, 1, "view", Window::Day), Err(Error::Schema(_))));
    let ahead = db.aggregate_window_at(&Scope::Global, 1, "view", Window::Week, 0);
    assert_eq!(ahead.unwrap(), None);
    db.signal(USER, 1, "view", 1.0).unwrap();
    let passed = db.aggregate_window_at(&Scope::Global, 1, "view", Window::Week, 0).unwrap_err();
    assert!(matches!(passed, Error::Window(WindowError::Passed { .. })), "{passed}");
    insta::assert_snapshot!("window_errors", format!("{error}\n{passed}"));
    db.close().unwrap();
    let db = config().ephemeral().open().unwrap();
    db.clone().close().unwrap();
    assert!(matches!(db.aggregate_window(&Scope::Global, 1, "view", Window::Day), Err(Error::Closed)));
}

#[test]
fn late_events_fall_into_their_own_bucket_and_withheld_ones_into_no_layer() {
    let clock = Arc::new(ManualClock::new(END_NS));
    let config = TidalDb::builder().schema(schema().build().unwrap()).clock(clock.clone());
    let db = config.ephemeral().open().unwrap();
    db.join_community(USER, 4).unwrap();
    assert_eq!(counts(&db, &GROUP, 1), [None; 3]);
    db.signal(USER, 1, "view", 0.5).unwrap();
    db.signal_at(USER, 1, "view", 0.25, END_NS - 2 * HOUR_NS).unwrap();
    db.signal_at(USER, 1, "view", -3.0, END_NS - 2 * DAY_NS).unwrap();
    db.signal_at(USER, 1, "view", 1.0, END_NS - 9 * DAY_NS).unwrap();
    assert_eq!(counts(&db, &GROUP, 1), [Some(1), Some(2), Some(3)]);
    let day = db.aggregate_window(&GROUP, 1, "view", Window::Day).unwrap().unwrap();
    assert_eq!((day.weight_nanos, day.weight_sum.to_bits()), (750_000_000, 0.75_f64.to_bits()));
    assert_eq!(db.aggregate(&GROUP, 1, "view").unwrap().unwrap().count, 4);
    db.leave_community_layer(USER).unwrap();
    db.signal(USER, 1, "view", 1.0).unwrap();
    assert_eq!(counts(&db, &GROUP, 1), [Some(1), Some(2), Some(3)]);
    assert_eq!(counts(&db, &Scope::Global, 1), [Some(2), Some(3), Some(4)]);
    // A day passes, and nothing else happens.
    clock.advance(DAY_NS);
    assert_eq!(counts(&db, &GROUP, 1), [Some(0), Some(0), Some(3)]);
    clock.advance(30 * DAY_NS);
    assert_eq!(counts(&db, &GROUP, 1), [Some(0); 3]);
    assert_verified(&db);
}

#[test]
fn windows_are_declared_once() {
    let medium = Arc::new(MemoryMedium::default());
    let without = || Schema::builder().signal("like", Duration::from_secs(3600));
    scenarios::create_on(&medium, config_of(without(), END_NS)).unwrap().close().unwrap();
    let open =
        |schema: SchemaBuilder| open_image(medium.snapshot(), config_of(schema, END_NS).extend_schema(true));
    let turned_on = open(Schema::builder().windowed("like", Duration::from_secs(3600))).unwrap_err();
    assert!(
        turned_on.contains("keeps no windows in the database and windows in the given schema"),
        "{turned_on}"
    );
    let db = open(schema()).unwrap();
    db.signal(USER, 1, "view", 1.0).unwrap();
    assert_eq!(counts(&db, &Scope::Global, 1), [Some(1); 3]);
}

fn views() -> impl Strategy<Value = Vec<View>> {
    let times = prop_oneof![
        (0..12 * DAY_NS).prop_map(|later_ns| BASE_NS + later_ns),
        (0..3 * HOUR_NS).prop_map(|earlier_ns| END_NS - earlier_ns),
        (1..3_000_u64, 0..2_u64).prop_map(|(buckets, shift)| END_NS - buckets * 5 * MINUTE_NS - shift),
    ];
    let view = (0..3_u64, times, -1_000_000_000..3_000_000_000_i64).prop_map(|(item, at_ns, nanos)| View {
        item,
        at_ns,
        nanos,
    });
    prop::collection::vec(view, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// However often it is reopened, and however many checkpoints of whatever length there were.
    #[test]
    fn stored_and_replayed_windows_are_those_of_all_events(
        views in views(),
        chunk_len in 1..30_usize,
        recovery_entries in 1..40_u64,
        later_ns in 0..2 * DAY_NS,
    ) {
        let bounded = || config().recovery_entries(recovery_entries);
        let medium = Arc::new(MemoryMedium::default());
        let db = scenarios::create_on(&medium, bounded()).unwrap();
        db.join_community(USER, 4).unwrap();
        db.close().unwrap();
        let mut done = 0;
        for chunk in views.chunks(chunk_len) {
            let storage = Storage::options().open_on(medium.clone()).unwrap();
            let db = TidalDb::from_parts(storage, bounded()).unwrap();
            assert_windows_follow(&db, &views[..done], END_NS);
            db.apply("views", 1 + done as u64, chunk.iter().map(|view| view.event("view"))).unwrap();
            done += chunk.len();
            assert_windows_follow(&db, &views[..done], END_NS);
            assert_windows_follow(&db, &views[..done], END_NS + later_ns);
            assert_verified(&db);
            db.close().unwrap();
        }
        let scratch = config().ephemeral().open().unwrap();
        scratch.join_community(USER, 4).unwrap();
        // In another order, in one go.
        scratch.apply("views", 1, views.iter().rev().map(|view| view.event("view"))).unwrap();
        assert_windows_follow(&scratch, &views, END_NS);
        assert_verified(&scratch);
    }
}

/// More aggregates than one slice of a checkpoint holds.
const ITEMS: u64 = 4_100;

/// Two views of each item, the second a day late.
fn twice() -> impl Iterator<Item = Event> {
    let view = |item, at_ns| View { item, at_ns, nanos: 1 }.event("view");
    (0..ITEMS)
        .map(move |item| view(item, END_NS))
        .chain((0..ITEMS).map(move |item| view(item, END_NS - DAY_NS)))
}

#[test]
fn a_crash_at_any_write_of_a_checkpoint_leaves_the_windows_of_the_events() {
    let medium = Arc::new(RecordingMedium::default());
    let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
    let bounded = || config().recovery_entries(400);
    let db = TidalDb::from_parts(storage, bounded()).unwrap();
    let begin = medium.steps_len();
    db.apply("views", 1, twice()).unwrap();
    db.close().unwrap();
    let steps = medium.steps();

    let mut image = Vec::new();
    let (mut images, mut within_a_checkpoint) = (0, 0);
    for (done, step) in steps.iter().enumerate() {
        take_step(&mut image, step);
        // Some writes: the others take as long and show as much.
        if done < begin || done % 16 != 0 {
            continue;
        }
        within_a_checkpoint += usize::from(is_within_a_checkpoint(&image));
        let copy = open_image(image.clone(), bounded()).unwrap();
        let applied = copy.position("views").unwrap().unwrap_or(0);
        for item in 0..ITEMS {
            let day = u64::from(item < applied);
            let week = day + u64::from(item + ITEMS < applied);
            let expected = (day > 0).then_some([day, day, week]);
            let found = counts(&copy, &Scope::Global, item);
            assert_eq!(
                found,
                expected.map_or([None; 3], |expected| expected.map(Some)),
                "{item}, {done} steps"
            );
        }
        if images % 10 == 0 {
            assert_verified(&copy);
        }
        images += 1;
    }
    assert!(images > 20, "only {images} images were opened");
    assert!(within_a_checkpoint > 0, "no image was taken within a checkpoint");
}

/// Whether some rows are of a run that the checkpoint does not name yet.
fn is_within_a_checkpoint(image: &[u8]) -> bool {
    let medium = Arc::new(MemoryMedium::from_bytes(image.to_vec()));
    let storage = Storage::options().open_on(medium).unwrap();
    let key = checkpoint_key();
    let value = storage.system_engine().get(&key).unwrap();
    let Some(value) = value else { return false };
    let runs = decode_checkpoint(&key, &value).unwrap().runs;
    let newest = runs.iter().map(|run| run.number).max().unwrap_or(0);
    let mut rows = storage.items_engine().scan_tag(Tag::SignalState).unwrap().map(Result::unwrap);
    rows.any(|(key, _)| parse_aggregate_row_key(&key).unwrap().0 > newest)
}

/// An image in which the views of item 1 are in a stored aggregate, and its row is changed, seal following.
fn image_with_changed_row(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::default());
    let db = scenarios::create_on(&medium, config().recovery_entries(2)).unwrap();
    db.apply("views", 1, (0..8).map(|_| View { item: 1, at_ns: END_NS, nanos: 1 }.event("view"))).unwrap();
    let row_of = |storage: &Storage| {
        let at = checkpoint_key();
        let value = storage.system_engine().get(&at).unwrap()?;
        let last = decode_checkpoint(&at, &value).unwrap().runs.first()?.number;
        let mut rows = storage.items_engine().scan_tag(Tag::SignalState).unwrap().map(Result::unwrap);
        rows.find(|(key, _)| parse_aggregate_row_key(key).unwrap().0 == last)
    };
    let patience = Instant::now();
    loop {
        let copy = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(medium.snapshot())));
        if row_of(&copy.unwrap()).is_some() {
            break;
        }
        assert!(patience.elapsed() < Duration::from_secs(60), "no checkpoint came");
    }
    db.close().unwrap();

    let storage = Storage::options().open_on(medium.clone()).unwrap();
    let (key, stored) = row_of(&storage).unwrap();
    let mut payload = unseal(&key, &stored).unwrap().to_vec();
    change(&mut payload);
    let mut batch = WriteBatch::new();
    batch.put(Partition::Items, &key, &seal(&key, &payload));
    storage.commit(batch).unwrap();
    storage.close().unwrap();
    medium.snapshot()
}

/// What follows the epochs: newest bucket, and one bucket of each kind.
const WINDOWS_LEN: usize = 4 + 1 + 25 + 1 + 25;

/// What stands before the epochs' number in a row of one aggregate: beginning, item, scope, type, count and weight.
const HEAD: usize = 15 + 5;

#[test]
fn verify_names_a_window_that_is_not_what_the_log_says() {
    // The hour before.
    let image = image_with_changed_row(|payload| {
        let age = payload.len() - 25;
        payload[age] = 1;
    });
    let db = open_image(image, config().recovery_entries(1_000)).unwrap();
    let differences = db.verify().unwrap().differences;
    let kinds: Vec<DifferenceKind> = differences.iter().map(|difference| difference.kind).collect();
    assert_eq!(kinds, [DifferenceKind::Aggregate, DifferenceKind::StoredAggregate]);
    for difference in differences {
        assert!(difference.what.contains(", other windows, but the log says"), "{difference}");
        assert!(!difference.what.contains("another score"), "{difference}");
    }
}

#[test]
fn a_stored_aggregate_without_its_windows_is_damage() {
    let image = image_with_changed_row(|payload| {
        payload.truncate(payload.len() - WINDOWS_LEN);
        assert_eq!(payload[HEAD] & 1, 1, "windows follow");
        payload[HEAD] ^= 1;
    });
    let error = open_image(image, config()).unwrap_err();
    assert!(error.contains("has no windows, but its type says otherwise"), "{error}");
}
