//! `cargo xtask api CRATE`: every name that a library offers, one line each.
//!
//! The lines are read from the sources, so that a stable compiler will do. Types stand in them as the source writes
//! them; what a macro writes, and which auto traits a type has, the sources do not say.

mod attributes;
mod exports;
mod impls;
mod items;
mod listing;
mod print;
mod sources;

use std::fs;
use std::process::ExitCode;

use self::sources::Sources;
use crate::files;
use crate::step::Failure;

/// The packages whose names others build on.
const LIBRARIES: [&str; 4] = ["tidal-keys", "tidal-storage", "tidal-entities", "tidal-db"];

/// Prints what a library offers.
pub(crate) fn run(package: &str) -> ExitCode {
    match of_library(package) {
        Ok(lines) => {
            print!("{lines}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("api: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The lines of a library of this workspace.
fn of_library(package: &str) -> Result<String, Failure> {
    if !LIBRARIES.contains(&package) {
        return Err(format!("{package} is no library; take one of {}", LIBRARIES.join(", ")));
    }
    let folder = files::root().join("crates").join(package).join("src");
    let sources = Sources::load(&package.replace('-', "_"), &folder, &|path| fs::read_to_string(path).ok())?;
    Ok(lines(&sources))
}

/// What a crate offers, sorted by path: an item, what it implements, its members.
fn lines(sources: &Sources) -> String {
    let exports = exports::find(sources);
    let mut listing = listing::Listing::default();
    exports.write_names(&mut listing);
    items::write(sources, &exports, &mut listing);
    impls::write(sources, &exports, &mut listing);
    listing.into_text()
}

#[cfg(test)]
mod tests;
