use super::{Window, WindowAggregate, WindowError, buckets::Buckets};
use crate::weight_sum_to_f64;

/// How many buckets of 5 minutes are kept: the hour, and one more, so that a sender whose clock is ahead leaves
/// something to ask for.
pub(super) const FINE_KEPT: u32 = 24;
/// How many buckets of an hour are kept: the week, and one more day.
pub(super) const COARSE_KEPT: u32 = 192;
/// How many fine buckets make a coarse one.
pub(super) const FINE_IN_COARSE: u32 = 12;
/// The number of the last fine bucket that there is.
#[allow(clippy::cast_possible_truncation, reason = "the assertion below proves that it fits")]
pub(super) const LAST_BUCKET: u32 = (u64::MAX / Window::Hour.bucket_ns()) as u32;
/// Stands for a signal of which no windows are kept.
pub(crate) const NO_BUCKET: u32 = u32::MAX;

const _: () = {
    assert!(u64::MAX / Window::Hour.bucket_ns() < NO_BUCKET as u64);
    assert!(2 * Window::Hour.length_ns() == FINE_KEPT as u64 * Window::Hour.bucket_ns());
    assert!(
        Window::Week.length_ns() + Window::Day.length_ns() == COARSE_KEPT as u64 * Window::Week.bucket_ns()
    );
    assert!(Window::Day.bucket_ns() == Window::Week.bucket_ns());
    assert!(Window::Week.bucket_ns() == FINE_IN_COARSE as u64 * Window::Hour.bucket_ns());
};

/// The fine bucket of a time.
#[allow(clippy::cast_possible_truncation, reason = "at most LAST_BUCKET")]
pub(crate) const fn bucket_of(time_ns: u64) -> u32 {
    (time_ns / Window::Hour.bucket_ns()) as u32
}

/// The sums that windows are read from.
///
/// What is kept depends on the newest signal alone: the last 24 fine buckets and the last 192 coarse ones, up to its
/// own. So the same signals lead to the same sums in whatever order they come, whoever adds them up and whatever the
/// clock says. The newest stays when its signal is taken away, since what it drove out does not come back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WindowSums {
    /// The number of the newest fine bucket in which there ever was a signal.
    pub(super) newest: u32,
    pub(super) fine: Buckets<FINE_KEPT>,
    pub(super) coarse: Buckets<COARSE_KEPT>,
}

const _: () = assert!(size_of::<WindowSums>() == 56);

impl WindowSums {
    /// Without a signal, but of a type that has seen one in this fine bucket.
    pub(crate) fn new(newest: u32) -> Self {
        Self { newest, fine: Buckets::default(), coarse: Buckets::default() }
    }

    /// Adds a signal to its fine bucket and to its coarse one, if they are still kept.
    pub(crate) fn add(&mut self, bucket: u32, nanos: i64) {
        self.move_on(bucket);
        if self.keeps_fine(bucket) {
            self.fine.add(bucket, nanos);
        }
        if self.keeps_coarse(bucket) {
            self.coarse.add(bucket / FINE_IN_COARSE, nanos);
        }
    }

    /// Adds all that other sums hold and these still keep.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.move_on(other.newest);
        self.fine.merge(&other.fine, self.newest);
        self.coarse.merge(&other.coarse, self.newest / FINE_IN_COARSE);
    }

    /// The newest fine bucket in which there ever was a signal.
    pub(crate) const fn newest(&self) -> u32 {
        self.newest
    }

    /// How many buckets there are of both kinds.
    pub(crate) fn buckets_len(&self) -> usize {
        self.fine.as_slice().len() + self.coarse.as_slice().len()
    }

    /// Whether a signal of this fine bucket and weight can have been added.
    pub(crate) fn can_hold(&self, bucket: u32, nanos: i64) -> bool {
        bucket <= self.newest
            && (!self.keeps_fine(bucket) || self.fine.can_hold(bucket, nanos))
            && (!self.keeps_coarse(bucket) || self.coarse.can_hold(bucket / FINE_IN_COARSE, nanos))
    }

    /// Takes a signal away that [can have been added](Self::can_hold).
    pub(crate) fn subtract(&mut self, bucket: u32, nanos: i64) {
        self.fine.subtract(bucket, nanos);
        self.coarse.subtract(bucket / FINE_IN_COARSE, nanos);
    }

    /// What the window that ends at a time holds.
    pub(crate) fn sum_at(&self, window: Window, at_ns: u64) -> Result<WindowAggregate, WindowError> {
        let fine_at = bucket_of(at_ns);
        let (count, weight_nanos) = match window {
            Window::Hour => {
                let first =
                    first_within(window, fine_at, Buckets::<FINE_KEPT>::first_kept(self.newest), at_ns)?;
                self.fine.sum(first..=fine_at)
            }
            Window::Day | Window::Week => {
                let coarse_at = fine_at / FINE_IN_COARSE;
                let first_kept = Buckets::<COARSE_KEPT>::first_kept(self.newest / FINE_IN_COARSE);
                self.coarse.sum(first_within(window, coarse_at, first_kept, at_ns)?..=coarse_at)
            }
        };
        Ok(WindowAggregate { count, weight_nanos, weight_sum: weight_sum_to_f64(weight_nanos) })
    }

    fn move_on(&mut self, bucket: u32) {
        if bucket > self.newest {
            self.newest = bucket;
            self.fine.move_on(bucket);
            self.coarse.move_on(bucket / FINE_IN_COARSE);
        }
    }

    fn keeps_fine(&self, bucket: u32) -> bool {
        bucket >= Buckets::<FINE_KEPT>::first_kept(self.newest)
    }

    fn keeps_coarse(&self, bucket: u32) -> bool {
        bucket / FINE_IN_COARSE >= Buckets::<COARSE_KEPT>::first_kept(self.newest / FINE_IN_COARSE)
    }
}

/// The number of the first bucket of the window whose last one is `last`.
fn first_within(window: Window, last: u32, first_kept: u32, at_ns: u64) -> Result<u32, WindowError> {
    let before_last = window.length_ns() / window.bucket_ns() - 1;
    let first = u64::from(last).saturating_sub(before_last);
    // A window at the start of all time is shorter, and nothing is missing from it.
    if first < u64::from(first_kept) {
        let earliest_ns = (u64::from(first_kept) + before_last) * window.bucket_ns();
        return Err(WindowError::Passed { at_ns, earliest_ns });
    }
    Ok(u32::try_from(first).unwrap_or(last))
}
