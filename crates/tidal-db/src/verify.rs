//! Everything that is stored or kept in memory, against what the whole log says; and the log itself against the one
//! promise that it must show.
//!
//! The log is read once without stopping anybody. Then nothing new is staged, and signals, leaves,
//! joins and changes wait, while the entries that came since are added and all is compared: a
//! comparison of things that move says nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use tidal_entities::community::CommunityMembership;
use tidal_entities::{
    AggregateState, AwayPeriods, Contribution, LogEntry, ScopeId, SignalTypeId, Transition, TransitionKind,
    WithheldCounts, format_nanos,
};

use crate::aggregates::AggregateKey;
use crate::crosscheck;
use crate::log_facts::LogFacts;
use crate::log_replay::for_each_aggregate;
use crate::log_rows::visit_entries;
use crate::record_check::{check_leave_records, stored_histories};
use crate::run_check::{CheckedRuns, with_cause};
use crate::state_rebuild::{read_checkpoint, rebuild_community_leave_status};
use crate::stored_aggregates::StoredAggregates;
use crate::sync::map::DashMap;
use crate::{Error, Result, TidalDb};

/// What a difference concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// A stored aggregate is not what the log gives up to the checkpoint, or is missing.
    StoredAggregate,
    /// An aggregate in memory is not what the log gives.
    Aggregate,
    /// The items of a scope by score, of which the best are asked for.
    Ranking,
    /// A membership, an attribute or the position of a source.
    Row,
    /// A leave record, or the history of transitions beside it.
    LeaveRecord,
    /// The status in memory, or the away periods in memory.
    Status,
    /// The counts of withheld signals.
    Withheld,
    /// A signal that cohorts and communities took although the user had left before it.
    Forwarded,
    /// The signals by user, of which histories are made.
    History,
}

/// One thing that is not what the log says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Difference {
    /// What it concerns.
    pub kind: DifferenceKind,
    /// What is where, and what the log says.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Everything that is not what the log says; empty if all is well.
    pub differences: Vec<Difference>,
    /// How many entries of the log were read.
    pub entries: u64,
    /// How many aggregates were compared, those in memory.
    pub aggregates: u64,
}

impl VerifyReport {
    fn add(&mut self, kind: DifferenceKind, what: String) {
        self.differences.push(Difference { kind, what });
    }
}

/// What the log gives.
#[derive(Debug, Default)]
struct Recomputed {
    facts: LogFacts,
    aggregates: HashMap<AggregateKey, AggregateState>,
    withheld: WithheldCounts,
    /// What no gate should have let through.
    forwarded: Vec<String>,
    runs: CheckedRuns,
    entries: u64,
}

/// The stored aggregates, which must hold the log up to `floor`.
#[derive(Debug)]
struct Stored {
    floor: u64,
    by_key: HashMap<AggregateKey, Compared>,
    /// Why they cannot be read to their end.
    damage: Option<String>,
}

/// A stored aggregate, and what the log gives.
#[derive(Debug, Default)]
struct Compared {
    state: AggregateState,
    recomputed: AggregateState,
}

impl Stored {
    /// Adds what the log says; one that should be stored and is not, is stored without signals.
    fn take_in(&mut self, key: AggregateKey, sequence: u64, contribution: &Contribution) {
        if sequence <= self.floor {
            self.by_key.entry(key).or_default().recomputed.add_contribution(contribution);
        }
    }
}

impl TidalDb {
    /// Recomputes aggregates, scores, memberships, attributes, statuses, positions and histories from the log, and
    /// names each difference from what is stored; of aggregates, rankings, statuses and away periods also from what is
    /// in memory. And names each signal that cohorts and communities took after its user had left. Reads everything;
    /// while it compares, signals and transitions wait.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidal_db::{Schema, TidalDb};
    /// # let schema = Schema::builder().signal("view", Duration::from_secs(3600)).build()?;
    /// # let db = TidalDb::builder().schema(schema).ephemeral().open()?;
    /// db.signal(7, 1752, "view", 1.0)?;
    /// assert!(db.verify()?.differences.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the log itself does not decode or has gaps; [`Error::DamagedView`] if what
    /// repeats it does not; [`Error::Storage`], [`Error::Latched`], [`Error::Closed`],
    /// [`Error::ThreadPanicked`].
    pub fn verify(&self) -> Result<VerifyReport> {
        let inner = &self.inner;
        inner.log.flush()?;
        let mut stored = self.stored_aggregates()?;
        let runs = CheckedRuns::read(&inner.storage)?;
        let mut recomputed = Recomputed { runs, ..Recomputed::default() };
        let reached = visit_entries(
            &inner.storage,
            0,
            |sequence, entry| self.take_in(&mut recomputed, &mut stored, sequence, entry),
            |_| false,
        )?;

        let pause = inner.log.pause();
        inner.log.flush()?;
        let reached = visit_entries(
            &inner.storage,
            reached,
            |sequence, entry| self.take_in(&mut recomputed, &mut stored, sequence, entry),
            |_| false,
        )?;
        let mut report = VerifyReport { entries: recomputed.entries, ..VerifyReport::default() };
        self.compare_aggregates(&recomputed, &mut report)?;
        let in_memory = self.withheld_counts();
        if in_memory != recomputed.withheld {
            let what = format!("withheld are {in_memory:?}, but the log says {:?}", recomputed.withheld);
            report.add(DifferenceKind::Withheld, what);
        }
        for what in std::mem::take(&mut recomputed.forwarded) {
            report.add(DifferenceKind::Forwarded, what);
        }
        for what in crosscheck::differences(&inner.storage, &recomputed.facts)? {
            report.add(DifferenceKind::Row, what);
        }
        let records = DashMap::new();
        let undecodable = rebuild_community_leave_status(&inner.storage, &records, |_| ())?;
        let histories = stored_histories(&inner.storage)?;
        drop(pause);

        let checked = check_leave_records(&records, &undecodable, &histories, &recomputed.facts.transitions);
        for user in checked.damaged {
            report.add(DifferenceKind::LeaveRecord, format!("user {}: {}", user.user_id, user.cause));
        }
        self.compare_statuses(&records, &checked.away.into_iter().collect(), reached, &mut report)?;
        self.compare_stored(&stored, &mut report);
        for what in recomputed.runs.differences(&inner.storage)? {
            report.add(DifferenceKind::History, what);
        }
        Ok(report)
    }

    /// Reads the stored aggregates as they are at one moment.
    fn stored_aggregates(&self) -> Result<Stored> {
        let storage = &self.inner.storage;
        let (floor, mut aggregates) = loop {
            let checkpoint = read_checkpoint(storage)?;
            let opened = StoredAggregates::of(storage, &checkpoint.runs)?;
            // Rows of a run are removed only once it is not in the checkpoint, and no number is given twice.
            let now = read_checkpoint(storage)?;
            if checkpoint.runs.iter().all(|run| now.runs.contains(run)) {
                break (checkpoint.floor, opened);
            }
        };
        let mut stored = Stored { floor, by_key: HashMap::new(), damage: None };
        loop {
            match aggregates.next(storage) {
                Ok(Some((key, state))) => {
                    let recomputed = AggregateState::default();
                    stored.by_key.insert(key, Compared { state, recomputed });
                }
                Ok(None) => return Ok(stored),
                Err(error @ Error::DamagedView { .. }) => {
                    stored.damage = Some(with_cause(&error));
                    return Ok(stored);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn take_in(
        &self,
        recomputed: &mut Recomputed,
        stored: &mut Stored,
        sequence: u64,
        entry: LogEntry,
    ) -> Result<()> {
        recomputed.entries += 1;
        let LogEntry::Signal(signal) = entry else { return recomputed.facts.note(sequence, entry) };
        recomputed.runs.note(sequence, &signal);
        match (signal.withheld, recomputed.facts.last_transition(signal.user)) {
            (Some(reason), _) => recomputed.withheld.add(reason),
            (None, Some(Transition { kind: TransitionKind::Leave, sequence: left, .. })) => {
                let user = signal.user;
                recomputed.forwarded.push(format!(
                    "the signal at sequence {sequence} counts for cohorts and communities, but user {user} left at sequence {left}"
                ));
            }
            (None, _) => {}
        }
        for_each_aggregate(
            &self.inner.schema,
            &self.inner.interner,
            sequence,
            &signal,
            |key, contribution| {
                recomputed.aggregates.entry(key).or_default().add_contribution(contribution);
                stored.take_in(key, sequence, contribution);
            },
        )
    }

    /// Compares every aggregate in memory, counts, sums and what scores are made of alike.
    fn compare_aggregates(&self, recomputed: &Recomputed, report: &mut VerifyReport) -> Result<()> {
        let mut missing = recomputed.aggregates.keys().copied().collect::<HashSet<_>>();
        let view = self.aggregate_view()?;
        view.for_each(|key, state| {
            report.aggregates += 1;
            missing.remove(&key);
            let expected = recomputed.aggregates.get(&key);
            if expected != Some(state) {
                let what = self.aggregate_difference(key, "in memory", state, expected);
                report.add(DifferenceKind::Aggregate, what);
            }
        });
        let mut missing: Vec<_> = missing.into_iter().collect();
        missing.sort_unstable();
        for key in missing {
            let nothing = AggregateState::default();
            let what = self.aggregate_difference(key, "in memory", &nothing, recomputed.aggregates.get(&key));
            report.add(DifferenceKind::Aggregate, what);
        }
        for (scope, signal_type, what) in view.wrong_maxima() {
            let (scope, signal_type) = self.names_of(scope, signal_type);
            report.add(DifferenceKind::Ranking, format!("{scope}, {signal_type}, in memory: {what}"));
        }
        Ok(())
    }

    fn compare_stored(&self, stored: &Stored, report: &mut VerifyReport) {
        if let Some(damage) = &stored.damage {
            return report.add(DifferenceKind::StoredAggregate, damage.clone());
        }
        let compared = stored.by_key.iter();
        let mut differing: Vec<_> =
            compared.filter(|(_, Compared { state, recomputed })| state != recomputed).collect();
        differing.sort_unstable_by_key(|(key, _)| **key);
        let place = format!("stored up to sequence {}", stored.floor);
        for (key, Compared { state, recomputed }) in differing {
            let what = self.aggregate_difference(*key, &place, state, Some(recomputed));
            report.add(DifferenceKind::StoredAggregate, what);
        }
    }

    fn aggregate_difference(
        &self,
        key: AggregateKey,
        place: &str,
        found: &AggregateState,
        expected: Option<&AggregateState>,
    ) -> String {
        let nothing = AggregateState::default();
        let expected = expected.unwrap_or(&nothing);
        let (scope, signal_type) = self.names_of(key.scope, key.signal_type);
        let state = |state: &AggregateState| {
            format!("count {}, sum {}", state.count(), format_nanos(state.weight_nanos()))
        };
        let score_note = if found.score() == expected.score() { "" } else { ", another score" };
        let windows_note = if found.has_same_windows(expected) { "" } else { ", other windows" };
        format!(
            "{scope}, item {}, {signal_type}, {place}: {}{score_note}{windows_note}, but the log says {}",
            key.item,
            state(found),
            state(expected)
        )
    }

    /// How a scope and a signal type are called.
    pub(crate) fn names_of(&self, scope: ScopeId, signal_type: SignalTypeId) -> (String, &str) {
        let scopes = self.inner.interner.scopes();
        let found = usize::try_from(scope.0).ok().and_then(|index| scopes.get(index));
        let scope = found.map_or_else(|| format!("scope {}", scope.0), ToString::to_string);
        let declared = self.inner.schema.signal_type_by_id(signal_type);
        (scope, declared.map_or("?", |declared| declared.name.as_str()))
    }

    /// Compares status and away periods in memory with the records and the log as they were at sequence `reached`.
    fn compare_statuses(
        &self,
        records: &DashMap<u64, CommunityMembership>,
        away: &HashMap<u64, AwayPeriods>,
        reached: u64,
        report: &mut VerifyReport,
    ) -> Result<()> {
        let mut users: BTreeSet<u64> = records.iter().map(|record| *record.key()).collect();
        users.extend(self.inner.community_leave_status.iter().map(|record| *record.key()));
        for user_id in users {
            let active = || CommunityMembership::default_active(user_id);
            let recorded = records.get(&user_id).map_or_else(active, |record| *record);
            let no_period = AwayPeriods::default();
            let logged = away.get(&user_id).unwrap_or(&no_period);
            let agrees = || {
                let in_memory = self.inner.gate.away_periods(user_id);
                self.community_layer_status(user_id) == recorded && in_memory == *logged
            };
            // Of a damaged user memory and record differ, as they must.
            if agrees() || self.inner.gate.damaged(user_id).is_some() {
                continue;
            }
            // A transition under way, or a later one, is no difference.
            let Some(_turn) = self.inner.transition_turns.try_take(&user_id) else { continue };
            let later = self.membership_history(user_id)?.last().is_some_and(|last| last.sequence > reached);
            let in_memory = self.community_layer_status(user_id);
            if later || agrees() {
                continue;
            }
            if in_memory == recorded {
                let what = format!(
                    "user {user_id} was away at {:?} ns in memory, but at {:?} ns in the log",
                    self.inner.gate.away_periods(user_id).periods().collect::<Vec<_>>(),
                    logged.periods().collect::<Vec<_>>()
                );
                report.add(DifferenceKind::Status, what);
            } else {
                let what = format!(
                    "user {user_id} is {} in memory, left at {:?}, but {} on disk, left at {:?}",
                    in_memory.status, in_memory.left_at_ns, recorded.status, recorded.left_at_ns
                );
                report.add(DifferenceKind::Status, what);
            }
        }
        Ok(())
    }
}
