use dashmap::{DashMap, Entry};

/// Which communities each user is in, in memory.
///
/// Shared by reference between threads. Each call is atomic for its user; two calls are not. No guard is ever
/// handed out, so nothing that a caller does next can wait for this index.
///
/// ```
/// use tidal_entities::community::CommunityMembershipIndex;
///
/// let index = CommunityMembershipIndex::new();
/// assert!(index.join(7, 4));
/// assert!(index.join(7, 1));
/// assert!(!index.join(7, 4));
/// assert_eq!(index.communities_of(7), [1, 4]);
/// assert!(index.quit(7, 4));
/// assert!(!index.quit(7, 4));
/// assert_eq!(index.communities_len(7), 1);
/// ```
#[derive(Debug, Default)]
pub struct CommunityMembershipIndex {
    // Sorted, without repeats, never empty: a user in no community has no entry.
    communities_by_user: DashMap<u64, Vec<u64>>,
}

impl CommunityMembershipIndex {
    /// An index in which nobody is in any community.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a user into a community, and says whether they were not in it before.
    #[allow(clippy::must_use_candidate, reason = "called for what it does; most callers know the answer")]
    pub fn join(&self, user: u64, community: u64) -> bool {
        let mut communities = self.communities_by_user.entry(user).or_default();
        match communities.binary_search(&community) {
            Ok(_) => false,
            Err(position) => {
                communities.insert(position, community);
                true
            }
        }
    }

    /// Takes a user out of a community, and says whether they were in it before.
    #[allow(clippy::must_use_candidate, reason = "called for what it does; most callers know the answer")]
    pub fn quit(&self, user: u64, community: u64) -> bool {
        // The entry keeps its shard locked, so that no join slips in before an empty list is removed.
        let Entry::Occupied(mut entry) = self.communities_by_user.entry(user) else { return false };
        let communities = entry.get_mut();
        let Ok(position) = communities.binary_search(&community) else { return false };
        communities.remove(position);
        if communities.is_empty() {
            entry.remove();
        }
        true
    }

    /// Whether a user is in a community.
    #[must_use]
    pub fn contains(&self, user: u64, community: u64) -> bool {
        self.communities_by_user
            .get(&user)
            .is_some_and(|communities| communities.binary_search(&community).is_ok())
    }

    /// The communities that a user is in, in ascending order.
    #[must_use]
    pub fn communities_of(&self, user: u64) -> Vec<u64> {
        self.communities_by_user.get(&user).map(|communities| communities.clone()).unwrap_or_default()
    }

    /// How many communities a user is in.
    #[must_use]
    pub fn communities_len(&self, user: u64) -> usize {
        self.communities_by_user.get(&user).map_or(0, |communities| communities.len())
    }
}
