use std::fmt;

/// Longest prefix of a key that an error spells out; a malformed key may be of any length.
const SHOWN_BYTES: usize = 64;

/// Bytes as an error shows them.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("(no bytes)");
        }
        for byte in self.0.iter().take(SHOWN_BYTES) {
            write!(formatter, "{byte:02x}")?;
        }
        if self.0.len() > SHOWN_BYTES {
            write!(formatter, ".. ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}
