//! Runs a script on a database and on the oracle, and compares them after every step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidal_db::{Action, Config, Durability, Error, Event, ManualClock, Scope, Storage, TidalDb};
use tidal_storage::{MemoryMedium, WriteBatch};

use crate::compare::{Same, history, membership, ok, same, same_all, same_counts, same_sequences};
use crate::oracle::{Applied, Oracle, Refusal, Report, When, type_index};
use crate::steps::{Mode, Script, Step};
use crate::world::{ALLOWED_SKEW_NS, BAD_WEIGHTS, FIRST_NOW_NS, ITEMS, SOURCES, USERS, WEIGHTS, schema};

/// A database, what it should be, and what of that a crash may take.
struct Run {
    mode: Mode,
    medium: Arc<MemoryMedium>,
    db: TidalDb,
    clock: Arc<ManualClock>,
    now_ns: u64,
    oracle: Oracle,
    /// The state at the last durable call, and after each call since. A crash leaves one of them.
    may_be_left: Vec<Oracle>,
    sequences: BTreeMap<usize, u64>,
}

/// Runs a script; answers what differed, if anything.
pub fn run(script: &Script) -> Same {
    let mut run = Run::start(script.mode)?;
    for (number, step) in script.steps.iter().enumerate() {
        let taken = run.take(step).and_then(|()| run.compare());
        taken.map_err(|said| format!("after step {number}, {step:?}:\n{said}"))?;
    }
    run.take(&Step::Crash)
        .and_then(|()| run.compare())
        .map_err(|said| format!("after a last crash:\n{said}"))?;
    run.take(&Step::Close).and_then(|()| run.compare()).map_err(|said| format!("after a last close:\n{said}"))
}

fn config(mode: Mode, clock: &Arc<ManualClock>) -> Config {
    let config = TidalDb::builder()
        .clock(Arc::<ManualClock>::clone(clock))
        .allowed_skew(Duration::from_nanos(ALLOWED_SKEW_NS))
        // Small enough for scripts to reach a checkpoint or two.
        .recovery_entries(12)
        // And runs that are merged.
        .run_entries(2);
    config.durability(match mode {
        Mode::Immediate => Durability::Immediate,
        Mode::BatchedForEver => Durability::Batched { max_events: 1_000_000, max_delay: Duration::MAX },
        Mode::BatchedByThree => Durability::Batched { max_events: 3, max_delay: Duration::from_millis(1) },
    })
}

fn weight_nanos(weight: f64) -> Option<i64> {
    WEIGHTS.iter().find(|(known, _)| known.total_cmp(&weight).is_eq()).map(|(_, nanos)| *nanos)
}

fn refusal(error: &Error) -> Option<Refusal> {
    match error {
        Error::Weight(_) => Some(Refusal::Weight),
        Error::TooFarAhead { .. } => Some(Refusal::Ahead),
        Error::UndeclaredSignalType { .. } => Some(Refusal::SignalType),
        Error::Limit(_) => Some(Refusal::Limit),
        _ => None,
    }
}

/// The call was refused, for one of `reasons`.
fn refused<T: std::fmt::Debug>(result: tidal_db::Result<T>, reasons: &[Refusal]) -> Same {
    let error = result.err();
    match error.as_ref().and_then(refusal) {
        Some(reason) if reasons.contains(&reason) => Ok(()),
        _ => Err(format!("the call ended with {error:?}, and should be refused for one of {reasons:?}")),
    }
}

fn same_report(report: tidal_db::ApplyReport, should_be: Report) -> Same {
    let shown = (report.applied, report.skipped, report.forwarded, report.position);
    let expected = (should_be.applied, should_be.skipped, should_be.forwarded, should_be.position);
    same(|| "the report (applied, skipped, forwarded, position)".to_owned(), &shown, &expected)?;
    same_counts("the report's withheld", report.withheld, should_be.withheld)
}

impl Run {
    fn start(mode: Mode) -> Same<Self> {
        let medium = Arc::new(MemoryMedium::default());
        let clock = Arc::new(ManualClock::new(FIRST_NOW_NS));
        let storage = ok("create_on", Storage::options().create_on(medium.clone(), WriteBatch::new()))?;
        let db = ok("from_parts", TidalDb::from_parts(storage, config(mode, &clock).schema(schema())))?;
        let oracle = Oracle::default();
        let may_be_left = vec![oracle.clone()];
        let sequences = BTreeMap::new();
        Ok(Self { mode, medium, db, clock, now_ns: FIRST_NOW_NS, oracle, may_be_left, sequences })
    }

    fn compare(&mut self) -> Same {
        same_all(&self.db, &self.oracle, self.now_ns)?;
        same_sequences(&self.db, &self.oracle, &mut self.sequences)
    }

    /// All that was done so far is on disk.
    fn durable(&mut self) {
        self.may_be_left = vec![self.oracle.clone()];
    }

    fn signalled(&mut self) {
        self.may_be_left.push(self.oracle.clone());
        if self.mode == Mode::Immediate {
            self.durable();
        }
    }

    fn take(&mut self, step: &Step) -> Same {
        match step {
            Step::Clock(now_ns) => {
                self.now_ns = *now_ns;
                self.clock.set(*now_ns);
                Ok(())
            }
            Step::Join { user, community } => {
                ok("join", self.db.join_community(*user, *community))?;
                self.oracle.join(*user, *community, self.now_ns);
                self.durable();
                Ok(())
            }
            Step::Quit { user, community } => {
                ok("quit", self.db.quit_community(*user, *community))?;
                self.oracle.quit(*user, *community, self.now_ns);
                self.durable();
                Ok(())
            }
            Step::Attribute { user, name, value } => {
                let set = self.db.set_user_attribute(*user, name, value);
                if let Err(reason) = self.oracle.set_attribute(*user, name, value, self.now_ns) {
                    return refused(set, &[reason]);
                }
                ok("set_user_attribute", set)?;
                self.durable();
                Ok(())
            }
            Step::Signal { user, item, signal_type, weight } => {
                let answer = self.db.signal(*user, *item, signal_type, *weight);
                self.signal(*user, *item, signal_type, *weight, When::Now(self.now_ns), answer)
            }
            Step::SignalAt { user, item, signal_type, weight, at_ns } => {
                let answer = self.db.signal_at(*user, *item, signal_type, *weight, *at_ns);
                self.signal(*user, *item, signal_type, *weight, When::At(*at_ns), answer)
            }
            Step::Leave { user } => {
                let answer = ok("leave", self.db.leave_community_layer(*user))?;
                self.oracle.leave(*user, self.now_ns);
                self.durable();
                same(|| "the answer".to_owned(), &answer, &membership(&self.oracle, *user))
            }
            Step::Rejoin { user } => {
                let answer = ok("rejoin", self.db.rejoin_community_layer(*user))?;
                self.oracle.rejoin(*user, self.now_ns);
                self.durable();
                same(|| "the answer".to_owned(), &answer, &membership(&self.oracle, *user))
            }
            Step::Deliver { source, first_position, events } => self.apply(source, *first_position, events),
            Step::Redeliver { source, from, new } => {
                let (first_position, events) = self.again(source, *from, new);
                self.apply(source, first_position, &events)
            }
            Step::Flush => {
                ok("flush", self.db.flush())?;
                self.durable();
                Ok(())
            }
            Step::Close => self.close(),
            Step::Drop => {
                let ephemeral = TidalDb::builder().schema(schema()).ephemeral().open();
                drop(std::mem::replace(&mut self.db, ok("open", ephemeral)?));
                self.durable();
                self.reopen()
            }
            Step::Crash => self.crash(),
        }
    }

    fn signal(
        &mut self,
        user: u64,
        item: u64,
        signal_type: &str,
        weight: f64,
        when: When,
        answer: tidal_db::Result<tidal_db::SignalReceipt>,
    ) -> Same {
        let mut reasons = Vec::new();
        if BAD_WEIGHTS.iter().any(|bad| bad.total_cmp(&weight).is_eq()) {
            reasons.push(Refusal::Weight);
        }
        if matches!(when, When::At(at_ns) if Oracle::is_ahead(at_ns, self.now_ns)) {
            reasons.push(Refusal::Ahead);
        }
        let (Some(signal_type), Some(weight_nanos), true) =
            (type_index(signal_type), weight_nanos(weight), reasons.is_empty())
        else {
            reasons.push(Refusal::SignalType);
            return refused(answer, &reasons);
        };
        let receipt = ok("signal", answer)?;
        let should_be = self.oracle.signal(user, item, signal_type, weight_nanos, when);
        self.signalled();
        let shown = (receipt.cohorts as usize, receipt.communities as usize, receipt.withheld);
        let expected = (should_be.cohorts, should_be.communities, should_be.withheld);
        same(|| "the receipt (cohorts, communities, withheld)".to_owned(), &shown, &expected)
    }

    fn apply(&mut self, source: &str, first_position: u64, events: &[Event]) -> Same {
        let answer = self.db.apply(source, first_position, events.to_vec());
        match (self.oracle.apply(source, first_position, events, self.now_ns), answer) {
            (Applied::Whole(should_be), answer) => {
                let report = ok("apply", answer)?;
                self.durable();
                same_report(report, should_be)
            }
            (
                Applied::Stopped { position: should_be, reasons, report: report_should_be },
                Err(Error::Apply { source_name, position, report, cause }),
            ) => {
                self.durable();
                same(|| "the source".to_owned(), &source_name.as_str(), &source)?;
                same(|| "the position it stopped at".to_owned(), &position, &should_be)?;
                refused::<()>(Err(*cause), &reasons)?;
                same_report(*report, report_should_be)
            }
            (Applied::Replaced { position: should_be }, Err(Error::SourceReplaced { position, .. })) => {
                same(|| "the position of the replaced source".to_owned(), &position, &should_be)
            }
            (Applied::Before, Err(Error::BeforeSource { .. })) => Ok(()),
            (should_be, answer) => {
                Err(format!("apply ended with\n    {answer:?}\nand should end with\n    {should_be:?}"))
            }
        }
    }

    /// What `source` delivered from its event number `from` on, and `new` after it. Positions that
    /// were left out are filled.
    fn again(&self, source: &str, from: usize, new: &[Event]) -> (u64, Vec<Event>) {
        let Some(known) = self.oracle.sources.get(source) else { return (3, new.to_vec()) };
        let (first_position, _) = known.applied[from % known.applied.len()];
        let by_position: BTreeMap<_, _> = known.applied.iter().cloned().collect();
        let filler = || Event { at_ns: 1, action: Action::Join { user: USERS[0], community: 0 } };
        let before = (first_position..=known.reached())
            .map(|position| by_position.get(&position).cloned().unwrap_or_else(filler));
        (first_position, before.chain(new.iter().cloned()).collect())
    }

    fn close(&mut self) -> Same {
        let clone = self.db.clone();
        ok("close", self.db.clone().close())?;
        let closed = [
            ("signal", clone.signal(USERS[0], ITEMS[0], "view", 1.0).err()),
            ("leave", clone.leave_community_layer(USERS[1]).err()),
            ("rejoin", clone.rejoin_community_layer(USERS[0]).err()),
            ("join", clone.join_community(USERS[0], 77).err()),
            ("apply", clone.apply(SOURCES[0], 1_000, []).err()),
            ("aggregates", clone.aggregates(None).err()),
            ("top_items", clone.top_items(&Scope::Global, "view", 1).err()),
            ("history", clone.history(USERS[0]).err()),
            ("flush", clone.flush().err()),
            ("close", clone.close().err()),
        ];
        for (call, error) in closed {
            if !matches!(error, Some(Error::Closed)) {
                return Err(format!("{call} on a closed database ended with {error:?}"));
            }
        }
        self.durable();
        self.reopen()
    }

    /// Opens what is on the medium; the schema may be given or not.
    fn reopen(&mut self) -> Same {
        let storage = ok("open_on", Storage::options().open_on(self.medium.clone()))?;
        let mut config = config(self.mode, &self.clock);
        if self.oracle.recorded.is_multiple_of(2) {
            config = config.schema(schema());
        }
        self.db = ok("from_parts", TidalDb::from_parts(storage, config))?;
        same(|| "the open report's damaged".to_owned(), &self.db.open_report().damaged, &Vec::new())?;
        let with_record =
            self.may_be_left[0].users.values().filter(|user| !user.transitions.is_empty()).count();
        let sound = self.db.open_report().sound_records;
        same(|| "the open report's sound_records".to_owned(), &sound, &(with_record as u64))
    }

    /// The process dies; the file is as it was at that moment.
    fn crash(&mut self) -> Same {
        let durable_sequence = self.db.durable_sequence();
        let image = self.medium.snapshot();
        self.medium = Arc::new(MemoryMedium::from_bytes(image));
        self.reopen()?;
        let last_sequence = self.db.open_report().last_sequence;
        if last_sequence < durable_sequence {
            return Err(format!("sequence {durable_sequence} was on disk, and {last_sequence} is the last"));
        }
        let mut signals = 0;
        for user in USERS {
            signals += history(&self.db, user)?.len();
        }
        let survived =
            |oracle: &Oracle| oracle.users.values().map(|user| user.history.len()).sum::<usize>() == signals;
        let calls = self.may_be_left.len() - 1;
        let Some(kept) = self.may_be_left.iter().position(survived) else {
            return Err(format!(
                "{signals} signals survived, which no prefix of the last {calls} calls explains"
            ));
        };
        let lost = calls - kept;
        if self.mode == Mode::BatchedByThree && lost > 3 {
            return Err(format!("a crash took {lost} signals, and at most 3 may be at risk"));
        }
        self.oracle = self.may_be_left.swap_remove(kept);
        self.sequences.retain(|place, _| *place < self.oracle.recorded);
        self.durable();
        Ok(())
    }
}
