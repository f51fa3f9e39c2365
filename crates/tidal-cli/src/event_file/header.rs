//! The header: which column stands where.

use csv::StringRecord;

use super::error::EventFileErrorKind;

/// The columns that a file must have, in the order in which it is usually written.
pub(super) const COLUMNS: [&str; 8] =
    ["at", "action", "user", "item", "signal", "weight", "community", "attribute"];

/// Where each column stands in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub(super) at: usize,
    pub(super) action: usize,
    pub(super) user: usize,
    pub(super) item: usize,
    pub(super) signal: usize,
    pub(super) weight: usize,
    pub(super) community: usize,
    pub(super) attribute: usize,
    /// How many fields every row has, further columns included.
    pub(super) field_count: usize,
}

impl Columns {
    /// Finds every column by its name.
    pub(super) fn find(header: &StringRecord) -> Result<Self, EventFileErrorKind> {
        let find = |column: &'static str| {
            let mut places =
                header.iter().enumerate().filter(|(_, name)| *name == column).map(|(place, _)| place);
            let place = places.next().ok_or(EventFileErrorKind::MissingColumn { column })?;
            match places.next() {
                None => Ok(place),
                Some(_) => Err(EventFileErrorKind::RepeatedColumn { column }),
            }
        };
        let [at, action, user, item, signal, weight, community, attribute] = COLUMNS;
        Ok(Self {
            at: find(at)?,
            action: find(action)?,
            user: find(user)?,
            item: find(item)?,
            signal: find(signal)?,
            weight: find(weight)?,
            community: find(community)?,
            attribute: find(attribute)?,
            field_count: header.len(),
        })
    }
}
