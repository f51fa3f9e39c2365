//! Sealed rows: what goes in comes out, and nothing else does.
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

use common::{chain, single_bit_flips};
use proptest::prelude::*;
use tidal_entities::{
    AggregateKey, AggregateRow, AggregateRun, AggregateRunBuilder, AggregateState, Checkpoint, CodecError,
    Contribution, Fingerprint, HalfLife, InternedId, Run, RunEntry, RunIndex, RunPlace, RunRow,
    RunRowBuilder, Scope, ScopeId, ScopeSetId, SignalTypeId, SourcePosition, Transition, TransitionKind,
    Weight, Withheld, aggregate_row_key, attribute_key, checkpoint_key, decode_attribute, decode_checkpoint,
    decode_joined, decode_run_index, decode_scope, decode_scope_set, decode_source_position,
    decode_transition, encode_attribute, encode_checkpoint, encode_joined, encode_run_index, encode_scope,
    encode_scope_set, encode_source_position, encode_transition, joined_key, parse_aggregate_row_key,
    parse_attribute_key, parse_interned_key, parse_joined_key, parse_log_row_key, parse_run_row_key,
    parse_source_key, parse_transition_key, run_index_key, run_row_key, scope_key, scope_set_key, seal,
    source_key, transition_key, unseal,
};
use tidal_keys::{EncodedKey, EntityId, Tag, encode_key};
use unsigned_varint::encode;

fn weight(nanos: i64) -> Weight {
    Weight::from_nanos(nanos).unwrap()
}

fn aggregate() -> AggregateState {
    let mut state = AggregateState::default();
    state.add(weight(5), 0, HalfLife::MIN);
    state.add(weight(-7), 100 * HalfLife::MIN.ns(), HalfLife::MIN);
    state
}

/// Entries of two users in turn, in the order of a run.
fn run_entries(len: u64) -> Vec<RunEntry> {
    let mut entries: Vec<_> = (0..len)
        .map(|nth| RunEntry {
            place: RunPlace { user: 7 + nth % 2, sequence: 3 + nth },
            item: 1752,
            signal_type: SignalTypeId(1),
            weight: weight(-5),
            event_time_ns: 100,
            withheld: (nth == 1).then_some(Withheld::AwayPeriod),
        })
        .collect();
    entries.sort_by_key(|entry| entry.place);
    entries
}

/// The rows of run 4.
fn run_rows(entries: &[RunEntry]) -> Vec<(EncodedKey, Vec<u8>)> {
    let mut rows = Vec::new();
    let mut builder = RunRowBuilder::new(RunPlace::START);
    for entry in entries {
        if builder.is_full() {
            let next = RunRowBuilder::new(builder.last());
            rows.push(std::mem::replace(&mut builder, next).finish(4));
        }
        builder.push(entry);
    }
    if !builder.is_empty() {
        rows.push(builder.finish(4));
    }
    rows
}

fn sound_index() -> RunIndex {
    let run = |number, first_sequence, last_sequence| Run {
        number,
        level: 0,
        first_sequence,
        last_sequence,
        entry_count: 5,
        last: RunPlace { user: 7, sequence: last_sequence },
    };
    RunIndex { through: 30, next_number: 5, runs: vec![run(4, 1, 10), run(2, 12, 20)] }
}

fn windowed_aggregate() -> AggregateState {
    let mut state = AggregateState::default();
    for (nanos, hour) in [(5, 1_000), (-7, 990)] {
        let at_ns = hour * 3_600_000_000_000;
        state.add_contribution(&Contribution::windowed(weight(nanos), at_ns, HalfLife::MAX));
    }
    state
}

type Parses = fn(&[u8]) -> bool;
type Decode = fn(&[u8], &[u8]) -> Result<(), CodecError>;

const AGGREGATE: AggregateKey = AggregateKey { item: 7, scope: ScopeId(3), signal_type: SignalTypeId(1) };

/// A run of one row with one aggregate.
fn aggregate_row(key: AggregateKey, state: &AggregateState) -> (EncodedKey, Vec<u8>) {
    let mut run = AggregateRunBuilder::new(5, None);
    assert!(run.push(key, state).is_none());
    let (key, row, _) = run.finish().unwrap();
    (key, row)
}

/// What a row of one aggregate holds.
fn decoded_aggregate(key: &[u8], row: &[u8]) -> Result<(AggregateKey, AggregateState), CodecError> {
    let mut aggregates = AggregateRow::decode(key, row)?.into_aggregates();
    assert_eq!(aggregates.len(), 1);
    Ok(aggregates.remove(0))
}

/// One row of each kind with its decoder.
fn rows() -> Vec<(&'static str, EncodedKey, Vec<u8>, Decode)> {
    let (transition_key, transition) =
        encode_transition(7, &Transition { sequence: 1, kind: TransitionKind::Leave, at_ns: 100 });
    let joined = joined_key(7, 4);
    let attribute = attribute_key(7, "region");
    let scope = scope_key(ScopeId(3));
    let scope_set = scope_set_key(ScopeSetId(3));
    let source = source_key("events.csv");
    let (aggregate_key, aggregate_row) = self::aggregate_row(AGGREGATE, &aggregate());
    let (windowed_key, windowed_row) = self::aggregate_row(AGGREGATE, &windowed_aggregate());
    let position = SourcePosition { first_position: 1, position: 9, digest: [0xd1; 32] };
    let run_row = run_rows(&run_entries(2)).remove(0);
    let run_index = run_index_key();
    let run_index_row = encode_run_index(&run_index, &sound_index());
    let joined_row = encode_joined(&joined, 5);
    let attribute_row = encode_attribute(&attribute, 5, "Scotland");
    let scope_row = encode_scope(&scope, &Scope::Cohort("region=Scotland".into()));
    let scope_set_row = encode_scope_set(&scope_set, &[ScopeId(1), ScopeId(2)]);
    let source_row = encode_source_position(&source, &position);
    vec![
        ("transition", transition_key, transition, |key, value| decode_transition(key, value).map(drop)),
        ("membership", joined, joined_row, |key, value| decode_joined(key, value).map(drop)),
        ("attribute", attribute, attribute_row, |key, value| decode_attribute(key, value).map(drop)),
        ("scope", scope, scope_row, |key, value| decode_scope(key, value).map(drop)),
        ("set of scopes", scope_set, scope_set_row, |key, value| decode_scope_set(key, value).map(drop)),
        ("source position", source, source_row, |key, value| decode_source_position(key, value).map(drop)),
        ("aggregate with windows", windowed_key, windowed_row, |key, value| {
            AggregateRow::decode(key, value).map(drop)
        }),
        ("aggregate", aggregate_key, aggregate_row, |key, value| AggregateRow::decode(key, value).map(drop)),
        ("row of a run", run_row.0, run_row.1, |key, value| RunRow::decode(key, value).map(drop)),
        ("index of runs", run_index, run_index_row, |key, value| decode_run_index(key, value).map(drop)),
    ]
}

#[test]
fn every_single_bit_flip_is_refused() {
    for (name, key, row, decode) in rows() {
        assert!(decode(&key, &row).is_ok(), "{name}");
        for flipped in single_bit_flips(&row) {
            let error = decode(&key, &flipped).unwrap_err();
            assert!(matches!(error, CodecError::Checksum { .. }), "{name}: {error}");
        }
    }
}

#[test]
fn every_row_under_a_key_that_differs_in_one_bit_is_refused() {
    for (name, key, row, decode) in rows() {
        for flipped in single_bit_flips(&key) {
            assert!(decode(&flipped, &row).is_err(), "{name}");
        }
    }
}

#[test]
fn every_other_length_is_refused() {
    for (name, key, row, decode) in rows() {
        for len in 0..row.len() {
            assert!(decode(&key, &row[..len]).is_err(), "{name} of {len} bytes");
        }
        assert!(decode(&key, &[&row[..], &[0]].concat()).is_err(), "{name}");
    }
}

#[test]
fn sealed_payloads_of_a_wrong_shape_are_refused() {
    for (name, key, row, decode) in rows() {
        let payload = unseal(&key, &row).unwrap();
        // An attribute may have any value, and a set any number of scopes.
        if name != "attribute" && name != "scope" {
            let long = seal(&key, &[payload, &[1, 2, 3]].concat());
            assert!(
                matches!(
                    decode(&key, &long),
                    Err(CodecError::TrailingBytes { .. } | CodecError::CutShort { .. })
                ),
                "{name}"
            );
            let short = seal(&key, &payload[..payload.len() - 1]);
            assert!(matches!(decode(&key, &short), Err(CodecError::CutShort { .. })), "{name}");
        }
        assert!(name == "set of scopes" || decode(&key, &seal(&key, b"")).is_err(), "{name}");
    }
}

#[test]
fn keys_of_other_rows_are_refused() {
    let keys: Vec<EncodedKey> = rows().into_iter().map(|(_, key, _, _)| key).collect();
    let parsers: [(&str, Parses); 8] = [
        ("transition", |key| parse_transition_key(key).is_ok()),
        ("membership", |key| parse_joined_key(key).is_ok()),
        ("attribute", |key| parse_attribute_key(key).is_ok()),
        ("interned", |key| parse_interned_key(key).is_ok()),
        ("source", |key| parse_source_key(key).is_ok()),
        ("aggregate", |key| parse_aggregate_row_key(key).is_ok()),
        ("log row", |key| parse_log_row_key(key).is_ok()),
        ("row of a run", |key| parse_run_row_key(key).is_ok()),
    ];
    let table: Vec<(&str, usize)> =
        parsers.map(|(name, parses)| (name, keys.iter().filter(|key| parses(key)).count())).to_vec();
    // The key of a source position could be that of an attribute of user 0: their partitions tell them apart.
    let expected = [
        ("transition", 1),
        ("membership", 1),
        ("attribute", 2),
        ("interned", 2),
        ("source", 1),
        // One with windows and one without.
        ("aggregate", 2),
        ("log row", 0),
        ("row of a run", 1),
    ];
    assert_eq!(table, expected);
    for (name, parses) in parsers {
        assert!(!parses(b""), "{name}");
        assert!(!parses(&encode_key(EntityId::new(u64::MAX), Tag::Index, b"scope")), "{name}");
        assert!(!parses(&encode_key(EntityId::new(7), Tag::CommunityTransition, b"short")), "{name}");
        assert!(!parses(&encode_key(EntityId::new(7), Tag::Metadata, b"\xff")), "{name}");
    }
}

#[test]
fn keys_sort_as_numbers_do() {
    for pair in [0, 1, 255, 256, 1 << 32, u64::MAX - 1, u64::MAX].windows(2) {
        assert!(transition_key(7, pair[0]) < transition_key(7, pair[1]));
        assert!(joined_key(7, pair[0]) < joined_key(7, pair[1]));
    }
    let key = |run, item, scope, signal_type| {
        let last = AggregateKey { item, scope: ScopeId(scope), signal_type: SignalTypeId(signal_type) };
        aggregate_row_key(run, last)
    };
    assert!(key(255, 2, 2, 2) < key(256, 1, 1, 1));
    assert!(key(1, 255, 2, 2) < key(1, 256, 1, 1));
    assert!(key(1, 1, 255, 2) < key(1, 1, 256, 1));
    assert!(key(1, 1, 1, 255) < key(1, 1, 1, 256));
}

#[test]
fn messages_name_what_is_wrong() {
    let key = scope_key(ScopeId(3));
    let (transition_key, row) =
        encode_transition(7, &Transition { sequence: 1, kind: TransitionKind::Leave, at_ns: 100 });
    let mut payload = unseal(&transition_key, &row).unwrap().to_vec();
    payload[40] = 1;
    let with_hash = seal(&transition_key, &payload);
    let aggregate_key = aggregate_row_key(5, AGGREGATE);
    let row_of = |payload: &[u8]| {
        let payload = [&[0; 15][..], payload].concat();
        decoded_aggregate(&aggregate_key, &seal(&aggregate_key, &payload)).map(drop)
    };
    let aggregate_of = |count: u64, weight: i128| {
        let mut payload = vec![7, 3, 1];
        payload.extend_from_slice(encode::u64(count, &mut encode::u64_buffer()));
        let zigzag = (weight << 1 ^ weight >> 127).cast_unsigned();
        payload.extend_from_slice(encode::u128(zigzag, &mut encode::u128_buffer()));
        payload.push(0);
        row_of(&payload)
    };
    let refused = [
        decode_scope(&key, b"abc").map(drop),
        decode_scope(&key, &seal(b"another key", &[0])).map(drop),
        decode_scope(&key, &seal(&key, &[9])).map(drop),
        decode_scope(&key, &seal(&key, &[1, 2, 3])).map(drop),
        decode_scope(&key, &seal(&key, &[0, 2, 3])).map(drop),
        decode_scope(&key, &seal(&key, &[2, 0xff])).map(drop),
        decode_transition(&transition_key, &with_hash).map(drop),
        decode_transition(&key, &row).map(drop),
        decode_transition(b"short", &row).map(drop),
        aggregate_of(u64::MAX, 0),
        aggregate_of(0, 0),
        aggregate_of(1, 1_000_000_000_000_000_001),
        // No sum, the same epoch again, more than two signals come to.
        row_of(&[7, 3, 1, 1, 2, 2, 0, 0, 0]),
        row_of(&[7, 3, 1, 1, 2, 4, 1, 0, 1, 1, 0, 0, 1, 1]),
        row_of(&[7, 3, 1, 2, 2, 2, 1, 16, 1, 1]),
        // Numbers and sums in more bytes than they take.
        row_of(&[0x87, 0, 3, 1, 1, 2, 0]),
        row_of(&[7, 3, 1, 1, 2, 2, 1, 0, 2, 1, 0]),
        row_of(&[7, 3, 1, 1, 2, 2, 1, 0, 2, 0, 1]),
        row_of(&[7, 3, 1, 1, 2, 2, 1, 23, 2, 1, 1]),
        // Numbers that there is no scope or type of, and an item beyond the last.
        row_of(&[7, 0xff, 0xff, 0xff, 0xff, 0x1f, 1, 1, 2, 0]),
        row_of(&[7, 3, 0xff, 0xff, 0x07, 1, 2, 0]),
        row_of(&[7, 3, 1, 1, 2, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 3, 1, 1, 2, 0]),
        // Twice, another than the key says, none.
        row_of(&[7, 3, 1, 1, 2, 0, 0, 3, 1, 1, 2, 0]),
        row_of(&[8, 3, 1, 1, 2, 0]),
        row_of(&[]),
        decoded_aggregate(&aggregate_key, &seal(&aggregate_key, &[1; 14])).map(drop),
        decoded_aggregate(&aggregate_key, &seal(&aggregate_key, &[&[2][..], &[0; 14]].concat())).map(drop),
        decoded_aggregate(&aggregate_key, &seal(&aggregate_key, &[&[0][..], &[1; 14]].concat())).map(drop),
        parse_aggregate_row_key(&aggregate_row_key(0, AGGREGATE)).map(drop),
    ];
    let messages: Vec<String> = refused.into_iter().map(|refused| chain(&refused.unwrap_err())).collect();
    insta::assert_snapshot!("codec_errors", messages.join("\n"));
    assert!(row_of(&[7, 3, 1, 1, 2, 0]).is_ok());
    let largest = [&[u8::MAX; 15][..], &[0x7f]].concat();
    let sum_of = |count: u8, sum: &[u8]| {
        row_of(&[&[7, 3, 1, count, 2, 2, 1, 0, u8::try_from(sum.len()).unwrap()][..], sum].concat())
    };
    assert!(sum_of(1, &largest).is_ok());
    assert!(sum_of(2, &[&[u8::MAX; 16][..], &[0]].concat()).is_ok());
    assert!(aggregate_of(1, -1_000_000_000_000_000_000).is_ok());
}

#[test]
fn a_row_without_an_aggregate_is_refused_also_if_the_one_before_is_that_of_its_key() {
    let mut fields = Vec::new();
    fields.extend_from_slice(&AGGREGATE.item.to_le_bytes());
    fields.extend_from_slice(&AGGREGATE.scope.0.to_le_bytes());
    fields.extend_from_slice(&AGGREGATE.signal_type.0.to_le_bytes());
    let key = aggregate_row_key(5, AGGREGATE);
    let error = decoded_aggregate(&key, &seal(&key, &[&[1][..], &fields].concat())).unwrap_err();
    assert!(matches!(error, CodecError::Value { .. }), "{error}");
}

#[test]
fn a_checkpoint_names_runs_by_numbers_that_were_given_once() {
    let key = checkpoint_key();
    let run = |number| AggregateRun { number, aggregate_count: 1, byte_count: 40, last: AGGREGATE };
    let with = |runs: &[AggregateRun]| {
        let checkpoint = Checkpoint { next_number: 5, runs: runs.to_vec(), ..Checkpoint::default() };
        decode_checkpoint(&key, &encode_checkpoint(&key, &checkpoint)).map(|decoded| decoded == checkpoint)
    };
    assert!(with(&[]).unwrap() && with(&[run(4), run(1)]).unwrap());
    for wrong in [
        &[run(0)][..],
        &[run(1), run(5)],
        &[run(6)],
        &[run(2), run(3), run(2)],
        &[AggregateRun { aggregate_count: 0, ..run(1) }],
    ] {
        let error = with(wrong).unwrap_err();
        assert!(matches!(error, CodecError::Value { .. }), "{wrong:?}: {error}");
    }
}

#[test]
fn the_largest_aggregate_still_adds_and_subtracts() {
    let mut state = AggregateState::default();
    let last_ns = 32 * HalfLife::MIN.ns() - 1;
    for _ in 0..1_000 {
        state.add(Weight::MIN, last_ns, HalfLife::MIN);
    }
    let (key, row) = aggregate_row(AGGREGATE, &state);
    let (found, mut decoded) = decoded_aggregate(&key, &row).unwrap();
    assert_eq!((found, &decoded), (AGGREGATE, &state));
    for _ in 0..1_000 {
        decoded.subtract(Weight::MIN, last_ns, HalfLife::MIN).unwrap();
    }
    assert_eq!(decoded, AggregateState::default());
}

#[test]
fn rows_of_aggregates_follow_each_other_and_fit_a_page() {
    let key = |item| AggregateKey { item, ..AGGREGATE };
    let mut long = AggregateState::default();
    // An epoch each, so that it is longer than a row gets by itself.
    for epoch in 0..2_000 {
        long.add(Weight::ONE, epoch * 32 * HalfLife::MIN.ns(), HalfLife::MIN);
    }
    let short = aggregate();
    let mut run = AggregateRunBuilder::new(5, None);
    let mut rows = Vec::new();
    for item in 1..=3_000 {
        rows.extend(run.push(key(item), if item == 2_000 { &long } else { &short }));
    }
    let (last_key, last_row, run) = run.finish().unwrap();
    rows.push((last_key, last_row));
    let byte_count: usize = rows.iter().map(|(_, row)| row.len()).sum();
    assert_eq!((run.aggregate_count, run.byte_count, run.last), (3_000, byte_count as u64, key(3_000)));
    let mut previous = None;
    let mut items = Vec::new();
    for (row_key, value) in &rows {
        let row = AggregateRow::decode(row_key, value).unwrap();
        let is_alone = row.aggregates().len() == 1;
        assert_eq!(is_alone, row_key.len() + value.len() + 100 >= 16 * 1024, "{} bytes", value.len());
        assert_eq!((row.run(), row.previous()), (5, previous));
        previous = Some(row.last());
        items.extend(row.into_aggregates().into_iter().map(|(key, _)| key.item));
    }
    assert_eq!(items, (1..=3_000).collect::<Vec<_>>());
    assert!(AggregateRunBuilder::new(5, previous).finish().is_none());
}

#[test]
fn rows_of_a_run_follow_each_other_and_fit_a_page() {
    let entries = run_entries(1_000);
    let rows = run_rows(&entries);
    assert_eq!(rows.len(), 3);
    let mut previous = RunPlace::START;
    let mut read = Vec::new();
    for (key, value) in &rows {
        assert!(key.len() + value.len() + 100 < 16 * 1024, "{} bytes", value.len());
        let row = RunRow::decode(key, value).unwrap();
        assert_eq!((row.run(), row.previous()), (4, previous));
        assert_eq!(parse_run_row_key(key).unwrap(), (4, row.last()));
        previous = row.last();
        read.extend(row.into_entries());
    }
    assert_eq!(read, entries);
    assert!(rows.is_sorted());
}

#[test]
fn entries_of_a_run_that_do_not_ascend_are_refused() {
    let entries = run_entries(3);
    let decoded = |previous, entries: &[RunEntry]| {
        let mut builder = RunRowBuilder::new(previous);
        for entry in entries {
            builder.push(entry);
        }
        let (key, value) = builder.finish(4);
        RunRow::decode(&key, &value)
    };
    assert!(decoded(RunPlace::START, &entries).is_ok());
    assert!(decoded(entries[0].place, &entries[1..]).is_ok());
    assert!(decoded(entries[0].place, &entries).is_err());
    assert!(decoded(RunPlace::START, &[entries[1], entries[0]]).is_err());
    assert!(decoded(RunPlace::START, &[entries[0], entries[0]]).is_err());
    assert!(decoded(RunPlace::START, &[]).is_err());
    let unnumbered = RunEntry { place: RunPlace { user: 7, sequence: 0 }, ..entries[0] };
    assert!(decoded(RunPlace::START, &[unnumbered]).is_err());
    // A row under the key of another end.
    let (_, value) = run_rows(&entries).remove(0);
    let key = run_row_key(4, RunPlace { user: 9, sequence: 1 });
    let payload = &value[..value.len() - 4];
    assert!(RunRow::decode(&key, &seal(&key, payload)).is_err());
    let zero = run_row_key(0, entries[2].place);
    assert!(RunRow::decode(&zero, &seal(&zero, payload)).is_err());
}

#[test]
fn an_index_that_contradicts_itself_is_refused() {
    let key = run_index_key();
    let decoded = |change: &dyn Fn(&mut RunIndex)| {
        let mut index = sound_index();
        change(&mut index);
        decode_run_index(&key, &encode_run_index(&key, &index)).map(|decoded| assert_eq!(decoded, index))
    };
    decoded(&|_| {}).unwrap();
    decoded(&|index| index.runs.clear()).unwrap();
    decoded(&|index| *index = RunIndex::default()).unwrap();
    let refused: [&dyn Fn(&mut RunIndex); 11] = [
        &|index| index.through = 19,
        &|index| index.next_number = 4,
        &|index| index.runs[1].number = 4,
        &|index| index.runs[1].number = 0,
        &|index| index.runs.swap(0, 1),
        &|index| index.runs[1].first_sequence = 10,
        &|index| index.runs[0].first_sequence = 0,
        &|index| index.runs[1].last_sequence = 11,
        &|index| index.runs[0].entry_count = 0,
        &|index| index.runs[0].entry_count = 11,
        &|index| index.runs[0].last.sequence = 11,
    ];
    for (nth, change) in refused.into_iter().enumerate() {
        assert!(decoded(change).is_err(), "change {nth}");
    }
}

proptest! {
    #[test]
    fn runs_come_back(
        run in 1..=u64::MAX,
        places in prop::collection::btree_set((any::<u64>(), 1..u64::MAX), 1..50),
        item: u64,
        signal_type: u16,
        nanos in -1_000_000_000_000_000_000..=1_000_000_000_000_000_000_i64,
        event_time_ns: u64,
        reason in 0..4_usize,
    ) {
        let reasons = [None, Some(Withheld::Left), Some(Withheld::AwayPeriod), Some(Withheld::Unknown)];
        let entries: Vec<RunEntry> = places
            .into_iter()
            .map(|(user, sequence)| RunEntry {
                place: RunPlace { user, sequence },
                item,
                signal_type: SignalTypeId(signal_type),
                weight: weight(nanos),
                event_time_ns,
                withheld: reasons[reason],
            })
            .collect();
        let mut builder = RunRowBuilder::new(RunPlace::START);
        for entry in &entries {
            builder.push(entry);
        }
        let (key, value) = builder.finish(run);
        let row = RunRow::decode(&key, &value).unwrap();
        prop_assert_eq!(row.run(), run);
        prop_assert_eq!(row.entries(), &entries[..]);
    }

    #[test]
    fn keys_of_runs_sort_as_places_do(a: (u64, u64, u64), b: (u64, u64, u64)) {
        let key = |(run, user, sequence)| run_row_key(run, RunPlace { user, sequence });
        prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
    }

    #[test]
    fn transitions_come_back(user: u64, sequence: u64, is_leave: bool, at_ns: u64) {
        let kind = if is_leave { TransitionKind::Leave } else { TransitionKind::Rejoin };
        let transition = Transition { sequence, kind, at_ns };
        let (key, row) = encode_transition(user, &transition);
        prop_assert_eq!(decode_transition(&key, &row).unwrap(), (user, transition));
        let (mut by_value, mut by_row) = (Fingerprint::default(), Fingerprint::default());
        by_value.add_transition(user, &transition);
        by_row.add_stored_transition(&key, &row);
        prop_assert_eq!(by_value, by_row);
    }

    #[test]
    fn memberships_and_attributes_come_back(user: u64, community: u64, sequence: u64, name in "[^=]{1,60}", value: String) {
        let key = joined_key(user, community);
        prop_assert_eq!(parse_joined_key(&key).unwrap(), (user, community));
        prop_assert_eq!(decode_joined(&key, &encode_joined(&key, sequence)).unwrap(), sequence);
        let key = attribute_key(user, &name);
        prop_assert_eq!(parse_attribute_key(&key).unwrap(), (user, name.as_str()));
        let row = encode_attribute(&key, sequence, &value);
        prop_assert_eq!(decode_attribute(&key, &row).unwrap(), (sequence, value.as_str()));
    }

    #[test]
    fn scopes_come_back(
        id: u32,
        community: u64,
        name: String,
        set in prop::collection::btree_set(1..=u32::MAX, 0..20),
    ) {
        let key = scope_key(ScopeId(id));
        prop_assert_eq!(parse_interned_key(&key).unwrap(), InternedId::Scope(ScopeId(id)));
        for scope in [Scope::Global, Scope::Cohort(name), Scope::Community(community)] {
            prop_assert_eq!(decode_scope(&key, &encode_scope(&key, &scope)).unwrap(), scope);
        }
        let key = scope_set_key(ScopeSetId(id));
        prop_assert_eq!(parse_interned_key(&key).unwrap(), InternedId::ScopeSet(ScopeSetId(id)));
        let set: Vec<ScopeId> = set.into_iter().map(ScopeId).collect();
        prop_assert_eq!(decode_scope_set(&key, &encode_scope_set(&key, &set)).unwrap(), set.clone());
        let twice: Vec<ScopeId> = set.iter().flat_map(|scope| [*scope; 2]).collect();
        prop_assert_eq!(decode_scope_set(&key, &encode_scope_set(&key, &twice)).is_ok(), set.is_empty());
    }

    #[test]
    fn source_positions_come_back(name: String, first_position: u64, position: u64, digest: [u8; 32]) {
        let key = source_key(&name);
        prop_assert_eq!(parse_source_key(&key).unwrap(), name.as_str());
        let position = SourcePosition { first_position, position, digest };
        prop_assert_eq!(decode_source_position(&key, &encode_source_position(&key, &position)).unwrap(), position);
    }

    #[test]
    fn aggregates_come_back(
        item: u64,
        scope: u32,
        signal_type: u16,
        signals in prop::collection::vec((-1_000_000_000_000_000_000..=1_000_000_000_000_000_000_i64, any::<u64>()), 1..30),
    ) {
        let half_life = HalfLife::from_ns(3_600_000_000_000).unwrap();
        let mut state = AggregateState::default();
        for (nanos, event_time_ns) in signals {
            state.add(weight(nanos), event_time_ns, half_life);
        }
        let aggregate = AggregateKey { item, scope: ScopeId(scope), signal_type: SignalTypeId(signal_type) };
        let (key, row) = aggregate_row(aggregate, &state);
        prop_assert_eq!(parse_aggregate_row_key(&key).unwrap(), (5, aggregate));
        prop_assert_eq!(decoded_aggregate(&key, &row).unwrap(), (aggregate, state));
    }

    #[test]
    fn decoders_take_any_sealed_bytes_without_panic(payload: Vec<u8>) {
        for (_, key, _, decode) in rows() {
            let _ = decode(&key, &seal(&key, &payload));
            let _ = decode(&key, &payload);
            let _ = decode(&payload, &payload);
        }
    }
}
