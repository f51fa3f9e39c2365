//! Rows by action.

use serde::Serialize;
use tidal_db::Action;

/// How many rows of each action a file has. In JSON, actions that do not occur are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowCounts {
    /// Attributes set.
    #[serde(skip_serializing_if = "is_zero")]
    pub user: u64,
    /// Communities joined.
    #[serde(skip_serializing_if = "is_zero")]
    pub join: u64,
    /// Communities quit.
    #[serde(skip_serializing_if = "is_zero")]
    pub quit: u64,
    /// Signals.
    #[serde(skip_serializing_if = "is_zero")]
    pub signal: u64,
    /// Leaves of the community layer.
    #[serde(skip_serializing_if = "is_zero")]
    pub leave: u64,
    /// Returns to it.
    #[serde(skip_serializing_if = "is_zero")]
    pub rejoin: u64,
}

impl RowCounts {
    /// All rows together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_action().iter().map(|(_, count)| count).sum()
    }

    /// Each action as the file names it, with its count.
    #[must_use]
    pub fn by_action(&self) -> [(&'static str, u64); 6] {
        let Self { user, join, quit, signal, leave, rejoin } = *self;
        [
            ("user", user),
            ("join", join),
            ("quit", quit),
            ("signal", signal),
            ("leave", leave),
            ("rejoin", rejoin),
        ]
    }

    /// Counts one row.
    pub(crate) fn add(&mut self, action: &Action) {
        let count = match action {
            Action::SetAttribute { .. } => &mut self.user,
            Action::Join { .. } => &mut self.join,
            Action::Quit { .. } => &mut self.quit,
            Action::Signal { .. } => &mut self.signal,
            Action::Leave { .. } => &mut self.leave,
            Action::Rejoin { .. } => &mut self.rejoin,
            // No column value reads as an action of another kind.
            _ => return,
        };
        *count += 1;
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
