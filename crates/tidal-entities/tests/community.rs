//! The leave record: what is read from bytes, and that nothing damaged is ever read as active.
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

use std::{collections::BTreeSet, sync::Barrier, thread};

use common::single_bit_flips;
use proptest::prelude::*;
use tidal_entities::community::{
    CommunityMembership, CommunityMembershipIndex, MembershipStatus, deserialize_membership,
    serialize_membership,
};

fn membership(status: MembershipStatus, left_at_ns: Option<u64>) -> CommunityMembership {
    CommunityMembership { user_id: 7, status, left_at_ns }
}

#[test]
fn records_of_another_length_are_none() {
    let record = [1, 100, 0, 0, 0, 0, 0, 0, 0, 0];
    for len in [0, 1, 8, 10] {
        assert_eq!(deserialize_membership(7, &record[..len]), None, "length {len}");
    }
    assert!(deserialize_membership(7, &record[..9]).is_some());
}

#[test]
fn records_of_another_status_are_none() {
    for status in 2..=u8::MAX {
        assert_eq!(deserialize_membership(7, &[status, 100, 0, 0, 0, 0, 0, 0, 0]), None, "status {status}");
    }
}

#[test]
fn time_zero_is_kept_of_who_left_and_means_never_of_who_is_active() {
    assert_eq!(
        deserialize_membership(7, &[1, 0, 0, 0, 0, 0, 0, 0, 0]),
        Some(membership(MembershipStatus::Left, Some(0)))
    );
    assert_eq!(deserialize_membership(7, &[0; 9]), Some(CommunityMembership::default_active(7)));
    assert_eq!(serialize_membership(&membership(MembershipStatus::Left, None)), [1, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn large_times_come_back_as_they_went_in() {
    for left_at_ns in [1, 1_772_452_800_000, i64::MAX.unsigned_abs(), 1 << 63, u64::MAX] {
        for status in [MembershipStatus::Active, MembershipStatus::Left] {
            let stored = membership(status, Some(left_at_ns));
            assert_eq!(deserialize_membership(7, &serialize_membership(&stored)), Some(stored));
        }
    }
}

#[test]
fn a_flipped_status_bit_of_a_left_record_is_active_in_one_case_only() {
    // 9 bytes have no room for a checksum: the bit that turns 1 into 0 is for the history of transitions to find.
    let record = serialize_membership(&membership(MembershipStatus::Left, Some(100)));
    let active = single_bit_flips(&record)
        .filter_map(|flipped| deserialize_membership(7, &flipped))
        .filter(|membership| membership.status == MembershipStatus::Active)
        .count();
    assert_eq!(active, 1);
}

#[test]
fn index_keeps_every_join_and_quit_of_racing_threads() {
    const THREADS: u32 = 4;
    const COMMUNITIES: u64 = 200;
    let index = CommunityMembershipIndex::new();
    let barrier = Barrier::new(THREADS.try_into().unwrap());
    thread::scope(|scope| {
        for thread in 0..u64::from(THREADS) {
            let (index, barrier) = (&index, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for community in 0..COMMUNITIES {
                    // All threads use one user; each has communities of its own, and quits every other of them.
                    assert!(index.join(7, community * u64::from(THREADS) + thread));
                    if community % 2 == 0 {
                        assert!(index.quit(7, community * u64::from(THREADS) + thread));
                    }
                }
            });
        }
    });
    let communities = index.communities_of(7);
    assert!(communities.is_sorted());
    assert_eq!(communities.len() as u64, u64::from(THREADS) * COMMUNITIES / 2);
    assert!(communities.iter().all(|community| (community / u64::from(THREADS)) % 2 == 1));
}

proptest! {
    #[test]
    fn whatever_is_read_would_be_written_the_same(bytes in any::<[u8; 9]>()) {
        if let Some(membership) = deserialize_membership(7, &bytes) {
            prop_assert_eq!(serialize_membership(&membership), bytes);
        }
    }

    #[test]
    fn index_equals_a_set(steps in prop::collection::vec((any::<bool>(), 0..4_u64, 0..6_u64), 0..100)) {
        let index = CommunityMembershipIndex::new();
        let mut set = BTreeSet::new();
        for (is_join, user, community) in steps {
            let community = if community == 5 { u64::MAX } else { community };
            if is_join {
                prop_assert_eq!(index.join(user, community), set.insert((user, community)));
            } else {
                prop_assert_eq!(index.quit(user, community), set.remove(&(user, community)));
            }
            let expected: Vec<u64> = set.range((user, 0)..=(user, u64::MAX)).map(|(_, community)| *community).collect();
            prop_assert_eq!(index.contains(user, community), expected.contains(&community));
            prop_assert_eq!(index.communities_len(user), expected.len());
            prop_assert_eq!(index.communities_of(user), expected);
        }
    }
}
