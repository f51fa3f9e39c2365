use std::fmt;

use tidal_keys::{EncodedKey, EntityId, Tag, encode_key, parse_key};

use crate::{
    CodecError,
    reader::Reader,
    sealed::{seal, unseal},
};

const KIND_LEAVE: u8 = 1;
const KIND_REJOIN: u8 = 2;

const KIND_LEN: usize = size_of::<u8>();
const AT_LEN: usize = size_of::<u64>();
const HASH_LEN: usize = 32;
const PAYLOAD_LEN: usize = KIND_LEN + AT_LEN + HASH_LEN;

const _: () = assert!(PAYLOAD_LEN == 41);

/// Which way a user went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TransitionKind {
    /// Out of the community layer.
    Leave,
    /// Back into it.
    Rejoin,
}

impl fmt::Display for TransitionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Leave => "leave",
            Self::Rejoin => "rejoin",
        })
    }
}

/// One leave or rejoin that changed something.
///
/// A leave of a user who has left, and a rejoin of one who is active, are no transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transition {
    /// Its place in the one order of all events and transitions.
    pub sequence: u64,
    /// Which way the user went.
    pub kind: TransitionKind,
    /// When, in ns since the Unix epoch, at least 1. The order of transitions is that of their sequence numbers:
    /// times can step back.
    pub at_ns: u64,
}

/// The key of a transition, in the users partition.
#[must_use]
pub fn transition_key(user: u64, sequence: u64) -> EncodedKey {
    encode_key(EntityId::new(user), Tag::CommunityTransition, &sequence.to_be_bytes())
}

/// Takes user and sequence number out of the key of a transition.
///
/// # Errors
///
/// [`CodecError::Key`] and [`CodecError::ForeignKey`] if it is no such key.
pub fn parse_transition_key(key: &[u8]) -> Result<(u64, u64), CodecError> {
    const WHAT: &str = "transition";
    match parse_key(key).map_err(|source| CodecError::Key { what: WHAT, source })? {
        (user, Tag::CommunityTransition, suffix) => match <[u8; 8]>::try_from(suffix) {
            Ok(sequence) => Ok((user.get(), u64::from_be_bytes(sequence))),
            Err(_) => Err(CodecError::foreign_key(WHAT, key)),
        },
        _ => Err(CodecError::foreign_key(WHAT, key)),
    }
}

/// Lays out the key and the row of a transition of a user.
///
/// The row has room for a hash that chains it to the transition before; in this version the room is all zeros.
#[must_use]
pub fn encode_transition(user: u64, transition: &Transition) -> (EncodedKey, Vec<u8>) {
    let key = transition_key(user, transition.sequence);
    let kind = match transition.kind {
        TransitionKind::Leave => KIND_LEAVE,
        TransitionKind::Rejoin => KIND_REJOIN,
    };
    let mut payload = Vec::with_capacity(PAYLOAD_LEN);
    payload.push(kind);
    payload.extend_from_slice(&transition.at_ns.to_le_bytes());
    payload.extend_from_slice(&[0; HASH_LEN]);
    let row = seal(&key, &payload);
    (key, row)
}

/// Reads the row of a transition, and gives it with its user.
///
/// # Errors
///
/// [`CodecError`] if key or row are not what [`encode_transition`] lays out.
pub fn decode_transition(key: &[u8], value: &[u8]) -> Result<(u64, Transition), CodecError> {
    let (user, sequence) = parse_transition_key(key)?;
    let mut reader = Reader::new("transition", unseal(key, value)?);
    let kind = match reader.u8()? {
        KIND_LEAVE => TransitionKind::Leave,
        KIND_REJOIN => TransitionKind::Rejoin,
        found => return Err(CodecError::UnknownKind { what: "kind of transition", found }),
    };
    let at_ns = reader.u64()?;
    let hash: [u8; HASH_LEN] = reader.array()?;
    reader.end()?;
    if hash != [0; HASH_LEN] {
        // A hash that nobody checks would promise a chain that is not there.
        return Err(CodecError::Value {
            what: "chain hash of a transition",
            found: crate::error::Hex(&hash).to_string(),
            expected: "is zero in this version",
        });
    }
    Ok((user, Transition { sequence, kind, at_ns }))
}
