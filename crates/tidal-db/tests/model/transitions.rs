//! The steps of a sequence, and how they are made up.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tidal_db::{Action, Event, Weight};

use super::calls::Call;
use super::disk::ALL;
use super::oracle::Damage;
use super::views::View;
use super::world::{
    BAD_WEIGHTS, COMMUNITIES, ITEMS, PLANS, REGIONS, SOURCES, TIMES_NS, USERS, WEIGHTS, signal_types,
};

#[derive(Clone, Debug)]
pub enum Step {
    Clock(u64),
    Call(Call),
    /// Something that must be refused and change nothing.
    Refused(Bad),
    Verify,
    Close,
    /// Close, and open in ways that must be refused before the right one.
    RefusedOpen,
    /// Close, and open with a schema that has one more signal type and one more cohort.
    Grow,
    /// Close, damage what repeats the log, and open with it made anew.
    Rebuild {
        damaged: Option<View>,
    },
    Drop,
    /// The process or the machine dies: of the unsynced writes those are kept that the bits say.
    Crash {
        kept: u64,
    },
    /// Operation `nth` of the disk fails, counted from the beginning of the call, and then the process dies.
    FailingDisk {
        nth: u64,
        for_good: bool,
        call: Call,
        kept: u64,
    },
    /// The stored leave record of a user becomes another while the database is closed.
    Damage {
        user: u64,
        damage: Damage,
    },
}

/// What no database takes.
#[derive(Clone, Copy, Debug)]
pub enum Bad {
    EmptySource,
    LongSource,
    LastPosition,
    EmptyAttribute,
    LongValue,
    Cohort,
    SignalType,
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
    let declared = select(signal_types(false)).prop_map(|(name, _)| name);
    prop_oneof![40 => declared, 2 => Just("share"), 1 => Just("undeclared")]
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

fn call() -> impl Strategy<Value = Call> {
    let source = || select(&SOURCES[..]);
    let nanos = || select(&WEIGHTS[..]).prop_map(|(_, nanos)| nanos);
    prop_oneof![
        6 => (user(), community()).prop_map(|(user, community)| Call::Join { user, community }),
        2 => (user(), community()).prop_map(|(user, community)| Call::Quit { user, community }),
        6 => (user(), attribute()).prop_map(|(user, (name, value))| Call::Attribute { user, name, value }),
        8 => (user(), item(), signal_type(), weight())
            .prop_map(|(user, item, signal_type, weight)| Call::Signal { user, item, signal_type, weight }),
        12 => (user(), item(), signal_type(), weight(), time_ns()).prop_map(
            |(user, item, signal_type, weight, at_ns)| Call::SignalAt { user, item, signal_type, weight, at_ns }
        ),
        3 => (user(), item(), signal_type(), nanos(), proptest::option::of(time_ns())).prop_map(
            |(user, item, signal_type, weight_nanos, at_ns)| {
                Call::SignalExact { user, item, signal_type, weight_nanos, at_ns }
            }
        ),
        8 => user().prop_map(|user| Call::Leave { user }),
        8 => user().prop_map(|user| Call::Rejoin { user }),
        2 => user().prop_map(|user| Call::Repair { user }),
        4 => (source(), 1..8_u64, events(0..7))
            .prop_map(|(source, first_position, events)| Call::Deliver { source, first_position, events }),
        4 => (source(), 0..4_usize, events(0..4))
            .prop_map(|(source, from, new)| Call::Redeliver { source, from, new }),
        2 => Just(Call::Flush),
    ]
}

fn bad() -> impl Strategy<Value = Bad> {
    select(
        &[
            Bad::EmptySource,
            Bad::LongSource,
            Bad::LastPosition,
            Bad::EmptyAttribute,
            Bad::LongValue,
            Bad::Cohort,
            Bad::SignalType,
        ][..],
    )
}

fn damage() -> impl Strategy<Value = Damage> {
    select(&[Damage::CutShort, Damage::BadStatus, Damage::Flipped, Damage::Missing][..])
}

fn view() -> impl Strategy<Value = View> {
    select(&[View::Aggregate, View::Checkpoint, View::RunIndex, View::RunRow][..])
}

/// A killed process leaves all that it wrote; a power loss any part of it.
fn kept() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(ALL), 1 => Just(0), 2 => any::<u64>()]
}

pub fn step() -> impl Strategy<Value = Step> {
    // A commit is some twenty operations; a few more reach what runs in the background.
    let failing = (0..40_u64, any::<bool>(), call(), kept())
        .prop_map(|(nth, for_good, call, kept)| Step::FailingDisk { nth, for_good, call, kept });
    prop_oneof![
        8 => time_ns().prop_map(Step::Clock),
        65 => call().prop_map(Step::Call),
        2 => bad().prop_map(Step::Refused),
        1 => Just(Step::Verify),
        2 => Just(Step::Close),
        1 => Just(Step::RefusedOpen),
        1 => Just(Step::Grow),
        2 => proptest::option::weighted(0.8, view()).prop_map(|damaged| Step::Rebuild { damaged }),
        1 => Just(Step::Drop),
        4 => kept().prop_map(|kept| Step::Crash { kept }),
        4 => failing,
        2 => (user(), damage()).prop_map(|(user, damage)| Step::Damage { user, damage }),
    ]
}
