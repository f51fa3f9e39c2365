//! From the store to memory, at open.
//!
//! The log is read first: it says what everything else must be. Then memberships and leave records
//! are read from their own rows and compared with it. A leave record that disagrees shuts the gate
//! for its user; any other disagreement is an error, since nobody could say what is true.

use std::collections::{BTreeMap, HashMap};

use dashmap::DashMap;
use tidal_entities::community::{CommunityMembership, CommunityMembershipIndex, deserialize_membership};
use tidal_entities::{
    CodecError, InternedId, decode_attribute, decode_joined, decode_scope, decode_scope_set,
    decode_source_position, parse_attribute_key, parse_interned_key, parse_joined_key, parse_source_key,
    schema_key,
};
use tidal_keys::{Tag, parse_key};
use tidal_storage::Storage;

use crate::log_replay::Replayed;
use crate::record_check::left_without_time;
use crate::scopes::Interner;
use crate::{Error, Result};

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
            other => return Err(Error::damaged(format!("an interned row is of an unknown kind: {other:?}"))),
        }
    }
    for (id, members) in sets {
        if !interner.restore_set(id, members) {
            return Err(Error::damaged(format!("set of scopes {} does not follow the one before it", id.0)));
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
