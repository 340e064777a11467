//! Errors of exports.

use outrigger_protocol::diagnose::Diagnose;
use outrigger_store::StoreError;

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The program was built without the files of the page.
    #[error("this program was built without the page, from which the HTML file is made")]
    NoPage,
    /// A value that is not JSON.
    #[error("cannot write the conversation as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Diagnose for ExportError {
    fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::NoPage => "export.no_page",
            Self::Json(_) => "export.json",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::NoPage => Some(
                "run `cargo xtask web`, then build the program again; or use `--format markdown`"
                    .to_owned(),
            ),
            Self::Json(_) => None,
        }
    }
}
