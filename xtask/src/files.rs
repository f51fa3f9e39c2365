//! The files of the workspace, without what is built.

use std::fs;
use std::path::{Path, PathBuf};

use crate::step::Failure;

/// Folders that hold nothing written by hand.
const SKIPPED_FOLDERS: [&str; 2] = ["target", ".git"];

/// The folder that holds the workspace manifest.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Every file under the root, sorted.
pub(crate) fn all() -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    walk(root(), &mut found)?;
    found.sort();
    Ok(found)
}

/// The path as it is written in messages: from the root, with forward slashes.
pub(crate) fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// Whether the name ends in one of the extensions.
pub(crate) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|found| extensions.contains(&found))
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let path = entry.path();
        if kind.is_dir() {
            if !SKIPPED_FOLDERS.iter().any(|skipped| entry.file_name() == *skipped) {
                walk(&path, found)?;
            }
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}
