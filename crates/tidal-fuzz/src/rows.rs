use tidal_entities::{
    AggregateKey, AggregateRow, AggregateRunBuilder, LogRow, LogRowBuilder, RunPlace, RunRow, RunRowBuilder,
    ScopeId, ScopeSetId, SignalTypeId, aggregate_row_key, attribute_key, checkpoint_key, decode_attribute,
    decode_checkpoint, decode_joined, decode_run_index, decode_schema, decode_scope, decode_scope_set,
    decode_source_position, decode_transition, encode_attribute, encode_checkpoint, encode_joined,
    encode_run_index, encode_schema, encode_scope, encode_scope_set, encode_source_position,
    encode_transition, joined_key, log_row_key, run_index_key, run_row_key, schema_key, scope_key,
    scope_set_key, seal, source_key, transition_key,
};

use crate::bytes::Bytes;

/// Stored rows: decoders are strict, so what they accept the encoders would have written byte for byte.
///
/// The first byte says which kind of row, the next ones are what stands in its key, and the rest is its payload,
/// which is sealed here: a fuzzer seldom guesses a checksum. The same bytes are tried without a seal as well.
pub fn rows(data: &[u8]) {
    let _decodes = is_row(data);
}

/// Whether the bytes are a row once they are sealed.
#[must_use]
pub fn is_row(data: &[u8]) -> bool {
    let mut bytes = Bytes(data);
    let kind = bytes.u8();
    let (one, two, three) = (bytes.u64(), bytes.u64(), bytes.u32());
    let payload = bytes.0;
    let name = String::from_utf8_lossy(payload.get(..payload.len().min(8)).unwrap_or_default());
    let signal_type = SignalTypeId(u16::try_from(three >> 16).unwrap_or_default());
    let key = match kind % 12 {
        0 => log_row_key(one),
        1 => aggregate_row_key(one, AggregateKey { item: two, scope: ScopeId(three), signal_type }),
        2 => checkpoint_key(),
        3 => schema_key(),
        4 => scope_key(ScopeId(three)),
        5 => scope_set_key(ScopeSetId(three)),
        6 => run_row_key(one, last_place(payload).unwrap_or(RunPlace { user: two, sequence: one })),
        7 => run_index_key(),
        8 => source_key(&name),
        9 => transition_key(one, two),
        10 => joined_key(one, two),
        _ => attribute_key(one, &name),
    };
    let key = key.as_ref();
    let mut is_row = false;
    for value in [payload.to_vec(), seal(key, payload)] {
        let written = written_again(kind % 12, key, &value);
        is_row = written.is_some();
        assert!(
            written.is_none_or(|again| again == value),
            "kind {kind}: {value:02x?} is written in another way"
        );
    }
    is_row
}

/// What the encoder makes of what the decoder accepts; `None` if it accepts nothing.
fn written_again(kind: u8, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    Some(match kind {
        0 => log_row(key, value)?,
        1 => {
            let row = AggregateRow::decode(key, value).ok()?;
            let mut builder = AggregateRunBuilder::new(row.run(), row.previous());
            for (key, state) in row.aggregates() {
                assert!(builder.push(*key, state).is_none(), "a row of aggregates is longer than rows get");
            }
            let (again, value, _) = builder.finish()?;
            assert_eq!(again.as_ref(), key, "a row of aggregates under another key");
            value
        }
        2 => encode_checkpoint(key, &decode_checkpoint(key, value).ok()?),
        3 => encode_schema(key, &decode_schema(key, value).ok()?).ok()?,
        4 => encode_scope(key, &decode_scope(key, value).ok()?),
        5 => encode_scope_set(key, &decode_scope_set(key, value).ok()?),
        6 => {
            let row = RunRow::decode(key, value).ok()?;
            let mut builder = RunRowBuilder::new(row.previous());
            row.entries().iter().for_each(|entry| builder.push(entry));
            let (again, value) = builder.finish(row.run());
            assert_eq!(again.as_ref(), key, "a row of a run under another key");
            value
        }
        7 => encode_run_index(key, &decode_run_index(key, value).ok()?),
        8 => encode_source_position(key, &decode_source_position(key, value).ok()?),
        9 => {
            let (user, transition) = decode_transition(key, value).ok()?;
            let (again, value) = encode_transition(user, &transition);
            assert_eq!(again.as_ref(), key, "a transition under another key");
            value
        }
        10 => encode_joined(key, decode_joined(key, value).ok()?),
        _ => {
            let (sequence, text) = decode_attribute(key, value).ok()?;
            encode_attribute(key, sequence, text)
        }
    })
}

/// A row of the log, whose entries are decoded one by one: an error among them ends it.
fn log_row(key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let row = LogRow::decode(key, value).ok()?;
    let mut builder = LogRowBuilder::new(row.first_sequence());
    for entry in row.entries() {
        let (sequence, entry) = entry.ok()?;
        assert_eq!(builder.push(&entry).ok(), Some(sequence), "{entry:?} is decoded and cannot be written");
    }
    assert_eq!(builder.next_sequence(), row.next_sequence(), "entries are missing");
    let (again, value) = builder.finish(row.newest_time_ns(), row.fingerprint());
    assert_eq!(again.as_ref(), key, "a row of the log under another key");
    Some(value)
}

/// The place of the last entry of a row of a run, which stands in its key as well.
fn last_place(payload: &[u8]) -> Option<RunPlace> {
    const ENTRY_LEN: usize = 43;
    let entry = payload.get(payload.len().checked_sub(ENTRY_LEN)?..)?;
    let number = |bytes: &[u8]| Bytes(bytes).u64();
    Some(RunPlace { user: number(entry.get(..8)?), sequence: number(entry.get(8..16)?) })
}
