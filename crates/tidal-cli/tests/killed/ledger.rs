//! What the parent knows: everything that was acknowledged, and what was under way.

use std::collections::{BTreeMap, BTreeSet};

use tidal_db::{MembershipStatus, Scope, TidalDb, TransitionKind, Withheld};

use crate::child::{THREADS, source, users_of};
use crate::op::{Op, Sent};

/// One user, as the database must show them.
#[derive(Clone, Debug, Default, PartialEq)]
struct User {
    transitions: Vec<TransitionKind>,
    communities: BTreeSet<u64>,
    region: Option<String>,
    /// Item, serial and whether it was withheld.
    signals: Vec<(u64, i64, bool)>,
}

impl User {
    fn is_left(&self) -> bool {
        self.transitions.last() == Some(&TransitionKind::Leave)
    }

    fn read(db: &TidalDb, user: u64) -> Self {
        let signals = db.history(user).unwrap().map(|event| {
            let event = event.unwrap();
            assert!(matches!(event.withheld, None | Some(Withheld::Left)), "{user}: {event:?}");
            (event.item, event.weight.nanos(), event.withheld.is_some())
        });
        let signals = signals.collect();
        let transitions = db.membership_history(user).unwrap().iter().map(|moved| moved.kind).collect();
        let read = Self {
            transitions,
            communities: db.communities_of(user).into_iter().collect(),
            region: db.user_attribute(user, "region"),
            signals,
        };
        let shown_left = db.community_layer_status(user).status == MembershipStatus::Left;
        assert_eq!(shown_left, read.is_left(), "status of {user} against the history of transitions");
        read
    }
}

/// What one thread did, and to whom nobody else did anything.
#[derive(Clone, Debug, Default)]
struct Lane {
    users: BTreeMap<u64, User>,
    position: u64,
    /// How often each scope took a signal on an item, and their weights in 1e-9.
    taken: BTreeMap<(Scope, u64), (u64, i128)>,
}

impl Lane {
    fn new(thread: u64) -> Self {
        let users = users_of(thread).map(|user| (user, User::default())).collect();
        Self { users, ..Self::default() }
    }

    fn user(&mut self, user: u64) -> &mut User {
        self.users.get_mut(&user).expect("a user of this thread")
    }

    fn signal(&mut self, Sent { user: user_id, item, serial }: Sent) {
        let user = self.user(user_id);
        let is_left = user.is_left();
        user.signals.push((item, serial, is_left));
        let mut scopes = vec![Scope::Global];
        if !is_left {
            scopes.extend(user.communities.iter().map(|community| Scope::Community(*community)));
            scopes.extend(user.region.iter().map(|region| Scope::Cohort(format!("region={region}"))));
        }
        for scope in scopes {
            let (count, sum) = self.taken.entry((scope, item)).or_default();
            *count += 1;
            *sum += i128::from(serial);
        }
    }

    fn take(&mut self, op: &Op) {
        match op {
            Op::Signal(sent) => self.signal(*sent),
            Op::Leave(user) => self.turn(*user, TransitionKind::Leave),
            Op::Rejoin(user) => self.turn(*user, TransitionKind::Rejoin),
            Op::Join(user, community) => {
                self.user(*user).communities.insert(*community);
            }
            Op::Quit(user, community) => {
                self.user(*user).communities.remove(community);
            }
            Op::Region(user, region) => self.user(*user).region = Some(region.to_string()),
            Op::Apply(position, sent) => {
                for sent in sent {
                    self.signal(*sent);
                }
                self.position = position + sent.len() as u64 - 1;
            }
        }
    }

    fn turn(&mut self, user: u64, kind: TransitionKind) {
        let user = self.user(user);
        if user.is_left() != (kind == TransitionKind::Leave) {
            user.transitions.push(kind);
        }
    }
}

/// What was acknowledged of one thread, and what may be there besides.
#[derive(Clone, Debug)]
struct Known {
    /// What must be there.
    sure: Lane,
    /// What came after it, in order: a crash keeps a part from the beginning.
    unsure: Vec<Op>,
    under_way: Option<Op>,
}

/// How much was seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub kills: u64,
    pub kills_in_open: u64,
    pub kills_in_recovery: u64,
    pub acknowledged: u64,
    pub signals: u64,
    pub leaves: u64,
    pub rejoins: u64,
    /// Batched signals that were visible and not yet on disk.
    pub signals_at_risk: u64,
}

#[derive(Debug)]
pub struct Ledger {
    known: Vec<Known>,
    signals_are_durable: bool,
    pub has_acknowledged: bool,
}

impl Ledger {
    pub fn new(signals_are_durable: bool) -> Self {
        let known = |thread| Known { sure: Lane::new(thread), unsure: Vec::new(), under_way: None };
        Self { known: (0..THREADS).map(known).collect(), signals_are_durable, has_acknowledged: false }
    }

    /// Takes one line of the child.
    pub fn hear(&mut self, line: &str, figures: &mut Figures) {
        if let Some((thread, op)) = line.strip_prefix("try ").and_then(|rest| rest.split_once(' ')) {
            let known = &mut self.known[thread.parse::<usize>().unwrap()];
            known.under_way = Some(op.parse().unwrap());
        } else if let Some(thread) = line.strip_prefix("done ") {
            let known = &mut self.known[thread.parse::<usize>().unwrap()];
            let op = known.under_way.take().expect("it was said before it was done");
            figures.acknowledged += 1;
            figures.signals += match &op {
                Op::Signal(_) => 1,
                Op::Apply(_, sent) => sent.len() as u64,
                _ => 0,
            };
            figures.leaves += u64::from(matches!(op, Op::Leave(_)));
            figures.rejoins += u64::from(matches!(op, Op::Rejoin(_)));
            self.has_acknowledged = true;
            let is_durable = self.signals_are_durable || op.is_durable();
            known.unsure.push(op);
            if is_durable {
                for op in known.unsure.drain(..) {
                    known.sure.take(&op);
                }
            }
        }
    }

    /// Compares the reopened database with all that was acknowledged, and takes over what it kept of the rest.
    pub fn compare(&mut self, db: &TidalDb, figures: &mut Figures) {
        let mut taken: BTreeMap<(Scope, u64), (u64, i128)> = BTreeMap::new();
        for (thread, known) in (0..THREADS).zip(&mut self.known) {
            let seen: BTreeMap<_, _> = users_of(thread).map(|user| (user, User::read(db, user))).collect();
            let position = db.position(&source(thread)).unwrap().unwrap_or(0);
            let acknowledged = known.unsure.len();
            let mut rest = std::mem::take(&mut known.unsure);
            rest.extend(known.under_way.take().into_iter().flat_map(single));
            let is_there = |lane: &Lane| lane.users == seen && lane.position == position;
            let mut kept = 0;
            while !is_there(&known.sure) {
                assert!(kept < rest.len(), "{}", lost(&known.sure, &rest, &seen, position));
                known.sure.take(&rest[kept]);
                kept += 1;
            }
            figures.signals_at_risk += acknowledged.saturating_sub(kept) as u64;
            for (scope, (count, sum)) in &known.sure.taken {
                let total = taken.entry(scope.clone()).or_default();
                total.0 += count;
                total.1 += sum;
            }
        }
        let rows = db.aggregates(None).unwrap().map(|row| {
            let row = row.unwrap();
            ((row.scope, row.item), (row.aggregate.count, row.aggregate.weight_nanos))
        });
        assert_eq!(rows.collect::<BTreeMap<_, _>>(), taken, "totals against what was acknowledged");
        assert_eq!(db.verify().unwrap().differences, []);
    }
}

/// A delivery may be kept in part, one event after the other.
fn single(op: Op) -> Vec<Op> {
    match op {
        Op::Apply(first, sent) => {
            (first..).zip(sent).map(|(position, sent)| Op::Apply(position, vec![sent])).collect()
        }
        other => vec![other],
    }
}

fn lost(sure: &Lane, rest: &[Op], seen: &BTreeMap<u64, User>, position: u64) -> String {
    let differ: Vec<_> = seen.iter().filter(|(user, shown)| sure.users[*user] != **shown).collect();
    let should_be: Vec<_> = differ.iter().map(|(user, _)| (*user, &sure.users[*user])).collect();
    format!(
        "position {position}, should be {}; shown\n{differ:?}\nshould be\n{should_be:?}\nwith the last of {rest:?}",
        sure.position
    )
}
