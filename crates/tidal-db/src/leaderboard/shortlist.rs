use super::{Entry, MAX_WANTED, Slot};

/// An item that was among the best when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) entry: Entry,
    pub(super) slot: Slot,
}

/// So many changes are noted. A list that misses more is not asked often enough to be kept.
pub(super) const MAX_CHANGED: usize = 64;

/// How many more than twice as many as are wanted may be listed before the worst are left out.
const SLACK: usize = 32;

/// The best of a leaderboard as they were when somebody asked, and what has changed among them since.
///
/// Everything in the leaderboard that is at least as good as the floor is listed as it is, or noted as
/// changed. So a change below the floor costs one comparison; an item that sinks below the floor stays listed
/// as it was until it is to be returned, which is when it is compared with what it is now.
#[derive(Debug)]
pub(super) struct Shortlist {
    /// Best first.
    listed: Vec<Listed>,
    floor: Entry,
    changed: Vec<Slot>,
    wanted: usize,
}

impl Shortlist {
    /// Of the `wanted` best, or of all items if there are fewer, best first.
    pub(super) fn new(listed: Vec<Listed>, wanted: usize) -> Self {
        let is_full = listed.len() >= wanted;
        let floor = listed.last().filter(|_| is_full).map_or(Entry::VACANT, |last| last.entry);
        Self { listed, floor, changed: Vec::new(), wanted }
    }

    /// How many were listed at first, or asked for since.
    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    /// A change of what is worse need not be noted.
    pub(super) fn floor(&self) -> Entry {
        self.floor
    }

    /// Takes note of a change; `false` if there were too many to go on.
    pub(super) fn note(&mut self, slot: Slot, entry: Entry) -> bool {
        if entry < self.floor || self.changed.contains(&slot) {
            return true;
        }
        let has_room = self.changed.len() < MAX_CHANGED;
        if has_room {
            self.changed.push(slot);
        }
        has_room
    }

    /// The `k` best, best first, or all if there are fewer; `None` if the list is too short to say.
    pub(super) fn best(&mut self, k: usize, entry_of: impl Fn(Slot) -> Entry) -> Option<&[Listed]> {
        self.take_in_changed(&entry_of);
        let mut place = 0;
        while let Some(listed) = self.listed.get(place).filter(|_| place < k) {
            if entry_of(listed.slot) == listed.entry {
                place += 1;
            } else {
                // It sank below the floor, or went away.
                self.listed.remove(place);
            }
        }
        if place < k && self.floor != Entry::VACANT {
            return None;
        }
        self.wanted = self.wanted.max(place.min(MAX_WANTED));
        self.leave_out_worst();
        self.listed.get(..place)
    }

    /// Names what is listed and should not be, and what should be and is not.
    pub(super) fn differences(&self, all: impl Iterator<Item = Listed>) -> Vec<String> {
        let mut wrong = Vec::new();
        if !self.listed.is_sorted_by(|better, worse| better.entry >= worse.entry) {
            wrong.push("the list of the best is not in order".to_owned());
        }
        for listed in self.listed.iter().filter(|listed| listed.entry < self.floor) {
            wrong.push(format!("item {} is listed below the floor of the list", listed.entry.item.0));
        }
        for one in all {
            let must_be_listed = one.entry != Entry::VACANT && one.entry >= self.floor;
            if must_be_listed && !self.changed.contains(&one.slot) && !self.listed.contains(&one) {
                wrong.push(format!("item {} is among the best, but is not so listed", one.entry.item.0));
            }
        }
        wrong
    }

    #[cfg(test)]
    pub(super) fn listed_len(&self) -> usize {
        self.listed.len()
    }

    fn take_in_changed(&mut self, entry_of: impl Fn(Slot) -> Entry) {
        let Self { listed, changed, floor, .. } = self;
        for slot in changed.drain(..) {
            if let Some(place) = listed.iter().position(|listed| listed.slot == slot) {
                listed.remove(place);
            }
            let entry = entry_of(slot);
            if entry != Entry::VACANT && entry >= *floor {
                let place = listed.partition_point(|listed| listed.entry > entry);
                listed.insert(place, Listed { entry, slot });
            }
        }
    }

    fn leave_out_worst(&mut self) {
        if self.listed.len() > self.wanted.saturating_mul(2).saturating_add(SLACK) {
            self.listed.truncate(self.wanted);
            if let Some(last) = self.listed.last() {
                self.floor = last.entry;
            }
        }
    }
}
