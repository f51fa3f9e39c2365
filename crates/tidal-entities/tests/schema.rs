//! Schemas: what is declared, what is refused, what is stored, and how two are compared.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

mod common;

use std::{collections::BTreeMap, time::Duration};

use common::{chain, single_bit_flips};
use proptest::prelude::*;
use tidal_entities::{
    CodecError, HalfLife, Predicate, Schema, SchemaBuilder, SchemaError, Scope, SignalTypeId, decode_schema,
    encode_schema, schema_key, seal,
};

const DAY: Duration = Duration::from_secs(86_400);

fn attributes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn base() -> SchemaBuilder {
    Schema::builder()
        .signal("view", 7 * DAY)
        .signal("submit", 180 * DAY)
        .cohorts_by("region")
        .cohort("north", Predicate::any_of("region", ["Scotland", "Wales"]))
}

fn stored(schema: &Schema) -> Vec<u8> {
    encode_schema(&schema_key(), schema).unwrap()
}

/// A comparison within so many negations.
fn nested(depth: usize) -> Predicate {
    (1..depth).fold(Predicate::eq("a", "b"), |predicate, _| Predicate::not(predicate))
}

#[test]
fn signal_types_have_ids_in_the_order_of_declaration() {
    let schema = base().build().unwrap();
    let week = HalfLife::try_from(7 * DAY).unwrap();
    assert_eq!(schema.signal_type("view"), Some((SignalTypeId(0), week)));
    assert_eq!(schema.signal_type("submit").unwrap().0, SignalTypeId(1));
    assert_eq!(schema.signal_type("like"), None);
    assert_eq!(schema.signal_type_by_id(SignalTypeId(1)).unwrap().name, "submit");
    assert_eq!(schema.signal_type_by_id(SignalTypeId(2)), None);
    assert!(schema.signal_types().iter().map(|signal_type| signal_type.name.as_str()).eq(["view", "submit"]));
    assert!(schema.cohorts_by().eq(["region"]));
    assert_eq!(schema.cohorts().count(), 1);
}

#[test]
fn an_empty_schema_is_a_schema() {
    let schema = Schema::builder().build().unwrap();
    assert!(schema.signal_types().is_empty());
    assert!(schema.cohorts_of(&attributes(&[("region", "Scotland")])).is_empty());
    assert_eq!(decode_schema(&schema_key(), &stored(&schema)).unwrap(), schema);
}

#[test]
fn cohorts_follow_from_attributes() {
    let schema = base()
        .cohorts_by("plan")
        .cohort("everybody", Predicate::and([]))
        .cohort("nobody", Predicate::or([]))
        .cohort("not in Wales", Predicate::not(Predicate::eq("region", "Wales")))
        .cohort(
            "paying Scots",
            Predicate::and([Predicate::eq("region", "Scotland"), Predicate::eq("plan", "pro")]),
        )
        .build()
        .unwrap();
    for (user, cohorts) in [
        (&[][..], &["everybody", "not in Wales"][..]),
        (&[("region", "Wales")], &["everybody", "north", "region=Wales"]),
        (
            &[("region", "Scotland"), ("plan", "pro"), ("age", "7")],
            &["everybody", "north", "not in Wales", "paying Scots", "plan=pro", "region=Scotland"],
        ),
        (&[("region", "a=b=c")], &["everybody", "not in Wales", "region=a=b=c"]),
        (&[("region", "")], &["everybody", "not in Wales", "region="]),
    ] {
        assert_eq!(schema.cohorts_of(&attributes(user)), cohorts);
    }
}

#[test]
fn cohorts_that_exist_are_resolved() {
    let schema = base().cohort("odd=name", Predicate::or([])).build().unwrap();
    for name in ["north", "region=Scotland", "region=Nowhere", "region=a=b", "region=", "odd=name"] {
        assert_eq!(schema.resolve_cohort(name).unwrap(), Scope::Cohort(name.to_owned()));
    }
    for name in ["", "south", "region", "plan=pro", "odd=other", "=Scotland", "Region=Scotland"] {
        assert!(matches!(schema.resolve_cohort(name), Err(SchemaError::UnknownCohort { .. })), "{name}");
    }
}

#[test]
fn what_breaks_a_rule_is_refused_and_named() {
    let long = "n".repeat(256);
    let many = |len: usize| (0..len).map(|number| number.to_string());
    let refused = [
        Schema::builder().signal("", DAY),
        Schema::builder().signal(&long, DAY),
        Schema::builder().signal("view", DAY).signal("view", DAY),
        Schema::builder().signal("view", Duration::from_millis(999)),
        Schema::builder().signal("view", 36_526 * DAY),
        Schema::builder().signal("view", Duration::MAX),
        Schema::builder().cohorts_by(""),
        Schema::builder().cohorts_by("a=b"),
        Schema::builder().cohorts_by("region").cohorts_by("region"),
        Schema::builder().cohort("", nested(1)),
        Schema::builder().cohort("north", nested(1)).cohort("north", nested(2)),
        Schema::builder().cohort("region=Scotland", nested(1)).cohorts_by("region"),
        Schema::builder().cohort("deep", nested(33)),
        Schema::builder().cohort("large", Predicate::any_of("region", many(1024))),
        Schema::builder()
            .cohort("large", Predicate::or(many(1024).map(|value| Predicate::eq("region", value)))),
        Schema::builder().cohort("x", Predicate::eq("", "value")),
        Schema::builder().cohort("x", Predicate::eq("a=b", "value")),
        Schema::builder().cohort("x", Predicate::eq("region", "v".repeat(1025))),
        Schema::builder().cohort("x", Predicate::any_of("region", ["v".repeat(1025)])),
        many(1025).fold(Schema::builder(), |schema, name| schema.signal(name, DAY)),
        many(1025).fold(Schema::builder(), |schema, name| schema.cohort(name, nested(1))),
        many(65).fold(Schema::builder(), SchemaBuilder::cohorts_by),
    ];
    let messages: Vec<String> =
        refused.into_iter().map(|schema| chain(&schema.build().unwrap_err())).collect();
    let unknown = chain(&base().build().unwrap().resolve_cohort("south").unwrap_err());
    insta::assert_snapshot!("schema_errors", messages.join("\n") + "\n" + &unknown);
}

#[test]
fn limits_themselves_are_allowed_and_stored() {
    let many = |len: usize| (0..len).map(|number| number.to_string());
    let mut builder = Schema::builder()
        .cohort("n".repeat(255), nested(32))
        .cohort("large", Predicate::any_of("region", many(1023)))
        .cohort("wide", Predicate::or(many(1023).map(|value| Predicate::eq("region", value))))
        // As deep as JSON can make it: an object and a list for each level.
        .cohort("deep", (1..32).fold(nested(1), |predicate, _| Predicate::and([predicate])))
        .cohort("value", Predicate::eq("region", "v".repeat(1024)));
    for name in many(1024) {
        builder = builder.signal(name, Duration::from_secs(1));
    }
    for name in many(64) {
        builder = builder.cohorts_by(name);
    }
    let schema = builder.build().unwrap();
    assert_eq!(decode_schema(&schema_key(), &stored(&schema)).unwrap(), schema);
    assert_eq!(schema.signal_type("1023").unwrap().0, SignalTypeId(1023));
}

#[test]
fn stored_schemas_that_are_not_as_written_are_refused() {
    let key = schema_key();
    let row = stored(&base().build().unwrap());
    for flipped in single_bit_flips(&row) {
        assert!(matches!(decode_schema(&key, &flipped), Err(CodecError::Checksum { .. })));
    }
    for (json, is_json) in [
        ("", true),
        ("{}", true),
        (r#"{"signal_types":[],"cohorts_by":[],"cohorts":[],"more":1}"#, true),
        (r#"{"signal_types":[],"cohorts_by":[],"cohorts":[]} x"#, true),
        (r#"{"signal_types":[{"name":"view","half_life_ns":-1}],"cohorts_by":[],"cohorts":[]}"#, true),
        (r#"{"signal_types":[{"name":"view","half_life_ns":1.5}],"cohorts_by":[],"cohorts":[]}"#, true),
        (r#"{"signal_types":[],"cohorts_by":[],"cohorts":[{"name":"x","predicate":{"xor":[]}}]}"#, true),
        (r#"{"signal_types":[{"name":"view","half_life_ns":5}],"cohorts_by":[],"cohorts":[]}"#, false),
        (r#"{"signal_types":[],"cohorts_by":["a","a"],"cohorts":[]}"#, false),
    ] {
        let error = decode_schema(&key, &seal(&key, json.as_bytes())).unwrap_err();
        assert_eq!(matches!(error, CodecError::Json(_)), is_json, "{json}: {error}");
        assert_eq!(matches!(error, CodecError::Schema(_)), !is_json, "{json}: {error}");
    }
    // Nesting that would exhaust the stack ends in an error as well.
    let deep = format!(
        r#"{{"signal_types":[],"cohorts_by":[],"cohorts":[{{"name":"x","predicate":{}"#,
        r#"{"not":"#.repeat(100_000)
    );
    assert!(matches!(decode_schema(&key, &seal(&key, deep.as_bytes())), Err(CodecError::Json(_))));
}

#[test]
fn differences_are_named() {
    let stored = base().build().unwrap();
    let given = [
        base(),
        Schema::builder()
            .cohort("north", Predicate::any_of("region", ["Wales", "Scotland", "Wales"]))
            .cohorts_by("region")
            .signal("submit", 180 * DAY)
            .signal("view", 7 * DAY),
        Schema::builder(),
        Schema::builder().signal("view", 8 * DAY),
        Schema::builder().signal("view", 7 * DAY),
        Schema::builder().signal("view", 7 * DAY).signal("submit", 180 * DAY),
        Schema::builder().signal("view", 7 * DAY).signal("submit", 180 * DAY).cohorts_by("region"),
        Schema::builder().signal("view", 7 * DAY).signal("submit", 180 * DAY).cohorts_by("region").cohort(
            "north",
            Predicate::not(Predicate::or([Predicate::eq("region", "Wales"), Predicate::and([])])),
        ),
        base().signal("like", DAY),
        base().windowed("like", DAY),
        Schema::builder().windowed("view", 7 * DAY).signal("submit", 180 * DAY),
        base().cohorts_by("plan"),
        base().cohort("south", nested(1)),
    ];
    let differences: Vec<String> = given
        .into_iter()
        .map(|given| {
            Schema::difference(&stored, &given.build().unwrap()).unwrap_or_else(|| "none".to_owned())
        })
        .collect();
    insta::assert_snapshot!("schema_differences", differences.join("\n"));
}

#[test]
fn additions_keep_the_ids_that_are_stored() {
    let stored = base().build().unwrap();
    let given = Schema::builder()
        .signal("like", DAY)
        .signal("submit", 180 * DAY)
        .signal("share", 2 * DAY)
        .signal("view", 7 * DAY)
        .cohorts_by("plan")
        .cohorts_by("region")
        .cohort("north", Predicate::any_of("region", ["Wales", "Scotland"]))
        .cohort("south", nested(1))
        .build()
        .unwrap();
    let extended = Schema::extend(&stored, &given).unwrap();
    let names: Vec<&str> =
        extended.signal_types().iter().map(|signal_type| signal_type.name.as_str()).collect();
    assert_eq!(names, ["view", "submit", "like", "share"]);
    assert!(extended.cohorts_by().eq(["plan", "region"]));
    assert!(extended.cohorts().map(|(name, _)| name).eq(["north", "south"]));
    assert_eq!(Schema::difference(&extended, &given), None);
    assert_eq!(Schema::extend(&extended, &given).unwrap(), extended);
    assert_eq!(Schema::extend(&stored, &stored).unwrap(), stored);
}

#[test]
fn extending_refuses_changes_losses_and_what_breaks_a_rule() {
    let stored = base().build().unwrap();
    for given in [
        Schema::builder(),
        Schema::builder().signal("view", 8 * DAY).signal("submit", 180 * DAY),
        Schema::builder().signal("view", 7 * DAY).signal("submit", 180 * DAY).cohorts_by("region"),
        Schema::builder()
            .signal("view", 7 * DAY)
            .signal("submit", 180 * DAY)
            .cohorts_by("region")
            .cohort("north", nested(1)),
    ] {
        let given = given.build().unwrap();
        let Err(SchemaError::Changed { difference }) = Schema::extend(&stored, &given) else {
            panic!("{given:?}")
        };
        assert_eq!(Schema::difference(&stored, &given), Some(difference));
    }
}

fn predicates() -> impl Strategy<Value = Predicate> {
    let leaf = prop_oneof![
        ("[a-c]", "[x-z]").prop_map(|(name, value)| Predicate::eq(name, value)),
        ("[a-c]", prop::collection::vec("[x-z]", 0..3))
            .prop_map(|(name, values)| Predicate::any_of(name, values)),
    ];
    leaf.prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Predicate::and),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Predicate::or),
            inner.prop_map(Predicate::not),
        ]
    })
}

#[test]
fn windows_are_decided_once_and_kept() {
    let without = Schema::builder().signal("view", DAY);
    let with = Schema::builder().windowed("view", DAY);
    for (stored, given, said) in [
        (&without, &with, "no windows in the database and windows"),
        (&with, &without, "windows in the database and no windows"),
    ] {
        let (stored, given) = (stored.clone().build().unwrap(), given.clone().build().unwrap());
        let error = Schema::extend(&stored, &given).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let stored_schema = without.clone().build().unwrap();
    let more = without.windowed("like", DAY).build().unwrap();
    let extended = Schema::extend(&stored_schema, &more).unwrap();
    assert_eq!(extended, more);
    assert_eq!(decode_schema(&schema_key(), &stored(&extended)).unwrap(), extended);
    // Said where it is so, and nowhere else.
    let of = |windows: &str| {
        let json = format!(
            r#"{{"signal_types":[{{"name":"view","half_life_ns":1000000000{windows}}}],"cohorts_by":[],"cohorts":[]}}"#
        );
        decode_schema(&schema_key(), &seal(&schema_key(), json.as_bytes())).is_ok()
    };
    let accepted = ["", r#","windows":true"#, r#","windows":false"#, r#","windows":1"#].map(of);
    assert_eq!(accepted, [true, true, false, false]);
}

proptest! {
    #[test]
    fn schemas_come_back(
        names in prop::collection::btree_set("[^=]{1,20}", 0..5),
        half_life_ns in HalfLife::MIN.ns()..=HalfLife::MAX.ns(),
        predicate in predicates(),
    ) {
        let mut builder = Schema::builder();
        for name in &names {
            builder = builder
                .signal(name, Duration::from_nanos(half_life_ns))
                .cohorts_by(name)
                .cohort(name, predicate.clone());
        }
        let schema = builder.build().unwrap();
        let decoded = decode_schema(&schema_key(), &stored(&schema)).unwrap();
        prop_assert_eq!(Schema::difference(&schema, &decoded), None);
        prop_assert_eq!(stored(&decoded), stored(&schema));
        prop_assert_eq!(decoded, schema);
    }

    #[test]
    fn predicates_follow_the_laws_of_logic(left in predicates(), right in predicates(), values in any::<[Option<u8>; 3]>()) {
        let lookup = |name: &str| {
            let index = usize::from(name.as_bytes()[0] - b'a');
            values[index].map(|value| ["x", "y", "z"][usize::from(value % 3)])
        };
        let (l, r) = (left.matches(&lookup), right.matches(&lookup));
        prop_assert_eq!(Predicate::and([left.clone(), right.clone()]).matches(&lookup), l && r);
        prop_assert_eq!(Predicate::or([left.clone(), right]).matches(&lookup), l || r);
        prop_assert_eq!(Predicate::not(left).matches(&lookup), !l);
    }
}
