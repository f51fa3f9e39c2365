use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tidal_bench::{Crowd, SignalOf, UpdateKey};

use super::{Engine, SIGNALS_PER_COMMIT, Total, key_bytes, key_of, value_bytes, value_of};

const AGGREGATES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("aggregate");

/// The engine that tidal stands on, bare: one table, every commit synced.
pub(crate) struct BareTree {
    database: Database,
}

impl BareTree {
    pub(crate) fn create(folder: &Path) -> Self {
        let mut builder = Database::builder();
        builder.set_cache_size(64 * 1024 * 1024);
        Self { database: builder.create(folder.join("engines.redb")).unwrap() }
    }
}

impl Engine for BareTree {
    fn name(&self) -> &'static str {
        "redb, 1,000 signals a commit"
    }

    fn take(&mut self, signals: &[SignalOf]) {
        for chunk in signals.chunks(SIGNALS_PER_COMMIT) {
            let transaction = self.database.begin_write().unwrap();
            let mut aggregates = transaction.open_table(AGGREGATES).unwrap();
            for key in chunk.iter().flat_map(|signal| Crowd::gated_updates(*signal)) {
                let key = key_bytes(key);
                let stored = aggregates.get(key.as_slice()).unwrap();
                let (count, weight) = stored.map_or((0, 0.0), |value| value_of(value.value()));
                aggregates.insert(key.as_slice(), value_bytes((count + 1, weight + 1.0)).as_slice()).unwrap();
            }
            drop(aggregates);
            transaction.commit().unwrap();
        }
    }

    fn totals(&mut self) -> Vec<(UpdateKey, Total)> {
        let aggregates = self.database.begin_read().unwrap().open_table(AGGREGATES).unwrap();
        let rows = aggregates.iter().unwrap().map(Result::unwrap);
        rows.map(|(key, value)| (key_of(key.value()), value_of(value.value()))).collect()
    }
}
