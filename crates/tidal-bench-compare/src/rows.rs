//! The rows, one file each.

pub(crate) mod delay;
pub(crate) mod disk;
pub(crate) mod engines;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod immediate;
pub(crate) mod ingest;
pub(crate) mod leave;
pub(crate) mod memory;
pub(crate) mod open;
pub(crate) mod restore;
pub(crate) mod top;
