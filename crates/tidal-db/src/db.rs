//! The handle, and what stands behind it.
//!
//! Lock order, first to last: a user's turn, the status shard of the gate, the gate's other maps,
//! a profile shard, the log state, interned scopes. The view of the aggregates comes before the log
//! state, with no other lock held. Turns may be held across a commit, locks never are.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tidal_entities::community::{CommunityMembership, CommunityMembershipIndex, MembershipStatus};
use tidal_entities::{Checkpoint, Fingerprint, RunIndex, Schema};
use tidal_storage::{Claim, Storage};

use crate::aggregates::{AggregateView, Aggregates};
use crate::canary::{Break, Canary};
use crate::checkpointer::Checkpointer;
use crate::crosscheck;
use crate::gate::Gate;
use crate::history_check::read_beside_histories;
use crate::log_facts::LogFacts;
use crate::log_replay::rebuild_aggregates;
use crate::log_rows::log_head;
use crate::log_state::{Bounds, LogEnd};
use crate::log_writer::LogWriter;
use crate::profiles::Profiles;
use crate::rebuild::drop_views;
use crate::record_check::{CheckedRecords, check_leave_records, shut_out, stored_histories};
use crate::report::{DamagedRecord, OpenReport};
use crate::run_maker::RunMaker;
use crate::runs::read_run_index;
use crate::scopes::Interner;
use crate::state_rebuild::{
    rebuild_attributes, rebuild_community_leave_status, rebuild_community_memberships, rebuild_scopes,
    rebuild_sources,
};
use crate::stored_schema::open_schema;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::map::DashMap;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, Turns, lock};
use crate::{Clock, Config, Durability, Error, Result};

/// An open database. Clones are handles to the same one, and may be used from any thread.
///
/// What a concurrent reader may see: at any moment a signal is in all its aggregates or in none, and
/// once its call has returned, in all. What comes of several calls, or of
/// [`aggregates`](Self::aggregates), is from several moments. Status is said once it is on disk.
///
/// After a close, what returns a `Result` is [`Error::Closed`]; what does not, such as
/// [`community_layer_status`](Self::community_layer_status), is as it was at the close, but that a leave that was
/// refused shuts the gate all the same.
///
/// The last drop brings what is pending to disk, and logs it if that fails; [`close`](Self::close)
/// returns the error instead.
#[derive(Clone, Debug)]
pub struct TidalDb {
    pub(crate) inner: Arc<Inner>,
}

/// What all handles share.
pub(crate) struct Inner {
    pub(crate) schema: Arc<Schema>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) durability: Durability,
    pub(crate) allowed_skew_ns: u64,
    /// How many entries of the log an open may have to read; none is ever read of an ephemeral one.
    recovery_entries: Option<u64>,
    run_entries: u64,
    pub(crate) canary: Canary,
    pub(crate) report: OpenReport,

    pub(crate) community_membership: CommunityMembershipIndex,
    pub(crate) community_leave_status: DashMap<u64, CommunityMembership>,
    pub(crate) gate: Gate,
    pub(crate) profiles: Profiles,
    pub(crate) interner: Arc<Interner>,
    pub(crate) aggregates: Aggregates,

    pub(crate) transition_turns: Turns<u64>,
    pub(crate) source_turns: Turns<String>,
    pub(crate) log: Arc<LogWriter>,
    pub(crate) storage: Storage,
    /// Keeps a second database from being opened over a clone of `storage`.
    _claim: Claim,
    /// The flush thread, the checkpointer and the maker of runs.
    threads: Mutex<Vec<JoinHandle<()>>>,
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

    /// Opens the database in `storage`; what `config` says of the place, of creating, of the cache and
    /// of the integrity check was for whoever opened the storage, and does not count here. An empty
    /// store takes the schema given and becomes a new database.
    ///
    /// Every way to open ends here, so none can forget to restore who left.
    ///
    /// # Errors
    ///
    /// [`Error::SchemaDiffers`]; [`Error::Damaged`] if rows do not decode or contradict each other
    /// (of leave records alone, the user counts as Left and stands in the
    /// [`open_report`](Self::open_report)); [`Error::DamagedView`] if it is only what repeats the log, which an open
    /// with [`rebuild(true)`](Config::rebuild) makes anew; [`Error::BehindExpected`]; [`Error::Storage`], also if a
    /// database is open over a clone of `storage`.
    pub fn from_parts(storage: Storage, config: Config) -> Result<Self> {
        let claim = storage.claim()?;
        let durability = config.chosen_durability();
        let recovery_entries = config.is_kept().then_some(config.recovery_entries);
        let (schema, mut last_batch) = open_schema(&storage, &config)?;
        let schema = Arc::new(schema);
        let interner = Arc::new(Interner::new());
        let mut view = AggregateView::new(config.canary);
        let community_membership = CommunityMembershipIndex::new();
        let community_leave_status = DashMap::new();
        let gate = Gate::new(&community_leave_status, config.canary);
        let mut report = OpenReport::default();

        rebuild_scopes(&storage, &interner)?;
        let head = log_head(&storage)?;
        if let Some(expected) = config.expect_at_least
            && head.last_sequence < expected
        {
            return Err(Error::BehindExpected { expected, found: head.last_sequence });
        }
        let runs = restore_runs(&storage, head.last_sequence, config.rebuild)?;
        let (checkpoint, replayed) =
            rebuild_aggregates(&storage, &schema, &interner, &mut view, &head, config.rebuild)?;

        let mut found = Fingerprint::default();
        let members = rebuild_community_memberships(&storage, &community_membership, &mut found)?;
        let attributes = rebuild_attributes(&storage, &mut found)?;
        let sources = rebuild_sources(&storage, &mut found)?;
        if !config.canary.is(Break::RestoreSkipped) {
            let restored = restore_who_left(
                &storage,
                &community_leave_status,
                &gate,
                &mut report,
                found,
                head.fingerprint,
            );
            config.canary.forgive(Break::FailedReadIsNobody, restored)?;
        }
        let is_left = |record: &CommunityMembership| record.status == MembershipStatus::Left;
        gate.restore_left_count(community_leave_status.iter().filter(|record| is_left(record)).count() as u64);

        report.replayed_entries = replayed.entries;
        report.last_sequence = head.last_sequence;
        if config.rebuild {
            drop_views(&storage, &mut last_batch)?;
        }
        let committed = storage.commit(last_batch).map_err(Error::from);
        config.canary.forgive(Break::FailedReadIsNobody, committed)?;
        let profiles = Profiles::restored(members, attributes);
        let log = Arc::new(LogWriter::new(
            storage.clone(),
            LogEnd {
                last_sequence: head.last_sequence,
                newest_time_ns: head.newest_time_ns,
                fingerprint: head.fingerprint,
                checkpoint_floor: checkpoint.floor,
                withheld: replayed.withheld,
                sources,
                canary: config.canary,
            },
            Bounds::new(durability, recovery_entries),
        ));
        let db = Self {
            inner: Arc::new(Inner {
                schema,
                clock: config.clock,
                durability,
                allowed_skew_ns: u64::try_from(config.allowed_skew.as_nanos()).unwrap_or(u64::MAX),
                recovery_entries,
                run_entries: config.run_entries,
                canary: config.canary,
                report,
                community_membership,
                community_leave_status,
                gate,
                profiles,
                aggregates: Aggregates::new(view, Arc::clone(&interner)),
                interner,
                transition_turns: Turns::new(),
                source_turns: Turns::new(),
                log,
                storage,
                _claim: claim,
                threads: Mutex::new(Vec::new()),
                closed: AtomicBool::new(false),
            }),
        };
        config.canary.forgive(Break::FailedReadIsNobody, db.start_threads(checkpoint, runs))?;
        if config.rebuild {
            db.inner.log.wait_for_checkpoint()?;
        }
        Ok(db)
    }

    fn start_threads(&self, checkpoint: Checkpoint, runs: RunIndex) -> Result<()> {
        let inner = &self.inner;
        if let Durability::Batched { max_events, max_delay } = inner.durability {
            let log = Arc::clone(&inner.log);
            inner.start("tidal-flush", move || log.run_flusher(max_events, max_delay))?;
        }
        if let Some(recovery_entries) = inner.recovery_entries {
            let checkpointer = Checkpointer::prepare(
                inner.storage.clone(),
                Arc::clone(&inner.schema),
                Arc::clone(&inner.interner),
                Arc::clone(&inner.log),
                checkpoint,
                (recovery_entries / 4).max(1),
                inner.canary,
            )?;
            inner.start("tidal-checkpoint", move || checkpointer.run())?;
            let (storage, log) = (inner.storage.clone(), Arc::clone(&inner.log));
            let maker = RunMaker::prepare(storage, log, runs, inner.run_entries, inner.canary)?;
            inner.start("tidal-runs", move || maker.run())?;
        }
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

/// Reads which runs there are; none if they are to be made anew.
fn restore_runs(storage: &Storage, last_sequence: u64, anew: bool) -> Result<RunIndex> {
    let runs = match read_run_index(storage) {
        Err(Error::DamagedView { .. }) if anew => RunIndex::default(),
        read => read?,
    };
    // The log has lost its end, which nothing can be made from.
    if runs.through > last_sequence {
        return Err(Error::damaged(format!(
            "the log ends at sequence {last_sequence}, but runs of signals by user go to {}",
            runs.through
        )));
    }
    Ok(if anew { RunIndex::default() } else { runs })
}

/// Reads who left, compares each record with the history of transitions, and all of it with the log.
fn restore_who_left(
    storage: &Storage,
    map: &DashMap<u64, CommunityMembership>,
    gate: &Gate,
    report: &mut OpenReport,
    found: Fingerprint,
    logged: Fingerprint,
) -> Result<()> {
    let (undecodable, histories) =
        read_beside_histories(storage, found, |show| rebuild_community_leave_status(storage, map, show))?;
    let fits = histories.fingerprint == logged;
    let checked = if fits && histories.agree && undecodable.is_empty() {
        CheckedRecords { damaged: Vec::new(), away: histories.away }
    } else {
        find_damage(storage, map, &undecodable, fits)?
    };
    shut_out_damaged(checked, map, gate, report);
    Ok(())
}

/// Shuts the gate for users whose record cannot be believed, and sets everybody's away periods.
fn shut_out_damaged(
    checked: CheckedRecords,
    map: &DashMap<u64, CommunityMembership>,
    gate: &Gate,
    report: &mut OpenReport,
) {
    let damaged_len = checked.damaged.len();
    for user in checked.damaged {
        shut_out(map, &user);
        report.damaged.push(DamagedRecord { user_id: user.user_id, cause: user.cause.clone() });
        gate.mark_damaged(user);
    }
    // Now that everybody who is damaged stands in the map, also whose record is missing.
    report.sound_records = map.len().saturating_sub(damaged_len) as u64;
    for (user_id, periods) in checked.away {
        gate.restore_away_periods(user_id, periods);
    }
}

/// Some row is not what the log led to: reads the whole log to say which. Of leave records the users
/// are returned; anything else is an error, since nobody could say whom it concerns.
fn find_damage(
    storage: &Storage,
    map: &DashMap<u64, CommunityMembership>,
    undecodable: &BTreeMap<u64, String>,
    fits: bool,
) -> Result<CheckedRecords> {
    let facts = LogFacts::read(storage)?;
    if let Some(first) = crosscheck::differences(storage, &facts)?.into_iter().next() {
        return Err(Error::damaged(first));
    }
    let checked = check_leave_records(map, undecodable, &stored_histories(storage)?, &facts.transitions);
    if checked.damaged.is_empty() && !fits {
        return Err(Error::damaged("the rows beside the log do not fit its fingerprint"));
    }
    Ok(checked)
}

impl Inner {
    /// Starts a background thread. If it panics, nothing more is written, and nobody waits for it.
    fn start(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let log = Arc::clone(&self.log);
        let guarded = move || {
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                log.fail(Error::ThreadPanicked);
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(guarded).map_err(Error::Thread)?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    fn shut_down(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(Error::Closed);
        }
        let flushed = self.log.flush_and_close();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // They end as soon as the log is closed, and their failures are latched in the log.
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
