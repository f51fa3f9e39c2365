use tidal_keys::Tag;

use crate::Partition;

/// One table of the store: the records of one partition under one tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Table {
    pub(crate) partition: Partition,
    pub(crate) tag: Tag,
}

impl Table {
    /// Every table that a database has.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Partition::ALL.into_iter().flat_map(Self::of_partition)
    }

    /// The tables of one partition, in the order of their tags.
    pub(crate) fn of_partition(partition: Partition) -> impl Iterator<Item = Self> {
        Tag::ALL.into_iter().map(move |tag| Self { partition, tag })
    }

    /// The name under which the table is stored, `users/11` for instance: the tag in hexadecimal.
    pub(crate) fn name(self) -> String {
        format!("{}/{:02x}", self.partition, self.tag.as_u8())
    }
}
