//! Errors and problems of imports.

use std::fmt;
use std::path::{Path, PathBuf};

use outrigger_protocol::diagnose::Diagnose;
use outrigger_store::StoreError;

use crate::program::Program;

/// The reason why nothing is imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There are no sessions of the program.
    #[error("there are no sessions of {program} at {}", .path.display())]
    Nothing {
        /// The program.
        program: &'static str,
        /// Where they would be.
        path: PathBuf,
    },
    /// The sessions are another program's.
    #[error("{} has no session of {program}: it is one of {}", .path.display(), .other.title())]
    Other {
        /// The requested program.
        program: &'static str,
        /// The actual program.
        other: Program,
        /// Where.
        path: PathBuf,
    },
    /// A file or folder cannot be read.
    #[error("cannot read {}: {message}", .path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// A file has no known format.
    #[error("{} is not an export that is known: {message}", .path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Diagnose for ImportError {
    fn code(&self) -> &'static str {
        match self {
            Self::Nothing { .. } => "import.nothing",
            Self::Other { .. } => "import.other_program",
            Self::Read { .. } => "import.read",
            Self::Form { .. } => "import.form",
            Self::Store(error) => error.code(),
        }
    }

    fn hint(&self) -> Option<String> {
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

impl ImportError {
    pub(crate) fn read(path: &Path, error: impl fmt::Display) -> Self {
        Self::Read {
            path: path.to_owned(),
            message: error.to_string(),
        }
    }
}

/// Something that was skipped, with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The line number, or the part of the file.
    pub place: String,
    /// The reason.
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
        if place.is_empty() {
            write!(f, "{}: {message}", path.display())
        } else {
            write!(f, "{}:{place}: {message}", path.display())
        }
    }
}
