//! G3 to G8, each in its simplest form.

use std::sync::Arc;

use tidal_db::{Config, MembershipStatus, Scope, Storage, TidalDb, Withheld};
use tidal_keys::{EntityId, Tag, encode_key};
use tidal_storage::MemoryMedium;

use super::{ITEM, Seen, community, config, count, create_on, ok, open_image, settle_in, three_counts};
use crate::ensure;

/// G3: who left is still out when the database was opened again.
pub fn a_leave_survives_reopening(adapt: impl Fn(Config) -> Config) -> Seen {
    let (_, first) = config();
    let medium = Arc::new(MemoryMedium::default());
    let db = create_on(&medium, adapt(first))?;
    settle_in(&db)?;
    ok(db.leave_community_layer(7))?;
    ok(db.close())?;

    let (_, second) = config();
    let db = open_image(medium.snapshot(), adapt(second))?;
    let receipt = ok(db.signal(7, ITEM, "view", 1.0))?;
    ensure!(receipt.withheld == Some(Withheld::Left), "the receipt says {receipt:?}");
    ensure!(three_counts(&db)? == [0; 3], "the scopes took {:?}", three_counts(&db)?);
    let status = db.community_layer_status(7);
    ensure!(status.left_at_ns == Some(1_000), "the status is {status:?}");
    Ok(())
}

/// G1: whatever let a signal through after a leave, the log shows it, and so does `verify`.
pub fn nothing_was_forwarded_after_a_leave(adapt: impl Fn(Config) -> Config) -> Seen {
    let (_, first) = config();
    let medium = Arc::new(MemoryMedium::default());
    let db = create_on(&medium, first)?;
    settle_in(&db)?;
    ok(db.leave_community_layer(7))?;
    ok(db.close())?;

    let medium = Arc::new(MemoryMedium::from_bytes(medium.snapshot()));
    let (_, second) = config();
    let storage = ok(Storage::options().open_on(medium.clone()))?;
    let db = ok(TidalDb::from_parts(storage, adapt(second)))?;
    ok(db.signal(7, ITEM, "view", 1.0))?;
    ok(db.close())?;

    let (_, third) = config();
    let db = open_image(medium.snapshot(), third)?;
    let differences = ok(db.verify())?.differences;
    ensure!(differences.is_empty(), "verify names {differences:?}");
    Ok(())
}

/// G3: a record that does not decode counts as Left, and only a repair opens the way back.
pub fn a_damaged_record_shuts_the_gate(adapt: impl Fn(Config) -> Config) -> Seen {
    let (_, first) = config();
    let medium = Arc::new(MemoryMedium::default());
    let db = create_on(&medium, adapt(first))?;
    settle_in(&db)?;
    ok(db.close())?;

    let key = encode_key(EntityId::new(7), Tag::CommunityLeave, b"");
    let storage = ok(Storage::options().open_on(medium.clone()))?;
    ok(storage.users_engine().put(&key, &[0; 8]))?;
    ok(storage.close())?;

    let (_, second) = config();
    let db = open_image(medium.snapshot(), adapt(second))?;
    let found: Vec<u64> = db.open_report().damaged.iter().map(|record| record.user_id).collect();
    ensure!(found == [7], "the report names {found:?}");
    let receipt = ok(db.signal(7, ITEM, "view", 1.0))?;
    ensure!(receipt.withheld == Some(Withheld::Unknown), "the receipt says {receipt:?}");
    ensure!(db.withheld_counts().unknown == 1, "counted are {:?}", db.withheld_counts());
    ensure!(db.rejoin_community_layer(7).is_err(), "a rejoin was believed");
    ok(db.repair_community_layer(7))?;
    let receipt = ok(db.signal(7, ITEM, "view", 1.0))?;
    ensure!(receipt.withheld == Some(Withheld::Left), "after the repair the receipt says {receipt:?}");
    ok(db.rejoin_community_layer(7))?;
    ok(db.signal(7, ITEM, "view", 1.0))?;
    ensure!(three_counts(&db)? == [1; 3], "the scopes took {:?}", three_counts(&db)?);
    Ok(())
}

/// G4: the user's history and the item's global aggregate take every signal.
pub fn history_is_untouched(adapt: impl Fn(Config) -> Config) -> Seen {
    let (_, config) = config();
    let db = ok(adapt(config).ephemeral().open())?;
    settle_in(&db)?;
    ok(db.signal(7, ITEM, "view", 1.0))?;
    ok(db.leave_community_layer(7))?;
    for _ in 0..3 {
        ok(db.signal(7, ITEM, "view", 1.0))?;
    }
    ok(db.rejoin_community_layer(7))?;
    ok(db.signal(7, ITEM, "view", 1.0))?;
    let history = ok(ok(db.history(7))?.collect::<Result<Vec<_>, _>>())?;
    ensure!(history.len() == 5, "the history holds {} of 5 signals", history.len());
    ensure!(history.is_sorted_by_key(|event| event.sequence), "the history is out of order");
    ensure!(count(&db, &Scope::Global)? == 5, "the item took {}", count(&db, &Scope::Global)?);
    ensure!(three_counts(&db)? == [2; 3], "the scopes took {:?}", three_counts(&db)?);
    Ok(())
}

/// G5: an event of an away period is withheld whenever it arrives; the ends of the period are exact.
pub fn late_events_are_withheld(adapt: impl Fn(Config) -> Config) -> Seen {
    let (clock, first) = config();
    let medium = Arc::new(MemoryMedium::default());
    let db = create_on(&medium, adapt(first))?;
    ok(db.join_community(7, 1))?;
    clock.set(2_000);
    ok(db.leave_community_layer(7))?;
    clock.set(3_000);
    ok(db.rejoin_community_layer(7))?;
    let late = [
        (1_999, None),
        (2_000, Some(Withheld::AwayPeriod)),
        (2_999, Some(Withheld::AwayPeriod)),
        (3_000, None),
    ];
    for (at_ns, wanted) in late {
        let receipt = ok(db.signal_at(7, ITEM, "view", 1.0, at_ns))?;
        ensure!(receipt.withheld == wanted, "at {at_ns}: {receipt:?}");
    }
    // A signal that happens now is never late, even if the clock stepped back into the period.
    clock.set(2_500);
    let receipt = ok(db.signal(7, ITEM, "view", 1.0))?;
    ensure!(receipt.withheld.is_none(), "now, with the clock set back: {receipt:?}");
    ok(db.close())?;

    let (_, second) = config();
    let db = open_image(medium.snapshot(), adapt(second))?;
    let receipt = ok(db.signal_at(7, ITEM, "view", 1.0, 2_500))?;
    ensure!(receipt.withheld == Some(Withheld::AwayPeriod), "after a restart: {receipt:?}");
    ensure!(count(&db, &community(1))? == 3, "the community took {}", count(&db, &community(1))?);
    Ok(())
}

/// G6: the first leave of an away period counts, and repeating it changes nothing.
pub fn the_first_leave_counts(adapt: impl Fn(Config) -> Config) -> Seen {
    let (clock, config) = config();
    let db = ok(adapt(config).ephemeral().open())?;
    for at_ns in [100, 999, 50] {
        clock.set(at_ns);
        let membership = ok(db.leave_community_layer(7))?;
        ensure!(membership.left_at_ns == Some(100), "leaving at {at_ns}: {membership:?}");
    }
    let history = ok(db.membership_history(7))?;
    ensure!(history.len() == 1, "the history holds {history:?}");
    clock.set(70);
    let back = ok(db.rejoin_community_layer(7))?;
    ensure!(back.status == MembershipStatus::Active && back.left_at_ns == Some(100), "back as {back:?}");
    ok(db.rejoin_community_layer(7))?;
    ensure!(ok(db.membership_history(7))?.len() == 2, "a repeated rejoin is in the history");
    Ok(())
}

/// G7: what is stored and what is in memory is what the log gives, before and after reopening.
pub fn views_follow_the_events(adapt: impl Fn(Config) -> Config) -> Seen {
    let (clock, first) = config();
    let medium = Arc::new(MemoryMedium::default());
    let db = create_on(&medium, adapt(first.recovery_entries(8)))?;
    settle_in(&db)?;
    for turn in 0..40 {
        clock.advance(1_000);
        ok(db.signal_at(7, ITEM + turn % 3, "view", if turn % 4 == 0 { -0.5 } else { 2.25 }, 1_000 + turn))?;
        match turn {
            10 => drop(ok(db.leave_community_layer(7))?),
            20 => drop(ok(db.rejoin_community_layer(7))?),
            25 => ok(db.quit_community(7, 2))?,
            30 => drop(ok(db.leave_community_layer(8))?),
            // What is kept for the next question must follow the signals after this one.
            35 => drop(ok(db.top_items(&Scope::Global, "view", 2))?),
            _ => {}
        }
    }
    let report = ok(db.verify())?;
    ensure!(report.differences.is_empty(), "verify names {:?}", report.differences);
    ensure!(report.entries == db.durable_sequence(), "verify read {} entries", report.entries);
    ok(db.close())?;
    let (_, second) = config();
    let db = open_image(medium.snapshot(), adapt(second))?;
    let report = ok(db.verify())?;
    ensure!(report.differences.is_empty(), "after reopening, verify names {:?}", report.differences);
    ensure!(report.aggregates > 0, "verify compared no aggregate");
    Ok(())
}

/// G8: every withheld signal is counted by its reason.
pub fn what_is_withheld_is_said(adapt: impl Fn(Config) -> Config) -> Seen {
    let (_, config) = config();
    let db = ok(adapt(config).ephemeral().open())?;
    ok(db.leave_community_layer(7))?;
    for _ in 0..5 {
        let receipt = ok(db.signal(7, ITEM, "view", 1.0))?;
        ensure!(receipt.withheld == Some(Withheld::Left), "the receipt says {receipt:?}");
    }
    let counts = db.withheld_counts();
    ensure!(counts.left == 5 && counts.total() == 5, "counted are {counts:?}");
    Ok(())
}
