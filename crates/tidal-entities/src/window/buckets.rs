use std::ops::RangeInclusive;

use crate::packed_nanos::PackedNanos;

/// What happened within one stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bucket {
    /// How many stretches lie between the Unix epoch and this one.
    pub(super) number: u32,
    /// Not 0.
    pub(super) count: u64,
    pub(super) weight_nanos: PackedNanos,
}

const _: () = assert!(size_of::<Bucket>() == 32);

/// The buckets in which something happened, at most `KEPT` of them, by ascending number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Buckets<const KEPT: u32> {
    buckets: Vec<Bucket>,
}

impl<const KEPT: u32> Buckets<KEPT> {
    /// The lowest number that is kept when `newest` is the highest that was ever seen.
    pub(super) const fn first_kept(newest: u32) -> u32 {
        newest.saturating_sub(KEPT - 1)
    }

    /// Takes buckets in ascending order, all kept, none without signals.
    pub(super) const fn from_ascending(buckets: Vec<Bucket>) -> Self {
        Self { buckets }
    }

    pub(super) fn as_slice(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Lets go of what is no longer kept.
    pub(super) fn move_on(&mut self, newest: u32) {
        let first_kept = Self::first_kept(newest);
        let passed = self.buckets.partition_point(|bucket| bucket.number < first_kept);
        self.buckets.drain(..passed);
    }

    /// Adds a signal to its bucket, which must be one that is kept.
    pub(super) fn add(&mut self, number: u32, nanos: i64) {
        self.add_bucket(&Bucket { number, count: 1, weight_nanos: PackedNanos::new(i128::from(nanos)) });
    }

    /// Adds what other buckets hold, as far as it is kept when `newest` is the highest number that was ever seen.
    pub(super) fn merge(&mut self, other: &Self, newest: u32) {
        let first_kept = Self::first_kept(newest);
        let kept = other.buckets.iter().filter(|bucket| bucket.number >= first_kept);
        kept.for_each(|bucket| self.add_bucket(bucket));
    }

    fn add_bucket(&mut self, added: &Bucket) {
        let index = match self.buckets.last_mut() {
            // Most signals are of now.
            Some(last) if last.number == added.number => return last.add(added),
            Some(last) if last.number > added.number => {
                self.buckets.partition_point(|bucket| bucket.number < added.number)
            }
            _ => self.buckets.len(),
        };
        match self.buckets.get_mut(index) {
            Some(found) if found.number == added.number => found.add(added),
            _ => {
                self.make_room();
                self.buckets.insert(index, *added);
            }
        }
    }

    /// Whether a bucket can hold a signal of this weight.
    pub(super) fn can_hold(&self, number: u32, nanos: i64) -> bool {
        let found = self.find(number).and_then(|index| self.buckets.get(index));
        found.is_some_and(|found| found.count > 1 || found.weight_nanos.get() == i128::from(nanos))
    }

    /// Takes a signal away that its bucket [can hold](Self::can_hold).
    pub(super) fn subtract(&mut self, number: u32, nanos: i64) {
        let Some(index) = self.find(number) else { return };
        let Some(found) = self.buckets.get_mut(index) else { return };
        found.count -= 1;
        found.weight_nanos = PackedNanos::new(found.weight_nanos.get() - i128::from(nanos));
        if found.count == 0 {
            self.buckets.remove(index);
        }
    }

    /// Count and sum of the buckets with these numbers.
    pub(super) fn sum(&self, numbers: RangeInclusive<u32>) -> (u64, i128) {
        let first = self.buckets.partition_point(|bucket| bucket.number < *numbers.start());
        let from_first = self.buckets.get(first..).unwrap_or_default();
        let within = from_first.iter().take_while(|bucket| bucket.number <= *numbers.end());
        within.fold((0, 0), |(count, nanos), bucket| {
            (bucket.count.saturating_add(count), nanos + bucket.weight_nanos.get())
        })
    }

    fn find(&self, number: u32) -> Option<usize> {
        self.buckets.binary_search_by_key(&number, |bucket| bucket.number).ok()
    }

    /// Grows by doubling, but never beyond what is kept: there may be millions.
    fn make_room(&mut self) {
        let len = self.buckets.len();
        if len == self.buckets.capacity() {
            let most = usize::try_from(KEPT).unwrap_or(usize::MAX);
            self.buckets.reserve_exact(len.clamp(1, most.saturating_sub(len).max(1)));
        }
    }
}

impl Bucket {
    fn add(&mut self, added: &Self) {
        self.count = self.count.saturating_add(added.count);
        self.weight_nanos = PackedNanos::new(self.weight_nanos.get() + added.weight_nanos.get());
    }
}

#[cfg(test)]
mod tests {
    use super::Buckets;

    #[test]
    fn memory_never_exceeds_what_is_kept() {
        for step in [1, 3, 191] {
            let mut buckets = Buckets::<192>::default();
            for newest in (0..5_000).step_by(step) {
                buckets.move_on(newest);
                buckets.add(newest, 1);
                // Late ones as well.
                buckets.add(Buckets::<192>::first_kept(newest), 1);
                buckets.add(newest.saturating_sub(newest % 192), 1);
                assert!(buckets.buckets.capacity() <= 192, "{}", buckets.buckets.capacity());
            }
        }
    }
}
