//! G1: a leave in the middle of signals.

use std::sync::{Arc, Barrier};
use std::thread;

use tidal_db::{Config, Scope, TidalDb};
use tidal_storage::MemoryMedium;

use super::{ITEM, Seen, config, count, create_on, ok, open_image, settle_in, three_counts};
use crate::ensure;

const THREADS: usize = 8;
const SIGNALS_PER_THREAD: usize = 150;
const ROUNDS: usize = 40;

/// Eight threads signal while user 7 leaves. Once the leave returned no total moves, the three
/// scopes agree, the log tells the same order, and a reopened database gives the same.
pub fn no_total_moves_after_a_leave(adapt: impl Fn(Config) -> Config) -> Seen {
    for round in 0..ROUNDS {
        let (_, config) = config();
        let medium = Arc::new(MemoryMedium::default());
        let db = create_on(&medium, adapt(config))?;
        settle_in(&db)?;
        one_leave_among_signals(&db, round)?;
        let in_memory = (three_counts(&db)?, count(&db, &Scope::Global)?);
        ok(db.close())?;
        let (_, config) = super::config();
        let reopened = open_image(medium.snapshot(), config)?;
        let from_disk = (three_counts(&reopened)?, count(&reopened, &Scope::Global)?);
        ensure!(in_memory == from_disk, "memory says {in_memory:?}, disk {from_disk:?}");
    }
    Ok(())
}

fn one_leave_among_signals(db: &TidalDb, round: usize) -> Seen {
    let start = Barrier::new(THREADS + 1);
    let at_return = thread::scope(|scope| {
        let start = &start;
        for thread in 0..THREADS {
            scope.spawn(move || {
                start.wait();
                for turn in 0..SIGNALS_PER_THREAD {
                    // Two forms of signal, so that both ways through the gate are tried.
                    let sent = if (thread + turn) % 2 == 0 {
                        db.signal(7, ITEM, "view", 1.0)
                    } else {
                        db.signal_at(7, ITEM, "view", 1.0, 5)
                    };
                    sent.expect("a signal is recorded");
                }
            });
        }
        start.wait();
        // Another moment of the run in every round.
        while ok(db.history(7))?.count() < round * 7 {
            thread::yield_now();
        }
        ok(db.leave_community_layer(7))?;
        three_counts(db)
    })?;
    let after = three_counts(db)?;
    ensure!(at_return == after, "counts moved after the leave returned: {at_return:?}, then {after:?}");
    ensure!(after[0] == after[1] && after[1] == after[2], "the scopes disagree: {after:?}");
    let global = count(db, &Scope::Global)?;
    ensure!(global == (THREADS * SIGNALS_PER_THREAD) as u64, "the item took {global} signals in all");

    let left_at = ok(db.membership_history(7))?.first().map(|leave| leave.sequence);
    for event in ok(db.history(7))? {
        let event = ok(event)?;
        let after_leave = left_at.is_some_and(|left_at| event.sequence > left_at);
        ensure!(
            after_leave == event.withheld.is_some(),
            "the leave is entry {left_at:?}, and signal {} is withheld as {:?}",
            event.sequence,
            event.withheld
        );
    }
    Ok(())
}
