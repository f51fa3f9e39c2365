//! Writes the seeds under `fuzz/seeds` anew: `cargo run -p tidal-fuzz --example seeds`. The same every time.
#![allow(missing_docs, reason = "an example has no users but its readers")]

use std::error::Error;
use std::fs;
use std::path::Path;

use tidal_entities::community::{CommunityMembership, MembershipStatus, serialize_membership};
use tidal_entities::{
    AggregateKey, AggregateRun, AggregateRunBuilder, AggregateState, Checkpoint, Fingerprint, HalfLife,
    LogEntry, LogRowBuilder, Run, RunEntry, RunIndex, RunPlace, RunRowBuilder, Schema, Scope, ScopeId,
    ScopeSetId, SignalEntry, SignalTypeId, SourcePosition, Transition, TransitionKind, Weight, Withheld,
    WithheldCounts, checkpoint_key, encode_checkpoint, encode_joined, encode_run_index, encode_schema,
    encode_scope, encode_scope_set, encode_source_position, encode_transition, joined_key, run_index_key,
    schema_key, scope_key, scope_set_key, source_key, unseal,
};
use tidal_keys::{EntityId, Tag, encode_key};

type Seeds = Vec<Vec<u8>>;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let all = [
        ("record", records()),
        ("keys", keys()),
        ("rows", rows()?),
        ("event_file", event_files()),
        ("operations", operations()),
    ];
    for (target, seeds) in all {
        let folder = folder.join(target);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("{number:02}")), seed)?;
        }
        println!("{target}: {} seeds", seeds.len());
    }
    Ok(())
}

fn records() -> Seeds {
    let mut seeds = Vec::new();
    for user_id in [0, 7, u64::MAX] {
        for (status, left_at_ns) in [
            (MembershipStatus::Active, None),
            (MembershipStatus::Active, Some(100)),
            (MembershipStatus::Left, Some(0)),
            (MembershipStatus::Left, Some(100)),
            (MembershipStatus::Left, Some(u64::MAX)),
        ] {
            let record = serialize_membership(&CommunityMembership { user_id, status, left_at_ns });
            seeds.push([&user_id.to_le_bytes()[..], &record].concat());
        }
    }
    let user = 7_u64.to_le_bytes();
    for bad in [&[][..], &[1], &[1; 8], &[1; 10], &[2, 0, 0, 0, 0, 0, 0, 0, 0], &[255; 9]] {
        seeds.push([&user, bad].concat());
    }
    seeds
}

fn keys() -> Seeds {
    let mut seeds = Vec::new();
    for tag in Tag::ALL {
        for (id, suffix) in [(7, &b""[..]), (u64::MAX, &b"\0\xff suffix"[..])] {
            seeds.push(encode_key(EntityId::new(id), *tag, suffix).as_ref().to_vec());
        }
    }
    // Pairs that are compared: id, tag, length of the suffix, suffix.
    for (one, other) in [(7_u64, 7_u64), (7, 8), (255, 256), (0, u64::MAX)] {
        for (tag, other_tag) in [(1, 1), (1, 2), (0x11, 0x11)] {
            let part = |id: u64, tag: u8| [&id.to_le_bytes()[..], &[tag, 2, 0, 0xff]].concat();
            seeds.push([part(one, tag), part(other, other_tag)].concat());
        }
    }
    seeds
}

/// A row as the target takes it apart: kind, what stands in the key, payload.
fn row(kind: u8, one: u64, two: u64, three: u32, payload: &[u8]) -> Vec<u8> {
    [&[kind][..], &one.to_le_bytes(), &two.to_le_bytes(), &three.to_le_bytes(), payload].concat()
}

fn rows() -> Result<Seeds, Box<dyn Error>> {
    let mut seeds = log_rows()?;
    let half_life = HalfLife::try_from(std::time::Duration::from_secs(3600))?;
    let mut state = AggregateState::default();
    let at_item = |item| AggregateKey { item, scope: ScopeId(3), signal_type: SignalTypeId(0) };
    let mut builder = AggregateRunBuilder::new(9, None);
    for (item, at_ns) in (1752..).zip([0, 1, 3_600_000_000_000, u64::MAX / 2]) {
        state.add(Weight::try_from(-0.5)?, at_ns, half_life);
        builder.push(at_item(item), &state);
        let mut alone = AggregateRunBuilder::new(9, Some(at_item(item - 1)));
        alone.push(at_item(item), &state);
        for rows in [builder.clone(), alone] {
            let Some((key, value, _)) = rows.finish() else { continue };
            seeds.push(row(1, 9, item, 3, unseal(key.as_ref(), &value)?));
        }
    }
    let key = checkpoint_key();
    let withheld = WithheldCounts { left: 3, away_period: 2, unknown: 1 };
    let run = |number| AggregateRun { number, aggregate_count: 2, byte_count: 99, last: at_item(1752) };
    for runs in [Vec::new(), vec![run(3), run(1)]] {
        let checkpoint = Checkpoint { floor: 5, withheld, next_number: 4, runs };
        seeds.push(row(2, 0, 0, 0, unseal(key.as_ref(), &encode_checkpoint(key.as_ref(), &checkpoint))?));
    }
    let key = schema_key();
    let hour = std::time::Duration::from_secs(3600);
    for schema in [
        Schema::builder().signal("view", hour).build()?,
        Schema::builder().signal("view", hour).windowed("like", hour).cohorts_by("region").build()?,
    ] {
        seeds.push(row(3, 0, 0, 0, unseal(key.as_ref(), &encode_schema(key.as_ref(), &schema)?)?));
    }
    for scope in [Scope::Cohort("region=Wales".to_owned()), Scope::Community(4), Scope::Community(u64::MAX)] {
        let key = scope_key(ScopeId(3));
        seeds.push(row(4, 0, 0, 3, unseal(key.as_ref(), &encode_scope(key.as_ref(), &scope))?));
    }
    let key = scope_set_key(ScopeSetId(2));
    for members in [&[][..], &[ScopeId(1)], &[ScopeId(1), ScopeId(2), ScopeId(9)]] {
        seeds.push(row(5, 0, 0, 2, unseal(key.as_ref(), &encode_scope_set(key.as_ref(), members))?));
    }
    let mut builder = RunRowBuilder::new(RunPlace::START);
    for sequence in 1..4 {
        builder.push(&RunEntry {
            place: RunPlace { user: 7, sequence },
            item: 1752,
            signal_type: SignalTypeId(0),
            weight: Weight::ONE,
            event_time_ns: 100,
            withheld: (sequence == 2).then_some(Withheld::Left),
        });
        let (key, value) = builder.clone().finish(1);
        seeds.push(row(6, 1, 0, 0, unseal(key.as_ref(), &value)?));
    }
    let key = run_index_key();
    let run = Run {
        number: 1,
        level: 0,
        first_sequence: 1,
        last_sequence: 9,
        entry_count: 3,
        last: RunPlace { user: 7, sequence: 3 },
    };
    for (next_number, runs) in [(1, Vec::new()), (2, vec![run])] {
        let index = RunIndex { through: 9, next_number, runs };
        seeds.push(row(7, 0, 0, 0, unseal(key.as_ref(), &encode_run_index(key.as_ref(), &index))?));
    }
    let key = source_key("queue");
    let position = SourcePosition { first_position: 1, position: 9, digest: [7; 32] };
    seeds.push(row(8, 0, 0, 0, unseal(key.as_ref(), &encode_source_position(key.as_ref(), &position))?));
    for kind in [TransitionKind::Leave, TransitionKind::Rejoin] {
        let (key, value) = encode_transition(7, &Transition { sequence: 3, kind, at_ns: 100 });
        seeds.push(row(9, 7, 3, 0, unseal(key.as_ref(), &value)?));
    }
    let key = joined_key(7, 4);
    seeds.push(row(10, 7, 4, 0, unseal(key.as_ref(), &encode_joined(key.as_ref(), 3))?));
    // Of an attribute: its sequence, and its value.
    seeds.push(row(11, 7, 0, 0, &[&3_u64.to_le_bytes()[..], b"Wales"].concat()));
    Ok(seeds)
}

fn log_rows() -> Result<Seeds, Box<dyn Error>> {
    let signal = SignalEntry {
        user: 7,
        item: 1752,
        signal_type: SignalTypeId(1),
        weight: Weight::try_from(903.5)?,
        event_time_ns: 100,
        scope_set: ScopeSetId(2),
        withheld: None,
    };
    let entries = [
        LogEntry::Signal(signal),
        LogEntry::Signal(SignalEntry {
            scope_set: ScopeSetId::EMPTY,
            withheld: Some(Withheld::AwayPeriod),
            ..signal
        }),
        LogEntry::Leave { user: 7, at_ns: 100 },
        LogEntry::Rejoin { user: 7, at_ns: 200 },
        LogEntry::Join { user: 7, community: 4, at_ns: 1 },
        LogEntry::Quit { user: 7, community: 4, at_ns: 2 },
        LogEntry::SetAttribute { user: 7, at_ns: 3, name: "region".to_owned(), value: "Wales".to_owned() },
        LogEntry::SourcePosition {
            source: "queue".to_owned(),
            first_position: 1,
            position: 9,
            digest: [7; 32],
        },
    ];
    let mut seeds = Vec::new();
    let mut whole = LogRowBuilder::new(41);
    for entry in &entries {
        whole.push(entry)?;
        let mut single = LogRowBuilder::new(41);
        single.push(entry)?;
        for builder in [single, whole.clone()] {
            let (key, value) = builder.finish(200, Fingerprint::default());
            seeds.push(row(0, 41, 0, 0, unseal(key.as_ref(), &value)?));
        }
    }
    Ok(seeds)
}

fn event_files() -> Seeds {
    const HEADER: &str = "at,action,user,item,signal,weight,community,attribute\n";
    let rows = [
        "",
        "2012-03-28T00:00:00Z,user,183714,,,,,region=South West Region\n",
        "2012-03-28T00:00:00Z,user,7,,,,,\"plan=a=b,\"\"c\"\"\"\n",
        "2012-03-28T00:00:00Z,user,7,,,,,\"region=two\nlines\"\n",
        "2012-03-28T00:00:00Z,join,183714,,,,4,\n",
        "2012-03-28T00:00:00Z,quit,0,,,,18446744073709551615,\n",
        "2012-04-16T09:30:00.25+01:00,signal,183714,25334,submit,78,,\n",
        "1970-01-01T00:00:00.000000001Z,signal,7,1,view,-0.000000001,,\n",
        "2554-07-21T23:34:33.709551615Z,signal,7,1,view,1e9,,\n",
        "2012-05-02T00:00:00Z,leave,183714,,,,,\n",
        "2012-05-02T00:00:00Z,rejoin,183714,,,,,\r\n",
        "\n\n2012-05-02T00:00:00Z,leave,7,,,,,\n\n",
        "1969-12-31T23:59:59Z,leave,7,,,,,\n",
        "2012-05-02T00:00:00Z,leave,18446744073709551616,,,,,\n",
        "2012-05-02T00:00:00Z,signal,7,1,view,1e10,,\n",
        "2012-05-02T00:00:00Z,signal,7,1,view,NaN,,\n",
        "2012-05-02T00:00:00Z,fly,7,,,,,\n",
        "2012-05-02T00:00:00Z,leave,7\n",
        "yesterday,leave,7,,,,,\n",
    ];
    let mut seeds: Seeds = rows.iter().map(|row| format!("{HEADER}{row}").into_bytes()).collect();
    seeds.push(format!("{HEADER}{}", rows[..12].concat()).into_bytes());
    seeds.push(format!("\u{feff}{HEADER}{}", rows[4]).into_bytes());
    seeds.push(
        b"action,at,user,item,signal,weight,community,attribute,more\nleave,2012-05-02T00:00:00Z,7,,,,,,x\n"
            .to_vec(),
    );
    seeds.push(b"at,action\n".to_vec());
    seeds.push(vec![0x1f, 0x8b, 8, 0]);
    seeds.push(Vec::new());
    seeds
}

/// Operations that meet each other, and bytes without a plan.
fn operations() -> Seeds {
    let signal = |user: u8, nanos: i64| [&[user, 9, 0, 0][..], &nanos.to_le_bytes()].concat();
    let late = |user: u8, ago_ns: u64| {
        [&[user, 10][..], &ago_ns.to_le_bytes(), &[0, 1], &1_000_000_000_i64.to_le_bytes()].concat()
    };
    let (join, quit, region) = ([0, 2, 0], [0, 3, 0], [0, 4, 1]);
    let (leave, rejoin, repair) = ([0, 5], [0, 6], [0, 7]);
    let advance = [&[0, 1][..], &500_000_000_u64.to_le_bytes()].concat();
    // Nothing again, three events: leave, signal, rejoin of the first user.
    let deliver = [&[0, 8, 0, 3][..], &[0, 0], &[0; 8], &[0, 3, 0, 0], &[0; 8], &[0, 1], &[0; 8]].concat();
    let mut seeds = vec![
        [&join[..], &region, &signal(0, 1), &leave, &signal(0, 1), &rejoin, &signal(0, 1)].concat(),
        [&join[..], &leave, &advance, &rejoin, &late(0, 100_000_000), &late(0, 900_000_000)].concat(),
        [&region[..], &deliver, &[0, 8, 3, 0], &deliver].concat(),
        [&leave[..], &leave, &repair, &rejoin, &rejoin, &quit, &join].concat(),
        [&signal(0, i64::MAX)[..], &signal(1, i64::MIN), &signal(2, 0), &signal(3, -1)].concat(),
    ];
    let mut number = 1_u64;
    for len in (10..210).step_by(10) {
        let mut bytes = Vec::new();
        while bytes.len() < len {
            // A linear congruence is random enough.
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.extend_from_slice(&number.to_be_bytes()[..4]);
        }
        seeds.push(bytes);
    }
    seeds
}
