//! What cannot be imported, and why.

use std::fmt;
use std::path::{Path, PathBuf};

use outrigger_store::StoreError;

use crate::program::Program;

/// Why nothing is imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There is nothing of the program.
    #[error("there are no sessions of {program} at {}", .path.display())]
    Nothing {
        /// The program.
        program: &'static str,
        /// Where they would be.
        path: PathBuf,
    },
    /// What is there is another program's.
    #[error("{} has no session of {program}: it is one of {}", .path.display(), .other.title())]
    Other {
        /// The program that was named.
        program: &'static str,
        /// The one whose it is.
        other: Program,
        /// Where.
        path: PathBuf,
    },
    /// A file or folder cannot be read.
    #[error("cannot read {}: {message}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A file is none of the forms that are known.
    #[error("{} is no export that is known: {message}", .path.display())]
    Form {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ImportError {
    pub(crate) fn read(path: &Path, error: impl fmt::Display) -> Self {
        Self::Read {
            path: path.to_owned(),
            message: error.to_string(),
        }
    }

    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Nothing { .. } => "import.nothing",
            Self::Other { .. } => "import.other_program",
            Self::Read { .. } => "import.read",
            Self::Form { .. } => "import.form",
            Self::Store(error) => error.code(),
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Nothing { .. } => {
                Some("name the folder or the file: `outrigger import PROGRAM PATH`".to_owned())
            }
            Self::Other { other, path, .. } => Some(format!(
                "`outrigger import {} {}`",
                other.name(),
                path.display()
            )),
            Self::Read { .. } => None,
            Self::Form { .. } => Some(
                "it takes what `outrigger export --format json` and `opencode export` write"
                    .to_owned(),
            ),
            Self::Store(error) => error.hint(),
        }
    }
}

/// Something that was left out, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The line of a file of lines, else what in the file.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(path: &Path, place: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            place: place.to_string(),
            message: message.to_string(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            place,
            message,
        } = self;
        match place.is_empty() {
            true => write!(f, "{}: {message}", path.display()),
            false => write!(f, "{}:{place}: {message}", path.display()),
        }
    }
}
