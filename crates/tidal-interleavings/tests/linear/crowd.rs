//! Many callers at once, each of whom waits for the disk: they share commits and wake each other, and all return.
//! A schedule in which one of them is not woken ends with nobody who can go on, which the scheduler tells.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use tidal_interleavings::{Break, Error, Storage, TidalDb, Weight};
use tidal_storage::MemoryMedium;

use crate::program::{Mode, Program};
use crate::stage::{GLOBAL, ITEM, Seen, USERS, config_of, marks, ok, scopes};
use crate::{failing, schedules};

const SIGNALS_EACH: u32 = 2;

pub fn act_out(image: &[u8], broken: Option<Break>) -> Seen<usize> {
    let program = Program::crowd();
    schedules::seen_in(&program, image, broken).map_err(|said| format!("{said}\nin {program:?}"))
}

pub fn act_out_on_failing_disk(image: &[u8], broken: Option<Break>) -> Seen<usize> {
    let program = Program::crowd();
    let seen = failing::seen_in(&program, image, broken);
    seen.map_err(|said| format!("{said}\nin {program:?}, on a failing disk"))
}

/// One closes the database while the others record. What was acknowledged is on disk.
pub fn act_out_closing(image: &[u8], broken: Option<Break>) -> Seen<usize> {
    let medium = Arc::new(MemoryMedium::from_bytes(image.to_vec()));
    let db = open(&medium, broken)?;
    let acknowledged = Arc::new(Mutex::new(0));
    let next_signal = Arc::new(AtomicU32::new(0));
    let threads_len = thread_rng().gen_range(3..=5);
    let recorders = (0..threads_len).map(|place| {
        let (db, acknowledged, next_signal) =
            (db.clone(), Arc::clone(&acknowledged), Arc::clone(&next_signal));
        let user = USERS[place % USERS.len()];
        thread::spawn(move || {
            for _ in 0..SIGNALS_EACH {
                let mark: u32 = 1 << next_signal.fetch_add(1, Ordering::SeqCst);
                match db.signal_exact(user, ITEM, "view", ok(Weight::from_nanos(i64::from(mark)))?, None) {
                    Ok(_) => *acknowledged.lock().unwrap_or_else(PoisonError::into_inner) |= mark,
                    Err(Error::Closed) => return Ok(()),
                    Err(error) => return Err(format!("a signal failed: {error}")),
                }
            }
            Ok(())
        })
    });
    let recorders: Vec<_> = recorders.collect();
    ok(db.close())?;
    for recorder in recorders {
        recorder.join().map_err(|_| "a thread panicked".to_owned())??;
    }
    let acknowledged = *acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
    let reopened = open(&medium, None)?;
    let on_disk = marks(&reopened, &scopes()[GLOBAL])?;
    ok(reopened.close())?;
    if acknowledged & !on_disk != 0 {
        return Err(format!("{acknowledged:b} was acknowledged, and {on_disk:b} is on disk"));
    }
    Ok(next_signal.load(Ordering::SeqCst) as usize + 1)
}

fn open(medium: &Arc<MemoryMedium>, broken: Option<Break>) -> Seen<TidalDb> {
    let storage = ok(Storage::options().check_integrity(false).open_on(medium.clone()))?;
    ok(TidalDb::from_parts(storage, config_of(Mode::Immediate, broken)))
}
