use tidal_keys::{EncodedKey, EntityId, Tag, encode_key, parse_key};

use crate::{
    CodecError, Contribution, HalfLife, ScopeId, ScoreSums, SignalTypeId, Weight, Window, WindowAggregate,
    WindowError,
    packed_nanos::PackedNanos,
    reader::Reader,
    score::{EpochSum, WideSum},
    sealed::{seal_in_place, unseal},
    weight_sum_to_f64,
    window::{NO_EPOCH, WindowSums, decode_windows, encode_windows},
};

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

const WHAT: &str = "aggregate";

/// The key of a stored aggregate, in the items partition: the item, then scope and signal type, both big-endian.
///
/// All aggregates of one item stand together, and within them those of one scope.
#[must_use]
pub fn aggregate_key(item: u64, scope: ScopeId, signal_type: SignalTypeId) -> EncodedKey {
    let [s0, s1, s2, s3] = scope.0.to_be_bytes();
    let [t0, t1] = signal_type.0.to_be_bytes();
    encode_key(EntityId::new(item), Tag::SignalState, &[s0, s1, s2, s3, t0, t1])
}

/// Takes item, scope and signal type out of the key of a stored aggregate.
///
/// # Errors
///
/// [`CodecError::Key`] and [`CodecError::ForeignKey`] if it is no such key.
pub fn parse_aggregate_key(key: &[u8]) -> Result<(u64, ScopeId, SignalTypeId), CodecError> {
    match parse_key(key).map_err(|source| CodecError::Key { what: WHAT, source })? {
        (item, Tag::SignalState, &[s0, s1, s2, s3, t0, t1]) => Ok((
            item.get(),
            ScopeId(u32::from_be_bytes([s0, s1, s2, s3])),
            SignalTypeId(u16::from_be_bytes([t0, t1])),
        )),
        _ => Err(CodecError::foreign_key(WHAT, key)),
    }
}

/// Enough for a row of one epoch without windows, which is what most are.
const USUAL_ROW_BYTES: usize = 64;

/// Lays out the row of an aggregate under its key.
///
/// `mark` is the sequence number up to which, itself included, all events of the log are in the state: whoever goes
/// on from there applies nothing twice.
#[must_use]
pub fn encode_aggregate(key: &[u8], mark: u64, state: &AggregateState) -> Vec<u8> {
    let mut row = Vec::with_capacity(USUAL_ROW_BYTES);
    row.extend_from_slice(&mark.to_le_bytes());
    row.extend_from_slice(&state.count.to_le_bytes());
    row.extend_from_slice(&state.weight_nanos().to_le_bytes());
    for EpochSum { epoch, sum } in state.score.epochs() {
        row.extend_from_slice(&epoch.to_le_bytes());
        row.extend_from_slice(&sum.to_le_bytes());
    }
    if let Some(windows) = &state.windows {
        encode_windows(windows, &mut row);
    }
    seal_in_place(key, &mut row);
    row
}

/// Reads the row of an aggregate: its mark and its state.
///
/// # Errors
///
/// [`CodecError`] if the row is not what [`encode_aggregate`] lays out under this key, or if its sums are larger than
/// its count allows.
pub fn decode_aggregate(key: &[u8], value: &[u8]) -> Result<(u64, AggregateState), CodecError> {
    let mut reader = Reader::new(WHAT, unseal(key, value)?);
    let mark = reader.u64()?;
    let count = reader.u64()?;
    if count > MAX_STORED_COUNT {
        return Err(CodecError::Value {
            what: "count of an aggregate",
            found: count.to_string(),
            expected: "is at most 2^63",
        });
    }
    let weight_nanos = reader.i128()?;
    if weight_nanos.unsigned_abs() > u128::from(count) * u128::from(Weight::MAX.nanos().unsigned_abs()) {
        return Err(CodecError::Value {
            what: "weight of an aggregate in units of 1e-9",
            found: weight_nanos.to_string(),
            expected: "is at most 1e18 a signal",
        });
    }
    let mut epochs: Vec<EpochSum> = Vec::new();
    let mut windows = None;
    while !reader.is_empty() {
        let epoch = reader.u64()?;
        if epoch == NO_EPOCH {
            windows = Some(Box::new(decode_windows(&mut reader, count)?));
            break;
        }
        let sum = WideSum::from_limbs(reader.u64()?, reader.u64()?, reader.i64()?);
        let is_ascending = epochs.last().is_none_or(|last| last.epoch < epoch);
        if !is_ascending || sum.is_zero() || !sum.can_be_sum_of(count) {
            return Err(CodecError::Value {
                what: "epoch of an aggregate",
                found: epoch.to_string(),
                expected: "follows a lower one and has a sum other than 0, below 2^127 a signal",
            });
        }
        epochs.push(EpochSum { epoch, sum });
    }
    Ok((
        mark,
        AggregateState {
            count,
            weight_nanos: PackedNanos::new(weight_nanos),
            score: ScoreSums::from_epochs(epochs),
            windows,
        },
    ))
}

/// From here a count still takes centuries to overflow.
const MAX_STORED_COUNT: u64 = 1 << 63;
