//! Numbers that only look random, the same in every run.

/// A stream of such numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// A stream of its own for each seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.roll() >> 11) % bound
    }
}

/// Items by Zipf's law with exponent 1: the second is asked for half as often as the first.
#[derive(Clone, Debug)]
pub struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    /// Over items from 0 up to `items`.
    #[must_use]
    pub fn over(items: usize) -> Self {
        let mut total = 0.0;
        let cumulative = (1..=items)
            .map(|rank| {
                total += 1.0 / rank as f64;
                total
            })
            .collect();
        Self { cumulative }
    }

    /// The next item.
    pub fn next(&self, dice: &mut Dice) -> u64 {
        let total = self.cumulative.last().copied().unwrap_or_default();
        let point = dice.roll() as f64 / u64::MAX as f64 * total;
        let item = self.cumulative.partition_point(|sum| *sum < point);
        item.min(self.cumulative.len() - 1) as u64
    }
}
