//! The database that a command works on.

use std::path::{Path, PathBuf};

use clap::Args;
use tidal_db::{Config, TidalDb};

use crate::failure::{Failure, tell};

/// Where the database is.
#[derive(Args, Clone, Debug)]
pub(crate) struct Database {
    /// The database file
    #[arg(long = "db", value_name = "PATH")]
    pub(crate) path: PathBuf,
}

impl Database {
    /// Opens the database with its stored schema, does `work` and closes it.
    pub(crate) fn with(&self, work: impl FnOnce(&TidalDb) -> Result<(), Failure>) -> Result<(), Failure> {
        if !exists(&self.path)? {
            return Err(Failure::Failed(missing(&self.path)));
        }
        with_opened(TidalDb::builder().path(&self.path), work)
    }

    /// The same with all that only repeats the log made anew.
    pub(crate) fn with_rebuilt(
        &self,
        work: impl FnOnce(&TidalDb) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if !exists(&self.path)? {
            return Err(Failure::Failed(missing(&self.path)));
        }
        with_opened(TidalDb::builder().path(&self.path).rebuild(true), work)
    }
}

/// Opens what `builder` describes, does `work` and closes it, so that a failed last write is told.
pub(crate) fn with_opened(
    builder: Config,
    work: impl FnOnce(&TidalDb) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let db = builder.open()?;
    for damaged in &db.open_report().damaged {
        let user_id = damaged.user_id;
        tell(&format!(
            "the leave record of user {user_id} is damaged ({}), so the user counts as left; \
             settle it with 'tidal leave {user_id} --db PATH'",
            damaged.cause
        ));
    }
    let outcome = work(&db);
    // Closed in any case: a handle that is dropped after a failed write logs once more what the failure says.
    let closed = db.close();
    outcome?;
    Ok(closed?)
}

/// Whether something stands at the path. Not being allowed to look is no proof that nothing does.
pub(crate) fn exists(path: &Path) -> Result<bool, Failure> {
    path.try_exists().map_err(|error| {
        Failure::Failed(format!("cannot look at {}: {error}; check your rights", path.display()))
    })
}

/// What to say where a database should be and is not.
pub(crate) fn missing(path: &Path) -> String {
    let path = path.display();
    format!(
        "there is no database at {path}; check the path, or make one with \
         'tidal replay FILE --db {path} --create --signal NAME=HALFLIFE'"
    )
}
