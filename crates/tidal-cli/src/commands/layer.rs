//! `tidal leave`, `tidal rejoin`, `tidal status`, `tidal left`: who is out of the community layer.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tidal_db::{CommunityMembership, MembershipStatus};

use crate::database::Database;
use crate::failure::Failure;
use crate::id::parse_id;
use crate::output::Output;
use crate::time::format_time_ns;

/// Withdraw users from all cohorts and communities
#[derive(Args, Debug)]
pub(crate) struct Leave {
    #[command(flatten)]
    users: Users,
}

/// Let what users do from now on count again
#[derive(Args, Debug)]
pub(crate) struct Rejoin {
    #[command(flatten)]
    users: Users,
}

/// Tell whether users have left
#[derive(Args, Debug)]
pub(crate) struct Status {
    #[command(flatten)]
    users: Users,
}

/// List the users who have left, in order of their ids
#[derive(Args, Debug)]
pub(crate) struct ListLeft {
    /// Only count them
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    database: Database,
}

#[derive(Args, Debug)]
struct Users {
    /// The users' ids
    #[arg(required = true, value_name = "USER", value_parser = parse_id)]
    ids: Vec<u64>,
    #[command(flatten)]
    database: Database,
}

/// Where a user stands.
#[derive(Serialize)]
struct Standing {
    user: u64,
    status: &'static str,
    left_at_ns: Option<u64>,
}

impl From<CommunityMembership> for Standing {
    fn from(membership: CommunityMembership) -> Self {
        let status = match membership.status {
            MembershipStatus::Active => "active",
            MembershipStatus::Left => "left",
        };
        Self { user: membership.user_id, status, left_at_ns: membership.left_at_ns }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "user {} {}", self.user, self.status)?;
        match (self.status, self.left_at_ns) {
            (_, None) => Ok(()),
            ("left", Some(left_at_ns)) => write!(formatter, " since {}", format_time_ns(left_at_ns)),
            (_, Some(left_at_ns)) => write!(formatter, ", left before at {}", format_time_ns(left_at_ns)),
        }
    }
}

/// How many users have left.
#[derive(Serialize)]
struct LeftCount {
    left: u64,
}

impl fmt::Display for LeftCount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.left)
    }
}

impl Leave {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.users.each(output, tidal_db::TidalDb::leave_community_layer)
    }
}

impl Rejoin {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.users.each(output, tidal_db::TidalDb::rejoin_community_layer)
    }
}

impl Status {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.users.each(output, |db, user| Ok(db.community_layer_status(user)))
    }
}

impl ListLeft {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.database.with(|db| {
            if self.count {
                return output.write(&LeftCount { left: db.left_count() });
            }
            for membership in db.left_users() {
                output.write(&Standing::from(membership))?;
            }
            Ok(())
        })
    }
}

impl Users {
    /// Does one thing for each user and writes where they then stand. It stops at the first that fails, and says how
    /// many were not come to.
    fn each(
        &self,
        output: &mut Output,
        act: impl Fn(&tidal_db::TidalDb, u64) -> tidal_db::Result<CommunityMembership>,
    ) -> Result<(), Failure> {
        self.database.with(|db| {
            let mut ids = self.ids.iter();
            while let Some(user) = ids.next() {
                let membership = act(db, *user).map_err(|error| {
                    let failure = Failure::from(error).about(&format!("user {user}"));
                    match ids.len() {
                        0 => failure,
                        rest => failure.and(&format!("users after this one, not tried: {rest}")),
                    }
                })?;
                output.write(&Standing::from(membership))?;
            }
            Ok(())
        })
    }
}
