use xxhash_rust::xxh3::xxh3_64;

use crate::{SourcePosition, Transition, encode_transition};

/// A number that stands for a set of rows, whatever their order, and follows each change of the set at once.
///
/// The log carries it from row to row, so that an open can tell whether the rows beside the log are those that the log
/// led to, without reading the log. It is the sum of the XXH3 of all rows, so adding a row and removing it are exact
/// inverses. It finds accidents, not forgers.
///
/// ```
/// use tidal_entities::Fingerprint;
///
/// let mut rows = Fingerprint::default();
/// rows.add_membership(7, 4);
/// rows.add_attribute(7, "region", "Scotland");
/// rows.remove_membership(7, 4);
/// let mut same = Fingerprint::default();
/// same.add_attribute(7, "region", "Scotland");
/// assert_eq!(rows, same);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

const MEMBERSHIP: u8 = 1;
const ATTRIBUTE: u8 = 2;
const TRANSITION: u8 = 3;
const SOURCE: u8 = 4;

impl Fingerprint {
    /// A fingerprint as it is stored.
    #[must_use]
    pub const fn from_stored(stored: u64) -> Self {
        Self(stored)
    }

    /// The number to be stored.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// A user is in a community.
    pub fn add_membership(&mut self, user: u64, community: u64) {
        self.add(membership(user, community));
    }

    /// A user is no longer in a community.
    pub fn remove_membership(&mut self, user: u64, community: u64) {
        self.remove(membership(user, community));
    }

    /// A user has an attribute.
    pub fn add_attribute(&mut self, user: u64, name: &str, value: &str) {
        self.add(attribute(user, name, value));
    }

    /// A user no longer has an attribute, or not with this value.
    pub fn remove_attribute(&mut self, user: u64, name: &str, value: &str) {
        self.remove(attribute(user, name, value));
    }

    /// A user left or came back. Transitions are never removed.
    pub fn add_transition(&mut self, user: u64, transition: &Transition) {
        let (key, value) = encode_transition(user, transition);
        self.add_stored_transition(&key, &value);
    }

    /// The same, by the row that [`encode_transition`] laid out and [`decode_transition`](crate::decode_transition)
    /// has accepted: there is one for each transition.
    pub fn add_stored_transition(&mut self, key: &[u8], value: &[u8]) {
        self.add(hash(TRANSITION, &[key, value]));
    }

    /// A source has reached a position.
    pub fn add_source(&mut self, name: &str, position: &SourcePosition) {
        self.add(source(name, position));
    }

    /// A source has left a position behind.
    pub fn remove_source(&mut self, name: &str, position: &SourcePosition) {
        self.remove(source(name, position));
    }

    fn add(&mut self, row: u64) {
        self.0 = self.0.wrapping_add(row);
    }

    fn remove(&mut self, row: u64) {
        self.0 = self.0.wrapping_sub(row);
    }
}

fn membership(user: u64, community: u64) -> u64 {
    hash(MEMBERSHIP, &[&user.to_le_bytes(), &community.to_le_bytes()])
}

fn attribute(user: u64, name: &str, value: &str) -> u64 {
    // A name holds no equals sign, so the border between name and value is part of what is hashed.
    hash(ATTRIBUTE, &[&user.to_le_bytes(), name.as_bytes(), b"=", value.as_bytes()])
}

fn source(name: &str, position: &SourcePosition) -> u64 {
    let SourcePosition { first_position, position, digest } = position;
    hash(SOURCE, &[&first_position.to_le_bytes(), &position.to_le_bytes(), digest, name.as_bytes()])
}

fn hash(kind: u8, parts: &[&[u8]]) -> u64 {
    let mut bytes = Vec::with_capacity(64);
    bytes.push(kind);
    for part in parts {
        bytes.extend_from_slice(part);
    }
    xxh3_64(&bytes)
}
