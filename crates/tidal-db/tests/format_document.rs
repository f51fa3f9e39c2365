//! `docs/format.md` against the code: each example of the document is built here with the real code,
//! and each thing that is built here must stand in the document.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

mod format;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use format::document::Document;
use format::example::{Example, hex};
use format::story::{CHECKPOINT_SEQUENCE, FLAGS, HEADER_LEN, ITEM, RUN_SEQUENCE, Story, T, USER};
use sha2::{Digest, Sha256};
use tidal_db::{
    Action, DEFAULT_RECOVERY_ENTRIES, Event, MAX_COMMUNITIES_PER_USER, Predicate, Schema, Weight, Withheld,
};
use tidal_entities::community::{CommunityMembership, serialize_membership};
use tidal_entities::{
    AggregateKey, AggregateRow, AggregateRunBuilder, AggregateState, AwayPeriods, Contribution, Fingerprint,
    HalfLife, LogEntry, LogRowBuilder, RunPlace, ScopeId, ScopeSetId, SignalEntry, SignalTypeId,
    aggregate_row_key, checkpoint_key, decode_checkpoint, encode_schema, log_row_key, run_index_key,
    run_row_key, schema_key, seal, source_key, transition_key,
};
use tidal_keys::{EntityId, Tag, encode_key};
use tidal_storage::{FORMAT_VERSION, MAX_KEY_BYTES, MAX_VALUE_BYTES, Partition};
use xxhash_rust::xxh3::xxh3_64;

const ID: [usize; 3] = [8, 1, 1];

const RUN_ENTRY_LEN: usize = 43;

/// The lengths of the fields of a key whose suffix has these.
fn key_fields(suffix: &[usize]) -> Vec<usize> {
    [&ID, suffix].concat()
}

fn record_examples(story: &Story) -> Vec<Example> {
    let users = |key: &[u8]| story.value(Partition::Users, key);
    let system = |key: &[u8]| story.value(Partition::System, key);
    let mut examples = Vec::new();
    let mut row = |label: &str, key: &[u8], suffix: &[usize], value: &[u8], fields: &[usize]| {
        examples.push(Example::new(&format!("{label} key"), key, &key_fields(suffix)));
        examples.push(Example::new(&format!("{label} value"), value, fields));
    };

    let key = encode_key(EntityId::new(USER), Tag::CommunityLeave, b"");
    row("left", &key, &[], &story.value_after("leave", Partition::Users, &key), &[1, 8]);
    row("returned", &key, &[], &story.value_after("rejoin", Partition::Users, &key), &[1, 8]);

    let never = CommunityMembership::default_active(USER);
    let never = Example::new("never-left", &serialize_membership(&never), &[1, 8]);

    for (label, sequence) in [("transition-leave", 4), ("transition-rejoin", 6)] {
        let key = transition_key(USER, sequence);
        row(label, &key, &[8], &users(&key), &[1, 8, 32, 4]);
    }

    let key = tidal_entities::joined_key(USER, 4);
    row("membership", &key, &[8], &story.value_after("join", Partition::Users, &key), &[8, 4]);
    let key = tidal_entities::attribute_key(USER, "region");
    row("attribute", &key, &[6], &users(&key), &[8, 8, 4]);

    let key = log_row_key(3);
    row("log-row", &key, &[], &system(&key), &[4, 8, 8, 40, 4]);

    let key = tidal_entities::scope_key(ScopeId(1));
    row("scope-cohort", &key, &[5], &system(&key), &[1, 15, 4]);
    let key = tidal_entities::scope_key(ScopeId(2));
    row("scope-community", &key, &[5], &system(&key), &[1, 8, 4]);
    let key = tidal_entities::scope_set_key(ScopeSetId(1));
    row("scope-set", &key, &[9], &system(&key), &[8, 4]);

    let key = source_key("queue");
    row("source", &key, &[7, 5], &system(&key), &[8, 8, 32, 4]);

    let key = schema_key();
    let schema = system(&key);
    row("schema", &key, &[6], &schema, &[schema.len() - 4, 4]);

    let key = checkpoint_key();
    row("checkpoint", &key, &[10], &system(&key), &[8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 2, 4]);

    let key = run_row_key(1, RunPlace { user: USER, sequence: RUN_SEQUENCE });
    row("run-row", &key, &[8, 8], &system(&key), &[8, 8, 5 * RUN_ENTRY_LEN, 4]);
    let key = run_index_key();
    row("run-index", &key, &[4], &system(&key), &[8, 8, 8, 1, 8, 8, 8, 8, 8, 4]);

    let key = aggregate_row_key(1, LAST_AGGREGATE);
    let value = story.value(Partition::Items, &key);
    row("aggregates", &key, &[8, 4, 2], &value, &[1, 8, 4, 2, value.len() - 19, 4]);
    examples.push(never);
    examples
}

fn entry_examples(story: &Story) -> Vec<Example> {
    let signal = [1, 8, 8, 2, 8, 8, 4, 1];
    let position = [1, 8, 8, 32, 2, 5];
    let signal_len: usize = signal.iter().sum();
    let applied = signal_len + position.iter().sum::<usize>();
    let entries = |first_sequence: u64, len: usize| {
        let row = story.value(Partition::System, &log_row_key(first_sequence));
        assert_eq!(row.len(), 20 + len + 4, "the row of sequence {first_sequence} holds something else");
        row[20..row.len() - 4].to_vec()
    };
    let entry = |label: &str, sequence, fields: &[usize]| {
        Example::new(label, &entries(sequence, fields.iter().sum()), fields)
    };
    vec![
        entry("entry-set-attribute", 1, &[1, 8, 8, 2, 6, 2, 8]),
        entry("entry-join", 2, &[1, 8, 8, 8]),
        entry("entry-signal", 3, &signal),
        entry("entry-leave", 4, &[1, 8, 8]),
        entry("entry-signal-withheld", 5, &signal),
        entry("entry-rejoin", 6, &[1, 8, 8]),
        entry("entry-quit", 7, &[1, 8, 8, 8]),
        // One commit of `apply`: the signal, and behind it the position that its source has reached.
        Example::new("entry-source-position", &entries(8, applied)[signal_len..], &position),
    ]
}

/// The last of global, a cohort and a community.
const LAST_AGGREGATE: AggregateKey =
    AggregateKey { item: ITEM, scope: ScopeId(2), signal_type: SignalTypeId(0) };

/// The first aggregate of the run: global.
fn aggregate_example(story: &Story) -> Example {
    let row = story.value(Partition::Items, &aggregate_row_key(1, LAST_AGGREGATE));
    let lens = [2, 1, 1, 1, 5, 1, 1, 1, 1, 11];
    Example::new("aggregate", &row[15..15 + lens.iter().sum::<usize>()], &lens)
}

/// The second entry of the run: the first signal that was withheld.
fn run_entry_example(story: &Story) -> Example {
    let row =
        story.value(Partition::System, &run_row_key(1, RunPlace { user: USER, sequence: RUN_SEQUENCE }));
    let second = 16 + RUN_ENTRY_LEN;
    Example::new("run-entry", &row[second..second + RUN_ENTRY_LEN], &[8, 8, 8, 2, 8, 8, 1])
}

fn event(action: Action) -> Event {
    Event { at_ns: T, action }
}

fn event_examples() -> Vec<Example> {
    let bytes = |action: Action| {
        let mut out = Vec::new();
        event(action).encode(&mut out);
        out
    };
    let user = USER;
    let signal = Action::Signal { user, item: ITEM, signal_type: "view".into(), weight: weight("2.5") };
    let attribute = Action::SetAttribute { user, name: "region".into(), value: "Scotland".into() };
    vec![
        Example::new("event-signal", &bytes(signal), &[8, 1, 8, 8, 8, 4, 8]),
        Example::new("event-leave", &bytes(Action::Leave { user }), &[8, 1, 8]),
        Example::new("event-rejoin", &bytes(Action::Rejoin { user }), &[8, 1, 8]),
        Example::new("event-join", &bytes(Action::Join { user, community: 4 }), &[8, 1, 8, 8]),
        Example::new("event-quit", &bytes(Action::Quit { user, community: 4 }), &[8, 1, 8, 8]),
        Example::new("event-set-attribute", &bytes(attribute), &[8, 1, 8, 8, 6, 8, 8]),
    ]
}

/// The windows of two signals at one time: one bucket of each kind.
fn windows_example() -> Example {
    let key = AggregateKey { item: ITEM, scope: ScopeId::GLOBAL, signal_type: SignalTypeId(0) };
    let half_life = HalfLife::try_from(format::story::HALF_LIFE).unwrap();
    let mut without = AggregateState::default();
    let mut with = AggregateState::default();
    for nanos in ["1.5", "-0.5"] {
        without.add(weight(nanos), T, half_life);
        with.add_contribution(&Contribution::windowed(weight(nanos), T, half_life));
    }
    let payload_of = |state: &AggregateState| {
        let mut run = AggregateRunBuilder::new(1, None);
        run.push(key, state);
        let (_, mut row, _) = run.finish().unwrap();
        row.truncate(row.len() - 4);
        row
    };
    let (without, with) = (payload_of(&without), payload_of(&with));
    let (before, windows) = with.split_at(without.len());
    let differing: Vec<_> = (0..before.len()).filter(|at| before[*at] != without[*at]).collect();
    let [head] = differing[..] else { panic!("windows change what stands before them: {differing:?}") };
    assert_eq!(before[head], without[head] | 1);
    Example::new("windows", windows, &[4, 1, 1, 8, 16, 1, 1, 8, 16])
}

/// What is hashed for an attribute and for a membership, the two hashes, and their sum.
fn fingerprint_examples(story: &Story) -> Vec<Example> {
    let user = USER.to_le_bytes();
    let attribute = [&[2][..], &user, b"region", b"=", b"Scotland"].concat();
    let membership = [&[1][..], &user, &4_u64.to_le_bytes()].concat();
    let [of_attribute, of_membership] = [xxh3_64(&attribute), xxh3_64(&membership)];
    let sum = of_attribute.wrapping_add(of_membership).to_le_bytes();
    let row = story.value(Partition::System, &log_row_key(3));
    assert_eq!(row[12..20], sum, "the row after attribute and membership has another fingerprint");
    vec![
        Example::new("hashed-attribute", &attribute, &[1, 8, 6, 1, 8]),
        Example::new("hash-attribute", &of_attribute.to_le_bytes(), &[8]),
        Example::new("hashed-membership", &membership, &[1, 8, 8]),
        Example::new("hash-membership", &of_membership.to_le_bytes(), &[8]),
        Example::new("fingerprint", &sum, &[8]),
    ]
}

fn weight(text: &str) -> Weight {
    text.parse().unwrap()
}

fn all_examples(story: &Story) -> Vec<Example> {
    let mut examples = vec![
        Example::new("file", &story.image()[..9], &[9]),
        Example::new("marker key", b"format", &[6]),
        Example::new("marker value", &[&b"tidal\0db"[..], &FORMAT_VERSION.to_le_bytes()].concat(), &[8, 4]),
        Example::new("seal", &seal(b"1234", b"56789")[5..], &[4]),
        Example::new("digest-1", &story.digest_after("apply one"), &[32]),
        Example::new("digest-2", &story.digest_after("apply another"), &[32]),
    ];
    examples.extend(record_examples(story));
    examples.extend(entry_examples(story));
    examples.extend(event_examples());
    examples.extend(fingerprint_examples(story));
    examples.push(run_entry_example(story));
    examples.push(aggregate_example(story));
    examples.push(windows_example());
    examples
}

#[test]
fn every_example_is_what_the_code_writes() {
    let document = Document::read();
    let built = all_examples(&Story::told());
    let mut missing = String::new();
    for example in &built {
        if document.examples.get(&example.label) != Some(&example.text) {
            writeln!(missing, "{}", example.wrapped()).unwrap();
        }
    }
    assert!(missing.is_empty(), "docs/format.md should say\n{missing}");

    let built_labels: BTreeSet<_> = built.iter().map(|example| &example.label).collect();
    let labels: BTreeSet<_> = document.examples.keys().collect();
    assert_eq!(labels, built_labels, "docs/format.md has examples that nothing asserts");
}

#[test]
fn every_table_of_fields_fits_its_examples() {
    let document = Document::read();
    let mut checked = 0;
    for example in all_examples(&Story::told()) {
        // Keys all have the same table, and what is no record has none.
        let Some(fields) = document.fields_of(&example.label) else { continue };
        let mut offset = Some(0);
        assert_eq!(fields.len(), example.lens.len(), "fields of {}", example.label);
        for (field, len) in fields.iter().zip(&example.lens) {
            let said = |text: &str, actual: usize| text.parse::<usize>().map_or(true, |said| said == actual);
            assert!(said(&field.size, *len), "size of {} in {}", field.name, example.label);
            assert!(offset.is_none_or(|at| said(&field.offset, at)), "offset of {}", field.name);
            // Behind a field of no fixed size there are no fixed offsets.
            offset = offset.filter(|_| field.size.parse::<usize>().is_ok()).map(|at| at + len);
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} fields were compared");
}

#[test]
fn marker_and_tables_lie_in_the_file() {
    let image = Story::told().image();
    let document = Document::read();
    let holds = |bytes: &[u8]| image.windows(bytes.len()).any(|window| window == bytes);
    // The one record of its table: the engine puts the value right behind the key.
    let marker = document.bytes("marker key").into_iter().chain(document.bytes("marker value"));
    assert!(holds(&marker.collect::<Vec<_>>()));
    assert!(holds(b"tidal"));
    for &partition in Partition::ALL {
        for &tag in Tag::ALL {
            let name = format!("{partition}/{:02x}", tag.as_u8());
            assert!(holds(name.as_bytes()), "no table {name}");
        }
    }
}

#[test]
fn tables_in_use_are_those_of_the_document() {
    let document = Document::read();
    for &tag in Tag::ALL {
        let row = document.row(&format!("`{:#04x}`", tag.as_u8()));
        assert!(row[1].contains(&format!("`{tag:?}`")), "{tag:?}");
    }
    let mut used = BTreeSet::new();
    for step in Story::told().steps {
        used.extend(step.changes.into_keys().map(|(table, _)| table));
    }
    let said: BTreeSet<_> = document.tables_in_use();
    assert_eq!(said, used);
}

#[test]
fn a_seal_is_the_crc_32_of_key_and_payload() {
    // Bit by bit from the polynomial, so that it is not checked by what it is made with.
    fn crc32(bytes: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            }
        }
        !crc
    }
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    assert_eq!(Document::read().bytes("seal"), 0xCBF4_3926_u32.to_le_bytes());
    let mut sealed = 0;
    for (_, key, value) in Story::told().rows() {
        if key[9] == Tag::CommunityLeave.as_u8() {
            assert_eq!(value.len(), 9);
            continue;
        }
        let (payload, stored) = value.split_last_chunk::<4>().unwrap();
        assert_eq!(u32::from_le_bytes(*stored), crc32(&[&key[..], payload].concat()), "{}", hex(&key));
        sealed += 1;
    }
    assert!(sealed > 15);
}

#[test]
fn a_running_digest_is_the_chain_that_the_document_says() {
    let story = Story::told();
    let mut digest = [0; 32];
    let mut text = String::new();
    for (position, event) in (1_u64..).zip(Story::source_events()) {
        let mut bytes = digest.to_vec();
        bytes.extend_from_slice(&position.to_le_bytes());
        event.encode(&mut bytes);
        digest = Sha256::digest(&bytes).into();
        writeln!(text, "position {position}  {}", hex(&digest)).unwrap();
    }
    assert_eq!(digest, story.digest_after("apply another"));
    insta::assert_snapshot!("v1_running_digest", text);
}

#[test]
fn a_fingerprint_is_the_sum_that_the_document_says() {
    let story = Story::told();
    let mut sum = 0_u64;
    let mut kinds = BTreeSet::new();
    for (partition, key, value) in story.rows() {
        let (id, suffix) = (u64::from_be_bytes(key[..8].try_into().unwrap()).to_le_bytes(), &key[10..]);
        let payload = &value[..value.len().saturating_sub(4)];
        let hashed = match (partition, Tag::try_from(key[9]).unwrap()) {
            (Partition::Users, Tag::Relationship) => {
                let community = u64::from_be_bytes(suffix.try_into().unwrap());
                [&[1][..], &id, &community.to_le_bytes()].concat()
            }
            (Partition::Users, Tag::Metadata) => [&[2][..], &id, suffix, b"=", &payload[8..]].concat(),
            (Partition::Users, Tag::CommunityTransition) => [&[3][..], &key, &value].concat(),
            (Partition::System, Tag::Metadata) => match suffix.strip_prefix(b"source/") {
                Some(name) => [&[4][..], payload, name].concat(),
                None => continue,
            },
            _ => continue,
        };
        kinds.insert(hashed[0]);
        sum = sum.wrapping_add(xxh3_64(&hashed));
    }
    // The membership was quit; its hash is that of an example.
    assert_eq!(kinds, BTreeSet::from([2, 3, 4]));
    let row = story.value(Partition::System, &log_row_key(CHECKPOINT_SEQUENCE));
    assert_eq!(row[12..20], sum.to_le_bytes());
}

#[test]
fn the_checkpoint_names_the_run_that_it_wrote() {
    let story = Story::told();
    let key = checkpoint_key();
    let value = story.value_after("end of the checkpoint", Partition::System, &key);
    let checkpoint = decode_checkpoint(&key, &value).unwrap();
    let [run] = checkpoint.runs[..] else { panic!("{checkpoint:?}") };
    assert_eq!((checkpoint.floor, run.number, run.aggregate_count), (CHECKPOINT_SEQUENCE, 1, 3));
    let rows: Vec<_> =
        story.rows().into_iter().filter(|(partition, ..)| *partition == Partition::Items).collect();
    let [(_, key, value)] = &rows[..] else { panic!("{rows:?}") };
    let row = AggregateRow::decode(key, value).unwrap();
    assert_eq!((row.run(), row.last(), value.len() as u64), (1, run.last, run.byte_count));
}

#[test]
fn commits_are_pinned() {
    let story = Story::told();
    let mut text = String::new();
    for step in &story.steps {
        let phases = if step.is_two_phase { "two-phase" } else { "plain" };
        writeln!(text, "{}: {phases}", step.name).unwrap();
        // One commit a call: two phases sync twice, and the engine syncs once more when the file grows.
        assert_eq!(step.syncs, 1 + u64::from(step.is_two_phase) + step.resizes, "{}", step.name);
        for (place, value) in &step.changes {
            let (table, key) = place;
            let value = value.as_ref().map_or("removed".to_owned(), |value| hex(value));
            writeln!(text, "  {table}\n    key    {}\n    value  {value}", hex(key)).unwrap();
        }
    }
    insta::assert_snapshot!("v1_commits", text);
}

#[test]
fn reasons_for_withholding_are_pinned() {
    let mut text = String::new();
    for withheld in [None, Some(Withheld::Left), Some(Withheld::AwayPeriod), Some(Withheld::Unknown)] {
        let mut builder = LogRowBuilder::new(1);
        let signal = SignalEntry {
            user: USER,
            item: ITEM,
            signal_type: SignalTypeId(0),
            weight: weight("-0.000000001"),
            event_time_ns: T,
            scope_set: ScopeSetId::EMPTY,
            withheld,
        };
        builder.push(&LogEntry::Signal(signal)).unwrap();
        let (key, row) = builder.finish(T, Fingerprint::default());
        writeln!(text, "{withheld:?}\n  key    {}\n  value  {}", hex(&key), hex(&row)).unwrap();
    }
    insta::assert_snapshot!("v1_withheld_reasons", text);
}

#[test]
fn schema_and_predicates_read_as_the_document_says() {
    let document = Document::read();
    let schema = document.bytes("schema value");
    assert_eq!(document.json.as_bytes(), &schema[..schema.len() - 4]);
    let windowed =
        Schema::builder().windowed("like", std::time::Duration::from_secs(86_400)).build().unwrap();
    let row = encode_schema(&schema_key(), &windowed).unwrap();
    let json = std::str::from_utf8(&row[..row.len() - 4]).unwrap();
    let (_, declared) = json.split_once('[').unwrap();
    let (declared, _) = declared.split_once(']').unwrap();
    assert!(document.text.contains(&format!("`{declared}`")), "no signal type {declared}");
    for predicate in [
        Predicate::eq("region", "Wales"),
        Predicate::any_of("region", ["Wales", "Ireland"]),
        Predicate::and([]),
        Predicate::or([]),
        Predicate::not(Predicate::or([])),
    ] {
        let schema = Schema::builder().cohort("c", predicate).build().unwrap();
        let row = encode_schema(&schema_key(), &schema).unwrap();
        let json = std::str::from_utf8(&row[..row.len() - 4]).unwrap();
        let (_, stored) = json.split_once("\"predicate\":").unwrap();
        let stored = stored.strip_suffix("}]}").unwrap();
        assert!(document.text.contains(&format!("`{stored}`")), "no predicate {stored}");
    }
}

#[test]
fn limits_are_those_of_the_document() {
    let document = Document::read();
    let limits = BTreeMap::from([
        ("MAX_KEY_BYTES", MAX_KEY_BYTES),
        ("tidal_storage::MAX_VALUE_BYTES", MAX_VALUE_BYTES),
        ("MAX_NAME_BYTES", tidal_entities::MAX_NAME_BYTES),
        ("tidal_entities::MAX_VALUE_BYTES", tidal_entities::MAX_VALUE_BYTES),
        ("MAX_COMMUNITIES_PER_USER", MAX_COMMUNITIES_PER_USER),
        ("MAX_AWAY_PERIODS", AwayPeriods::MAX_AWAY_PERIODS),
        ("MAX_SIGNAL_TYPES", Schema::MAX_SIGNAL_TYPES),
        ("MAX_COHORTS", Schema::MAX_COHORTS),
        ("MAX_COHORTS_BY", Schema::MAX_COHORTS_BY),
        ("MAX_DEPTH", Predicate::MAX_DEPTH),
        ("MAX_NODES", Predicate::MAX_NODES),
        ("DEFAULT_RECOVERY_ENTRIES", usize::try_from(DEFAULT_RECOVERY_ENTRIES).unwrap()),
    ]);
    for (name, limit) in limits {
        let row = document.row(&format!("`{name}`"));
        let said: String = row[1].chars().filter(char::is_ascii_digit).collect();
        assert_eq!(said, limit.to_string(), "{name}");
    }
    let version = format!("format version {FORMAT_VERSION}");
    assert!(document.text.contains(&version));
    assert_eq!(HalfLife::MAX.ns(), 36_525 * 86_400 * 1_000_000_000);
    assert_eq!(HalfLife::MIN.ns(), 1_000_000_000);
}

#[test]
fn one_bit_of_the_header_can_lose_the_newest_leave() {
    let story = Story::killed_after_a_leave();
    assert_eq!(story.bits_that_lose_the_leave(0..HEADER_LEN), [(FLAGS, 0)]);
    assert!(Document::read().text.contains(&format!("bit 0 of byte {FLAGS}")));
    // With `expect_at_least` the older state is refused, and any later commit shields the leave.
    let mut image = story.image();
    image[FLAGS] ^= 1;
    assert!(matches!(
        story.open(image, Some(story.leave_sequence)),
        Err(tidal_db::Error::BehindExpected { .. })
    ));
    let later = Story::killed_after_a_later_signal();
    assert_eq!(later.bits_that_lose_the_leave(FLAGS..FLAGS + 1), []);
}

#[test]
fn engine_version_is_that_of_the_document() {
    let document = Document::read();
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    assert!(manifest.lines().any(|line| line == document.toml), "Cargo.toml has no line {}", document.toml);
    // The version of the engine's own format is the first byte of a commit slot.
    let engine_format = Story::told().image()[64];
    assert!(document.text.contains(&format!("file format {engine_format}")));
}
