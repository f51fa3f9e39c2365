//! Case 11: what a damaged record must come to, in the store and in the file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::{
    A, COMMUNITY, c, config, create_on, leave, leave_key, left, open_image, p, place, rejoin, view,
};
use tidal_db::{
    CommunityMembership, Error, MembershipStatus, Storage, TidalDb, Transition, TransitionKind, Withheld,
};
use tidal_entities::community::serialize_membership;
use tidal_entities::{encode_transition, transition_key};
use tidal_keys::{EntityId, Tag, entity_tag_prefix};
use tidal_storage::MemoryMedium;

fn open(path: &Path, now_ns: u64) -> tidal_db::Result<TidalDb> {
    config(now_ns).1.path(path).open()
}

/// The bytes of a closed database in which user 7 left at [`LEFT_AT_NS`], and came back at the next
/// nanosecond if `is_back`.
fn image_of_7(is_back: bool) -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::default());
    let (clock, config) = config(LEFT_AT_NS);
    let (db, _) = create_on(&medium, config);
    db.join_community(7, COMMUNITY).unwrap();
    db.leave_community_layer(7).unwrap();
    if is_back {
        clock.advance(1);
        db.rejoin_community_layer(7).unwrap();
    }
    db.close().unwrap();
    medium.snapshot()
}

/// Eight different bytes, so that they are found in a file.
const LEFT_AT_NS: u64 = 0x0807_0605_0403_0201;

fn stored_record(image: Vec<u8>) -> Vec<u8> {
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image))).unwrap();
    storage.users_engine().get(&leave_key(7)).unwrap().unwrap().to_vec()
}

/// User 7 counts as Left and is reported, whatever is done, and his record stays as it was found.
fn is_left_and_reported(image: &[u8], record: &[u8]) {
    let medium = Arc::new(MemoryMedium::from_bytes(image.to_vec()));
    let storage = Storage::options().open_on(medium.clone()).unwrap();
    storage.users_engine().put(&leave_key(7), record).unwrap();
    storage.close().unwrap();
    for _ in 0..2 {
        let (_, config) = config(LEFT_AT_NS + 10);
        let storage = Storage::options().open_on(medium.clone()).unwrap();
        let db = TidalDb::from_parts(storage.clone(), config).unwrap();
        shut_out(&db);
        assert_eq!(storage.users_engine().get(&leave_key(7)).unwrap().unwrap(), record);
        db.close().unwrap();
    }
    assert_eq!(stored_record(medium.snapshot()), record);
}

/// Whatever is tried, user 7 is kept out as one whose record is damaged.
fn shut_out(db: &TidalDb) {
    let reported: Vec<u64> = db.open_report().damaged.iter().map(|record| record.user_id).collect();
    assert_eq!(reported, [7]);
    assert_eq!(db.community_layer_status(7).status, MembershipStatus::Left);
    assert_eq!((db.left_count(), db.left_users().len()), (1, 1));
    let before = p(db, 7);
    let late = db.signal_at(7, A, "view", 1.0, 5).unwrap();
    assert_eq!((late.withheld, late.communities), (Some(Withheld::Unknown), 0));
    assert_eq!(db.signal(7, A, "view", 1.0).unwrap().withheld, Some(Withheld::Unknown));
    let error = db.rejoin_community_layer(7).unwrap_err();
    assert!(matches!(error, Error::DamagedRecord { user_id: 7, .. }), "{error}");
    db.set_user_attribute(7, "region", "Wales").unwrap();
    db.quit_community(7, COMMUNITY).unwrap();
    db.join_community(7, COMMUNITY).unwrap();
    let next = db.position("queue").unwrap().map_or(1, |position| position + 1);
    assert!(db.apply("queue", next, [view(5, 7), rejoin(5, 7), view(5, 7)]).is_err());
    assert_eq!((c(db), p(db, 7)), (0, before + 3));
    assert_eq!(db.community_layer_status(7).status, MembershipStatus::Left);
}

#[test]
fn case_11_a_record_of_another_length_or_status_counts_as_left() {
    for is_back in [false, true] {
        let image = image_of_7(is_back);
        let record = stored_record(image.clone());
        let longer = [record.as_slice(), &[0]].concat();
        for other in [&[], &record[..1], &record[..8], &longer] {
            is_left_and_reported(&image, other);
        }
        for status in [2, 255] {
            let mut other = record.clone();
            other[0] = status;
            is_left_and_reported(&image, &other);
        }
    }
}

#[test]
fn case_11_a_record_with_any_bit_flipped_counts_as_left() {
    for is_back in [false, true] {
        let image = image_of_7(is_back);
        let record = stored_record(image.clone());
        assert_eq!(record.len(), 9);
        for bit in 0..72 {
            let mut flipped = record.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            is_left_and_reported(&image, &flipped);
        }
    }
}

#[test]
fn case_11_a_record_that_is_gone_or_all_zero_counts_as_left() {
    for is_back in [false, true] {
        let image = image_of_7(is_back);
        is_left_and_reported(&image, &[0; 9]);
        let medium = Arc::new(MemoryMedium::from_bytes(image));
        let storage = Storage::options().open_on(medium.clone()).unwrap();
        storage.users_engine().delete(&leave_key(7)).unwrap();
        let db = TidalDb::from_parts(storage.clone(), config(LEFT_AT_NS + 10).1).unwrap();
        shut_out(&db);
        assert_eq!(storage.users_engine().get(&leave_key(7)).unwrap(), None);
    }
}

/// So many that histories are read by a thread of their own.
const MANY: u64 = 10_000;

/// The bytes of a database of whose users, with ids by tens, every third came back.
fn image_of_many() -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::default());
    let (db, _) = create_on(&medium, config(1_000).1);
    let events = (0..MANY).flat_map(|nth| {
        let back = (nth % 3 == 0).then(|| rejoin(200, nth * 10));
        std::iter::once(leave(100, nth * 10)).chain(back)
    });
    db.apply("many", 1, events).unwrap();
    db.close().unwrap();
    medium.snapshot()
}

#[test]
fn case_11_whose_records_and_histories_disagree_among_many_is_found() {
    let image = image_of_many();
    let sound_left = MANY - MANY.div_ceil(3);
    // The first and the last, those at the border of a batch, and some in the middle; who left and who is back.
    for user in [0, 10, 40_940, 40_950, 40_960, 60_000, 99_980, 99_990] {
        let away = user / 10 % 3 != 0;
        for damage in ["record", "record gone", "record of another", "history", "history gone"] {
            let medium = Arc::new(MemoryMedium::from_bytes(image.clone()));
            let storage = Storage::options().open_on(medium.clone()).unwrap();
            let users = storage.users_engine();
            let mut history =
                users.scan_prefix(&entity_tag_prefix(EntityId::new(user), Tag::CommunityTransition)).unwrap();
            let (key, mut row) = history.next().unwrap().map(|(key, row)| (key, row.to_vec())).unwrap();
            drop(history);
            row[0] ^= 1;
            let another = serialize_membership(&left(user, 101));
            match damage {
                "record" => users.put(&leave_key(user), &[7; 9]).unwrap(),
                "record gone" => users.delete(&leave_key(user)).unwrap(),
                "record of another" => users.put(&leave_key(user), &another).unwrap(),
                "history" => users.put(&key, &row).unwrap(),
                _ => users.delete(&key).unwrap(),
            }
            storage.close().unwrap();
            let (db, _) = open_image(medium.snapshot(), config(1_000).1);
            let reported: Vec<u64> = db.open_report().damaged.iter().map(|record| record.user_id).collect();
            assert_eq!(reported, [user], "{damage}");
            assert_eq!(db.open_report().sound_records, MANY - 1, "{damage}");
            assert_eq!(db.community_layer_status(user).status, MembershipStatus::Left, "{damage}");
            assert_eq!(db.left_count(), sound_left + u64::from(!away), "{damage}");
        }
    }
}

#[test]
fn many_records_without_damage_are_restored_with_their_away_periods() {
    let (db, _) = open_image(image_of_many(), config(1_000).1);
    assert!(db.open_report().damaged.is_empty());
    assert_eq!((db.open_report().sound_records, db.left_count()), (MANY, MANY - MANY.div_ceil(3)));
    for nth in 0..MANY {
        let user = nth * 10;
        let is_back = nth % 3 == 0;
        let status = if is_back { MembershipStatus::Active } else { MembershipStatus::Left };
        let expected = CommunityMembership { user_id: user, status, left_at_ns: Some(100) };
        assert_eq!(db.community_layer_status(user), expected);
        let late = db.signal_at(user, A, "view", 1.0, 150).unwrap().withheld;
        assert_eq!(late, Some(if is_back { Withheld::AwayPeriod } else { Withheld::Left }));
    }
    assert!(db.verify().unwrap().differences.is_empty());
}

/// Where `needle` stands in `file`.
fn places_of(file: &[u8], needle: &[u8]) -> Vec<usize> {
    (0..file.len()).filter(|start| file[*start..].starts_with(needle)).collect()
}

/// Flips each bit of a row in a closed file, wherever the file has it, and opens each with what
/// `opener` makes of it. Returns how many copies of the row are in use: each flip in one of these
/// was noticed.
fn flip_each_bit<O>(file: &[u8], row: &[u8], is_back: bool, opener: impl Fn(Vec<u8>) -> O) -> usize
where
    O: Fn() -> tidal_db::Result<TidalDb>,
{
    let places = places_of(file, row);
    assert!(!places.is_empty(), "the row is not in the file");
    let mut copies_in_use = 0;
    for start in places {
        let mut noticed = 0;
        for bit in 0..row.len() * 8 {
            let mut flipped = file.to_vec();
            flipped[start + bit / 8] ^= 1 << (bit % 8);
            noticed += usize::from(flip_is_noticed(&opener(flipped), is_back, bit));
        }
        // A page that is free may hold anything.
        assert!(
            noticed == 0 || noticed == row.len() * 8,
            "{noticed} of {} flips were noticed",
            row.len() * 8
        );
        copies_in_use += usize::from(noticed > 0);
    }
    copies_in_use
}

fn flip_is_noticed(open: &impl Fn() -> tidal_db::Result<TidalDb>, is_back: bool, bit: usize) -> bool {
    let Ok(db) = open() else { return true };
    if db.open_report().is_clean() {
        // Nothing was changed by this flip, or it was not noticed.
        let status = if is_back { MembershipStatus::Active } else { MembershipStatus::Left };
        let wanted = CommunityMembership { status, ..left(7, LEFT_AT_NS) };
        assert_eq!(db.community_layer_status(7), wanted, "bit {bit} was flipped");
        assert_eq!(
            db.membership_history(7).unwrap().len(),
            1 + usize::from(is_back),
            "bit {bit} was flipped"
        );
        return false;
    }
    assert_eq!(db.community_layer_status(7).status, MembershipStatus::Left, "bit {bit} was flipped");
    assert!(db.signal(7, A, "view", 1.0).unwrap().withheld.is_some());
    assert_eq!(c(&db), 0);
    drop(db);
    // It was not healed by being looked at.
    assert!(open().map_or(true, |again| !again.open_report().is_clean()), "bit {bit} was flipped");
    true
}

/// Opens a closed file in memory without the integrity check.
fn unchecked_in_memory(file: Vec<u8>) -> impl Fn() -> tidal_db::Result<TidalDb> {
    let medium = Arc::new(MemoryMedium::from_bytes(file));
    move || {
        let storage = Storage::options().check_integrity(false).open_on(medium.clone())?;
        TidalDb::from_parts(storage, config(LEFT_AT_NS + 10).1)
    }
}

/// The row of user 7 as the file has it: a page holds the keys of its rows and then the values, so
/// in a table of one row they stand together.
fn row_in_file(storage: &Storage, tag: Tag) -> Vec<u8> {
    let (key, value) = storage.users_engine().scan_tag(tag).unwrap().last().unwrap().unwrap();
    [key, value].concat()
}

#[test]
fn case_11_a_record_flipped_in_the_file_is_noticed_without_the_integrity_check() {
    let (_folder, path) = place();
    for is_back in [false, true] {
        let image = image_of_7(is_back);
        let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image.clone()))).unwrap();
        let row = row_in_file(&storage, Tag::CommunityLeave);
        assert_eq!(row.len(), 10 + 9);
        // Key and value in memory, the 72 bits of the value once more in a real file.
        assert_eq!(flip_each_bit(&image, &row, is_back, unchecked_in_memory), 1);
        for start in places_of(&image, &row).into_iter().filter(|_| !is_back) {
            for bit in 80..row.len() * 8 {
                let mut flipped = image.clone();
                flipped[start + bit / 8] ^= 1 << (bit % 8);
                fs::write(&path, flipped).unwrap();
                let open = || config(LEFT_AT_NS + 10).1.path(&path).check_integrity(false).open();
                flip_is_noticed(&open, is_back, bit);
            }
        }
    }
}

#[test]
fn case_11_a_transition_flipped_in_the_file_is_noticed_without_the_integrity_check() {
    let image = image_of_7(false);
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image.clone()))).unwrap();
    let row = row_in_file(&storage, Tag::CommunityTransition);
    assert!(row.starts_with(&transition_key(7, 2)), "the second entry of the log");
    assert_eq!(flip_each_bit(&image, &row, false, unchecked_in_memory), 1);
}

#[test]
fn case_11_a_record_flipped_in_the_file_fails_the_open_with_the_integrity_check() {
    let (_folder, path) = place();
    let image = image_of_7(false);
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image.clone()))).unwrap();
    for tag in [Tag::CommunityLeave, Tag::CommunityTransition] {
        let row = row_in_file(&storage, tag);
        let refused = places_of(&image, &row).into_iter().map(|start| {
            let flips = (0..row.len() * 8).map(|bit| {
                let mut flipped = image.clone();
                flipped[start + bit / 8] ^= 1 << (bit % 8);
                fs::write(&path, &flipped).unwrap();
                let refused = open(&path, LEFT_AT_NS + 10).is_err();
                assert!(!refused || fs::read(&path).unwrap() == flipped, "a refused file was written to");
                refused
            });
            flips.filter(|refused| *refused).count()
        });
        assert_eq!(refused.max(), Some(row.len() * 8));
    }
}

/// Flips bits of a whole file, every `step`th of them. Returns how many opens were refused, how many
/// reported user 7 as damaged and how many saw nothing: in none of them is he Active.
fn flip_bits_of_file(file: &[u8], check: bool, step: usize) -> [u32; 3] {
    let [mut refused, mut reported, mut unseen] = [0; 3];
    for bit in (0..file.len() * 8).step_by(step) {
        let mut flipped = file.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let medium = Arc::new(MemoryMedium::from_bytes(flipped));
        let options = Storage::options().check_integrity(check);
        let opened = options.open_on(medium).map_err(Error::from);
        match opened.and_then(|storage| TidalDb::from_parts(storage, config(LEFT_AT_NS + 10).1)) {
            Err(_) => refused += 1,
            Ok(db) => {
                let status = db.community_layer_status(7).status;
                assert_eq!(status, MembershipStatus::Left, "bit {} of byte {} was flipped", bit % 8, bit / 8);
                *if db.open_report().is_clean() { &mut unseen } else { &mut reported } += 1;
            }
        }
    }
    [refused, reported, unseen]
}

#[test]
fn case_11_no_flipped_bit_of_a_closed_file_brings_a_user_back() {
    let image = image_of_7(false);
    // An odd step, so that every bit of a byte has its turn.
    let step = std::env::var("TIDAL_TEST_FLIP_STEP").map_or(301, |step| step.parse().expect("a number"));
    for check in [true, false] {
        let [refused, reported, unseen] = flip_bits_of_file(&image, check, step);
        eprintln!("check {check}: {refused} refused, {reported} reported, {unseen} unseen");
        assert!(refused > 0 && (!check || reported == 0));
    }
}

#[test]
fn case_11_a_leave_or_a_repair_settles_a_damaged_record() {
    for (is_back, by_leave) in [(false, false), (false, true), (true, false), (true, true)] {
        let medium = Arc::new(MemoryMedium::from_bytes(image_of_7(is_back)));
        let storage = Storage::options().open_on(medium.clone()).unwrap();
        storage.users_engine().put(&leave_key(7), b"damaged").unwrap();
        let (clock, before) = config(LEFT_AT_NS + 10);
        let db = TidalDb::from_parts(storage.clone(), before).unwrap();
        let settled = if by_leave { db.leave_community_layer(7) } else { db.repair_community_layer(7) };
        // The time of the history if that says Left, else now.
        let wanted = left(7, if is_back { LEFT_AT_NS + 10 } else { LEFT_AT_NS });
        assert_eq!(settled.unwrap(), wanted);
        assert_eq!(
            storage.users_engine().get(&leave_key(7)).unwrap().unwrap(),
            serialize_membership(&wanted)[..]
        );
        assert_eq!(db.signal(7, A, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
        drop((db, storage));

        let (db, _) = open_image(medium.snapshot(), config(LEFT_AT_NS + 10).1);
        assert!(db.open_report().is_clean());
        assert_eq!(db.community_layer_status(7), wanted);
        assert_eq!(db.membership_history(7).unwrap().len(), if is_back { 3 } else { 1 });
        clock.set(LEFT_AT_NS + 20);
        db.rejoin_community_layer(7).unwrap();
        assert_eq!(db.signal(7, A, "view", 1.0).unwrap().communities, 1);
    }
}

#[test]
fn case_11_the_log_says_since_when_a_damaged_user_is_out() {
    let medium = Arc::new(MemoryMedium::from_bytes(image_of_7(false)));
    let storage = Storage::options().open_on(medium.clone()).unwrap();
    storage.users_engine().put(&leave_key(7), &serialize_membership(&left(7, 5))).unwrap();
    let db = TidalDb::from_parts(storage, config(LEFT_AT_NS).1).unwrap();
    assert_eq!(db.open_report().damaged.len(), 1);
    assert_eq!(db.community_layer_status(7), left(7, LEFT_AT_NS));
    assert_eq!(db.left_users(), [left(7, LEFT_AT_NS)]);
}

/// What can happen to the rows of user 7, who left and came back.
#[derive(Clone, Copy, Debug)]
enum Happened {
    RecordDamaged,
    HistoryGone,
    HistoryTooLong,
    AllGone,
}

fn let_happen(storage: &Storage, happened: Happened) {
    let users = storage.users_engine();
    let prefix = entity_tag_prefix(EntityId::new(7), Tag::CommunityTransition);
    let keys: Vec<_> = users.scan_prefix(&prefix).unwrap().map(|row| row.unwrap().0).collect();
    assert_eq!(keys.len(), 2);
    if matches!(happened, Happened::HistoryGone | Happened::AllGone) {
        for key in &keys {
            users.delete(key).unwrap();
        }
    }
    match happened {
        Happened::RecordDamaged => users.put(&leave_key(7), b"damaged").unwrap(),
        Happened::HistoryTooLong => {
            let never = Transition { sequence: 99, kind: TransitionKind::Leave, at_ns: 250 };
            let (key, value) = encode_transition(7, &never);
            users.put(&key, &value).unwrap();
        }
        Happened::AllGone => users.delete(&leave_key(7)).unwrap(),
        Happened::HistoryGone => {}
    }
}

#[test]
fn case_11_away_periods_outlive_a_repair() {
    use Happened::{AllGone, HistoryGone, HistoryTooLong, RecordDamaged};
    for happened in [RecordDamaged, HistoryGone, HistoryTooLong, AllGone] {
        let medium = Arc::new(MemoryMedium::default());
        let (clock, before) = config(100);
        let (db, storage) = create_on(&medium, before);
        db.join_community(7, COMMUNITY).unwrap();
        db.leave_community_layer(7).unwrap();
        clock.set(200);
        db.rejoin_community_layer(7).unwrap();
        let_happen(&storage, happened);
        drop((db, storage));

        let (clock, after) = config(300);
        let medium = Arc::new(MemoryMedium::from_bytes(medium.snapshot()));
        let storage = Storage::options().open_on(medium.clone()).unwrap();
        let db = TidalDb::from_parts(storage, after).unwrap();
        let damaged: Vec<_> = db.open_report().damaged.iter().map(|record| record.user_id).collect();
        assert_eq!((damaged, db.left_count()), (vec![7], 1), "{happened:?}");
        assert_eq!(db.signal(7, A, "view", 1.0).unwrap().withheld, Some(Withheld::Unknown), "{happened:?}");
        db.repair_community_layer(7).unwrap();
        clock.set(400);
        db.rejoin_community_layer(7).unwrap();
        let all_is_withheld_from_the_time_away = |db: &TidalDb| {
            for (at_ns, withheld) in
                [(99, false), (100, true), (150, true), (200, false), (300, true), (400, false)]
            {
                let receipt = db.signal_at(7, A, "view", 1.0, at_ns).unwrap();
                assert_eq!(
                    receipt.withheld,
                    withheld.then_some(Withheld::AwayPeriod),
                    "{happened:?}, at {at_ns}"
                );
            }
        };
        all_is_withheld_from_the_time_away(&db);
        drop(db);
        let (db, _) = open_image(medium.snapshot(), config(400).1);
        assert!(db.open_report().is_clean(), "{happened:?}: {:?}", db.open_report());
        assert_eq!(db.membership_history(7).unwrap().len(), 4, "{happened:?}");
        all_is_withheld_from_the_time_away(&db);
    }
}
