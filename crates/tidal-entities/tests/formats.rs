//! The bytes of every record. A changed `v1_` snapshot is a change of the format and needs a new version.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

mod common;

use std::time::Duration;

use common::{hex, labelled, labelled_row};
use tidal_entities::{
    Action, AggregateKey, AggregateRun, AggregateRunBuilder, AggregateState, Checkpoint, Contribution, Event,
    Fingerprint, HalfLife, LogEntry, LogRowBuilder, Predicate, Run, RunEntry, RunIndex, RunPlace,
    RunRowBuilder, Schema, Scope, ScopeId, ScopeSetId, SignalEntry, SignalTypeId, SourcePosition, Transition,
    TransitionKind, Weight, Withheld, WithheldCounts, attribute_key, checkpoint_key,
    community::{CommunityMembership, MembershipStatus, serialize_membership},
    encode_attribute, encode_checkpoint, encode_joined, encode_run_index, encode_schema, encode_scope,
    encode_scope_set, encode_source_position, encode_transition, joined_key, run_index_key, schema_key,
    scope_key, scope_set_key, source_key,
};

/// A time whose eight bytes all differ, so that a wrong byte order shows.
const TIME_NS: u64 = 0x0102_0304_0506_0708;
const USER: u64 = 0x1112_1314_1516_1718;
const ITEM: u64 = 0x2122_2324_2526_2728;
const COMMUNITY: u64 = 0x3132_3334_3536_3738;
const SEQUENCE: u64 = 0x4142_4344_4546_4748;

fn weight(text: &str) -> Weight {
    text.parse().unwrap()
}

#[test]
fn leave_record() {
    let fields = [("status: 0 active, 1 left", 1), ("left_at_ns, little-endian", 8)];
    for (name, status, left_at_ns) in [
        ("v1_left", MembershipStatus::Left, Some(TIME_NS)),
        ("v1_active_never_left", MembershipStatus::Active, None),
        ("v1_active_after_rejoin", MembershipStatus::Active, Some(TIME_NS)),
    ] {
        let record = serialize_membership(&CommunityMembership { user_id: USER, status, left_at_ns });
        insta::assert_snapshot!(name, labelled(&fields, &record));
    }
}

#[test]
fn transition_row() {
    for (name, kind) in
        [("v1_transition_leave", TransitionKind::Leave), ("v1_transition_rejoin", TransitionKind::Rejoin)]
    {
        let (key, row) = encode_transition(USER, &Transition { sequence: SEQUENCE, kind, at_ns: TIME_NS });
        let fields = [("kind: 1 leave, 2 rejoin", 1), ("at_ns", 8), ("chain hash, zero", 32)];
        insta::assert_snapshot!(name, labelled_row(&[("sequence, big-endian", 8)], &fields, &key, &row));
    }
}

#[test]
fn membership_and_attribute_rows() {
    let key = joined_key(USER, COMMUNITY);
    let row = encode_joined(&key, SEQUENCE);
    let joined = labelled_row(&[("community, big-endian", 8)], &[("sequence of the join", 8)], &key, &row);
    insta::assert_snapshot!("v1_joined", joined);

    let key = attribute_key(USER, "region");
    let row = encode_attribute(&key, SEQUENCE, "Scotland");
    let fields = [("sequence of the change", 8), ("value, UTF-8", 8)];
    insta::assert_snapshot!("v1_attribute", labelled_row(&[("name, UTF-8", 6)], &fields, &key, &row));
}

#[test]
fn scope_rows() {
    let key = scope_key(ScopeId(0x0102_0304));
    for (name, scope, fields) in [
        ("v1_scope_global", Scope::Global, &[("kind: 0 global", 1)][..]),
        ("v1_scope_community", Scope::Community(COMMUNITY), &[("kind: 1 community", 1), ("community", 8)]),
        (
            "v1_scope_cohort",
            Scope::Cohort("region=Scotland".into()),
            &[("kind: 2 cohort", 1), ("name, UTF-8", 15)],
        ),
    ] {
        let row = encode_scope(&key, &scope);
        insta::assert_snapshot!(name, labelled_row(&[("\"scope\"", 5)], fields, &key, &row));
    }

    let key = scope_set_key(ScopeSetId(0x0102_0304));
    let row = encode_scope_set(&key, &[ScopeId(1), ScopeId(0x0506_0708)]);
    let fields = [("first scope", 4), ("second scope", 4)];
    insta::assert_snapshot!("v1_scope_set", labelled_row(&[("\"scope-set\"", 9)], &fields, &key, &row));
}

#[test]
fn checkpoint_row() {
    let key = checkpoint_key();
    let withheld = WithheldCounts { left: 491, away_period: 116, unknown: 1 };
    let row = encode_checkpoint(
        &key,
        &Checkpoint {
            floor: SEQUENCE,
            withheld,
            next_number: 0x5152_5354_5556_5758,
            runs: vec![AggregateRun {
                number: 0x5152_5354_5556_5757,
                aggregate_count: 0x6162_6364_6566_6768,
                byte_count: 0x7172_7374_7576_7778,
                last: AGGREGATE,
            }],
        },
    );
    let fields = [
        ("floor: sequence", 8),
        ("withheld as left", 8),
        ("withheld in an away period", 8),
        ("withheld as unknown", 8),
        ("number of the next run", 8),
        ("number of a run", 8),
        ("its aggregates", 8),
        ("bytes of its rows", 8),
        ("item of its last aggregate", 8),
        ("scope of that", 4),
        ("signal type of that", 2),
    ];
    insta::assert_snapshot!("v1_checkpoint", labelled_row(&[("\"checkpoint\"", 10)], &fields, &key, &row));
}

#[test]
fn run_rows() {
    let place = RunPlace { user: USER, sequence: SEQUENCE };
    let mut builder = RunRowBuilder::new(RunPlace { user: USER - 1, sequence: SEQUENCE + 1 });
    for (sequence, withheld) in [(SEQUENCE, None), (SEQUENCE + 2, Some(Withheld::AwayPeriod))] {
        builder.push(&RunEntry {
            place: RunPlace { sequence, ..place },
            item: ITEM,
            signal_type: SignalTypeId(0x0102),
            weight: weight("-2.5"),
            event_time_ns: TIME_NS,
            withheld,
        });
    }
    let (key, row) = builder.finish(0x6162_6364_6566_6768);
    let suffix = [("last user, big-endian", 8), ("last sequence, big-endian", 8)];
    let entry = [
        ("user", 8),
        ("sequence", 8),
        ("item", 8),
        ("signal type", 2),
        ("weight in 1e-9", 8),
        ("event_time_ns", 8),
        ("withheld: 0 no, 1 left, 2 away period, 3 unknown", 1),
    ];
    let fields = [&[("user before the row", 8), ("sequence before the row", 8)], &entry[..], &entry].concat();
    insta::assert_snapshot!("v1_run_row", labelled_row(&suffix, &fields, &key, &row));

    let key = run_index_key();
    let run = Run {
        number: 0x6162_6364_6566_6768,
        level: 1,
        first_sequence: SEQUENCE - 1,
        last_sequence: SEQUENCE + 2,
        entry_count: 2,
        last: RunPlace { sequence: SEQUENCE + 2, ..place },
    };
    let index = RunIndex { through: SEQUENCE + 3, next_number: run.number + 1, runs: vec![run] };
    let fields = [
        ("through: sequence", 8),
        ("number of the next run", 8),
        ("number of the run", 8),
        ("level", 1),
        ("first sequence", 8),
        ("last sequence", 8),
        ("signals", 8),
        ("last user", 8),
        ("its last sequence", 8),
    ];
    let row = encode_run_index(&key, &index);
    insta::assert_snapshot!("v1_run_index", labelled_row(&[("\"runs\"", 4)], &fields, &key, &row));
}

#[test]
fn fingerprints() {
    let source = SourcePosition { first_position: 1, position: 2, digest: [0xd1; 32] };
    let left = Transition { sequence: SEQUENCE, kind: TransitionKind::Leave, at_ns: TIME_NS };
    let of = |change: &dyn Fn(&mut Fingerprint)| {
        let mut fingerprint = Fingerprint::default();
        change(&mut fingerprint);
        format!("{:016x}", fingerprint.get())
    };
    let lines = [
        ("nothing", of(&|_| {})),
        ("a membership", of(&|rows| rows.add_membership(USER, COMMUNITY))),
        ("an attribute", of(&|rows| rows.add_attribute(USER, "region", "Scotland"))),
        ("a transition", of(&|rows| rows.add_transition(USER, &left))),
        ("a source", of(&|rows| rows.add_source("events.csv", &source))),
        (
            "all, but the membership again removed",
            of(&|rows| {
                rows.add_source("events.csv", &source);
                rows.add_membership(USER, COMMUNITY);
                rows.add_transition(USER, &left);
                rows.add_attribute(USER, "region", "Scotland");
                rows.remove_membership(USER, COMMUNITY);
            }),
        ),
    ];
    let text: Vec<String> =
        lines.iter().map(|(what, fingerprint)| format!("{fingerprint}  {what}")).collect();
    insta::assert_snapshot!("v1_fingerprints", text.join("\n"));
}

#[test]
fn log_row() {
    let mut builder = LogRowBuilder::new(SEQUENCE);
    for entry in [
        LogEntry::Signal(SignalEntry {
            user: USER,
            item: ITEM,
            signal_type: SignalTypeId(0x0102),
            weight: weight("-6.25"),
            event_time_ns: TIME_NS,
            scope_set: ScopeSetId(0x0304_0506),
            withheld: None,
        }),
        LogEntry::Signal(SignalEntry {
            user: USER,
            item: ITEM,
            signal_type: SignalTypeId(0),
            weight: Weight::MAX,
            event_time_ns: u64::MAX,
            scope_set: ScopeSetId::EMPTY,
            withheld: Some(Withheld::AwayPeriod),
        }),
        LogEntry::Leave { user: USER, at_ns: TIME_NS },
        LogEntry::Rejoin { user: USER, at_ns: TIME_NS },
        LogEntry::Join { user: USER, community: COMMUNITY, at_ns: TIME_NS },
        LogEntry::Quit { user: USER, community: COMMUNITY, at_ns: TIME_NS },
        LogEntry::SetAttribute {
            user: USER,
            at_ns: TIME_NS,
            name: "region".into(),
            value: "Scotland".into(),
        },
        LogEntry::SourcePosition {
            source: "events.csv".into(),
            first_position: 1,
            position: 111_481,
            digest: [0xd1; 32],
        },
    ] {
        builder.push(&entry).unwrap();
    }
    let (key, row) = builder.finish(TIME_NS + 1, Fingerprint::from_stored(0x4142_4344_4546_4748));

    let signal = [
        ("kind: 1 signal", 1),
        ("user", 8),
        ("item", 8),
        ("signal type", 2),
        ("weight in units of 1e-9", 8),
        ("event_time_ns", 8),
        ("scope set", 4),
        ("withheld: 0 no, 1 left, 2 away period, 3 unknown", 1),
    ];
    let transition = |kind| [(kind, 1), ("user", 8), ("at_ns", 8)];
    let membership = |kind| [(kind, 1), ("user", 8), ("community", 8), ("at_ns", 8)];
    let fields = [
        &[("entry count", 4), ("newest_time_ns", 8), ("fingerprint of the rows beside the log", 8)][..],
        &signal,
        &signal,
        &transition("kind: 2 leave"),
        &transition("kind: 3 rejoin"),
        &membership("kind: 4 join"),
        &membership("kind: 5 quit"),
        &[
            ("kind: 6 set attribute", 1),
            ("user", 8),
            ("at_ns", 8),
            ("length of the name", 2),
            ("name, UTF-8", 6),
            ("length of the value", 2),
            ("value, UTF-8", 8),
        ],
        &[
            ("kind: 7 source position", 1),
            ("first position", 8),
            ("position", 8),
            ("digest, SHA-256", 32),
            ("length of the source", 2),
            ("source, UTF-8", 10),
        ],
    ]
    .concat();
    insta::assert_snapshot!("v1_log_row", labelled_row(&[], &fields, &key, &row));
}

#[test]
fn source_row() {
    let key = source_key("events.csv");
    let position = SourcePosition { first_position: 1, position: 111_481, digest: [0xd1; 32] };
    let row = encode_source_position(&key, &position);
    let fields = [("first position", 8), ("position", 8), ("digest, SHA-256", 32)];
    let suffix = [("\"source/\"", 7), ("name, UTF-8", 10)];
    insta::assert_snapshot!("v1_source_position", labelled_row(&suffix, &fields, &key, &row));
}

const AGGREGATE: AggregateKey =
    AggregateKey { item: ITEM, scope: ScopeId(0x0102_0304), signal_type: SignalTypeId(0x0506) };

/// Key and value of a row of one aggregate, behind one of the item before.
fn row_of_aggregate(state: &AggregateState) -> String {
    let before = AggregateKey { item: ITEM - 1, scope: ScopeId(7), signal_type: SignalTypeId(8) };
    let mut run = AggregateRunBuilder::new(SEQUENCE, Some(before));
    assert!(run.push(AGGREGATE, state).is_none());
    let (key, row, _) = run.finish().unwrap();
    let header = [
        ("whether there is a row before", 1),
        ("its last item", 8),
        ("scope of that", 4),
        ("signal type of that", 2),
        ("item: behind that", 1),
        ("scope", 4),
        ("signal type", 2),
        ("count", 1),
        ("weight sum in units of 1e-9, zigzag", 5),
        ("epochs, twice; 1 more with windows", 1),
    ];
    let sum = |len| [("zero bytes of its sum", 1), ("bytes that follow", 1), ("its sum", len)];
    let epochs = if state.has_windows() {
        [&[("epoch", 1)][..], &sum(9)].concat()
    } else {
        [&[("first epoch", 1)][..], &sum(4), &[("second epoch: behind the first", 1)], &sum(9)].concat()
    };
    let bucket = |age| [(age, 1), ("count", 8), ("weight sum in units of 1e-9", 16)];
    let windows = [
        &[("newest bucket of 5 minutes", 4), ("how many buckets of 5 minutes", 1)][..],
        &bucket("age: in buckets before the newest"),
        &bucket("age"),
        &[("how many buckets of an hour", 1)],
        &bucket("age"),
        &bucket("age"),
        &bucket("age"),
    ]
    .concat();
    let windows = if state.has_windows() { windows } else { Vec::new() };
    let suffix = [("item, big-endian", 8), ("scope, big-endian", 4), ("signal type, big-endian", 2)];
    labelled_row(&suffix, &[&header[..], &epochs, &windows].concat(), &key, &row)
}

#[test]
fn aggregate_row() {
    let half_life = HalfLife::try_from(Duration::from_secs(86_400)).unwrap();
    let epoch_ns = 32 * half_life.ns();
    let mut state = AggregateState::default();
    state.add(weight("2.5"), 3 * epoch_ns, half_life);
    state.add(weight("-1"), 7 * epoch_ns + half_life.ns() / 2, half_life);
    insta::assert_snapshot!("v1_aggregate", row_of_aggregate(&state));
}

#[test]
fn aggregate_row_with_windows() {
    let hour_ns = 3_600_000_000_000;
    let minute_ns = hour_ns / 60;
    let mut state = AggregateState::default();
    for (text, at_ns) in [
        ("2.5", 500_000 * hour_ns),
        ("-1", 500_000 * hour_ns - 20 * minute_ns),
        ("0.5", 500_000 * hour_ns - 3 * hour_ns),
        // Not kept in a bucket.
        ("8", 499_000 * hour_ns),
    ] {
        state.add_contribution(&Contribution::windowed(weight(text), at_ns, HalfLife::MAX));
    }
    insta::assert_snapshot!("v1_aggregate_with_windows", row_of_aggregate(&state));
}

#[test]
fn schema_row_with_windows() {
    let day = Duration::from_secs(86_400);
    let schema = Schema::builder().signal("like", day).windowed("view", 7 * day).build().unwrap();
    let row = encode_schema(&schema_key(), &schema).unwrap();
    insta::assert_snapshot!("v1_schema_with_windows", str::from_utf8(&row[..row.len() - 4]).unwrap());
}

#[test]
fn schema_row() {
    let schema = Schema::builder()
        .signal("view", Duration::from_secs(7 * 86_400))
        .signal("submit", Duration::from_secs(180 * 86_400))
        .cohorts_by("region")
        .cohort(
            "north but not on trial",
            Predicate::and([
                Predicate::or([
                    Predicate::eq("region", "Scotland"),
                    Predicate::any_of("region", ["Wales", "Ireland"]),
                ]),
                Predicate::not(Predicate::eq("plan", "trial")),
            ]),
        )
        .build()
        .unwrap();
    let key = schema_key();
    let row = encode_schema(&key, &schema).unwrap();
    let (json, checksum) = row.split_at(row.len() - 4);
    let text = format!(
        "key\n{}\nvalue\n{}\nchecksum {}",
        labelled(&[("entity id", 8), ("separator", 1), ("tag", 1), ("\"schema\"", 6)], &key),
        str::from_utf8(json).unwrap(),
        hex(checksum),
    );
    insta::assert_snapshot!("v1_schema", text);
}

#[test]
fn event_bytes_for_digests() {
    let text = |name| [("length", 8), name];
    for (name, action, fields) in [
        (
            "v1_event_signal",
            Action::Signal { user: USER, item: ITEM, signal_type: "submit".into(), weight: weight("78.5") },
            [
                &[("kind: 1 signal", 1), ("user", 8), ("item", 8)][..],
                &text(("signal type", 6)),
                &[("weight", 8)],
            ]
            .concat(),
        ),
        ("v1_event_leave", Action::Leave { user: USER }, vec![("kind: 2 leave", 1), ("user", 8)]),
        ("v1_event_rejoin", Action::Rejoin { user: USER }, vec![("kind: 3 rejoin", 1), ("user", 8)]),
        (
            "v1_event_join",
            Action::Join { user: USER, community: COMMUNITY },
            vec![("kind: 4 join", 1), ("user", 8), ("community", 8)],
        ),
        (
            "v1_event_quit",
            Action::Quit { user: USER, community: COMMUNITY },
            vec![("kind: 5 quit", 1), ("user", 8), ("community", 8)],
        ),
        (
            "v1_event_set_attribute",
            Action::SetAttribute { user: USER, name: "region".into(), value: "Scotland".into() },
            [&[("kind: 6 set attribute", 1), ("user", 8)][..], &text(("name", 6)), &text(("value", 8))]
                .concat(),
        ),
    ] {
        let mut bytes = Vec::new();
        Event { at_ns: TIME_NS, action }.encode(&mut bytes);
        insta::assert_snapshot!(name, labelled(&[&[("at_ns", 8)], &fields[..]].concat(), &bytes));
    }
}
