//! Other engines, each keeping a count and a sum of weights for every aggregate. Whoever left is kept out by a set
//! of ids beside them: none of them promises more.

mod fjall;
mod redb;
mod redis;
mod sqlite;
mod tidal;

use std::path::Path;

use tidal_bench::{SignalOf, UpdateKey};

pub(crate) use self::redis::Redis;
pub(crate) use self::{fjall::Fjall, redb::BareTree, sqlite::Sqlite, tidal::Tidal};

/// So many signals are one transaction, or are sent before an answer is waited for.
pub(crate) const SIGNALS_PER_COMMIT: usize = 1_000;

/// A count and a sum of weights.
pub(crate) type Total = (u64, f64);

/// One engine that takes signals.
pub(crate) trait Engine {
    fn name(&self) -> &'static str;

    /// Takes them all; on disk when it returns, as far as the engine promises that.
    fn take(&mut self, signals: &[SignalOf]);

    /// Does what was left to the background.
    fn rest(&mut self) {}

    /// Every aggregate with what it adds up to, in order.
    fn totals(&mut self) -> Vec<(UpdateKey, Total)>;
}

/// All that can be had here; why one is missing, for the reader.
pub(crate) fn all(folder: &Path) -> (Vec<Box<dyn Engine>>, Option<String>) {
    let mut engines: Vec<Box<dyn Engine>> = vec![
        Box::new(Tidal::create(folder)),
        Box::new(Sqlite::create(folder)),
        Box::new(Fjall::create(folder)),
        Box::new(BareTree::create(folder)),
    ];
    match Redis::start(folder) {
        Ok(redis) => engines.push(Box::new(redis)),
        Err(reason) => return (engines, Some(reason)),
    }
    (engines, None)
}

/// A key as bytes whose order is that of the key.
fn key_bytes((scope, item): UpdateKey) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&scope.to_be_bytes());
    bytes[4..].copy_from_slice(&item.to_be_bytes());
    bytes
}

fn key_of(bytes: &[u8]) -> UpdateKey {
    let (scope, item) = bytes.split_at(4);
    (u32::from_be_bytes(scope.try_into().unwrap()), u64::from_be_bytes(item.try_into().unwrap()))
}

/// A count and a sum of weights, as bytes.
fn value_bytes((count, weight): Total) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&count.to_le_bytes());
    bytes[8..].copy_from_slice(&weight.to_le_bytes());
    bytes
}

fn value_of(bytes: &[u8]) -> Total {
    let (count, weight) = bytes.split_at(8);
    (u64::from_le_bytes(count.try_into().unwrap()), f64::from_le_bytes(weight.try_into().unwrap()))
}
