//! Input that no state of a database makes good.

use tidal_db::{Action, Event, Scope, TidalDb, Window};

use super::answers::must_refuse;
use super::compare::Same;
use super::oracle::Refusal;
use super::transitions::Bad;
use super::world::{ITEMS, SOURCES, USERS};

/// Hands in what is bad; that nothing changed, the comparison after it shows.
pub fn refuse(db: &TidalDb, bad: Bad) -> Same {
    let event = || [Event { at_ns: 1, action: Action::Leave { user: USERS[0] } }];
    match bad {
        Bad::EmptySource => must_refuse(db.apply("", 1, event()), Refusal::Limit),
        Bad::LongSource => must_refuse(db.apply(&"s".repeat(256), 1, event()), Refusal::Limit),
        Bad::LastPosition => must_refuse(db.apply(SOURCES[0], u64::MAX, event()), Refusal::Position),
        Bad::EmptyAttribute => must_refuse(db.set_user_attribute(USERS[0], "", "x"), Refusal::Limit),
        Bad::LongValue => {
            must_refuse(db.set_user_attribute(USERS[0], "region", &"x".repeat(1025)), Refusal::Limit)
        }
        Bad::Cohort => {
            let nobodys = Scope::Cohort("nobody declared it".to_owned());
            must_refuse(db.aggregate(&nobodys, ITEMS[0], "view"), Refusal::Cohort)?;
            must_refuse(db.top_items(&nobodys, "view", 1), Refusal::Cohort)?;
            must_refuse(db.aggregate_window(&nobodys, ITEMS[0], "like", Window::Day), Refusal::Cohort)
        }
        Bad::SignalType => {
            must_refuse(db.aggregate(&Scope::Global, ITEMS[0], "undeclared"), Refusal::SignalType)?;
            must_refuse(db.top_items(&Scope::Global, "undeclared", 1), Refusal::SignalType)?;
            must_refuse(
                db.aggregate_window(&Scope::Global, 1, "undeclared", Window::Hour),
                Refusal::SignalType,
            )
        }
    }
}
