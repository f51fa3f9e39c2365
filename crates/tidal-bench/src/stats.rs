//! Medians, and how far rounds lie apart.

/// What several rounds gave.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    values: Vec<f64>,
}

impl Sample {
    /// Without a round yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a round.
    pub fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    /// In order of size.
    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The middle one.
    #[must_use]
    pub fn median(&self) -> f64 {
        quantile(&self.sorted(), 0.5)
    }

    /// What three quarters are above, and what three quarters are below.
    #[must_use]
    pub fn quartiles(&self) -> (f64, f64) {
        let sorted = self.sorted();
        (quantile(&sorted, 0.25), quantile(&sorted, 0.75))
    }

    /// The rounds in the order in which they were made.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self { values: values.into_iter().collect() }
    }
}

/// What `share` of the sorted values are below.
///
/// # Panics
///
/// If there are none.
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    assert!(!sorted.is_empty(), "nothing was measured");
    let place = (share * sorted.len() as f64) as usize;
    sorted[place.min(sorted.len() - 1)]
}

/// The ratio of two medians, and the quartiles of the ratio round by round: both were measured in turn.
#[must_use]
pub fn ratio(above: &Sample, below: &Sample) -> (f64, (f64, f64)) {
    let by_round: Sample =
        above.values.iter().zip(&below.values).map(|(above, below)| above / below).collect();
    (above.median() / below.median(), by_round.quartiles())
}

#[cfg(test)]
mod tests {
    use super::{Sample, ratio};

    #[test]
    fn the_middle_is_found_in_any_order() {
        let sample: Sample = [5.0, 1.0, 3.0, 2.0, 4.0].into_iter().collect();
        assert_eq!((sample.median(), sample.quartiles()), (3.0, (2.0, 4.0)));
    }

    #[test]
    fn a_ratio_is_of_medians_and_its_spread_of_rounds() {
        let above: Sample = [2.0, 4.0, 90.0].into_iter().collect();
        let below: Sample = [1.0, 2.0, 3.0].into_iter().collect();
        assert_eq!(ratio(&above, &below), (2.0, (2.0, 30.0)));
    }
}
