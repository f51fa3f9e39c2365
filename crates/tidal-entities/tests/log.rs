//! Rows of the log: count and bytes agree exactly, or an error says so.
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
    CodecError, Fingerprint, LogEntry, LogRow, LogRowBuilder, MAX_NAME_BYTES, MAX_VALUE_BYTES, ScopeSetId,
    SignalEntry, SignalTypeId, Weight, Withheld, log_row_key, parse_log_row_key, seal, unseal,
};

fn entries() -> impl Strategy<Value = LogEntry> {
    let withheld = prop_oneof![
        Just(None),
        Just(Some(Withheld::Left)),
        Just(Some(Withheld::AwayPeriod)),
        Just(Some(Withheld::Unknown)),
    ];
    let signal = (
        any::<(u64, u64, u16, u64, u32)>(),
        -1_000_000_000_000_000_000..=1_000_000_000_000_000_000_i64,
        withheld,
    )
        .prop_map(|((user, item, signal_type, event_time_ns, scope_set), nanos, withheld)| {
            LogEntry::Signal(SignalEntry {
                user,
                item,
                signal_type: SignalTypeId(signal_type),
                weight: Weight::from_nanos(nanos).unwrap(),
                event_time_ns,
                // A withheld signal has no scopes.
                scope_set: if withheld.is_some() { ScopeSetId::EMPTY } else { ScopeSetId(scope_set) },
                withheld,
            })
        });
    prop_oneof![
        4 => signal,
        1 => any::<(u64, u64)>().prop_map(|(user, at_ns)| LogEntry::Leave { user, at_ns }),
        1 => any::<(u64, u64)>().prop_map(|(user, at_ns)| LogEntry::Rejoin { user, at_ns }),
        1 => any::<(u64, u64, u64)>().prop_map(|(user, community, at_ns)| LogEntry::Join { user, community, at_ns }),
        1 => any::<(u64, u64, u64)>().prop_map(|(user, community, at_ns)| LogEntry::Quit { user, community, at_ns }),
        1 => (any::<(u64, u64)>(), "[^=]{1,60}", ".{0,200}")
            .prop_map(|((user, at_ns), name, value)| LogEntry::SetAttribute { user, at_ns, name, value }),
        1 => (any::<(u64, u64, [u8; 32])>(), ".{1,60}").prop_map(|((first_position, position, digest), source)| {
            LogEntry::SourcePosition { source, first_position, position, digest }
        }),
    ]
}

fn set_attribute(name: &str, value: &str) -> LogEntry {
    LogEntry::SetAttribute { user: 7, at_ns: 100, name: name.to_owned(), value: value.to_owned() }
}

/// Decodes a row with this count and these entries, as if it had been written so.
fn decode(entry_count: u32, entries: &[u8]) -> Vec<Result<(u64, LogEntry), CodecError>> {
    let key = log_row_key(10);
    let row = seal(&key, &[&entry_count.to_le_bytes()[..], &[0; 16], entries].concat());
    LogRow::decode(&key, &row).unwrap().entries().collect()
}

fn leave_bytes() -> Vec<u8> {
    [&[2][..], &7_u64.to_le_bytes(), &100_u64.to_le_bytes()].concat()
}

#[test]
fn a_row_without_entries_is_refused() {
    let builder = LogRowBuilder::new(10);
    assert!(builder.is_empty());
    assert_eq!(builder.entries().count(), 0);
    let (key, row) = builder.finish(5, Fingerprint::default());
    assert!(matches!(LogRow::decode(&key, &row), Err(CodecError::Value { .. })));
}

#[test]
fn count_and_bytes_agree() {
    let two = [leave_bytes(), leave_bytes()].concat();
    assert!(decode(2, &two).iter().all(Result::is_ok));

    let too_few = decode(1, &two);
    assert_eq!(too_few.len(), 2);
    assert!(matches!(too_few[1], Err(CodecError::TrailingBytes { extra: 17, .. })));

    let too_many = decode(3, &two);
    assert_eq!(too_many.len(), 3);
    assert!(matches!(too_many[2], Err(CodecError::CutShort { missing: 1, .. })));

    let cut = decode(2, &two[..33]);
    assert_eq!(cut.len(), 2);
    assert!(matches!(cut[1], Err(CodecError::CutShort { missing: 1, .. })));
}

#[test]
fn nothing_follows_an_error() {
    let entries = [&[99][..], &leave_bytes(), &leave_bytes()].concat();
    assert!(matches!(decode(3, &entries)[..], [Err(CodecError::UnknownKind { found: 99, .. })]));
}

#[test]
fn sequence_numbers_end_before_the_last_u64() {
    let mut builder = LogRowBuilder::new(u64::MAX - 1);
    let leave = LogEntry::Leave { user: 7, at_ns: 100 };
    assert_eq!(builder.push(&leave).unwrap(), u64::MAX - 1);
    assert!(matches!(builder.push(&leave), Err(CodecError::TooMany { .. })));
    assert_eq!((builder.entry_count(), builder.next_sequence()), (1, u64::MAX));
    let (key, row) = builder.finish(100, Fingerprint::default());
    assert_eq!(LogRow::decode(&key, &row).unwrap().next_sequence(), u64::MAX);

    let key = log_row_key(u64::MAX - 1);
    let row = seal(&key, &[&2_u32.to_le_bytes()[..], &[0; 16]].concat());
    assert!(matches!(LogRow::decode(&key, &row), Err(CodecError::Value { .. })));
}

#[test]
fn texts_at_their_limits_are_taken_and_beyond_them_nothing_is_left_behind() {
    let mut builder = LogRowBuilder::new(10);
    let longest = set_attribute(&"n".repeat(MAX_NAME_BYTES), &"v".repeat(MAX_VALUE_BYTES));
    builder.push(&longest).unwrap();
    let len_bytes = builder.len_bytes();
    for entry in [
        set_attribute("", "value"),
        set_attribute("a=b", "value"),
        set_attribute(&"n".repeat(MAX_NAME_BYTES + 1), "value"),
        set_attribute("name", &"v".repeat(MAX_VALUE_BYTES + 1)),
        LogEntry::SourcePosition { source: String::new(), first_position: 0, position: 0, digest: [0; 32] },
        LogEntry::SourcePosition {
            source: "s".repeat(MAX_NAME_BYTES + 1),
            first_position: 0,
            position: 0,
            digest: [0; 32],
        },
    ] {
        assert!(matches!(builder.push(&entry), Err(CodecError::Limit { .. })));
        assert_eq!((builder.entry_count(), builder.len_bytes()), (1, len_bytes));
    }
    let (key, row) = builder.finish(100, Fingerprint::default());
    assert_eq!(row.len(), len_bytes);
    let row = LogRow::decode(&key, &row).unwrap();
    assert!(row.entries().map(Result::unwrap).eq([(10, longest)]));
}

#[test]
fn fields_that_are_never_written_are_refused() {
    let signal_in = |scope_set: u32, nanos: i64, withheld: u8| {
        let mut bytes = vec![1];
        bytes.extend_from_slice(&[0; 18]);
        bytes.extend_from_slice(&nanos.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&scope_set.to_le_bytes());
        bytes.push(withheld);
        bytes
    };
    let signal = |nanos, withheld| signal_in(0, nanos, withheld);
    let attribute = |name: &[u8], value: &[u8]| {
        let mut bytes = vec![6];
        bytes.extend_from_slice(&[0; 16]);
        for text in [name, value] {
            bytes.extend_from_slice(&u16::try_from(text.len()).unwrap().to_le_bytes());
            bytes.extend_from_slice(text);
        }
        bytes
    };
    assert!(decode(1, &signal(5, 3))[0].is_ok());
    assert!(decode(1, &signal_in(1, 5, 0))[0].is_ok());
    assert!(decode(1, &attribute(b"name", b""))[0].is_ok());
    let refused = [
        signal(1_000_000_000_000_000_001, 0),
        signal(0, 4),
        signal_in(1, 5, 1),
        attribute(b"", b"value"),
        attribute(b"a=b", b"value"),
        attribute(b"name", &[b'v'; MAX_VALUE_BYTES + 1]),
        attribute(b"\xff", b"value"),
        vec![0],
        vec![8],
        vec![2, 7],
    ];
    let messages: Vec<String> =
        refused.iter().map(|entry| chain(decode(1, entry)[0].as_ref().unwrap_err())).collect();
    insta::assert_snapshot!("log_errors", messages.join("\n"));
}

#[test]
fn every_single_bit_flip_is_refused() {
    let mut builder = LogRowBuilder::new(10);
    builder.push(&set_attribute("region", "Scotland")).unwrap();
    builder.push(&LogEntry::Leave { user: 7, at_ns: 100 }).unwrap();
    let (key, row) = builder.finish(100, Fingerprint::default());
    for flipped in single_bit_flips(&row) {
        assert!(matches!(LogRow::decode(&key, &flipped), Err(CodecError::Checksum { .. })));
    }
    for flipped in single_bit_flips(&key) {
        assert!(LogRow::decode(&flipped, &row).is_err());
    }
    for len in 0..row.len() {
        assert!(LogRow::decode(&key, &row[..len]).is_err());
    }
}

proptest! {
    #[test]
    fn entries_come_back(
        first_sequence in 0..u64::MAX - 100,
        entries in prop::collection::vec(entries(), 1..40),
        newest_time_ns: u64,
    ) {
        let mut builder = LogRowBuilder::new(first_sequence);
        let mut expected = Vec::new();
        for entry in entries {
            let sequence = match &entry {
                LogEntry::Signal(signal) => builder.push_signal(signal).unwrap(),
                other => builder.push(other).unwrap(),
            };
            expected.push((sequence, entry));
        }
        prop_assert!(builder.entries().map(Result::unwrap).eq(expected.iter().cloned()));
        prop_assert!(expected.iter().map(|(sequence, _)| *sequence).eq(first_sequence..builder.next_sequence()));

        let len_bytes = builder.len_bytes();
        let (key, value) = builder.finish(newest_time_ns, Fingerprint::default());
        prop_assert_eq!(value.len(), len_bytes);
        prop_assert_eq!(parse_log_row_key(&key).unwrap(), first_sequence);
        let row = LogRow::decode(&key, &value).unwrap();
        prop_assert_eq!(row.newest_time_ns(), newest_time_ns);
        prop_assert_eq!(row.entry_count() as usize, expected.len());
        prop_assert!(row.entries().map(Result::unwrap).eq(expected));

        // What was read, written again, gives the same bytes.
        let mut again = LogRowBuilder::new(row.first_sequence());
        for entry in row.entries() {
            again.push(&entry.unwrap().1).unwrap();
        }
        prop_assert_eq!(again.finish(newest_time_ns, Fingerprint::default()), (key, value));
    }

    #[test]
    fn any_sealed_bytes_are_read_without_panic(payload: Vec<u8>, entry_count: u32) {
        let key = log_row_key(10);
        for payload in [payload.clone(), [&entry_count.to_le_bytes()[..], &[0; 8], &payload].concat()] {
            let value = seal(&key, &payload);
            prop_assert_eq!(unseal(&key, &value).unwrap(), &payload[..]);
            if let Ok(row) = LogRow::decode(&key, &value) {
                prop_assert!(row.entries().filter(Result::is_err).count() <= 1);
            }
        }
    }
}
