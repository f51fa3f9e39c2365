//! Links from one document to another.

use std::path::Path;

use crate::files;

/// Names each relative link whose file does not exist.
///
/// Links to the web are not followed, and what stands in a code block is no link.
pub(crate) fn broken(document: &Path, text: &str) -> Vec<String> {
    let folder = document.parent().unwrap_or(document);
    let is_missing = |target: &str| {
        let linked = folder.join(target);
        // A link that leaves the project works on one machine only.
        linked
            .canonicalize()
            .map_or(true, |found| !files::root().canonicalize().is_ok_and(|root| found.starts_with(root)))
    };
    targets(text)
        .into_iter()
        .filter(|target| is_missing(target))
        .map(|target| format!("the link to {target} leads nowhere"))
        .collect()
}

/// The relative targets of all links in a document, without what follows `#`.
fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for after in line.split("](").skip(1) {
            let Some((target, _)) = after.split_once(')') else { continue };
            let file = target.split_once('#').map_or(target, |(file, _)| file);
            let is_elsewhere = file.contains("://") || file.starts_with("mailto:");
            if !file.is_empty() && !is_elsewhere {
                targets.push(file);
            }
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::{broken, targets};
    use crate::files;

    #[test]
    fn relative_links_are_found() {
        let text = "See [a](docs/a.md#top), [web](https://example.org/x) and [here](#below).\n\
                    ```text\n[code](nowhere.md)\n```\n[b](b.md) [c](mailto:c@example.org)\n";
        assert_eq!(targets(text), ["docs/a.md", "b.md"]);
    }

    #[test]
    fn a_link_to_nowhere_is_named() {
        let document = files::root().join("README.md");
        assert_eq!(broken(&document, "[license](LICENSE-MIT)"), Vec::<String>::new());
        assert_eq!(broken(&document, "[gone](gone.md#x)"), ["the link to gone.md leads nowhere"]);
        assert_eq!(broken(&document, "[out](..)"), ["the link to .. leads nowhere"]);
    }
}
