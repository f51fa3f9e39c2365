use std::sync::{Mutex, OnceLock};

use super::block::Block;

/// Chunk n holds 4^n blocks, so 14 of them hold more than the 2^26 blocks of all slots.
const CHUNKS: usize = 14;
const CHUNK_BITS: u32 = 2;

/// All blocks at one distance from the items. It grows without ever moving one, so that blocks are
/// found without a lock.
#[derive(Debug, Default)]
pub(super) struct Level {
    chunks: [OnceLock<Box<[Mutex<Block>]>>; CHUNKS],
}

/// In which chunk a block is, and at which place.
#[allow(clippy::cast_possible_truncation, reason = "what is left of a u32 fits a usize")]
fn place(number: u32) -> (u32, usize) {
    // Chunk n begins at block (4^n - 1) / 3.
    let chunk = (3 * u64::from(number) + 1).ilog2() / CHUNK_BITS;
    let begin = ((1_u64 << (CHUNK_BITS * chunk)) - 1) / 3;
    (chunk, (u64::from(number) - begin) as usize)
}

impl Level {
    /// The block of that number, if there is room for it.
    pub(super) fn get(&self, number: u32) -> Option<&Mutex<Block>> {
        let (chunk, offset) = place(number);
        self.chunks.get(chunk as usize)?.get()?.get(offset)
    }

    /// Makes room for the block of that number.
    pub(super) fn make_room(&self, number: u32) {
        let (chunk, _) = place(number);
        if let Some(blocks) = self.chunks.get(chunk as usize) {
            blocks.get_or_init(|| (0..1_u64 << (CHUNK_BITS * chunk)).map(|_| Mutex::default()).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, place};

    #[test]
    fn chunks_follow_each_other() {
        assert_eq!([0, 1, 4, 5, 20, 21].map(place), [(0, 0), (1, 0), (1, 3), (2, 0), (2, 15), (3, 0)]);
        assert_eq!(place(u32::MAX / 64), (13, (1 << 26) - 1 - (4_usize.pow(13) - 1) / 3));
    }

    #[test]
    fn blocks_stay_where_they_are() {
        let level = Level::default();
        assert!(level.get(0).is_none());
        level.make_room(0);
        let first: *const _ = level.get(0).unwrap();
        for number in 1..100 {
            level.make_room(number);
            assert!(level.get(number).is_some());
        }
        assert!(std::ptr::eq(first, level.get(0).unwrap()));
    }
}
