//! Where tidal keeps its records: one file, four partitions, atomic and durable commits.
//!
//! If you want to record signals and let users leave, `tidal-db` is usually what you want. This crate is for
//! those who read or write single records. It knows keys (from [`tidal_keys`]) but not what the values mean.
//!
//! # Quick example
//!
//! ```
//! use tidal_keys::{EntityId, Tag, encode_key};
//! use tidal_storage::{Partition, Storage, WriteBatch};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let directory = tempfile::tempdir()?;
//! let storage = Storage::create(directory.path().join("example.tidal"))?;
//!
//! // One batch, one durable commit: all of it or nothing.
//! let mut batch = WriteBatch::new();
//! batch.put(Partition::Users, &encode_key(EntityId::new(7), Tag::Metadata, b"region"), b"Scotland");
//! batch.put(Partition::Items, &encode_key(EntityId::new(1), Tag::Metadata, b"title"), b"Loch");
//! storage.commit(batch)?;
//!
//! for row in storage.users_engine().scan_tag(Tag::Metadata)? {
//!     let (_key, value) = row?;
//!     assert_eq!(value, "Scotland");
//! }
//! storage.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a caller may rely on
//!
//! - **Durable.** When [`Storage::commit`], [`Engine::put`] or [`Engine::delete`] returns `Ok`, it is on disk.
//!   When it returns an error, it may be on disk all the same; open again to find out.
//! - **Atomic.** A [`WriteBatch`] is applied whole, across partitions, or not at all.
//! - **Snapshots.** A [`Scan`] sees what was committed when it was made, whatever is committed beside it.
//! - **Opening is not creating.** [`Storage::open`] never makes a file, and an open that fails leaves every byte
//!   as it was. A database that is created appears under its name complete, or not at all.
//! - **Damage is an error.** By default every page is checked when a file is opened. A panic in the engine below
//!   becomes [`StorageError::EnginePanicked`] (the panic's message still goes to stderr, through the panic hook).
//!   That needs `panic = "unwind"`, the default, in the profile of the *program*: what a library's own workspace says
//!   does not count. Built with `panic = "abort"`, such a panic ends the process instead. What was acknowledged is on
//!   disk then too, and the next open finds what it finds after a kill.
//! - **One process at a time.** A second open is [`StorageError::AlreadyOpen`].
//! - **A failure sticks.** After an I/O error, a damaged page, an engine panic or any other failure of the engine to
//!   write, the handle refuses to write ([`StorageError::Latched`]) until the database is closed and opened again.
//!
//! # What it is not
//!
//! There is no async interface, no isolation between writers beyond one batch at a time, and no reading of a file
//! that another process has open.
//!
//! # Layout
//!
//! Each pair of [`Partition`] and [`Tag`](tidal_keys::Tag) is a table of its own, so that a scan of one tag costs
//! what its own records cost. Keys are stored as [`tidal_keys::encode_key`] lays them out, values as they are given.
//! A marker names the format and its version, [`FORMAT_VERSION`].

mod batch;
mod claim;
mod create;
mod engine;
mod error;
mod hex;
mod medium;
mod options;
mod partition;
mod place;
mod scan;
mod storage;
mod store;
mod table;

pub use batch::{MAX_KEY_BYTES, MAX_VALUE_BYTES, WriteBatch};
pub use claim::Claim;
pub use engine::Engine;
pub use error::StorageError;
pub use medium::{Medium, MemoryMedium};
pub use options::StorageOptions;
pub use partition::Partition;
pub use place::Place;
pub use scan::Scan;
pub use storage::Storage;
pub use store::FORMAT_VERSION;
