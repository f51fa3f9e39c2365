//! `tidal join`, `tidal quit`, `tidal user`: what decides into which scopes a user's acts go.

use std::fmt;

use clap::Args;
use serde::Serialize;

use crate::database::Database;
use crate::failure::Failure;
use crate::id::parse_id;
use crate::output::Output;

/// Let a user join a community
#[derive(Args, Debug)]
pub(crate) struct Join {
    /// Who joins
    #[arg(value_parser = parse_id)]
    user: u64,
    /// The community's id
    #[arg(value_parser = parse_id)]
    community: u64,
    #[command(flatten)]
    database: Database,
}

/// Let a user quit a community; what was forwarded to it stays
#[derive(Args, Debug)]
pub(crate) struct Quit {
    /// Who quits
    #[arg(value_parser = parse_id)]
    user: u64,
    /// The community's id
    #[arg(value_parser = parse_id)]
    community: u64,
    #[command(flatten)]
    database: Database,
}

/// Set an attribute of a user, by which cohorts are made
#[derive(Args, Debug)]
pub(crate) struct SetAttribute {
    /// Whose attribute
    #[arg(value_parser = parse_id)]
    user: u64,
    /// The attribute, split at the first '='
    #[arg(value_name = "NAME=VALUE", value_parser = parse_attribute)]
    attribute: (String, String),
    #[command(flatten)]
    database: Database,
}

/// A membership as it is now.
#[derive(Serialize)]
struct Membership {
    user: u64,
    community: u64,
    member: bool,
}

impl fmt::Display for Membership {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.member { "is in" } else { "is not in" };
        write!(formatter, "user {} {verb} community {}", self.user, self.community)
    }
}

/// An attribute as it is now.
#[derive(Serialize)]
struct Attribute<'command> {
    user: u64,
    name: &'command str,
    value: &'command str,
}

impl fmt::Display for Attribute<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "user {} has {}={}", self.user, self.name, self.value)
    }
}

impl Join {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.database.with(|db| {
            db.join_community(self.user, self.community)?;
            output.write(&Membership { user: self.user, community: self.community, member: true })
        })
    }
}

impl Quit {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        self.database.with(|db| {
            db.quit_community(self.user, self.community)?;
            output.write(&Membership { user: self.user, community: self.community, member: false })
        })
    }
}

impl SetAttribute {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), Failure> {
        let (name, value) = &self.attribute;
        self.database.with(|db| {
            db.set_user_attribute(self.user, name, value)?;
            output.write(&Attribute { user: self.user, name, value })
        })
    }
}

fn parse_attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name before the '=' is empty; write NAME=VALUE".to_owned()),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err("it has no '='; write NAME=VALUE".to_owned()),
    }
}
