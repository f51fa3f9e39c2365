use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidal_keys::{EncodedKey, EntityId, Tag, encode_key};

use super::{Predicate, Schema, SchemaBuilder};
use crate::{
    CodecError,
    sealed::{seal_in_place, unseal},
};

/// The stored form, as JSON: small, written rarely, and legible to whoever has nothing but the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSchema {
    signal_types: Vec<StoredSignalType>,
    cohorts_by: Vec<String>,
    cohorts: Vec<StoredCohort>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSignalType {
    name: String,
    half_life_ns: u64,
    // Written only where it is true, so that schemas without windows are the bytes they were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    windows: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCohort {
    name: String,
    predicate: Predicate,
}

/// The key of the schema, in the system partition.
#[must_use]
pub fn schema_key() -> EncodedKey {
    encode_key(EntityId::new(0), Tag::Metadata, b"schema")
}

/// Lays out the row of a schema under its key: JSON in UTF-8 without spaces, sealed. Signal types are in the order
/// of their ids.
///
/// # Errors
///
/// [`CodecError::Json`] if it cannot be written as JSON, which does not happen to a schema that was built.
pub fn encode_schema(key: &[u8], schema: &Schema) -> Result<Vec<u8>, CodecError> {
    let stored = StoredSchema {
        signal_types: schema
            .signal_types
            .iter()
            .map(|signal_type| StoredSignalType {
                name: signal_type.name.clone(),
                half_life_ns: signal_type.half_life.ns(),
                windows: signal_type.is_windowed,
            })
            .collect(),
        cohorts_by: schema.cohorts_by.iter().cloned().collect(),
        cohorts: schema
            .cohorts()
            .map(|(name, predicate)| StoredCohort { name: name.to_owned(), predicate: predicate.clone() })
            .collect(),
    };
    let mut row = serde_json::to_vec(&stored).map_err(|error| CodecError::Json(error.into()))?;
    seal_in_place(key, &mut row);
    Ok(row)
}

/// Reads the row of a schema.
///
/// # Errors
///
/// [`CodecError`] if the row is not what [`encode_schema`] lays out under this key, or breaks a rule that
/// [`SchemaBuilder::build`] keeps.
pub fn decode_schema(key: &[u8], value: &[u8]) -> Result<Schema, CodecError> {
    let stored: StoredSchema =
        serde_json::from_slice(unseal(key, value)?).map_err(|error| CodecError::Json(error.into()))?;
    let mut builder = SchemaBuilder::default();
    for StoredSignalType { name, half_life_ns, windows } in stored.signal_types {
        builder = builder.declare(name, Duration::from_nanos(half_life_ns), windows);
    }
    for attribute in stored.cohorts_by {
        builder = builder.cohorts_by(attribute);
    }
    for StoredCohort { name, predicate } in stored.cohorts {
        builder = builder.cohort(name, predicate);
    }
    let schema = builder.build().map_err(|error| CodecError::Schema(Box::new(error)))?;
    // JSON has many ways to say one thing; only the one that is written is read.
    if encode_schema(key, &schema)? == value {
        return Ok(schema);
    }
    Err(CodecError::Value {
        what: "stored schema",
        found: "another text of the same meaning".to_owned(),
        expected: "is written in one way only",
    })
}
