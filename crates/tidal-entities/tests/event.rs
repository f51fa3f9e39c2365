//! Events: limits, and bytes that no other events share.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

mod common;

use std::collections::HashMap;

use common::chain;
use tidal_entities::{
    Action, Event, LimitError, MAX_NAME_BYTES, MAX_VALUE_BYTES, Weight, Withheld, WithheldCounts,
    check_attribute_value, check_source_name,
};

fn set_attribute(name: &str, value: &str) -> Action {
    Action::SetAttribute { user: 7, name: name.to_owned(), value: value.to_owned() }
}

fn signal(signal_type: &str) -> Action {
    Action::Signal { user: 7, item: 1, signal_type: signal_type.to_owned(), weight: Weight::ONE }
}

#[test]
fn texts_beyond_their_limits_are_refused_and_named() {
    for action in [
        set_attribute("region", ""),
        set_attribute(&"n".repeat(MAX_NAME_BYTES), &"v".repeat(MAX_VALUE_BYTES)),
        signal(&"s".repeat(MAX_NAME_BYTES)),
        Action::Join { user: 0, community: u64::MAX },
        Action::Leave { user: u64::MAX },
    ] {
        assert_eq!(action.check_limits(), Ok(()));
    }
    let refused = [
        set_attribute("", "value").check_limits(),
        set_attribute("a=b", "value").check_limits(),
        set_attribute(&"ñ".repeat(128), "value").check_limits(),
        set_attribute("name", &"v".repeat(MAX_VALUE_BYTES + 1)).check_limits(),
        signal("").check_limits(),
        signal(&"s".repeat(MAX_NAME_BYTES + 1)).check_limits(),
        check_source_name(""),
        check_attribute_value(&"v".repeat(1 << 20)),
    ];
    let messages: Vec<String> =
        refused.into_iter().map(|refused: Result<(), LimitError>| chain(&refused.unwrap_err())).collect();
    insta::assert_snapshot!("limit_errors", messages.join("\n"));
}

#[test]
fn no_two_lists_of_events_have_the_same_bytes() {
    let actions = [
        Action::Leave { user: 1 },
        Action::Rejoin { user: 1 },
        Action::Leave { user: 2 },
        Action::Join { user: 1, community: 2 },
        Action::Quit { user: 1, community: 2 },
        set_attribute("a", "bc"),
        set_attribute("ab", "c"),
        set_attribute("ab", ""),
        signal("a"),
        signal("ab"),
        Action::Signal { user: 7, item: 1, signal_type: "a".to_owned(), weight: Weight::MIN },
    ];
    let events: Vec<Event> = [0, 1, u64::MAX]
        .into_iter()
        .flat_map(|at_ns| actions.clone().map(|action| Event { at_ns, action }))
        .collect();
    let mut lists_by_bytes = HashMap::new();
    for first in &events {
        let mut bytes = Vec::new();
        first.encode(&mut bytes);
        assert_eq!(lists_by_bytes.insert(bytes.clone(), vec![first]), None);
        for second in &events {
            let mut bytes = bytes.clone();
            second.encode(&mut bytes);
            assert_eq!(lists_by_bytes.insert(bytes, vec![first, second]), None);
        }
    }
}

#[test]
fn every_action_has_its_user() {
    for action in
        [set_attribute("a", "b"), signal("view"), Action::Leave { user: 7 }, Action::Rejoin { user: 7 }]
    {
        assert_eq!(action.user(), 7);
    }
    assert_eq!(Action::Join { user: 7, community: 1 }.user(), 7);
    assert_eq!(Action::Quit { user: 7, community: 1 }.user(), 7);
}

#[test]
fn withheld_signals_are_counted_by_reason() {
    let mut counts = WithheldCounts::default();
    for (reason, times) in [(Withheld::Left, 3), (Withheld::AwayPeriod, 2), (Withheld::Unknown, 1)] {
        for _ in 0..times {
            counts.add(reason);
        }
    }
    assert_eq!(counts, WithheldCounts { left: 3, away_period: 2, unknown: 1 });
    assert_eq!(counts.total(), 6);
    assert_eq!(
        [Withheld::Left, Withheld::AwayPeriod, Withheld::Unknown].map(|reason| reason.to_string()),
        ["left", "away_period", "unknown"],
    );
}
