//! What a child does, one line each, said before it is done and again once it returned.

use std::fmt;
use std::str::FromStr;

/// One signal. The serial number is its weight in 1e-9, so that each can be told from every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub user: u64,
    pub item: u64,
    pub serial: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Signal(Sent),
    Leave(u64),
    Rejoin(u64),
    Join(u64, u64),
    Quit(u64, u64),
    Region(u64, u64),
    /// Signals of the thread's source, the first at this position.
    Apply(u64, Vec<Sent>),
}

impl Op {
    /// Whether it is on disk when it returned, however durable signals are.
    pub fn is_durable(&self) -> bool {
        !matches!(self, Self::Signal(_))
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(Sent { user, item, serial }) => write!(f, "signal {user} {item} {serial}"),
            Self::Leave(user) => write!(f, "leave {user}"),
            Self::Rejoin(user) => write!(f, "rejoin {user}"),
            Self::Join(user, community) => write!(f, "join {user} {community}"),
            Self::Quit(user, community) => write!(f, "quit {user} {community}"),
            Self::Region(user, region) => write!(f, "region {user} {region}"),
            Self::Apply(position, sent) => {
                write!(f, "apply {position}")?;
                sent.iter().try_for_each(|Sent { user, item, serial }| write!(f, " {user} {item} {serial}"))
            }
        }
    }
}

impl FromStr for Op {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (name, rest) = line.split_once(' ').ok_or_else(|| format!("{line:?} is no operation"))?;
        let numbers: Result<Vec<u64>, _> = rest.split(' ').map(str::parse).collect();
        let numbers = numbers.map_err(|error| format!("{line:?}: {error}"))?;
        let sent = |numbers: &[u64]| Sent {
            user: numbers[0],
            item: numbers[1],
            serial: i64::try_from(numbers[2]).expect("serials are small"),
        };
        Ok(match (name, numbers.as_slice()) {
            ("signal", [_, _, _]) => Self::Signal(sent(&numbers)),
            ("leave", [user]) => Self::Leave(*user),
            ("rejoin", [user]) => Self::Rejoin(*user),
            ("join", [user, community]) => Self::Join(*user, *community),
            ("quit", [user, community]) => Self::Quit(*user, *community),
            ("region", [user, region]) => Self::Region(*user, *region),
            ("apply", [position, rest @ ..]) if rest.len() % 3 == 0 => {
                Self::Apply(*position, rest.chunks_exact(3).map(sent).collect())
            }
            _ => return Err(format!("{line:?} is no operation")),
        })
    }
}
