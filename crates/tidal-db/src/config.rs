//! How a database is opened.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidal_entities::Schema;
use tidal_storage::{Storage, StorageError, StorageOptions};

use crate::canary::Canary;
use crate::{Clock, Error, Result, SystemClock, TidalDb};

/// When a signal is on disk. Leaves, rejoins, joins, quits, attributes and `apply` are on disk when
/// they return, whatever is chosen here, and take along all that came before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// When the call returns. Callers at the same time share a commit.
    Immediate,
    /// At the latest when `max_events` later events were recorded, or after `max_delay` and the
    /// time of a commit. A crash loses at most that, and always from the end.
    Batched {
        /// The most events that may not be on disk. A call that reaches it waits for the disk.
        max_events: usize,
        /// The longest that an event may wait for its commit to begin.
        max_delay: Duration,
    },
}

/// How far ahead of the clock an event may be dated: 5 minutes.
pub const DEFAULT_ALLOWED_SKEW: Duration = Duration::from_secs(5 * 60);

/// How many entries of the log an open may have to read again: a million. What that costs on a machine
/// is shown by `cargo bench -p tidal-bench --bench reopen`.
pub const DEFAULT_RECOVERY_ENTRIES: u64 = 1_000_000;

/// After how many entries of the log the next run of signals by user is made: a history reads so many
/// one by one, which takes a millisecond or two.
const DEFAULT_RUN_ENTRIES: u64 = 32_768;

/// For a database that is never on disk, commits only bound the memory of the log's tail.
const EPHEMERAL: Durability = Durability::Batched { max_events: 8192, max_delay: Duration::MAX };

/// Where the database is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Unsaid,
    Path(PathBuf),
    Ephemeral,
}

/// How to open a database: made with [`TidalDb::builder`], used with [`open`](Self::open).
///
/// ```
/// # use std::time::Duration;
/// use tidal_db::{Durability, Schema, TidalDb};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("signals.tidal");
/// let schema = Schema::builder().signal("view", Duration::from_secs(3600)).build()?;
/// let db = TidalDb::builder()
///     .schema(schema)
///     .path(&path)
///     .create(true)
///     .durability(Durability::Batched { max_events: 10_000, max_delay: Duration::from_millis(50) })
///     .open()?;
/// db.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "a configuration does nothing until it is opened"]
pub struct Config {
    place: Place,
    create: bool,
    pub(crate) schema: Option<Schema>,
    pub(crate) extend_schema: bool,
    pub(crate) clock: Arc<dyn Clock>,
    durability: Option<Durability>,
    storage: StorageOptions,
    pub(crate) allowed_skew: Duration,
    pub(crate) expect_at_least: Option<u64>,
    pub(crate) recovery_entries: u64,
    pub(crate) run_entries: u64,
    pub(crate) rebuild: bool,
    pub(crate) canary: Canary,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            place: Place::Unsaid,
            create: false,
            schema: None,
            extend_schema: false,
            clock: Arc::new(SystemClock),
            durability: None,
            storage: StorageOptions::new(),
            allowed_skew: DEFAULT_ALLOWED_SKEW,
            expect_at_least: None,
            recovery_entries: DEFAULT_RECOVERY_ENTRIES,
            run_entries: DEFAULT_RUN_ENTRIES,
            rebuild: false,
            canary: Canary::default(),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("place", &self.place)
            .field("create", &self.create)
            .field("schema", &self.schema)
            .field("extend_schema", &self.extend_schema)
            .field("durability", &self.durability)
            .field("storage", &self.storage)
            .field("allowed_skew", &self.allowed_skew)
            .field("expect_at_least", &self.expect_at_least)
            .field("recovery_entries", &self.recovery_entries)
            .field("run_entries", &self.run_entries)
            .field("rebuild", &self.rebuild)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// The signal types and cohorts. Needed to create; at open it must agree with what is stored,
    /// or be left out.
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Lets the given schema add signal types and cohorts to the stored one. A changed half-life or
    /// predicate is refused all the same. A program built with the schema from before, if it gives that schema, cannot
    /// open the database afterwards.
    pub fn extend_schema(mut self, extend: bool) -> Self {
        self.extend_schema = extend;
        self
    }

    /// The file that holds, or is to hold, the database.
    pub fn path(mut self, path: impl AsRef<Path>) -> Self {
        self.place = Place::Path(path.as_ref().to_path_buf());
        self
    }

    /// Keeps the database in memory: nothing is synced, nothing is left.
    pub fn ephemeral(mut self) -> Self {
        self.place = Place::Ephemeral;
        self
    }

    /// Creates the database if nothing is at the path. What is there is opened, or refused; it is
    /// never replaced. Off by default, so that a lost file is noticed.
    ///
    /// A kill while it is created may leave a file `.tidal-*.new` beside the path, which may be deleted when nothing is
    /// being created there.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Where "now" comes from; the system's clock by default.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// When a signal is on disk: [`Durability::Immediate`] by default on a file.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// How much of the file is cached in memory, in bytes; 64 MiB by default.
    pub fn cache_size_bytes(mut self, bytes: usize) -> Self {
        self.storage = self.storage.cache_size_bytes(bytes);
        self
    }

    /// Whether every page's checksum is read at open; on by default. Off saves reading the whole
    /// file; every row that tidal reads at open is then still checked by itself, and leave records
    /// against the history of transitions, but a page that is an older copy of itself is noticed only by
    /// [`expect_at_least`](Self::expect_at_least), and damage in the tree of pages can make the engine
    /// fail in the middle of the work, in the worst case by ending the process.
    pub fn check_integrity(mut self, check: bool) -> Self {
        self.storage = self.storage.check_integrity(check);
        self
    }

    /// How far ahead of the clock an event may be dated; [`DEFAULT_ALLOWED_SKEW`] by default.
    pub fn allowed_skew(mut self, skew: Duration) -> Self {
        self.allowed_skew = skew;
        self
    }

    /// Refuses a file that ends before `sequence`, which the caller knows to have been on disk
    /// (see [`TidalDb::durable_sequence`]): an older copy put back, or the newest commit lost to
    /// damage. Such a copy has forgotten the leaves made after it: if it is opened without this, mark
    /// those users as left again before anything else.
    pub fn expect_at_least(mut self, sequence: u64) -> Self {
        self.expect_at_least = Some(sequence);
        self
    }

    /// How many entries of the log an open may have to read again, at least 1;
    /// [`DEFAULT_RECOVERY_ENTRIES`] by default. Checkpoints run in the background, four or more for as
    /// many entries. Where they cannot keep up, signals, joins, quits, attributes and `apply` wait for
    /// them after having been recorded, so what a crash leaves beyond the bound is one entry for each
    /// call under way or 4,096 of an `apply`, and leaves and rejoins, which never wait.
    pub fn recovery_entries(mut self, entries: u64) -> Self {
        self.recovery_entries = entries.max(1);
        self
    }

    /// After how many entries of the log the next run of signals by user is made, at least 1. For
    /// tests, which would need long logs otherwise.
    #[doc(hidden)]
    pub fn run_entries(mut self, entries: u64) -> Self {
        self.run_entries = entries.max(1);
        self
    }

    /// Makes anew what only repeats the log: the stored aggregates, and the signals by user of which histories are
    /// made. For a database that is refused, or whose histories end in an error, with [`Error::DamagedView`].
    ///
    /// The open then reads the whole log, and returns once the aggregates are stored as
    /// [`recovery_entries`](Self::recovery_entries) asks. Histories are right at once, and as fast as before when the
    /// background work has followed the log again. Nothing is dropped if the open is refused for another reason, such
    /// as damage to the log itself.
    pub fn rebuild(mut self, rebuild: bool) -> Self {
        self.rebuild = rebuild;
        self
    }

    /// Breaks one guarantee on purpose.
    #[cfg(feature = "canaries")]
    pub fn broken(mut self, what: crate::Break) -> Self {
        self.canary = Canary::new(what);
        self
    }

    /// Opens the database; [`TidalDb::from_config`] by another name.
    ///
    /// # Errors
    ///
    /// See [`TidalDb::from_config`].
    pub fn open(self) -> Result<TidalDb> {
        TidalDb::from_config(self)
    }

    /// What is chosen, or what fits the place.
    pub(crate) fn chosen_durability(&self) -> Durability {
        let fitting = if self.place == Place::Ephemeral { EPHEMERAL } else { Durability::Immediate };
        self.durability.unwrap_or(fitting)
    }

    /// Whether anything is left of the database when the process ends.
    pub(crate) fn is_kept(&self) -> bool {
        self.place != Place::Ephemeral
    }

    pub(crate) fn open_storage(&self) -> Result<Storage> {
        match &self.place {
            Place::Unsaid => Err(Error::Config {
                reason: "say where the database is: path(..) for a file, or ephemeral()",
            }),
            Place::Ephemeral => Ok(self.storage.in_memory()?),
            // Where something is expected, a missing file is a lost one.
            Place::Path(path)
                if self.create
                    && self.expect_at_least.is_none_or(|expected| expected == 0)
                    && is_missing(path) =>
            {
                self.create_storage(path)
            }
            Place::Path(path) => Ok(self.storage.open(path)?),
        }
    }

    fn create_storage(&self, path: &Path) -> Result<Storage> {
        let schema = self.schema.as_ref().ok_or(Error::SchemaMissing)?;
        let first = crate::stored_schema::schema_batch(schema)?;
        match self.storage.create_with(path, first) {
            // Somebody else was faster: what stands there now is opened, or refused.
            Err(StorageError::AlreadyExists { .. }) => Ok(self.storage.open(path)?),
            created => Ok(created?),
        }
    }
}

/// Only what is certainly not there may be created; what cannot be looked at is opened, and refused.
fn is_missing(path: &Path) -> bool {
    matches!(path.symlink_metadata(), Err(error) if error.kind() == std::io::ErrorKind::NotFound)
}
