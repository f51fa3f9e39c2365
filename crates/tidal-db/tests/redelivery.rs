//! A source delivered again, side by side, from within itself, and with gaps.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;

use common::{
    A, COMMUNITY, c, config, create_on, global, history, join, leave, open_image, p, place, rejoin, view,
    visible,
};
use tidal_db::Error;
use tidal_storage::MemoryMedium;

/// A clock long after 1970.
const NOW_NS: u64 = 1_700_000_000_000_000_000;

#[test]
fn an_apply_that_reaches_the_last_position_says_so() {
    let (_folder, path) = place();
    let db = config(NOW_NS).1.path(&path).create(true).open().unwrap();
    let first_position = u64::MAX - 2;
    let events = || (0..5).map(|_| view(NOW_NS, 8));
    let error = db.apply("queue", first_position, events()).unwrap_err();
    let kept = p(&db, 8) as u64;
    assert!((2..=3).contains(&kept), "{kept} events were applied");
    let reached = Some(first_position + kept - 1);
    assert_eq!(db.position("queue").unwrap(), reached);
    assert_eq!(error.position(), Some(first_position + kept), "the error names the position");
    let Error::Apply { report, .. } = error else { panic!("what was done before is not said: {error:?}") };
    assert_eq!((report.applied, report.forwarded, report.position), (kept, kept, reached));
    assert!(db.apply("queue", first_position, events()).is_err());
    assert_eq!(p(&db, 8) as u64, kept);
    drop(db);
    let db = config(NOW_NS).1.path(&path).open().unwrap();
    assert_eq!((p(&db, 8) as u64, db.position("queue").unwrap()), (kept, reached));
}

#[test]
fn a_position_is_said_once_it_is_on_disk() {
    for reached in [None, Some(1)] {
        let (db, storage) = create_on(&Arc::new(MemoryMedium::default()), config(NOW_NS).1);
        if reached.is_some() {
            db.apply("queue", 1, [view(5, 8)]).unwrap();
        }
        // From here on no commit gets through.
        storage.close().unwrap();
        assert!(db.apply("queue", 2, [view(6, 8)]).is_err());
        assert_eq!(db.position("queue").unwrap(), reached);
    }
}

#[test]
fn positions_start_anywhere_and_may_have_gaps() {
    let db = config(NOW_NS).1.ephemeral().open().unwrap();
    assert_eq!(db.apply("queue", 0, []).unwrap().position, None);
    assert_eq!(db.apply("queue", 0, [view(5, 8)]).unwrap().position, Some(0));
    assert_eq!(db.apply("queue", 0, [view(5, 8)]).unwrap().skipped, 1);
    assert_eq!(db.apply("queue", 100, [view(6, 8), view(7, 8)]).unwrap().position, Some(101));
    let report = db.apply("queue", 100, [view(6, 8), view(7, 8), view(8, 8)]).unwrap();
    assert_eq!((report.applied, report.skipped, report.position), (1, 2, Some(102)));
    assert_eq!(db.apply("queue", 50, [view(9, 8)]).unwrap().skipped, 1);
    assert_eq!(p(&db, 8), 4);
    assert_eq!(db.apply("queue", 200, []).unwrap().position, Some(102));
}

#[test]
fn a_source_delivered_by_several_threads_counts_once() {
    const EVENTS: u64 = 10_000;
    let medium = Arc::new(MemoryMedium::default());
    let (db, _) = create_on(&medium, config(NOW_NS).1);
    let events = || {
        let of = |nth: u64| match nth % 10 {
            0 => join(nth, nth % 7),
            5 => leave(nth, nth % 7),
            8 => rejoin(nth, nth % 7),
            _ => view(nth, nth % 7),
        };
        (1..=EVENTS).map(of)
    };
    let start = Barrier::new(4);
    let reports: Vec<_> = thread::scope(|scope| {
        let deliver = || {
            start.wait();
            db.apply("queue", 1, events()).unwrap()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(deliver)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for report in &reports {
        assert_eq!((report.applied + report.skipped, report.position), (EVENTS, Some(EVENTS)));
    }
    assert_eq!(reports.iter().map(|report| report.applied).sum::<u64>(), EVENTS);

    let alone = config(NOW_NS).1.ephemeral().open().unwrap();
    alone.apply("queue", 1, events()).unwrap();
    let (reopened, _) = open_image(medium.snapshot(), config(NOW_NS).1);
    for db in [&db, &reopened] {
        assert_eq!((c(db), global(db)), (c(&alone), global(&alone)));
        assert_eq!(db.left_users(), alone.left_users());
        assert_eq!(db.withheld_counts(), alone.withheld_counts());
        assert_eq!(history(db, 3), history(&alone, 3));
    }
}

#[test]
fn events_may_be_made_with_the_database_they_are_applied_to() {
    const EVENTS: u64 = 5_000;
    let medium = Arc::new(MemoryMedium::default());
    let (db, _) = create_on(&medium, config(NOW_NS).1);
    let events = (1..=EVENTS).map(|nth| {
        let user = nth % 3;
        match nth % 1_000 {
            1 => db.join_community(user, COMMUNITY).unwrap(),
            2 => drop(db.leave_community_layer(user).unwrap()),
            3 => drop(db.rejoin_community_layer(user).unwrap()),
            4 => drop(db.signal(user, A, "view", 1.0).unwrap()),
            5 => drop(db.apply("other", nth, [leave(nth, user), rejoin(nth, user)]).unwrap()),
            6 => db.set_user_attribute(user, "region", &nth.to_string()).unwrap(),
            7 => db.flush().unwrap(),
            8 => assert!(db.position("queue").unwrap().is_none_or(|position| position < nth)),
            _ => {}
        }
        if nth % 50 == 0 { leave(nth, user) } else { view(nth, user) }
    });
    let report = db.apply("queue", 1, events).unwrap();
    assert_eq!((report.applied, report.position), (EVENTS, Some(EVENTS)));
    assert_eq!(global(&db), EVENTS - EVENTS / 50 + 5);
    let before = visible(&db);
    let (db, _) = open_image(medium.snapshot(), config(NOW_NS).1);
    assert_eq!(visible(&db), before);
}

#[test]
fn a_source_may_be_delivered_from_within_its_own_delivery() {
    let db = config(NOW_NS).1.ephemeral().open().unwrap();
    let events = |from: u64| (from..=8).map(|nth| view(nth, 8));
    let mut delivered = false;
    let report = db.apply(
        "queue",
        1,
        events(1).inspect(|_| {
            if !delivered {
                delivered = true;
                assert_eq!(db.apply("queue", 1, events(1)).unwrap().applied, 8);
            }
        }),
    );
    let report = report.unwrap();
    assert_eq!((report.applied, report.skipped, report.position), (0, 8, Some(8)));
    assert_eq!(p(&db, 8), 8);
}

#[test]
fn an_overlap_is_skipped_however_deliveries_interleave() {
    // While one delivery gathers its first events, another starts the same source elsewhere.
    for (outer_first, inner_first) in [(3, 1), (1, 3)] {
        let db = config(NOW_NS).1.ephemeral().open().unwrap();
        let events = |from: u64| (from..=8).map(|nth| view(nth, 8));
        let mut delivered = false;
        let report = db.apply(
            "queue",
            outer_first,
            events(outer_first).inspect(|_| {
                if !delivered {
                    delivered = true;
                    db.apply("queue", inner_first, events(inner_first)).unwrap();
                }
            }),
        );
        if outer_first < inner_first {
            // The first events were never applied, so skipping them would lose them in silence.
            assert!(matches!(report, Err(Error::BeforeSource { first_position: 1, known_first: 3, .. })));
            assert_eq!(p(&db, 8), 6);
            continue;
        }
        let report =
            report.expect("an overlap that does not begin where the source begins is skipped unchecked");
        assert_eq!((report.applied, report.skipped, report.position), (0, 9 - outer_first, Some(8)));
    }
}

#[test]
fn events_that_panic_stop_their_own_delivery_only() {
    let db = config(NOW_NS).1.ephemeral().open().unwrap();
    let events = || (1..=5_000).map(|nth| if nth % 2 == 0 { leave(nth, 7) } else { view(nth, 8) });
    let failing = events().inspect(|event| assert!(event.at_ns < 4_500, "a planned panic"));
    assert!(catch_unwind(AssertUnwindSafe(|| db.apply("queue", 1, failing))).is_err());
    let position = db.position("queue").unwrap().unwrap_or(0);
    let report = db.apply("queue", 1, events()).unwrap();
    assert_eq!((report.applied, report.skipped), (5_000 - position, position));
    assert_eq!(p(&db, 8), 2_500);
    db.rejoin_community_layer(7).unwrap();
}
