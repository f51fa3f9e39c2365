//! Who acts on what when signals are taken in: each adds to one item, one cohort and three communities.

use std::path::Path;

use tidal_db::{Action, Aggregate, Event, Scope, Storage, TidalDb};

use crate::bare::UpdateKey;
use crate::dice::{Dice, Zipf};
use crate::fixtures::{EVENT_TIME_NS, batched, schema};

const USERS: u64 = 20_000;
/// One user in fifty has left.
const LEFT_EVERY: u64 = 50;
const REGIONS: u64 = 12;
const COMMUNITIES: u64 = 1_000;
/// Numbers of scopes in [`UpdateKey`]: the item's own, then the cohorts, then the communities.
const FIRST_COHORT: u32 = 1;
const FIRST_COMMUNITY: u32 = 100;

/// A user and an item.
pub type SignalOf = (u64, u64);

/// The region that a user is from.
#[must_use]
pub fn region_of(user: u64) -> u64 {
    user % REGIONS
}

/// Users, all alike, and items by Zipf's law.
#[derive(Clone, Debug)]
pub struct Crowd {
    dice: Dice,
    zipf: Zipf,
}

impl Crowd {
    /// A crowd that acts on so many items.
    #[must_use]
    pub fn with_items(items: usize) -> Self {
        Self { dice: Dice::new(1), zipf: Zipf::over(items) }
    }

    /// What is done next.
    pub fn signals(&mut self, len: usize) -> Vec<SignalOf> {
        (0..len).map(|_| (self.dice.below(USERS), self.zipf.next(&mut self.dice))).collect()
    }

    /// The three communities of a user.
    #[must_use]
    pub fn communities_of(user: u64) -> [u64; 3] {
        [0, 1, 2].map(|nth| (user * 3 + nth * 331) % COMMUNITIES)
    }

    /// Whether a user has left.
    #[must_use]
    pub fn has_left(user: u64) -> bool {
        user.is_multiple_of(LEFT_EVERY)
    }

    /// What five updates a signal of this user makes on a map without a gate.
    #[must_use]
    pub fn updates((user, item): SignalOf) -> [UpdateKey; 5] {
        let [first, second, third] =
            Self::communities_of(user).map(|community| FIRST_COMMUNITY + community as u32);
        let cohort = FIRST_COHORT + region_of(user) as u32;
        [0, cohort, first, second, third].map(|scope| (scope, item))
    }

    /// What updates it makes with the gate: one of somebody who left counts for the item alone.
    pub fn gated_updates(signal: SignalOf) -> impl Iterator<Item = UpdateKey> {
        let len = if Self::has_left(signal.0) { 1 } else { 5 };
        Self::updates(signal).into_iter().take(len)
    }

    /// A database on a file in which every user has their place, and a handle to what it stores.
    ///
    /// # Panics
    ///
    /// If the file is there.
    #[must_use]
    pub fn database(path: &Path) -> (TidalDb, Storage) {
        let config = TidalDb::builder().schema(schema()).durability(batched());
        TidalDb::builder().schema(schema()).path(path).create(true).open().unwrap().close().unwrap();
        let storage = Storage::open(path).unwrap();
        // The place is said too, so that checkpoints and runs are made.
        let db = TidalDb::from_parts(storage.clone(), config.path(path)).unwrap();
        let event = |action| Event { at_ns: EVENT_TIME_NS, action };
        let set_up = (0..USERS).flat_map(|user| {
            let value = region_of(user).to_string();
            let region = event(Action::SetAttribute { user, name: "region".into(), value });
            let joins = Self::communities_of(user).map(|community| event(Action::Join { user, community }));
            let leave = Self::has_left(user).then(|| event(Action::Leave { user }));
            [region].into_iter().chain(joins).chain(leave)
        });
        db.apply("set up", 1, set_up).unwrap();
        (db, storage)
    }

    /// Every aggregate of a database with its count, under the numbers of [`UpdateKey`], in order.
    #[must_use]
    pub fn counts(db: &TidalDb) -> Vec<(UpdateKey, u64)> {
        Self::totals(db).into_iter().map(|(key, (count, _weight))| (key, count)).collect()
    }

    /// The same with the sum of weights too.
    #[must_use]
    pub fn totals(db: &TidalDb) -> Vec<(UpdateKey, (u64, f64))> {
        let number = |scope: &Scope| match scope {
            Scope::Global => 0,
            Scope::Community(community) => FIRST_COMMUNITY + *community as u32,
            Scope::Cohort(name) => {
                let region: u32 = name.strip_prefix("region=").unwrap().parse().unwrap();
                FIRST_COHORT + region
            }
            other => panic!("{other:?} is no scope of these"),
        };
        let rows = db.aggregates(None).unwrap().map(|row| row.unwrap());
        let total = |aggregate: &Aggregate| (aggregate.count, aggregate.weight_sum);
        let mut totals: Vec<_> =
            rows.map(|row| ((number(&row.scope), row.item), total(&row.aggregate))).collect();
        totals.sort_unstable_by_key(|(key, _)| *key);
        totals
    }
}
