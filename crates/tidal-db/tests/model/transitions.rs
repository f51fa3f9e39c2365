//! The steps of a script, and how scripts are made up.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tidal_db::{Action, Event, Weight};

use crate::world::{
    BAD_WEIGHTS, COMMUNITIES, ITEMS, PLANS, REGIONS, SIGNAL_TYPES, SOURCES, TIMES_NS, USERS, WEIGHTS,
};

#[derive(Clone, Debug)]
pub enum Step {
    Clock(u64),
    Join {
        user: u64,
        community: u64,
    },
    Quit {
        user: u64,
        community: u64,
    },
    Attribute {
        user: u64,
        name: &'static str,
        value: &'static str,
    },
    Signal {
        user: u64,
        item: u64,
        signal_type: &'static str,
        weight: f64,
    },
    SignalAt {
        user: u64,
        item: u64,
        signal_type: &'static str,
        weight: f64,
        at_ns: u64,
    },
    Leave {
        user: u64,
    },
    Rejoin {
        user: u64,
    },
    Deliver {
        source: &'static str,
        first_position: u64,
        events: Vec<Event>,
    },
    /// What was applied, from the event of this number on, and something new.
    Redeliver {
        source: &'static str,
        from: usize,
        new: Vec<Event>,
    },
    Flush,
    Close,
    Drop,
    Crash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Immediate,
    /// Nothing is flushed but by durable calls.
    BatchedForEver,
    /// The flush thread is busy all the time.
    BatchedByThree,
}

#[derive(Clone)]
pub struct Script {
    pub mode: Mode,
    pub steps: Vec<Step>,
}

/// One step a line: that is what a person has to read.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.mode)?;
        for (number, step) in self.steps.iter().enumerate() {
            write!(f, "\n  {number:>2} {step:?}")?;
        }
        Ok(())
    }
}

fn user() -> impl Strategy<Value = u64> {
    // Mostly the same one, so that his steps meet each other.
    prop_oneof![4 => Just(USERS[0]), 1 => select(&USERS[..])]
}

fn item() -> impl Strategy<Value = u64> {
    select(&ITEMS[..])
}

fn community() -> impl Strategy<Value = u64> {
    select(&COMMUNITIES[..])
}

fn time_ns() -> impl Strategy<Value = u64> {
    prop_oneof![40 => select(&TIMES_NS[..]), 1 => Just(u64::MAX)]
}

fn signal_type() -> impl Strategy<Value = &'static str> {
    prop_oneof![40 => select(&SIGNAL_TYPES[..]).prop_map(|(name, _)| name), 1 => Just("undeclared")]
}

fn weight() -> impl Strategy<Value = f64> {
    let good = select(&WEIGHTS[..]).prop_map(|(weight, _)| weight);
    prop_oneof![40 => good, 1 => select(&BAD_WEIGHTS[..])]
}

fn attribute() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop_oneof![
        20 => select(&REGIONS[..]).prop_map(|value| ("region", value)),
        20 => select(&PLANS[..]).prop_map(|value| ("plan", value)),
        1 => Just(("a=b", "c")),
        1 => Just(("", "c")),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let weight = || select(&WEIGHTS[..]).prop_map(|(_, nanos)| Weight::from_nanos(nanos).expect("in range"));
    prop_oneof![
        1 => (user(), attribute()).prop_map(|(user, (name, value))| Action::SetAttribute {
            user,
            name: name.to_owned(),
            value: value.to_owned()
        }),
        1 => (user(), community()).prop_map(|(user, community)| Action::Join { user, community }),
        1 => (user(), community()).prop_map(|(user, community)| Action::Quit { user, community }),
        2 => user().prop_map(|user| Action::Leave { user }),
        2 => user().prop_map(|user| Action::Rejoin { user }),
        4 => (user(), item(), signal_type(), weight()).prop_map(|(user, item, signal_type, weight)| {
            Action::Signal { user, item, signal_type: signal_type.to_owned(), weight }
        }),
    ]
}

fn events(len: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<Event>> {
    vec((time_ns(), action()).prop_map(|(at_ns, action)| Event { at_ns, action }), len)
}

fn step() -> impl Strategy<Value = Step> {
    let source = || select(&SOURCES[..]);
    prop_oneof![
        5 => time_ns().prop_map(Step::Clock),
        3 => (user(), community()).prop_map(|(user, community)| Step::Join { user, community }),
        1 => (user(), community()).prop_map(|(user, community)| Step::Quit { user, community }),
        3 => (user(), attribute()).prop_map(|(user, (name, value))| Step::Attribute { user, name, value }),
        5 => (user(), item(), signal_type(), weight())
            .prop_map(|(user, item, signal_type, weight)| Step::Signal { user, item, signal_type, weight }),
        7 => (user(), item(), signal_type(), weight(), time_ns()).prop_map(
            |(user, item, signal_type, weight, at_ns)| Step::SignalAt { user, item, signal_type, weight, at_ns }
        ),
        4 => user().prop_map(|user| Step::Leave { user }),
        4 => user().prop_map(|user| Step::Rejoin { user }),
        2 => (source(), 1..8_u64, events(0..7))
            .prop_map(|(source, first_position, events)| Step::Deliver { source, first_position, events }),
        2 => (source(), 0..4_usize, events(0..4))
            .prop_map(|(source, from, new)| Step::Redeliver { source, from, new }),
        1 => Just(Step::Flush),
        1 => Just(Step::Close),
        1 => Just(Step::Drop),
        2 => Just(Step::Crash),
    ]
}

pub fn script(modes: &'static [Mode]) -> impl Strategy<Value = Script> {
    (select(modes), vec(step(), 1..50)).prop_map(|(mode, steps)| Script { mode, steps })
}
