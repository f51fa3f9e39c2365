//! What threads do to a user, and what they were told.

use tidal_interleavings::{CommunityMembership, Withheld};

/// One call.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Now, or at a time that the caller names.
    Signal {
        at_ns: Option<u64>,
    },
    Leave,
    Rejoin,
    Status,
    /// The total of one scope, by its place in [`crate::stage::scopes`].
    Read {
        scope: usize,
    },
}

/// What a call returned.
#[derive(Clone, Copy, Debug)]
pub enum Said {
    /// `mark` is the one bit that the signal adds to the total of each scope that takes it.
    Signal {
        mark: u32,
        at_ns: Option<u64>,
        withheld: Option<Withheld>,
    },
    Leave(CommunityMembership),
    Rejoin(CommunityMembership),
    Status(CommunityMembership),
    /// `marks` are those of all signals of all users that the scope took.
    Read {
        scope: usize,
        marks: u32,
    },
}

/// A call with the time it took: of two calls, the one that returned before the other was made came first.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub user: u64,
    pub made_at: u64,
    pub returned_at: u64,
    pub said: Said,
}

/// The calls that concern `user`: their own, and of what was read by anybody what came from them.
pub fn calls_on(user: u64, calls: &[Call]) -> Vec<Call> {
    let is_own = |call: &&Call| call.user == user;
    let own_marks = calls.iter().filter(is_own).fold(0, |all, call| match call.said {
        Said::Signal { mark, .. } => all | mark,
        _ => all,
    });
    let concerned = calls.iter().filter_map(|call| match call.said {
        Said::Read { scope, marks } => {
            Some(Call { said: Said::Read { scope, marks: marks & own_marks }, ..*call })
        }
        _ => is_own(&call).then_some(*call),
    });
    concerned.collect()
}
