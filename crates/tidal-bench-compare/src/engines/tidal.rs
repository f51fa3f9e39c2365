use std::path::Path;

use tidal_bench::{Crowd, EVENT_TIME_NS, SignalOf, UpdateKey, wait_until_caught_up};
use tidal_db::{Scope, Storage, TidalDb, Weight};

use super::{Engine, Total};

/// All that a signal does, on a file.
pub(crate) struct Tidal {
    db: TidalDb,
    storage: Storage,
}

impl Tidal {
    pub(crate) fn create(folder: &Path) -> Self {
        let (db, storage) = Crowd::database(&folder.join("engines.tidal"));
        Self { db, storage }
    }
}

impl Engine for Tidal {
    fn name(&self) -> &'static str {
        "tidal"
    }

    fn take(&mut self, signals: &[SignalOf]) {
        for (user, item) in signals {
            self.db.signal_exact(*user, *item, "view", Weight::ONE, Some(EVENT_TIME_NS)).unwrap();
        }
        self.db.flush().unwrap();
        // The last few may wait for a reader to be added.
        self.db.aggregate(&Scope::Global, 0, "view").unwrap();
    }

    fn rest(&mut self) {
        wait_until_caught_up(&self.db, &self.storage);
    }

    fn totals(&mut self) -> Vec<(UpdateKey, Total)> {
        Crowd::totals(&self.db)
    }
}
