//! Where quotes are open. The csv crate splits fields, but forgives a quote that is never closed and text behind a
//! closing one; in a file that decides who is counted, both are more likely a mistake than meant.

/// Where the byte that was read last stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Quoting {
    /// Before a field.
    #[default]
    FieldStart,
    /// In a field without quotes, where a quote is a character like any other.
    Plain,
    /// In a quoted field.
    Quoted,
    /// At a quote in a quoted field: it closes the field, or the next one makes it a character.
    Quote,
}

impl Quoting {
    /// Reads on; `None` if `byte` follows a closing quote and must not.
    pub(super) fn after(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Quoted, b'"') => Some(Self::Quote),
            (Self::FieldStart | Self::Quote, b'"') | (Self::Quoted, _) => Some(Self::Quoted),
            (_, b',' | b'\n' | b'\r') => Some(Self::FieldStart),
            (Self::Quote, _) => None,
            (Self::FieldStart | Self::Plain, _) => Some(Self::Plain),
        }
    }
}
