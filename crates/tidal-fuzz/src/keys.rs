use tidal_keys::{EncodedKey, EntityId, Tag, encode_key, entity_prefix, entity_tag_prefix, parse_key};

use crate::bytes::Bytes;

/// Keys: what is taken apart is put together the same, and keys sort as their parts do.
pub fn keys(data: &[u8]) {
    if let Ok((id, tag, suffix)) = parse_key(data) {
        let encoded = encode_key(id, tag, suffix);
        assert_eq!(encoded.as_ref(), data, "{encoded:?} is not what was taken apart");
        assert!(data.starts_with(&entity_prefix(id)) && data.starts_with(&entity_tag_prefix(id, tag)));
        assert!(tag != Tag::CommunityLeave || suffix.is_empty(), "a leave record has a suffix");
    }
    let mut bytes = Bytes(data);
    let (one, other) = (parts(&mut bytes), parts(&mut bytes));
    let (Some(one), Some(other)) = (one, other) else { return };
    let (first, second) = (encoded(one), encoded(other));
    assert_eq!(first.cmp(&second), one.cmp(&other), "{one:?} and {other:?} do not sort as their keys do");
}

type Parts<'a> = (EntityId, Tag, &'a [u8]);

fn parts<'a>(bytes: &mut Bytes<'a>) -> Option<Parts<'a>> {
    let id = EntityId::new(bytes.u64());
    let tag = Tag::try_from(bytes.u8()).ok()?;
    Some((id, tag, bytes.slice()))
}

fn encoded((id, tag, suffix): Parts<'_>) -> EncodedKey {
    let key = encode_key(id, tag, suffix);
    match parse_key(key.as_ref()) {
        Ok(parsed) => assert_eq!(parsed, (id, tag, suffix), "{key:?} is taken apart in another way"),
        Err(error) => {
            assert!(tag == Tag::CommunityLeave && !suffix.is_empty(), "{key:?} is refused: {error}");
        }
    }
    key
}
