//! The small world of the model: few names, so that everything collides with everything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tidal_db::{Predicate, Schema, Scope};

pub const SECOND_NS: u64 = 1_000_000_000;
const DECADES_NS: u64 = 30 * 365 * 86_400 * SECOND_NS;

/// Ids at both ends are ids like any other.
pub const USERS: [u64; 3] = [7, 0, u64::MAX];
pub const ITEMS: [u64; 2] = [1752, u64::MAX];
pub const COMMUNITIES: [u64; 2] = [4, 0];
pub const SOURCES: [&str; 2] = ["queue", "file"];

/// Asked about, but never acting.
pub const STRANGER: u64 = 999;
pub const NO_COMMUNITY: u64 = 98;

/// Times of the clock and of events; a few are one ns apart, some lie decades later.
pub const TIMES_NS: [u64; 12] = [
    0,
    1,
    2,
    SECOND_NS,
    SECOND_NS + 1,
    SECOND_NS + 250_000_000,
    SECOND_NS * 2,
    SECOND_NS * 2 + 700_000_001,
    SECOND_NS * 3,
    DECADES_NS,
    DECADES_NS + 1,
    DECADES_NS + 300_000_000,
];
pub const FIRST_NOW_NS: u64 = SECOND_NS * 2;
pub const ALLOWED_SKEW_NS: u64 = SECOND_NS;

/// Signal types in order of declaration, with their half-lives in ns: the shortest, the longest, and one that the
/// schema has only when it has grown.
pub const SIGNAL_TYPES: [(&str, u64); 3] =
    [("view", SECOND_NS), ("like", 36_525 * 86_400 * SECOND_NS), ("share", 60 * SECOND_NS)];

/// Those that are declared.
pub fn signal_types(is_grown: bool) -> &'static [(&'static str, u64)] {
    if is_grown { &SIGNAL_TYPES } else { &SIGNAL_TYPES[..2] }
}

/// The one of them that keeps windows.
pub const WINDOWED: &str = "like";

pub const REGIONS: [&str; 3] = ["Scotland", "Wales", ""];
pub const PLANS: [&str; 3] = ["pro", "a=b", ""];

/// Weights as given, with what they are exactly, in 1e-9.
pub const WEIGHTS: [(f64, i64); 8] = [
    (1.0, 1_000_000_000),
    (0.1, 100_000_000),
    (-2.5, -2_500_000_000),
    (0.0, 0),
    (903.5, 903_500_000_000),
    (1e-9, 1),
    (1e9, 1_000_000_000_000_000_000),
    (-1e9, -1_000_000_000_000_000_000),
];
/// Weights that are refused.
pub const BAD_WEIGHTS: [f64; 3] = [f64::NAN, f64::NEG_INFINITY, 1_000_000_000.5];

/// When a signal is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Immediate,
    /// Nothing is flushed but by durable calls.
    BatchedForEver,
    /// The flush thread is busy all the time.
    BatchedByThree,
}

pub fn schema() -> Schema {
    schema_with(signal_types(false), &[])
}

/// The same with one more signal type and one more cohort.
pub fn grown_schema() -> Schema {
    schema_with(signal_types(true), &["welsh"])
}

/// What is in force.
pub fn schema_of(is_grown: bool) -> Schema {
    if is_grown { grown_schema() } else { schema() }
}

/// The same with a half-life that is not the stored one.
pub fn other_schema() -> Schema {
    let [(first, half_life_ns), second, _] = SIGNAL_TYPES;
    schema_with(&[(first, half_life_ns * 2), second], &[])
}

fn schema_with(signal_types: &[(&str, u64)], welsh: &[&str]) -> Schema {
    let celts = || Predicate::any_of("region", ["Scotland", "Wales"]);
    let pro = || Predicate::eq("plan", "pro");
    let mut builder = Schema::builder();
    for (name, half_life_ns) in signal_types.iter().copied() {
        let half_life = Duration::from_nanos(half_life_ns);
        builder = if name == WINDOWED {
            builder.windowed(name, half_life)
        } else {
            builder.signal(name, half_life)
        };
    }
    for name in welsh.iter().copied() {
        builder = builder.cohort(name, Predicate::eq("region", "Wales"));
    }
    builder
        .cohorts_by("region")
        .cohort("celts", celts())
        .cohort("pro", pro())
        .cohort("pro celts", Predicate::and([celts(), pro()]))
        .cohort("welsh or pro", Predicate::or([Predicate::eq("region", "Wales"), pro()]))
        .cohort("not pro", Predicate::not(pro()))
        .build()
        .expect("the schema is valid")
}

/// The cohorts of [`schema_of`], said once more in plain code.
pub fn cohorts_of(attributes: &BTreeMap<String, String>, is_grown: bool) -> BTreeSet<String> {
    let region = attributes.get("region").map(String::as_str);
    let pro = attributes.get("plan").is_some_and(|plan| plan == "pro");
    let celt = matches!(region, Some("Scotland" | "Wales"));
    let mut cohorts = BTreeSet::new();
    if let Some(region) = region {
        cohorts.insert(format!("region={region}"));
    }
    let declared = [
        ("celts", celt),
        ("pro", pro),
        ("pro celts", celt && pro),
        ("welsh or pro", region == Some("Wales") || pro),
        ("not pro", !pro),
        ("welsh", is_grown && region == Some("Wales")),
    ];
    cohorts.extend(declared.iter().filter(|(_, holds)| *holds).map(|(name, _)| (*name).to_owned()));
    cohorts
}

/// Every scope there can be, and two that nobody is in.
pub fn scopes(is_grown: bool) -> Vec<Scope> {
    let cohorts = ["celts", "pro", "pro celts", "welsh or pro", "not pro", "region=Nowhere"];
    let grown = is_grown.then(|| Scope::Cohort("welsh".to_owned()));
    let regions = REGIONS.iter().map(|region| Scope::Cohort(format!("region={region}")));
    std::iter::once(Scope::Global)
        .chain(cohorts.iter().map(|name| Scope::Cohort((*name).to_owned())))
        .chain(grown)
        .chain(regions)
        .chain(COMMUNITIES.into_iter().chain([NO_COMMUNITY]).map(Scope::Community))
        .collect()
}
