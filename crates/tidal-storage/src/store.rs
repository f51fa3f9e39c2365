//! The engine below, and the only modules that name it: another engine would stand here behind the same few methods.

mod cursor;
mod fault;
mod format;
mod health;
mod medium_backend;
mod shield;
mod source;

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use redb::{
    Builder, Database, ReadOnlyTable, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
    WriteTransaction,
};

use crate::{Place, StorageError, StorageOptions, batch::Changes, table::Table};

pub use self::format::FORMAT_VERSION;
pub(crate) use self::{
    cursor::{Chunk, Cursor, KeyRange},
    format::{has_tables_for, tables_of},
    source::Source,
};
use self::{
    fault::Fault,
    health::{Action, Health},
    shield::Shield,
};

/// Keys and values are plain bytes: the engine's typed encodings change between its versions, ours do not.
type Key = &'static [u8];
type Value = &'static [u8];

/// A database that is open, or was.
///
/// Every call into the engine, the release of what it handed out included, goes through [`Health::contain`], where a
/// panic becomes an error.
///
/// Lock order: `database` alone, and of the caller's code only a medium is called under it. It is held shared for as
/// long as a commit takes, fsync included, and that is meant: [`close`](Self::close) takes it exclusively and so waits
/// for commits under way. A read holds it shared while it reads one value; a cursor only until its snapshot is taken.
pub(crate) struct Store {
    // Nothing once it is closed.
    database: RwLock<Option<Database>>,
    health: Arc<Health>,
}

impl Store {
    /// Makes a database on an empty source, with the format's marker, every table and the first changes, in one
    /// commit.
    pub(crate) fn create(
        source: Source,
        place: Place,
        options: &StorageOptions,
        first: &Changes<'_>,
    ) -> Result<Self, StorageError> {
        let health = Arc::new(Health::new(place));
        let database = health.contain(Action::Create, || {
            let backend = source.into_backend()?;
            if backend.len()? != 0 {
                return Err(Fault::NotEmpty);
            }
            let database = builder(options).create_with_backend(backend)?;
            let mut transaction = database.begin_write()?;
            transaction.set_two_phase_commit(true);
            format::write(&transaction)?;
            apply(&transaction, first)?;
            transaction.commit()?;
            Ok(database)
        })?;
        Ok(Self { database: RwLock::new(Some(database)), health })
    }

    /// Opens the database that is on a source. Unless all of it is found to be in order, no byte is changed.
    pub(crate) fn open(source: Source, place: Place, options: &StorageOptions) -> Result<Self, StorageError> {
        let health = Arc::new(Health::new(place));
        let database = health.contain(Action::Open, || {
            let backend = source.into_backend()?;
            if backend.len()? == 0 {
                return Err(Fault::Empty);
            }
            // Of the engine's ways to open, only the one that also creates takes a backend. Should the source become
            // empty only now, the shield refuses it, so that nothing is created here.
            let shield = Shield::over(backend);
            let database = builder(options).create_with_backend(shield.handle())?;
            format::verify(&database)?;
            shield.admit()?;
            Ok(database)
        })?;
        Ok(Self { database: RwLock::new(Some(database)), health })
    }

    pub(crate) fn place(&self) -> &Place {
        self.health.place()
    }

    pub(crate) fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        self.read(|database| {
            let rows = open_table(&database.begin_read()?, table)?;
            Ok(rows.get(key)?.map(|value| Bytes::copy_from_slice(value.value())))
        })
    }

    pub(crate) fn last(&self, table: Table) -> Result<Option<(Bytes, Bytes)>, StorageError> {
        self.read(|database| {
            let rows = open_table(&database.begin_read()?, table)?;
            let Some((key, value)) = rows.last()? else { return Ok(None) };
            cursor::check_key(table, key.value())?;
            Ok(Some((Bytes::copy_from_slice(key.value()), Bytes::copy_from_slice(value.value()))))
        })
    }

    /// A cursor over the merged rows of some tables, in one snapshot.
    pub(crate) fn cursor(&self, tables: &[Table], range: &KeyRange) -> Result<Cursor, StorageError> {
        self.read(|database| Cursor::over(&database.begin_read()?, tables, range, Arc::clone(&self.health)))
    }

    /// Makes changes durable, all or none.
    pub(crate) fn commit(&self, changes: &Changes<'_>) -> Result<(), StorageError> {
        self.health.check_writable()?;
        if changes.is_empty() {
            return Ok(());
        }
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or_else(|| self.health.closed_error())?;
        self.health.contain(Action::Write, || {
            // Every commit is fsynced before it returns: that is the engine's default, and nothing lowers it.
            let mut transaction = database.begin_write()?;
            transaction.set_two_phase_commit(changes.need_two_phase_commit());
            apply(&transaction, changes)?;
            transaction.commit()?;
            Ok(())
        })
    }

    /// Closes the database once commits under way are done.
    pub(crate) fn close(&self) -> Result<(), StorageError> {
        let database = {
            let mut slot = self.database.write().unwrap_or_else(PoisonError::into_inner);
            self.health.mark_closed();
            slot.take()
        };
        let Some(database) = database else { return Err(self.health.closed_error()) };
        self.health.contain(Action::Close, || Ok(database.close()?))
    }

    fn read<T>(&self, reading: impl FnOnce(&Database) -> Result<T, Fault>) -> Result<T, StorageError> {
        self.health.check_readable()?;
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or_else(|| self.health.closed_error())?;
        self.health.contain(Action::Read, || reading(database))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // An error has nobody to go to here, and `close` is there for those who want it.
        let _ = self.close();
    }
}

fn builder(options: &StorageOptions) -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(options.cache_size()).set_check_integrity_on_open(options.checks_integrity());
    builder
}

fn definition(name: &str) -> TableDefinition<'_, Key, Value> {
    TableDefinition::new(name)
}

fn open_table(transaction: &redb::ReadTransaction, table: Table) -> Result<ReadOnlyTable<Key, Value>, Fault> {
    Ok(transaction.open_table(definition(&table.name()))?)
}

fn apply(transaction: &WriteTransaction, changes: &Changes<'_>) -> Result<(), Fault> {
    for (table, rows) in changes.by_table() {
        let name = table.name();
        let mut stored = transaction.open_table(definition(&name))?;
        for (key, value) in rows {
            match value {
                Some(value) => drop(stored.insert(key, value)?),
                None => drop(stored.remove(key)?),
            }
        }
    }
    Ok(())
}
