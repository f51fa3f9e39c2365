//! The database under test: takes each step, and is compared with the reference after it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use tidal_db::{Config, Durability, Error, ManualClock, Scope, Storage, TidalDb, Weight, Window};
use tidal_keys::{EntityId, Tag, encode_key};
use tidal_storage::WriteBatch;

use super::answers::{as_answered, is_of_the_disk, make};
use super::calls::{Answer, Call};
use super::compare::{Same, ok, same, same_all, same_sequences};
use super::disk::{ALL, Disk};
use super::oracle::{Damage, MADE_UP_LEFT_AT_NS, Oracle, User};
use super::reference::{Expected, Reference, World};
use super::refused::refuse;
use super::transitions::Step;
use super::views::{self, View};
use super::world::{
    ALLOWED_SKEW_NS, FIRST_NOW_NS, ITEMS, Mode, SOURCES, USERS, grown_schema, other_schema, schema,
    schema_of, scopes,
};

/// How many signals may be at risk under [`Mode::BatchedByThree`].
const AT_RISK: usize = 3;

pub struct System {
    mode: Mode,
    disk: Arc<Disk>,
    /// None while it is closed.
    db: Option<TidalDb>,
    clock: Arc<ManualClock>,
    /// The last sequence that was said to be on disk, which every open finds.
    durable_sequence: u64,
    /// How often it was opened: every other time without the integrity check.
    opens: u64,
    /// Which of the possible states each restart so far left.
    kept: Vec<usize>,
    sequences: RefCell<BTreeMap<usize, u64>>,
}

/// One way to be durable, tried in sequences.
#[derive(Debug)]
pub struct Sequences<const BATCHED: bool>;

impl<const BATCHED: bool> StateMachineTest for Sequences<BATCHED> {
    type SystemUnderTest = System;
    type Reference = Reference<BATCHED>;

    fn init_test(expected: &Expected) -> System {
        System::start(expected.mode).unwrap_or_else(|said| panic!("at the start:\n{said}"))
    }

    fn apply(mut system: System, expected: &Expected, step: Step) -> System {
        if let Err(said) = system.take(expected, &step) {
            panic!("in {step:?}:\n{said}");
        }
        system
    }

    fn check_invariants(system: &System, expected: &Expected) {
        if let Err(said) = system.compare(expected) {
            panic!("after the step:\n{said}");
        }
    }

    fn teardown(mut system: System, mut expected: Expected) {
        for step in [Step::Crash { kept: ALL }, Step::Verify, Step::Close] {
            expected = Reference::<BATCHED>::apply(expected, &step);
            system = Self::apply(system, &expected, step);
            Self::check_invariants(&system, &expected);
        }
    }
}

fn config(mode: Mode, clock: &Arc<ManualClock>) -> Config {
    let config = TidalDb::builder()
        .clock(Arc::<ManualClock>::clone(clock))
        .allowed_skew(Duration::from_nanos(ALLOWED_SKEW_NS))
        // Small enough for sequences to reach a checkpoint or two.
        .recovery_entries(12)
        // And runs that are merged.
        .run_entries(2);
    let config = config.durability(match mode {
        Mode::Immediate => Durability::Immediate,
        Mode::BatchedForEver => Durability::Batched { max_events: 1_000_000, max_delay: Duration::MAX },
        Mode::BatchedByThree => {
            Durability::Batched { max_events: AT_RISK, max_delay: Duration::from_millis(1) }
        }
    });
    super::broken::adapt(config)
}

impl System {
    fn start(mode: Mode) -> Same<Self> {
        let disk = Arc::new(Disk::default());
        let clock = Arc::new(ManualClock::new(FIRST_NOW_NS));
        let storage = ok("create_on", Storage::options().create_on(disk.clone(), WriteBatch::new()))?;
        let db = ok("from_parts", TidalDb::from_parts(storage, config(mode, &clock).schema(schema())))?;
        Ok(Self {
            mode,
            disk,
            db: Some(db),
            clock,
            durable_sequence: 0,
            opens: 0,
            kept: Vec::new(),
            sequences: RefCell::default(),
        })
    }

    fn db(&self) -> &TidalDb {
        self.db.as_ref().expect("it is open between steps")
    }

    fn compare(&self, expected: &Expected) -> Same {
        let oracle = &expected.world(&self.kept).oracle;
        same_all(self.db(), oracle, expected.now_ns)?;
        same_sequences(self.db(), oracle, &mut self.sequences.borrow_mut())
    }

    fn take(&mut self, expected: &Expected, step: &Step) -> Same {
        match step {
            Step::Clock(now_ns) => {
                self.clock.set(*now_ns);
                Ok(())
            }
            Step::Call(call) => {
                let answer = &expected.world(&self.kept).answer;
                as_answered(make(self.db(), call, answer), answer)
            }
            Step::Refused(bad) => refuse(self.db(), *bad),
            Step::Verify => {
                let found = ok("verify", self.db().verify())?.differences;
                let damaged = expected.world(&self.kept).oracle.damaged();
                same(|| format!("whether {found:?} is nothing"), &found.is_empty(), &damaged.is_empty())
            }
            Step::Close => {
                self.close()?;
                self.reopen(expected.world(&self.kept))
            }
            Step::RefusedOpen => {
                self.close()?;
                self.open_wrongly(expected.world(&self.kept).oracle.is_grown)?;
                self.reopen(expected.world(&self.kept))
            }
            Step::Grow => {
                self.close()?;
                let storage = self.open_storage()?;
                let config = self.config().schema(grown_schema()).extend_schema(true);
                self.db = Some(ok("from_parts", TidalDb::from_parts(storage, config))?);
                self.same_report(&expected.world(&self.kept).oracle)
            }
            Step::Rebuild { damaged } => {
                self.close()?;
                if let Some(view) = damaged {
                    self.damage_view(*view)?;
                }
                let storage = self.open_storage()?;
                let config = self.config().rebuild(true);
                self.db = Some(ok("from_parts", TidalDb::from_parts(storage, config))?);
                self.same_report(&expected.world(&self.kept).oracle)
            }
            Step::Drop => {
                self.durable_sequence = self.db().durable_sequence();
                self.set_aside();
                self.reopen(expected.world(&self.kept))
            }
            Step::Damage { user, damage } => {
                self.durable_sequence = self.db().durable_sequence();
                self.set_aside();
                self.damage(&expected.world(&self.kept).oracle.user(*user), *user, *damage)?;
                self.reopen(expected.world(&self.kept))
            }
            Step::Crash { kept } => self.crash(expected, *kept, false),
            Step::FailingDisk { nth, for_good, call, kept } => {
                self.disk.fail_at(*nth, *for_good);
                // Every state has the same answer for a call that is not interrupted.
                let states = expected.after(&self.kept);
                let answer = &states.first().ok_or("a restart leaves some state")?.answer;
                let said = make(self.db(), call, answer);
                let acknowledged = match &said {
                    said if said.is_err_and(is_of_the_disk) => {
                        same(
                            || format!("whether the disk failed before {said:?}"),
                            &self.disk.struck(),
                            &true,
                        )?;
                        self.shut_after(call)?;
                        false
                    }
                    _ => {
                        as_answered(said, answer)?;
                        answer.is_durable(self.mode)
                    }
                };
                self.crash(expected, *kept, acknowledged)
            }
        }
    }

    /// Drops the database, which brings everything to disk.
    fn set_aside(&mut self) {
        drop(self.db.take());
    }

    fn close(&mut self) -> Same {
        let clone = self.db().clone();
        ok("close", self.db().clone().close())?;
        self.durable_sequence = clone.durable_sequence();
        let (global, weight) = (Scope::Global, Weight::ONE);
        let closed = [
            ("signal", clone.signal(USERS[0], ITEMS[0], "view", 1.0).err()),
            ("signal_at", clone.signal_at(USERS[0], ITEMS[0], "view", 1.0, 1).err()),
            ("signal_exact", clone.signal_exact(USERS[0], ITEMS[0], "view", weight, None).err()),
            ("leave", clone.leave_community_layer(USERS[1]).err()),
            ("rejoin", clone.rejoin_community_layer(USERS[0]).err()),
            ("repair", clone.repair_community_layer(USERS[0]).err()),
            ("join", clone.join_community(USERS[0], 77).err()),
            ("quit", clone.quit_community(USERS[0], 77).err()),
            ("attribute", clone.set_user_attribute(USERS[0], "region", "Nowhere").err()),
            ("apply", clone.apply(SOURCES[0], 1_000, []).err()),
            ("position", clone.position(SOURCES[0]).err()),
            ("aggregate", clone.aggregate(&Scope::Global, ITEMS[0], "view").err()),
            ("aggregates", clone.aggregates(None).err()),
            ("aggregates_at", clone.aggregates_at(None, u64::MAX).err()),
            ("aggregate_window", clone.aggregate_window(&global, ITEMS[0], "like", Window::Day).err()),
            ("top_items", clone.top_items(&Scope::Global, "view", 1).err()),
            ("top_items_at", clone.top_items_at(&global, "view", 1, u64::MAX).err()),
            ("history", clone.history(USERS[0]).err()),
            ("membership_history", clone.membership_history(USERS[0]).err()),
            ("verify", clone.verify().err()),
            ("flush", clone.flush().err()),
            ("close", clone.close().err()),
        ];
        for (call, error) in closed {
            if !matches!(error, Some(Error::Closed)) {
                return Err(format!("{call} on a closed database ended with {error:?}"));
            }
        }
        Ok(())
    }

    fn open_storage(&mut self) -> Same<Storage> {
        self.set_aside();
        self.opens += 1;
        let options = Storage::options().check_integrity(self.opens.is_multiple_of(2));
        ok("open_on", options.open_on(self.disk.clone()))
    }

    /// How it is opened, without a schema.
    fn config(&self) -> Config {
        config(self.mode, &self.clock).expect_at_least(self.durable_sequence)
    }

    /// Damages a view while the database is closed. The open says so, or a history of those that need it.
    fn damage_view(&mut self, view: View) -> Same {
        let storage = self.open_storage()?;
        let is_damaged = views::damage(&storage, view)?;
        ok("close", storage.close())?;
        let storage = self.open_storage()?;
        let error = match TidalDb::from_parts(storage, self.config()) {
            Err(error) => Some(error),
            Ok(db) => USERS
                .into_iter()
                .find_map(|user| db.history(user).and_then(Iterator::collect::<Result<Vec<_>, _>>).err()),
        };
        let is_named = error.as_ref().is_some_and(views::is_of_a_view);
        // A row of a run that was merged into another is needed by nobody.
        if is_named == is_damaged || view == View::RunRow && error.is_none() {
            return Ok(());
        }
        Err(format!("a damaged {view:?} ({is_damaged}) ended with {error:?}"))
    }

    /// Opens that must be refused, and change nothing.
    fn open_wrongly(&mut self, is_grown: bool) -> Same {
        let storage = self.open_storage()?;
        let other = if is_grown { schema() } else { grown_schema() };
        let differs = TidalDb::from_parts(storage.clone(), self.config().schema(other));
        if !matches!(differs, Err(Error::SchemaDiffers { .. })) {
            return Err(format!("a schema that has or lacks something ended with {differs:?}"));
        }
        let differs =
            TidalDb::from_parts(storage.clone(), config(self.mode, &self.clock).schema(other_schema()));
        if !matches!(differs, Err(Error::SchemaDiffers { .. })) {
            return Err(format!("another schema ended with {differs:?}"));
        }
        let found_sequence = self.durable_sequence;
        for expected_sequence in [found_sequence + 1, u64::MAX] {
            let behind =
                TidalDb::from_parts(storage.clone(), self.config().expect_at_least(expected_sequence));
            let is_refused = matches!(
                behind,
                Err(Error::BehindExpected { expected, found })
                    if (expected, found) == (expected_sequence, found_sequence)
            );
            if !is_refused {
                return Err(format!("a file that ends at {found_sequence} ended with {behind:?}"));
            }
        }
        Ok(())
    }

    /// Opens what is on the disk, which must be `world`.
    fn reopen(&mut self, world: &World) -> Same {
        self.open(world.oracle.recorded.is_multiple_of(2).then_some(world.oracle.is_grown))?;
        self.same_report(&world.oracle)
    }

    /// The schema, grown or not, may be given or not.
    fn open(&mut self, with_schema: Option<bool>) -> Same {
        let storage = self.open_storage()?;
        let mut config = self.config();
        if let Some(is_grown) = with_schema {
            config = config.schema(schema_of(is_grown));
        }
        self.db = Some(ok("from_parts", TidalDb::from_parts(storage, config))?);
        Ok(())
    }

    fn same_report(&self, oracle: &Oracle) -> Same {
        let report = self.db().open_report();
        let damaged: Vec<_> = report.damaged.iter().map(|record| record.user_id).collect();
        same(|| "the open report's damaged".to_owned(), &damaged, &oracle.damaged())?;
        let sound_records = oracle.sound_records() as u64;
        same(|| "the open report's sound_records".to_owned(), &report.sound_records, &sound_records)
    }

    /// The process dies; of the file is left what was synced, and some of the rest. Finds out which of the
    /// possible states that is. What was `acknowledged` as durable is there in any case.
    fn crash(&mut self, expected: &Expected, kept: u64, acknowledged: bool) -> Same {
        // Every open of the model refuses a file that ends before it.
        self.durable_sequence = self.db().durable_sequence();
        self.disk = Arc::new(self.disk.after_crash(kept));
        let states = expected.after(&self.kept);
        // A schema grows while nothing is at risk, so all states have the same.
        let is_grown = states.first().ok_or("a restart leaves some state")?.oracle.is_grown;
        self.open(kept.is_multiple_of(2).then_some(is_grown))?;
        let first = if acknowledged { states.len() - 1 } else { 0 };
        let mut said = Vec::new();
        let is_what = |oracle: &Oracle| {
            same_all(self.db(), oracle, expected.now_ns).and_then(|()| self.same_report(oracle))
        };
        let is_so = |state: &&World| match is_what(&state.oracle) {
            Ok(()) => true,
            Err(differs) => {
                said.push(differs);
                false
            }
        };
        let Some(left) = states[first..].iter().copied().find(is_so) else {
            let said = said.join("\nor\n");
            return Err(format!("what survived is none of {} states:\n{said}", states.len() - first));
        };
        let lost = states.last().map_or(0, |last| last.oracle.recorded - left.oracle.recorded);
        if self.mode == Mode::BatchedByThree && matches!(left.answer, Answer::Done) && lost > AT_RISK {
            return Err(format!("a crash took {lost} signals, and at most {AT_RISK} may be at risk"));
        }
        self.kept.clone_from(&left.kept);
        self.sequences.borrow_mut().retain(|place, _| *place < left.oracle.recorded);
        Ok(())
    }

    /// A leave that failed shuts the gate, and nothing is written after a failed commit.
    fn shut_after(&self, call: &Call) -> Same {
        if self.db().flush().is_ok() {
            // It was a read that failed: nothing was written, and everything can be.
            return Ok(());
        }
        for (call, answer) in [
            ("join", self.db().join_community(USERS[1], 77).err()),
            ("leave", self.db().leave_community_layer(USERS[2]).err()),
            ("apply", self.db().apply(SOURCES[0], 1_000, []).err()),
        ] {
            if !answer.as_ref().is_some_and(is_of_the_disk) {
                return Err(format!("{call} after a failed commit ended with {answer:?}"));
            }
        }
        let (Call::Leave { user } | Call::Repair { user }) = call else { return Ok(()) };
        let is_left = self.db().left_users().iter().any(|left| left.user_id == *user);
        if matches!(call, Call::Leave { .. }) {
            same(|| format!("whether {user} is out after a leave that failed"), &is_left, &true)?;
        }
        if !is_left {
            return Ok(());
        }
        let before = layer_counts(self.db())?;
        let signal = self.db().signal(*user, ITEMS[0], "view", 1.0);
        if signal.is_ok() {
            return Err(format!("a signal after a failed commit ended with {signal:?}"));
        }
        same(
            || "what the layer holds after a leave that failed".to_owned(),
            &layer_counts(self.db())?,
            &before,
        )
    }

    fn damage(&self, truth: &User, user: u64, damage: Damage) -> Same {
        let storage = ok("open_on", Storage::options().open_on(self.disk.clone()))?;
        let key = encode_key(EntityId::new(user), Tag::CommunityLeave, b"");
        let users = storage.users_engine();
        // The opposite of what the transitions say.
        let status = u8::from(!truth.has_left());
        let left_at_ns = truth.last_leave_ns().unwrap_or(MADE_UP_LEFT_AT_NS);
        let record = |status: u8| [&[status][..], &left_at_ns.to_le_bytes()].concat();
        let changed = match damage {
            Damage::CutShort => users.put(key.as_ref(), &record(0)[..8]),
            Damage::BadStatus => users.put(key.as_ref(), &record(2)),
            Damage::Flipped => users.put(key.as_ref(), &record(status)),
            Damage::Missing => users.delete(key.as_ref()),
        };
        ok("the damage", changed)?;
        ok("close", storage.close())
    }
}

/// How many signals each cohort and community took.
fn layer_counts(db: &TidalDb) -> Same<Vec<u64>> {
    let mut counts = Vec::new();
    for scope in scopes(false).iter().filter(|scope| **scope != Scope::Global) {
        for item in ITEMS {
            counts.push(ok("aggregate", db.aggregate(scope, item, "view"))?.map_or(0, |taken| taken.count));
        }
    }
    Ok(counts)
}
