//! What the lower crates must build without.

use crate::step::{Failure, capture, cargo, execute};

/// Crate, and the packages that must not be among what it is built from.
const WITHOUT: [(&str, &[&str]); 2] = [
    ("tidal-keys", &["redb", "dashmap", "tidal-storage", "tidal-entities", "tidal-db"]),
    ("tidal-entities", &["redb", "tidal-storage", "tidal-db"]),
];

/// Refuses a dependency, direct or not, that a lower crate promises not to have.
pub(crate) fn check() -> Result<(), Failure> {
    for (package, unwanted) in WITHOUT {
        let tree = capture(cargo().args([
            "tree",
            "--locked",
            "--package",
            package,
            "--edges",
            "normal,build",
            "--all-features",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ]))?;
        let names: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
        if names.first() != Some(&package) {
            return Err(format!("cargo tree says nothing about {package}"));
        }
        if let Some(found) = unwanted.iter().find(|unwanted| names.contains(unwanted)) {
            return Err(format!("{package} depends on {found}; it must build without"));
        }
        println!("{package} needs none of {}", unwanted.join(", "));
        // Alone, so that no other crate lends it a feature of a shared dependency.
        execute(cargo().args(["check", "--locked", "--package", package]))?;
    }
    Ok(())
}
