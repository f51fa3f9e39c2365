//! All that can be asked about the users of the workloads, without the numbers of entries: a source that is
//! delivered in two parts has more of these and means the same.

use tidal_db::{Aggregate, CommunityMembership, HistoryEvent, Scope, TidalDb, TransitionKind, Withheld};

use crate::scenarios::{Seen, ok};

/// The users of the workloads.
pub const USERS: [u64; 5] = [0, 7, 8, 9, u64::MAX];

/// The source that the workloads apply.
pub const SOURCE: &str = "queue";

/// What a database shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Visible {
    aggregates: Vec<(Scope, u64, String, Aggregate)>,
    left: Vec<CommunityMembership>,
    users: Vec<VisibleUser>,
    position: Option<u64>,
    withheld: [u64; 3],
}

#[derive(Clone, Debug, PartialEq)]
struct VisibleUser {
    status: CommunityMembership,
    transitions: Vec<(TransitionKind, u64)>,
    communities: Vec<u64>,
    region: Option<String>,
    signals: Vec<(u64, i64, u64, Option<Withheld>)>,
}

pub fn visible(db: &TidalDb) -> Seen<Visible> {
    let mut aggregates = Vec::new();
    for row in ok(db.aggregates(None))? {
        let row = ok(row)?;
        aggregates.push((row.scope, row.item, row.signal_type, row.aggregate));
    }
    let counts = db.withheld_counts();
    Ok(Visible {
        aggregates,
        left: db.left_users(),
        users: USERS.into_iter().map(|user| visible_user(db, user)).collect::<Seen<_>>()?,
        position: ok(db.position(SOURCE))?,
        withheld: [counts.left, counts.away_period, counts.unknown],
    })
}

fn visible_user(db: &TidalDb, user: u64) -> Seen<VisibleUser> {
    let shown = |event: HistoryEvent| (event.item, event.weight.nanos(), event.event_time_ns, event.withheld);
    let transitions = ok(db.membership_history(user))?;
    Ok(VisibleUser {
        status: db.community_layer_status(user),
        transitions: transitions.iter().map(|transition| (transition.kind, transition.at_ns)).collect(),
        communities: db.communities_of(user),
        region: db.user_attribute(user, "region"),
        signals: ok(db.history(user))?.map(|event| Ok(shown(ok(event)?))).collect::<Seen<_>>()?,
    })
}
