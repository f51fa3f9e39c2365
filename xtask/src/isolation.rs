//! What the lower crates must build without.

use crate::bench;
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

/// The feature that takes the gate out, and what the compiler says to it.
const WITHOUT_GATE: &str = "tidal-db/bench-without-gate";

/// Makes sure that the gate cannot be left out by accident: the library refuses the feature, and the command does even
/// where the library is told that it is meant.
pub(crate) fn check_gate() -> Result<(), Failure> {
    refuses("tidal-db", false, "lets signals of users who left through")?;
    refuses("tidal-cli", true, "never built over a database without its gate")
}

fn refuses(package: &str, is_meant: bool, because: &str) -> Result<(), Failure> {
    let mut check = cargo();
    check.args(["check", "--locked", "--package", package, "--features", WITHOUT_GATE]);
    check.env_remove(bench::WITHOUT_GATE_VARIABLE);
    if is_meant {
        check.env(bench::WITHOUT_GATE_VARIABLE, "1");
    }
    match capture(&mut check) {
        Ok(_) => Err(format!("{package} compiles with {WITHOUT_GATE}; it must not")),
        Err(reason) if reason.contains(because) => {
            println!("{package} refuses {WITHOUT_GATE}");
            Ok(())
        }
        Err(reason) => Err(format!("{package} does not say why it refuses {WITHOUT_GATE}: {reason}")),
    }
}
