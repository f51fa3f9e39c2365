//! What the tests of cases, bad input and names share.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tidal_db::{
    Action, Aggregate, CommunityMembership, Config, Event, HistoryEvent, ManualClock, MembershipStatus,
    Schema, Scope, Storage, TidalDb, Transition, Weight, WithheldCounts,
};
use tidal_keys::{EncodedKey, EntityId, Tag, encode_key};
use tidal_storage::{MemoryMedium, WriteBatch};

/// The item A of the cases.
pub const A: u64 = 1752;

/// The community in which the users of the cases are.
pub const COMMUNITY: u64 = 4;

/// Users whom [`visible`] asks about.
pub const USERS: [u64; 5] = [0, 7, 8, 999, u64::MAX];

pub fn schema() -> Schema {
    Schema::builder().signal("view", Duration::from_secs(3600)).cohorts_by("region").build().unwrap()
}

/// A clock, and a configuration over it.
pub fn config(now_ns: u64) -> (Arc<ManualClock>, Config) {
    let clock = Arc::new(ManualClock::new(now_ns));
    (Arc::clone(&clock), TidalDb::builder().schema(schema()).clock(clock))
}

/// A place for one file.
pub fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signals.tidal");
    (folder, path)
}

/// A new database on `medium`, and a handle to what it stores.
pub fn create_on(medium: &Arc<MemoryMedium>, config: Config) -> (TidalDb, Storage) {
    let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
    (TidalDb::from_parts(storage.clone(), config).unwrap(), storage)
}

/// The database in `image`, and a handle to what it stores.
pub fn open_image(image: Vec<u8>, config: Config) -> (TidalDb, Storage) {
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image))).unwrap();
    (TidalDb::from_parts(storage.clone(), config).unwrap(), storage)
}

pub fn aggregate(db: &TidalDb, scope: &Scope) -> Option<Aggregate> {
    db.aggregate(scope, A, "view").unwrap()
}

fn count(db: &TidalDb, scope: &Scope) -> u64 {
    aggregate(db, scope).map_or(0, |taken| taken.count)
}

/// C(A): how many signals on A the community took.
pub fn c(db: &TidalDb) -> u64 {
    count(db, &Scope::Community(COMMUNITY))
}

/// How many signals on A there were in all.
pub fn global(db: &TidalDb) -> u64 {
    count(db, &Scope::Global)
}

pub fn history(db: &TidalDb, user: u64) -> Vec<HistoryEvent> {
    db.history(user).unwrap().collect::<Result<_, _>>().unwrap()
}

/// P(u,A): how many signals on A the user's own history holds.
pub fn p(db: &TidalDb, user: u64) -> usize {
    history(db, user).iter().filter(|event| event.item == A).count()
}

pub fn left(user_id: u64, left_at_ns: u64) -> CommunityMembership {
    CommunityMembership { user_id, status: MembershipStatus::Left, left_at_ns: Some(left_at_ns) }
}

pub fn leave_key(user: u64) -> EncodedKey {
    encode_key(EntityId::new(user), Tag::CommunityLeave, b"")
}

pub fn view(at_ns: u64, user: u64) -> Event {
    view_of(at_ns, user, "view")
}

pub fn view_of(at_ns: u64, user: u64, signal_type: &str) -> Event {
    let action = Action::Signal { user, item: A, signal_type: signal_type.to_owned(), weight: Weight::ONE };
    Event { at_ns, action }
}

pub fn join(at_ns: u64, user: u64) -> Event {
    Event { at_ns, action: Action::Join { user, community: COMMUNITY } }
}

pub fn leave(at_ns: u64, user: u64) -> Event {
    Event { at_ns, action: Action::Leave { user } }
}

pub fn rejoin(at_ns: u64, user: u64) -> Event {
    Event { at_ns, action: Action::Rejoin { user } }
}

/// All that can be asked of a database about [`USERS`], its scopes and the sources `queue` and `other`.
#[derive(Debug, PartialEq)]
pub struct Visible {
    aggregates: Vec<(Scope, u64, String, Aggregate)>,
    left: Vec<CommunityMembership>,
    left_count: u64,
    users: BTreeMap<u64, VisibleUser>,
    positions: [Option<u64>; 2],
    withheld: WithheldCounts,
    newest_time_ns: u64,
    durable_sequence: u64,
}

#[derive(Debug, PartialEq)]
struct VisibleUser {
    status: CommunityMembership,
    transitions: Vec<Transition>,
    communities: Vec<u64>,
    region: Option<String>,
    history: Vec<HistoryEvent>,
}

pub fn visible(db: &TidalDb) -> Visible {
    let rows = db.aggregates(None).unwrap().map(Result::unwrap);
    let user = |user: u64| VisibleUser {
        status: db.community_layer_status(user),
        transitions: db.membership_history(user).unwrap(),
        communities: db.communities_of(user),
        region: db.user_attribute(user, "region"),
        history: history(db, user),
    };
    Visible {
        aggregates: rows.map(|row| (row.scope, row.item, row.signal_type, row.aggregate)).collect(),
        left: db.left_users(),
        left_count: db.left_count(),
        users: USERS.into_iter().map(|id| (id, user(id))).collect(),
        positions: ["queue", "other"].map(|source| db.position(source).unwrap()),
        withheld: db.withheld_counts(),
        newest_time_ns: db.newest_time_ns(),
        durable_sequence: db.durable_sequence(),
    }
}

/// An error and its causes, one a line.
pub fn said(error: &tidal_db::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(text, "\n    because: {error}").unwrap();
        cause = error.source();
    }
    text
}

/// The names in a folder, in order.
pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
