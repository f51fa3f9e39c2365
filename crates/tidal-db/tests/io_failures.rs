//! Cases 3, 4 and 18: reads, files and writes that fail.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    dead_code,
    reason = "tests fail by panicking, and use a part of what is shared"
)]

mod common;
#[path = "scenarios/faulty.rs"]
mod faulty;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use common::{
    A, COMMUNITY, c, config, create_on, join, leave, leave_key, left, names_in, open_image, p, place, rejoin,
    view,
};
use faulty::{Counted, Fails, FaultyMedium};
use tidal_db::{CommunityMembership, Durability, Error, MembershipStatus, Storage, StorageError, TidalDb};
use tidal_entities::community::deserialize_membership;
use tidal_storage::MemoryMedium;

/// Nothing is flushed before it is asked for.
const UNHURRIED: Durability =
    Durability::Batched { max_events: 1_000_000, max_delay: Duration::from_secs(3600) };

fn open(path: &Path, now_ns: u64) -> tidal_db::Result<TidalDb> {
    config(now_ns).1.path(path).open()
}

fn create(path: &Path, now_ns: u64) -> TidalDb {
    config(now_ns).1.path(path).create(true).open().unwrap()
}

/// The bytes of a closed database of whose users a third came back.
fn image_of(users: u64) -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::default());
    let (db, _) = create_on(&medium, config(1_000).1);
    let events = (0..users).flat_map(|user| {
        let back = if user % 3 == 0 { rejoin(200, user) } else { leave(200, user) };
        [join(50, user), view(60, user), leave(100, user), back]
    });
    db.apply("many", 1, events).unwrap();
    db.close().unwrap();
    medium.snapshot()
}

fn open_faulty(medium: &Arc<FaultyMedium>, check: bool, cache_bytes: usize) -> tidal_db::Result<TidalDb> {
    let options = Storage::options().check_integrity(check).cache_size_bytes(cache_bytes);
    TidalDb::from_parts(options.open_on(medium.clone())?, config(1_000).1)
}

/// Of so many users the histories are read by a thread of its own, whose failures are those of the open.
#[test]
fn case_3_reads_that_fail_while_two_threads_read_fail_the_open() {
    let image = image_of(9_000);
    for fails in [Fails::Once, Fails::ForGood] {
        for nth in (0..).step_by(29) {
            let medium = Arc::new(FaultyMedium::from_bytes(image.clone()));
            medium.fail_at(nth, Counted::Reads, fails);
            let opened = open_faulty(&medium, false, 0);
            if medium.struck().is_none() {
                assert_eq!(opened.unwrap().left_count(), 6_000);
                assert!(nth > 100, "{nth} reads are not those of two tables");
                break;
            }
            assert!(opened.is_err(), "read {nth} failed, and the open did not: {opened:?}");
        }
    }
}

#[test]
fn case_3_any_read_that_fails_while_opening_fails_the_open() {
    let image = image_of(90);
    for (check, cache_bytes) in [(true, 1 << 20), (true, 0), (false, 1 << 20), (false, 0)] {
        for (counted, fails) in
            [(Counted::Reads, Fails::Once), (Counted::Reads, Fails::ForGood), (Counted::All, Fails::Once)]
        {
            let mut tried = 0;
            loop {
                let medium = Arc::new(FaultyMedium::from_bytes(image.clone()));
                medium.fail_at(tried, counted, fails);
                let opened = open_faulty(&medium, check, cache_bytes);
                let Some(struck) = medium.struck() else {
                    assert_eq!(opened.unwrap().left_count(), 60);
                    break;
                };
                assert!(opened.is_err(), "{struck} {tried} failed, and the open did not: {opened:?}");
                // What failed has passed, and nobody is Active who was not.
                let again = open_image(medium.snapshot(), config(1_000).1).0;
                assert_eq!(again.left_count(), 60, "after {struck} {tried} failed");
                tried += 1;
            }
            eprintln!("check {check}, cache {cache_bytes}: {tried} of {counted:?} failed {fails:?}");
            assert!(tried > 10, "only {tried} failures were tried");
        }
    }
}

/// A database in which user 7 left at 100, closed.
fn left_database(path: &Path) {
    let db = create(path, 100);
    db.join_community(7, COMMUNITY).unwrap();
    db.leave_community_layer(7).unwrap();
    db.close().unwrap();
}

#[test]
fn case_4_a_database_that_was_deleted_is_not_made_anew() {
    let (folder, path) = place();
    left_database(&path);
    fs::remove_file(&path).unwrap();
    let error = open(&path, 300).unwrap_err();
    assert!(matches!(error, Error::Storage(StorageError::NotFound { .. })), "{error}");
    assert!(names_in(folder.path()).is_empty());
}

#[test]
fn case_4_a_database_that_was_truncated_is_not_made_anew() {
    let (folder, path) = place();
    left_database(&path);
    let whole = fs::read(&path).unwrap();
    for len in [0, 1, 64, 4096, whole.len() / 2, whole.len() - 1] {
        for may_create in [false, true] {
            fs::write(&path, &whole[..len]).unwrap();
            let opened = config(300).1.path(&path).create(may_create).open();
            let error = opened.expect_err("a truncated database was opened");
            if len == 0 {
                assert!(matches!(error, Error::Storage(StorageError::Empty { .. })), "{error}");
            }
            assert_eq!(fs::read(&path).unwrap(), &whole[..len], "cut to {len} bytes, it was written to");
            assert_eq!(names_in(folder.path()), ["signals.tidal"]);
        }
    }
}

/// Where the second process finds the database.
#[cfg(unix)]
const PATH_VARIABLE: &str = "TIDAL_TEST_UNREADABLE";

#[cfg(unix)]
#[test]
fn case_4_a_database_that_cannot_be_read_is_not_made_anew() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    let (folder, path) = place();
    left_database(&path);
    let before = fs::read(&path).unwrap();
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(folder.path(), 0o777);
    set_mode(&path, 0o000);
    if fs::File::open(&path).is_err() {
        refuses_unreadable(&path);
    } else {
        // Permissions do not bind this user, so another one tries.
        let mut another = Command::new(std::env::current_exe().unwrap());
        another
            .args(["--exact", "case_4_the_second_process", "--nocapture"])
            .env(PATH_VARIABLE, &path)
            .uid(65_534);
        match another.output() {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
                let said = String::from_utf8_lossy(&output.stdout);
                assert!(said.contains("refused as it should be"), "nothing was tried: {said}");
            }
            Err(error) => {
                eprintln!("SKIPPED: this user can read everything, and no other can be tried: {error}");
            }
        }
    }
    set_mode(&path, 0o600);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(names_in(folder.path()), ["signals.tidal"]);
    assert_eq!(open(&path, 300).unwrap().community_layer_status(7), left(7, 100));
}

#[cfg(unix)]
#[test]
fn case_4_the_second_process() {
    let Some(path) = std::env::var_os(PATH_VARIABLE) else { return };
    refuses_unreadable(Path::new(&path));
    println!("refused as it should be");
}

#[cfg(unix)]
fn refuses_unreadable(path: &Path) {
    for may_create in [false, true] {
        let error = config(300).1.path(path).create(may_create).open().unwrap_err();
        let Error::Storage(StorageError::Io { source, .. }) = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
    }
    assert_eq!(names_in(path.parent().unwrap()), ["signals.tidal"]);
}

/// How the database is when a leave fails.
#[derive(Clone, Copy, Debug)]
struct Scene {
    /// Signals that the commit of the leave takes along; many of them make the file grow.
    pending_signals: u32,
    /// With none, pages are read again during the commit.
    cache_bytes: usize,
    /// Whether user 7 had left and come back before.
    was_away: bool,
}

impl Scene {
    fn image(self) -> Vec<u8> {
        let medium = Arc::new(MemoryMedium::default());
        let (_, config) = config(50);
        let (db, _) = create_on(&medium, config);
        db.join_community(7, COMMUNITY).unwrap();
        db.signal(7, A, "view", 1.0).unwrap();
        if self.was_away {
            db.leave_community_layer(7).unwrap();
            db.rejoin_community_layer(7).unwrap();
        }
        db.close().unwrap();
        medium.snapshot()
    }

    fn open(self, medium: &Arc<FaultyMedium>) -> TidalDb {
        let options = Storage::options().cache_size_bytes(self.cache_bytes);
        let storage = options.open_on(medium.clone()).unwrap();
        let db = TidalDb::from_parts(storage, config(100).1.durability(UNHURRIED)).unwrap();
        for _ in 0..self.pending_signals {
            db.signal(8, A, "view", 1.0).unwrap();
        }
        db
    }
}

/// What was on disk after a leave that failed.
#[derive(Debug, Default)]
struct Outcomes {
    there: u32,
    absent: u32,
    struck: std::collections::BTreeMap<&'static str, u32>,
}

/// Lets I/O operation `nth` of a leave fail; `false` if the leave does not come to it.
fn leave_fails_at(scene: Scene, image: &[u8], nth: u64, fails: Fails, outcomes: &mut Outcomes) -> bool {
    let medium = Arc::new(FaultyMedium::from_bytes(image.to_vec()));
    let db = scene.open(&medium);
    medium.fail_at(nth, Counted::All, fails);
    let answer = db.leave_community_layer(7);
    let Some(struck) = medium.struck() else {
        assert_eq!(answer.unwrap(), left(7, 100));
        return false;
    };
    let at = format!("{struck} {nth} failed {fails:?}");
    assert!(answer.is_err(), "{at}, and the leave is {answer:?}");
    assert_eq!(db.community_layer_status(7), left(7, 100), "{at}");
    assert_eq!(db.left_count(), 1, "{at}");
    for _ in 0..2 {
        // Nothing can be recorded any more, and nothing reaches the community.
        assert!(db.signal(7, A, "view", 1.0).is_err(), "{at}");
        assert!(db.rejoin_community_layer(7).is_err(), "{at}");
        let again = db.leave_community_layer(7);
        assert!(again.is_err(), "{at}, and the next leave is {again:?}");
        let another = db.leave_community_layer(8);
        assert!(another.is_err(), "{at}, and the leave of another is {another:?}");
    }
    assert_eq!(c(&db), 1, "{at}");
    assert_eq!(db.community_layer_status(7).status, MembershipStatus::Left, "{at}");
    assert!(db.close().is_err(), "{at}, and closing says nothing");

    let (db, storage) = open_image(medium.snapshot(), config(200).1);
    assert!(db.open_report().is_clean(), "{at}: {:?}", db.open_report());
    let record = storage.users_engine().get(&leave_key(7)).unwrap();
    let record = record.map(|bytes| deserialize_membership(7, &bytes).unwrap());
    let status = db.community_layer_status(7);
    assert_eq!(status, record.unwrap_or(CommunityMembership::default_active(7)), "{at}");
    assert_eq!(db.community_layer_status(8), CommunityMembership::default_active(8), "{at}");
    let is_left = status.status == MembershipStatus::Left;
    assert_eq!(db.left_count(), u64::from(is_left), "{at}");
    let transitions = db.membership_history(7).unwrap().len();
    assert_eq!(transitions, usize::from(is_left) + if scene.was_away { 2 } else { 0 }, "{at}");
    // What came before the leave in the same commit is there exactly if the leave is.
    let pending = usize::try_from(scene.pending_signals).unwrap();
    assert_eq!(p(&db, 8), if is_left { pending } else { 0 }, "{at}");
    assert_eq!((p(&db, 7), c(&db)), (1, 1), "{at}");
    *if is_left { &mut outcomes.there } else { &mut outcomes.absent } += 1;
    *outcomes.struck.entry(struck).or_default() += 1;
    true
}

#[test]
fn case_18_any_i_o_operation_that_fails_fails_the_leave() {
    let mut outcomes = Outcomes::default();
    for (pending_signals, cache_bytes, was_away) in
        [(0, 1 << 20, false), (0, 1 << 20, true), (0, 0, false), (5_000, 1 << 20, false), (5_000, 0, true)]
    {
        let scene = Scene { pending_signals, cache_bytes, was_away };
        let image = scene.image();
        for fails in [Fails::Once, Fails::ForGood] {
            let mut nth = 0;
            while leave_fails_at(scene, &image, nth, fails, &mut outcomes) {
                nth += 1;
            }
            assert!(nth > 3, "only {nth} operations were tried with {scene:?}");
        }
    }
    eprintln!("{outcomes:?}");
    let kinds: Vec<&str> = outcomes.struck.keys().copied().collect();
    assert_eq!(kinds, ["len", "read", "set_len", "sync", "write"]);
    assert!(outcomes.there > 0 && outcomes.absent > 0, "{outcomes:?}");
}
