//! Interned scopes: every scope and every set of scopes that ever took a signal has a number.

use std::collections::HashMap;
use std::sync::Arc;

use tidal_entities::{Scope, ScopeId, ScopeSetId, encode_scope, encode_scope_set, scope_key, scope_set_key};
use tidal_storage::Partition;

use crate::log_state::Staging;
use crate::sync::{Mutex, lock};

/// The cohorts and communities that take a user's signals at the moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScopeSet {
    pub(crate) id: ScopeSetId,
    pub(crate) cohorts: Box<[ScopeId]>,
    pub(crate) communities: Box<[ScopeId]>,
}

/// Which set it is, and how many scopes are in it: what a signal needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScopeSetRef {
    pub(crate) id: ScopeSetId,
    pub(crate) cohorts: u32,
    pub(crate) communities: u32,
}

impl ScopeSetRef {
    /// Global only.
    pub(crate) const EMPTY: Self = Self { id: ScopeSetId::EMPTY, cohorts: 0, communities: 0 };

    fn of(set: &ScopeSet) -> Self {
        Self { id: set.id, cohorts: number(set.cohorts.len()), communities: number(set.communities.len()) }
    }
}

#[derive(Debug, Default)]
struct Tables {
    ids: HashMap<Scope, ScopeId>,
    scopes: Vec<Scope>,
    sets: HashMap<Vec<ScopeId>, Arc<ScopeSet>>,
    sets_by_id: Vec<Arc<ScopeSet>>,
}

impl Tables {
    fn new() -> Self {
        let mut tables = Self::default();
        tables.add_scope(Scope::Global);
        tables.add_set(Vec::new());
        tables
    }

    fn add_scope(&mut self, scope: Scope) -> ScopeId {
        let id = ScopeId(number(self.scopes.len()));
        self.ids.insert(scope.clone(), id);
        self.scopes.push(scope);
        id
    }

    fn add_set(&mut self, members: Vec<ScopeId>) -> Arc<ScopeSet> {
        let of_kind = |wanted: fn(&Scope) -> bool| -> Box<[ScopeId]> {
            let is_wanted = |id: &&ScopeId| self.scope(**id).is_some_and(wanted);
            members.iter().filter(is_wanted).copied().collect()
        };
        let set = Arc::new(ScopeSet {
            id: ScopeSetId(number(self.sets_by_id.len())),
            cohorts: of_kind(|scope| matches!(scope, Scope::Cohort(_))),
            communities: of_kind(|scope| matches!(scope, Scope::Community(_))),
        });
        self.sets_by_id.push(Arc::clone(&set));
        self.sets.insert(members, Arc::clone(&set));
        set
    }

    fn scope(&self, id: ScopeId) -> Option<&Scope> {
        self.scopes.get(usize::try_from(id.0).ok()?)
    }
}

/// Numbers are handed out one by one, so 2^32 of them would need as many distinct scopes in memory.
fn number(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Number 0 is `Scope::Global` among the scopes, and the empty set among the sets.
#[derive(Debug)]
pub(crate) struct Interner {
    tables: Mutex<Tables>,
}

impl Interner {
    pub(crate) fn new() -> Self {
        Self { tables: Mutex::new(Tables::new()) }
    }

    /// The set of `cohorts` and `communities`; a new one is stored in the commit being staged.
    pub(crate) fn intern(
        &self,
        staging: &mut Staging<'_>,
        cohorts: impl IntoIterator<Item = String>,
        communities: impl IntoIterator<Item = u64>,
    ) -> ScopeSetRef {
        let mut tables = lock(&self.tables);
        let scopes =
            cohorts.into_iter().map(Scope::Cohort).chain(communities.into_iter().map(Scope::Community));
        let mut members = Vec::new();
        for scope in scopes {
            let known = tables.ids.get(&scope).copied();
            members.push(known.unwrap_or_else(|| {
                let id = tables.add_scope(scope.clone());
                let key = scope_key(id);
                staging.put(Partition::System, &key, &encode_scope(&key, &scope));
                id
            }));
        }
        members.sort_unstable();
        if let Some(set) = tables.sets.get(&members) {
            return ScopeSetRef::of(set);
        }
        let value_of = members.clone();
        let set = tables.add_set(members);
        let key = scope_set_key(set.id);
        staging.put(Partition::System, &key, &encode_scope_set(&key, &value_of));
        ScopeSetRef::of(&set)
    }

    /// Takes over a stored scope; `false` if its number is not the next.
    pub(crate) fn restore_scope(&self, id: ScopeId, scope: Scope) -> bool {
        let mut tables = lock(&self.tables);
        let fits = number(tables.scopes.len()) == id.0 && !tables.ids.contains_key(&scope);
        if fits {
            tables.add_scope(scope);
        }
        fits
    }

    /// Takes over a stored set; `false` if its number is not the next or it names unknown scopes.
    pub(crate) fn restore_set(&self, id: ScopeSetId, members: Vec<ScopeId>) -> bool {
        let mut tables = lock(&self.tables);
        let fits = number(tables.sets_by_id.len()) == id.0
            && !tables.sets.contains_key(&members)
            && members.iter().all(|member| tables.scope(*member).is_some());
        if fits {
            tables.add_set(members);
        }
        fits
    }

    /// The set of that number.
    pub(crate) fn set(&self, id: ScopeSetId) -> Option<Arc<ScopeSet>> {
        let tables = lock(&self.tables);
        tables.sets_by_id.get(usize::try_from(id.0).ok()?).cloned()
    }

    /// Appends to the sets that are known, in the order of their numbers, those that came since.
    pub(crate) fn complete(&self, known: &mut Vec<Arc<ScopeSet>>) {
        let tables = lock(&self.tables);
        known.extend(tables.sets_by_id.iter().skip(known.len()).cloned());
    }

    /// The number of `scope`, if it ever took a signal or could have.
    pub(crate) fn id(&self, scope: &Scope) -> Option<ScopeId> {
        if *scope == Scope::Global {
            return Some(ScopeId::GLOBAL);
        }
        lock(&self.tables).ids.get(scope).copied()
    }

    /// How many scopes there are.
    pub(crate) fn scopes_len(&self) -> u32 {
        number(lock(&self.tables).scopes.len())
    }

    /// All scopes in the order of their numbers.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        lock(&self.tables).scopes.clone()
    }
}
