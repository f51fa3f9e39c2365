//! How fast an open knows again who left: status, history and away periods, whatever else is stored.

use std::path::Path;
use std::time::Instant;

use tidal_bench::{Bound, Figure, Sample, build_leavers, note, point};
use tidal_db::{MembershipStatus, Storage, TidalDb};
use tidal_keys::{EntityId, Tag, encode_key};
use tidal_storage::{Partition, WriteBatch};

use crate::run::Run;

const KEYS_PER_USER: u64 = 10;
/// Users whose keys one commit writes.
const USERS_PER_COMMIT: u64 = 50_000;

pub(crate) fn run(run: &Run) {
    for leavers in run.sizes(10_000_000) {
        let path = run.leavers(leavers);
        let times_s = open_s(&path, leavers, run.scale.pick(5, 2));
        let per_second: Sample = times_s.values().iter().map(|time| leavers as f64 / time).collect();
        let figure = Figure::new(
            format!("restore of {leavers} leavers, no page checked: the whole open"),
            per_second.median() / 1e6,
            "million leavers/s",
        );
        let (low, high) = per_second.quartiles();
        let figure = figure
            .between((low / 1e6, high / 1e6))
            .bounded_by("Reading the rows, and a place in the map for each: memory, not the disk.");
        if leavers == run.sizes(10_000_000)[0] {
            figure.print();
        } else {
            figure.target(Bound::AtLeast(2.0)).print();
        }
        point("restore", "whole open, no page checked", leavers as f64, times_s.median() * 1e3);
    }
    let leavers = run.scale.pick(20_000, 2_000);
    let [_, some, many] = run.sizes(10_000_000);
    for users in [some, many] {
        let name = format!("leavers-{leavers}-among-{users}.tidal");
        let path = run.fixture(&name, |path| build_among(path, leavers, users));
        let times_s = open_s(&path, leavers, run.scale.pick(11, 2));
        let (low, high) = times_s.quartiles();
        Figure::new(
            format!(
                "open with {leavers} leavers among {users} users with 10 other keys each, no page checked"
            ),
            times_s.median() * 1e3,
            "ms",
        )
        .between((low * 1e3, high * 1e3))
        .target(Bound::AtMost(15.0))
        .bounded_by("Leave records and transitions have tables of their own; other keys are not looked at.")
        .print();
        Figure::new(
            format!("the file of {leavers} leavers among {users} users"),
            path.metadata().unwrap().len() as f64 / 1e6,
            "MB",
        )
        .print();
        // Large, and of no use to another row.
        std::fs::remove_file(path).unwrap();
    }
    note(
        "Files are in the page cache of the system. The other keys lie in the same partition under tags that nothing \
         reads at open; memberships and attributes would be read for themselves.",
    );
}

/// Opens it again and again.
fn open_s(path: &Path, leavers: u64, rounds: usize) -> Sample {
    // The first one warms up.
    (0..=rounds)
        .map(|_| {
            let began = Instant::now();
            let db = TidalDb::builder().path(path).check_integrity(false).open().unwrap();
            let took = began.elapsed();
            assert_eq!(db.left_count(), leavers);
            let status = |user| db.community_layer_status(user).status;
            assert_eq!((status(0), status(1)), (MembershipStatus::Left, MembershipStatus::Active));
            assert_eq!(db.membership_history(0).unwrap().len(), 1);
            db.close().unwrap();
            took.as_secs_f64()
        })
        .skip(1)
        .collect()
}

/// Leavers, and beside them keys of many users.
fn build_among(path: &Path, leavers: u64, users: u64) {
    build_leavers(path, leavers);
    let storage = Storage::options().check_integrity(false).open(path).unwrap();
    for first in (0..users).step_by(USERS_PER_COMMIT as usize) {
        let mut batch = WriteBatch::new();
        for user in first..users.min(first + USERS_PER_COMMIT) {
            for nth in 0..KEYS_PER_USER {
                let key = encode_key(EntityId::new(user), Tag::SignalState, &[nth as u8]);
                batch.put(Partition::Users, &key, &user.to_le_bytes());
            }
        }
        storage.commit(batch).unwrap();
    }
    storage.close().unwrap();
}
