//! What may be found under a path, and what opening and creating make of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod common;

use std::{fs, path::Path, sync::Arc};

use common::{LEFT_AT_100, everything, leave_key, sample_batch};
use redb::{Database, MultimapTableDefinition, TableDefinition};
use tempfile::TempDir;
use tidal_storage::{MemoryMedium, Partition, Place, Storage, StorageError, StorageOptions, WriteBatch};

type Bytes = &'static [u8];

const MARKER: TableDefinition<Bytes, Bytes> = TableDefinition::new("tidal");

fn directory_with_database() -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.tidal");
    StorageOptions::new().create_with(&path, sample_batch()).unwrap().close().unwrap();
    (directory, path)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Opens what must be refused, with and without the integrity check, and finds that nothing was changed by it.
#[track_caller]
fn refused(path: &Path) -> StorageError {
    let before = fs::read(path).ok();
    let neighbours = names(path.parent().unwrap());
    let unchecked =
        StorageOptions::new().check_integrity(false).open(path).expect_err("it was opened unchecked");
    let checked = Storage::open(path).expect_err("it was opened");
    assert_eq!(
        std::mem::discriminant(&unchecked),
        std::mem::discriminant(&checked),
        "{unchecked} / {checked}"
    );
    assert_eq!(fs::read(path).ok(), before, "a refused open changed the file");
    assert_eq!(names(path.parent().unwrap()), neighbours, "a refused open made a file");
    checked
}

/// The message, without the directory that differs from run to run.
fn message(error: &StorageError, directory: &TempDir) -> String {
    error.to_string().replace(&*directory.path().to_string_lossy(), "DIR")
}

fn alter(path: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let database = Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    change(&transaction);
    transaction.commit().unwrap();
}

fn set_marker(path: &Path, value: &[u8]) {
    alter(path, |transaction| {
        transaction.open_table(MARKER).unwrap().insert(b"format".as_slice(), value).unwrap();
    });
}

#[test]
fn what_was_created_is_there_when_opened_again() {
    let (directory, path) = directory_with_database();
    assert_eq!(names(directory.path()), ["example.tidal"]);
    for check in [true, false] {
        let storage = StorageOptions::new().check_integrity(check).open(&path).unwrap();
        assert_eq!(storage.path(), Some(path.as_path()));
        assert_eq!(storage.users_engine().get(&leave_key(7)).unwrap().as_deref(), Some(&LEFT_AT_100[..]));
        drop(storage);
    }
}

#[test]
fn missing_file_is_refused_and_none_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let error = refused(&directory.path().join("missing.tidal"));
    assert!(matches!(&error, StorageError::NotFound { .. }), "{error}");
    insta::assert_snapshot!("open_missing", message(&error, &directory));
    assert!(names(directory.path()).is_empty());
}

#[test]
fn empty_file_is_refused_and_stays_empty() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.tidal");
    fs::write(&path, b"").unwrap();
    let error = refused(&path);
    assert!(matches!(&error, StorageError::Empty { .. }), "{error}");
    insta::assert_snapshot!("open_empty", message(&error, &directory));
}

#[test]
fn directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.tidal");
    fs::create_dir(&path).unwrap();
    let error = refused(&path);
    assert!(matches!(&error, StorageError::NotADatabase { .. }), "{error}");
    insta::assert_snapshot!("open_directory", message(&error, &directory));
}

#[test]
fn file_of_another_kind_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.tidal");
    for content in [&b"x"[..], b"at,action,user\n", b"SQLite format 3\0", &[0; 4096], &[0xff; 4096]] {
        fs::write(&path, content).unwrap();
        let error = refused(&path);
        assert!(matches!(&error, StorageError::NotADatabase { .. }), "{error}");
    }
    insta::assert_snapshot!("open_foreign", message(&refused(&path), &directory));
}

#[test]
fn file_truncated_anywhere_is_refused() {
    let (_directory, path) = directory_with_database();
    let whole = fs::read(&path).unwrap();
    let lens = [1, 8, 9, 10, 63, 64, 100, 191, 192, 319, 320, 321, 4095, 4096, 4097, 8192, 12_288, 32_768];
    let lens = lens.into_iter().chain([whole.len() / 2, whole.len() - 4096, whole.len() - 1]);
    for len in lens {
        fs::write(&path, &whole[..len]).unwrap();
        let error = Storage::open(&path).expect_err(&format!("{len} bytes were opened"));
        let expected = matches!(error, StorageError::NotADatabase { .. } | StorageError::Damaged { .. });
        assert!(expected, "{len} bytes: {error}");
        assert_eq!(fs::read(&path).unwrap(), whole[..len], "{len} bytes: a refused open changed the file");
        // Without the check it may open or not, but it must not bring the process down.
        drop(StorageOptions::new().check_integrity(false).open(&path));
    }
}

#[test]
fn redb_file_of_another_program_is_refused_untouched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.redb");
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(TableDefinition::<u64, &str>::new("theirs")).unwrap().insert(1, "one").unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refused(&path);
    assert!(matches!(&error, StorageError::NotADatabase { .. }), "{error}");
    insta::assert_snapshot!("open_foreign_redb", message(&error, &directory));

    // Not even one that its program left in need of a repair.
    let database = Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(TableDefinition::<u64, &str>::new("theirs")).unwrap().insert(2, "two").unwrap();
    transaction.commit().unwrap();
    let crashed = directory.path().join("crashed.redb");
    fs::copy(&path, &crashed).unwrap();
    assert!(matches!(refused(&crashed), StorageError::NotADatabase { .. }));
}

#[test]
fn table_named_like_the_marker_but_of_other_types_is_foreign() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.redb");
    drop(Database::create(&path).unwrap());
    alter(&path, |transaction| {
        transaction.open_table(TableDefinition::<u64, u64>::new("tidal")).unwrap().insert(1, 1).unwrap();
    });
    assert!(matches!(refused(&path), StorageError::NotADatabase { .. }));
}

#[test]
fn newer_format_is_refused_with_both_versions() {
    let (directory, path) = directory_with_database();
    set_marker(&path, b"tidal\0db\x02\0\0\0");
    let error = refused(&path);
    assert!(matches!(&error, StorageError::NewerFormat { found: 2, supported: 1, .. }), "{error}");
    insta::assert_snapshot!("open_newer", message(&error, &directory));
    // A later version may have more to say after its number.
    set_marker(&path, b"tidal\0db\xff\xff\xff\xffmore");
    assert!(matches!(refused(&path), StorageError::NewerFormat { found: u32::MAX, .. }));
}

#[test]
fn malformed_marker_is_damage() {
    let (_directory, path) = directory_with_database();
    for marker in [
        &b""[..],
        b"tidal\0db",
        b"tidal\0db\x01\0\0",
        b"tidal\0db\x01\0\0\0\0",
        b"TIDAL\0db\x01\0\0\0",
        b"tidal\0db\0\0\0\0",
    ] {
        set_marker(&path, marker);
        let error = refused(&path);
        assert!(matches!(&error, StorageError::Damaged { .. }), "{marker:?}: {error}");
    }
    alter(&path, |transaction| {
        transaction.open_table(MARKER).unwrap().remove(b"format".as_slice()).unwrap();
    });
    assert!(matches!(refused(&path), StorageError::Damaged { .. }));
}

#[test]
fn missing_table_is_damage() {
    let (directory, path) = directory_with_database();
    alter(&path, |transaction| {
        assert!(transaction.delete_table(TableDefinition::<Bytes, Bytes>::new("users/11")).unwrap());
    });
    let error = refused(&path);
    assert!(matches!(&error, StorageError::Damaged { .. }), "{error}");
    insta::assert_snapshot!("open_missing_table", message(&error, &directory));
}

#[test]
fn unknown_table_is_damage() {
    let (directory, path) = directory_with_database();
    alter(&path, |transaction| {
        transaction.open_table(TableDefinition::<Bytes, Bytes>::new("users/13")).unwrap();
    });
    let error = refused(&path);
    assert!(matches!(&error, StorageError::Damaged { .. }), "{error}");
    insta::assert_snapshot!("open_unknown_table", message(&error, &directory));

    let (_directory, path) = directory_with_database();
    alter(&path, |transaction| {
        transaction.open_multimap_table(MultimapTableDefinition::<Bytes, Bytes>::new("many")).unwrap();
    });
    assert!(matches!(refused(&path), StorageError::Damaged { .. }));
}

#[test]
fn key_in_the_wrong_table_is_damage_when_it_is_read() {
    let (directory, path) = directory_with_database();
    alter(&path, |transaction| {
        let mut table = transaction.open_table(TableDefinition::<Bytes, Bytes>::new("items/03")).unwrap();
        table.insert(&*leave_key(7), LEFT_AT_100.as_slice()).unwrap();
        let mut table = transaction.open_table(TableDefinition::<Bytes, Bytes>::new("creators/03")).unwrap();
        table.insert(b"short".as_slice(), b"".as_slice()).unwrap();
    });
    let storage = Storage::open(&path).unwrap();
    for (engine, name) in
        [(storage.items_engine(), "key_of_other_tag"), (storage.creators_engine(), "key_too_short")]
    {
        let results: Vec<_> = match engine.scan_tag(tidal_keys::Tag::Metadata) {
            Ok(scan) => scan.collect(),
            Err(error) => vec![Err(error)],
        };
        let Some(Err(error)) = results.last() else { panic!("{name} was not found") };
        assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
        insta::assert_snapshot!(name, message(error, &directory));
    }
    let last = storage.creators_engine().last(tidal_keys::Tag::Metadata);
    assert!(matches!(last, Err(StorageError::Damaged { .. })));
    // One strange row is no reason to refuse a leave.
    storage.users_engine().put(&leave_key(8), &LEFT_AT_100).unwrap();
}

#[test]
fn database_open_already_is_refused() {
    let (directory, path) = directory_with_database();
    let first = Storage::open(&path).unwrap();
    for check in [true, false] {
        let error = StorageOptions::new().check_integrity(check).open(&path).unwrap_err();
        assert!(matches!(&error, StorageError::AlreadyOpen { .. }), "{error}");
        insta::assert_snapshot!("open_elsewhere", message(&error, &directory));
    }
    // The refused open must not have taken the lock from the first.
    first.users_engine().put(&leave_key(8), &LEFT_AT_100).unwrap();
    assert!(matches!(Storage::open(&path), Err(StorageError::AlreadyOpen { .. })));
    first.close().unwrap();
    let second = Storage::open(&path).unwrap();
    assert!(second.users_engine().get(&leave_key(8)).unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn link_to_a_database_is_the_same_database() {
    let (directory, path) = directory_with_database();
    let link = directory.path().join("link.tidal");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let storage = Storage::open(&link).unwrap();
    assert!(matches!(Storage::open(&path), Err(StorageError::AlreadyOpen { .. })));
    storage.close().unwrap();
}

#[cfg(unix)]
#[test]
fn unreadable_file_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let (directory, path) = directory_with_database();
    let whole = fs::read(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let bound_by_permissions = fs::File::open(&path).is_err();
    if bound_by_permissions {
        let error = Storage::open(&path).unwrap_err();
        assert!(matches!(&error, StorageError::Io { .. }), "{error}");
        assert_eq!(names(directory.path()), ["example.tidal"]);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), whole);
}

#[cfg(unix)]
#[test]
fn creating_over_anything_is_refused_and_leaves_it() {
    let (directory, path) = directory_with_database();
    let before = fs::read(&path).unwrap();
    let error = Storage::create(&path).unwrap_err();
    assert!(matches!(&error, StorageError::AlreadyExists { .. }), "{error}");
    insta::assert_snapshot!("create_over", message(&error, &directory));
    assert_eq!(fs::read(&path).unwrap(), before);

    let empty = directory.path().join("empty");
    fs::write(&empty, b"").unwrap();
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let broken_link = directory.path().join("link");
    std::os::unix::fs::symlink(directory.path().join("nowhere"), &broken_link).unwrap();
    for path in [&empty, &folder, &broken_link] {
        assert!(
            matches!(Storage::create(path), Err(StorageError::AlreadyExists { .. })),
            "{}",
            path.display()
        );
    }
    assert_eq!(names(directory.path()), ["empty", "example.tidal", "folder", "link"]);
}

#[cfg(unix)]
#[test]
fn created_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_directory, path) = directory_with_database();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn creation_where_there_is_no_directory_says_so_and_makes_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing").join("deeper").join("example.tidal");
    let error = Storage::create(&path).unwrap_err();
    assert!(matches!(&error, StorageError::NoDirectory { .. }), "{error}");
    insta::assert_snapshot!("create_no_directory", message(&error, &directory));
    assert!(names(directory.path()).is_empty());
    assert!(matches!(Storage::open(&path).unwrap_err(), StorageError::NotFound { .. }));
}

#[test]
fn creation_below_a_file_advises_what_can_be_done() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), b"").unwrap();
    let path = directory.path().join("file").join("example.tidal");
    // There is nothing yet that could be closed.
    for error in [Storage::create(&path).unwrap_err(), Storage::open(&path).unwrap_err()] {
        assert!(error.to_string().contains("check the path, your rights and the disk"), "{error}");
    }
    assert_eq!(names(directory.path()), ["file"]);
}

#[test]
fn creation_with_an_unsound_batch_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.tidal");
    let mut first = WriteBatch::new();
    first.put(Partition::Users, &leave_key(7), &LEFT_AT_100);
    first.put(Partition::Users, b"short", b"");
    let error = StorageOptions::new().create_with(&path, first).unwrap_err();
    assert!(matches!(&error, StorageError::Key { .. }), "{error}");
    assert!(names(directory.path()).is_empty());
}

#[test]
fn of_many_creations_of_one_path_one_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.tidal");
    let created: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Storage::create(&path))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(created.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    for refused in created.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(matches!(refused, StorageError::AlreadyExists { .. }), "{refused}");
    }
    assert_eq!(names(directory.path()), ["example.tidal"]);
}

#[test]
fn path_without_a_directory_is_of_the_current_one() {
    let name = format!("tidal-storage-test-{}.tidal", std::process::id());
    let storage = Storage::create(&name).unwrap();
    assert_eq!(storage.path(), Some(Path::new(&name)));
    drop(storage);
    fs::remove_file(&name).unwrap();
}

#[test]
fn database_left_by_a_killed_process_opens_with_all_that_was_committed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.tidal");
    let storage = StorageOptions::new().create_with(&path, sample_batch()).unwrap();
    storage.users_engine().put(&leave_key(8), &LEFT_AT_100).unwrap();
    let copy = directory.path().join("copy.tidal");
    fs::copy(&path, &copy).unwrap();
    for check in [true, false] {
        let opened = StorageOptions::new().check_integrity(check).open(&copy).unwrap();
        assert_eq!(everything(&opened).unwrap(), everything(&storage).unwrap());
    }
}

#[test]
fn medium_is_refused_like_a_file() {
    let options = StorageOptions::new();
    let empty = Arc::new(MemoryMedium::default());
    assert!(matches!(options.open_on(empty.clone()), Err(StorageError::Empty { place: Place::Medium })));
    assert!(empty.snapshot().is_empty());

    let foreign = Arc::new(MemoryMedium::from_bytes(vec![7; 5000]));
    assert!(matches!(options.open_on(foreign.clone()), Err(StorageError::NotADatabase { .. })));
    let created = options.create_on(foreign.clone(), WriteBatch::new());
    assert!(matches!(created, Err(StorageError::AlreadyExists { .. })));
    assert_eq!(foreign.snapshot(), [7; 5000]);

    let medium = Arc::new(MemoryMedium::default());
    let storage = options.create_on(medium.clone(), sample_batch()).unwrap();
    assert_eq!(storage.path(), None);
    assert!(matches!(options.open_on(medium.clone()), Err(StorageError::AlreadyOpen { .. })));
    drop(storage);
    options.open_on(medium).unwrap();
}
