use crate::{HalfLifeError, LimitError};

/// Why a schema is refused, or why a name is not in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A schema declares too many of one kind.
    #[error("schema declares {found} {what}, more than {limit}: declare fewer")]
    TooMany {
        /// What is declared.
        what: &'static str,
        /// How many there may be.
        limit: usize,
        /// How many there are.
        found: usize,
    },

    /// A name or a value is empty, too long or misleading.
    #[error(transparent)]
    Name(#[from] LimitError),

    /// Two declarations have one name.
    #[error("schema declares {what} {name:?} twice: declare it once")]
    Duplicate {
        /// What is declared.
        what: &'static str,
        /// The name.
        name: String,
    },

    /// A signal type cannot have this half-life.
    #[error("signal type {signal_type:?}: {source}")]
    HalfLife {
        /// The signal type.
        signal_type: String,
        /// What is wrong with its half-life.
        source: HalfLifeError,
    },

    /// A declared cohort could be taken for one of an attribute by which users are grouped.
    #[error(
        "cohort {name:?} reads like a value of attribute {attribute:?}, by which users are grouped: rename the cohort"
    )]
    AmbiguousCohort {
        /// The name of the cohort.
        name: String,
        /// The attribute.
        attribute: String,
    },

    /// A predicate is nested too deeply.
    #[error("predicate of cohort {cohort:?} is nested more than {limit} deep: write it flatter")]
    TooDeep {
        /// The cohort.
        cohort: String,
        /// How deep it may be nested.
        limit: usize,
    },

    /// A predicate has too many parts and values.
    #[error("predicate of cohort {cohort:?} has more than {limit} parts and values: split the cohort")]
    TooLarge {
        /// The cohort.
        cohort: String,
        /// How many parts and values it may have.
        limit: usize,
    },

    /// The schema that was given changes or lacks what the stored one declares.
    #[error(
        "schema can only be added to: {difference}; declare all that is stored too, and give what changes a new name"
    )]
    Changed {
        /// The first difference in words.
        difference: String,
    },

    /// There is no such cohort.
    #[error(
        "cohort {name:?} is not in the schema: name a declared cohort, or attribute=value of an attribute by which \
         users are grouped"
    )]
    UnknownCohort {
        /// The name that was asked for, cut to its first 64 characters.
        name: String,
    },
}
