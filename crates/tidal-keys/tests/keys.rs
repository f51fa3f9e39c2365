//! Layout, order and refusals of keys.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::HashSet;

use proptest::prelude::*;
use tidal_keys::{
    EncodedKey, EntityId, KeyError, Tag, encode_key, entity_prefix, entity_tag_prefix, parse_key,
};

fn labelled(key: &EncodedKey) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    let (id, rest) = key.split_at(8);
    let (separator, rest) = rest.split_at(1);
    let (tag, suffix) = rest.split_at(1);
    format!(
        "id         {}\nseparator  {}\ntag        {}\nsuffix     {}",
        hex(id),
        hex(separator),
        hex(tag),
        if suffix.is_empty() { "-".to_owned() } else { hex(suffix) }
    )
}

#[test]
fn key_formats_are_pinned() {
    insta::assert_snapshot!(
        "v1_community_leave",
        labelled(&encode_key(EntityId::new(7), Tag::CommunityLeave, b""))
    );
    insta::assert_snapshot!(
        "v1_relationship",
        labelled(&encode_key(EntityId::new(0x0102_0304_0506_0708), Tag::Relationship, &4u64.to_be_bytes()))
    );
    insta::assert_snapshot!("v1_lowest_id", labelled(&encode_key(EntityId::new(0), Tag::Event, b"")));
    insta::assert_snapshot!(
        "v1_highest_id",
        labelled(&encode_key(EntityId::new(u64::MAX), Tag::Metadata, b"name"))
    );
}

#[test]
fn tag_numbers_are_pinned() {
    let table: Vec<_> = Tag::ALL.iter().map(|tag| format!("{:#04x} {tag:?}", tag.as_u8())).collect();
    insta::assert_snapshot!("v1_tags", table.join("\n"));
}

#[test]
fn tag_all_is_complete_and_ascending() {
    assert!(Tag::ALL.is_sorted_by(|a, b| a.as_u8() < b.as_u8()));
    let known: Vec<_> = (0..=u8::MAX).filter_map(|byte| Tag::try_from(byte).ok()).collect();
    assert_eq!(known, Tag::ALL);
    for byte in 0..=u8::MAX {
        match Tag::try_from(byte) {
            Ok(tag) => assert_eq!(tag.as_u8(), byte),
            Err(error) => assert_eq!(error, KeyError::UnknownTag { tag: byte }),
        }
    }
}

#[test]
fn each_malformed_key_has_its_own_error() {
    let mut messages = Vec::new();
    for len in 0..10 {
        assert_eq!(parse_key(&vec![0; len]), Err(KeyError::TooShort { len }));
    }
    messages.push(parse_key(&[]).unwrap_err());
    messages.push(parse_key(&[0, 0, 0, 0, 0, 0, 0, 7, 0x3a, 0x11]).unwrap_err());
    messages.push(parse_key(&[0, 0, 0, 0, 0, 0, 0, 7, 0x00, 0x99]).unwrap_err());
    messages.push(parse_key(&encode_key(EntityId::new(7), Tag::CommunityLeave, b"abc")).unwrap_err());
    let messages: Vec<_> = messages.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!("key_errors", messages.join("\n"));
}

#[test]
fn every_separator_but_zero_is_refused() {
    for found in 1..=u8::MAX {
        assert_eq!(parse_key(&[0, 0, 0, 0, 0, 0, 0, 7, found, 0x11]), Err(KeyError::Separator { found }));
    }
}

#[test]
fn debug_prints_the_fields_in_hexadecimal() {
    let bare = encode_key(EntityId::new(7), Tag::CommunityLeave, b"");
    assert_eq!(format!("{bare:?}"), "EncodedKey(0000000000000007 00 11)");
    let suffixed = encode_key(EntityId::new(u64::MAX), Tag::Index, &[0x00, 0xff]);
    assert_eq!(format!("{suffixed:?}"), "EncodedKey(ffffffffffffffff 00 06 00ff)");
}

#[test]
fn keys_compare_and_hash_as_their_bytes() {
    let first = encode_key(EntityId::new(7), Tag::Event, b"a");
    let second = encode_key(EntityId::new(7), Tag::Event, b"b");
    assert!(first < second);
    let set: HashSet<_> = [first.clone(), first.clone(), second].into_iter().collect();
    assert_eq!(set.len(), 2);
    assert_eq!(Vec::from(first.clone()), first.as_bytes());
}

fn any_tag() -> impl Strategy<Value = Tag> {
    prop::sample::select(Tag::ALL)
}

// Small ids and suffixes collide often; the extremes and the borders between bytes are where order breaks.
fn any_id() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..4,
        any::<u64>(),
        Just(255),
        Just(256),
        Just(1 << 63),
        Just(u64::MAX - 1),
        Just(u64::MAX)
    ]
}

fn any_parts() -> impl Strategy<Value = (u64, Tag, Vec<u8>)> {
    (any_id(), any_tag(), prop::collection::vec(any::<u8>(), 0..12))
}

proptest! {
    #[test]
    fn parsing_gives_back_what_was_encoded((id, tag, suffix) in any_parts()) {
        let suffix = if tag == Tag::CommunityLeave { Vec::new() } else { suffix };
        let key = encode_key(EntityId::new(id), tag, &suffix);
        prop_assert_eq!(parse_key(&key), Ok((EntityId::new(id), tag, suffix.as_slice())));
    }

    #[test]
    fn encoding_gives_back_what_was_parsed(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        if let Ok((id, tag, suffix)) = parse_key(&bytes) {
            let encoded = encode_key(id, tag, suffix);
            prop_assert_eq!(encoded.as_bytes(), bytes.as_slice());
        }
    }

    #[test]
    fn order_of_keys_is_order_of_id_tag_suffix(left in any_parts(), right in any_parts()) {
        let left_key = encode_key(EntityId::new(left.0), left.1, &left.2);
        let right_key = encode_key(EntityId::new(right.0), right.1, &right.2);
        prop_assert_eq!(left_key.cmp(&right_key), left.cmp(&right));
    }

    #[test]
    fn prefixes_hold_the_keys_of_their_entity_and_no_other((id, tag, suffix) in any_parts(), other in any_id()) {
        let key = encode_key(EntityId::new(id), tag, &suffix);
        prop_assert!(key.starts_with(&entity_prefix(EntityId::new(id))));
        prop_assert!(key.starts_with(&entity_tag_prefix(EntityId::new(id), tag)));
        prop_assert_eq!(key.starts_with(&entity_prefix(EntityId::new(other))), id == other);
    }
}
