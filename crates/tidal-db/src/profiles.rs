//! What decides where a user's signals go: attributes and, resolved from them and from the
//! communities, the set of scopes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use dashmap::{DashMap, Entry, OccupiedEntry, VacantEntry};

use crate::gate::read_shard;
use crate::scopes::ScopeSet;

/// One user's attributes and the scopes that take his signals now.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) scope_set: Arc<ScopeSet>,
}

/// All profiles. Users who never joined anything nor had an attribute have none.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    by_user: DashMap<u64, Profile>,
    /// What users without a profile match: cohorts may be defined by what somebody has not.
    unseen: OnceLock<Arc<ScopeSet>>,
}

impl Profiles {
    /// Sets what users without a profile match. Done once, at open.
    pub(crate) fn set_unseen(&self, scope_set: Arc<ScopeSet>) {
        // A second value cannot differ: both come from the same schema.
        let _already_set = self.unseen.set(scope_set);
    }

    fn unseen(&self) -> Arc<ScopeSet> {
        self.unseen.get().cloned().unwrap_or_default()
    }

    /// The scopes of `user_id`. No join, quit or change of attributes of that user is staged while
    /// the first of the two is held, so that the log tells the same order.
    pub(crate) fn read(&self, user_id: u64) -> (impl Sized + '_, Arc<ScopeSet>) {
        let (shard, scope_set) = read_shard(&self.by_user, user_id, |profile| Arc::clone(&profile.scope_set));
        (shard, scope_set.unwrap_or_else(|| self.unseen()))
    }

    /// The value of one attribute.
    pub(crate) fn attribute(&self, user_id: u64, name: &str) -> Option<String> {
        self.by_user.get(&user_id).and_then(|profile| profile.attributes.get(name).cloned())
    }

    /// Locks the profile of `user_id` for a change.
    pub(crate) fn edit(&self, user_id: u64) -> ProfileEdit<'_> {
        match self.by_user.entry(user_id) {
            Entry::Occupied(entry) => ProfileEdit { profile: entry.get().clone(), slot: Slot::Known(entry) },
            Entry::Vacant(entry) => ProfileEdit {
                profile: Profile { attributes: BTreeMap::new(), scope_set: self.unseen() },
                slot: Slot::New(entry),
            },
        }
    }

    /// Sets a profile found at open.
    pub(crate) fn restore(&self, user_id: u64, profile: Profile) {
        self.by_user.insert(user_id, profile);
    }
}

enum Slot<'a> {
    Known(OccupiedEntry<'a, u64, Profile>),
    New(VacantEntry<'a, u64, Profile>),
}

/// A profile being changed; the change counts when it is stored.
pub(crate) struct ProfileEdit<'a> {
    pub(crate) profile: Profile,
    slot: Slot<'a>,
}

impl ProfileEdit<'_> {
    /// Makes the change count.
    pub(crate) fn store(self) {
        match self.slot {
            Slot::Known(mut entry) => drop(entry.insert(self.profile)),
            Slot::New(entry) => drop(entry.insert(self.profile)),
        }
    }
}
