//! How a file comes to be a database, and how one that is there is looked at before the engine sees it.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use crate::{
    Place, StorageError, StorageOptions, WriteBatch,
    store::{Source, Store},
};

/// Makes a complete database appear under `path`, on disk, with its first batch.
pub(crate) fn create_file(
    path: &Path,
    options: &StorageOptions,
    first: &WriteBatch,
) -> Result<(), StorageError> {
    let place = Place::File(path.to_owned());
    let changes = first.checked()?;
    // Asked without following a link, since a broken one would make the move below replace it.
    match fs::symlink_metadata(path) {
        Ok(_) => return Err(StorageError::AlreadyExists { place }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(io_error(place, "creating", source)),
    }

    let directory = directory_of(path);
    let unfinished =
        tempfile::Builder::new().prefix(".tidal-").suffix(".new").tempfile_in(&directory).map_err(
            |source| match source.kind() {
                io::ErrorKind::NotFound => StorageError::NoDirectory { directory: directory.clone() },
                _ => io_error(place.clone(), "creating", source),
            },
        )?;
    let file =
        unfinished.as_file().try_clone().map_err(|source| io_error(place.clone(), "creating", source))?;
    let created = Store::create(Source::File(file), place.clone(), options, &changes)?;
    created.close().map_err(|error| creating(place.clone(), error))?;
    // The engine syncs the data; this adds the length and the rest of the inode before the name appears.
    unfinished.as_file().sync_all().map_err(|source| io_error(place.clone(), "creating", source))?;

    match unfinished.persist_noclobber(path) {
        Ok(_) => sync_directory(&directory),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            Err(StorageError::AlreadyExists { place })
        }
        Err(error) => Err(io_error(place, "creating", error.error)),
    }
}

/// Opens a file for the engine, if it can be a database at all.
pub(crate) fn open_file(place: &Place, path: &Path) -> Result<File, StorageError> {
    // Looked at before it is opened: opening a pipe would wait for its other end.
    let metadata = fs::metadata(path).map_err(|source| open_error(place.clone(), source))?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { "it is a directory" } else { "it is no regular file" };
        return Err(StorageError::NotADatabase { place: place.clone(), reason: kind.to_owned() });
    }
    OpenOptions::new().read(true).write(true).open(path).map_err(|source| open_error(place.clone(), source))
}

fn open_error(place: Place, source: io::Error) -> StorageError {
    match source.kind() {
        io::ErrorKind::NotFound => StorageError::NotFound { place },
        _ => io_error(place, "opening", source),
    }
}

/// Whoever creates a database has none open yet, so "close and open it again" is no advice.
fn creating(place: Place, error: StorageError) -> StorageError {
    match error {
        StorageError::Io { source, .. } => io_error(place, "creating", source),
        other => other,
    }
}

fn io_error(place: Place, action: &'static str, source: io::Error) -> StorageError {
    StorageError::Io { place, action, source }
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

// Without this, a power loss could take back the name of a file whose content is safe.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> Result<(), StorageError> {
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(|source| io_error(Place::File(directory.to_owned()), "syncing", source))
}

// Elsewhere a directory cannot be opened as a file, and the file system orders the rename itself.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "the same shape on every platform")]
fn sync_directory(_directory: &Path) -> Result<(), StorageError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "tests fail by panicking")]

    use std::{io, path::PathBuf};

    use super::{creating, io_error};
    use crate::{Place, StorageError};

    #[test]
    fn what_fails_in_a_creation_says_what_a_creation_needs() {
        let place = Place::File(PathBuf::from("x.tidal"));
        let full = io_error(place.clone(), "closing", io::ErrorKind::StorageFull.into());
        let told = creating(place.clone(), full);
        assert_eq!(
            told.to_string(),
            "i/o error while creating x.tidal: check the path, your rights and the disk, then try again"
        );
        let closed = creating(place.clone(), StorageError::Closed { place });
        assert!(matches!(closed, StorageError::Closed { .. }), "{closed}");
    }
}
