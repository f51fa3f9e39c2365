use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

use super::SchemaError;
use crate::{check_attribute_name, check_attribute_value};

/// A condition on the attributes of a user. It is data, since it is stored with the schema.
///
/// An attribute that a user does not have equals nothing. `and` of nothing holds for everybody, `or` of nothing for
/// nobody.
///
/// ```
/// use tidal_entities::Predicate;
///
/// let predicate = Predicate::and([
///     Predicate::any_of("region", ["Scotland", "Wales"]),
///     Predicate::not(Predicate::eq("plan", "trial")),
/// ]);
/// let scot = |name: &str| (name == "region").then_some("Scotland");
/// let trial = |name: &str| Some(if name == "plan" { "trial" } else { "Scotland" });
/// assert!(predicate.matches(&scot));
/// assert!(!predicate.matches(&trial));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Predicate(Node);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Node {
    Eq { attribute: String, value: String },
    // A set, so that the order in which values are given makes no other predicate.
    AnyOf { attribute: String, values: BTreeSet<String> },
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
}

impl Predicate {
    /// How deep a predicate may be nested: 1 is a single comparison.
    pub const MAX_DEPTH: usize = 32;
    /// How many parts and values a predicate may have.
    pub const MAX_NODES: usize = 1024;

    /// Holds for users whose attribute has this value.
    #[must_use]
    pub fn eq(attribute: impl Into<String>, value: impl Into<String>) -> Self {
        Self(Node::Eq { attribute: attribute.into(), value: value.into() })
    }

    /// Holds for users whose attribute has one of these values.
    #[must_use]
    pub fn any_of<V: Into<String>>(
        attribute: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        Self(Node::AnyOf {
            attribute: attribute.into(),
            values: values.into_iter().map(Into::into).collect(),
        })
    }

    /// Holds where all of these hold.
    #[must_use]
    pub fn and(predicates: impl IntoIterator<Item = Self>) -> Self {
        Self(Node::And(predicates.into_iter().map(|predicate| predicate.0).collect()))
    }

    /// Holds where at least one of these holds.
    #[must_use]
    pub fn or(predicates: impl IntoIterator<Item = Self>) -> Self {
        Self(Node::Or(predicates.into_iter().map(|predicate| predicate.0).collect()))
    }

    /// Holds where this does not.
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "it stands beside and, or: a constructor like them")]
    pub fn not(predicate: Self) -> Self {
        Self(Node::Not(Box::new(predicate.0)))
    }

    /// Whether it holds for a user whose attributes are looked up by name.
    #[must_use]
    pub fn matches<'a>(&self, lookup: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        self.0.matches(lookup)
    }

    /// Refuses what is too deep, too large or names what cannot be named. `cohort` is for the error.
    pub(super) fn check(&self, cohort: &str) -> Result<(), SchemaError> {
        // A list instead of recursion, since the depth is what is in doubt.
        let mut pending = vec![(&self.0, 1)];
        let mut nodes = 0_usize;
        while let Some((node, depth)) = pending.pop() {
            if depth > Self::MAX_DEPTH {
                return Err(SchemaError::TooDeep { cohort: cohort.to_owned(), limit: Self::MAX_DEPTH });
            }
            nodes = nodes.saturating_add(1 + node.values_len());
            if nodes > Self::MAX_NODES {
                return Err(SchemaError::TooLarge { cohort: cohort.to_owned(), limit: Self::MAX_NODES });
            }
            match node {
                Node::Eq { attribute, value } => {
                    check_attribute_name(attribute)?;
                    check_attribute_value(value)?;
                }
                Node::AnyOf { attribute, values } => {
                    check_attribute_name(attribute)?;
                    values.iter().try_for_each(|value| check_attribute_value(value))?;
                }
                Node::And(nodes) | Node::Or(nodes) => {
                    pending.extend(nodes.iter().map(|node| (node, depth + 1)));
                }
                Node::Not(node) => pending.push((node, depth + 1)),
            }
        }
        Ok(())
    }
}

impl Node {
    fn matches<'a>(&self, lookup: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::Eq { attribute, value } => lookup(attribute) == Some(value),
            Self::AnyOf { attribute, values } => {
                lookup(attribute).is_some_and(|value| values.contains(value))
            }
            Self::And(nodes) => nodes.iter().all(|node| node.matches(lookup)),
            Self::Or(nodes) => nodes.iter().any(|node| node.matches(lookup)),
            Self::Not(node) => !node.matches(lookup),
        }
    }

    fn values_len(&self) -> usize {
        match self {
            Self::AnyOf { values, .. } => values.len(),
            Self::Eq { .. } | Self::And(_) | Self::Or(_) | Self::Not(_) => 0,
        }
    }
}

/// In words, for messages: `all of (region is "Wales", not (plan is "trial"))`.
impl fmt::Display for Predicate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eq { attribute, value } => write!(formatter, "{attribute} is {value:?}"),
            Self::AnyOf { attribute, values } => {
                write!(formatter, "{attribute} is one of (")?;
                for (index, value) in values.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(formatter, "{separator}{value:?}")?;
                }
                formatter.write_str(")")
            }
            Self::And(nodes) => list(formatter, "all of", nodes),
            Self::Or(nodes) => list(formatter, "any of", nodes),
            Self::Not(node) => write!(formatter, "not ({node})"),
        }
    }
}

fn list(formatter: &mut fmt::Formatter<'_>, head: &str, nodes: &[Node]) -> fmt::Result {
    write!(formatter, "{head} (")?;
    for (index, node) in nodes.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(formatter, "{separator}{node}")?;
    }
    formatter.write_str(")")
}
