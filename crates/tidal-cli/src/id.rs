//! Ids of users, items and communities as text.

/// Reads a decimal id, from 0 to `u64::MAX`. The parser of the standard library alone would take a plus sign.
pub(crate) fn parse_id(text: &str) -> Result<u64, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| is_plain)
        .ok_or_else(|| format!("write a whole number from 0 to {}", u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::parse_id;

    #[test]
    fn ids_are_plain_decimal_numbers() {
        assert_eq!(parse_id("0"), Ok(0));
        assert_eq!(parse_id("007"), Ok(7));
        assert_eq!(parse_id("18446744073709551615"), Ok(u64::MAX));
        for text in ["", "+7", "-7", " 7", "7.0", "0x7", "1_000", "18446744073709551616"] {
            assert!(parse_id(text).is_err(), "{text}");
        }
    }
}
