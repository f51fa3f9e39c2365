//! What decides where a user's signals go: attributes and, resolved from them and from the
//! communities, the set of scopes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::fast_map::{FastMap, fast_map};
use crate::scopes::ScopeSetRef;
use crate::shards::{WaitingWriters, read_shard, write_entry};
use crate::sync::map::{Entry, OccupiedEntry, VacantEntry};

/// One user's attributes, and the scopes that take their signals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    pub(crate) attributes: BTreeMap<String, String>,
    /// None since the last change: resolved, and given a number, by the next signal that is forwarded.
    scope_set: Option<ScopeSetRef>,
}

/// All profiles. Users who never joined anything nor had an attribute have none.
#[derive(Debug)]
pub(crate) struct Profiles {
    by_user: FastMap<u64, Profile>,
    /// Joins, quits and changes that wait for the signals before them.
    waiting: WaitingWriters,
    /// What users without a profile match: cohorts may be defined by what somebody has not.
    unseen: OnceLock<ScopeSetRef>,
}

impl Profiles {
    pub(crate) fn new() -> Self {
        let by_user = fast_map();
        Self { waiting: WaitingWriters::of(&by_user), by_user, unseen: OnceLock::new() }
    }

    /// Those found at open: of everybody who is in a community or has an attribute.
    pub(crate) fn restored(
        members: impl IntoIterator<Item = u64>,
        attributes: impl IntoIterator<Item = (u64, BTreeMap<String, String>)>,
    ) -> Self {
        let profiles = Self::new();
        for user_id in members {
            profiles.by_user.entry(user_id).or_default();
        }
        for (user_id, attributes) in attributes {
            profiles.by_user.insert(user_id, Profile { attributes, scope_set: None });
        }
        profiles
    }

    /// The scopes of `user_id`, if they were resolved since the last change. No join, quit or change
    /// of attributes of that user is staged while the first of the two is held, so that the log tells
    /// the same order.
    pub(crate) fn read(&self, user_id: u64) -> (impl Sized + '_, Option<ScopeSetRef>) {
        let (shard, scope_set) =
            read_shard(&self.by_user, &self.waiting, user_id, |profile| profile.scope_set);
        (shard, scope_set.unwrap_or_else(|| self.unseen.get().copied()))
    }

    /// Resolves the scopes of `user_id` with `resolve`, unless somebody else did in between.
    pub(crate) fn resolve<E>(
        &self,
        user_id: u64,
        resolve: impl FnOnce(&BTreeMap<String, String>) -> Result<ScopeSetRef, E>,
    ) -> Result<(), E> {
        match write_entry(&self.by_user, &self.waiting, user_id) {
            Entry::Occupied(mut entry) => {
                let profile = entry.get_mut();
                if profile.scope_set.is_none() {
                    profile.scope_set = Some(resolve(&profile.attributes)?);
                }
            }
            Entry::Vacant(_) => {
                if self.unseen.get().is_none() {
                    // A second value cannot differ: both come from the same schema.
                    let _already_set = self.unseen.set(resolve(&BTreeMap::new())?);
                }
            }
        }
        Ok(())
    }

    /// The value of one attribute.
    pub(crate) fn attribute(&self, user_id: u64, name: &str) -> Option<String> {
        self.by_user.get(&user_id).and_then(|profile| profile.attributes.get(name).cloned())
    }

    /// Locks the profile of `user_id` for a change.
    pub(crate) fn edit(&self, user_id: u64) -> ProfileEdit<'_> {
        match write_entry(&self.by_user, &self.waiting, user_id) {
            Entry::Occupied(entry) => ProfileEdit::Known(entry),
            Entry::Vacant(entry) => ProfileEdit::New(entry),
        }
    }
}

/// A locked profile: nothing changes it, and no signal of the user is staged, until this is dropped.
pub(crate) enum ProfileEdit<'a> {
    Known(OccupiedEntry<'a, u64, Profile>),
    New(VacantEntry<'a, u64, Profile>),
}

impl ProfileEdit<'_> {
    /// The value of one attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&String> {
        match self {
            Self::Known(entry) => entry.get().attributes.get(name),
            Self::New(_) => None,
        }
    }

    /// How many attributes there are.
    pub(crate) fn attributes_len(&self) -> usize {
        match self {
            Self::Known(entry) => entry.get().attributes.len(),
            Self::New(_) => 0,
        }
    }

    /// Makes a change count: the scopes are to be resolved anew.
    pub(crate) fn change(self, change: impl FnOnce(&mut BTreeMap<String, String>)) {
        match self {
            Self::Known(mut entry) => {
                let profile = entry.get_mut();
                change(&mut profile.attributes);
                profile.scope_set = None;
            }
            Self::New(entry) => {
                let mut profile = Profile::default();
                change(&mut profile.attributes);
                entry.insert(profile);
            }
        }
    }
}
