//! What was measured, as a document and as a table for the terminal.

use std::fmt::Write as _;

use super::line::{Bound, Figure, Line, Point};
use super::number::shown;
use super::rows::Row;

/// What came of one row.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) row: Row,
    pub(crate) lines: Vec<Line>,
    /// Why it ended early; what it said before counts all the same.
    pub(crate) failure: Option<String>,
    pub(crate) seconds: f64,
}

impl Outcome {
    pub(crate) fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.lines.iter().filter_map(|line| if let Line::Figure(figure) = line { Some(figure) } else { None })
    }

    fn notes(&self) -> impl Iterator<Item = &str> {
        self.lines
            .iter()
            .filter_map(|line| if let Line::Note { text } = line { Some(text.as_str()) } else { None })
    }

    pub(crate) fn points(&self) -> Vec<Point> {
        let point = |line: &Line| if let Line::Point(point) = line { Some(point.clone()) } else { None };
        self.lines.iter().filter_map(point).collect()
    }

    /// What has a target and could not be measured: what, its target, why not.
    pub(crate) fn not_measured(&self) -> impl Iterator<Item = (&str, Bound, &str)> {
        self.lines.iter().filter_map(|line| match line {
            Line::NotMeasured { what, target, reason } => Some((what.as_str(), *target, reason.as_str())),
            _ => None,
        })
    }

    /// Figures that miss their target.
    pub(crate) fn misses(&self) -> usize {
        self.figures().filter(|figure| figure.passes() == Some(false)).count()
    }
}

fn verdict(figure: &Figure) -> &'static str {
    match figure.passes() {
        Some(true) => "pass",
        Some(false) => "miss",
        None => "",
    }
}

fn target(figure: &Figure) -> String {
    figure.target.map_or_else(String::new, shown_bound)
}

fn shown_bound(bound: Bound) -> String {
    match bound {
        Bound::AtMost(bound) => format!("<= {}", shown(bound)),
        Bound::AtLeast(bound) => format!(">= {}", shown(bound)),
    }
}

fn spread(figure: &Figure) -> String {
    figure.quartiles.map_or_else(String::new, |(low, high)| format!("{} to {}", shown(low), shown(high)))
}

/// Every figure that has a target, for the terminal.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let _infallible = writeln!(text, "\n{} ({:.0} s)", outcome.row.title, outcome.seconds);
        for figure in outcome.figures() {
            let value = format!("{} {}", shown(figure.value), figure.unit);
            let _infallible = writeln!(
                text,
                "  {:>4} {value:>24} {:>12}  {:<22} {}",
                verdict(figure),
                target(figure),
                spread(figure),
                figure.what
            );
        }
        for (what, target, reason) in outcome.not_measured() {
            let _infallible = writeln!(text, "  NOT MEASURED {}: {what}: {reason}", shown_bound(target));
        }
        for note in outcome.notes() {
            let _infallible = writeln!(text, "       {note}");
        }
        if let Some(failure) = &outcome.failure {
            let _infallible = writeln!(text, "  FAILED: {failure}");
        }
    }
    text
}

/// The whole document.
pub(crate) fn document(
    headline: &str,
    machine: &[(&'static str, String)],
    outcomes: &[Outcome],
    charts_folder: &str,
) -> String {
    let mut text = format!("# Benchmarks\n\n{headline}\n\n## Machine\n\n| | |\n| --- | --- |\n");
    for (name, value) in machine {
        let _infallible = writeln!(text, "| {name} | {} |", cell(value));
    }
    text.push_str(METHOD);
    text.push_str(
        "\n## Targets\n\n| what | target | figure | quartiles | verdict |\n| --- | --- | --- | --- | --- |\n",
    );
    for outcome in outcomes {
        for figure in outcome.figures().filter(|figure| figure.target.is_some()) {
            let _infallible = writeln!(
                text,
                "| {} | {} | {} {} | {} | {} |",
                cell(&figure.what),
                target(figure),
                shown(figure.value),
                figure.unit,
                spread(figure),
                verdict(figure)
            );
        }
        for (what, target, reason) in outcome.not_measured() {
            let _infallible = writeln!(
                text,
                "| {} | {} | | | not measured: {} |",
                cell(what),
                shown_bound(target),
                cell(reason)
            );
        }
        if let Some(failure) = &outcome.failure {
            let _infallible = writeln!(text, "| {} | | | | failed: {} |", outcome.row.title, cell(failure));
        }
    }
    let verdicts =
        |wanted| outcomes.iter().flat_map(Outcome::figures).filter(|it| it.passes() == Some(wanted)).count();
    let not_measured = outcomes.iter().flat_map(Outcome::not_measured).count();
    let (kept, missed) = (verdicts(true), verdicts(false));
    let _infallible = writeln!(text, "\n{kept} targets kept, {missed} missed, {not_measured} not measured.");
    for outcome in outcomes {
        section(&mut text, outcome, charts_folder);
    }
    text
}

const METHOD: &str = "\n## Method\n\nEvery row is measured by a process of its own, one after the other. What is compared is measured in turn \
within one run, round by round; the first round warms up and does not count. A figure is the median of its rounds; the \
quartiles beside it say how far they lie apart, of a ratio those of the ratio round by round. One without quartiles was \
measured once, or is counted. A verdict compares the figure itself with its target, which may be reached exactly; where \
the quartiles lie on both sides of the target, another run may say otherwise. Ratios travel to other \
machines, times do not. Totals are compared at the end of each row: a row whose engines disagree fails. All engines of a \
row write to the disk named above, but Redis, which keeps its data in memory.\n";

fn section(text: &mut String, outcome: &Outcome, charts_folder: &str) {
    let row = &outcome.row;
    let _infallible = writeln!(
        text,
        "\n## {}\n\n{} Again: `cargo xtask bench --only {}`.",
        row.title, row.method, row.name
    );
    if let Some(failure) = &outcome.failure {
        let _infallible = writeln!(text, "\n**It failed:** {}", cell(failure));
    }
    if outcome.figures().next().is_some() {
        text.push_str("\n| what | figure | quartiles |\n| --- | --- | --- |\n");
    }
    for figure in outcome.figures() {
        let _infallible = writeln!(
            text,
            "| {} | {} {} | {} |",
            cell(&figure.what),
            shown(figure.value),
            figure.unit,
            spread(figure)
        );
    }
    let mut reasons: Vec<&str> = Vec::new();
    for reason in outcome.figures().filter_map(|figure| figure.bounded_by.as_deref()) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if !reasons.is_empty() {
        let _infallible = writeln!(text, "\nWhat bounds it: {}", reasons.join(" "));
    }
    for note in outcome.notes() {
        let _infallible = writeln!(text, "\n{note}");
    }
    if let Some(chart) = row.chart.filter(|_| !outcome.points().is_empty()) {
        let _infallible =
            writeln!(text, "\n![{} by {}]({charts_folder}/{}.svg)", chart.y, chart.x, chart.name);
    }
}

/// What would end a cell of a table is written so that it does not.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::super::line::{Bound, Figure, Line};
    use super::super::rows::ROWS;
    use super::{Outcome, document, table};

    fn outcome(value: f64, failure: Option<&str>) -> Outcome {
        let figure = Figure {
            what: "signal | gate".into(),
            value,
            unit: "times".into(),
            quartiles: Some((1.0, 2.0)),
            target: Some(Bound::AtMost(1.05)),
            bounded_by: Some("A lock.".into()),
        };
        let [row, ..] = ROWS;
        Outcome { row, lines: vec![Line::Figure(figure)], failure: failure.map(Into::into), seconds: 1.0 }
    }

    #[test]
    fn a_miss_and_a_failure_stand_in_the_document() {
        let text =
            document("Head.", &[("memory", "1 GiB".into())], &[outcome(1.2, Some("it ended"))], "charts");
        assert!(text.contains("| signal \\| gate | <= 1.05 | 1.2 times | 1 to 2 | miss |"), "{text}");
        assert!(text.contains("failed: it ended"), "{text}");
        assert!(text.contains("What bounds it: A lock."), "{text}");
        // Without points there is no chart to link to.
        assert!(!text.contains(".svg"), "{text}");
    }

    #[test]
    fn what_could_not_be_measured_stands_among_the_targets() {
        let mut outcome = outcome(1.0, None);
        let (what, reason) = ("tidal against Redis".into(), "no server".into());
        outcome.lines.push(Line::NotMeasured { what, target: Bound::AtLeast(10.0), reason });
        let text = document("Head.", &[], std::slice::from_ref(&outcome), "charts");
        assert!(text.contains("| tidal against Redis | >= 10 | | | not measured: no server |"), "{text}");
        let text = table(&[outcome]);
        assert!(text.contains("NOT MEASURED >= 10: tidal against Redis: no server"), "{text}");
    }

    #[test]
    fn the_terminal_has_every_figure() {
        assert!(table(&[outcome(1.0, None)]).contains("pass"));
        assert!(table(&[outcome(1.2, Some("it ended"))]).contains("FAILED: it ended"));
    }
}
