//! Values at the ends of what is allowed are values like any other.
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

use std::time::Duration;

use common::{A, COMMUNITY, aggregate, config, history, left, place, view_of, visible};
use tidal_db::{MembershipStatus, Predicate, Schema, Scope, TidalDb, Withheld};

/// A clock long after 1970.
const NOW_NS: u64 = 1_700_000_000_000_000_000;

#[test]
fn weights_at_the_edges_are_exact() {
    let db = config(NOW_NS).1.ephemeral().open().unwrap();
    db.join_community(7, COMMUNITY).unwrap();
    let mut wanted_nanos = 0;
    let edges = [
        (1e9, 1_000_000_000_000_000_000),
        (-1e9, -1_000_000_000_000_000_000),
        (0.0, 0),
        (-0.0, 0),
        (1e-9, 1),
        // Half to even.
        (5e-10, 0),
        (1.5e-9, 2),
        (-2.5e-9, -2),
        (0.1, 100_000_000),
        (f64::MIN_POSITIVE, 0),
        (5e-324, 0),
        (1e9, 1_000_000_000_000_000_000),
        (999_999_999.999_999_9, 999_999_999_999_999_900),
    ];
    for (sent, (weight, nanos)) in (1..).zip(edges) {
        db.signal(7, A, "view", weight).unwrap();
        wanted_nanos += nanos;
        for scope in [Scope::Global, Scope::Community(COMMUNITY)] {
            let taken = aggregate(&db, &scope).unwrap();
            assert_eq!((taken.count, taken.weight_nanos), (sent, wanted_nanos), "after {weight:e}");
        }
    }
    let kept: i128 = history(&db, 7).iter().map(|event| i128::from(event.weight.nanos())).sum();
    assert_eq!(kept, wanted_nanos);
}

#[test]
fn names_and_values_at_their_limits_are_kept() {
    let (_folder, path) = place();
    let attribute = "é".repeat(127) + "n";
    let value = "w".repeat(1022) + "ü";
    let source = "\0".repeat(255);
    let signal_type = "s".repeat(255);
    let schema = || {
        let builder = Schema::builder().signal(&signal_type, Duration::from_secs(1)).cohorts_by(&attribute);
        builder.cohort("c".repeat(255), Predicate::eq(&attribute, &value)).build().unwrap()
    };
    let db = TidalDb::builder().schema(schema()).path(&path).create(true).open().unwrap();
    db.set_user_attribute(7, &attribute, &value).unwrap();
    db.set_user_attribute(7, "note", "a=b=c\n\0,\"").unwrap();
    assert_eq!(db.signal(7, A, &signal_type, 1.0).unwrap().cohorts, 2);
    db.set_user_attribute(8, &attribute, "").unwrap();
    assert_eq!(db.signal(8, A, &signal_type, 1.0).unwrap().cohorts, 1);
    db.apply(&source, 1, [view_of(NOW_NS, 7, &signal_type)]).unwrap();
    drop(db);

    let db = TidalDb::builder().schema(schema()).path(&path).open().unwrap();
    assert_eq!(db.user_attribute(7, &attribute), Some(value.clone()));
    assert_eq!(db.user_attribute(7, "note").as_deref(), Some("a=b=c\n\0,\""));
    assert_eq!(db.user_attribute(8, &attribute).as_deref(), Some(""));
    assert_eq!(db.position(&source).unwrap(), Some(1));
    let wanted = [(format!("{attribute}={value}"), 2), (format!("{attribute}="), 1), ("c".repeat(255), 2)];
    for (cohort, wanted) in wanted {
        let taken = db.aggregate(&Scope::Cohort(cohort), A, &signal_type).unwrap();
        assert_eq!(taken.unwrap().count, wanted);
    }
}

#[test]
fn ids_at_both_ends_are_ids_like_any_other() {
    let ends = [0, u64::MAX];
    let (_folder, path) = place();
    let db = config(100).1.path(&path).create(true).open().unwrap();
    for user in ends {
        for community in ends {
            db.join_community(user, community).unwrap();
        }
        for item in ends {
            assert_eq!(db.signal(user, item, "view", 1.0).unwrap().communities, 2);
        }
    }
    db.leave_community_layer(0).unwrap();
    db.leave_community_layer(u64::MAX).unwrap();
    let check = |db: &TidalDb| {
        assert_eq!(db.left_users(), [left(0, 100), left(u64::MAX, 100)]);
        for id in ends {
            assert_eq!(db.communities_of(id), ends);
            assert_eq!(history(db, id).iter().map(|event| event.item).collect::<Vec<_>>(), ends);
            assert_eq!(db.membership_history(id).unwrap().len(), 1);
            let rows = db.aggregates(Some(&Scope::Community(id))).unwrap().map(Result::unwrap);
            let taken: Vec<_> = rows.map(|row| (row.item, row.aggregate.count)).collect();
            assert_eq!(taken, [(0, 2), (u64::MAX, 2)]);
        }
    };
    check(&db);
    drop(db);
    let db = config(100).1.path(&path).open().unwrap();
    check(&db);
    for id in ends {
        assert_eq!(db.signal(id, A, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
        db.rejoin_community_layer(id).unwrap();
        assert_eq!(db.signal(id, A, "view", 1.0).unwrap().communities, 2);
        db.quit_community(id, u64::MAX).unwrap();
        assert_eq!(db.communities_of(id), [0]);
    }
}

#[test]
fn a_clock_at_either_end_is_a_clock() {
    for now_ns in [0, u64::MAX] {
        let (_folder, path) = place();
        let at_ns = now_ns.max(1);
        let (clock, config) = config(now_ns);
        let db = config.path(&path).create(true).open().unwrap();
        db.join_community(7, COMMUNITY).unwrap();
        assert_eq!(db.signal(7, A, "view", 1.0).unwrap().communities, 1);
        assert_eq!(db.leave_community_layer(7).unwrap(), left(7, at_ns));
        assert_eq!(db.signal_at(7, A, "view", 1.0, now_ns).unwrap().withheld, Some(Withheld::Left));
        clock.advance(u64::MAX);
        let back = db.rejoin_community_layer(7).unwrap();
        assert_eq!((back.status, back.left_at_ns), (MembershipStatus::Active, Some(at_ns)));
        assert_eq!(db.signal(7, A, "view", 1.0).unwrap().communities, 1);
        let score = aggregate(&db, &Scope::Global).unwrap().score;
        assert!(score.is_finite(), "the score is {score}");
        let before = visible(&db);
        drop(db);
        let (_, again) = common::config(u64::MAX);
        let db = again.path(&path).open().unwrap();
        assert_eq!(visible(&db), before);
        // From the leave to the return, which is not in it.
        let late = db.signal_at(7, A, "view", 1.0, u64::MAX - 1).unwrap();
        assert_eq!(late.withheld, (now_ns == 0).then_some(Withheld::AwayPeriod));
        assert_eq!(db.signal_at(7, A, "view", 1.0, u64::MAX).unwrap().withheld, None);
    }
}

#[test]
fn a_clock_that_steps_back_is_followed() {
    let (clock, config) = config(NOW_NS);
    let db = config.ephemeral().open().unwrap();
    db.join_community(7, COMMUNITY).unwrap();
    db.leave_community_layer(7).unwrap();
    clock.set(0);
    db.rejoin_community_layer(7).unwrap();
    assert_eq!(db.signal(7, A, "view", 1.0).unwrap().withheld, None);
    clock.set(NOW_NS);
    // The period is from the earlier of the two to the later: [1, NOW_NS).
    for (at_ns, withheld) in [(0, false), (1, true), (NOW_NS - 1, true), (NOW_NS, false)] {
        let receipt = db.signal_at(7, A, "view", 1.0, at_ns).unwrap();
        assert_eq!(receipt.withheld, withheld.then_some(Withheld::AwayPeriod), "at {at_ns}");
    }
}
