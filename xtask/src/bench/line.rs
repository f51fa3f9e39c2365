//! What a row says, one JSON object a line.

use serde::Deserialize;

/// The bound that a figure is to keep.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// One measured number.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    pub(crate) quartiles: Option<(f64, f64)>,
    pub(crate) target: Option<Bound>,
    pub(crate) bounded_by: Option<String>,
}

impl Figure {
    /// Whether the target is kept; `None` without one.
    pub(crate) fn passes(&self) -> Option<bool> {
        self.target.map(|target| match target {
            Bound::AtMost(bound) => self.value <= bound,
            Bound::AtLeast(bound) => self.value >= bound,
        })
    }
}

/// A point of a curve.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Point {
    pub(crate) chart: String,
    pub(crate) series: String,
    pub(crate) x: f64,
    pub(crate) y: f64,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Line {
    Figure(Figure),
    Point(Point),
    /// A figure that has a target and could not be measured.
    NotMeasured {
        what: String,
        target: Bound,
        reason: String,
    },
    Note {
        text: String,
    },
}

impl Line {
    /// Reads one line of a row's output.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| format!("the row printed `{line}`: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, Figure, Line};

    fn figure(value: f64, target: Option<Bound>) -> Figure {
        Figure { what: "a".into(), value, unit: "times".into(), quartiles: None, target, bounded_by: None }
    }

    #[test]
    fn a_line_of_a_row_is_read() {
        let text = r#"{"kind":"figure","what":"a","value":1.5,"unit":"times","target":{"at_most":1.05}}"#;
        assert_eq!(Line::parse(text).unwrap(), Line::Figure(figure(1.5, Some(Bound::AtMost(1.05)))));
        let text = r#"{"kind":"note","text":"b"}"#;
        assert_eq!(Line::parse(text).unwrap(), Line::Note { text: "b".into() });
        let text = r#"{"kind":"not_measured","what":"a","target":{"at_least":10.0},"reason":"c"}"#;
        let target = Bound::AtLeast(10.0);
        assert_eq!(
            Line::parse(text).unwrap(),
            Line::NotMeasured { what: "a".into(), target, reason: "c".into() }
        );
        assert!(Line::parse("12").unwrap_err().contains("`12`"));
    }

    #[test]
    fn a_figure_on_its_bound_passes() {
        assert_eq!(figure(1.05, Some(Bound::AtMost(1.05))).passes(), Some(true));
        assert_eq!(figure(1.051, Some(Bound::AtMost(1.05))).passes(), Some(false));
        assert_eq!(figure(20.0, Some(Bound::AtLeast(20.0))).passes(), Some(true));
        assert_eq!(figure(19.9, Some(Bound::AtLeast(20.0))).passes(), Some(false));
        assert_eq!(figure(1.0, None).passes(), None);
        // What is no number keeps no bound.
        assert_eq!(figure(f64::NAN, Some(Bound::AtMost(1.0))).passes(), Some(false));
        assert_eq!(figure(f64::NAN, Some(Bound::AtLeast(1.0))).passes(), Some(false));
    }
}
