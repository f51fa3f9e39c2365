//! What the fuzzers of tidal call: each target takes any bytes, and panics where they break a promise.
//!
//! The fuzzers themselves stand in `fuzz/` at the top of the repository, a workspace of its own, since they need
//! another toolchain. The seeds beside them are run by a test of this crate on every toolchain.
#![allow(clippy::missing_panics_doc, reason = "to panic is how a target says what it found")]

mod bytes;
mod event_file;
mod keys;
mod operations;
mod record;
mod rows;

pub use event_file::event_file;
pub use keys::keys;
pub use operations::operations;
pub use record::record;
pub use rows::{is_row, rows};

/// What a fuzzer runs on its input; panics if a promise is broken.
pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its folder of seeds too.
pub const TARGETS: [(&str, Target); 5] = [
    ("event_file", event_file),
    ("keys", keys),
    ("operations", operations),
    ("record", record),
    ("rows", rows),
];
