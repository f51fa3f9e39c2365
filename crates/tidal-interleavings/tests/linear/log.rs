//! What the log has of one user, against what the calls were told.

use std::collections::HashMap;

use tidal_interleavings::{TransitionKind, Withheld};

use crate::act::{Call, Said};
use crate::stage::{Seen, SettledUser};

/// The history holds every signal once, with the answer that its caller got; leaves and rejoins alternate, none of
/// them dated before another that it follows; and no signal stands after a leave that was let through.
pub fn tells_the_same(of: &SettledUser, calls: &[Call]) -> Seen {
    let kinds: Vec<_> = of.transitions.iter().map(|transition| transition.kind).collect();
    if kinds
        .chunks(2)
        .any(|pair| pair[0] != TransitionKind::Leave || pair.get(1) == Some(&TransitionKind::Leave))
    {
        return Err(format!("two rejoins or two leaves follow each other: {kinds:?}"));
    }
    // The clock of a stage never steps back.
    if !of.transitions.is_sorted_by_key(|transition| transition.at_ns) {
        return Err(format!("a transition is dated before the one that it follows: {:?}", of.transitions));
    }
    let mut told: HashMap<i128, Option<Withheld>> = HashMap::new();
    for call in calls.iter().filter(|call| call.user == of.user) {
        if let Said::Signal { mark, withheld, .. } = call.said {
            told.insert(i128::from(mark), withheld);
        }
    }
    for event in &of.history {
        let mark = i128::from(event.weight.nanos());
        if told.remove(&mark) != Some(event.withheld) {
            return Err(format!("the history has {event:?}, which is not what its caller was told"));
        }
        let before = of.transitions.iter().take_while(|transition| transition.sequence < event.sequence);
        let last = before.last().map(|transition| transition.kind);
        // A rejoin is in the log a while before it opens the gate; a leave shuts it at once.
        let fits = match event.withheld {
            None => last != Some(TransitionKind::Leave),
            Some(_) => last.is_some(),
        };
        if !fits {
            return Err(format!(
                "signal {} is withheld as {:?} after {last:?}",
                event.sequence, event.withheld
            ));
        }
    }
    if told.is_empty() { Ok(()) } else { Err(format!("signals are not in the history: {told:?}")) }
}
