use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Where a database lives, as errors name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// In the file of this path.
    File(PathBuf),
    /// On a [`Medium`](crate::Medium) of the caller.
    Medium,
    /// In memory, gone when the last handle is dropped.
    Memory,
}

impl Place {
    /// The path, if there is a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Medium | Self::Memory => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(formatter),
            Self::Medium => formatter.write_str("the database on its own medium"),
            Self::Memory => formatter.write_str("the database in memory"),
        }
    }
}
