mod codec;
mod key;
mod run;

use crate::{
    Contribution, HalfLife, ScoreSums, Weight, Window, WindowAggregate, WindowError,
    packed_nanos::PackedNanos, weight_sum_to_f64, window::WindowSums,
};

pub use key::{AggregateKey, aggregate_row_key, parse_aggregate_row_key};
pub(crate) use key::{decode_key, encode_key_fields};
pub use run::{AggregateRow, AggregateRun, AggregateRunBuilder};

/// What all signals of one scope, item and signal type add up to, at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggregate {
    /// How many signals there are.
    pub count: u64,
    /// The sum of their weights in units of 1e-9, exact.
    pub weight_nanos: i128,
    /// The nearest `f64` to the sum of their weights.
    pub weight_sum: f64,
    /// The sum of their weights, each halved for every half-life since its event time. See [`ScoreSums`].
    pub score: f64,
}

/// What an [`Aggregate`] is read from: exact sums, to which signals are added and from which they are taken away.
///
/// The same signals always lead to equal states, in whatever order and with whatever detours.
/// One database has one half-life for a signal type, so the half-life is not kept here; pass the same one each time.
///
/// [Windows](Window) are kept of signals that are added as [`Contribution::windowed`]; then all must be. What is kept
/// for them follows the newest signal, and is taken away again as long as it is kept.
///
/// ```
/// use std::time::Duration;
/// use tidal_entities::{AggregateState, HalfLife, Weight};
///
/// let half_life = HalfLife::try_from(Duration::from_secs(3600))?;
/// let mut state = AggregateState::default();
/// state.add("0.1".parse()?, 100, half_life);
/// state.add("0.2".parse()?, 50, half_life);
/// assert_eq!(state.snapshot(100, half_life).weight_sum, 0.3);
///
/// state.subtract("0.1".parse()?, 100, half_life)?;
/// state.subtract("0.2".parse()?, 50, half_life)?;
/// assert!(state.is_empty());
/// assert!(state.subtract(Weight::ONE, 50, half_life).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AggregateState {
    count: u64,
    weight_nanos: PackedNanos,
    score: ScoreSums,
    // None of a type without windows, and where there is no signal.
    windows: Option<Box<WindowSums>>,
}

// There may be millions in memory. What a state holds beyond one epoch, and windows, come on top.
const _: () = assert!(size_of::<AggregateState>() == 72);

/// Why a signal cannot be taken away from an aggregate: it was never added. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubtractError {
    /// There is no signal in the aggregate.
    #[error("aggregate holds no signal that could be taken away: rebuild it from the events")]
    Empty,

    /// There is one signal in the aggregate, and it is another one.
    #[error("aggregate holds one signal, and it is not the one to be taken away: rebuild it from the events")]
    OtherSignal,

    /// There is no such signal in the aggregate at that time.
    #[error("aggregate holds no such signal of that time: rebuild it from the events")]
    OtherTime,
}

impl AggregateState {
    /// Adds a signal.
    pub fn add(&mut self, weight: Weight, event_time_ns: u64, half_life: HalfLife) {
        self.add_contribution(&Contribution::new(weight, event_time_ns, half_life));
    }

    /// Takes a signal away that was added before.
    ///
    /// # Errors
    ///
    /// [`SubtractError`] if it can be told that the signal was never added. The state is then as it was. With several
    /// signals left that cannot be told.
    pub fn subtract(
        &mut self,
        weight: Weight,
        event_time_ns: u64,
        half_life: HalfLife,
    ) -> Result<(), SubtractError> {
        self.subtract_contribution(&Contribution::new(weight, event_time_ns, half_life))
    }

    /// Adds a signal whose contribution was worked out before, for another aggregate of the same signal type.
    pub fn add_contribution(&mut self, contribution: &Contribution) {
        // Decoding refuses counts from which a u64 could be filled within centuries.
        self.count = self.count.saturating_add(1);
        // 2^64 weights of 1e18 stay below 2^124.
        let weight_nanos = self.weight_nanos() + i128::from(contribution.weight().nanos());
        self.weight_nanos = PackedNanos::new(weight_nanos);
        self.score.add_contribution(contribution);
        if let Some(bucket) = contribution.bucket() {
            let windows = self.windows.get_or_insert_with(|| Box::new(WindowSums::new(bucket)));
            windows.add(bucket, contribution.weight().nanos());
        }
    }

    /// Adds all signals of another aggregate of the same signal type.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.weight_nanos = PackedNanos::new(self.weight_nanos() + other.weight_nanos());
        self.score.merge(&other.score);
        if let Some(windows) = &other.windows {
            let own = self.windows.get_or_insert_with(|| Box::new(WindowSums::new(windows.newest())));
            own.merge(windows);
        }
    }

    /// Takes a signal away whose contribution was worked out before.
    ///
    /// # Errors
    ///
    /// As [`subtract`](Self::subtract).
    pub fn subtract_contribution(&mut self, contribution: &Contribution) -> Result<(), SubtractError> {
        let count = self.count.checked_sub(1).ok_or(SubtractError::Empty)?;
        let nanos = contribution.weight().nanos();
        let can_hold = |bucket| self.windows.as_ref().is_some_and(|windows| windows.can_hold(bucket, nanos));
        if !contribution.bucket().is_none_or(can_hold) {
            return Err(SubtractError::OtherTime);
        }
        let weight_nanos = self.weight_nanos() - i128::from(nanos);
        if count == 0 && weight_nanos != 0 {
            return Err(SubtractError::OtherSignal);
        }
        self.score.subtract_contribution(contribution);
        if count == 0 && !self.score.is_empty() {
            self.score.add_contribution(contribution);
            return Err(SubtractError::OtherSignal);
        }
        (self.count, self.weight_nanos) = (count, PackedNanos::new(weight_nanos));
        if let (Some(bucket), Some(windows)) = (contribution.bucket(), &mut self.windows) {
            windows.subtract(bucket, nanos);
        }
        if count == 0 {
            self.windows = None;
        }
        Ok(())
    }

    /// How many signals there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The sum of their weights in units of 1e-9.
    #[must_use]
    pub const fn weight_nanos(&self) -> i128 {
        self.weight_nanos.get()
    }

    /// The sums that their score is read from.
    #[must_use]
    pub const fn score(&self) -> &ScoreSums {
        &self.score
    }

    /// Whether windows are kept of its signals.
    #[must_use]
    pub const fn has_windows(&self) -> bool {
        self.windows.is_some()
    }

    /// How many buckets there are for its windows, each of 32 bytes: at most 216.
    #[must_use]
    pub fn buckets_len(&self) -> usize {
        self.windows.as_ref().map_or(0, |windows| windows.buckets_len())
    }

    /// Whether windows of both states are read from the same sums.
    #[must_use]
    pub fn has_same_windows(&self, other: &Self) -> bool {
        self.windows == other.windows
    }

    /// What the window that ends at a time, in ns since the Unix epoch, holds. The whole bucket of that time counts,
    /// also what is ahead of it there; later buckets do not.
    ///
    /// # Errors
    ///
    /// [`WindowError::NotKept`] if the signals were added without windows; [`WindowError::Passed`] if the window
    /// reaches further back than what is kept, see [`Window`]: never if it ends no earlier than the newest signal.
    pub fn window(&self, window: Window, at_ns: u64) -> Result<WindowAggregate, WindowError> {
        self.windows.as_ref().ok_or(WindowError::NotKept)?.sum_at(window, at_ns)
    }

    /// Whether there is no signal.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Reads the aggregate with the score at a time, in ns since the Unix epoch.
    #[must_use]
    pub fn snapshot(&self, at_ns: u64, half_life: HalfLife) -> Aggregate {
        Aggregate {
            count: self.count,
            weight_nanos: self.weight_nanos(),
            weight_sum: weight_sum_to_f64(self.weight_nanos()),
            score: self.score.value_at(at_ns, half_life),
        }
    }
}
