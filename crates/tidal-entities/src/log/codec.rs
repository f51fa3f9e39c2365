use crate::{
    CodecError, LimitError, LogEntry, ScopeSetId, SignalEntry, SignalTypeId, check_attribute_name,
    check_attribute_value, check_source_name,
    reader::Reader,
    weight::stored_weight,
    withheld::{decode_reason, encode_reason},
};

const KIND_SIGNAL: u8 = 1;
const KIND_LEAVE: u8 = 2;
const KIND_REJOIN: u8 = 3;
const KIND_JOIN: u8 = 4;
const KIND_QUIT: u8 = 5;
const KIND_SET_ATTRIBUTE: u8 = 6;
const KIND_SOURCE_POSITION: u8 = 7;

/// Appends an entry, or leaves the bytes as they are if a text breaks its limit.
pub(super) fn encode_entry(entry: &LogEntry, out: &mut Vec<u8>) -> Result<(), CodecError> {
    match entry {
        LogEntry::Signal(signal) => encode_signal(signal, out),
        LogEntry::Leave { user, at_ns } => encode_numbers(KIND_LEAVE, [*user, *at_ns], out),
        LogEntry::Rejoin { user, at_ns } => encode_numbers(KIND_REJOIN, [*user, *at_ns], out),
        LogEntry::Join { user, community, at_ns } => {
            encode_numbers(KIND_JOIN, [*user, *community, *at_ns], out);
        }
        LogEntry::Quit { user, community, at_ns } => {
            encode_numbers(KIND_QUIT, [*user, *community, *at_ns], out);
        }
        LogEntry::SetAttribute { user, at_ns, name, value } => {
            check_attribute_name(name).and_then(|()| check_attribute_value(value)).map_err(limit)?;
            encode_numbers(KIND_SET_ATTRIBUTE, [*user, *at_ns], out);
            encode_text(name, out);
            encode_text(value, out);
        }
        LogEntry::SourcePosition { source, first_position, position, digest } => {
            check_source_name(source).map_err(limit)?;
            encode_numbers(KIND_SOURCE_POSITION, [*first_position, *position], out);
            out.extend_from_slice(digest);
            encode_text(source, out);
        }
    }
    Ok(())
}

pub(super) fn encode_signal(signal: &SignalEntry, out: &mut Vec<u8>) {
    encode_numbers(KIND_SIGNAL, [signal.user, signal.item], out);
    out.extend_from_slice(&signal.signal_type.0.to_le_bytes());
    out.extend_from_slice(&signal.weight.nanos().to_le_bytes());
    out.extend_from_slice(&signal.event_time_ns.to_le_bytes());
    out.extend_from_slice(&signal.scope_set.0.to_le_bytes());
    out.push(encode_reason(signal.withheld));
}

pub(super) fn decode_entry(reader: &mut Reader<'_>) -> Result<LogEntry, CodecError> {
    Ok(match reader.u8()? {
        KIND_SIGNAL => LogEntry::Signal(decode_signal(reader)?),
        KIND_LEAVE => LogEntry::Leave { user: reader.u64()?, at_ns: reader.u64()? },
        KIND_REJOIN => LogEntry::Rejoin { user: reader.u64()?, at_ns: reader.u64()? },
        KIND_JOIN => LogEntry::Join { user: reader.u64()?, community: reader.u64()?, at_ns: reader.u64()? },
        KIND_QUIT => LogEntry::Quit { user: reader.u64()?, community: reader.u64()?, at_ns: reader.u64()? },
        KIND_SET_ATTRIBUTE => {
            let (user, at_ns) = (reader.u64()?, reader.u64()?);
            let name = reader.text("name of an attribute")?.to_owned();
            let value = reader.text("value of an attribute")?.to_owned();
            check_attribute_name(&name).and_then(|()| check_attribute_value(&value)).map_err(limit)?;
            LogEntry::SetAttribute { user, at_ns, name, value }
        }
        KIND_SOURCE_POSITION => {
            let (first_position, position) = (reader.u64()?, reader.u64()?);
            let digest = reader.array()?;
            let source = reader.text("name of a source")?.to_owned();
            check_source_name(&source).map_err(limit)?;
            LogEntry::SourcePosition { source, first_position, position, digest }
        }
        found => return Err(CodecError::UnknownKind { what: "kind of log entry", found }),
    })
}

fn decode_signal(reader: &mut Reader<'_>) -> Result<SignalEntry, CodecError> {
    let signal = SignalEntry {
        user: reader.u64()?,
        item: reader.u64()?,
        signal_type: SignalTypeId(reader.u16()?),
        weight: stored_weight(reader.i64()?)?,
        event_time_ns: reader.u64()?,
        scope_set: ScopeSetId(reader.u32()?),
        withheld: decode_reason(reader.u8()?)?,
    };
    // Whoever adds up the log must never have to choose between the two.
    if signal.withheld.is_some() && signal.scope_set != ScopeSetId::EMPTY {
        return Err(CodecError::Value {
            what: "set of scopes of a withheld signal",
            found: signal.scope_set.0.to_string(),
            expected: "is 0, the empty set",
        });
    }
    Ok(signal)
}

fn encode_numbers<const N: usize>(kind: u8, numbers: [u64; N], out: &mut Vec<u8>) {
    out.push(kind);
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    // Every caller has checked the length against a limit far below this.
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn limit(source: LimitError) -> CodecError {
    CodecError::Limit { what: "log entry", source }
}
