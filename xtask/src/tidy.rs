//! `cargo xtask tidy`: the house rules that no compiler knows.
//!
//! Each rule is a function from a file to what is wrong in it, so that its own test can show it a fault.

mod links;
mod manifests;
mod sources;

use std::fs;
use std::process::ExitCode;

use crate::files;
use crate::step::Failure;

/// Extensions of the files that a person writes and reads.
const TEXT_EXTENSIONS: [&str; 6] = ["rs", "toml", "md", "yml", "snap", "json"];

/// Prints every breach, or that there is none.
pub(crate) fn run() -> ExitCode {
    match check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tidy: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Refuses a tree in which a rule is broken.
pub(crate) fn check() -> Result<(), Failure> {
    let (file_count, breaches) = breaches()?;
    if breaches.is_empty() {
        println!("{file_count} files, every rule kept");
        return Ok(());
    }
    Err(format!("{} breaches:\n  {}", breaches.len(), breaches.join("\n  ")))
}

/// How many files were looked at, and `path: what is wrong` for each breach.
fn breaches() -> Result<(usize, Vec<String>), Failure> {
    let mut file_count = 0;
    let mut breaches = Vec::new();
    for path in files::all()? {
        let name = files::relative(&path);
        let is_script = name.starts_with(".ci/");
        if !is_script && !files::has_extension(&path, &TEXT_EXTENSIONS) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {name}: {error}"))?;
        file_count += 1;

        let mut found = sources::machine_paths(&text);
        if files::has_extension(&path, &["rs", "toml", "md"]) {
            found.extend(sources::marks(&text));
        }
        if files::has_extension(&path, &["rs"]) {
            found.extend(sources::long(&name, &text));
            found.extend(sources::allows_without_reason(&text));
        }
        if files::has_extension(&path, &["rs", "toml"]) {
            found.extend(sources::engine_named(&name, &text));
        }
        if files::has_extension(&path, &["md"]) {
            found.extend(links::broken(&path, &text));
        }
        if path.file_name().is_some_and(|file| file == "Cargo.toml") {
            found.extend(manifests::not_inherited(&text));
        }
        breaches.extend(found.into_iter().map(|breach| format!("{name}: {breach}")));
    }
    Ok((file_count, breaches))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let (file_count, breaches) = super::breaches().unwrap();
        assert!(file_count > 0, "no file was looked at");
        assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    }
}
