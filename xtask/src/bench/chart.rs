//! Curves as SVG, both axes by powers of ten.

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

/// Powers of ten around some values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Whole powers of ten that hold all values, at least one.
    fn around(values: impl Iterator<Item = f64>) -> Self {
        let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::log10).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
        if !low.is_finite() || !high.is_finite() {
            return Self { low: 0.0, high: 1.0 };
        }
        Self { low, high: if high > low { high } else { low + 1.0 } }
    }

    /// Where a value lies, from 0 to 1.
    fn place(self, value: f64) -> f64 {
        (value.log10() - self.low) / (self.high - self.low)
    }

    fn powers(self) -> impl Iterator<Item = f64> {
        std::iter::successors(Some(self.low), |power| Some(power + 1.0))
            .take_while(move |power| *power <= self.high)
            .map(|power| 10_f64.powf(power))
    }
}

/// One chart: a curve for each series, in the order in which they first appear.
pub(crate) fn svg(title: &str, x_label: &str, y_label: &str, points: &[Point]) -> String {
    let x_axis = Axis::around(points.iter().map(|point| point.x));
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
    for power in x_axis.powers() {
        line(&mut svg, (x_of(power), TOP), (x_of(power), HEIGHT - BOTTOM));
        text(&mut svg, (x_of(power), HEIGHT - BOTTOM + 18.0), "middle", &short(power));
    }
    for power in y_axis.powers() {
        line(&mut svg, (LEFT, y_of(power)), (WIDTH - RIGHT, y_of(power)));
        text(&mut svg, (LEFT - 6.0, y_of(power) + 4.0), "end", &short(power));
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
            text(&mut svg, (x, y - 8.0), "middle", &short(value));
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
        assert_eq!(Axis::around([20.0, 3_000.0].into_iter()), Axis { low: 1.0, high: 4.0 });
        assert_eq!(Axis::around([100.0].into_iter()), Axis { low: 2.0, high: 3.0 });
        assert_eq!(Axis::around(std::iter::empty()), Axis { low: 0.0, high: 1.0 });
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
