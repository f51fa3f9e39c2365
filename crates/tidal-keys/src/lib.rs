//! The keys under which tidal stores its records.
//!
//! If you want to record signals and let users leave, `tidal-db` is usually what you want. This crate is for
//! those who read or write single records through `tidal-storage`, and it knows nothing of storage itself.
//!
//! # Layout
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 8 | entity id, big-endian |
//! | 8 | 1 | separator, always `0x00` |
//! | 9 | 1 | [`Tag`]: what kind of record this is |
//! | 10 | rest | suffix: what tells records of one entity and tag apart, often nothing |
//!
//! The id is big-endian, so that the order of keys as bytes is the order of `(id, tag, suffix)`: a scan meets
//! entities in the order of their ids, and all records of one entity stand together.
//!
//! # Example
//!
//! ```
//! use tidal_keys::{EntityId, Tag, encode_key, parse_key};
//!
//! let key = encode_key(EntityId::new(7), Tag::CommunityLeave, b"");
//! assert_eq!(key.as_ref(), [0, 0, 0, 0, 0, 0, 0, 7, 0x00, 0x11]);
//!
//! let (id, tag, suffix) = parse_key(&key)?;
//! assert_eq!((id.get(), tag, suffix), (7, Tag::CommunityLeave, &b""[..]));
//! # Ok::<(), tidal_keys::KeyError>(())
//! ```

mod entity_id;
mod error;
mod key;
mod tag;

pub use entity_id::EntityId;
pub use error::KeyError;
pub use key::{EncodedKey, encode_key, entity_prefix, entity_tag_prefix, parse_key};
pub use tag::Tag;
