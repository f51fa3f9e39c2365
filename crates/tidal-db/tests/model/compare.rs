//! Everything that can be asked, compared with the oracle.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use tidal_db::{
    Aggregate, AggregateRow, CommunityMembership, Error, HistoryEvent, MembershipStatus, Scope, TidalDb,
    Window,
};

use super::full_sort::FullSort;
use super::oracle::{Contributed, Counts, Oracle, Source};
use super::world::{
    ITEMS, SIGNAL_TYPES, SOURCES, STRANGER, TIMES_NS, USERS, WINDOWED, schema_of, scopes, signal_types,
};

/// What differs, in words.
pub type Same<T = ()> = Result<T, String>;

/// The part of its scale by which a score may be off.
const SCORE_TOLERANCE: f64 = 1e-9;

pub fn same<T: PartialEq<U> + Debug, U: Debug>(what: impl FnOnce() -> String, is: &T, should_be: &U) -> Same {
    if is == should_be {
        return Ok(());
    }
    Err(format!("{} is\n    {is:?}\nand should be\n    {should_be:?}", what()))
}

pub fn ok<T, E: Debug>(what: &str, result: Result<T, E>) -> Same<T> {
    result.map_err(|error| format!("{what} failed: {error:?}"))
}

/// What an aggregate should be: a sum over its signals, done anew each time.
pub fn expected(contributed: &[Contributed], at_ns: u64, half_life_ns: u64) -> (u64, i128, f64, f64) {
    let count = contributed.len() as u64;
    let weight_nanos = contributed.iter().map(|one| i128::from(one.weight_nanos)).sum();
    let (mut score, mut scale) = (0.0, 0.0);
    for one in contributed {
        let age_ns = at_ns.checked_sub(one.event_time_ns).expect("scores are not asked for before an event");
        // Whole half-lives apart from the rest: 30 years of seconds do not fit the digits of an f64.
        #[allow(clippy::cast_precision_loss, reason = "both are small or exact")]
        let decay = (-((age_ns / half_life_ns) as f64)).exp2()
            * (-((age_ns % half_life_ns) as f64 / half_life_ns as f64)).exp2();
        #[allow(clippy::cast_precision_loss, reason = "the weights used are exact")]
        let term = one.weight_nanos as f64 / 1e9 * decay;
        score += term;
        scale += f64::abs(term);
    }
    (count, weight_nanos, score, scale)
}

/// The nearest `f64` of a number of 1e-9, by way of its digits.
fn nearest(nanos: i128) -> f64 {
    let (sign, size) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    format!("{sign}{}.{:09}", size / 1_000_000_000, size % 1_000_000_000).parse().expect("a decimal")
}

pub fn same_aggregate(
    what: impl Fn() -> String,
    aggregate: &Aggregate,
    contributed: &[Contributed],
    at_ns: u64,
    half_life_ns: u64,
) -> Same {
    let (count, weight_nanos, score, scale) = expected(contributed, at_ns, half_life_ns);
    same(|| format!("count of {}", what()), &aggregate.count, &count)?;
    same(|| format!("weight_nanos of {}", what()), &aggregate.weight_nanos, &weight_nanos)?;
    same(|| format!("weight_sum of {}", what()), &aggregate.weight_sum, &nearest(weight_nanos))?;
    let off = (aggregate.score - score).abs();
    if off <= SCORE_TOLERANCE * scale + f64::MIN_POSITIVE {
        return Ok(());
    }
    Err(format!("score of {} at {at_ns} is {:e}, off by {off:e} from {score:e}", what(), aggregate.score))
}

/// Compares `db` with `oracle`; `now_ns` is what the clock reads.
pub fn same_all(db: &TidalDb, oracle: &Oracle, now_ns: u64) -> Same {
    same_users(db, oracle)?;
    same(|| "newest_time_ns".to_owned(), &db.newest_time_ns(), &oracle.newest_ns)?;
    same(|| "score_time_ns".to_owned(), &db.score_time_ns(), &now_ns.max(oracle.newest_ns))?;
    same(|| "the schema".to_owned(), db.schema(), &schema_of(oracle.is_grown))?;
    let counts = db.withheld_counts();
    same_counts("withheld_counts", counts, oracle.withheld)?;
    for source in SOURCES {
        let position = ok("position", db.position(source))?;
        same(
            || format!("position of {source:?}"),
            &position,
            &oracle.sources.get(source).map(Source::reached),
        )?;
    }
    same_aggregates(db, oracle, now_ns)
}

fn same_users(db: &TidalDb, oracle: &Oracle) -> Same {
    let users: BTreeSet<u64> =
        USERS.into_iter().chain([STRANGER]).chain(oracle.users.keys().copied()).collect();
    for user in users {
        let should_be = oracle.user(user);
        let status = db.community_layer_status(user);
        same(|| format!("status of {user}"), &status, &membership(oracle, user))?;
        let communities: Vec<u64> = should_be.communities.iter().copied().collect();
        same(|| format!("communities of {user}"), &db.communities_of(user), &communities)?;
        for name in ["region", "plan"] {
            let value = db.user_attribute(user, name);
            same(|| format!("{name} of {user}"), &value, &should_be.attributes.get(name).cloned())?;
        }
        let transitions = ok("membership_history", db.membership_history(user))?;
        let shown: Vec<_> = transitions.iter().map(|moved| (moved.kind, moved.at_ns)).collect();
        let moved: Vec<_> = should_be.transitions.iter().map(|moved| (moved.kind, moved.at_ns)).collect();
        same(|| format!("membership_history of {user}"), &shown, &moved)?;
        let history = history(db, user)?;
        let shown: Vec<_> = history
            .iter()
            .map(|event| {
                let HistoryEvent { item, signal_type, weight, event_time_ns, withheld, .. } = event;
                (*item, signal_type.as_str(), weight.nanos(), *event_time_ns, *withheld)
            })
            .collect();
        let acted: Vec<_> = should_be
            .history
            .iter()
            .map(|acted| {
                let name = SIGNAL_TYPES[acted.signal_type].0;
                (acted.item, name, acted.weight_nanos, acted.event_time_ns, acted.withheld)
            })
            .collect();
        same(|| format!("history of {user}"), &shown, &acted)?;
    }
    let left: Vec<_> = oracle.users.iter().filter(|(_, user)| user.left).map(|(id, _)| *id).collect();
    let left_users: Vec<_> = left.iter().map(|user| membership(oracle, *user)).collect();
    same(|| "left_users".to_owned(), &db.left_users(), &left_users)?;
    same(|| "left_count".to_owned(), &db.left_count(), &(left.len() as u64))
}

pub fn membership(oracle: &Oracle, user_id: u64) -> CommunityMembership {
    let user = oracle.user(user_id);
    let status = if user.left { MembershipStatus::Left } else { MembershipStatus::Active };
    CommunityMembership { user_id, status, left_at_ns: user.left_at_ns }
}

pub fn history(db: &TidalDb, user: u64) -> Same<Vec<HistoryEvent>> {
    ok("history", ok("history", db.history(user))?.collect())
}

fn same_aggregates(db: &TidalDb, oracle: &Oracle, now_ns: u64) -> Same {
    let at_ns = now_ns.max(oracle.newest_ns);
    let rows = ok("aggregates", ok("aggregates", db.aggregates(None))?.collect::<Result<Vec<_>, _>>())?;
    let shown: Vec<_> = rows.iter().map(|row| (&row.scope, row.item, row.signal_type.as_str())).collect();
    let expected_keys: Vec<_> =
        oracle.taken.keys().map(|(scope, item, kind)| (scope, *item, SIGNAL_TYPES[*kind].0)).collect();
    same(|| "the list of aggregates".to_owned(), &shown, &expected_keys)?;
    let later_ns = at_ns.saturating_add(1_234_567_891);
    let later: Vec<_> = ok("aggregates_at", db.aggregates_at(None, later_ns))?.collect();
    for (((key, contributed), row), later) in oracle.taken.iter().zip(&rows).zip(later) {
        let half_life_ns = SIGNAL_TYPES[key.2].1;
        same_aggregate(|| format!("{key:?}"), &row.aggregate, contributed, at_ns, half_life_ns)?;
        let later = ok("aggregates_at", later)?.aggregate;
        same_aggregate(|| format!("{key:?}, later"), &later, contributed, later_ns, half_life_ns)?;
    }
    let by_key: BTreeMap<_, _> =
        rows.iter().map(|row| ((&row.scope, row.item, row.signal_type.as_str()), row.aggregate)).collect();
    for scope in scopes(oracle.is_grown) {
        same_scope(db, &scope, oracle.is_grown, &rows, &by_key)?;
    }
    same_windows(db, oracle, at_ns)?;
    same_top_items(db, oracle.is_grown, at_ns)?;
    same_top_items(db, oracle.is_grown, later_ns)?;
    let nobodys = Scope::Cohort("nobody declared it".to_owned());
    let undeclared =
        [db.aggregate(&nobodys, ITEMS[0], "view").is_err(), db.top_items(&nobodys, "view", 1).is_err()];
    same(|| "whether an undeclared cohort is an error".to_owned(), &undeclared, &[true; 2])
}

/// The windows of the types that have any are what a recount gives.
fn same_windows(db: &TidalDb, oracle: &Oracle, at_ns: u64) -> Same {
    for ((scope, item, kind), contributed) in &oracle.taken {
        let name = SIGNAL_TYPES[*kind].0;
        for window in [Window::Hour, Window::Day, Window::Week] {
            let shown = db.aggregate_window_at(scope, *item, name, window, at_ns);
            if name != WINDOWED {
                let refused = matches!(shown, Err(Error::NotWindowed { .. }));
                same(|| format!("whether {name} is refused for want of windows"), &refused, &true)?;
                continue;
            }
            let shown = ok("aggregate_window_at", shown)?;
            let now = ok("aggregate_window", db.aggregate_window(scope, *item, name, window))?;
            same(|| format!("{window:?} of {scope}, {item}, {name}"), &now, &shown)?;
            let shown = shown.map(|sum| (sum.count, sum.weight_nanos));
            let (bucket_ns, length_ns) = (u128::from(window.bucket_ns()), u128::from(window.length_ns()));
            let end_ns = (u128::from(at_ns) / bucket_ns + 1) * bucket_ns;
            // All signals are older than the end of the window: the time is not before any of them.
            let counted =
                contributed.iter().filter(|one| u128::from(one.event_time_ns) + length_ns >= end_ns);
            let recount =
                counted.fold((0, 0), |(count, sum), one| (count + 1, sum + i128::from(one.weight_nanos)));
            same(|| format!("{window:?} of {scope}, {item}, {name} at {at_ns}"), &shown, &Some(recount))?;
        }
    }
    Ok(())
}

/// The best items are those of a full sort.
fn same_top_items(db: &TidalDb, is_grown: bool, at_ns: u64) -> Same {
    let moments_ns = [&TIMES_NS[..], &[u64::MAX]].concat();
    let sorted = ok("aggregates_at", FullSort::new(db, at_ns, &moments_ns))?;
    for scope in scopes(is_grown) {
        for (name, _) in signal_types(is_grown) {
            for k in [1, usize::MAX] {
                sorted.same(db, &scope, name, k)?;
            }
            if at_ns == db.score_time_ns() {
                let now = ok("top_items", db.top_items(&scope, name, 1))?;
                let best = sorted.best(&scope, name, 1);
                same(|| format!("the best {name} of {scope} now"), &now.as_slice(), &best)?;
            }
        }
    }
    Ok(())
}

/// The other ways to read aggregates say the same.
fn same_scope(
    db: &TidalDb,
    scope: &Scope,
    is_grown: bool,
    rows: &[AggregateRow],
    by_key: &BTreeMap<(&Scope, u64, &str), Aggregate>,
) -> Same {
    for item in ITEMS {
        for (name, _) in signal_types(is_grown).iter().copied() {
            let aggregate = ok("aggregate", db.aggregate(scope, item, name))?;
            let in_list = by_key.get(&(scope, item, name)).copied();
            same(|| format!("aggregate of {scope}, {item}, {name}"), &aggregate, &in_list)?;
        }
    }
    let of_scope =
        ok("aggregates", ok("aggregates", db.aggregates(Some(scope)))?.collect::<Result<Vec<_>, _>>())?;
    let in_list: Vec<_> = rows.iter().filter(|row| row.scope == *scope).cloned().collect();
    same(|| format!("aggregates of {scope}"), &of_scope, &in_list)
}

/// Every signal and transition has one sequence, in the order of the calls, and keeps it.
/// `known` holds what was seen before, by place.
pub fn same_sequences(db: &TidalDb, oracle: &Oracle, known: &mut BTreeMap<usize, u64>) -> Same {
    let mut sequences = BTreeMap::new();
    for (user_id, user) in &oracle.users {
        let transitions = ok("membership_history", db.membership_history(*user_id))?;
        sequences
            .extend(user.transitions.iter().zip(transitions).map(|(is, shown)| (is.place, shown.sequence)));
        let events = history(db, *user_id)?;
        sequences.extend(user.history.iter().zip(events).map(|(is, shown)| (is.place, shown.sequence)));
    }
    let in_order: Vec<u64> = sequences.values().copied().collect();
    if !in_order.windows(2).all(|pair| pair[0] < pair[1]) {
        return Err(format!("the sequences are not in the order of the calls: {in_order:?}"));
    }
    for (place, sequence) in &sequences {
        let before = *known.entry(*place).or_insert(*sequence);
        same(|| format!("the sequence of signal or transition {place}"), sequence, &before)?;
    }
    Ok(())
}

pub fn same_counts(what: &str, is: tidal_db::WithheldCounts, should_be: Counts) -> Same {
    same(
        || what.to_owned(),
        &(is.left, is.away_period, is.unknown),
        &(should_be.left, should_be.away_period, should_be.unknown),
    )
}
