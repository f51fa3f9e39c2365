//! What attributes say about an item: whether it exists, whether it is shown, and what a caller must know.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Path, Token};

use super::print;

/// What a caller must know, beside what the declaration says. Their texts are documentation.
const TOLD: [&str; 4] = ["non_exhaustive", "must_use", "deprecated", "repr"];

/// Under which conditions an item exists, or `None` if only tests have it.
pub(super) fn conditions(attributes: &[Attribute]) -> Option<Vec<String>> {
    let mut conditions = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")) {
        match attribute.parse_args().ok().as_ref().and_then(outside_tests) {
            Some(false) => return None,
            Some(true) => {}
            None => conditions.push(print::attribute(attribute)),
        }
    }
    Some(conditions)
}

/// Whether the documentation leaves it out, and with it the promise to keep it.
pub(super) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .any(|attribute| nested(&attribute.meta).iter().any(|meta| meta.path().is_ident("hidden")))
}

/// The marks of an item, its conditions last; `None` if it is not part of the API.
pub(super) fn marks(attributes: &[Attribute]) -> Option<Vec<String>> {
    if is_hidden(attributes) {
        return None;
    }
    let conditions = conditions(attributes)?;
    let mut marks = Vec::new();
    for attribute in attributes {
        let Some(name) = TOLD.iter().find(|name| attribute.path().is_ident(name)) else { continue };
        marks.push(if *name == "repr" { print::attribute(attribute) } else { (*name).to_owned() });
    }
    marks.extend(conditions);
    Some(marks)
}

/// The traits that are derived.
pub(super) fn derived(attributes: &[Attribute]) -> Vec<Path> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("derive"))
        .flat_map(|attribute| nested(&attribute.meta))
        .map(|meta| meta.path().clone())
        .collect()
}

/// Whether an attribute of this name is there.
pub(super) fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

/// What a condition is in a build for users, where that does not depend on the build.
fn outside_tests(condition: &Meta) -> Option<bool> {
    let path = condition.path();
    if path.is_ident("test") || path.is_ident("doctest") {
        return Some(false);
    }
    let parts: Vec<Option<bool>> = nested(condition).iter().map(outside_tests).collect();
    if path.is_ident("not") {
        parts.into_iter().next().flatten().map(|truth| !truth)
    } else if path.is_ident("all") {
        decided(&parts, false)
    } else if path.is_ident("any") {
        decided(&parts, true)
    } else {
        None
    }
}

/// One part that `decides` is enough; otherwise all must be known.
fn decided(parts: &[Option<bool>], decides: bool) -> Option<bool> {
    if parts.contains(&Some(decides)) {
        return Some(decides);
    }
    parts.iter().all(Option::is_some).then_some(!decides)
}

/// What stands between the parentheses.
fn nested(meta: &Meta) -> Vec<Meta> {
    let Meta::List(list) = meta else { return Vec::new() };
    list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
        .map(|metas| metas.into_iter().collect())
        .unwrap_or_default()
}
