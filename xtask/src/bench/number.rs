//! Numbers as a reader wants them: three or four digits, and no more zeros than one can count.

/// Three or four digits, thousands set apart by commas.
pub(crate) fn shown(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || size == 0.0 {
        return format!("{value}");
    }
    if size < 0.001 {
        return format!("{value:.1e}");
    }
    if size < 1_000.0 {
        // As many decimals as make three digits, or four where a ratio stands close to its bound.
        let decimals = if size < 0.01 {
            5
        } else if size < 0.1 {
            4
        } else if size < 10.0 {
            3
        } else {
            usize::from(size < 100.0)
        };
        let text = format!("{value:.decimals$}");
        return if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        };
    }
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |digits| ("-", digits));
    let mut grouped = String::new();
    for (digit, rest) in digits.chars().zip((0..digits.len()).rev()) {
        grouped.push(digit);
        if rest > 0 && rest.is_multiple_of(3) {
            grouped.push(',');
        }
    }
    format!("{sign}{grouped}")
}

/// The same with k and M, for the little room of a chart.
pub(crate) fn short(value: f64) -> String {
    let (scaled, suffix) = if value >= 1e6 {
        (value / 1e6, "M")
    } else if value >= 1e3 {
        (value / 1e3, "k")
    } else {
        (value, "")
    };
    format!("{}{suffix}", shown(scaled))
}

#[cfg(test)]
mod tests {
    use super::{short, shown};

    #[test]
    fn few_digits_are_shown() {
        let numbers =
            [1.053, 0.2301, 12.34, 123.4, 1_234.0, 20_000_000.0, 0.0123, 0.0, 2.0, 0.00012, -1_234.5, 0.5];
        let texts: Vec<String> = numbers.into_iter().map(shown).collect();
        let expected = [
            "1.053",
            "0.23",
            "12.3",
            "123",
            "1,234",
            "20,000,000",
            "0.0123",
            "0",
            "2",
            "1.2e-4",
            "-1,234",
            "0.5",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn large_ones_are_short_in_a_chart() {
        let texts: Vec<String> = [10_000_000.0, 200_000.0, 1_500.0, 10.0].into_iter().map(short).collect();
        assert_eq!(texts, ["10M", "200k", "1.5k", "10"]);
    }
}
