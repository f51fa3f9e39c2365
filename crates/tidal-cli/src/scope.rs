//! Scopes as text.

use tidal_db::Scope;

use crate::id::parse_id;

/// Reads `global`, `cohort:NAME` or `community:ID`.
pub(crate) fn parse_scope(text: &str) -> Result<Scope, String> {
    match text.split_once(':') {
        None if text == "global" => Ok(Scope::Global),
        Some(("cohort", name)) if !name.is_empty() => Ok(Scope::Cohort(name.to_owned())),
        Some(("community", id)) => {
            let id = parse_id(id).map_err(|advice| format!("{id:?} is no community's id; {advice}"))?;
            Ok(Scope::Community(id))
        }
        _ => Err("use global, cohort:NAME or community:ID".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use tidal_db::Scope;

    use super::parse_scope;

    #[test]
    fn scopes_are_read() {
        assert_eq!(parse_scope("global"), Ok(Scope::Global));
        assert_eq!(parse_scope("cohort:a:b=c"), Ok(Scope::Cohort("a:b=c".into())));
        assert_eq!(parse_scope("community:4"), Ok(Scope::Community(4)));
        for text in ["", "all", "cohort", "community", "cohort:", "community:", "community:x", "global:1"] {
            assert!(parse_scope(text).is_err(), "{text}");
        }
    }
}
