use std::hash::{Hash, Hasher};

use super::{EpochSum, WideSum};

/// A chunk that would get longer is cut in two.
const MAX_CHUNK_LEN: usize = 128;

/// The epochs before the newest, ascending, none zero.
///
/// In chunks, so that one that comes late moves a hundred others and not all that are newer: with a half-life of a
/// second, a week of signals that come in the order of descending time has 18,900 epochs.
#[derive(Clone, Debug, Default)]
pub(super) struct OlderEpochs {
    // None empty, and all but the last cut where something came late, so equal epochs may be cut differently.
    chunks: Vec<Vec<EpochSum>>,
}

impl OlderEpochs {
    pub(super) fn from_ascending(sums: Vec<EpochSum>) -> Self {
        if sums.len() <= MAX_CHUNK_LEN {
            return Self { chunks: if sums.is_empty() { Vec::new() } else { vec![sums] } };
        }
        Self { chunks: sums.chunks(MAX_CHUNK_LEN).map(<[EpochSum]>::to_vec).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &EpochSum> {
        self.chunks.iter().flatten()
    }

    /// Those from this epoch on.
    pub(super) fn since(&self, epoch: u64) -> impl Iterator<Item = &EpochSum> {
        let first = self.chunk_of(epoch);
        let chunk = self.chunks.get(first).map_or(&[][..], Vec::as_slice);
        let start = chunk.partition_point(|older| older.epoch < epoch);
        let rest = self.chunks.get(first.saturating_add(1)..).unwrap_or_default();
        chunk.iter().skip(start).chain(rest.iter().flatten())
    }

    /// Takes in one that is newer than all.
    pub(super) fn push(&mut self, newest: EpochSum) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < MAX_CHUNK_LEN => last.push(newest),
            _ => {
                // Most have one chunk.
                self.chunks.reserve_exact(usize::from(self.chunks.is_empty()));
                self.chunks.push(vec![newest]);
            }
        }
    }

    /// Takes out the newest.
    pub(super) fn pop(&mut self) -> Option<EpochSum> {
        let last = self.chunks.last_mut()?;
        let newest = last.pop();
        if last.is_empty() {
            self.chunks.pop();
        }
        newest
    }

    /// Changes the sum of one epoch, which is 0 if there is none, and drops it if that makes it 0.
    pub(super) fn change(&mut self, epoch: u64, apply: impl FnOnce(WideSum) -> WideSum) {
        // One that is newer than all belongs into the last chunk.
        let place = self.chunk_of(epoch).min(self.chunks.len().saturating_sub(1));
        let Some(chunk) = self.chunks.get_mut(place) else {
            let sum = apply(WideSum::default());
            if !sum.is_zero() {
                self.push(EpochSum { epoch, sum });
            }
            return;
        };
        let index = chunk.partition_point(|older| older.epoch < epoch);
        match chunk.get_mut(index) {
            Some(older) if older.epoch == epoch => {
                older.sum = apply(older.sum);
                if older.sum.is_zero() {
                    chunk.remove(index);
                }
            }
            _ => {
                let sum = apply(WideSum::default());
                if !sum.is_zero() {
                    chunk.insert(index, EpochSum { epoch, sum });
                }
            }
        }
        if chunk.is_empty() {
            self.chunks.remove(place);
        } else if chunk.len() > MAX_CHUNK_LEN {
            let newer = chunk.split_off(MAX_CHUNK_LEN / 2);
            self.chunks.insert(place + 1, newer);
        }
    }

    /// The first chunk that ends with this epoch or a newer one.
    fn chunk_of(&self, epoch: u64) -> usize {
        self.chunks.partition_point(|chunk| chunk.last().is_none_or(|last| last.epoch < epoch))
    }
}

impl PartialEq for OlderEpochs {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for OlderEpochs {}

impl Hash for OlderEpochs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|epoch| epoch.hash(state));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{MAX_CHUNK_LEN, OlderEpochs};
    use crate::score::{EpochSum, WideSum};

    fn ascending(older: &OlderEpochs) -> Vec<EpochSum> {
        older.iter().copied().collect()
    }

    proptest! {
        /// In every order of changes the same as a map, also where chunks are cut and run empty.
        #[test]
        fn is_a_map(
            changes in proptest::collection::vec((0..600_u64, -1..2_i128), 0..3_000),
            since in 0..700_u64,
        ) {
            let mut older = OlderEpochs::default();
            let mut model = BTreeMap::<u64, i128>::new();
            for (epoch, value) in changes {
                older.change(epoch, |sum| sum.add(value));
                let sum = model.entry(epoch).or_default();
                *sum += value;
                if *sum == 0 {
                    model.remove(&epoch);
                }
            }
            let expected: Vec<EpochSum> = model
                .iter()
                .map(|(epoch, sum)| EpochSum { epoch: *epoch, sum: WideSum::default().add(*sum) })
                .collect();
            prop_assert_eq!(ascending(&older), expected.clone());
            prop_assert_eq!((older.len(), older.is_empty()), (expected.len(), expected.is_empty()));
            let newer: Vec<EpochSum> = older.since(since).copied().collect();
            let expected_newer: Vec<EpochSum> =
                expected.iter().filter(|sum| sum.epoch >= since).copied().collect();
            prop_assert_eq!(newer, expected_newer);
            prop_assert!(older.chunks.iter().all(|chunk| (1..=MAX_CHUNK_LEN).contains(&chunk.len())));
            // However it was cut.
            prop_assert_eq!(&OlderEpochs::from_ascending(expected.clone()), &older);
            for last in expected.iter().rev() {
                prop_assert_eq!(older.pop(), Some(*last));
            }
            prop_assert_eq!(older.pop(), None);
        }
    }

    /// What one that comes late costs does not grow with how many are newer.
    #[test]
    fn descending_epochs_move_a_chunk_and_not_all() {
        let mut older = OlderEpochs::default();
        for epoch in (0..20_000).rev() {
            older.change(epoch, |sum| sum.add(1));
            assert!(older.chunks.first().is_some_and(|first| first.len() <= MAX_CHUNK_LEN));
        }
        assert_eq!(older.len(), 20_000);
        // Cut in halves, so none is nearly empty.
        assert!(older.chunks.len() <= 20_000 / (MAX_CHUNK_LEN / 2) + 1, "{}", older.chunks.len());
    }
}
