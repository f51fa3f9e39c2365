use std::fmt;

/// Which kind of entity a record belongs to.
///
/// Ids are counted in each partition by itself: user 7 and item 7 have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Partition {
    /// What is acted on.
    Items,
    /// Who acts.
    Users,
    /// Who made what is acted on.
    Creators,
    /// What belongs to no entity: the log of events, the schema, interned scopes, positions of sources.
    System,
}

impl Partition {
    /// Every partition.
    pub const ALL: &'static [Self] = &[Self::Items, Self::Users, Self::Creators, Self::System];

    /// The name under which the partition is stored.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Items => "items",
            Self::Users => "users",
            Self::Creators => "creators",
            Self::System => "system",
        }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
