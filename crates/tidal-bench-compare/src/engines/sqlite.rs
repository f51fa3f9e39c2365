use std::path::Path;

use rusqlite::Connection;
use tidal_bench::{Crowd, SignalOf, UpdateKey};

use super::{Engine, SIGNALS_PER_COMMIT, Total};

/// Upserts into one table, write-ahead log, every transaction synced.
pub(crate) struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    pub(crate) fn create(folder: &Path) -> Self {
        let connection = Connection::open(folder.join("engines.sqlite")).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "synchronous", "FULL").unwrap();
        connection.pragma_update(None, "cache_size", -64 * 1024).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE aggregate (scope INTEGER, item INTEGER, count INTEGER, weight REAL,
                 PRIMARY KEY (scope, item)) WITHOUT ROWID",
            )
            .unwrap();
        Self { connection }
    }
}

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite, 1,000 signals a transaction, synchronous=FULL"
    }

    fn take(&mut self, signals: &[SignalOf]) {
        for chunk in signals.chunks(SIGNALS_PER_COMMIT) {
            let transaction = self.connection.transaction().unwrap();
            let mut upsert = transaction
                .prepare_cached(
                    "INSERT INTO aggregate VALUES (?1, ?2, 1, 1.0) ON CONFLICT DO UPDATE
                     SET count = count + 1, weight = weight + 1.0",
                )
                .unwrap();
            for (scope, item) in chunk.iter().flat_map(|signal| Crowd::gated_updates(*signal)) {
                upsert.execute((scope, item.cast_signed())).unwrap();
            }
            drop(upsert);
            transaction.commit().unwrap();
        }
    }

    fn totals(&mut self) -> Vec<(UpdateKey, Total)> {
        let mut all = self
            .connection
            .prepare("SELECT scope, item, count, weight FROM aggregate ORDER BY 1, 2")
            .unwrap();
        let rows = all.query_map((), |row| {
            let (item, count): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(((row.get(0)?, item.cast_unsigned()), (count.cast_unsigned(), row.get(3)?)))
        });
        rows.unwrap().map(Result::unwrap).collect()
    }
}
