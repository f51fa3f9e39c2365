//! One row: from its fields to the event.

use csv::StringRecord;
use tidal_db::{Action, Event, Weight};

use super::error::{EventFileErrorKind, shown};
use super::header::Columns;
use crate::id::parse_id;
use crate::time::parse_time_ns;

/// Reads the event of a row.
pub(super) fn parse(columns: Columns, fields: &StringRecord) -> Result<Event, EventFileErrorKind> {
    if fields.len() != columns.field_count {
        return Err(EventFileErrorKind::FieldCount { found: fields.len(), expected: columns.field_count });
    }
    let row = |action| Row { columns, fields, action };
    let action = match fields.get(columns.action).unwrap_or_default() {
        "user" => row("user").set_attribute()?,
        "join" => row("join").join()?,
        "quit" => row("quit").quit()?,
        "signal" => row("signal").signal()?,
        "leave" => Action::Leave { user: row("leave").only_user()? },
        "rejoin" => Action::Rejoin { user: row("rejoin").only_user()? },
        other => return Err(EventFileErrorKind::UnknownAction { value: shown(other) }),
    };
    let at_ns = parse_time_ns(fields.get(columns.at).unwrap_or_default())?;
    Ok(Event { at_ns, action })
}

/// A row whose action is known.
#[derive(Clone, Copy)]
struct Row<'fields> {
    columns: Columns,
    fields: &'fields StringRecord,
    action: &'static str,
}

impl<'fields> Row<'fields> {
    fn user(self) -> Result<u64, EventFileErrorKind> {
        self.id("user", self.columns.user)
    }

    fn community(self) -> Result<u64, EventFileErrorKind> {
        self.id("community", self.columns.community)
    }

    /// The user of an action that needs nothing else.
    fn only_user(self) -> Result<u64, EventFileErrorKind> {
        self.uses_only(&[])?;
        self.user()
    }

    fn join(self) -> Result<Action, EventFileErrorKind> {
        self.uses_only(&["community"])?;
        Ok(Action::Join { user: self.user()?, community: self.community()? })
    }

    fn quit(self) -> Result<Action, EventFileErrorKind> {
        self.uses_only(&["community"])?;
        Ok(Action::Quit { user: self.user()?, community: self.community()? })
    }

    fn signal(self) -> Result<Action, EventFileErrorKind> {
        self.uses_only(&["item", "signal", "weight"])?;
        let weight: Weight = self.needed("weight", self.columns.weight)?.parse()?;
        Ok(Action::Signal {
            user: self.user()?,
            item: self.id("item", self.columns.item)?,
            signal_type: self.needed("signal", self.columns.signal)?.to_owned(),
            weight,
        })
    }

    fn set_attribute(self) -> Result<Action, EventFileErrorKind> {
        self.uses_only(&["attribute"])?;
        let attribute = self.needed("attribute", self.columns.attribute)?;
        let Some((name, value)) = attribute.split_once('=') else {
            return Err(EventFileErrorKind::AttributeWithoutEquals { value: shown(attribute) });
        };
        if name.is_empty() {
            return Err(EventFileErrorKind::AttributeWithoutName { value: shown(attribute) });
        }
        Ok(Action::SetAttribute { user: self.user()?, name: name.to_owned(), value: value.to_owned() })
    }

    /// Checks that besides the columns of all actions only these are filled in: whoever fills in another may mean
    /// something that the row does not do.
    fn uses_only(self, used: &[&str]) -> Result<(), EventFileErrorKind> {
        let Columns { item, signal, weight, community, attribute, .. } = self.columns;
        let optional = [
            ("item", item),
            ("signal", signal),
            ("weight", weight),
            ("community", community),
            ("attribute", attribute),
        ];
        for (column, place) in optional {
            let value = self.fields.get(place).unwrap_or_default();
            if !value.is_empty() && !used.contains(&column) {
                return Err(EventFileErrorKind::UnusedField {
                    column,
                    value: shown(value),
                    action: self.action,
                });
            }
        }
        Ok(())
    }

    fn id(self, column: &'static str, place: usize) -> Result<u64, EventFileErrorKind> {
        let value = self.needed(column, place)?;
        parse_id(value).map_err(|_| EventFileErrorKind::BadNumber { column, value: shown(value) })
    }

    fn needed(self, column: &'static str, place: usize) -> Result<&'fields str, EventFileErrorKind> {
        match self.fields.get(place).unwrap_or_default() {
            "" => Err(EventFileErrorKind::EmptyField { column, action: self.action }),
            value => Ok(value),
        }
    }
}
