//! G1: very many leaves, each beside signals of the same user.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tidal_db::{Action, Config, Durability, Event, Scope, TidalDb, Withheld};
use tidal_storage::MemoryMedium;

use super::{Seen, config, create_on, ok, open_image};
use crate::ensure;

/// Leaves of one database; for more, another is made.
const USERS_PER_DATABASE: u64 = 20_000;

/// So many leave at once, and share commits.
const LEAVERS: u64 = 16;
const SIGNALERS: u64 = 2;

const COMMUNITY: u64 = 4;

/// What was tried.
#[derive(Debug, Default)]
pub struct Tried {
    pub leaves: u64,
    pub signals: u64,
    /// Leaves beside which signals from other threads were both let through and withheld.
    pub leaves_amid_signals: u64,
}

/// Every user has an item of their own, so that every leave has totals of its own: those that stand when it
/// returns must stand at the end, be the same in all scopes, and be what the receipts said.
pub fn no_total_moves_after_any_leave(leaves: u64, adapt: impl Fn(Config) -> Config) -> Seen<Tried> {
    let mut tried = Tried::default();
    while tried.leaves < leaves {
        let (_, config) = config();
        let medium = Arc::new(MemoryMedium::default());
        let batched = Durability::Batched { max_events: 4_096, max_delay: Duration::from_millis(10) };
        let db = create_on(&medium, adapt(config.durability(batched)))?;
        let users_len = USERS_PER_DATABASE.min(leaves - tried.leaves);
        let crowd = Crowd::settled_in(&db, users_len)?;
        crowd.leave()?;
        let totals = crowd.check()?;
        drop(crowd);
        ok(db.close())?;

        let (_, config) = super::config();
        let reopened = open_image(medium.snapshot(), config)?;
        ensure!(reopened.left_count() == users_len, "{} users are Left on disk", reopened.left_count());
        for (user, totals) in (0..).zip(&totals.of_users) {
            let on_disk = totals_of(&reopened, user)?;
            ensure!(on_disk == *totals, "of user {user} memory said {totals:?}, and the disk {on_disk:?}");
        }
        tried.leaves += users_len;
        tried.signals += totals.signals;
        tried.leaves_amid_signals += totals.leaves_amid_signals;
    }
    Ok(tried)
}

/// What the receipts of one user's signals said, and the totals when the leave returned.
#[derive(Default)]
struct Told {
    let_through: AtomicU32,
    withheld: AtomicU32,
    /// Of the cohort and of the community.
    at_return: [AtomicU64; 2],
}

struct Totals {
    of_users: Vec<[u64; 3]>,
    signals: u64,
    leaves_amid_signals: u64,
}

struct Crowd<'a> {
    db: &'a TidalDb,
    told: Vec<Told>,
    /// The next user to leave.
    next: AtomicU64,
    /// How many threads still make users leave.
    leaving: AtomicU64,
}

impl<'a> Crowd<'a> {
    /// Puts every user into one cohort and one community.
    fn settled_in(db: &'a TidalDb, users_len: u64) -> Seen<Self> {
        let settling = (0..users_len).flat_map(|user| {
            let (name, value) = ("region".to_owned(), "Scotland".to_owned());
            [Action::SetAttribute { user, name, value }, Action::Join { user, community: COMMUNITY }]
        });
        ok(db.apply("users", 1, settling.map(|action| Event { at_ns: 1, action })))?;
        let told = (0..users_len).map(|_| Told::default()).collect();
        Ok(Self { db, told, next: AtomicU64::new(0), leaving: AtomicU64::new(LEAVERS) })
    }

    fn users_len(&self) -> u64 {
        self.told.len() as u64
    }

    /// All of them leave.
    fn leave(&self) -> Seen {
        thread::scope(|scope| {
            let leavers = (0..LEAVERS).map(|_| {
                scope.spawn(|| {
                    let outcome = self.leave_one_by_one();
                    self.leaving.fetch_sub(1, Ordering::Relaxed);
                    outcome
                })
            });
            let signalers = (0..SIGNALERS).map(|thread| scope.spawn(move || self.signal_for_leavers(thread)));
            let threads: Vec<_> = leavers.chain(signalers).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })
    }

    fn leave_one_by_one(&self) -> Seen {
        loop {
            let user = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(told) = usize::try_from(user).ok().and_then(|index| self.told.get(index)) else {
                return Ok(());
            };
            let before = self.signal(user)?;
            ensure!(before.is_none(), "before the leave of user {user} a signal was withheld as {before:?}");
            ok(self.db.leave_community_layer(user))?;
            let [cohort, community, _] = totals_of(self.db, user)?;
            told.at_return[0].store(cohort, Ordering::Relaxed);
            told.at_return[1].store(community, Ordering::Relaxed);
            let after = self.signal(user)?;
            ensure!(after == Some(Withheld::Left), "after the leave of user {user} a signal was {after:?}");
        }
    }

    /// Signals for those who are about to leave, at it, or just gone.
    fn signal_for_leavers(&self, thread: u64) -> Seen {
        let mut turn = thread;
        while self.leaving.load(Ordering::Relaxed) > 0 {
            let next = self.next.load(Ordering::Relaxed);
            turn += 7;
            let user = (next + LEAVERS / 2).saturating_sub(turn % (2 * LEAVERS));
            self.signal(user.min(self.users_len() - 1))?;
        }
        Ok(())
    }

    fn signal(&self, user: u64) -> Seen<Option<Withheld>> {
        let receipt = ok(self.db.signal(user, user, "view", 1.0))?;
        let told = &self.told[usize::try_from(user).expect("an index of the users")];
        let counter = if receipt.withheld.is_none() { &told.let_through } else { &told.withheld };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(receipt.withheld)
    }

    /// Compares the totals with what they were when each leave returned.
    fn check(&self) -> Seen<Totals> {
        let mut totals = Totals { of_users: Vec::new(), signals: 0, leaves_amid_signals: 0 };
        for (user, told) in (0..).zip(&self.told) {
            let [cohort, community, global] = totals_of(self.db, user)?;
            let at_return = told.at_return.each_ref().map(|total| total.load(Ordering::Relaxed));
            ensure!(
                at_return == [cohort, community],
                "when the leave of user {user} returned the totals were {at_return:?}, and then {:?}",
                [cohort, community]
            );
            ensure!(cohort == community, "of user {user} the cohort has {cohort}, the community {community}");
            let let_through = u64::from(told.let_through.load(Ordering::Relaxed));
            let withheld = u64::from(told.withheld.load(Ordering::Relaxed));
            ensure!(cohort == let_through, "of user {user} {let_through} were let through, {cohort} counted");
            ensure!(global == let_through + withheld, "of user {user} the item has {global} in all");
            // One of each is the leaver's own.
            totals.leaves_amid_signals += u64::from(let_through > 1 && withheld > 1);
            totals.signals += global;
            totals.of_users.push([cohort, community, global]);
        }
        Ok(totals)
    }
}

/// How many signals the cohort, the community and the item of `user` took.
fn totals_of(db: &TidalDb, user: u64) -> Seen<[u64; 3]> {
    let total =
        |scope| Ok::<_, String>(ok(db.aggregate(&scope, user, "view"))?.map_or(0, |taken| taken.count));
    let cohort = Scope::Cohort("region=Scotland".to_owned());
    Ok([total(cohort)?, total(Scope::Community(COMMUNITY))?, total(Scope::Global)?])
}
