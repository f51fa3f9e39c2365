//! Who has left the community layer, and who is in which community.
//!
//! The community layer is all that lets one user's acts shape what others see: attribution to cohorts and
//! forwarding to communities. To leave it is not to quit a community: a user who has left stays in every
//! community they joined, and nothing they do reaches any of them until they rejoin.
//!
//! # The leave record
//!
//! One record a user, in the users partition, under the key of [`Tag::CommunityLeave`] without a suffix. It has 9
//! bytes and no seal:
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 1 | status: 0 active, 1 left |
//! | 1 | 8 | time of leaving in ns since the Unix epoch, little-endian |
//!
//! [`Tag::CommunityLeave`]: tidal_keys::Tag::CommunityLeave
//!
//! ```
//! use tidal_entities::community::{CommunityMembership, MembershipStatus};
//! use tidal_entities::community::{deserialize_membership, serialize_membership};
//!
//! let left = CommunityMembership { user_id: 7, status: MembershipStatus::Left, left_at_ns: Some(100) };
//! let bytes = serialize_membership(&left);
//! assert_eq!(bytes, [1, 100, 0, 0, 0, 0, 0, 0, 0]);
//! assert_eq!(deserialize_membership(7, &bytes), Some(left));
//! assert_eq!(deserialize_membership(7, b"damaged"), None);
//! ```

use std::fmt;

mod index;

pub use index::CommunityMembershipIndex;

const STATUS_OFFSET: usize = 0;
const STATUS_LEN: usize = size_of::<u8>();
const LEFT_AT_OFFSET: usize = STATUS_OFFSET + STATUS_LEN;
const LEFT_AT_LEN: usize = size_of::<u64>();
const RECORD_LEN: usize = LEFT_AT_OFFSET + LEFT_AT_LEN;

const _: () = assert!(STATUS_OFFSET == 0 && LEFT_AT_OFFSET == 1 && RECORD_LEN == 9);

const STATUS_ACTIVE: u8 = 0;
const STATUS_LEFT: u8 = 1;

/// Whether a user takes part in the community layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipStatus {
    /// What the user does reaches their cohorts and communities.
    Active,
    /// What the user does reaches nobody else.
    Left,
}

impl MembershipStatus {
    /// `active` or `left`, as in the output of the command.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Left => "left",
        }
    }
}

impl fmt::Display for MembershipStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// What is known about a user and the community layer as a whole; which communities the user is in is another matter,
/// for the [`CommunityMembershipIndex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommunityMembership {
    /// Whose record this is.
    pub user_id: u64,
    /// Whether the user takes part.
    pub status: MembershipStatus,
    /// When the user left, in ns since the Unix epoch: the first leave of the current away period, or of the last
    /// one if the user is back. `None` if the user never left.
    pub left_at_ns: Option<u64>,
}

impl CommunityMembership {
    /// What holds for a user of whom nothing is stored: active, never left.
    #[must_use]
    pub const fn default_active(user_id: u64) -> Self {
        Self { user_id, status: MembershipStatus::Active, left_at_ns: None }
    }
}

/// Lays out the leave record of a user.
///
/// The user's id stands in the key, so it is not repeated. Without a time of leaving, 0 is written; the times of
/// transitions are at least 1, so that the two do not meet in practice.
#[must_use]
pub fn serialize_membership(membership: &CommunityMembership) -> [u8; RECORD_LEN] {
    let status = match membership.status {
        MembershipStatus::Active => STATUS_ACTIVE,
        MembershipStatus::Left => STATUS_LEFT,
    };
    let [t0, t1, t2, t3, t4, t5, t6, t7] = membership.left_at_ns.unwrap_or(0).to_le_bytes();
    [status, t0, t1, t2, t3, t4, t5, t6, t7]
}

/// Reads the leave record of a user, or gives `None` if these bytes are none.
///
/// A record has exactly 9 bytes and a status of 0 or 1. An active record with time 0 is one of a user who never
/// left; a left record with time 0 keeps the 0, since whoever has left did so at some time.
///
/// `None` never means active: where a record cannot be read, count its user as left.
#[must_use]
pub fn deserialize_membership(user_id: u64, bytes: &[u8]) -> Option<CommunityMembership> {
    let [status, t0, t1, t2, t3, t4, t5, t6, t7] = *<&[u8; RECORD_LEN]>::try_from(bytes).ok()?;
    let left_at_ns = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
    let (status, left_at_ns) = match (status, left_at_ns) {
        (STATUS_ACTIVE, 0) => (MembershipStatus::Active, None),
        (STATUS_ACTIVE, time_ns) => (MembershipStatus::Active, Some(time_ns)),
        (STATUS_LEFT, time_ns) => (MembershipStatus::Left, Some(time_ns)),
        _ => return None,
    };
    Some(CommunityMembership { user_id, status, left_at_ns })
}
