//! What a row hands on: one JSON object a line, to standard output.

use serde::Serialize;

/// The bound that a figure is to keep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// It may be as much, or less.
    AtMost(f64),
    /// It may be as much, or more.
    AtLeast(f64),
}

/// One measured number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    /// Of rounds that were measured in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    quartiles: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Bound>,
    /// What keeps it from being better.
    #[serde(skip_serializing_if = "Option::is_none")]
    bounded_by: Option<&'static str>,
}

impl Figure {
    /// A number without a target: it is stated.
    #[must_use]
    pub fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, unit, quartiles: None, target: None, bounded_by: None }
    }

    /// Says how far the rounds lie apart.
    #[must_use]
    pub fn between(mut self, quartiles: (f64, f64)) -> Self {
        self.quartiles = Some(quartiles);
        self
    }

    /// Says what it is to be.
    #[must_use]
    pub fn target(mut self, bound: Bound) -> Self {
        self.target = Some(bound);
        self
    }

    /// Says what keeps it from being better, in a sentence.
    #[must_use]
    pub fn bounded_by(mut self, sentence: &'static str) -> Self {
        self.bounded_by = Some(sentence);
        self
    }

    /// Hands it on.
    pub fn print(self) {
        Line::Figure(self).print();
    }
}

/// What a row may say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// One number.
    Figure(Figure),
    /// A point of a curve.
    Point {
        /// The chart that it belongs to.
        chart: &'static str,
        /// The curve.
        series: String,
        /// How much data there is.
        x: f64,
        /// What it costs.
        y: f64,
    },
    /// A figure that has a target and cannot be measured here.
    NotMeasured {
        /// What it would say.
        what: String,
        /// What it is to be.
        target: Bound,
        /// Why it is not there.
        reason: String,
    },
    /// A sentence for the reader.
    Note {
        /// The sentence.
        text: String,
    },
}

impl Line {
    /// Hands it on.
    pub fn print(&self) {
        let line = serde_json::to_string(self).expect("numbers and texts");
        println!("{line}");
    }
}

/// Hands on a point of a curve.
pub fn point(chart: &'static str, series: impl Into<String>, x: f64, y: f64) {
    Line::Point { chart, series: series.into(), x, y }.print();
}

/// Hands on that a figure with a target is missing, and why.
pub fn not_measured(what: impl Into<String>, target: Bound, reason: impl Into<String>) {
    Line::NotMeasured { what: what.into(), target, reason: reason.into() }.print();
}

/// Hands on a sentence.
pub fn note(text: impl Into<String>) {
    Line::Note { text: text.into() }.print();
}

#[cfg(test)]
mod tests {
    use super::{Bound, Figure, Line};

    #[test]
    fn a_figure_is_one_line_of_json() {
        let figure = Figure::new("a", 1.5, "times").between((1.0, 2.0)).target(Bound::AtMost(1.05));
        let line = serde_json::to_string(&Line::Figure(figure)).unwrap();
        assert_eq!(
            line,
            r#"{"kind":"figure","what":"a","value":1.5,"unit":"times","quartiles":[1.0,2.0],"target":{"at_most":1.05}}"#
        );
    }
}
