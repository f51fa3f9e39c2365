//! What must hold of a file that a crash left.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidal_db::{MembershipStatus, Storage, TidalDb};
use tidal_storage::MemoryMedium;
use xxhash_rust::xxh3::xxh3_128;

use super::trace::{Acknowledged, Adapt, Trace, configure, make};
use super::visible::visible;
use crate::ensure;
use crate::scenarios::{ITEM, Seen, ok};

/// What opening a file showed, all but whether it is what was required.
#[derive(Clone, Debug)]
pub struct Found {
    /// None where nothing could be opened.
    sequence: Option<u64>,
    is_clean: bool,
    /// Whether its views had to be made anew.
    is_rebuilt: bool,
    out: Vec<u64>,
}

impl Found {
    /// Whether everything acknowledged is there, and everybody is out who was.
    fn is_enough(&self, required: &Acknowledged) -> Seen {
        let Some(sequence) = self.sequence else {
            ensure!(!required.is_created, "the file was refused");
            return Ok(());
        };
        for user in &required.out {
            ensure!(
                self.out.contains(user),
                "the leave of user {user} was acknowledged, and it is not there"
            );
        }
        ensure!(
            sequence >= required.sequence,
            "the log ends at {sequence}, and {} was acknowledged",
            required.sequence
        );
        ensure!(self.is_clean || !required.is_clean, "a record is damaged");
        ensure!(!self.is_rebuilt || required.is_rebuilding, "views had to be made anew");
        Ok(())
    }
}

/// Opens each different file once.
pub struct Checker<'a> {
    trace: &'a Trace,
    adapt: Adapt<'a>,
    known: Mutex<HashMap<u128, Found>>,
}

impl<'a> Checker<'a> {
    pub fn new(trace: &'a Trace, adapt: Adapt<'a>) -> Self {
        Self { trace, adapt, known: Mutex::default() }
    }

    /// How many different files were opened.
    pub fn distinct(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Checks a file against what was acknowledged. Returns whether it is a new one.
    pub fn check(&self, image: Vec<u8>, required: &Acknowledged) -> Seen<bool> {
        let hash = xxh3_128(&image);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned();
        if let Some(found) = known {
            return found.is_enough(required).map(|()| false);
        }
        // One half of the files is opened without the integrity check, which a crash must not need.
        let found = self.open(image, required, hash.is_multiple_of(2))?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(hash, found);
        Ok(true)
    }

    fn open(&self, image: Vec<u8>, required: &Acknowledged, checks: bool) -> Seen<Found> {
        let (clock, config) = configure(&self.trace.workload, self.adapt, 0);
        let medium = Arc::new(MemoryMedium::from_bytes(image));
        let options = Storage::options().check_integrity(checks);
        let open = |rebuild| {
            let opened = options.open_on(medium.clone()).map_err(tidal_db::Error::from);
            opened.and_then(|storage| TidalDb::from_parts(storage, config.clone().rebuild(rebuild)))
        };
        let first = open(false);
        let is_rebuilt = required.is_rebuilding && matches!(first, Err(tidal_db::Error::DamagedView { .. }));
        let opened = if is_rebuilt { open(true) } else { first };
        let db = match opened {
            Ok(db) => db,
            Err(refusal) if required.is_created => {
                return Err(format!("the file was refused (check {checks}): {refusal}"));
            }
            Err(_) => return Ok(Found { sequence: None, is_clean: true, is_rebuilt, out: Vec::new() }),
        };
        let sequence = db.open_report().last_sequence;
        let is_clean = db.open_report().is_clean();
        let out: Vec<u64> = db.left_users().iter().map(|user| user.user_id).collect();
        let found = Found { sequence: Some(sequence), is_clean, is_rebuilt, out };
        found.is_enough(required)?;

        let report = ok(db.verify())?;
        ensure!(report.differences.is_empty() || !is_clean, "verify names {:?}", report.differences);
        self.compare(&db, sequence, &clock)?;
        // One signal shows the gate, and that the file can be written.
        let probe = db.left_users().first().map_or(7, |user| user.user_id);
        let receipt = ok(db.signal(probe, ITEM, "view", 1.0))?;
        let is_out = db.community_layer_status(probe).status == MembershipStatus::Left;
        ensure!(
            receipt.withheld.is_some() == is_out,
            "user {probe} is out: {is_out}, and a signal says {receipt:?}"
        );
        Ok(found)
    }

    /// What is visible is what was at the same sequence. Of a delivery that was cut in two the rest is delivered.
    fn compare(&self, db: &TidalDb, sequence: u64, clock: &tidal_db::ManualClock) -> Seen {
        if let Some(state) = self.trace.states.get(&sequence) {
            clock.set(state.clock_ns);
            let shown = visible(db)?;
            ensure!(
                shown == state.visible,
                "at sequence {sequence} it shows {shown:?}, and that was {:?}",
                state.visible
            );
            return Ok(());
        }
        let cut =
            self.trace.deliveries.iter().find(|(before, after, _)| (*before..*after).contains(&sequence));
        let Some((_, after, call)) = cut else {
            return Err(format!("the log ends at {sequence}, where no call ended"));
        };
        let state = &self.trace.states[after];
        clock.set(state.clock_ns);
        ok(make(call, db))?;
        let shown = visible(db)?;
        ensure!(
            shown == state.visible,
            "cut at sequence {sequence} and delivered again it shows {shown:?}, not {:?}",
            state.visible
        );
        Ok(())
    }
}
