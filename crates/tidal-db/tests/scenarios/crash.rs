//! G2: whatever subset of the unsynced writes a crash leaves, what was acknowledged is there.

use std::sync::Arc;

use tidal_db::{Action, CommunityMembership, Config, Event, Scope, Storage, TidalDb, Weight};
use tidal_storage::WriteBatch;

use super::medium::{RecordingMedium, Step, take_step};
use super::{ITEM, Seen, community, config, count, ok, open_image, region};
use crate::ensure;

/// Up to so many unsynced writes, every subset is tried; above, as many chosen by a fixed rule.
const EXHAUSTIVE_WRITES: u32 = 6;

/// Everything that can be asked about the users of the script.
#[derive(Clone, Debug, PartialEq)]
struct Visible {
    statuses: Vec<CommunityMembership>,
    communities: Vec<Vec<u64>>,
    counts: Vec<u64>,
    history_lens: Vec<usize>,
    transitions: Vec<usize>,
}

fn visible(db: &TidalDb) -> Seen<Visible> {
    let users = [7, 8];
    let scopes = [Scope::Global, community(1), community(2), region("Wales")];
    Ok(Visible {
        statuses: users.iter().map(|user| db.community_layer_status(*user)).collect(),
        communities: users.iter().map(|user| db.communities_of(*user)).collect(),
        counts: scopes.iter().map(|scope| count(db, scope)).collect::<Seen<_>>()?,
        history_lens: users.iter().map(|user| Ok(ok(db.history(*user))?.count())).collect::<Seen<_>>()?,
        transitions: users
            .iter()
            .map(|user| Ok(ok(db.membership_history(*user))?.len()))
            .collect::<Seen<_>>()?,
    })
}

/// The script: each step is one durable call.
fn script() -> Vec<fn(&TidalDb) -> tidal_db::Result<()>> {
    vec![
        |db| db.join_community(7, 1),
        |db| db.signal(7, ITEM, "view", 1.0).map(drop),
        |db| db.leave_community_layer(7).map(drop),
        |db| db.signal(7, ITEM, "view", 1.0).map(drop),
        |db| db.leave_community_layer(8).map(drop),
        |db| db.rejoin_community_layer(7).map(drop),
        |db| db.set_user_attribute(7, "region", "Wales"),
        |db| db.signal(7, ITEM, "view", 2.0).map(drop),
        |db| db.quit_community(7, 1),
        |db| db.leave_community_layer(7).map(drop),
        |db| db.signal(7, ITEM, "view", 1.0).map(drop),
        |db| db.apply("queue", 1, [view(8), join(8), view(7)]).map(drop),
    ]
}

fn view(user: u64) -> Event {
    let action = Action::Signal { user, item: ITEM, signal_type: "view".to_owned(), weight: Weight::ONE };
    Event { at_ns: 2_000, action }
}

fn join(user: u64) -> Event {
    Event { at_ns: 1_500, action: Action::Join { user, community: 2 } }
}

/// Runs the script, then opens every image that a crash could have left at any moment of it: it
/// must show the last acknowledged state, or that of the call under way. Returns how many images.
pub fn every_crash_keeps_what_was_acknowledged(adapt: impl Fn(Config) -> Config) -> Seen<usize> {
    let medium = Arc::new(RecordingMedium::default());
    let storage = ok(Storage::options().create_on(medium.clone(), WriteBatch::new()))?;
    let (_, config) = config();
    let db = ok(TidalDb::from_parts(storage, adapt(config)))?;
    let mut acknowledged = vec![(medium.steps_len(), visible(&db)?)];
    for step in script() {
        ok(step(&db))?;
        acknowledged.push((medium.steps_len(), visible(&db)?));
    }
    let steps = medium.steps();
    std::mem::forget(db);

    let mut images = 0;
    for pair in acknowledged.windows(2) {
        let [(from, before), (to, after)] = pair else { continue };
        for crash_at in *from..=*to {
            for image in images_at(&steps, crash_at) {
                let (_, config) = super::config();
                let seen = visible(&open_image(image, adapt(config))?)?;
                let allowed = seen == *before && crash_at < *to || seen == *after;
                ensure!(
                    allowed || (crash_at == *from && seen == *before),
                    "a crash after {crash_at} of {} writes shows {seen:?}, acknowledged was {before:?}",
                    steps.len()
                );
                images += 1;
            }
        }
    }
    Ok(images)
}

/// Every file that a crash after `crash_at` steps can leave: all that was synced, and any subset of
/// what was not.
fn images_at(steps: &[Step], crash_at: usize) -> Vec<Vec<u8>> {
    let done = &steps[..crash_at];
    let synced_len = done.iter().rposition(|step| matches!(step, Step::Sync)).map_or(0, |sync| sync + 1);
    let (synced, unsynced) = done.split_at(synced_len);
    let mut base = Vec::new();
    for step in synced {
        take_step(&mut base, step);
    }
    let subset = |mask: u64| {
        let mut image = base.clone();
        for (place, step) in unsynced.iter().enumerate() {
            if mask >> (place % 64) & 1 == 1 {
                take_step(&mut image, step);
            }
        }
        image
    };
    let writes = u32::try_from(unsynced.len()).expect("few writes between two syncs");
    if writes <= EXHAUSTIVE_WRITES {
        return (0..1 << writes).map(subset).collect();
    }
    // All of them, as a killed process leaves the file, and multiples of a large odd number, which spread
    // over all bits; the first of these is none at all.
    let spread = (0..1_u64 << EXHAUSTIVE_WRITES).map(|nth| nth.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    spread.chain([u64::MAX]).map(subset).collect()
}
