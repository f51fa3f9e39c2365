//! The schema is stored with the data, so that both are always read together.

use tidal_entities::{Schema, decode_schema, encode_schema, schema_key};
use tidal_keys::Tag;
use tidal_storage::{Partition, Storage, WriteBatch};

use crate::{Config, Error, Result};

/// The commit that stores `schema`.
pub(crate) fn schema_batch(schema: &Schema) -> Result<WriteBatch> {
    let key = schema_key();
    let value = encode_schema(&key, schema)
        .map_err(|cause| Error::Unloggable { what: "the schema cannot be laid out", cause })?;
    let mut batch = WriteBatch::new();
    batch.put(Partition::System, &key, &value);
    Ok(batch)
}

/// The schema in force: the stored one, which a given one must agree with or, if that is allowed,
/// may add to. An empty store takes the given one. With it the commit that is needed to store it,
/// left to the caller, since an open that fails must not change anything.
pub(crate) fn open_schema(storage: &Storage, config: &Config) -> Result<(Schema, WriteBatch)> {
    let key = schema_key();
    let Some(value) = storage.system_engine().get(&key)? else { return first_schema(storage, config) };
    let stored = decode_schema(&key, &value)
        .map_err(|cause| Error::undecodable("the stored schema does not decode", cause))?;
    let Some(given) = &config.schema else { return Ok((stored, WriteBatch::new())) };
    let Some(difference) = Schema::difference(&stored, given) else { return Ok((stored, WriteBatch::new())) };
    if !config.extend_schema {
        return Err(Error::SchemaDiffers { difference });
    }
    let extended = Schema::extend(&stored, given)?;
    let batch = schema_batch(&extended)?;
    Ok((extended, batch))
}

fn first_schema(storage: &Storage, config: &Config) -> Result<(Schema, WriteBatch)> {
    for tag in [Tag::Event, Tag::Metadata] {
        if storage.system_engine().last(tag)?.is_some() {
            return Err(Error::damaged("there is data, but no schema"));
        }
    }
    let schema = config.schema.clone().ok_or(Error::SchemaMissing)?;
    let batch = schema_batch(&schema)?;
    Ok((schema, batch))
}
