//! What is added and taken away again leaves aggregates and rankings as if it had never been.

use std::cmp::Reverse;

use proptest::prelude::*;
use tidal_entities::{Contribution, HalfLife, ScopeId, ScoreRank, SignalTypeId, SubtractError, Weight};

use super::view::MAX_SHORTLISTS;
use super::{AggregateKey, AggregateView};
use crate::canary::Canary;
use crate::{Error, Schema, Scope, TidalDb};

const SIGNAL_TYPES: [(SignalTypeId, HalfLife); 2] =
    [(SignalTypeId(0), HalfLife::MIN), (SignalTypeId(1), HalfLife::MAX)];
const SCOPES: [ScopeId; 2] = [ScopeId::GLOBAL, ScopeId(3)];
const SECOND_NS: u64 = 1_000_000_000;

/// All items of one ranking, sorted anew.
fn sorted(view: &AggregateView, scope: ScopeId, signal_type: SignalTypeId) -> Vec<(u64, ScoreRank)> {
    let mut items = Vec::new();
    view.for_each(|key, state| {
        if (key.scope, key.signal_type) == (scope, signal_type) {
            items.push((key.item, state.score().rank()));
        }
    });
    items.sort_by_key(|(item, rank)| (Reverse(*rank), *item));
    items
}

fn check(view: &mut AggregateView, k: usize) {
    assert_eq!(view.wrong_maxima(), []);
    for scope in SCOPES {
        for (signal_type, _) in SIGNAL_TYPES {
            let mut expected = sorted(view, scope, signal_type);
            expected.truncate(k);
            assert_eq!(view.top(scope, signal_type, k), expected);
        }
    }
    assert_eq!(view.wrong_maxima(), []);
}

#[derive(Clone, Debug)]
struct Signal {
    key: AggregateKey,
    contribution: Contribution,
}

fn signals() -> impl Strategy<Value = Signal> {
    let times = prop_oneof![Just(0), Just(5 * SECOND_NS), 0..200 * SECOND_NS, any::<u64>()];
    // A tenth of the weights is negative.
    let nanos = prop_oneof![5 => Just(1_000_000_000), 4 => 1..3_000_000_000_i64, 1 => -2_000_000_000..0_i64];
    (0..2_usize, 0..2_usize, 0..90_u64, nanos, times).prop_map(|(scope, kind, item, nanos, event_time_ns)| {
        let (signal_type, half_life) = SIGNAL_TYPES[kind];
        Signal {
            key: AggregateKey { scope: SCOPES[scope], signal_type, item },
            contribution: Contribution::new(Weight::from_nanos(nanos).unwrap(), event_time_ns, half_life),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn rankings_follow_what_is_added_and_taken_away(
        steps in prop::collection::vec(
            (signals(), any::<prop::sample::Index>(), 0..3_u8, prop_oneof![0..5_usize, 0..100_usize]), 1..250,
        ),
    ) {
        let mut view = AggregateView::new(Canary::default());
        let mut added: Vec<Signal> = Vec::new();
        for (signal, any_added, kind, k) in steps {
            if kind == 0 && !added.is_empty() {
                let taken = added.swap_remove(any_added.index(added.len()));
                prop_assert_eq!(view.subtract(taken.key, &taken.contribution), Ok(()));
            } else {
                view.add(signal.key, &signal.contribution);
                added.push(signal);
            }
            check(&mut view, k);
        }
        check(&mut view, usize::MAX);
        for signal in added {
            prop_assert_eq!(view.subtract(signal.key, &signal.contribution), Ok(()));
        }
        check(&mut view, usize::MAX);
        view.for_each(|key, _| panic!("{key:?} is left"));
    }
}

#[test]
fn what_was_never_added_is_not_taken_away() {
    let mut view = AggregateView::new(Canary::default());
    let contribution = |nanos| Contribution::new(Weight::from_nanos(nanos).unwrap(), 0, HalfLife::MIN);
    let key = AggregateKey { scope: ScopeId::GLOBAL, signal_type: SignalTypeId(0), item: 7 };
    assert_eq!(view.subtract(key, &contribution(1)), Err(SubtractError::Empty));
    view.add(key, &contribution(1));
    assert_eq!(view.subtract(key, &contribution(2)), Err(SubtractError::OtherSignal));
    check(&mut view, 10);
    assert_eq!(view.top(ScopeId::GLOBAL, SignalTypeId(0), 10).len(), 1);
}

#[test]
fn no_more_lists_of_the_best_are_kept_than_allowed() {
    let mut view = AggregateView::new(Canary::default());
    let (signal_type, half_life) = SIGNAL_TYPES[0];
    let contribution = Contribution::new(Weight::ONE, 0, half_life);
    let scopes = u32::try_from(MAX_SHORTLISTS).unwrap() + 100;
    for scope in 0..scopes {
        view.add(AggregateKey { scope: ScopeId(scope), signal_type, item: 7 }, &contribution);
    }
    for _ in 0..2 {
        for scope in 0..scopes {
            assert_eq!(view.top(ScopeId(scope), signal_type, 10).len(), 1);
            assert!(view.shortlists_len() <= MAX_SHORTLISTS);
        }
        assert_eq!(view.shortlists_len(), MAX_SHORTLISTS);
    }
    // One that is asked again and again makes no second one.
    for _ in 0..2 * MAX_SHORTLISTS {
        view.top(ScopeId(scopes - 1), signal_type, 10);
    }
    assert_eq!(view.shortlists_len(), MAX_SHORTLISTS);
    assert_eq!(view.wrong_maxima(), []);
}

#[test]
fn what_could_not_be_read_is_not_recorded() {
    let schema = Schema::builder().signal("view", std::time::Duration::from_secs(60)).build().unwrap();
    let db = TidalDb::builder().schema(schema).ephemeral().open().unwrap();
    db.signal(7, 1, "view", 1.0).unwrap();
    let panicking = db.clone();
    let half_added = std::thread::spawn(move || {
        let _view = panicking.aggregate_view().unwrap();
        panic!("while updates are added");
    });
    assert!(half_added.join().is_err());
    let panicked =
        |outcome: Option<Error>| assert!(matches!(outcome, Some(Error::ThreadPanicked)), "{outcome:?}");
    panicked(db.aggregate(&Scope::Global, 1, "view").err());
    panicked(db.signal(7, 1, "view", 1.0).err());
    assert_eq!(db.history(7).unwrap().count(), 1);
    // Leaving needs no aggregates.
    db.leave_community_layer(7).unwrap();
}
