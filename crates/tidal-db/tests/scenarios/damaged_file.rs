//! Ways to damage a file, and what an open may make of it.

use std::sync::Arc;

use tidal_db::{Error, MembershipStatus, Storage, TidalDb};
use tidal_storage::MemoryMedium;

use super::{ITEM, Seen, community, config, count, ok};
use crate::ensure;

pub const PAGE_BYTES: usize = 4096;

/// What opening a damaged file came to, when user 7 had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// An error.
    Refused,
    /// Open, and user 7 is named as damaged and out.
    Reported,
    /// Open, and as it was.
    Unseen,
    /// An older state of the whole file, in which user 7 had not left: `expect_at_least` refuses it.
    Older,
}

/// The bytes of a closed database in which user 7 left, came back and left, and the last sequence of it.
pub fn left_file() -> Seen<(Vec<u8>, u64)> {
    let medium = Arc::new(MemoryMedium::default());
    let (clock, config) = config();
    let db = super::create_on(&medium, config)?;
    ok(db.join_community(7, 1))?;
    ok(db.leave_community_layer(7))?;
    clock.advance(10);
    ok(db.rejoin_community_layer(7))?;
    ok(db.signal(7, ITEM, "view", 1.0))?;
    clock.advance(10);
    ok(db.leave_community_layer(7))?;
    let sequence = db.durable_sequence();
    ok(db.close())?;
    Ok((medium.snapshot(), sequence))
}

fn open(file: &[u8], check: bool, expected: u64) -> tidal_db::Result<TidalDb> {
    let medium = Arc::new(MemoryMedium::from_bytes(file.to_vec()));
    let storage = Storage::options().check_integrity(check).open_on(medium).map_err(Error::from)?;
    TidalDb::from_parts(storage, config().1.expect_at_least(expected))
}

/// Opens a damaged file: user 7 is out, or nothing opens.
pub fn open_damaged(file: &[u8], sequence: u64, check: bool) -> Seen<Outcome> {
    let Ok(db) = open(file, check, 0) else { return Ok(Outcome::Refused) };
    let status = db.community_layer_status(7).status;
    if status != MembershipStatus::Left {
        ensure!(!check, "user 7 left, and the status says {status}");
        ensure!(db.durable_sequence() < sequence, "user 7 left, and the status says {status}");
        drop(db);
        ensure!(
            open(file, check, sequence).is_err(),
            "user 7 left, and an older state is taken for the newest"
        );
        return Ok(Outcome::Older);
    }
    // The signal may fail where a page cannot be read. It never reaches others.
    let before = count(&db, &community(1)).unwrap_or(0);
    let receipt = db.signal(7, ITEM, "view", 1.0);
    ensure!(
        receipt.as_ref().map_or(true, |receipt| receipt.withheld.is_some()),
        "user 7 left, and a signal says {receipt:?}"
    );
    ensure!(count(&db, &community(1)).unwrap_or(0) == before, "user 7 left, and others see another signal");
    Ok(if db.open_report().is_clean() { Outcome::Unseen } else { Outcome::Reported })
}

/// Each page zeroed, filled with ones, swapped with each other page and written over it.
pub fn damaged_pages(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let pages = file.len() / PAGE_BYTES;
    let mut damaged = Vec::new();
    for page in 0..pages {
        let range = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        for filler in [0, 0xFF] {
            let mut copy = file.to_vec();
            copy[range.clone()].fill(filler);
            damaged.push((format!("page {page} filled with {filler:#x}"), copy));
        }
        for other in page + 1..pages {
            let (here, there) = (page * PAGE_BYTES, other * PAGE_BYTES);
            if file[here..here + PAGE_BYTES] == file[there..there + PAGE_BYTES] {
                continue;
            }
            for (from, to) in [(here, there), (there, here)] {
                let mut copy = file.to_vec();
                copy.copy_within(from..from + PAGE_BYTES, to);
                damaged.push((format!("the page at {from} written over the one at {to}"), copy));
            }
            let mut copy = file.to_vec();
            copy[here..here + PAGE_BYTES].copy_from_slice(&file[there..there + PAGE_BYTES]);
            copy[there..there + PAGE_BYTES].copy_from_slice(&file[here..here + PAGE_BYTES]);
            damaged.push((format!("pages {page} and {other} swapped"), copy));
        }
    }
    damaged
}
