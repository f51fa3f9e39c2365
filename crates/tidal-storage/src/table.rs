use tidal_keys::Tag;

use crate::Partition;

/// One table of the store: the records of one partition under one tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Table {
    pub(crate) partition: Partition,
    pub(crate) tag: Tag,
}

impl Table {
    /// The name under which the table is stored, `users/11` for instance: the tag in hexadecimal.
    pub(crate) fn name(self) -> String {
        format!("{}/{:02x}", self.partition, self.tag.as_u8())
    }
}
