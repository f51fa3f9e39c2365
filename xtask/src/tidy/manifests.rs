//! What each crate takes from the workspace, so that one line changes it for all.

/// Fields that every package inherits.
const INHERITED: [&str; 4] = ["version", "edition", "rust-version", "license"];

/// Fields that a published package inherits or states besides.
const INHERITED_WHEN_PUBLISHED: [&str; 2] = ["keywords", "categories"];

/// Names what a package states for itself, or leaves out, instead of inheriting it.
pub(crate) fn not_inherited(manifest: &str) -> Vec<String> {
    let package = section(manifest, "[package]");
    if package.is_empty() {
        // The workspace's own manifest is what is inherited from.
        return Vec::new();
    }
    let is_published = !package.contains(&"publish = false");
    let mut fields = INHERITED.to_vec();
    if is_published {
        fields.extend(INHERITED_WHEN_PUBLISHED);
    }

    let mut breaches: Vec<String> = fields
        .into_iter()
        .map(|field| format!("{field}.workspace = true"))
        .filter(|line| !package.contains(&line.as_str()))
        .map(|line| format!("[package] lacks `{line}`"))
        .collect();
    if !package.iter().any(|line| line.starts_with("description = \"")) {
        breaches.push("[package] lacks a description".to_owned());
    }
    if !section(manifest, "[lints]").contains(&"workspace = true") {
        breaches.push("lacks `[lints]` with `workspace = true`".to_owned());
    }
    for heading in ["[dependencies]", "[dev-dependencies]", "[build-dependencies]"] {
        let own = section(manifest, heading).into_iter().filter(|line| {
            line.contains('=') && !line.contains("workspace = true") && !line.starts_with('#')
        });
        breaches.extend(own.map(|line| format!("{heading} does not inherit `{line}` from the workspace")));
    }
    breaches
}

/// The lines under a heading, up to the next one; none where the heading is missing.
fn section<'text>(manifest: &'text str, heading: &str) -> Vec<&'text str> {
    manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::not_inherited;

    const TIDY: &str = "[package]\nname = \"x\"\ndescription = \"x\"\nversion.workspace = true\n\
        edition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n\
        keywords.workspace = true\ncategories.workspace = true\n\n[dependencies]\ncsv.workspace = true\n\n\
        [lints]\nworkspace = true\n";

    #[test]
    fn a_tidy_manifest_passes() {
        assert_eq!(not_inherited(TIDY), Vec::<String>::new());
        assert_eq!(not_inherited("[workspace]\nmembers = []\n"), Vec::<String>::new());
    }

    #[test]
    fn each_field_is_missed() {
        for line in TIDY.lines().filter(|line| line.contains(".workspace") && !line.starts_with("csv")) {
            assert_eq!(
                not_inherited(&TIDY.replace(&format!("\n{line}\n"), "\n")),
                [format!("[package] lacks `{line}`")]
            );
        }
    }

    #[test]
    fn own_versions_and_lints_are_refused() {
        let own_version = TIDY.replace("csv.workspace = true", "csv = \"1\"");
        assert_eq!(
            not_inherited(&own_version),
            ["[dependencies] does not inherit `csv = \"1\"` from the workspace"]
        );
        let no_lints = TIDY.replace("[lints]", "[lint]");
        assert_eq!(not_inherited(&no_lints), ["lacks `[lints]` with `workspace = true`"]);
    }
}
