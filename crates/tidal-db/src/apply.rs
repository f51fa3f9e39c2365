//! Events delivered from a source, each once.
//!
//! The position reached is staged with every event, so any commit holds a source's effects and its
//! position together. Events are taken from the caller's iterator in chunks, before any turn is
//! held, so the iterator may use the database.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};
use tidal_entities::community::MembershipStatus;
use tidal_entities::{Action, Event, WithheldCounts, check_source_name};

use crate::community::{Asked, StagedTransition};
use crate::gate::EventTime;
use crate::log_state::Origin;
use crate::signals::ResolvedSignal;
use crate::sync::Turn;
use crate::{Error, Result, TidalDb};

/// Events a chunk: large enough that the commit is a small part, small enough that other callers
/// of a leave or a flush wait for milliseconds.
const CHUNK_EVENTS: usize = 4096;

/// What an [`apply`](TidalDb::apply) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyReport {
    /// Events applied, those that changed nothing included.
    pub applied: u64,
    /// Events at or below the position reached: applied before, or passed over by a delivery that began
    /// beyond it.
    pub skipped: u64,
    /// Signals that were not withheld, also those that no cohort or community took.
    pub forwarded: u64,
    /// Signals that were withheld, by reason.
    pub withheld: WithheldCounts,
    /// The position that the source has reached; `None` if nothing of it was ever applied.
    pub position: Option<u64>,
}

/// The running digest of a source: each step covers the position and the event.
pub(crate) fn next_digest(previous: &[u8; 32], position: u64, event: &Event) -> [u8; 32] {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend_from_slice(previous);
    bytes.extend_from_slice(&position.to_le_bytes());
    event.encode(&mut bytes);
    Sha256::digest(&bytes).into()
}

/// Where the delivery of one source stands.
#[derive(Debug)]
struct Delivery<'a> {
    source_name: &'a str,
    first_position: u64,
    next_position: u64,
    /// The digest of what was delivered, if delivery began where the source begins. Another delivery
    /// may begin the source while this one is under way, so it is decided again at every turn.
    from_start: Option<[u8; 32]>,
    /// What the clock read when the chunk was taken: no caller's code runs under a turn.
    now_ns: u64,
    report: ApplyReport,
}

/// Transitions of the chunk that wait for its commit, and the turns of their users.
#[derive(Debug, Default)]
struct OpenChunk<'a> {
    turns: Vec<Turn<'a, u64>>,
    staged: HashMap<u64, StagedTransition>,
    held: HashSet<u64>,
}

impl TidalDb {
    /// Applies the events of `source` in order, the first at `first_position`, each following one at
    /// the next. Events at positions that the source has reached are skipped, so delivering again
    /// changes nothing. When this returns `Ok`, all of it is on disk; the position reached is stored
    /// in the same commits as the effects.
    ///
    /// A source is one ordered stream. A delivery may begin beyond the position reached; what lies
    /// between is passed over for good, so workers that take from one queue side by side need a source
    /// each. To pass over an event that cannot be applied, deliver on at the position after it.
    ///
    /// The order of leaves and rejoins is that of delivery, not of their times: a [`Rejoin`](Action::Rejoin) opens the
    /// gate when it is delivered, even if it is dated before a leave that was delivered earlier. So deliver all leaves
    /// and rejoins of a user by one source, in order: two sources, or one file under two names, can undo a leave.
    ///
    /// A running digest of the source is compared whenever delivery starts at the source's first
    /// position and gets as far as what was applied before.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidal_db::{Action, Event, Schema, TidalDb};
    /// # let schema = Schema::builder().signal("view", Duration::from_secs(3600)).build()?;
    /// # let db = TidalDb::builder().schema(schema).ephemeral().open()?;
    /// let events = [
    ///     Event { at_ns: 5, action: Action::Join { user: 7, community: 4 } },
    ///     Event { at_ns: 6, action: Action::Leave { user: 7 } },
    /// ];
    /// assert_eq!(db.apply("queue", 1, events.clone())?.applied, 2);
    /// assert_eq!(db.apply("queue", 1, events)?.skipped, 2);
    /// assert_eq!(db.position("queue")?, Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Apply`] names the position and the cause: it stops before the first bad event and
    /// keeps what came before. [`Error::SourceReplaced`] if the digest differs and
    /// [`Error::BeforeSource`] for a delivery from before the source's first position, before anything
    /// is applied.
    pub fn apply(
        &self,
        source: &str,
        first_position: u64,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<ApplyReport> {
        check_source_name(source)?;
        self.inner.log.check_writable()?;
        let mut delivery = Delivery {
            source_name: source,
            first_position,
            next_position: first_position,
            from_start: Some([0; 32]),
            now_ns: 0,
            report: ApplyReport::default(),
        };
        let mut events = events.into_iter();
        loop {
            let chunk: Vec<Event> = events.by_ref().take(CHUNK_EVENTS).collect();
            let is_last = chunk.len() < CHUNK_EVENTS;
            delivery.now_ns = self.now_ns();
            self.apply_chunk(&mut delivery, &chunk)?;
            if is_last {
                break;
            }
        }
        delivery.report.position = self.inner.log.durable_position(source);
        Ok(delivery.report)
    }

    /// The position that `source` has reached on disk; `None` if nothing of it was applied.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub fn position(&self, source: &str) -> Result<Option<u64>> {
        self.inner.log.check_open()?;
        Ok(self.inner.log.durable_position(source))
    }

    /// Applies one chunk and commits it. An error is wrapped with the position it belongs to.
    fn apply_chunk(&self, delivery: &mut Delivery<'_>, events: &[Event]) -> Result<()> {
        let _source_turn = self.inner.source_turns.take(&delivery.source_name.to_owned());
        let known_first = self.inner.log.reached(delivery.source_name).map(|reached| reached.first_position);
        if let Some(known_first) = known_first {
            if delivery.first_position < known_first {
                // To skip what was never applied would lose it in silence.
                return Err(Error::BeforeSource {
                    source_name: delivery.source_name.to_owned(),
                    first_position: delivery.first_position,
                    known_first,
                });
            }
            if delivery.first_position > known_first {
                delivery.from_start = None;
            }
        }
        let mut chunk = OpenChunk::default();
        let mut outcome = Ok(());
        for event in events {
            outcome = self.apply_event(delivery, &mut chunk, event);
            if outcome.is_err() {
                break;
            }
        }
        // What came before a bad event is kept, and its transitions are settled in any case.
        let committed = self.commit_chunk(&mut chunk);
        let followed = self.inner.log.wait_for_checkpoint();
        // A bad event is the cause only where what came before it is on disk.
        committed.and(outcome).and(followed).map_err(|cause| self.stopped(delivery, cause))
    }

    fn stopped(&self, delivery: &Delivery<'_>, cause: Error) -> Error {
        if matches!(cause, Error::SourceReplaced { .. }) {
            return cause;
        }
        let mut report = delivery.report;
        report.position = self.inner.log.durable_position(delivery.source_name);
        Error::Apply {
            source_name: delivery.source_name.to_owned(),
            position: delivery.next_position,
            report: Box::new(report),
            cause: Box::new(cause),
        }
    }

    fn apply_event<'a>(
        &'a self,
        delivery: &mut Delivery<'_>,
        chunk: &mut OpenChunk<'a>,
        event: &Event,
    ) -> Result<()> {
        let position = delivery.next_position;
        // The last position there can be has no next one, so it is never given to an event.
        let next_position = position.checked_add(1).ok_or_else(|| Error::PositionOverflow {
            source_name: delivery.source_name.to_owned(),
            first_position: delivery.first_position,
        })?;
        let reached = self.inner.log.reached(delivery.source_name);
        if let Some(digest) = &mut delivery.from_start {
            *digest = next_digest(digest, position, event);
        }
        if let Some(reached) = reached
            && position <= reached.position
        {
            let differs = delivery.from_start.is_some_and(|digest| digest != reached.digest);
            if position == reached.position && differs {
                return Err(Error::SourceReplaced { source_name: delivery.source_name.to_owned(), position });
            }
            delivery.report.skipped += 1;
            delivery.next_position = next_position;
            return Ok(());
        }
        self.check_not_ahead(event.at_ns, delivery.now_ns)?;
        // A delivery from the start has the digest already: up to here it was compared.
        let digest = delivery.from_start.unwrap_or_else(|| {
            let before = reached.map_or([0; 32], |reached| reached.digest);
            next_digest(&before, position, event)
        });
        let origin = Origin {
            source_name: delivery.source_name,
            first_position: delivery.first_position,
            position,
            digest,
        };
        self.apply_action(delivery, chunk, event, &origin)?;
        delivery.report.applied += 1;
        delivery.next_position = next_position;
        Ok(())
    }

    fn apply_action<'a>(
        &'a self,
        delivery: &mut Delivery<'_>,
        chunk: &mut OpenChunk<'a>,
        event: &Event,
        origin: &Origin<'_>,
    ) -> Result<()> {
        let at_ns = event.at_ns;
        let origin = Some(origin);
        match &event.action {
            Action::SetAttribute { user, name, value } => {
                self.stage_attribute(*user, name, value, at_ns, origin)?;
            }
            Action::Join { user, community } => {
                self.stage_join(*user, *community, at_ns, origin)?;
            }
            Action::Quit { user, community } => {
                self.stage_quit(*user, *community, at_ns, origin)?;
            }
            Action::Leave { user } => {
                self.take_turn(chunk, *user)?;
                let asked = self.stage_leave(*user, at_ns, origin)?;
                keep_staged(chunk, *user, asked);
            }
            Action::Rejoin { user } => {
                self.take_turn(chunk, *user)?;
                let asked = self.stage_rejoin(*user, at_ns, origin)?;
                keep_staged(chunk, *user, asked);
            }
            Action::Signal { user, item, signal_type, weight } => {
                let declared = self.resolve_signal_type(signal_type)?;
                // A rejoin opens the gate only once it is on disk, and a leave settles a damaged record only then.
                let waits = |staged: &StagedTransition| {
                    staged.membership.status == MembershipStatus::Active
                        || self.inner.gate.damaged(*user).is_some()
                };
                if chunk.staged.get(user).is_some_and(waits) {
                    self.commit_chunk(chunk)?;
                }
                let signal = ResolvedSignal {
                    user: *user,
                    item: *item,
                    signal_type: declared.id,
                    event_time: EventTime::At(at_ns),
                    contribution: declared.contribution(*weight, at_ns),
                };
                let (receipt, staged) = self.record_signal(&signal, origin)?;
                self.inner.aggregates.keep_up(&self.inner.log, staged.additions_waiting)?;
                match receipt.withheld {
                    Some(reason) => delivery.report.withheld.add(reason),
                    None => delivery.report.forwarded += 1,
                }
            }
            other => return Err(Error::UnknownAction { action: format!("{other:?}") }),
        }
        Ok(())
    }

    /// Takes the turn of `user_id` for the rest of the chunk. Waits for it only with no other turn
    /// in hand, so two deliveries cannot wait for each other.
    fn take_turn<'a>(&'a self, chunk: &mut OpenChunk<'a>, user_id: u64) -> Result<()> {
        if chunk.staged.contains_key(&user_id) {
            self.commit_chunk(chunk)?;
        }
        if chunk.held.contains(&user_id) {
            return Ok(());
        }
        let turn = if let Some(turn) = self.inner.transition_turns.try_take(&user_id) {
            turn
        } else {
            self.commit_chunk(chunk)?;
            self.inner.transition_turns.take(&user_id)
        };
        chunk.turns.push(turn);
        chunk.held.insert(user_id);
        Ok(())
    }

    /// Commits everything staged so far, publishes the chunk's transitions and gives back its turns.
    fn commit_chunk(&self, chunk: &mut OpenChunk<'_>) -> Result<()> {
        let outcome = self.inner.log.flush();
        for (_, staged) in chunk.staged.drain() {
            self.settle_transition(&staged, outcome.is_ok());
        }
        chunk.turns.clear();
        chunk.held.clear();
        outcome
    }
}

fn keep_staged(chunk: &mut OpenChunk<'_>, user_id: u64, asked: Asked) {
    match asked {
        Asked::Unchanged(..) => {}
        Asked::Staged(staged) => {
            chunk.staged.insert(user_id, staged);
        }
    }
}
