//! Memberships, attributes and positions against the whole log: read only when they do not fit its
//! fingerprint, to say what is wrong.

use tidal_entities::{
    decode_attribute, decode_joined, decode_source_position, parse_attribute_key, parse_joined_key,
    parse_source_key,
};
use tidal_keys::Tag;
use tidal_storage::Storage;

use crate::log_facts::LogFacts;
use crate::state_rebuild::is_source_row;
use crate::{Error, Result};

/// Names every membership, attribute and position that is not what the log says.
pub(crate) fn differences(storage: &Storage, facts: &LogFacts) -> Result<Vec<String>> {
    let mut differences = Vec::new();
    compare_memberships(storage, facts, &mut differences)?;
    compare_attributes(storage, facts, &mut differences)?;
    compare_sources(storage, facts, &mut differences)?;
    Ok(differences)
}

fn compare_memberships(storage: &Storage, facts: &LogFacts, differences: &mut Vec<String>) -> Result<()> {
    let mut expected = facts.memberships.clone();
    for row in storage.users_engine().scan_tag(Tag::Relationship)? {
        let (key, value) = row?;
        let undecodable = |cause| Error::undecodable("a membership does not decode", cause);
        let (user, community) = parse_joined_key(&key).map_err(undecodable)?;
        let joined_sequence = decode_joined(&key, &value).map_err(undecodable)?;
        if expected.remove(&(user, community)) != Some(joined_sequence) {
            differences.push(format!(
                "user {user} is stored as a member of community {community}, but the log does not say so"
            ));
        }
    }
    differences.extend(expected.into_keys().map(|(user, community)| {
        format!("the membership of user {user} in community {community} is in the log, but not stored")
    }));
    Ok(())
}

fn compare_attributes(storage: &Storage, facts: &LogFacts, differences: &mut Vec<String>) -> Result<()> {
    let mut expected = facts.attributes.clone();
    for row in storage.users_engine().scan_tag(Tag::Metadata)? {
        let (key, value) = row?;
        let undecodable = |cause| Error::undecodable("an attribute does not decode", cause);
        let (user, name) = parse_attribute_key(&key).map_err(undecodable)?;
        let (sequence, value) = decode_attribute(&key, &value).map_err(undecodable)?;
        if expected.remove(&(user, name.to_owned())) != Some((sequence, value.to_owned())) {
            differences.push(format!("attribute {name:?} of user {user} is not what the log says"));
        }
    }
    differences.extend(
        expected
            .into_keys()
            .map(|(user, name)| format!("attribute {name:?} of user {user} is in the log, but not stored")),
    );
    Ok(())
}

fn compare_sources(storage: &Storage, facts: &LogFacts, differences: &mut Vec<String>) -> Result<()> {
    let mut expected = facts.sources.clone();
    for row in storage.system_engine().scan_tag(Tag::Metadata)? {
        let (key, value) = row?;
        if !is_source_row(&key) {
            continue;
        }
        let undecodable = |cause| Error::undecodable("the position of a source does not decode", cause);
        let name = parse_source_key(&key).map_err(undecodable)?;
        let stored = decode_source_position(&key, &value).map_err(undecodable)?;
        if expected.remove(name) != Some(stored) {
            differences.push(format!("the position of source {name:?} is not what the log says"));
        }
    }
    differences.extend(
        expected
            .into_keys()
            .map(|name| format!("the position of source {name:?} is in the log, but not stored")),
    );
    Ok(())
}
