//! An embedded database for engagement signals in which any user can leave the community layer and
//! be believed.
//!
//! Users act on items; every act is a *signal*. Signals shape what others see: each is added to the
//! *cohorts* whose attributes the user matches and to the *communities* they are in. Once
//! [`leave_community_layer`](TidalDb::leave_community_layer) returned, nothing that the user does
//! reaches a cohort or a community, under any interleaving, after any crash, however late an event
//! arrives. The user's own history and the item's global numbers take every signal, left or not;
//! [`rejoin_community_layer`](TidalDb::rejoin_community_layer) lets them flow again.
//!
//! ```
//! use std::time::Duration;
//! use tidal_db::{Schema, Scope, TidalDb, Withheld};
//!
//! let schema = Schema::builder()
//!     .signal("view", Duration::from_secs(7 * 86_400))
//!     .cohorts_by("region")
//!     .build()?;
//! let db = TidalDb::builder().schema(schema).ephemeral().open()?;
//!
//! db.set_user_attribute(7, "region", "Scotland")?;
//! assert_eq!(db.signal(7, 1752, "view", 1.0)?.cohorts, 1);
//! db.leave_community_layer(7)?;
//! assert_eq!(db.signal(7, 1752, "view", 1.0)?.withheld, Some(Withheld::Left));
//!
//! let scotland = Scope::Cohort("region=Scotland".to_owned());
//! assert_eq!(db.aggregate(&scotland, 1752, "view")?.map(|taken| taken.count), Some(1));
//! assert_eq!(db.history(7)?.count(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to go from here
//!
//! * How a database is opened and how durable a signal is: [`Config`], [`Durability`].
//! * Events from a queue or a file, each once: [`TidalDb::apply`].
//! * What an open found, and what to do about it: [`TidalDb::open_report`],
//!   [`TidalDb::repair_community_layer`]; everything recomputed: [`TidalDb::verify`].
//! * An older copy of the file put back: [`Config::expect_at_least`].
//! * The best items of a scope: [`TidalDb::top_items`].
//! * The last hour, day or week: [`SchemaBuilder::windowed`], [`TidalDb::aggregate_window`].
//! * Cohorts by any rule on attributes: [`Predicate`].
//! * All signals of a user: [`TidalDb::history`]; all their leaves and rejoins: [`TidalDb::membership_history`].
//! * What only repeats the log made anew: [`Config::rebuild`].
//! * Signal types and cohorts added later: [`Config::extend_schema`].
//! * The record of a leave, its nine bytes and its codec: [`tidal_entities::community`].
//!
//! [`CommunityMembership`] says whether a user takes part in the community layer at all;
//! [`TidalDb::communities_of`] says in which communities.
//!
//! # What it is not
//!
//! No server, no query language, no recommendations. One process at a time has a database open.

mod aggregate_merge;
mod aggregate_output;
mod aggregates;
mod apply;
#[cfg_attr(feature = "bench-without-gate", allow(dead_code, reason = "breaks of a gate that is not there"))]
mod canary;
mod checkpointer;
mod clock;
mod commit_waits;
mod community;
mod config;
mod crosscheck;
mod db;
mod error;
mod fast_map;
#[cfg_attr(
    feature = "bench-without-gate",
    allow(dead_code, unused_imports, reason = "what asks the gate is left out, what keeps it stays")
)]
mod gate;
#[cfg(feature = "bench-without-gate")]
mod gate_removed;
mod give_way;
mod history;
mod history_check;
mod leaderboard;
mod log_facts;
mod log_replay;
mod log_rows;
mod log_state;
mod log_writer;
mod membership;
mod profiles;
mod rebuild;
mod record_check;
mod report;
mod run_check;
mod run_maker;
mod run_merge;
mod run_output;
mod run_table;
mod runs;
mod scopes;
mod shards;
mod signals;
mod state_rebuild;
mod stored_aggregates;
mod stored_schema;
mod sync;
mod top_items;
mod verify;
mod windows;

pub use aggregates::AggregateRow;
pub use apply::ApplyReport;
#[cfg(feature = "canaries")]
pub use canary::Break;
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::{Config, DEFAULT_ALLOWED_SKEW, DEFAULT_RECOVERY_ENTRIES, Durability};
pub use db::TidalDb;
pub use error::{Error, Result};
pub use history::HistoryEvent;
pub use membership::{MAX_ATTRIBUTES_PER_USER, MAX_COMMUNITIES_PER_USER};
pub use report::{DamagedRecord, OpenReport};
pub use signals::SignalReceipt;
pub use tidal_entities::community::{CommunityMembership, MembershipStatus};
pub use tidal_entities::{
    Action, Aggregate, CodecError, Event, HalfLife, LimitError, Predicate, Schema, SchemaBuilder,
    SchemaError, Scope, SignalType, Transition, TransitionKind, Weight, WeightError, Window, WindowAggregate,
    WindowError, Withheld, WithheldCounts, format_nanos,
};
pub use tidal_storage::{Storage, StorageError};
pub use verify::{Difference, DifferenceKind, VerifyReport};

/// Whether signals pass the gate: always, but in the build that measures what it costs. What ships asserts it.
#[doc(hidden)]
pub const HAS_GATE: bool = cfg!(not(feature = "bench-without-gate"));

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
