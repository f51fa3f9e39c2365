//! From the store to memory, at open.
//!
//! The log is read first: it says what everything else must be. Then memberships and leave records
//! are read from their own rows and compared with it. A leave record that disagrees shuts the gate
//! for its user; any other disagreement is an error, since nobody could say what is true.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use dashmap::DashMap;
use tidal_entities::community::{
    CommunityMembership, CommunityMembershipIndex, MembershipStatus, deserialize_membership,
};
use tidal_entities::{
    AwayPeriods, CodecError, InternedId, LogEntry, LogRow, Schema, SignalEntry, SourcePosition, Transition,
    TransitionKind, WithheldCounts, decode_attribute, decode_joined, decode_scope, decode_scope_set,
    decode_source_position, decode_transition, parse_attribute_key, parse_interned_key, parse_joined_key,
    parse_source_key, parse_transition_key, schema_key,
};
use tidal_keys::{Tag, parse_key};
use tidal_storage::Storage;

use crate::aggregates::{AggregateKey, Aggregates};
use crate::community::left_at_of;
use crate::report::DamagedUser;
use crate::scopes::Interner;
use crate::{Error, Result};

/// What the log says.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) last_sequence: u64,
    pub(crate) newest_time_ns: u64,
    pub(crate) entries: u64,
    pub(crate) withheld: WithheldCounts,
    pub(crate) sources: HashMap<String, SourcePosition>,
    /// Sequence of the join, by user and community.
    memberships: HashMap<(u64, u64), u64>,
    /// Sequence and value, by user and name.
    attributes: HashMap<(u64, String), (u64, String)>,
    transitions: HashMap<u64, Vec<Transition>>,
}

/// The transitions of one user as their own rows have them.
#[derive(Debug, Default)]
struct StoredHistory {
    transitions: Vec<Transition>,
    keys: Vec<Vec<u8>>,
    undecodable: Option<String>,
}

/// Takes over the numbers of scopes and of sets of scopes.
pub(crate) fn rebuild_scopes(storage: &Storage, interner: &Interner) -> Result<()> {
    let mut sets = Vec::new();
    for row in storage.system_engine().scan_tag(Tag::Index)? {
        let (key, value) = row?;
        let undecodable = |cause| Error::undecodable("a row of interned scopes does not decode", cause);
        match parse_interned_key(&key).map_err(undecodable)? {
            InternedId::Scope(id) => {
                let scope = decode_scope(&key, &value).map_err(undecodable)?;
                if !interner.restore_scope(id, scope) {
                    return Err(Error::damaged(format!("scope {} does not follow the one before it", id.0)));
                }
            }
            InternedId::ScopeSet(id) => sets.push((id, decode_scope_set(&key, &value).map_err(undecodable)?)),
        }
    }
    for (id, members) in sets {
        if !interner.restore_set(id, members) {
            return Err(Error::damaged(format!("set of scopes {} does not follow the one before it", id.0)));
        }
    }
    Ok(())
}

/// Reads the log from its beginning, adds every signal to the scopes that took it, and notes what
/// the other rows have to say.
pub(crate) fn replay_log(
    storage: &Storage,
    schema: &Schema,
    interner: &Interner,
    aggregates: &Aggregates,
) -> Result<Replayed> {
    let mut replayed = Replayed::default();
    for row in storage.system_engine().scan_tag(Tag::Event)? {
        let (key, value) = row?;
        let undecodable = |cause| Error::undecodable("a row of the log does not decode", cause);
        let row = LogRow::decode(&key, &value).map_err(undecodable)?;
        if row.first_sequence() != replayed.last_sequence + 1 {
            return Err(Error::damaged(format!(
                "the log goes on at sequence {} after {}",
                row.first_sequence(),
                replayed.last_sequence
            )));
        }
        for entry in row.entries() {
            let (sequence, entry) = entry.map_err(undecodable)?;
            replayed.last_sequence = sequence;
            replayed.entries += 1;
            match entry {
                LogEntry::Signal(signal) => {
                    add_signal(schema, interner, aggregates, sequence, &signal)?;
                    if let Some(reason) = signal.withheld {
                        replayed.withheld.add(reason);
                    }
                }
                other => note(&mut replayed, sequence, other)?,
            }
        }
        replayed.newest_time_ns = replayed.newest_time_ns.max(row.newest_time_ns());
    }
    Ok(replayed)
}

fn add_signal(
    schema: &Schema,
    interner: &Interner,
    aggregates: &Aggregates,
    sequence: u64,
    signal: &SignalEntry,
) -> Result<()> {
    let scope_set = interner.set(signal.scope_set).ok_or_else(|| {
        Error::damaged(format!(
            "the signal at sequence {sequence} names set of scopes {}, which is not stored",
            signal.scope_set.0
        ))
    })?;
    let declared = schema.signal_type_by_id(signal.signal_type).ok_or_else(|| {
        Error::damaged(format!("the signal at sequence {sequence} is of a type that is not in the schema"))
    })?;
    let global = std::iter::once(&tidal_entities::ScopeId::GLOBAL);
    for scope in global.chain(&scope_set.cohorts).chain(&scope_set.communities) {
        let key = AggregateKey { scope: *scope, signal_type: signal.signal_type, item: signal.item };
        aggregates.add(key, signal.weight, signal.event_time_ns, declared.half_life);
    }
    Ok(())
}

fn note(replayed: &mut Replayed, sequence: u64, entry: LogEntry) -> Result<()> {
    let transition = |kind, at_ns| Transition { sequence, kind, at_ns };
    match entry {
        LogEntry::Leave { user, at_ns } => {
            replayed.transitions.entry(user).or_default().push(transition(TransitionKind::Leave, at_ns));
        }
        LogEntry::Rejoin { user, at_ns } => {
            replayed.transitions.entry(user).or_default().push(transition(TransitionKind::Rejoin, at_ns));
        }
        LogEntry::Join { user, community, .. } => {
            replayed.memberships.insert((user, community), sequence);
        }
        LogEntry::Quit { user, community, .. } => {
            replayed.memberships.remove(&(user, community));
        }
        LogEntry::SetAttribute { user, name, value, .. } => {
            replayed.attributes.insert((user, name), (sequence, value));
        }
        LogEntry::SourcePosition { source, first_position, position, digest } => {
            replayed.sources.insert(source, SourcePosition { first_position, position, digest });
        }
        other => {
            return Err(Error::damaged(format!(
                "the entry at sequence {sequence} is of an unknown kind: {other:?}"
            )));
        }
    }
    Ok(())
}

/// Reads who is in which community, and compares it with the log. Returns the users who are in any.
pub(crate) fn rebuild_community_memberships(
    storage: &Storage,
    index: &CommunityMembershipIndex,
    replayed: &mut Replayed,
) -> Result<Vec<u64>> {
    let mut members = Vec::new();
    let mut expected = std::mem::take(&mut replayed.memberships);
    for row in storage.users_engine().scan_tag(Tag::Relationship)? {
        let (key, value) = row?;
        let undecodable = |cause| Error::undecodable("a membership does not decode", cause);
        let (user, community) = parse_joined_key(&key).map_err(undecodable)?;
        let joined_sequence = decode_joined(&key, &value).map_err(undecodable)?;
        if expected.remove(&(user, community)) != Some(joined_sequence) {
            return Err(Error::damaged(format!(
                "user {user} is stored as a member of community {community}, but the log does not say so"
            )));
        }
        index.join(user, community);
        if members.last() != Some(&user) {
            members.push(user);
        }
    }
    match expected.into_keys().next() {
        None => Ok(members),
        Some((user, community)) => Err(Error::damaged(format!(
            "the membership of user {user} in community {community} is in the log, but not stored"
        ))),
    }
}

/// Reads the attributes of all users, and compares them with the log.
pub(crate) fn rebuild_attributes(
    storage: &Storage,
    replayed: &mut Replayed,
) -> Result<HashMap<u64, BTreeMap<String, String>>> {
    let mut expected = std::mem::take(&mut replayed.attributes);
    let mut by_user: HashMap<u64, BTreeMap<String, String>> = HashMap::new();
    for row in storage.users_engine().scan_tag(Tag::Metadata)? {
        let (key, value) = row?;
        let undecodable = |cause| Error::undecodable("an attribute does not decode", cause);
        let (user, name) = parse_attribute_key(&key).map_err(undecodable)?;
        let (sequence, value) = decode_attribute(&key, &value).map_err(undecodable)?;
        let stored = (sequence, value.to_owned());
        if expected.remove(&(user, name.to_owned())).as_ref() != Some(&stored) {
            return Err(Error::damaged(format!(
                "attribute {name:?} of user {user} is not what the log says"
            )));
        }
        by_user.entry(user).or_default().insert(name.to_owned(), stored.1);
    }
    match expected.into_keys().next() {
        None => Ok(by_user),
        Some((user, name)) => {
            Err(Error::damaged(format!("attribute {name:?} of user {user} is in the log, but not stored")))
        }
    }
}

/// Compares the stored positions of all sources with the log.
pub(crate) fn check_sources(storage: &Storage, replayed: &Replayed) -> Result<()> {
    let mut stored_len = 0;
    for row in storage.system_engine().scan_tag(Tag::Metadata)? {
        let (key, value) = row?;
        if *key == *schema_key() {
            continue;
        }
        let undecodable = |cause| Error::undecodable("the position of a source does not decode", cause);
        let name = parse_source_key(&key).map_err(undecodable)?;
        let stored = decode_source_position(&key, &value).map_err(undecodable)?;
        if replayed.sources.get(name) != Some(&stored) {
            return Err(Error::damaged(format!("the position of source {name:?} is not what the log says")));
        }
        stored_len += 1;
    }
    if stored_len == replayed.sources.len() {
        return Ok(());
    }
    Err(Error::damaged("the position of a source is in the log, but not stored"))
}

/// Reads every leave record into the status map. A record that does not decode counts as Left; the
/// users of such records are returned with what is wrong.
pub(crate) fn rebuild_community_leave_status(
    storage: &Storage,
    map: &DashMap<u64, CommunityMembership>,
) -> Result<BTreeMap<u64, String>> {
    let mut undecodable = BTreeMap::new();
    for row in storage.users_engine().scan_tag(Tag::CommunityLeave)? {
        let (key, value) = row?;
        let (user, _, _) = parse_key(&key)
            .map_err(|source| CodecError::Key { what: "leave record", source })
            .map_err(|cause| Error::undecodable("the key of a leave record does not decode", cause))?;
        let user_id = user.get();
        let membership = deserialize_membership(user_id, &value).unwrap_or_else(|| {
            let bytes: Vec<String> = value.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            let cause = format!("the record of {} bytes does not decode: {}", value.len(), bytes.join(" "));
            undecodable.insert(user_id, cause);
            left_without_time(user_id)
        });
        map.insert(user_id, membership);
    }
    Ok(undecodable)
}

/// Reads the history of transitions, and finds the users whose record, history and log disagree.
/// Returns them, and the closed away periods of all others.
pub(crate) fn check_leave_records(
    storage: &Storage,
    map: &DashMap<u64, CommunityMembership>,
    mut undecodable: BTreeMap<u64, String>,
    replayed: &mut Replayed,
) -> Result<(Vec<DamagedUser>, Vec<(u64, AwayPeriods)>)> {
    let mut histories = stored_histories(storage)?;
    let mut logged = std::mem::take(&mut replayed.transitions);
    let mut users: BTreeSet<u64> = map.iter().map(|record| *record.key()).collect();
    users.extend(histories.keys());
    users.extend(logged.keys());

    let mut damaged = Vec::new();
    let mut away = Vec::new();
    for user_id in users {
        let history = histories.remove(&user_id).unwrap_or_default();
        let logged = logged.remove(&user_id).unwrap_or_default();
        let record = map.get(&user_id).map(|record| *record);
        let cause = undecodable.remove(&user_id).or_else(|| disagreement(record, &history, &logged));
        let Some(cause) = cause else {
            let periods = AwayPeriods::from_history(&logged);
            if !periods.is_empty() {
                away.push((user_id, periods));
            }
            continue;
        };
        let left_at_ns = left_at_of(&logged).or(record.and_then(|record| record.left_at_ns));
        map.insert(user_id, CommunityMembership { left_at_ns, ..left_without_time(user_id) });
        damaged.push(DamagedUser { user_id, cause, logged, stored_keys: history.keys });
    }
    Ok((damaged, away))
}

fn left_without_time(user_id: u64) -> CommunityMembership {
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
            let (status, left_at_ns) = match last.kind {
                TransitionKind::Leave => (MembershipStatus::Left, Some(last.at_ns)),
                TransitionKind::Rejoin => (MembershipStatus::Active, leave_before_last(logged)),
            };
            record.status == status && record.left_at_ns == left_at_ns
        }
    };
    let record = record?;
    (!agrees).then(|| {
        format!("the record says {:?} at {:?}, but the history does not", record.status, record.left_at_ns)
    })
}

fn leave_before_last(history: &[Transition]) -> Option<u64> {
    history.split_last().and_then(|(_, before)| left_at_of(before))
}
