//! Every name that others rely on, used once as it is written where they read it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidal_db::{
    Action, Aggregate, AggregateRow, ApplyReport, Clock, CommunityMembership, Config, Durability, Event,
    HistoryEvent, ManualClock, MembershipStatus, OpenReport, Predicate, Result, Schema, Scope, SignalReceipt,
    SystemClock, TidalDb, Transition, TransitionKind, Weight, Withheld, WithheldCounts,
};

fn schema() -> Schema {
    let half_life: Duration = Duration::from_secs(3600);
    Schema::builder()
        .signal("view", half_life)
        .cohorts_by("region")
        .cohort("north", Predicate::any_of("region", ["Scotland", "Wales"]))
        .build()
        .unwrap()
}

#[test]
fn names_of_tidal_keys() {
    use tidal_keys::{EncodedKey, EntityId, KeyError, Tag};
    use tidal_keys::{encode_key, entity_prefix, entity_tag_prefix, parse_key};

    const ID: EntityId = EntityId::new(7);
    let copy: EntityId = ID;
    assert_eq!((copy.get(), copy.max(ID)), (7, ID));
    assert_eq!(std::collections::HashSet::from([ID, copy]).len(), 1);
    assert_eq!(format!("{ID:?}"), "EntityId(7)");

    assert_eq!((Tag::PurgeManifest as u8, Tag::CommunityLeave as u8), (0x10, 0x11));
    let upstream = [
        (0x01, Tag::Event),
        (0x02, Tag::SignalState),
        (0x03, Tag::Metadata),
        (0x04, Tag::Relationship),
        (0x05, Tag::MaterializedView),
        (0x06, Tag::Index),
        (0x10, Tag::PurgeManifest),
        (0x11, Tag::CommunityLeave),
    ];
    for (byte, tag) in upstream {
        assert_eq!(Tag::try_from(byte).unwrap(), tag);
    }
    for free in (0x07..=0x0f).chain([0x00, 0x7f, 0xff]) {
        assert!(Tag::try_from(free).is_err());
    }

    let key: EncodedKey = encode_key(ID, Tag::CommunityLeave, b"");
    let bytes: &[u8] = key.as_ref();
    assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 7, 0x00, 0x11]);
    assert!(key.clone() < encode_key(EntityId::new(256), Tag::Event, b""));
    assert!(format!("{key:?}").contains("11"));
    let parsed: std::result::Result<(EntityId, Tag, &[u8]), KeyError> = parse_key(bytes);
    assert_eq!(parsed.unwrap(), (ID, Tag::CommunityLeave, &b""[..]));
    assert!(parse_key(encode_key(ID, Tag::CommunityLeave, b"x").as_ref()).is_err());

    let prefix: [u8; 9] = entity_prefix(ID);
    let tag_prefix: [u8; 10] = entity_tag_prefix(ID, Tag::CommunityLeave);
    assert!(bytes.starts_with(&prefix) && bytes == tag_prefix);
}

#[test]
fn names_of_tidal_storage() {
    use tidal_keys::{EntityId, Tag, encode_key, entity_prefix};
    use tidal_storage::{Partition, Storage, StorageError, WriteBatch};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.tidal");
    let storage: Storage = Storage::create(&path).unwrap();
    let key = encode_key(EntityId::new(7), Tag::Metadata, b"name");
    storage.users_engine().put(key.as_ref(), b"x").unwrap();
    let value: std::result::Result<Option<_>, StorageError> = storage.users_engine().get(key.as_ref());
    let value = value.unwrap().unwrap();
    assert_eq!(std::any::type_name_of_val(&value), "bytes::bytes::Bytes");
    assert_eq!(value, "x");
    for engine in [storage.items_engine(), storage.creators_engine()] {
        assert_eq!(engine.get(key.as_ref()).unwrap(), None);
    }
    let mut batch = WriteBatch::new();
    batch.put(Partition::Users, encode_key(EntityId::new(7), Tag::Relationship, b"").as_ref(), b"y");
    batch.put(Partition::Items, key.as_ref(), b"z");
    storage.commit(batch).unwrap();
    let of_user = storage.users_engine().scan_prefix(&entity_prefix(EntityId::new(7))).unwrap();
    let values: Vec<_> = of_user.map(|row| row.unwrap().1).collect();
    assert_eq!(values, ["x", "y"]);
    assert_eq!(storage.users_engine().scan_tag(Tag::Relationship).unwrap().count(), 1);
    storage.users_engine().delete(key.as_ref()).unwrap();
    drop(storage);
    assert_eq!(Storage::open(&path).unwrap().users_engine().get(key.as_ref()).unwrap(), None);
    assert!(Storage::in_memory().unwrap().items_engine().get(key.as_ref()).unwrap().is_none());
}

#[test]
fn names_of_the_leave_record() {
    use tidal_entities::community::{
        CommunityMembership, CommunityMembershipIndex, MembershipStatus, deserialize_membership,
        serialize_membership,
    };

    let left = CommunityMembership { user_id: 7, status: MembershipStatus::Left, left_at_ns: Some(100) };
    let copy = left;
    let bytes: [u8; 9] = serialize_membership(&left);
    assert_eq!(bytes, [1, 100, 0, 0, 0, 0, 0, 0, 0]);
    let read: Option<CommunityMembership> = deserialize_membership(7, &bytes);
    assert_eq!(read, Some(copy));
    let active = CommunityMembership::default_active(7);
    assert_eq!(
        active,
        CommunityMembership { user_id: 7, status: MembershipStatus::Active, left_at_ns: None }
    );
    assert_eq!(serialize_membership(&active), [0; 9]);
    // Exhaustive: no arm for what may come.
    match read.unwrap().status {
        MembershipStatus::Active => panic!("it was left"),
        MembershipStatus::Left => {}
    }
    let index = CommunityMembershipIndex::new();
    assert!(index.communities_of(7).is_empty());
}

#[test]
fn names_of_schema_and_predicate() {
    let wales = || Predicate::eq("region", "Wales");
    let trial = || Predicate::eq(String::from("plan"), String::from("trial"));
    let schema: std::result::Result<Schema, _> = Schema::builder()
        .signal("view", Duration::from_secs(60))
        .cohorts_by("region")
        .cohort("either", Predicate::or([wales(), trial()]))
        .cohort("both", Predicate::and([wales(), trial()]))
        .cohort("neither", Predicate::not(Predicate::or([wales(), trial()])))
        .cohort("north", Predicate::any_of("region", ["Scotland", "Wales"]))
        .build();
    let db = TidalDb::builder().schema(schema.unwrap()).ephemeral().open().unwrap();
    assert_eq!(db.signal(7, 1, "view", 1.0).unwrap().cohorts, 1);
    db.set_user_attribute(7, "region", "Wales").unwrap();
    // either, north, region=Wales
    assert_eq!(db.signal(7, 1, "view", 1.0).unwrap().cohorts, 3);
    db.set_user_attribute(7, "plan", "trial").unwrap();
    assert_eq!(db.signal(7, 1, "view", 1.0).unwrap().cohorts, 4);
}

fn is_shareable<T: Clone + Send + Sync + 'static>(_: &T) {}

#[test]
fn names_by_which_a_database_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signals.tidal");
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let db: TidalDb = TidalDb::builder()
        .schema(schema())
        .path(&path)
        .create(true)
        .clock(clock)
        .durability(Durability::Batched { max_events: 100, max_delay: Duration::from_millis(5) })
        .open()
        .unwrap();
    is_shareable(&db);
    db.leave_community_layer(7).unwrap();
    let closed: Result<()> = db.close();
    closed.unwrap();

    // The same file, one layer below, and from there back up.
    let storage = tidal_storage::Storage::open(&path).unwrap();
    let key = tidal_keys::encode_key(tidal_keys::EntityId::new(7), tidal_keys::Tag::CommunityLeave, b"");
    assert_eq!(storage.users_engine().get(key.as_ref()).unwrap().unwrap().len(), 9);
    let config: Config = TidalDb::builder().durability(Durability::Immediate);
    let db = TidalDb::from_parts(storage, config).unwrap();
    assert_eq!(db.left_count(), 1);
    drop(db);
    let config: Config = TidalDb::builder().schema(schema()).path(Path::new(&path));
    assert_eq!(TidalDb::from_config(config).unwrap().left_count(), 1);
    let db = TidalDb::builder().schema(schema()).ephemeral().open().unwrap();
    assert_eq!(db.left_count(), 0);
}

#[test]
fn names_of_leaving_and_returning() {
    let clock = Arc::new(ManualClock::new(100));
    let db = TidalDb::builder().schema(schema()).clock(clock.clone()).ephemeral().open().unwrap();
    let left: Result<CommunityMembership> = db.leave_community_layer(7);
    let wanted = CommunityMembership { user_id: 7, status: MembershipStatus::Left, left_at_ns: Some(100) };
    assert_eq!(left.unwrap(), wanted);
    let status: CommunityMembership = db.community_layer_status(7);
    assert_eq!(status, wanted);
    let count: u64 = db.left_count();
    let users: Vec<CommunityMembership> = db.left_users();
    assert_eq!((count, users), (1, vec![wanted]));
    clock.set(150);
    clock.advance(50);
    assert_eq!(clock.now_ns(), 200);
    let back: Result<CommunityMembership> = db.rejoin_community_layer(7);
    assert_eq!(back.unwrap(), CommunityMembership { status: MembershipStatus::Active, ..wanted });
    let history: Result<Vec<Transition>> = db.membership_history(7);
    let [leave, rejoin] = history.unwrap()[..] else { panic!("two transitions") };
    let Transition { sequence, kind, at_ns } = leave;
    assert_eq!((kind, at_ns), (TransitionKind::Leave, 100));
    assert_eq!((rejoin.kind, rejoin.at_ns), (TransitionKind::Rejoin, 200));
    assert!(sequence < rejoin.sequence);
    let repaired: Result<CommunityMembership> = db.repair_community_layer(7);
    assert_eq!(repaired.unwrap().status, MembershipStatus::Active);
    let report: &OpenReport = db.open_report();
    assert!(report.is_clean());
}

#[test]
fn names_of_signals_and_what_they_add_up_to() {
    let clock = Arc::new(ManualClock::new(1_000));
    let db = TidalDb::builder().schema(schema()).clock(clock).ephemeral().open().unwrap();
    let joined: Result<()> = db.join_community(7, 4);
    joined.unwrap();
    let quit: Result<()> = db.quit_community(7, 5);
    quit.unwrap();
    let communities: Vec<u64> = db.communities_of(7);
    assert_eq!(communities, [4]);
    let set: Result<()> = db.set_user_attribute(7, "region", "Scotland");
    set.unwrap();

    let receipt: Result<SignalReceipt> = db.signal(7, 1752, "view", 2.5);
    let receipt = receipt.unwrap();
    assert_eq!((receipt.cohorts, receipt.communities, receipt.withheld), (2_u32, 1_u32, None::<Withheld>));
    assert!(format!("{receipt:?}").contains("cohorts"));
    db.signal_at(7, 1752, "view", 0.5, 900).unwrap();

    let taken: Result<Option<Aggregate>> = db.aggregate(&Scope::Community(4), 1752, "view");
    let Aggregate { count, weight_nanos, weight_sum, score } = taken.unwrap().unwrap();
    assert_eq!((count, weight_nanos), (2_u64, 3_000_000_000_i128));
    assert!((weight_sum - 3.0).abs() < 1e-12 && (score - 3.0).abs() < 1e-9);

    let rows: Vec<AggregateRow> = db.aggregates(None).unwrap().collect::<Result<_>>().unwrap();
    let scopes: Vec<Scope> = rows.iter().map(|row| row.scope.clone()).collect();
    let cohort = |name: &str| Scope::Cohort(name.to_owned());
    assert_eq!(scopes, [Scope::Global, cohort("north"), cohort("region=Scotland"), Scope::Community(4)]);
    let AggregateRow { item, signal_type, aggregate, .. } = &rows[0];
    assert_eq!((*item, signal_type.as_str(), aggregate.count), (1752, "view", 2));
    assert_eq!(db.aggregates(Some(&Scope::Global)).unwrap().count(), 1);

    let best: Result<Vec<(u64, f64)>> = db.top_items(&Scope::Community(4), "view", 10_usize);
    assert_eq!(best.unwrap(), [(1752, score)]);
    let best: Result<Vec<(u64, f64)>> = db.top_items_at(&Scope::Global, "view", 10, 2_000_u64);
    assert_eq!(best.unwrap().len(), 1);

    let events: Vec<HistoryEvent> = db.history(7).unwrap().collect::<Result<_>>().unwrap();
    let last = &events[1];
    assert_eq!(
        (last.item, last.signal_type.as_str(), last.event_time_ns, last.withheld),
        (1752, "view", 900, None)
    );
    assert_eq!(last.weight, "0.5".parse::<Weight>().unwrap());
    assert!(events[0].sequence < last.sequence);
    db.flush().unwrap();
}

#[test]
fn names_of_events_from_a_source() {
    let clock = Arc::new(ManualClock::new(1_000));
    let db = TidalDb::builder().schema(schema()).clock(clock).ephemeral().open().unwrap();
    let weight: Weight = Weight::try_from(0.5_f64).unwrap();
    assert_eq!(weight.nanos(), 500_000_000_i64);
    assert_eq!(Weight::from_nanos(500_000_000).unwrap(), weight);
    assert_eq!("5e-1".parse::<Weight>().unwrap(), weight);

    let (user, signal_type) = (7_u64, String::from("view"));
    let actions = [
        Action::SetAttribute { user, name: String::from("region"), value: String::from("Wales") },
        Action::Join { user, community: 4 },
        Action::Quit { user, community: 5 },
        Action::Signal { user, item: 1752, signal_type: signal_type.clone(), weight },
        Action::Leave { user },
        Action::Signal { user, item: 1752, signal_type: signal_type.clone(), weight },
        Action::Rejoin { user },
        Action::Signal { user, item: 1752, signal_type, weight },
    ];
    // The last is dated at 97: while away.
    let times = [90, 91, 92, 93, 95, 96, 99, 97];
    let events = times.into_iter().zip(actions).map(|(at_ns, action)| Event { at_ns, action });
    let report: Result<ApplyReport> = db.apply("queue", 1, events);
    let report = report.unwrap();
    assert_eq!((report.applied, report.skipped, report.forwarded), (8_u64, 0_u64, 1_u64));
    assert_eq!(report.position, Some(8_u64));
    let counts = WithheldCounts { left: 1, away_period: 1, unknown: 0 };
    assert_eq!(report.withheld, counts);
    let position: Result<Option<u64>> = db.position("queue");
    assert_eq!(position.unwrap(), Some(8));
    let all: WithheldCounts = db.withheld_counts();
    assert_eq!(all, counts);
    let events: Vec<_> = db.history(7).unwrap().map(|event| event.unwrap().withheld).collect();
    assert_eq!(events, [None, Some(Withheld::Left), Some(Withheld::AwayPeriod)]);
    assert_ne!(Withheld::Unknown, Withheld::Left);
    assert_eq!(db.community_layer_status(7).left_at_ns, Some(95));
    assert_eq!(db.communities_of(7), [4]);
}
