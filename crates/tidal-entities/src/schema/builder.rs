use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Predicate, Schema, SchemaError, SignalType, SignalTypeId};
use crate::{HalfLife, check_attribute_name, limits::check_name};

/// Gathers the declarations of a [`Schema`]. Nothing is checked before [`build`](Self::build).
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it is built"]
pub struct SchemaBuilder {
    signals: Vec<Declared>,
    cohorts_by: Vec<String>,
    cohorts: Vec<(String, Predicate)>,
}

/// A signal type before it is checked.
#[derive(Clone, Debug)]
struct Declared {
    name: String,
    half_life: Duration,
    is_windowed: bool,
}

impl SchemaBuilder {
    /// Declares a signal type, with the time after which a signal counts for half as much in a score: 1 s to 36,525
    /// days.
    ///
    /// A score keeps 32 bytes for every 32 half-lives in which something happened, in memory and on disk: with a second
    /// as the half-life 86 kB a day for each scope and item that is used all day, with an hour 9 kB a year.
    pub fn signal(self, name: impl Into<String>, half_life: Duration) -> Self {
        self.declare(name, half_life, false)
    }

    /// Declares a signal type like [`signal`](Self::signal), of which counts and sums over the last hour, day and
    /// week are kept as well, see [`Window`](crate::Window). It is decided once: a type that is stored without
    /// windows does not get them later, since its past signals are no longer told apart by time, nor the other way
    /// round.
    ///
    /// For each scope and item this takes up to 216 buckets of 32 bytes in memory and of 25 bytes on disk, by the
    /// times at which something happened; a single signal takes 120 and 64.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidal_entities::Schema;
    ///
    /// let week = Duration::from_secs(7 * 86_400);
    /// let schema = Schema::builder().signal("like", week).windowed("view", week).build()?;
    /// assert!(schema.signal_type_by_name("view").is_some_and(|declared| declared.is_windowed));
    /// # Ok::<(), tidal_entities::SchemaError>(())
    /// ```
    pub fn windowed(self, name: impl Into<String>, half_life: Duration) -> Self {
        self.declare(name, half_life, true)
    }

    pub(super) fn declare(mut self, name: impl Into<String>, half_life: Duration, is_windowed: bool) -> Self {
        self.signals.push(Declared { name: name.into(), half_life, is_windowed });
        self
    }

    /// Groups users by an attribute: each of its values makes a cohort `attribute=value`.
    pub fn cohorts_by(mut self, attribute: impl Into<String>) -> Self {
        self.cohorts_by.push(attribute.into());
        self
    }

    /// Declares a cohort of all users whose attributes match a predicate.
    pub fn cohort(mut self, name: impl Into<String>, predicate: Predicate) -> Self {
        self.cohorts.push((name.into(), predicate));
        self
    }

    /// Checks the declarations and makes a schema of them. Signal types get their ids in the order in which they were
    /// declared.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] names the first declaration that breaks a rule: names have 1 to 255 bytes and are declared
    /// once, names of attributes hold no `=`, values have at most 1,024 bytes, half-lives lie between 1 s and 36,525
    /// days, predicates are nested at most 32 deep and have at most 1,024 parts and values, no declared cohort reads
    /// like `attribute=value` of a grouping attribute, and there are at most 1,024 signal types, 1,024 declared cohorts
    /// and 64 grouping attributes.
    pub fn build(self) -> Result<Schema, SchemaError> {
        check_len("signal types", self.signals.len(), Schema::MAX_SIGNAL_TYPES)?;
        check_len("attributes to group by", self.cohorts_by.len(), Schema::MAX_COHORTS_BY)?;
        check_len("cohorts", self.cohorts.len(), Schema::MAX_COHORTS)?;

        let (signal_types, ids_by_name) = signal_types(self.signals)?;
        let mut cohorts_by = BTreeSet::new();
        for name in self.cohorts_by {
            check_attribute_name(&name)?;
            if let Some(name) = cohorts_by.replace(name) {
                return Err(SchemaError::Duplicate { what: "attribute to group by", name });
            }
        }
        let mut cohorts = BTreeMap::new();
        for (name, predicate) in self.cohorts {
            check_name("cohort name", &name)?;
            predicate.check(&name)?;
            if let Some((attribute, _)) = name.split_once('=')
                && cohorts_by.contains(attribute)
            {
                return Err(SchemaError::AmbiguousCohort { attribute: attribute.to_owned(), name });
            }
            if cohorts.contains_key(&name) {
                return Err(SchemaError::Duplicate { what: "cohort", name });
            }
            cohorts.insert(name, predicate);
        }
        Ok(Schema { signal_types, ids_by_name, cohorts_by, cohorts })
    }
}

fn signal_types(
    signals: Vec<Declared>,
) -> Result<(Vec<SignalType>, BTreeMap<String, SignalTypeId>), SchemaError> {
    let mut signal_types = Vec::with_capacity(signals.len());
    let mut ids_by_name = BTreeMap::new();
    for (id, Declared { name, half_life, is_windowed }) in (0..).map(SignalTypeId).zip(signals) {
        check_name("signal type", &name)?;
        let half_life = HalfLife::try_from(half_life)
            .map_err(|source| SchemaError::HalfLife { signal_type: name.clone(), source })?;
        if ids_by_name.insert(name.clone(), id).is_some() {
            return Err(SchemaError::Duplicate { what: "signal type", name });
        }
        signal_types.push(SignalType { id, name, half_life, is_windowed });
    }
    Ok((signal_types, ids_by_name))
}

fn check_len(what: &'static str, found: usize, limit: usize) -> Result<(), SchemaError> {
    if found > limit {
        return Err(SchemaError::TooMany { what, limit, found });
    }
    Ok(())
}
