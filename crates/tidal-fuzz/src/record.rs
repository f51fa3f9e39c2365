use tidal_entities::community::{MembershipStatus, deserialize_membership, serialize_membership};

use crate::bytes::Bytes;

/// The nine-byte record: nothing but nine bytes with a status of 0 or 1 decodes, and what does is written the same.
pub fn record(data: &[u8]) {
    let mut bytes = Bytes(data);
    let user_id = bytes.u64();
    let stored = bytes.0;
    let decoded = deserialize_membership(user_id, stored);
    let is_record = stored.len() == 9 && stored.first().is_some_and(|status| *status <= 1);
    assert_eq!(decoded.is_some(), is_record, "{stored:02x?} decodes as {decoded:?}");
    let Some(membership) = decoded else { return };
    assert_eq!(membership.user_id, user_id, "the user is not of the record");
    let is_left = stored.first() == Some(&1);
    assert_eq!(
        membership.status == MembershipStatus::Left,
        is_left,
        "{stored:02x?} decodes as {membership:?}"
    );
    assert!(!is_left || membership.left_at_ns.is_some(), "{stored:02x?} lost its time");
    assert_eq!(serialize_membership(&membership), stored, "{membership:?} is written in another way");
}
