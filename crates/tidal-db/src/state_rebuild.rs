//! From the store to memory, at open: scopes, memberships, attributes, sources and leave records,
//! each from its own rows.

use std::collections::{BTreeMap, HashMap};

use tidal_entities::community::{CommunityMembership, CommunityMembershipIndex, deserialize_membership};
use tidal_entities::{
    Checkpoint, CodecError, Fingerprint, InternedId, SourcePosition, checkpoint_key, decode_attribute,
    decode_checkpoint, decode_joined, decode_scope, decode_scope_set, decode_source_position,
    parse_attribute_key, parse_interned_key, parse_joined_key, parse_source_key, schema_key,
};
use tidal_keys::{Tag, parse_key};
use tidal_storage::Storage;

use crate::record_check::left_without_time;
use crate::scopes::Interner;
use crate::shards::Filler;
use crate::sync::map::DashMap;
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

/// Reads who is in which community. Returns the users who are in any.
pub(crate) fn rebuild_community_memberships(
    storage: &Storage,
    index: &CommunityMembershipIndex,
    found: &mut Fingerprint,
) -> Result<Vec<u64>> {
    let mut members = Vec::new();
    for row in storage.users_engine().scan_tag(Tag::Relationship)? {
        let (key, value) = row?;
        let undecodable = |cause| Error::undecodable("a membership does not decode", cause);
        let (user, community) = parse_joined_key(&key).map_err(undecodable)?;
        decode_joined(&key, &value).map_err(undecodable)?;
        found.add_membership(user, community);
        index.join(user, community);
        if members.last() != Some(&user) {
            members.push(user);
        }
    }
    Ok(members)
}

/// Reads the attributes of all users.
pub(crate) fn rebuild_attributes(
    storage: &Storage,
    found: &mut Fingerprint,
) -> Result<HashMap<u64, BTreeMap<String, String>>> {
    let mut by_user: HashMap<u64, BTreeMap<String, String>> = HashMap::new();
    for row in storage.users_engine().scan_tag(Tag::Metadata)? {
        let (key, value) = row?;
        let undecodable = |cause| Error::undecodable("an attribute does not decode", cause);
        let (user, name) = parse_attribute_key(&key).map_err(undecodable)?;
        let (_, value) = decode_attribute(&key, &value).map_err(undecodable)?;
        found.add_attribute(user, name, value);
        by_user.entry(user).or_default().insert(name.to_owned(), value.to_owned());
    }
    Ok(by_user)
}

/// Reads how far every source was applied.
pub(crate) fn rebuild_sources(
    storage: &Storage,
    found: &mut Fingerprint,
) -> Result<HashMap<String, SourcePosition>> {
    let mut sources = HashMap::new();
    for row in storage.system_engine().scan_tag(Tag::Metadata)? {
        let (key, value) = row?;
        if !is_source_row(&key) {
            continue;
        }
        let undecodable = |cause| Error::undecodable("the position of a source does not decode", cause);
        let name = parse_source_key(&key).map_err(undecodable)?;
        let position = decode_source_position(&key, &value).map_err(undecodable)?;
        found.add_source(name, &position);
        sources.insert(name.to_owned(), position);
    }
    Ok(sources)
}

/// Whether a row of the system's metadata is that of a source: neither schema nor checkpoint.
pub(crate) fn is_source_row(key: &[u8]) -> bool {
    *key != *schema_key() && *key != *checkpoint_key()
}

/// Reads how far the stored aggregates have followed the log.
pub(crate) fn read_checkpoint(storage: &Storage) -> Result<Checkpoint> {
    // Rows first: a checkpoint is stored with the first of them, and one may be made meanwhile.
    let has_rows = storage.items_engine().scan_tag(Tag::SignalState)?.next_row()?.is_some();
    let key = checkpoint_key();
    let Some(value) = storage.system_engine().get(&key)? else {
        return if has_rows {
            Err(Error::damaged_view("there are stored aggregates, but no checkpoint", None))
        } else {
            Ok(Checkpoint::default())
        };
    };
    decode_checkpoint(&key, &value)
        .map_err(|cause| Error::damaged_view("the checkpoint does not decode", Some(cause)))
}

/// Reads every leave record into the status map, and shows it on the way. A record that does not decode counts as
/// Left; the users of such records are returned with what is wrong.
pub(crate) fn rebuild_community_leave_status(
    storage: &Storage,
    map: &DashMap<u64, CommunityMembership>,
    mut show: impl FnMut(CommunityMembership),
) -> Result<BTreeMap<u64, String>> {
    let mut undecodable = BTreeMap::new();
    let mut filler = Filler::new(map);
    let mut rows = storage.users_engine().scan_tag(Tag::CommunityLeave)?;
    while let Some((key, value)) = rows.next_row()? {
        let (user, _, _) = parse_key(key)
            .map_err(|source| CodecError::Key { what: "leave record", source })
            .map_err(|cause| Error::undecodable("the key of a leave record does not decode", cause))?;
        let user_id = user.get();
        let membership = deserialize_membership(user_id, value).unwrap_or_else(|| {
            let bytes: Vec<String> = value.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            let cause = format!("the record of {} bytes does not decode: {}", value.len(), bytes.join(" "));
            undecodable.insert(user_id, cause);
            left_without_time(user_id)
        });
        filler.insert(user_id, membership);
        show(membership);
    }
    filler.end();
    Ok(undecodable)
}
