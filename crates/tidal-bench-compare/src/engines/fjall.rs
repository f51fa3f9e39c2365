use std::collections::BTreeMap;
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use tidal_bench::{Crowd, SignalOf, UpdateKey};

use super::{Engine, SIGNALS_PER_COMMIT, Total, key_bytes, key_of, value_bytes, value_of};

/// A log-structured tree; every batch synced. What a batch adds to one aggregate is one write of it.
pub(crate) struct Fjall {
    database: Database,
    aggregates: Keyspace,
}

impl Fjall {
    pub(crate) fn create(folder: &Path) -> Self {
        let database = Database::builder(folder.join("engines.fjall")).open().unwrap();
        let aggregates = database.keyspace("aggregate", KeyspaceCreateOptions::default).unwrap();
        Self { database, aggregates }
    }
}

impl Engine for Fjall {
    fn name(&self) -> &'static str {
        "fjall, 1,000 signals a batch, synced"
    }

    fn take(&mut self, signals: &[SignalOf]) {
        for chunk in signals.chunks(SIGNALS_PER_COMMIT) {
            let mut changed: BTreeMap<[u8; 12], Total> = BTreeMap::new();
            for key in chunk.iter().flat_map(|signal| Crowd::gated_updates(*signal)) {
                let value = changed.entry(key_bytes(key)).or_insert_with_key(|key| {
                    self.aggregates.get(key).unwrap().map_or((0, 0.0), |value| value_of(&value))
                });
                *value = (value.0 + 1, value.1 + 1.0);
            }
            let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
            for (key, value) in changed {
                batch.insert(&self.aggregates, key, value_bytes(value));
            }
            batch.commit().unwrap();
        }
    }

    fn totals(&mut self) -> Vec<(UpdateKey, Total)> {
        let rows = self.aggregates.iter().map(|row| row.into_inner().unwrap());
        rows.map(|(key, value)| (key_of(&key), value_of(&value))).collect()
    }
}
