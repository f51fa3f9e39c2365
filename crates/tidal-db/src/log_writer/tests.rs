//! Whoever waits for a checkpoint is told when none can come.

use std::sync::mpsc;
use std::time::Duration;

use tidal_entities::LogEntry;
use tidal_storage::Storage;

use super::LogWriter;
use crate::Error;
use crate::log_state::{Bounds, LogEnd};

fn stage(log: &LogWriter) {
    log.stage(None, |staging| staging.append(&LogEntry::Leave { user: 7, at_ns: 1 }, 1)).unwrap();
}

#[test]
fn a_commit_that_fails_ends_the_wait_for_a_checkpoint() {
    let storage = Storage::in_memory().unwrap();
    let bounds = Bounds { max_events: None, recovery_entries: Some(1) };
    let log = LogWriter::new(storage.clone(), LogEnd::default(), bounds);
    stage(&log);
    stage(&log);
    log.flush().unwrap();
    let (told, outcome) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| told.send(log.wait_for_checkpoint()).unwrap());
        // It waits before the commit fails; were it later, it would see the failure at once.
        std::thread::sleep(Duration::from_millis(100));
        assert!(outcome.try_recv().is_err());
        storage.close().unwrap();
        stage(&log);
        assert!(log.flush().is_err());
        let outcome = outcome.recv_timeout(Duration::from_secs(30));
        // Ends the wait also if nobody told it.
        let _ = log.flush_and_close();
        let outcome = outcome.expect("who waits is told");
        assert!(matches!(outcome, Err(Error::Latched { .. })), "{outcome:?}");
    });
}
