//! The `tidal` command, and the event file that it replays.
//!
//! The command is a thin front over [`tidal_db`]; a program links that crate instead. What may be of use
//! elsewhere is [`event_file`]: a strict reader of the CSV in which recorded events are kept.
//!
//! Of the workspace only what the fuzzers call depends on this one, and as a library it is no stable API: [`run`]
//! is there for the binary and the tests, and anything may change with the command.

pub mod event_file;

mod arguments;
mod commands;
mod database;
mod failure;
mod half_life;
mod id;
mod output;
mod scope;
mod time;

pub use arguments::run;

const _: () = assert!(tidal_db::HAS_GATE, "the command is never built over a database without its gate");
