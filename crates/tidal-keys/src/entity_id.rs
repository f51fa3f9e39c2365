use std::fmt;

/// The id of a user, an item or a creator, or a number that plays that part in a partition of its own.
///
/// Every `u64` is an id, 0 and `u64::MAX` included. Which kind of entity an id belongs to is told by the
/// partition that the record lies in, not by the id.
///
/// ```
/// use tidal_keys::EntityId;
///
/// assert_eq!(EntityId::new(7).get(), 7);
/// assert!(EntityId::new(255) < EntityId::new(256));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(u64);

impl EntityId {
    /// Takes a number as an id.
    #[must_use]
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The id as a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for EntityId {
    fn from(id: u64) -> Self {
        Self::new(id)
    }
}

impl From<EntityId> for u64 {
    fn from(id: EntityId) -> Self {
        id.get()
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
