mod builder;
mod compare;
mod error;
mod predicate;
mod stored;

use std::collections::{BTreeMap, BTreeSet};

use crate::{Contribution, HalfLife, Scope, Weight};

pub use builder::SchemaBuilder;
pub use error::SchemaError;
pub use predicate::Predicate;
pub use stored::{decode_schema, encode_schema, schema_key};

/// The number that stands for a signal type within one database: its place in the stored schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalTypeId(pub u16);

/// A signal type that a schema declares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignalType {
    /// The number that stands for it in stored rows.
    pub id: SignalTypeId,
    /// Its name, 1 to 255 bytes.
    pub name: String,
    /// After how long a signal of this type counts for half as much in a score.
    pub half_life: HalfLife,
    /// Whether [windows](crate::Window) are kept of it.
    pub is_windowed: bool,
}

impl SignalType {
    /// What a signal of this type adds to each aggregate that takes it.
    #[must_use]
    pub fn contribution(&self, weight: Weight, event_time_ns: u64) -> Contribution {
        if self.is_windowed {
            Contribution::windowed(weight, event_time_ns, self.half_life)
        } else {
            Contribution::new(weight, event_time_ns, self.half_life)
        }
    }
}

/// Which signals there are and which cohorts take them.
///
/// A cohort is either declared by name with a [`Predicate`] over user attributes, or follows from an attribute by
/// which users are grouped: `cohorts_by("region")` makes a cohort `region=Scotland` of all users with that region.
///
/// ```
/// use std::{collections::BTreeMap, time::Duration};
/// use tidal_entities::{Predicate, Schema};
///
/// let schema = Schema::builder()
///     .signal("view", Duration::from_secs(7 * 86_400))
///     .cohorts_by("region")
///     .cohort("north", Predicate::any_of("region", ["Scotland", "Wales"]))
///     .build()?;
///
/// let attributes = BTreeMap::from([("region".to_owned(), "Scotland".to_owned())]);
/// assert_eq!(schema.cohorts_of(&attributes), ["north", "region=Scotland"]);
/// assert!(schema.resolve_cohort("region=Nowhere").is_ok());
/// assert!(schema.resolve_cohort("south").is_err());
/// assert!(schema.signal_type("like").is_none());
/// # Ok::<(), tidal_entities::SchemaError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    // In the order of their ids, which are their places.
    signal_types: Vec<SignalType>,
    ids_by_name: BTreeMap<String, SignalTypeId>,
    cohorts_by: BTreeSet<String>,
    cohorts: BTreeMap<String, Predicate>,
}

impl Schema {
    /// How many signal types a schema may declare.
    pub const MAX_SIGNAL_TYPES: usize = 1024;
    /// How many cohorts a schema may declare by name.
    pub const MAX_COHORTS: usize = 1024;
    /// By how many attributes a schema may group users.
    pub const MAX_COHORTS_BY: usize = 64;

    /// Begins a schema that declares nothing.
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }

    /// The id and the half-life of a signal type, or `None` if it is not declared.
    #[must_use]
    pub fn signal_type(&self, name: &str) -> Option<(SignalTypeId, HalfLife)> {
        let declared = self.signal_type_by_name(name)?;
        Some((declared.id, declared.half_life))
    }

    /// The signal type with a name, or `None` if it is not declared.
    #[must_use]
    pub fn signal_type_by_name(&self, name: &str) -> Option<&SignalType> {
        self.signal_type_by_id(*self.ids_by_name.get(name)?)
    }

    /// The signal type with an id, or `None` if there is none.
    #[must_use]
    pub fn signal_type_by_id(&self, id: SignalTypeId) -> Option<&SignalType> {
        self.signal_types.get(usize::from(id.0))
    }

    /// All signal types, in the order of their ids.
    #[must_use]
    pub fn signal_types(&self) -> &[SignalType] {
        &self.signal_types
    }

    /// The attributes by which users are grouped, in ascending order.
    pub fn cohorts_by(&self) -> impl Iterator<Item = &str> {
        self.cohorts_by.iter().map(String::as_str)
    }

    /// The cohorts that are declared by name, in ascending order.
    pub fn cohorts(&self) -> impl Iterator<Item = (&str, &Predicate)> {
        self.cohorts.iter().map(|(name, predicate)| (name.as_str(), predicate))
    }

    /// The names of all cohorts that a user with these attributes is in, each once, in ascending order.
    #[must_use]
    pub fn cohorts_of(&self, attributes: &BTreeMap<String, String>) -> Vec<String> {
        let lookup = |name: &str| attributes.get(name).map(String::as_str);
        let grouped = self.cohorts_by.iter().filter_map(|name| Some(format!("{name}={}", lookup(name)?)));
        let declared = self
            .cohorts()
            .filter(|(_, predicate)| predicate.matches(&lookup))
            .map(|(name, _)| name.to_owned());
        // Their names cannot meet, as `build` has seen to.
        let mut names: Vec<String> = grouped.chain(declared).collect();
        names.sort_unstable();
        names
    }

    /// The scope of a cohort: one that is declared, or `attribute=value` of an attribute by which users are grouped,
    /// also if no user has that value.
    ///
    /// # Errors
    ///
    /// [`SchemaError::UnknownCohort`] if there is no such cohort.
    pub fn resolve_cohort(&self, name: &str) -> Result<Scope, SchemaError> {
        let is_grouped =
            name.split_once('=').is_some_and(|(attribute, _)| self.cohorts_by.contains(attribute));
        if is_grouped || self.cohorts.contains_key(name) {
            Ok(Scope::Cohort(name.to_owned()))
        } else {
            // An error is one line, whatever was asked for.
            Err(SchemaError::UnknownCohort { name: name.chars().take(64).collect() })
        }
    }

    /// The first difference between a stored and a given schema in words, or `None` if they declare the same, in
    /// whatever order.
    #[must_use]
    pub fn difference(stored: &Self, given: &Self) -> Option<String> {
        compare::difference(stored, given)
    }

    /// The stored schema with what the given one adds. What is stored keeps its ids, and what is new gets the next.
    ///
    /// # Errors
    ///
    /// [`SchemaError::Changed`] if the given schema changes or lacks something that is stored, otherwise as
    /// [`SchemaBuilder::build`].
    pub fn extend(stored: &Self, given: &Self) -> Result<Self, SchemaError> {
        compare::extend(stored, given)
    }
}
