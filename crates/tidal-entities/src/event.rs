use crate::{LimitError, Weight, check_attribute_name, check_attribute_value, limits::check_name};

const ACTION_SIGNAL: u8 = 1;
const ACTION_LEAVE: u8 = 2;
const ACTION_REJOIN: u8 = 3;
const ACTION_JOIN: u8 = 4;
const ACTION_QUIT: u8 = 5;
const ACTION_SET_ATTRIBUTE: u8 = 6;

/// Something that a user did, as a source delivers it.
///
/// ```
/// use tidal_entities::{Action, Event, Weight};
///
/// let event = Event {
///     at_ns: 1_380_541_057_835_384_575,
///     action: Action::Signal { user: 7, item: 1752, signal_type: "submit".into(), weight: "78.5".parse()? },
/// };
/// event.action.check_limits()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// When the act took place, in ns since the Unix epoch: the event time of a signal, the time of a transition.
    /// A time in ms reads as a day in 1970, which is in no away period, so nothing is withheld as late.
    pub at_ns: u64,
    /// What was done.
    pub action: Action,
}

/// What a user did.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// The user has this attribute from now on.
    SetAttribute {
        /// Whose attribute it is.
        user: u64,
        /// Its name, 1 to 255 bytes without `=`.
        name: String,
        /// Its value, at most 1,024 bytes.
        value: String,
    },
    /// The user joined a community.
    Join {
        /// Who joined.
        user: u64,
        /// The community.
        community: u64,
    },
    /// The user quit a community.
    Quit {
        /// Who quit.
        user: u64,
        /// The community.
        community: u64,
    },
    /// The user acted on an item.
    Signal {
        /// Who acted.
        user: u64,
        /// On what.
        item: u64,
        /// How: a signal type of the schema.
        signal_type: String,
        /// How much it counts.
        weight: Weight,
    },
    /// The user left the community layer. Shuts the gate when it is delivered, whatever its time.
    Leave {
        /// Who left.
        user: u64,
    },
    /// The user came back into the community layer.
    ///
    /// Opens the gate when it is delivered, whatever its time: the order of transitions is the order of delivery. An old
    /// rejoin that a second source delivers after a newer leave undoes that leave.
    Rejoin {
        /// Who came back.
        user: u64,
    },
}

impl Action {
    /// Who acted.
    #[must_use]
    pub const fn user(&self) -> u64 {
        match self {
            Self::SetAttribute { user, .. }
            | Self::Join { user, .. }
            | Self::Quit { user, .. }
            | Self::Signal { user, .. }
            | Self::Leave { user }
            | Self::Rejoin { user } => *user,
        }
    }

    /// Checks that names and values are within their limits.
    ///
    /// # Errors
    ///
    /// [`LimitError`] says which text breaks which rule.
    pub fn check_limits(&self) -> Result<(), LimitError> {
        match self {
            Self::SetAttribute { name, value, .. } => {
                check_attribute_name(name)?;
                check_attribute_value(value)
            }
            Self::Signal { signal_type, .. } => check_name("signal type", signal_type),
            Self::Join { .. } | Self::Quit { .. } | Self::Leave { .. } | Self::Rejoin { .. } => Ok(()),
        }
    }
}

impl Event {
    /// Appends the bytes over which the digest of a source is taken.
    ///
    /// Every event has its own bytes, and no two events in a row can be taken for two others: each begins with its
    /// time (8 bytes) and kind (1 byte), ids and weights have 8 bytes, and each text is preceded by its length in 8
    /// bytes, all little-endian. These bytes never change from version to version, since a digest outlives them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.at_ns.to_le_bytes());
        match &self.action {
            Action::Signal { user, item, signal_type, weight } => {
                out.push(ACTION_SIGNAL);
                encode_numbers([*user, *item], out);
                encode_text(signal_type, out);
                out.extend_from_slice(&weight.nanos().to_le_bytes());
            }
            Action::Leave { user } => {
                out.push(ACTION_LEAVE);
                encode_numbers([*user], out);
            }
            Action::Rejoin { user } => {
                out.push(ACTION_REJOIN);
                encode_numbers([*user], out);
            }
            Action::Join { user, community } => {
                out.push(ACTION_JOIN);
                encode_numbers([*user, *community], out);
            }
            Action::Quit { user, community } => {
                out.push(ACTION_QUIT);
                encode_numbers([*user, *community], out);
            }
            Action::SetAttribute { user, name, value } => {
                out.push(ACTION_SET_ATTRIBUTE);
                encode_numbers([*user], out);
                encode_text(name, out);
                encode_text(value, out);
            }
        }
    }
}

fn encode_numbers<const N: usize>(numbers: [u64; N], out: &mut Vec<u8>) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    // Eight bytes hold any length, so that this cannot fail; the digest is not stored text by text.
    encode_numbers([text.len() as u64], out);
    out.extend_from_slice(text.as_bytes());
}
