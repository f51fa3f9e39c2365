//! Whether leave record, history of transitions and log agree, user by user.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use dashmap::DashMap;
use tidal_entities::community::{CommunityMembership, MembershipStatus};
use tidal_entities::{AwayPeriods, Transition, TransitionKind, decode_transition, parse_transition_key};
use tidal_keys::Tag;
use tidal_storage::Storage;

use crate::community::left_at_of;
use crate::log_replay::Replayed;
use crate::report::DamagedUser;
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
struct StoredHistory {
    transitions: Vec<Transition>,
    keys: Vec<Vec<u8>>,
    undecodable: Option<String>,
}

/// Reads the history of transitions, and finds the users whose record, history and log disagree.
/// Returns them, and the closed away periods of all users.
pub(crate) fn check_leave_records(
    storage: &Storage,
    map: &DashMap<u64, CommunityMembership>,
    mut undecodable: BTreeMap<u64, String>,
    replayed: &mut Replayed,
) -> Result<CheckedRecords> {
    let mut histories = stored_histories(storage)?;
    let mut logged = std::mem::take(&mut replayed.transitions);
    let mut users: BTreeSet<u64> = map.iter().map(|record| *record.key()).collect();
    users.extend(histories.keys());
    users.extend(logged.keys());

    let mut checked = CheckedRecords::default();
    for user_id in users {
        let history = histories.remove(&user_id).unwrap_or_default();
        let logged = logged.remove(&user_id).unwrap_or_default();
        let record = map.get(&user_id).map(|record| *record);
        let cause = undecodable.remove(&user_id).or_else(|| disagreement(record, &history, &logged));
        // Of damaged users too: their past counts again once they are settled and back.
        let periods = AwayPeriods::from_history(&logged);
        if !periods.is_empty() {
            checked.away.push((user_id, periods));
        }
        let Some(cause) = cause else { continue };
        let left_at_ns = left_at_of(&logged).or(record.and_then(|record| record.left_at_ns));
        map.insert(user_id, CommunityMembership { left_at_ns, ..left_without_time(user_id) });
        checked.damaged.push(DamagedUser { user_id, cause, logged, stored_keys: history.keys });
    }
    Ok(checked)
}

/// The record of a user who is out, nobody knows since when.
pub(crate) fn left_without_time(user_id: u64) -> CommunityMembership {
    CommunityMembership { user_id, status: MembershipStatus::Left, left_at_ns: None }
}

fn stored_histories(storage: &Storage) -> Result<HashMap<u64, StoredHistory>> {
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
        history.keys.push(key.to_vec());
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
    let agrees = match (record, logged) {
        (None, []) => true,
        (None, _) => return Some("the record is missing, but the history holds transitions".to_owned()),
        (Some(record), []) => record.status == MembershipStatus::Active && record.left_at_ns.is_none(),
        (Some(record), [.., last]) => {
            let (status, left_at_ns) = if last.kind == TransitionKind::Rejoin {
                (MembershipStatus::Active, leave_before_last(logged))
            } else {
                (MembershipStatus::Left, Some(last.at_ns))
            };
            record.status == status && record.left_at_ns == left_at_ns
        }
    };
    let record = record?;
    (!agrees).then(|| {
        let status = match record.status {
            MembershipStatus::Active => "Active",
            MembershipStatus::Left => "Left",
        };
        let left =
            record.left_at_ns.map_or("never left".to_owned(), |at_ns| format!("last left at {at_ns} ns"));
        format!("the record says {status} and {left}, but the history does not")
    })
}

fn leave_before_last(history: &[Transition]) -> Option<u64> {
    history.split_last().and_then(|(_, before)| left_at_of(before))
}
