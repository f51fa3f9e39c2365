//! The same programs on a disk that fails for good in the middle: nobody waits for ever, and nobody who asked to
//! leave passes the gate, whatever the answer was.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use tidal_interleavings::{Break, MembershipStatus, Storage, TidalDb};
use tidal_storage::{Medium, MemoryMedium};

use crate::act::Act;
use crate::program::{Mode, Program};
use crate::stage::{GLOBAL, ITEM, SCOPES, Seen, USERS, config_of, marks, ok, scopes};

/// The place of a community among the scopes.
const COMMUNITY: usize = SCOPES - 1;

/// A commit is some twenty operations, and shared ones are few.
const LATEST_FAILURE: i64 = 60;

/// Bytes that can be changed so many times more.
#[derive(Debug)]
struct Failing {
    bytes: MemoryMedium,
    // Not a step for the scheduler.
    left: AtomicI64,
}

impl Failing {
    fn change(&self) -> io::Result<()> {
        if self.left.fetch_sub(1, Ordering::SeqCst) > 0 { Ok(()) } else { Err(io::Error::other("it failed")) }
    }
}

impl Medium for Failing {
    fn len(&self) -> io::Result<u64> {
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.bytes.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change()?;
        self.bytes.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change()?;
        self.bytes.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change()?;
        self.bytes.write(offset, data)
    }
}

/// A call that wrote or was to write, and how it ended.
#[derive(Clone, Copy, Debug)]
struct Told {
    user: u64,
    act: Act,
    made_at: i64,
    returned_at: i64,
    is_ok: bool,
    /// Of a signal: the bit that it adds where it is taken, and whether it passed the gate.
    mark: u32,
    passed: bool,
    /// What a community had taken when a leave returned.
    at_return: u32,
}

impl Told {
    fn is_leave(&self) -> bool {
        act_is_leave(self.act)
    }

    /// Whether it may have opened the gate after `leave`.
    fn may_undo(&self, leave: &Self) -> bool {
        matches!(self.act, Act::Rejoin) && self.user == leave.user && self.returned_at > leave.made_at
    }
}

fn act_is_leave(act: Act) -> bool {
    matches!(act, Act::Leave)
}

struct Scene {
    db: TidalDb,
    now: AtomicI64,
    next_signal: AtomicI64,
    told: Mutex<Vec<Told>>,
}

impl Scene {
    fn call(&self, user: u64, act: Act) -> Seen {
        let made_at = self.now.fetch_add(1, Ordering::SeqCst);
        let (mut mark, mut passed) = (0, false);
        let is_ok = match act {
            Act::Signal { at_ns } => {
                mark = 1 << self.next_signal.fetch_add(1, Ordering::SeqCst);
                let weight = ok(tidal_interleavings::Weight::from_nanos(i64::from(mark)))?;
                let receipt = self.db.signal_exact(user, ITEM, "view", weight, at_ns);
                passed = receipt.as_ref().is_ok_and(|receipt| receipt.withheld.is_none());
                receipt.is_ok()
            }
            Act::Leave => self.db.leave_community_layer(user).is_ok(),
            Act::Rejoin => self.db.rejoin_community_layer(user).is_ok(),
            Act::Status | Act::Read { .. } => return Ok(()),
        };
        let returned_at = self.now.fetch_add(1, Ordering::SeqCst);
        let at_return = if act_is_leave(act) { marks(&self.db, &scopes()[COMMUNITY])? } else { 0 };
        let told = Told { user, act, made_at, returned_at, is_ok, mark, passed, at_return };
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        Ok(())
    }
}

/// One schedule. Returns how many calls there were.
pub fn act_out(image: &[u8], broken: Option<Break>) -> Seen<usize> {
    let program = Program::thrown();
    seen_in(&program, image, broken).map_err(|said| format!("{said}\nin {program:?}, on a failing disk"))
}

/// The same for a program that is given.
pub fn seen_in(program: &Program, image: &[u8], broken: Option<Break>) -> Seen<usize> {
    let medium =
        Arc::new(Failing { bytes: MemoryMedium::from_bytes(image.to_vec()), left: AtomicI64::new(i64::MAX) });
    let storage = ok(Storage::options().check_integrity(false).open_on(medium.clone()))?;
    let db = ok(TidalDb::from_parts(storage, config_of(program.mode, broken)))?;
    let scene = Arc::new(Scene {
        db,
        now: AtomicI64::new(0),
        next_signal: AtomicI64::new(0),
        told: Mutex::default(),
    });
    for (user, act) in &program.before {
        scene.call(*user, *act)?;
    }
    medium.left.store(thread_rng().gen_range(0..LATEST_FAILURE), Ordering::SeqCst);
    let start = |part: Vec<(u64, Act)>| {
        let scene = Arc::clone(&scene);
        thread::spawn(move || part.into_iter().try_for_each(|(user, act)| scene.call(user, act)))
    };
    let threads: Vec<_> = program.threads.iter().cloned().map(start).collect();
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked".to_owned())??;
    }
    // Whoever is out stays out, and is asked once more.
    for user in USERS {
        scene.call(user, Act::Signal { at_ns: None })?;
    }
    let scene = Arc::into_inner(scene).ok_or("a thread is still there")?;
    let told = scene.told.into_inner().unwrap_or_else(PoisonError::into_inner);
    gate_stays_shut(&scene.db, &told)?;
    nothing_follows_a_failure(&told)?;
    let _said = scene.db.close();
    all_acknowledged_is_there(&medium.bytes, program.mode, &told)?;
    Ok(told.len())
}

/// Who asked to leave, and for whom no return succeeded since, is Left and passes nothing on.
fn gate_stays_shut(db: &TidalDb, told: &[Told]) -> Seen {
    let in_layer: Vec<u32> = scopes()
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != GLOBAL)
        .map(|(_, scope)| marks(db, scope))
        .collect::<Seen<_>>()?;
    if in_layer.windows(2).any(|pair| pair[0] != pair[1]) || in_layer.len() != SCOPES - 1 {
        return Err(format!("the scopes disagree: {in_layer:?}"));
    }
    for leave in told.iter().filter(|call| call.is_leave()) {
        if told.iter().any(|call| call.is_ok && call.may_undo(leave)) {
            continue;
        }
        let status = db.community_layer_status(leave.user).status;
        if status != MembershipStatus::Left {
            return Err(format!("the status is {status} after {leave:?}"));
        }
        for signal in told.iter().filter(|call| call.user == leave.user && call.mark != 0) {
            let is_later = signal.made_at > leave.returned_at;
            // One that was under way is taken before the leave returns, or never.
            let is_taken_later = in_layer[0] & !leave.at_return & signal.mark != 0;
            if is_taken_later || is_later && signal.passed {
                return Err(format!("{signal:?} passed the gate after {leave:?}"));
            }
        }
    }
    Ok(())
}

/// A call that was made after another had failed does not succeed.
fn nothing_follows_a_failure(told: &[Told]) -> Seen {
    let Some(failed) = told.iter().filter(|call| !call.is_ok).min_by_key(|call| call.returned_at) else {
        return Ok(());
    };
    match told.iter().find(|call| call.is_ok && call.made_at > failed.returned_at) {
        Some(call) => Err(format!("{call:?} succeeds after {failed:?}")),
        None => Ok(()),
    }
}

/// The next process finds all that was acknowledged.
fn all_acknowledged_is_there(bytes: &MemoryMedium, mode: Mode, told: &[Told]) -> Seen {
    let next = Arc::new(MemoryMedium::from_bytes(bytes.snapshot()));
    let storage = ok(Storage::options().open_on(next))?;
    let db = ok(TidalDb::from_parts(storage, config_of(Mode::Immediate, None)))?;
    let on_disk = marks(&db, &scopes()[GLOBAL])?;
    if mode != Mode::Batched {
        let lost = told.iter().find(|call| call.is_ok && call.mark != 0 && on_disk & call.mark == 0);
        if let Some(lost) = lost {
            return Err(format!("{lost:?} was acknowledged, and it is not on disk"));
        }
    }
    for leave in told.iter().filter(|call| call.is_leave() && call.is_ok) {
        let status = db.community_layer_status(leave.user).status;
        if status != MembershipStatus::Left && !told.iter().any(|call| call.may_undo(leave)) {
            return Err(format!("{leave:?} was acknowledged, and on disk the user is {status}"));
        }
    }
    match ok(db.verify())?.differences.first() {
        Some(difference) => Err(format!("verify names {difference:?}")),
        None => ok(db.close()),
    }
}
