//! The histories of leaves and rejoins as an open reads them: beside the leave records and in step with them, none of
//! them kept.

use std::vec;

use tidal_entities::community::CommunityMembership;
use tidal_entities::{AwayPeriods, Fingerprint, Transition, decode_transition, parse_transition_key};
use tidal_keys::Tag;
use tidal_storage::{Scan, Storage};

use crate::record_check::record_after;
use crate::sync::mpsc::{Receiver, SyncSender, sync_channel};
use crate::sync::thread;
use crate::{Error, Result};

/// Users whose histories are handed over at once. Where there are no more, no thread is started for them.
const BATCH_USERS: usize = if cfg!(shuttle) { 1 } else { 4096 };

/// Batches that may wait for the leave records.
const WAITING_BATCHES: usize = 4;

/// What all histories came to.
#[derive(Debug)]
pub(crate) struct ReadHistories {
    /// Whether every history decodes and is what the user's record says, and no record is without one.
    pub(crate) agree: bool,
    /// The closed away periods of all users who have any.
    pub(crate) away: Vec<(u64, AwayPeriods)>,
    /// Of all transitions, and of what was found before.
    pub(crate) fingerprint: Fingerprint,
}

/// Reads the history of every user, and compares it with the record of the same user that `read_records` shows; it
/// shows all of them, in the order of their ids.
pub(crate) fn read_beside_histories<R>(
    storage: &Storage,
    found: Fingerprint,
    read_records: impl FnOnce(&mut dyn FnMut(CommunityMembership)) -> Result<R>,
) -> Result<(R, ReadHistories)> {
    let begun =
        HistoryReader::begin(storage, found).and_then(|(first, reader)| Histories::begin(first, reader));
    match begun {
        Ok(mut histories) => {
            let records = read_records(&mut |record| histories.compare(record));
            let histories = histories.end();
            Ok((records?, histories?))
        }
        // What is wrong with the records is said first, however far the histories came.
        Err(error) => read_records(&mut |_| ()).and(Err(error)),
    }
}

/// What the histories say of the records, as the records come.
struct Histories {
    ready: vec::IntoIter<CommunityMembership>,
    rest: Rest,
    agree: bool,
}

/// What comes after the batch at hand.
enum Rest {
    Nothing(ReadHistories),
    Later { batches: Receiver<Vec<CommunityMembership>>, reader: thread::JoinHandle<Result<ReadHistories>> },
}

impl Histories {
    fn begin(first: Vec<CommunityMembership>, reader: HistoryReader) -> Result<Self> {
        let rest = if reader.is_at_end() {
            Rest::Nothing(reader.read)
        } else {
            let (sender, batches) = sync_channel(WAITING_BATCHES);
            let work = move || reader.read_on(&sender);
            let thread = thread::Builder::new().name("tidal-histories".to_owned());
            Rest::Later { batches, reader: thread.spawn(work).map_err(Error::Thread)? }
        };
        Ok(Self { ready: first.into_iter(), rest, agree: true })
    }

    /// What the next history says that the record of its user is.
    fn next(&mut self) -> Option<CommunityMembership> {
        if let Some(next) = self.ready.next() {
            return Some(next);
        }
        let Rest::Later { batches, .. } = &self.rest else { return None };
        self.ready = batches.recv().ok()?.into_iter();
        self.ready.next()
    }

    /// Histories and records are in the order of users, so what is not said of the same user is said of one who has
    /// only the one or the other.
    fn compare(&mut self, record: CommunityMembership) {
        self.agree = self.agree && self.next() == Some(record);
    }

    fn end(mut self) -> Result<ReadHistories> {
        let agree = self.agree && self.next().is_none();
        let read = match self.rest {
            Rest::Nothing(read) => read,
            Rest::Later { batches, reader } => {
                // Also where they disagree: the fingerprint is of all of them.
                while batches.recv().is_ok() {}
                reader.join().unwrap_or(Err(Error::ThreadPanicked))?
            }
        };
        Ok(ReadHistories { agree: agree && read.agree, ..read })
    }
}

/// Reads histories user by user.
struct HistoryReader {
    rows: Scan,
    read: ReadHistories,
    /// Whose history is being read, unless the end is reached.
    current: Option<u64>,
    history: Vec<Transition>,
}

impl HistoryReader {
    fn begin(storage: &Storage, found: Fingerprint) -> Result<(Vec<CommunityMembership>, Self)> {
        let mut reader = Self {
            rows: storage.users_engine().scan_tag(Tag::CommunityTransition)?,
            read: ReadHistories { agree: true, away: Vec::new(), fingerprint: found },
            current: None,
            history: Vec::new(),
        };
        let first = reader.next_batch()?;
        Ok((first, reader))
    }

    fn is_at_end(&self) -> bool {
        self.current.is_none()
    }

    /// Reads to the end, unless nobody listens any more.
    fn read_on(mut self, batches: &SyncSender<Vec<CommunityMembership>>) -> Result<ReadHistories> {
        while !self.is_at_end() {
            let batch = self.next_batch()?;
            if batches.send(batch).is_err() {
                break;
            }
        }
        Ok(self.read)
    }

    /// What the next histories say that the records of their users are.
    fn next_batch(&mut self) -> Result<Vec<CommunityMembership>> {
        let mut batch = Vec::with_capacity(BATCH_USERS);
        while batch.len() < BATCH_USERS {
            let Some((key, value)) = self.rows.next_row()? else {
                batch.extend(self.current.take().map(|last| take_in(&mut self.read, last, &self.history)));
                break;
            };
            let decoded = decode_transition(key, value);
            let user_id = match &decoded {
                Ok((user_id, _)) => *user_id,
                // The user is in the key; if even that is unreadable, nobody knows whose gate to shut.
                Err(_) => {
                    parse_transition_key(key)
                        .map_err(|cause| {
                            Error::undecodable("the key of a transition does not decode", cause)
                        })?
                        .0
                }
            };
            if let Some(before) = self.current.replace(user_id)
                && before != user_id
            {
                batch.push(take_in(&mut self.read, before, &self.history));
                self.history.clear();
            }
            match decoded {
                Ok((_, transition)) => {
                    self.read.fingerprint.add_stored_transition(key, value);
                    self.history.push(transition);
                }
                Err(_) => self.read.agree = false,
            }
        }
        Ok(batch)
    }
}

fn take_in(read: &mut ReadHistories, user_id: u64, history: &[Transition]) -> CommunityMembership {
    let periods = AwayPeriods::from_history(history);
    if !periods.is_empty() {
        read.away.push((user_id, periods));
    }
    record_after(user_id, history)
}
