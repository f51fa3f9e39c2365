use crate::KeyError;

/// What kind of record a key leads to: byte 9 of the key.
///
/// The numbers are stored, so they never change. 0x07 to 0x0F and 0x13 on are free.
///
/// ```
/// use tidal_keys::Tag;
///
/// assert_eq!(Tag::CommunityLeave.as_u8(), 0x11);
/// assert_eq!(Tag::try_from(0x11), Ok(Tag::CommunityLeave));
/// assert!(Tag::try_from(0x00).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Tag {
    /// Events: what happened.
    Event = 0x01,
    /// The state of signals: what the events add up to.
    SignalState = 0x02,
    /// What is known about an entity besides its events.
    Metadata = 0x03,
    /// What an entity belongs to.
    Relationship = 0x04,
    /// Views that can be computed again from the events.
    MaterializedView = 0x05,
    /// Ways from a value back to what has it.
    Index = 0x06,
    /// What a purge removed, and what it could not remove.
    PurgeManifest = 0x10,
    /// Whether a user has left the community layer: one record a user, so its keys have no suffix.
    CommunityLeave = 0x11,
    /// The history of a user's leaves and rejoins.
    CommunityTransition = 0x12,
}

impl Tag {
    /// Every tag, in ascending order.
    pub const ALL: &'static [Self] = &[
        Self::Event,
        Self::SignalState,
        Self::Metadata,
        Self::Relationship,
        Self::MaterializedView,
        Self::Index,
        Self::PurgeManifest,
        Self::CommunityLeave,
        Self::CommunityTransition,
    ];

    /// The byte that stands for this tag in a key.
    #[must_use]
    pub const fn as_u8(self) -> u8 {
        self as u8
    }

    /// Whether a key may go on after this tag.
    pub(crate) const fn allows_suffix(self) -> bool {
        !matches!(self, Self::CommunityLeave)
    }
}

impl TryFrom<u8> for Tag {
    type Error = KeyError;

    fn try_from(byte: u8) -> Result<Self, KeyError> {
        match byte {
            0x01 => Ok(Self::Event),
            0x02 => Ok(Self::SignalState),
            0x03 => Ok(Self::Metadata),
            0x04 => Ok(Self::Relationship),
            0x05 => Ok(Self::MaterializedView),
            0x06 => Ok(Self::Index),
            0x10 => Ok(Self::PurgeManifest),
            0x11 => Ok(Self::CommunityLeave),
            0x12 => Ok(Self::CommunityTransition),
            tag => Err(KeyError::UnknownTag { tag }),
        }
    }
}
