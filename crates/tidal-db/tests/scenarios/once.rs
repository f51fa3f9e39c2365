//! G9: what is delivered again after a crash counts once.

use std::sync::Arc;

use tidal_db::{Action, Config, Event, Weight};
use tidal_storage::MemoryMedium;

use super::{ITEM, Seen, community, config, count, create_on, ok, open_image};
use crate::ensure;

fn events() -> Vec<Event> {
    let weight: Weight = "0.5".parse().expect("a decimal");
    let view = |at_ns, user| Event {
        at_ns,
        action: Action::Signal { user, item: ITEM, signal_type: "view".to_owned(), weight },
    };
    vec![
        Event { at_ns: 10, action: Action::Join { user: 7, community: 1 } },
        view(20, 7),
        Event { at_ns: 30, action: Action::Leave { user: 7 } },
        view(40, 7),
        Event { at_ns: 50, action: Action::Leave { user: 7 } },
        Event { at_ns: 60, action: Action::Rejoin { user: 7 } },
        view(70, 7),
        view(35, 7),
    ]
}

/// A source is delivered, the process dies, and the source is delivered again from its start.
pub fn redelivery_counts_once(adapt: impl Fn(Config) -> Config) -> Seen {
    let (_, first) = config();
    let medium = Arc::new(MemoryMedium::default());
    let db = create_on(&medium, adapt(first))?;
    let report = ok(db.apply("queue", 1, events()))?;
    ensure!((report.applied, report.skipped) == (8, 0), "the first delivery: {report:?}");
    ensure!((report.forwarded, report.withheld.left) == (2, 1), "the first delivery: {report:?}");
    ensure!(report.withheld.away_period == 1, "the first delivery: {report:?}");
    let image = medium.snapshot();
    drop(db);

    let (_, second) = config();
    let db = open_image(image, adapt(second))?;
    let report = ok(db.apply("queue", 1, events()))?;
    ensure!((report.applied, report.skipped) == (0, 8), "the second delivery: {report:?}");
    ensure!(report.position == Some(8), "the second delivery: {report:?}");
    ensure!(count(&db, &community(1))? == 2, "the community took {}", count(&db, &community(1))?);
    Ok(())
}
