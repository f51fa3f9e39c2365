//! Damage anywhere in a small file of a user who left: an error, or the user is out. With the integrity check and
//! without, where a child process takes what may end a process.
//!
//! `TIDAL_DAMAGE_STEP` says that every so manieth byte and page damage is tried; 1 tries each of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "tests fail by panicking, and use a part of the scenarios"
)]

mod scenarios;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::Arc;

use scenarios::config;
use scenarios::damaged_file::{Outcome, PAGE_BYTES, damaged_pages, left_file, open_damaged};
use tidal_db::{Storage, TidalDb};
use tidal_keys::{EntityId, Tag, encode_key, entity_tag_prefix};
use tidal_storage::MemoryMedium;

/// How often each outcome was seen.
type Seen = BTreeMap<Outcome, u32>;

fn step(by_default: usize) -> usize {
    std::env::var("TIDAL_DAMAGE_STEP").map_or(by_default, |step| step.parse().expect("a number"))
}

fn open_all<'a>(files: impl Iterator<Item = (String, Vec<u8>)> + 'a, sequence: u64, check: bool) -> Seen {
    let mut seen = Seen::new();
    for (what, file) in files {
        match open_damaged(&file, sequence, check) {
            Ok(outcome) => *seen.entry(outcome).or_default() += 1,
            Err(wrong) => panic!("{what}, check {check}: {wrong}"),
        }
    }
    seen
}

fn total(seen: &Seen) -> u32 {
    seen.values().sum()
}

/// Each bit of some bytes, wherever the file has them.
fn every_bit_of<'a>(file: &'a [u8], bytes: &'a [u8]) -> impl Iterator<Item = (String, Vec<u8>)> + 'a {
    let places = (0..file.len()).filter(|start| file[*start..].starts_with(bytes));
    places.flat_map(move |start| {
        (0..bytes.len() * 8).map(move |bit| {
            let mut copy = file.to_vec();
            copy[start + bit / 8] ^= 1 << (bit % 8);
            (format!("bit {bit} at byte {start}"), copy)
        })
    })
}

#[test]
fn no_bit_of_a_record_of_its_history_or_of_the_marker_brings_a_user_back() {
    let (file, sequence) = left_file().unwrap();
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(file.clone()))).unwrap();
    let record = encode_key(EntityId::new(7), Tag::CommunityLeave, b"");
    let mut parts = vec![
        ("key of the record", record.as_ref().to_vec()),
        ("record", storage.users_engine().get(&record).unwrap().unwrap().to_vec()),
        ("marker", b"tidal\0db\x01\0\0\0".to_vec()),
        ("key of the marker", b"format".to_vec()),
    ];
    let transitions = entity_tag_prefix(EntityId::new(7), Tag::CommunityTransition);
    for row in storage.users_engine().scan_prefix(&transitions).unwrap() {
        let (key, value) = row.unwrap();
        parts.extend([("key of a transition", key.to_vec()), ("transition", value.to_vec())]);
    }
    storage.close().unwrap();
    assert_eq!(parts.len(), 4 + 2 * 3);
    let mut all = 0;
    for (name, bytes) in &parts {
        for check in [true, false] {
            let seen = open_all(every_bit_of(&file, bytes), sequence, check);
            println!("{name}, check {check}: {seen:?}");
            assert!(total(&seen) >= u32::try_from(bytes.len() * 8).unwrap(), "{name} is not in the file");
            // The one that is in use is noticed; others are of free pages.
            let noticed = total(&seen) - seen.get(&Outcome::Unseen).copied().unwrap_or(0);
            assert!(noticed > 0, "no flip of {name} was noticed");
            all += total(&seen);
        }
    }
    println!("{all} flipped bits of record, history and marker");
}

#[test]
fn no_byte_of_a_file_brings_a_user_back() {
    let (file, sequence) = left_file().unwrap();
    let step = step(197);
    let mut all = 0;
    for check in [true, false] {
        let bytes = (0..file.len()).step_by(step);
        let damaged = bytes.flat_map(|byte| {
            let flipped = file[byte] ^ 1 << (byte / step % 8);
            [flipped, !file[byte]].map(|value| {
                let mut copy = file.clone();
                copy[byte] = value;
                (format!("byte {byte} of {} set to {value:#x}", file.len()), copy)
            })
        });
        let seen = open_all(damaged, sequence, check);
        println!("check {check}: {seen:?}");
        assert!(seen[&Outcome::Refused] > 0);
        // With the check an older state is never taken.
        assert!(!check || !seen.contains_key(&Outcome::Older));
        all += total(&seen);
    }
    println!("{all} damaged bytes of a file of {} bytes", file.len());
}

#[test]
fn a_file_cut_at_any_page_is_refused() {
    let (file, sequence) = left_file().unwrap();
    let pages = file.len().div_ceil(PAGE_BYTES);
    for check in [true, false] {
        let cut = (0..pages).map(|page| (format!("cut at page {page}"), file[..page * PAGE_BYTES].to_vec()));
        let seen = open_all(cut, sequence, check);
        assert_eq!(seen, Seen::from([(Outcome::Refused, u32::try_from(pages).unwrap())]), "check {check}");
    }
    println!("cut at each of {pages} pages, with and without the check");
}

#[test]
fn no_damaged_page_brings_a_user_back() {
    let (file, sequence) = left_file().unwrap();
    let seen = open_all(damaged_pages(&file).into_iter().step_by(step(7)), sequence, true);
    println!(
        "{} files with pages filled, swapped or written over others, check true: {seen:?}",
        total(&seen)
    );
    assert!(seen[&Outcome::Refused] > 0 && !seen.contains_key(&Outcome::Older));
}

/// With which file the child process goes on.
const FROM_VARIABLE: &str = "TIDAL_TEST_DAMAGED_FROM";

#[test]
fn no_damaged_page_brings_a_user_back_without_the_check() {
    let files = damaged_pages(&left_file().unwrap().0).into_iter().step_by(step(7)).count();
    let (mut from, mut ended) = (0, 0);
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    // Each child goes on behind the file that ended the one before.
    while from < files {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "the_child_process", "--nocapture"]).env(FROM_VARIABLE, from.to_string());
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let outcomes: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("opened: ")).collect();
        for outcome in &outcomes {
            *seen.entry((*outcome).to_owned()).or_default() += 1;
        }
        from += outcomes.len();
        if output.status.success() {
            assert_eq!(from, files, "the child stopped early: {said}");
        } else {
            // The engine panicked while it was unwinding, which ends a process by a signal.
            let heard = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code().is_none(), "file {from}: {heard}");
            ended += 1;
            from += 1;
        }
    }
    println!(
        "{files} files with pages filled, swapped or written over others, check false: {seen:?}, {ended} ended the process"
    );
    assert!(seen["Refused"] > 0);
}

#[test]
fn the_child_process() {
    let Ok(from) = std::env::var(FROM_VARIABLE) else { return };
    let (file, sequence) = left_file().unwrap();
    for (what, file) in damaged_pages(&file).into_iter().step_by(step(7)).skip(from.parse().unwrap()) {
        match open_damaged(&file, sequence, false) {
            Ok(outcome) => println!("\nopened: {outcome:?}"),
            Err(wrong) => panic!("\nwrong: {what}: {wrong}"),
        }
    }
}

#[test]
fn a_file_of_another_kind_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signals.tidal");
    let sqlite = [b"SQLite format 3\0".as_slice(), &[7; 4096]].concat();
    let noise: Vec<u8> = (0..100_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    for foreign in [b"user,status\n7,left\n".to_vec(), sqlite, noise, vec![0; 73_728]] {
        fs::write(&path, &foreign).unwrap();
        for (check, may_create) in [(true, true), (true, false), (false, true), (false, false)] {
            let opened = config().1.path(&path).check_integrity(check).create(may_create).open();
            assert!(opened.is_err(), "{:?} was opened", &foreign[..16]);
            assert_eq!(fs::read(&path).unwrap(), foreign);
        }
    }
}

#[test]
fn an_older_copy_put_back_is_noticed_where_the_last_sequence_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signals.tidal");
    let open = |expected| config().1.path(&path).create(true).expect_at_least(expected).open();
    let mut copies = Vec::new();
    let mut last_sequence = 0;
    for user in 0..5 {
        let db: TidalDb = open(last_sequence).unwrap();
        db.leave_community_layer(user).unwrap();
        last_sequence = db.durable_sequence();
        db.close().unwrap();
        copies.push(fs::read(&path).unwrap());
    }
    let newest = copies.pop().unwrap();
    for older in copies {
        fs::write(&path, &older).unwrap();
        let error = open(last_sequence).unwrap_err();
        assert!(
            matches!(error, tidal_db::Error::BehindExpected { expected, .. } if expected == last_sequence)
        );
    }
    fs::write(&path, newest).unwrap();
    assert_eq!(open(last_sequence).unwrap().left_count(), 5);
}
