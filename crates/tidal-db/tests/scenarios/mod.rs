//! One scenario per guarantee. Each answers `Err` with what it saw when the guarantee does not
//! hold, so that the same code serves as a test and, with a deliberate break, as its canary.

pub mod crash;
pub mod damaged_file;
pub mod failing_io;
pub mod faulty;
pub mod medium;
pub mod once;
pub mod promises;
pub mod race;
pub mod small_disk;
pub mod stress;

use std::sync::Arc;
use std::time::Duration;

use tidal_db::{Config, ManualClock, Schema, Scope, Storage, TidalDb};
use tidal_storage::MemoryMedium;

/// What a scenario answers.
pub type Seen<T = ()> = Result<T, String>;

/// The item that all scenarios signal.
pub const ITEM: u64 = 1752;

/// Ends a scenario with what it saw.
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $($said:tt)+) => {
        if !$holds {
            return Err(format!($($said)+));
        }
    };
}

/// Any failed call is something seen.
pub fn ok<T, E: std::fmt::Debug>(result: Result<T, E>) -> Seen<T> {
    result.map_err(|error| format!("a call failed: {error:?}"))
}

pub fn schema() -> Schema {
    Schema::builder()
        .signal("view", Duration::from_secs(3600))
        .cohorts_by("region")
        .build()
        .expect("the schema is valid")
}

/// A clock at 1,000 ns, and a configuration over it.
pub fn config() -> (Arc<ManualClock>, Config) {
    let clock = Arc::new(ManualClock::new(1_000));
    let config = TidalDb::builder().schema(schema()).clock(clock.clone());
    (clock, config)
}

/// A new database on `medium`.
pub fn create_on(medium: &Arc<MemoryMedium>, config: Config) -> Seen<TidalDb> {
    let storage = ok(Storage::options().create_on(medium.clone(), tidal_storage::WriteBatch::new()))?;
    ok(TidalDb::from_parts(storage, config))
}

/// The database that a crash left as `image`.
pub fn open_image(image: Vec<u8>, config: Config) -> Seen<TidalDb> {
    let storage = ok(Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image))))?;
    ok(TidalDb::from_parts(storage, config))
}

/// How many signals on the item `scope` took.
pub fn count(db: &TidalDb, scope: &Scope) -> Seen<u64> {
    Ok(ok(db.aggregate(scope, ITEM, "view"))?.map_or(0, |taken| taken.count))
}

pub fn community(id: u64) -> Scope {
    Scope::Community(id)
}

pub fn region(name: &str) -> Scope {
    Scope::Cohort(format!("region={name}"))
}

/// Puts user 7 into two communities and a cohort.
pub fn settle_in(db: &TidalDb) -> Seen {
    ok(db.join_community(7, 1))?;
    ok(db.join_community(7, 2))?;
    ok(db.set_user_attribute(7, "region", "Scotland"))
}

/// The counts of the three scopes that user 7 is in.
pub fn three_counts(db: &TidalDb) -> Seen<[u64; 3]> {
    Ok([count(db, &community(1))?, count(db, &community(2))?, count(db, &region("Scotland"))?])
}
