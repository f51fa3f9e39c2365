//! One module a command, or a few that are alike.

pub(crate) mod aggregates;
pub(crate) mod history;
pub(crate) mod layer;
pub(crate) mod profile;
pub(crate) mod rebuild;
pub(crate) mod replay;
pub(crate) mod signal;
pub(crate) mod top;
pub(crate) mod verify;
