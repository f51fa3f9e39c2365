//! What tidal stores and how it counts: the types, their bytes, and the arithmetic.
//!
//! If you want to record signals and let users leave, `tidal-db` is usually what you want. This crate is for
//! those who read or write single records, or who check what a database holds. It is pure: bytes go in, values
//! come out, and nothing is read from or written to a file.
//!
//! # What is here
//!
//! | part | names |
//! | --- | --- |
//! | who has left | [`community`], [`Transition`], [`AwayPeriods`], [`Withheld`] |
//! | what happened | [`Event`], [`Action`], [`LogEntry`], [`LogRow`], [`LogRowBuilder`], [`RunRow`], [`RunIndex`] |
//! | who takes it | [`Scope`], [`ScopeId`], [`ScopeSetId`], [`Schema`], [`Predicate`] |
//! | how it is counted | [`Weight`], [`HalfLife`], [`ScoreSums`], [`AggregateState`], [`Aggregate`], [`Window`] |
//! | how it is stored | [`seal`], [`unseal`], and the `*_key`, `encode_*`, `decode_*` functions |
//!
//! # Rows
//!
//! Every row but the 9-byte leave record is sealed: its last four bytes are a CRC-32 over its key and its other
//! bytes, so that a flipped bit, and a row that stands under another row's key, are found without help from the
//! store. Numbers in values are little-endian. Numbers in keys are big-endian, so that keys sort as numbers do.
//! Decoders are strict: what they accept, the encoders would have written byte for byte.
//!
//! # Exactness
//!
//! Weights are decimal fixed point and their sums are exact. Scores are sums of integers as well, so that what
//! was added can be taken away again to the last bit, in any order. See [`ScoreSums`].
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use tidal_entities::{AggregateState, HalfLife, Weight};
//!
//! let half_life = HalfLife::try_from(Duration::from_secs(60))?;
//! let minute_ns = 60_000_000_000;
//!
//! let mut state = AggregateState::default();
//! state.add(Weight::try_from(2.0)?, 0, half_life);
//! state.add(Weight::try_from(0.1)?, minute_ns, half_life);
//!
//! let aggregate = state.snapshot(minute_ns, half_life);
//! assert_eq!(aggregate.count, 2);
//! assert_eq!(aggregate.weight_nanos, 2_100_000_000);
//! assert!((aggregate.score - 1.1).abs() < 1e-9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aggregate;
mod away;
mod checkpoint;
pub mod community;
mod error;
mod event;
mod fingerprint;
mod half_life;
mod limits;
mod log;
mod packed_nanos;
mod power_of_two;
mod reader;
mod run;
mod schema;
mod scope;
mod score;
mod sealed;
mod source;
mod transition;
mod user_rows;
mod weight;
mod window;
mod withheld;

pub use aggregate::{
    Aggregate, AggregateKey, AggregateRow, AggregateRun, AggregateRunBuilder, AggregateState, SubtractError,
    aggregate_row_key, parse_aggregate_row_key,
};
pub use away::AwayPeriods;
pub use checkpoint::{Checkpoint, checkpoint_key, decode_checkpoint, encode_checkpoint};
pub use error::CodecError;
pub use event::{Action, Event};
pub use fingerprint::Fingerprint;
pub use half_life::{HalfLife, HalfLifeError};
pub use limits::{
    LimitError, MAX_NAME_BYTES, MAX_VALUE_BYTES, check_attribute_name, check_attribute_value,
    check_source_name,
};
pub use log::{LogEntries, LogEntry, LogRow, LogRowBuilder, SignalEntry, log_row_key, parse_log_row_key};
pub use run::{
    Run, RunEntry, RunIndex, RunPlace, RunRow, RunRowBuilder, decode_run_index, encode_run_index,
    parse_run_row_key, run_index_key, run_row_key,
};
pub use schema::{
    Predicate, Schema, SchemaBuilder, SchemaError, SignalType, SignalTypeId, decode_schema, encode_schema,
    schema_key,
};
pub use scope::{
    InternedId, Scope, ScopeId, ScopeSetId, decode_scope, decode_scope_set, encode_scope, encode_scope_set,
    parse_interned_key, scope_key, scope_set_key,
};
pub use score::{Contribution, ScoreMoment, ScoreRank, ScoreSums};
pub use sealed::{SEAL_LEN, seal, unseal};
pub use source::{
    SourcePosition, decode_source_position, encode_source_position, parse_source_key, source_key,
};
pub use transition::{
    Transition, TransitionKind, decode_transition, encode_transition, parse_transition_key, transition_key,
};
pub use user_rows::{
    attribute_key, decode_attribute, decode_joined, encode_attribute, encode_joined, joined_key,
    parse_attribute_key, parse_joined_key,
};
pub use weight::{Weight, WeightError, format_nanos, weight_sum_to_f64};
pub use window::{Window, WindowAggregate, WindowError};
pub use withheld::{Withheld, WithheldCounts};
