//! The files that a crash can leave.

use super::trace::Trace;
use crate::scenarios::medium::{Step, take_step};

/// A disk writes a sector whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// Up to so many unsynced writes, every subset is tried where the number of images allows.
pub const EXHAUSTIVE_WRITES: u32 = 12;

/// What lies between two syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    begin: usize,
    /// The index of the sync that ends it, or the number of steps.
    pub end: usize,
}

/// What of an interval is on disk.
#[derive(Clone, Debug)]
pub struct Kept {
    writes: Vec<bool>,
    torn: Option<Torn>,
}

/// A write of which a part is there.
#[derive(Clone, Copy, Debug)]
struct Torn {
    write: usize,
    /// How many bytes lie before the cut.
    cut: usize,
    part: Part,
}

/// Which side of a cut. A disk need not write sectors in order.
#[derive(Clone, Copy, Debug)]
enum Part {
    Head,
    Tail,
}

/// The intervals of a trace.
pub fn intervals(steps: &[Step]) -> Vec<Interval> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (index, step) in steps.iter().enumerate() {
        if matches!(step, Step::Sync) {
            found.push(Interval { begin, end: index });
            begin = index + 1;
        }
    }
    found.push(Interval { begin, end: steps.len() });
    found
}

impl Interval {
    /// What may be on disk of the interval, with at most `limit` subsets of whole writes, and half as many torn ones.
    pub fn choices(self, trace: &Trace, limit: usize, seed: u64) -> Vec<Kept> {
        let steps = &trace.steps[self.begin..self.end];
        let mut random = Random(seed ^ (self.begin as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut choices = subsets(steps.len(), limit, &mut random);
        choices.extend(torn(steps, limit.div_ceil(2), &mut random));
        choices
    }

    /// Whether [`choices`](Self::choices) has every subset of whole writes.
    pub fn is_exhaustive(self, limit: usize) -> bool {
        is_exhaustive(self.end - self.begin, limit)
    }

    /// The file as it is when all before the interval was synced.
    pub fn base(self, trace: &Trace) -> Vec<u8> {
        let mut base = trace.base.clone();
        for step in &trace.steps[..self.begin] {
            take_step(&mut base, step);
        }
        base
    }

    /// The file with what was kept.
    pub fn image(self, trace: &Trace, base: &[u8], kept: &Kept) -> Vec<u8> {
        let mut image = base.to_vec();
        for (index, step) in trace.steps[self.begin..self.end].iter().enumerate() {
            match (kept.torn, step) {
                (Some(torn), Step::Write { offset, bytes }) if torn.write == index => {
                    let (offset, bytes) = match torn.part {
                        Part::Head => (*offset, &bytes[..torn.cut]),
                        Part::Tail => (*offset + torn.cut as u64, &bytes[torn.cut..]),
                    };
                    take_step(&mut image, &Step::Write { offset, bytes: bytes.to_vec() });
                }
                _ if kept.writes[index] => take_step(&mut image, step),
                _ => {}
            }
        }
        image
    }
}

fn is_exhaustive(writes: usize, limit: usize) -> bool {
    writes <= EXHAUSTIVE_WRITES as usize && 1 << writes <= limit
}

fn subsets(writes: usize, limit: usize, random: &mut Random) -> Vec<Kept> {
    let whole = |writes: Vec<bool>| Kept { writes, torn: None };
    if is_exhaustive(writes, limit) {
        return (0..1_usize << writes)
            .map(|mask| whole((0..writes).map(|write| mask >> write & 1 == 1).collect()))
            .collect();
    }
    // None, all, each order kept up to a point, all but one: then by chance.
    let mut chosen: Vec<Vec<bool>> = vec![vec![true; writes], vec![false; writes]];
    chosen.extend((1..writes).map(|len| (0..writes).map(|write| write < len).collect()));
    chosen.extend((0..writes).map(|lost| (0..writes).map(|write| write != lost).collect()));
    chosen.truncate(limit);
    while chosen.len() < limit {
        chosen.push((0..writes).map(|_| random.next() & 1 == 1).collect());
    }
    chosen.into_iter().map(whole).collect()
}

/// Each write of more than a sector, cut after each of its sectors, of which one side or the other is there: with all
/// others, with those before it only, and with some.
fn torn(steps: &[Step], limit: usize, random: &mut Random) -> Vec<Kept> {
    let mut chosen = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let Step::Write { offset, bytes } = step else { continue };
        let mut len = SECTOR_BYTES - offset % SECTOR_BYTES;
        while len < bytes.len() as u64 {
            let cut = usize::try_from(len).expect("a small write");
            let some = random.next();
            for (part, way) in
                [Part::Head, Part::Tail].into_iter().flat_map(|part| (0..3).map(move |way| (part, way)))
            {
                let torn = Some(Torn { write: index, cut, part });
                let keeps = |other: usize| match way {
                    0 => true,
                    1 => other < index,
                    _ => some >> (other % 64) & 1 == 1,
                };
                chosen.push(Kept { writes: (0..steps.len()).map(keeps).collect(), torn });
            }
            len += SECTOR_BYTES;
        }
    }
    while chosen.len() > limit {
        let index = usize::try_from(random.next() % chosen.len() as u64).expect("an index");
        chosen.swap_remove(index);
    }
    chosen
}

/// Splitmix64: the same images for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
