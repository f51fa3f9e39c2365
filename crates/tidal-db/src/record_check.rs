//! Whether leave record, history of transitions and log agree, user by user.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tidal_entities::community::{CommunityMembership, MembershipStatus};
use tidal_entities::{AwayPeriods, Transition, TransitionKind, decode_transition, parse_transition_key};
use tidal_keys::Tag;
use tidal_storage::Storage;

use crate::community::left_at_of;
use crate::report::DamagedUser;
use crate::sync::map::DashMap;
use crate::{Error, Result};

/// What the comparison found.
#[derive(Debug, Default)]
pub(crate) struct CheckedRecords {
    /// Users whose record cannot be believed.
    pub(crate) damaged: Vec<DamagedUser>,
    /// The closed away periods of all users who have any.
    pub(crate) away: Vec<(u64, AwayPeriods)>,
}

/// The transitions of one user as their own rows have them.
#[derive(Debug, Default)]
pub(crate) struct StoredHistory {
    transitions: Vec<Transition>,
    undecodable: Option<String>,
}

/// Finds the users whose record, history and log disagree. Returns them, and the closed away periods
/// of all users.
pub(crate) fn check_leave_records(
    map: &DashMap<u64, CommunityMembership>,
    undecodable: &BTreeMap<u64, String>,
    histories: &HashMap<u64, StoredHistory>,
    logged: &HashMap<u64, Vec<Transition>>,
) -> CheckedRecords {
    let mut users: BTreeSet<u64> = map.iter().map(|record| *record.key()).collect();
    users.extend(histories.keys());
    users.extend(logged.keys());

    let nothing = StoredHistory::default();
    let mut checked = CheckedRecords::default();
    for user_id in users {
        let history = histories.get(&user_id).unwrap_or(&nothing);
        let logged = logged.get(&user_id).map_or(&[][..], Vec::as_slice);
        let record = map.get(&user_id).map(|record| *record);
        let cause = undecodable.get(&user_id).cloned().or_else(|| disagreement(record, history, logged));
        // Of damaged users too: their past counts again once they are settled and back.
        let periods = AwayPeriods::from_history(logged);
        if !periods.is_empty() {
            checked.away.push((user_id, periods));
        }
        if let Some(cause) = cause {
            checked.damaged.push(DamagedUser { user_id, cause, logged: logged.to_vec() });
        }
    }
    checked
}

/// Shuts out a user whose record cannot be believed. What the log says of the time counts most.
pub(crate) fn shut_out(map: &DashMap<u64, CommunityMembership>, user: &DamagedUser) {
    let recorded = map.get(&user.user_id).and_then(|record| record.left_at_ns);
    let left_at_ns = left_at_of(&user.logged).or(recorded);
    map.insert(user.user_id, CommunityMembership { left_at_ns, ..left_without_time(user.user_id) });
}

/// The record of a user who is out, nobody knows since when.
pub(crate) fn left_without_time(user_id: u64) -> CommunityMembership {
    CommunityMembership { user_id, status: MembershipStatus::Left, left_at_ns: None }
}

/// Reads the history of transitions of every user who has one.
pub(crate) fn stored_histories(storage: &Storage) -> Result<HashMap<u64, StoredHistory>> {
    let mut histories: HashMap<u64, StoredHistory> = HashMap::new();
    for row in storage.users_engine().scan_tag(Tag::CommunityTransition)? {
        let (key, value) = row?;
        // The user is in the key; if even that is unreadable, nobody knows whose gate to shut.
        let (user_id, _) = parse_transition_key(&key)
            .map_err(|cause| Error::undecodable("the key of a transition does not decode", cause))?;
        let history = histories.entry(user_id).or_default();
        match decode_transition(&key, &value) {
            Ok((_, transition)) => history.transitions.push(transition),
            Err(cause) => history.undecodable = Some(format!("a transition does not decode: {cause}")),
        }
    }
    Ok(histories)
}

/// In what record, stored history and log of one user disagree.
fn disagreement(
    record: Option<CommunityMembership>,
    history: &StoredHistory,
    logged: &[Transition],
) -> Option<String> {
    if let Some(undecodable) = &history.undecodable {
        return Some(undecodable.clone());
    }
    if history.transitions != logged {
        return Some(format!(
            "the history holds {} transitions and the log {}, or they differ",
            history.transitions.len(),
            logged.len()
        ));
    }
    record_disagreement(record, logged)
}

/// In what a record and a history disagree.
fn record_disagreement(record: Option<CommunityMembership>, history: &[Transition]) -> Option<String> {
    let Some(record) = record else {
        return (!history.is_empty())
            .then(|| "the record is missing, but the history holds transitions".to_owned());
    };
    (record != record_after(record.user_id, history)).then(|| {
        let left =
            record.left_at_ns.map_or("never left".to_owned(), |at_ns| format!("last left at {at_ns} ns"));
        format!("the record says {} and {left}, but the history does not", record.status)
    })
}

/// What the record of a user with this history is.
pub(crate) fn record_after(user_id: u64, history: &[Transition]) -> CommunityMembership {
    match history {
        [] => CommunityMembership::default_active(user_id),
        [.., last] if last.kind == TransitionKind::Rejoin => CommunityMembership {
            left_at_ns: leave_before_last(history),
            ..CommunityMembership::default_active(user_id)
        },
        [.., last] => CommunityMembership { left_at_ns: Some(last.at_ns), ..left_without_time(user_id) },
    }
}

fn leave_before_last(history: &[Transition]) -> Option<u64> {
    history.split_last().and_then(|(_, before)| left_at_of(before))
}
