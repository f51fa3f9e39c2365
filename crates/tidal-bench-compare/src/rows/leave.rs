//! What a durable leave costs against one bare commit of one record, in turn; and many callers at once.

use std::path::Path;
use std::time::Instant;

use redb::{Database, TableDefinition};
use tidal_bench::{Bound, Figure, Sample, point, quantile, ratio, schema};
use tidal_db::TidalDb;

use crate::run::{Run, copy};

const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("record");
const CALLERS: u64 = 64;
/// Ids that no fixture has.
const FIRST_ID: u64 = 1 << 40;

pub(crate) fn run(run: &Run) {
    one_caller(run);
    many_callers(run);
    for leavers in run.sizes(10_000_000) {
        let folder = run.scratch();
        let path = copy(&run.leavers(leavers), folder.path(), "leave.tidal");
        let db = TidalDb::builder().path(&path).check_integrity(false).open().unwrap();
        let leaves = run.scale.pick(300, 30);
        let times: Sample = (0..leaves).map(|nth| leave_ms(&db, FIRST_ID + nth)).collect();
        assert_eq!(db.left_count(), leavers + leaves);
        point("leave", "tidal, one caller", leavers as f64, times.median());
    }
}

fn leave_ms(db: &TidalDb, user: u64) -> f64 {
    let began = Instant::now();
    db.leave_community_layer(user).unwrap();
    began.elapsed().as_nanos() as f64 / 1e6
}

/// A file with the same cache as tidal's.
fn bare_tree(path: &Path) -> Database {
    let mut builder = Database::builder();
    builder.set_cache_size(64 * 1024 * 1024);
    builder.create(path).unwrap()
}

fn put_ms(database: &Database, id: u64) -> f64 {
    let began = Instant::now();
    let mut transaction = database.begin_write().unwrap();
    transaction.set_two_phase_commit(true);
    let mut records = transaction.open_table(RECORDS).unwrap();
    records.insert(id.to_be_bytes().as_slice(), [1; 9].as_slice()).unwrap();
    drop(records);
    transaction.commit().unwrap();
    began.elapsed().as_nanos() as f64 / 1e6
}

fn one_caller(run: &Run) {
    let folder = run.scratch();
    let path = folder.path().join("leave.tidal");
    let db = TidalDb::builder().schema(schema()).path(&path).create(true).open().unwrap();
    let bare = bare_tree(&folder.path().join("leave.redb"));
    let leaves = run.scale.pick(2_000, 100);
    let (mut tidal_ms, mut bare_ms) = (Sample::new(), Sample::new());
    for nth in 0..leaves {
        if nth % 2 == 0 {
            tidal_ms.push(leave_ms(&db, nth));
            bare_ms.push(put_ms(&bare, nth));
        } else {
            bare_ms.push(put_ms(&bare, nth));
            tidal_ms.push(leave_ms(&db, nth));
        }
    }
    assert_eq!(db.left_count(), leaves);
    let (times, spread) = ratio(&tidal_ms, &bare_ms);
    Figure::new(
        "a durable leave, one caller, against one bare two-phase commit of one record",
        times,
        "times",
    )
    .between(spread)
    .target(Bound::AtMost(1.3))
    .bounded_by("Record, transition and log row are in three tables; the bare commit changes one.")
    .print();
    for (what, sample) in [("a leave, one caller", &tidal_ms), ("a bare two-phase commit", &bare_ms)] {
        Figure::new(format!("{what}, median"), sample.median(), "ms").between(sample.quartiles()).print();
        let mut sorted = sample.values().to_vec();
        sorted.sort_by(f64::total_cmp);
        Figure::new(format!("{what}, 99 of 100"), quantile(&sorted, 0.99), "ms").print();
    }
}

fn many_callers(run: &Run) {
    let rounds = run.scale.pick(11, 3);
    let calls = run.scale.pick(100, 20);
    let folder = run.scratch();
    let path = folder.path().join("leaves.tidal");
    let db = TidalDb::builder().schema(schema()).path(&path).create(true).open().unwrap();
    let mut next_user = 0;
    let mut leaves_per_second = |callers: u64| {
        let first = next_user;
        next_user += callers * calls;
        let began = Instant::now();
        std::thread::scope(|scope| {
            for caller in 0..callers {
                let db = &db;
                scope.spawn(move || {
                    for call in 0..calls {
                        db.leave_community_layer(first + caller * calls + call).unwrap();
                    }
                });
            }
        });
        (callers * calls) as f64 / began.elapsed().as_secs_f64()
    };
    let (mut one, mut many) = (Sample::new(), Sample::new());
    for round in 0..=rounds {
        let (alone, together) = (leaves_per_second(1), leaves_per_second(CALLERS));
        // The first round warms both up.
        if round > 0 {
            one.push(alone);
            many.push(together);
        }
    }
    let left = (rounds + 1) * calls * (1 + CALLERS);
    assert_eq!(db.left_count(), left);
    db.close().unwrap();
    let db = TidalDb::builder().path(&path).open().unwrap();
    assert_eq!(db.left_count(), left, "all of them are on disk");

    let (times, spread) = ratio(&many, &one);
    Figure::new("leaves a second: 64 callers against one", times, "times")
        .between(spread)
        .target(Bound::AtLeast(5.0))
        .bounded_by(
            "Leaves share commits; each still writes three rows, which a commit of many pays one by one.",
        )
        .print();
    for (what, sample) in [("one caller", &one), ("64 callers", &many)] {
        Figure::new(format!("leaves, {what}"), sample.median(), "leaves/s")
            .between(sample.quartiles())
            .print();
    }
}
