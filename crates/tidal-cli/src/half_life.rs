//! Half-lives as arguments: `7d`, `12h`, `30m`, `45s`, `2w`.

use std::time::Duration;

/// A signal type with its half-life, as `--signal NAME=HALFLIFE` or `--windowed` declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredSignal {
    pub(crate) name: String,
    pub(crate) half_life: Duration,
}

/// Reads `NAME=HALFLIFE`. A name may hold `=`, a half-life cannot.
pub(crate) fn parse_declared_signal(text: &str) -> Result<DeclaredSignal, String> {
    let (name, half_life) = text.rsplit_once('=').ok_or("write NAME=HALFLIFE, as in submit=7d".to_owned())?;
    if name.is_empty() {
        return Err("the name before the '=' is empty; write NAME=HALFLIFE, as in submit=7d".to_owned());
    }
    Ok(DeclaredSignal { name: name.to_owned(), half_life: parse_half_life(half_life)? })
}

/// Reads a whole number with its unit.
fn parse_half_life(text: &str) -> Result<Duration, String> {
    let refused =
        || format!("half-life {text:?} is not a whole number with a unit s, m, h, d or w, as in 7d");
    let unit = text.chars().last().ok_or_else(refused)?;
    let seconds_a_unit: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(refused()),
    };
    let number = text.strip_suffix(unit).unwrap_or_default();
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused());
    }
    // The schema says which half-lives are allowed; here only what no number holds is refused.
    number
        .parse()
        .ok()
        .and_then(|count: u64| count.checked_mul(seconds_a_unit))
        .map(Duration::from_secs)
        .ok_or_else(|| format!("half-life {text:?} is longer than any; use at most 36525d"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{parse_declared_signal, parse_half_life};

    #[test]
    fn every_unit_is_read() {
        for (text, seconds) in
            [("45s", 45), ("30m", 1_800), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600), ("0s", 0)]
        {
            assert_eq!(parse_half_life(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_half_life_is_refused() {
        for text in ["", "7", "d", "-7d", "+7d", "1.5h", "7 d", "7y", "7D", "7ü", "99999999999999999999d"] {
            assert!(parse_half_life(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_equals_sign_splits() {
        let declared = parse_declared_signal("a=b=7d").unwrap();
        assert_eq!((declared.name.as_str(), declared.half_life), ("a=b", Duration::from_secs(604_800)));
        assert!(parse_declared_signal("submit").is_err());
        assert!(parse_declared_signal("=7d").is_err());
    }
}
