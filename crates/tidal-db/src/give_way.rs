//! Background work in small pieces.
//!
//! A thread that computes without a pause keeps its processor for the milliseconds that the system gives it, and a
//! caller who shares that processor, or waits for a lock of somebody who does, waits as long. One that offers the
//! processor after each small piece of work holds nobody up, and where nobody wants it, loses next to nothing.

use crate::sync::thread;

/// Pieces of work, each well below a microsecond, before others get the processor.
const PIECES: u32 = 256;

/// Counts pieces of work, and lets others have the processor from time to time.
#[derive(Debug, Default)]
pub(crate) struct GiveWay {
    pieces: u32,
}

impl GiveWay {
    /// Another piece is done.
    #[inline]
    pub(crate) fn step(&mut self) {
        self.pieces += 1;
        if self.pieces == PIECES {
            self.pieces = 0;
            thread::yield_now();
        }
    }
}

/// Comparisons that are a piece of work.
const COMPARISONS: u32 = 32;

/// Sorts as `sort_unstable_by_key` does.
pub(crate) fn sort_by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    let mut give_way = GiveWay::default();
    let mut comparisons = 0;
    list.sort_unstable_by(|a, b| {
        comparisons += 1;
        if comparisons == COMPARISONS {
            comparisons = 0;
            give_way.step();
        }
        key(a).cmp(&key(b))
    });
}
