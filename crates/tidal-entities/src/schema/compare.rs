use super::{Schema, SchemaBuilder, SchemaError};

pub(super) fn difference(stored: &Schema, given: &Schema) -> Option<String> {
    loss_or_change(stored, given).or_else(|| addition(stored, given))
}

pub(super) fn extend(stored: &Schema, given: &Schema) -> Result<Schema, SchemaError> {
    if let Some(difference) = loss_or_change(stored, given) {
        return Err(SchemaError::Changed { difference });
    }
    // Built anew, so that the limits hold for the sum of both as well.
    let mut builder = SchemaBuilder::default();
    let added = given.signal_types.iter().filter(|given| stored.signal_type(&given.name).is_none());
    for signal_type in stored.signal_types.iter().chain(added) {
        builder = builder.declare(&signal_type.name, signal_type.half_life.into(), signal_type.is_windowed);
    }
    for attribute in &given.cohorts_by {
        builder = builder.cohorts_by(attribute);
    }
    for (name, predicate) in &given.cohorts {
        builder = builder.cohort(name, predicate.clone());
    }
    builder.build()
}

fn loss_or_change(stored: &Schema, given: &Schema) -> Option<String> {
    let signal_type =
        stored.signal_types.iter().find_map(|stored| match given.signal_type_by_name(&stored.name) {
            None => Some(only_in_database("signal type", &stored.name)),
            Some(given) if given.half_life != stored.half_life => Some(format!(
                "signal type {:?} has a half-life of {} in the database and of {} in the given schema",
                stored.name, stored.half_life, given.half_life,
            )),
            Some(given) if given.is_windowed != stored.is_windowed => Some(format!(
                "signal type {:?} keeps {} in the database and {} in the given schema",
                stored.name,
                windows(stored.is_windowed),
                windows(given.is_windowed),
            )),
            Some(_) => None,
        });
    let cohorts_by = || {
        stored.cohorts_by.difference(&given.cohorts_by).next().map(|name| only_in_database(GROUPING, name))
    };
    let cohort = || {
        stored.cohorts.iter().find_map(|(name, predicate)| match given.cohorts.get(name) {
            None => Some(only_in_database("cohort", name)),
            Some(other) if other != predicate => Some(format!(
                "cohort {name:?} is all for whom {predicate} in the database, and all for whom {other} in the given schema",
            )),
            Some(_) => None,
        })
    };
    signal_type.or_else(cohorts_by).or_else(cohort)
}

fn addition(stored: &Schema, given: &Schema) -> Option<String> {
    let signal_type = given
        .signal_types
        .iter()
        .find(|given| stored.signal_type(&given.name).is_none())
        .map(|given| only_given("signal type", &given.name));
    let cohorts_by =
        || given.cohorts_by.difference(&stored.cohorts_by).next().map(|name| only_given(GROUPING, name));
    let cohort = || {
        given
            .cohorts
            .keys()
            .find(|name| !stored.cohorts.contains_key(*name))
            .map(|name| only_given("cohort", name))
    };
    signal_type.or_else(cohorts_by).or_else(cohort)
}

const GROUPING: &str = "grouping by attribute";

fn windows(is_windowed: bool) -> &'static str {
    if is_windowed { "windows" } else { "no windows" }
}

fn only_in_database(what: &str, name: &str) -> String {
    format!("{what} {name:?} is in the database, but not in the given schema")
}

fn only_given(what: &str, name: &str) -> String {
    format!("{what} {name:?} is in the given schema, but not in the database")
}
