//! The handle, and what stands behind it.
//!
//! Lock order, first to last: a user's turn, the status shard of the gate, the gate's other maps,
//! a profile shard, the log state, interned scopes; then, with only the status shard held, an
//! aggregate's shard. Turns may be held across a commit, locks never are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use dashmap::DashMap;
use tidal_entities::Schema;
use tidal_entities::community::{CommunityMembership, CommunityMembershipIndex, MembershipStatus};
use tidal_storage::{Claim, Storage};

use crate::aggregates::Aggregates;
use crate::canary::{Break, Canary};
use crate::gate::Gate;
use crate::log_replay::replay_log;
use crate::log_state::LogEnd;
use crate::log_writer::LogWriter;
use crate::profiles::{Profile, Profiles};
use crate::record_check::check_leave_records;
use crate::report::{DamagedRecord, OpenReport};
use crate::scopes::Interner;
use crate::signals::WithheldCounters;
use crate::state_rebuild::{
    check_sources, rebuild_attributes, rebuild_community_leave_status, rebuild_community_memberships,
    rebuild_scopes,
};
use crate::stored_schema::open_schema;
use crate::sync::{Turns, lock};
use crate::{Clock, Config, Durability, Error, Result};

/// An open database. Clones are handles to the same one, and may be used from any thread.
///
/// What a concurrent reader may see: a signal is in all its aggregates or in none once its call has
/// returned; while it runs, a reader may see it in some. Status is said once it is on disk.
///
/// The last drop brings what is pending to disk, and logs it if that fails; [`close`](Self::close)
/// returns the error instead.
#[derive(Clone, Debug)]
pub struct TidalDb {
    pub(crate) inner: Arc<Inner>,
}

/// What all handles share.
pub(crate) struct Inner {
    pub(crate) schema: Schema,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) durability: Durability,
    pub(crate) allowed_skew_ns: u64,
    pub(crate) canary: Canary,
    pub(crate) report: OpenReport,

    pub(crate) community_membership: CommunityMembershipIndex,
    pub(crate) community_leave_status: DashMap<u64, CommunityMembership>,
    pub(crate) gate: Gate,
    pub(crate) profiles: Profiles,
    pub(crate) interner: Interner,
    pub(crate) aggregates: Aggregates,
    pub(crate) withheld: WithheldCounters,

    pub(crate) transition_turns: Turns<u64>,
    pub(crate) source_turns: Turns<String>,
    pub(crate) log: Arc<LogWriter>,
    pub(crate) storage: Storage,
    /// Keeps a second database from being opened over a clone of `storage`.
    _claim: Claim,
    flusher: std::sync::Mutex<Option<JoinHandle<()>>>,
    closed: AtomicBool,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TidalDb")
            .field("storage", &self.storage)
            .field("durability", &self.durability)
            .field("left_count", &self.gate.left_count())
            .finish_non_exhaustive()
    }
}

impl TidalDb {
    /// Says how to open a database.
    pub fn builder() -> Config {
        Config::default()
    }

    /// Opens the database that `config` describes.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if the file is missing, empty, truncated, foreign, of another format,
    /// damaged or open elsewhere; [`Error::SchemaMissing`] for a new one without a schema, and the
    /// errors of [`from_parts`](Self::from_parts).
    pub fn from_config(config: Config) -> Result<Self> {
        let storage = config.open_storage()?;
        Self::from_parts(storage, config)
    }

    /// Opens the database in `storage`; of `config`, everything counts but the place. An empty
    /// store takes the schema given and becomes a new database.
    ///
    /// Every way to open ends here, so none can forget to restore who left.
    ///
    /// # Errors
    ///
    /// [`Error::SchemaDiffers`]; [`Error::Damaged`] if rows do not decode or contradict each other
    /// (of leave records alone, the user counts as Left and stands in the
    /// [`open_report`](Self::open_report)); [`Error::BehindExpected`]; [`Error::Storage`], also if a
    /// database is open over a clone of `storage`.
    pub fn from_parts(storage: Storage, config: Config) -> Result<Self> {
        let claim = storage.claim()?;
        let durability = config.chosen_durability();
        let (schema, schema_batch) = open_schema(&storage, &config)?;
        let interner = Interner::new();
        let aggregates = Aggregates::default();
        let community_membership = CommunityMembershipIndex::new();
        let community_leave_status = DashMap::new();
        let gate = Gate::new(config.canary);
        let mut report = OpenReport::default();

        rebuild_scopes(&storage, &interner)?;
        let mut replayed = replay_log(&storage, &schema, &interner, &aggregates)?;
        let members = rebuild_community_memberships(&storage, &community_membership, &mut replayed)?;
        if !config.canary.is(Break::RestoreSkipped) {
            let undecodable = rebuild_community_leave_status(&storage, &community_leave_status)?;
            let checked = check_leave_records(&storage, &community_leave_status, undecodable, &mut replayed)?;
            report.sound_records = community_leave_status.len().saturating_sub(checked.damaged.len()) as u64;
            for user in checked.damaged {
                report.damaged.push(DamagedRecord { user_id: user.user_id, cause: user.cause.clone() });
                gate.mark_damaged(user);
            }
            for (user_id, periods) in checked.away {
                gate.restore_away_periods(user_id, periods);
            }
        }
        let is_left = |record: &CommunityMembership| record.status == MembershipStatus::Left;
        gate.restore_left_count(community_leave_status.iter().filter(|record| is_left(record)).count() as u64);
        let attributes = rebuild_attributes(&storage, &mut replayed)?;
        check_sources(&storage, &replayed)?;

        report.replayed_entries = replayed.entries;
        report.last_sequence = replayed.last_sequence;
        if let Some(expected) = config.expect_at_least
            && replayed.last_sequence < expected
        {
            return Err(Error::BehindExpected { expected, found: replayed.last_sequence });
        }
        storage.commit(schema_batch)?;
        let withheld = WithheldCounters::default();
        withheld.restore(replayed.withheld);

        let log = Arc::new(LogWriter::new(
            storage.clone(),
            LogEnd {
                last_sequence: replayed.last_sequence,
                newest_time_ns: replayed.newest_time_ns,
                sources: replayed.sources,
                canary: config.canary,
            },
        ));
        let db = Self {
            inner: Arc::new(Inner {
                schema,
                clock: config.clock,
                durability,
                allowed_skew_ns: u64::try_from(config.allowed_skew.as_nanos()).unwrap_or(u64::MAX),
                canary: config.canary,
                report,
                community_membership,
                community_leave_status,
                gate,
                profiles: Profiles::default(),
                interner,
                aggregates,
                withheld,
                transition_turns: Turns::new(),
                source_turns: Turns::new(),
                log,
                storage,
                _claim: claim,
                flusher: std::sync::Mutex::new(None),
                closed: AtomicBool::new(false),
            }),
        };
        db.resolve_profiles(attributes, members)?;
        db.start_flusher()?;
        Ok(db)
    }

    /// Resolves where every known user's signals go. Cohorts that were added to the schema since
    /// get their numbers here.
    fn resolve_profiles(
        &self,
        mut attributes: HashMap<u64, BTreeMap<String, String>>,
        members: Vec<u64>,
    ) -> Result<()> {
        let inner = &self.inner;
        for user_id in members {
            attributes.entry(user_id).or_default();
        }
        inner.log.stage(None, |staging| {
            let nothing = BTreeMap::new();
            let unseen = inner.interner.intern(staging, inner.schema.cohorts_of(&nothing), []);
            inner.profiles.set_unseen(unseen);
            for (user_id, attributes) in attributes {
                let cohorts = inner.schema.cohorts_of(&attributes);
                let communities = inner.community_membership.communities_of(user_id);
                let scope_set = inner.interner.intern(staging, cohorts, communities);
                inner.profiles.restore(user_id, Profile { attributes, scope_set });
            }
            Ok(())
        })?;
        inner.log.flush()
    }

    fn start_flusher(&self) -> Result<()> {
        let Durability::Batched { max_events, max_delay } = self.inner.durability else { return Ok(()) };
        let log = Arc::clone(&self.inner.log);
        let flusher = std::thread::Builder::new()
            .name("tidal-flush".to_owned())
            .spawn(move || log.run_flusher(max_events, max_delay))
            .map_err(Error::Thread)?;
        *lock(&self.inner.flusher) = Some(flusher);
        Ok(())
    }

    /// Brings everything done so far to disk.
    ///
    /// # Errors
    ///
    /// [`Error::Latched`] if it cannot be written, now or since an earlier failure;
    /// [`Error::Closed`].
    pub fn flush(&self) -> Result<()> {
        self.inner.log.flush()
    }

    /// Brings everything to disk and closes the database, also for the clones of this handle: their
    /// operations then return [`Error::Closed`].
    ///
    /// # Errors
    ///
    /// [`Error::Latched`] or [`Error::Storage`] if it cannot be written; the database is closed all
    /// the same. [`Error::Closed`] if it was closed before.
    pub fn close(self) -> Result<()> {
        self.inner.shut_down()
    }

    /// What the open found.
    #[must_use]
    pub fn open_report(&self) -> &OpenReport {
        &self.inner.report
    }

    /// The schema in force.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.inner.schema
    }

    /// The latest time of any event or transition so far, ns since the Unix epoch; 0 if there is none.
    #[must_use]
    pub fn newest_time_ns(&self) -> u64 {
        self.inner.log.newest_time_ns()
    }

    /// The last sequence that is on disk. Keep it elsewhere and hand it to
    /// [`Config::expect_at_least`] to notice an older copy of the file.
    #[must_use]
    pub fn durable_sequence(&self) -> u64 {
        self.inner.log.durable_sequence()
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.inner.clock.now_ns()
    }
}

impl Inner {
    fn shut_down(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(Error::Closed);
        }
        let flushed = self.log.flush_and_close();
        let thread = lock(&self.flusher).take();
        if let Some(thread) = thread {
            // It ends as soon as the log is closed, and its failures are latched in the log.
            let _ended = thread.join();
        }
        let closed = self.storage.close().map_err(Error::from);
        flushed.and(closed)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        match self.shut_down() {
            Ok(()) | Err(Error::Closed) => {}
            Err(error) => {
                tracing::error!(%error, "the last flush failed; recent batched signals may be lost");
            }
        }
    }
}
