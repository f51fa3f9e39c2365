//! Curves as SVG: by powers of ten, or what lies closer together by even steps.

use std::fmt::Write as _;

use super::line::Point;
use super::number::short;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 4] = ["#1f6fb4", "#c8501e", "#3a8a4d", "#7b4fa3"];

/// What one side of a chart spans.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Axis {
    /// From one power of ten to another.
    Powers { low: f64, high: f64 },
    /// From one multiple of a step to another.
    Steps { low: f64, high: f64, step: f64 },
}

impl Axis {
    /// Whole powers of ten that hold all values, at least one.
    fn powers_around(values: impl Iterator<Item = f64>) -> Self {
        let Some((low, high)) = span(values) else { return Self::Powers { low: 0.0, high: 1.0 } };
        let (low, high) = (low.log10().floor(), high.log10().ceil());
        Self::Powers { low, high: if high > low { high } else { low + 1.0 } }
    }

    /// The same, but even steps where that would draw all values as one line.
    fn around(values: impl Iterator<Item = f64> + Clone) -> Self {
        match span(values.clone()) {
            Some((low, high)) if high > low && high < 10.0 * low => {
                let step = round_step((high - low) / 3.0);
                Self::Steps { low: (low / step).floor(), high: (high / step).ceil(), step }
            }
            _ => Self::powers_around(values),
        }
    }

    /// Where a value lies, from 0 to 1.
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Powers { low, high } => (value.log10() - low) / (high - low),
            Self::Steps { low, high, step } => (value / step - low) / (high - low),
        }
    }

    /// The values that get a line and a label.
    fn ticks(self) -> Vec<f64> {
        let whole = |low, high| {
            std::iter::successors(Some(low), |nth| Some(nth + 1.0)).take_while(move |nth| *nth <= high)
        };
        match self {
            Self::Powers { low, high } => whole(low, high).map(|power| 10_f64.powf(power)).collect(),
            Self::Steps { low, high, step } => whole(low, high).map(|nth| nth * step).collect(),
        }
    }
}

/// The least and the greatest of what can be drawn.
fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| *value > 0.0 && value.is_finite()).fold(None, |span, value| {
        let (low, high) = span.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

/// 1, 2 or 5 times a power of ten, not below what is asked for.
fn round_step(at_least: f64) -> f64 {
    let power = 10_f64.powf(at_least.log10().floor());
    [1.0, 2.0, 5.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|step| *step >= at_least)
        .unwrap_or(10.0 * power)
}

/// One chart: a curve for each series, in the order in which they first appear.
pub(crate) fn svg(title: &str, x_label: &str, y_label: &str, points: &[Point]) -> String {
    let x_axis = Axis::powers_around(points.iter().map(|point| point.x));
    let y_axis = Axis::around(points.iter().map(|point| point.y));
    let x_of = |value: f64| LEFT + x_axis.place(value) * (WIDTH - LEFT - RIGHT);
    let y_of = |value: f64| HEIGHT - BOTTOM - y_axis.place(value) * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    text(&mut svg, (LEFT, 20.0), "start", title);
    text(&mut svg, (f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 10.0), "middle", x_label);
    text(&mut svg, (LEFT, TOP - 4.0), "start", y_label);
    for tick in x_axis.ticks() {
        line(&mut svg, (x_of(tick), TOP), (x_of(tick), HEIGHT - BOTTOM));
        text(&mut svg, (x_of(tick), HEIGHT - BOTTOM + 18.0), "middle", &short(tick));
    }
    for tick in y_axis.ticks() {
        line(&mut svg, (LEFT, y_of(tick)), (WIDTH - RIGHT, y_of(tick)));
        text(&mut svg, (LEFT - 6.0, y_of(tick) + 4.0), "end", &short(tick));
    }
    for ((series, colour), row) in series_of(points).into_iter().zip(COLOURS.iter().cycle()).zip(0_u8..) {
        let own: Vec<_> = points
            .iter()
            .filter(|point| point.series == series && point.x > 0.0 && point.y > 0.0)
            .map(|point| (x_of(point.x), y_of(point.y), point.y))
            .collect();
        let path: Vec<String> = own.iter().map(|(x, y, _)| format!("{x:.1},{y:.1}")).collect();
        push(
            &mut svg,
            format_args!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n",
                path.join(" ")
            ),
        );
        for (x, y, value) in own {
            push(&mut svg, format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>\n"));
            // Above and below in turn, so that curves that lie close can both be read.
            let label_y = if row % 2 == 0 { y - 8.0 } else { y + 16.0 };
            text(&mut svg, (x, label_y), "middle", &short(value));
        }
        let y = TOP + 14.0 + 16.0 * f64::from(row);
        push(
            &mut svg,
            format_args!(
                "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"4\" fill=\"{colour}\"/>\n",
                LEFT + 8.0,
                y - 6.0
            ),
        );
        text(&mut svg, (LEFT + 26.0, y), "start", &series);
    }
    svg.push_str("</svg>\n");
    svg
}

fn series_of(points: &[Point]) -> Vec<String> {
    let mut series: Vec<String> = Vec::new();
    for point in points {
        if !series.contains(&point.series) {
            series.push(point.series.clone());
        }
    }
    series
}

fn push(svg: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _infallible = svg.write_fmt(piece);
}

fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    push(
        svg,
        format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#dddddd\"/>\n"
        ),
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, content: &str) {
    let escaped = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    push(svg, format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{escaped}</text>\n"));
}

#[cfg(test)]
mod tests {
    use super::super::line::Point;
    use super::{Axis, svg};

    fn point(series: &str, x: f64, y: f64) -> Point {
        Point { chart: "a".into(), series: series.into(), x, y }
    }

    #[test]
    fn an_axis_holds_all_values_in_whole_powers() {
        assert_eq!(Axis::around([20.0, 3_000.0].into_iter()), Axis::Powers { low: 1.0, high: 4.0 });
        assert_eq!(Axis::around([100.0].into_iter()), Axis::Powers { low: 2.0, high: 3.0 });
        assert_eq!(Axis::around(std::iter::empty()), Axis::Powers { low: 0.0, high: 1.0 });
    }

    #[test]
    fn what_lies_close_together_is_drawn_apart() {
        let axis = Axis::around([1.013, 1.153, 0.99].into_iter());
        assert_eq!(axis, Axis::Steps { low: 9.0, high: 12.0, step: 0.1 });
        assert_eq!(axis.ticks().len(), 4);
        assert!((axis.place(0.9)).abs() < 1e-9 && (axis.place(1.2) - 1.0).abs() < 1e-9);
        // Amounts of data stay by powers, however few they are.
        assert_eq!(Axis::powers_around([10.0, 20.0].into_iter()), Axis::Powers { low: 1.0, high: 2.0 });
    }

    #[test]
    fn each_series_is_a_curve_with_its_name() {
        let points = [point("p <q>", 10.0, 1.0), point("p <q>", 100.0, 10.0), point("r", 10.0, 5.0)];
        let svg = svg("t", "x", "y", &points);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("p &lt;q&gt;"));
        assert!(svg.contains("points=\"80.0,310.0 620.0,40.0\""), "{svg}");
    }
}
