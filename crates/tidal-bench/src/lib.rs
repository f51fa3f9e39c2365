//! What the benches of tidal share: workloads, fixtures, statistics, and the lines in which a measured
//! figure is handed on.
//!
//! `cargo bench -p tidal-bench` measures tidal alone; `cargo xtask bench` measures it beside other engines and
//! against its targets, and writes `docs/benchmarks.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::missing_panics_doc,
    reason = "a bench fails by panicking, and casts what it made itself"
)]

mod background;
mod bare;
mod crowd;
mod dice;
mod fixtures;
mod gate_set_up;
mod line;
mod process;
mod stats;

pub use background::wait_until_caught_up;
pub use bare::{BareUpdates, UpdateKey};
pub use crowd::{Crowd, SignalOf, region_of};
pub use dice::{Dice, Zipf};
pub use fixtures::{
    EVENT_TIME_NS, EVENTS_PER_ITEM, EVENTS_PER_USER, HALF_LIFE, batched, build_events, build_leavers,
    events_of, items_of, leaver_ids, schema,
};
pub use gate_set_up::{
    ACTIVE_USERS, GATE_COMMUNITIES, GATE_ITEMS, GATE_REGIONS, active_user, gate_database, set_up_active_users,
};
pub use line::{Bound, Figure, Line, not_measured, note, point};
pub use process::resident_bytes;
pub use stats::{Sample, quantile, ratio};

/// How large the run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As the targets say.
    Full,
    /// A hundredth or so, to see whether all of it works: the figures mean nothing.
    Quick,
}

impl Scale {
    /// One of two numbers.
    #[must_use]
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}
