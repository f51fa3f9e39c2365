use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidal_db::{
    Action, Clock as _, Event, ManualClock, MembershipStatus, Schema, Scope, SignalReceipt, TidalDb, Weight,
    Withheld,
};

use crate::bytes::Bytes;

const USERS: [u64; 4] = [7, 8, 0, u64::MAX];
const ITEMS: [u64; 3] = [1752, 0, u64::MAX];
const COMMUNITIES: [u64; 2] = [4, 0];
const REGIONS: [&str; 3] = ["Scotland", "Wales", ""];
const SIGNAL_TYPES: [&str; 3] = ["view", "like", "undeclared"];
const SECOND_NS: u64 = 1_000_000_000;
/// More operations than this take longer and say nothing new.
const MAX_OPERATIONS: usize = 400;

/// Operations on a database in memory: whatever the bytes say, nothing panics and every promise is kept.
pub fn operations(data: &[u8]) {
    let clock = Arc::new(ManualClock::new(1_000 * SECOND_NS));
    let Some(db) = open(&clock) else { return };
    let mut watched = Watched { db, clock, position: 0, applied: Vec::new(), acted: BTreeMap::new() };
    let mut bytes = Bytes(data);
    for _ in 0..MAX_OPERATIONS {
        if bytes.is_empty() {
            break;
        }
        watched.operate(&mut bytes);
    }
    watched.check_at_the_end();
}

fn open(clock: &Arc<ManualClock>) -> Option<TidalDb> {
    let schema = Schema::builder()
        .signal("view", Duration::from_secs(1))
        .windowed("like", Duration::from_secs(86_400))
        .cohorts_by("region")
        .build();
    let clock = Arc::<ManualClock>::clone(clock);
    let opened = TidalDb::builder().schema(schema.ok()?).clock(clock).ephemeral().open();
    assert!(opened.is_ok(), "{opened:?}");
    opened.ok()
}

struct Watched {
    db: TidalDb,
    clock: Arc<ManualClock>,
    /// Up to where the source was applied, and what.
    position: u64,
    applied: Vec<Event>,
    /// How many signals of each user there were.
    acted: BTreeMap<u64, u64>,
}

impl Watched {
    fn operate(&mut self, bytes: &mut Bytes<'_>) {
        let user = bytes.pick(&USERS, 7);
        match bytes.u8() % 12 {
            0 => self.clock.set(bytes.u64()),
            1 => self.clock.advance(bytes.u64() % SECOND_NS),
            2 => {
                let community = bytes.pick(&COMMUNITIES, 4);
                let joined = self.db.join_community(user, community);
                assert!(joined.is_ok() && self.db.communities_of(user).contains(&community), "{joined:?}");
            }
            3 => {
                let community = bytes.pick(&COMMUNITIES, 4);
                let quit = self.db.quit_community(user, community);
                assert!(quit.is_ok() && !self.db.communities_of(user).contains(&community), "{quit:?}");
            }
            4 => {
                let region = bytes.pick(&REGIONS, "");
                let set = self.db.set_user_attribute(user, "region", region);
                assert!(
                    set.is_ok() && self.db.user_attribute(user, "region").as_deref() == Some(region),
                    "{set:?}"
                );
            }
            5 => self.leave(user),
            6 => self.rejoin(user),
            7 => self.repair(user),
            8 => self.deliver(bytes),
            9 => self.signal(user, bytes, None),
            10 => {
                let at_ns = self.clock.now_ns().wrapping_sub(bytes.u64() % (1_000 * SECOND_NS));
                self.signal(user, bytes, Some(at_ns));
            }
            _ => {
                let at_ns = bytes.u64();
                self.signal(user, bytes, Some(at_ns));
            }
        }
    }

    fn leave(&self, user: u64) {
        let before = self.db.community_layer_status(user);
        let left = self.db.leave_community_layer(user);
        let after = self.db.community_layer_status(user);
        assert!(left.as_ref().is_ok_and(|left| *left == after), "{left:?}, and then {after:?}");
        assert_eq!(after.status, MembershipStatus::Left);
        if before.status == MembershipStatus::Left {
            assert_eq!(after, before, "a second leave changed something");
        }
    }

    fn rejoin(&self, user: u64) {
        let before = self.db.community_layer_status(user);
        let back = self.db.rejoin_community_layer(user);
        let after = self.db.community_layer_status(user);
        assert!(back.as_ref().is_ok_and(|back| *back == after), "{back:?}, and then {after:?}");
        assert_eq!((after.status, after.left_at_ns), (MembershipStatus::Active, before.left_at_ns));
    }

    fn repair(&self, user: u64) {
        let before = self.db.community_layer_status(user);
        let repaired = self.db.repair_community_layer(user);
        assert!(
            repaired.as_ref().is_ok_and(|repaired| *repaired == before),
            "{repaired:?} of a sound record"
        );
    }

    fn signal(&mut self, user: u64, bytes: &mut Bytes<'_>, at_ns: Option<u64>) {
        let (item, signal_type) = (bytes.pick(&ITEMS, 0), bytes.pick(&SIGNAL_TYPES, "view"));
        let nanos = bytes.i64();
        let (layer, global) = self.totals();
        let is_left = self.db.community_layer_status(user).status == MembershipStatus::Left;
        let receipt = if let Ok(weight) = Weight::from_nanos(nanos) {
            self.db.signal_exact(user, item, signal_type, weight, at_ns)
        } else {
            // As a float it is taken if it is a weight, and refused if not.
            let weight = f64::from_bits(nanos.cast_unsigned());
            match at_ns {
                Some(at_ns) => self.db.signal_at(user, item, signal_type, weight, at_ns),
                None => self.db.signal(user, item, signal_type, weight),
            }
        };
        let (layer_after, global_after) = self.totals();
        let Ok(SignalReceipt { cohorts, communities, withheld, .. }) = receipt else {
            assert_eq!((layer_after, global_after), (layer, global), "a refused signal counts");
            return;
        };
        *self.acted.entry(user).or_default() += 1;
        assert_eq!(global_after, global + 1, "the global aggregates take every signal");
        assert_eq!(
            layer_after,
            layer + u64::from(cohorts) + u64::from(communities),
            "the receipt says otherwise"
        );
        assert_eq!(is_left, withheld == Some(Withheld::Left), "a user who is out, and {withheld:?}");
        assert!(withheld.is_none() || cohorts + communities == 0, "withheld and taken all the same");
        assert!(at_ns.is_some() || withheld != Some(Withheld::AwayPeriod), "a signal of now is late");
    }

    /// Delivers something new, after a part of what was delivered before.
    fn deliver(&mut self, bytes: &mut Bytes<'_>) {
        let again = usize::from(bytes.u8()) % (self.applied.len() + 1);
        let new: Vec<Event> = (0..bytes.u8() % 5).map(|_| self.event(bytes)).collect();
        let known = self.applied.iter().skip(self.applied.len() - again);
        let events: Vec<Event> = known.chain(&new).cloned().collect();
        let first_position = self.position + 1 - again as u64;
        let (layer, global) = self.totals();
        let report = self.db.apply("queue", first_position, events);
        let signals = new.iter().filter(|event| matches!(event.action, Action::Signal { .. })).count() as u64;
        let (layer_after, global_after) = self.totals();
        let Ok(report) = report else {
            // It stopped in the middle: what was taken has to be asked for.
            let reached = self.db.position("queue").ok().flatten().unwrap_or(0);
            let taken = usize::try_from(reached.saturating_sub(self.position)).unwrap_or_default();
            self.take(new.into_iter().take(taken));
            return;
        };
        assert_eq!((report.applied, report.skipped), (new.len() as u64, again as u64), "{report:?}");
        assert_eq!(report.forwarded + report.withheld.total(), signals, "{report:?}");
        assert_eq!(global_after, global + signals, "the global aggregates take every signal once");
        assert!(report.forwarded > 0 || layer_after == layer, "nothing was forwarded, and a total moved");
        self.take(new.into_iter());
    }

    fn take(&mut self, events: impl Iterator<Item = Event>) {
        for event in events {
            if let Action::Signal { user, .. } = event.action {
                *self.acted.entry(user).or_default() += 1;
            }
            self.applied.push(event);
            self.position += 1;
        }
    }

    fn event(&self, bytes: &mut Bytes<'_>) -> Event {
        let user = bytes.pick(&USERS, 7);
        let action = match bytes.u8() % 5 {
            0 => Action::Leave { user },
            1 => Action::Rejoin { user },
            2 => Action::Join { user, community: bytes.pick(&COMMUNITIES, 4) },
            _ => Action::Signal {
                user,
                item: bytes.pick(&ITEMS, 0),
                signal_type: bytes.pick(&SIGNAL_TYPES, "view").to_owned(),
                weight: Weight::ONE,
            },
        };
        Event { at_ns: self.clock.now_ns().wrapping_sub(bytes.u64() % (1_000 * SECOND_NS)), action }
    }

    /// How many signals all cohorts and communities took together, and how many there were.
    fn totals(&self) -> (u64, u64) {
        let mut totals = (0, 0);
        let rows = self.db.aggregates(None);
        assert!(rows.is_ok(), "aggregates cannot be read");
        for row in rows.into_iter().flatten() {
            let Ok(row) = row else { continue };
            let count = if row.scope == Scope::Global { &mut totals.1 } else { &mut totals.0 };
            *count += row.aggregate.count;
            assert!(row.aggregate.score.is_finite(), "{row:?}");
        }
        totals
    }

    fn check_at_the_end(&self) {
        let verified = self.db.verify();
        assert!(verified.as_ref().is_ok_and(|report| report.differences.is_empty()), "{verified:?}");
        let left = self.db.left_users();
        assert_eq!(self.db.left_count(), left.len() as u64);
        for user in USERS {
            let held = self.db.history(user).map(Iterator::count);
            assert!(
                held.is_ok_and(|held| held as u64 == self.acted.get(&user).copied().unwrap_or(0)),
                "history"
            );
            let moved = self.db.membership_history(user).map(|moved| moved.len());
            let is_left = left.iter().any(|membership| membership.user_id == user);
            assert!(
                moved.is_ok_and(|moved| (moved % 2 == 1) == is_left),
                "leaves and rejoins do not alternate"
            );
        }
        for scope in [Scope::Global, Scope::Community(4)] {
            let top = self.db.top_items(&scope, "view", ITEMS.len()).unwrap_or_default();
            assert!(top.is_sorted_by(|(_, better), (_, worse)| better >= worse), "{top:?}");
        }
    }
}
