/// How many bytes the name of an attribute, a source or a signal type may have. It has at least one.
pub const MAX_NAME_BYTES: usize = 255;

/// How many bytes the value of an attribute may have. It may be empty.
pub const MAX_VALUE_BYTES: usize = 1024;

/// Why a name or a value is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// A name has no bytes.
    #[error("{what} is empty: give at least one character")]
    Empty {
        /// Which name it is.
        what: &'static str,
    },

    /// A name or a value has too many bytes.
    #[error("{what} {start:?}.. has {found} bytes, more than {limit}: shorten it")]
    TooLong {
        /// Which name or value it is.
        what: &'static str,
        /// How it begins.
        start: String,
        /// How many bytes it may have.
        limit: usize,
        /// How many it has.
        found: usize,
    },

    /// The name of an attribute holds an equals sign.
    #[error("attribute name {name:?} holds '=', which ends a name in name=value: take another name")]
    EqualsSign {
        /// The name.
        name: String,
    },
}

/// Checks the name of a user attribute: 1 to [`MAX_NAME_BYTES`] bytes, none of them `=`.
///
/// The equals sign is kept for the cohort `name=value` and for event files, so that both can be split at the
/// first one. A value may hold as many as it likes.
///
/// # Errors
///
/// [`LimitError`] says which rule the name breaks.
///
/// ```
/// use tidal_entities::check_attribute_name;
///
/// assert!(check_attribute_name("region").is_ok());
/// assert!(check_attribute_name("").is_err());
/// assert!(check_attribute_name("a=b").is_err());
/// ```
pub fn check_attribute_name(name: &str) -> Result<(), LimitError> {
    check_name("attribute name", name)?;
    if name.contains('=') {
        return Err(LimitError::EqualsSign { name: name.to_owned() });
    }
    Ok(())
}

/// Checks the value of a user attribute: at most [`MAX_VALUE_BYTES`] bytes.
///
/// # Errors
///
/// [`LimitError::TooLong`] if it has more.
pub fn check_attribute_value(value: &str) -> Result<(), LimitError> {
    check_len("attribute value", value, MAX_VALUE_BYTES)
}

/// Checks the name of an event source: 1 to [`MAX_NAME_BYTES`] bytes.
///
/// # Errors
///
/// [`LimitError`] says which rule the name breaks.
pub fn check_source_name(name: &str) -> Result<(), LimitError> {
    check_name("source name", name)
}

pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), LimitError> {
    if name.is_empty() {
        return Err(LimitError::Empty { what });
    }
    check_len(what, name, MAX_NAME_BYTES)
}

fn check_len(what: &'static str, text: &str, limit: usize) -> Result<(), LimitError> {
    if text.len() > limit {
        // The whole text may be megabytes, and an error is one line.
        let start = text.chars().take(20).collect();
        return Err(LimitError::TooLong { what, start, limit, found: text.len() });
    }
    Ok(())
}
