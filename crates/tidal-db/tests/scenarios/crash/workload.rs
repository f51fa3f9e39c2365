//! Scripts of calls that together come to every durable operation.

use std::time::Duration;

use tidal_db::{Action, Config, Durability, Event, Schema, Weight};

use crate::scenarios::ITEM;

/// One call, or what happens between two.
#[derive(Clone, Debug)]
pub enum Call {
    Join(u64, u64),
    Quit(u64, u64),
    Attribute(u64, &'static str),
    Signal(u64, u64),
    Late(u64, u64),
    Leave(u64),
    Rejoin(u64),
    Repair(u64),
    Apply(u64, Vec<Event>),
    Flush,
    /// The clock moves on.
    Advance(u64),
    /// Checkpoints and runs get the time they want.
    Settle,
    /// Close and open, with the schema that the workload ends with.
    Reopen,
    /// Close, and open with all views made anew from the log.
    Rebuild,
}

impl Call {
    /// Users of whom it may be unknown whether they are out while the call runs.
    pub fn rejoins(&self) -> Vec<u64> {
        match self {
            Self::Rejoin(user) => vec![*user],
            Self::Apply(_, events) => {
                let user = |event: &Event| match event.action {
                    Action::Rejoin { user } => Some(user),
                    _ => None,
                };
                events.iter().filter_map(user).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Users who are out once the call returned, whatever they were before.
    pub fn leaves(&self) -> Vec<u64> {
        match self {
            Self::Leave(user) | Self::Repair(user) => vec![*user],
            Self::Apply(_, events) => {
                let mut out = Vec::new();
                for event in events {
                    match event.action {
                        Action::Leave { user } => out.push(user),
                        Action::Rejoin { user } => out.retain(|known| *known != user),
                        _ => {}
                    }
                }
                out
            }
            _ => Vec::new(),
        }
    }
}

/// A script, and the database it runs on.
#[derive(Clone, Debug)]
pub struct Workload {
    pub name: &'static str,
    /// For every open but the one that creates the database.
    pub configure: fn(Config) -> Config,
    /// Whether the database is created with the schema of [`configure`](Self::configure), or with a smaller one.
    pub grows: bool,
    /// Whether user 7 begins with a leave record that does not decode.
    pub is_damaged: bool,
    pub calls: Vec<Call>,
}

/// All of them.
pub fn all() -> Vec<Workload> {
    vec![transitions(), delivery(), batched(), checkpoints(), runs(), repair(), reopening()]
}

/// Every call once and more, with nothing in the background.
pub fn transitions() -> Workload {
    use Call::*;
    let calls = vec![
        Join(7, 1),
        Attribute(7, "Wales"),
        Signal(7, ITEM),
        Advance(100),
        Leave(7),
        Signal(7, ITEM),
        Join(7, 2),
        Leave(8),
        Advance(100),
        Leave(7),
        Rejoin(7),
        Late(7, 1_150),
        Late(7, 1_000),
        Attribute(7, "Scotland"),
        Signal(7, ITEM + 1),
        Quit(7, 1),
        Advance(100),
        Leave(7),
        Leave(u64::MAX),
        Signal(7, ITEM),
        Rejoin(8),
        Signal(8, ITEM),
        Join(0, 1),
        Signal(0, ITEM),
    ];
    Workload { name: "transitions", configure: |config| config, grows: false, is_damaged: false, calls }
}

/// A source with leaves and returns in it, each of which is a commit.
fn delivery() -> Workload {
    use Call::*;
    let leave = |at_ns, user| Event { at_ns, action: Action::Leave { user } };
    let rejoin = |at_ns, user| Event { at_ns, action: Action::Rejoin { user } };
    let join = |at_ns, user| Event { at_ns, action: Action::Join { user, community: 1 } };
    let first = vec![join(10, 7), view(20, 7), leave(30, 7), view(40, 7), join(50, 8), view(60, 8)];
    let second = vec![rejoin(70, 7), view(80, 7), view(35, 7), leave(90, 8), leave(95, 7), view(96, 7)];
    let third = vec![rejoin(100, 8), view(110, 8), leave(120, 8), view(130, 8), rejoin(140, 7), view(150, 7)];
    let calls = vec![
        Apply(1, first),
        Signal(8, ITEM),
        Apply(7, second),
        Apply(13, third),
        Apply(19, vec![leave(160, 7)]),
        Leave(9),
    ];
    Workload { name: "delivery", configure: |config| config, grows: false, is_damaged: false, calls }
}

fn view(at_ns: u64, user: u64) -> Event {
    let action = Action::Signal { user, item: ITEM, signal_type: "view".to_owned(), weight: Weight::ONE };
    Event { at_ns, action }
}

/// Signals that are seen before they are on disk, and transitions that take them along.
fn batched() -> Workload {
    use Call::*;
    let mut calls = vec![Join(7, 1), Join(8, 1)];
    for turn in 0..4 {
        calls.extend([Signal(7, ITEM), Signal(8, ITEM + turn), Late(7, 900), Leave(7), Signal(7, ITEM)]);
        calls.extend([Signal(8, ITEM), Signal(8, ITEM), Advance(10), Rejoin(7), Signal(7, ITEM), Flush]);
    }
    calls.extend([Signal(8, ITEM), Leave(8), Reopen, Signal(8, ITEM), Signal(7, ITEM), Leave(7)]);
    let configure = |config: Config| {
        config.durability(Durability::Batched { max_events: 3, max_delay: Duration::from_secs(3_600) })
    };
    Workload { name: "batched", configure, grows: false, is_damaged: false, calls }
}

/// Stored aggregates follow the log all the time.
fn checkpoints() -> Workload {
    use Call::*;
    let mut calls = vec![Join(7, 1), Attribute(7, "Wales")];
    for turn in 0..5 {
        calls.extend([Signal(7, ITEM + turn), Signal(8, ITEM), Leave(7), Signal(7, ITEM), Settle]);
        calls.extend([
            Advance(10),
            Rejoin(7),
            Late(7, 1_005),
            Apply(1 + turn * 2, vec![view(20, 7), view(30, 8)]),
        ]);
    }
    calls.extend([Settle, Leave(7), Reopen, Signal(7, ITEM), Rejoin(7), Signal(7, ITEM), Settle, Leave(8)]);
    calls.extend([Rebuild, Signal(7, ITEM), Leave(7)]);
    Workload {
        name: "checkpoints",
        configure: |config| config.recovery_entries(8),
        grows: false,
        is_damaged: false,
        calls,
    }
}

/// Runs are made of the log, merged, and what they replace is removed.
fn runs() -> Workload {
    use Call::*;
    let mut calls = vec![Join(7, 1), Leave(8)];
    for turn in 0..12 {
        calls.extend([Signal(7, ITEM + turn), Signal(8, ITEM), Signal(9, ITEM + turn), Settle]);
    }
    calls.extend([
        Leave(7),
        Signal(7, ITEM),
        Settle,
        Reopen,
        Signal(7, ITEM),
        Signal(9, ITEM),
        Rejoin(8),
        Settle,
    ]);
    Workload {
        name: "runs",
        configure: |config| config.run_entries(3),
        grows: false,
        is_damaged: false,
        calls,
    }
}

/// A record that does not decode, and how it is settled.
fn repair() -> Workload {
    use Call::*;
    let calls = vec![
        Signal(7, ITEM),
        Join(7, 2),
        Late(7, 500),
        Leave(8),
        Repair(7),
        Signal(7, ITEM),
        Rejoin(7),
        Signal(7, ITEM),
        Leave(7),
        Reopen,
        Leave(9),
    ];
    Workload { name: "repair", configure: |config| config, grows: false, is_damaged: true, calls }
}

/// Closing and opening, and a schema that grows.
fn reopening() -> Workload {
    use Call::*;
    let calls = vec![
        Join(7, 1),
        Leave(7),
        Reopen,
        Signal(7, ITEM),
        Rejoin(7),
        Reopen,
        Signal(7, ITEM),
        Leave(7),
        Reopen,
        Reopen,
        Leave(8),
    ];
    let configure = |config: Config| config.schema(grown_schema()).extend_schema(true);
    Workload { name: "reopening", configure, grows: true, is_damaged: false, calls }
}

fn grown_schema() -> Schema {
    Schema::builder()
        .signal("view", Duration::from_secs(3600))
        .signal("like", Duration::from_secs(60))
        .cohorts_by("region")
        .build()
        .expect("the schema is valid")
}

/// What is done after a crash, before the next.
pub fn after_a_crash() -> Vec<Call> {
    use Call::*;
    let event = Event { at_ns: 40, action: Action::Leave { user: 0 } };
    vec![
        Signal(7, ITEM),
        Leave(9),
        Signal(9, ITEM),
        Rejoin(8),
        Join(8, 3),
        Apply(1_000, vec![view(30, 8), event]),
        Reopen,
        Leave(8),
    ]
}
