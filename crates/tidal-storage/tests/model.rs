//! A storage against a plain map, under arbitrary changes, scans and reopening.
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

use std::{collections::BTreeMap, sync::Arc};

use common::{Rows, engine, key, rows};
use proptest::{prelude::*, sample::select};
use tidal_keys::{EncodedKey, Tag, parse_key};
use tidal_storage::{MemoryMedium, Partition, StorageOptions, WriteBatch};

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<(Partition, EncodedKey, Option<Vec<u8>>)>),
    Put(Partition, EncodedKey, Vec<u8>),
    Delete(Partition, EncodedKey),
    Reopen,
}

type Model = BTreeMap<(Partition, Vec<u8>), Vec<u8>>;

fn any_partition() -> impl Strategy<Value = Partition> {
    select(Partition::ALL)
}

// Few ids and suffixes, so that steps meet; the extremes, since that is where ranges end.
fn any_key() -> impl Strategy<Value = EncodedKey> {
    let id = select(vec![0, 1, 255, 256, 1 << 63, u64::MAX - 1, u64::MAX]);
    let suffix = select(vec![&b""[..], b"\0", b"a", b"ab", b"\xff", b"\xff\xff"]);
    (id, select(Tag::ALL), suffix)
        .prop_map(|(id, tag, suffix)| key(id, tag, if tag == Tag::CommunityLeave { b"" } else { suffix }))
}

fn any_value() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..12)
}

fn any_step() -> impl Strategy<Value = Step> {
    let change = (any_partition(), any_key(), prop::option::of(any_value()));
    prop_oneof![
        4 => prop::collection::vec(change, 0..20).prop_map(Step::Commit),
        2 => (any_partition(), any_key(), any_value()).prop_map(|(p, k, v)| Step::Put(p, k, v)),
        1 => (any_partition(), any_key()).prop_map(|(p, k)| Step::Delete(p, k)),
        1 => Just(Step::Reopen),
    ]
}

fn expected(model: &Model, partition: Partition, wanted: impl Fn(&[u8]) -> bool) -> Rows {
    let of_partition = model.iter().filter(|((of, key), _)| *of == partition && wanted(key));
    of_partition.map(|((_, key), value)| (key.clone(), value.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn storage_is_a_sorted_map(
        steps in prop::collection::vec(any_step(), 1..12),
        bound in any_key(),
        prefix_len in 0_usize..13,
    ) {
        let medium = Arc::new(MemoryMedium::default());
        let mut storage = StorageOptions::new().create_on(medium.clone(), WriteBatch::new()).unwrap();
        let mut model = Model::new();
        for step in steps {
            match step {
                Step::Commit(changes) => {
                    let mut batch = WriteBatch::new();
                    for (partition, key, value) in changes {
                        if let Some(value) = value {
                            batch.put(partition, &key, &value);
                            model.insert((partition, key.to_vec()), value);
                        } else {
                            batch.delete(partition, &key);
                            model.remove(&(partition, key.to_vec()));
                        }
                    }
                    storage.commit(batch).unwrap();
                }
                Step::Put(partition, key, value) => {
                    engine(&storage, partition).put(&key, &value).unwrap();
                    model.insert((partition, key.to_vec()), value);
                }
                Step::Delete(partition, key) => {
                    engine(&storage, partition).delete(&key).unwrap();
                    model.remove(&(partition, key.to_vec()));
                }
                Step::Reopen => {
                    drop(storage);
                    storage = StorageOptions::new().open_on(medium.clone()).unwrap();
                }
            }
        }

        let prefix = &bound[..prefix_len.min(bound.len())];
        for &partition in Partition::ALL {
            let engine = engine(&storage, partition);
            for (key, value) in expected(&model, partition, |_| true) {
                let stored = engine.get(&key).unwrap();
                prop_assert_eq!(stored.as_deref(), Some(value.as_slice()));
            }
            let scanned = rows(engine.scan_prefix(&[]).unwrap()).unwrap();
            prop_assert_eq!(scanned, expected(&model, partition, |_| true));
            let scanned = rows(engine.scan_prefix(prefix).unwrap()).unwrap();
            prop_assert_eq!(scanned, expected(&model, partition, |key| key.starts_with(prefix)));
            for &tag in Tag::ALL {
                let of_tag = |key: &[u8]| parse_key(key).unwrap().1 == tag;
                let of_tag_rows = expected(&model, partition, of_tag);
                let last = engine.last(tag).unwrap().map(|(key, value)| (key.to_vec(), value.to_vec()));
                prop_assert_eq!(last.as_ref(), of_tag_rows.last());
                let scanned = rows(engine.scan_tag(tag).unwrap()).unwrap();
                prop_assert_eq!(scanned, of_tag_rows);
                let scanned = rows(engine.scan_tag_from(tag, &bound).unwrap()).unwrap();
                prop_assert_eq!(scanned, expected(&model, partition, |key| of_tag(key) && key >= bound.as_bytes()));
            }
        }
    }
}
