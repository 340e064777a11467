//! Errors of the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_protocol::diagnose::Diagnose;

/// Errors of the store. Cloneable because every write of a failed batch gets the same one.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file, its folder or its lock cannot be opened.
    #[error("cannot open the session store {path}: {message}", path = path.display())]
    Open {
        /// Path of the store.
        path: PathBuf,
        /// Error of the system.
        message: String,
    },
    /// The file is no longer a database, or parts of it are missing.
    #[error("the session store {path} is damaged: {detail}", path = path.display())]
    Damaged {
        /// Path of the store.
        path: PathBuf,
        /// The damage.
        detail: String,
    },
    /// The file was written by a newer version of Outrigger.
    #[error("the session store {path} has format {found}; this version of Outrigger knows formats up to {known}", path = path.display())]
    Newer {
        /// Path of the store.
        path: PathBuf,
        /// Format of the file.
        found: u32,
        /// Newest supported format.
        known: u32,
    },
    /// The file is a database of another program.
    #[error("{path} is a database, but not a session store of Outrigger", path = path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// The disk is full. Nothing of the failed write is in the file.
    #[error("no room left to write to the session store {path}", path = path.display())]
    Full {
        /// Path of the store.
        path: PathBuf,
    },
    /// Another process keeps the store locked for longer than the timeout.
    #[error("the session store {path} is locked by another process", path = path.display())]
    Busy {
        /// Path of the store.
        path: PathBuf,
    },
    /// SQLite failed for another reason.
    #[error("cannot {doing} in the session store {path}: {source}", path = path.display())]
    Sqlite {
        /// Path of the store.
        path: PathBuf,
        /// The failed action.
        doing: &'static str,
        /// Cause.
        source: Arc<rusqlite::Error>,
    },
    /// The system refused to read, write or sync a file.
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The failed action.
        doing: &'static str,
        /// Cause.
        source: Arc<std::io::Error>,
    },
    /// A record cannot be serialised as JSON.
    #[error("cannot write a record of kind `{kind}`: {message}")]
    Encode {
        /// Kind of the record.
        kind: &'static str,
        /// Cause.
        message: String,
    },
    /// A stored record or row does not have the form of this version.
    #[error("cannot read {what} from the session store {path}: {message}", path = path.display())]
    Decode {
        /// Path of the store.
        path: PathBuf,
        /// The record.
        what: String,
        /// Cause.
        message: String,
    },
    /// Records that no caller waited for could not be written. Returned by the next flush.
    #[error("{count} records handed over earlier were not written: {cause}")]
    LazyLost {
        /// Number of records.
        count: usize,
        /// Cause.
        cause: Box<StoreError>,
    },
    /// The writer has ended.
    #[error("the session store {path} is closed", path = path.display())]
    Closed {
        /// Path of the store.
        path: PathBuf,
    },
    /// The output file of a salvage exists already.
    #[error("{path} exists already", path = path.display())]
    Exists {
        /// Path of the file.
        path: PathBuf,
    },
    /// A salvage found no records of a log.
    #[error("nothing can be read from {path}: no record of a session log was found in it", path = path.display())]
    NothingLeft {
        /// Path of the damaged file.
        path: PathBuf,
    },
}

impl Diagnose for StoreError {
    fn code(&self) -> &'static str {
        match self {
            Self::Open { .. } => "store.open",
            Self::Damaged { .. } => "store.damaged",
            Self::Newer { .. } => "store.newer",
            Self::Foreign { .. } => "store.foreign",
            Self::Full { .. } => "store.full",
            Self::Busy { .. } => "store.busy",
            Self::Sqlite { .. } => "store.sqlite",
            Self::Io { .. } => "store.io",
            Self::Encode { .. } => "store.encode",
            Self::Decode { .. } => "store.decode",
            Self::LazyLost { .. } => "store.lazy_lost",
            Self::Closed { .. } => "store.closed",
            Self::Exists { .. } => "store.exists",
            Self::NothingLeft { .. } => "store.nothing_left",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Damaged { .. } => Some(
                "run `outrigger session salvage` to copy what can still be read into a new store; \
                 the damaged file stays where it is"
                    .to_owned(),
            ),
            Self::Newer { .. } => Some(
                "update Outrigger, or set another data folder; the file was not changed".into(),
            ),
            Self::Foreign { .. } => Some("name another file; this one was not changed".into()),
            Self::Full { .. } => Some(
                "free some disk space; nothing was half-written and the next write works".into(),
            ),
            Self::Busy { .. } => Some("end the other `outrigger` process, or try again".into()),
            Self::Open { .. } => Some("check that the folder exists and can be written".into()),
            Self::Exists { .. } => Some("name a file that does not exist yet".into()),
            Self::LazyLost { cause, .. } => cause.hint(),
            _ => None,
        }
    }
}

impl StoreError {
    /// Classifies an SQLite error by what the caller can do about it.
    pub(crate) fn sqlite(path: &Path, doing: &'static str, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path = path.to_path_buf();
        let text = error.to_string();
        // On a full disk the index of the write-ahead log may be the first that cannot grow.
        if error
            .sqlite_error()
            .is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
        {
            return Self::Full { path };
        }
        match error.sqlite_error_code() {
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => {
                Self::Damaged { path, detail: text }
            }
            Some(Code::DiskFull) => Self::Full { path },
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Busy { path },
            Some(Code::CannotOpen | Code::PermissionDenied | Code::ReadOnly) => Self::Open {
                path,
                message: text,
            },
            _ => Self::Sqlite {
                path,
                doing,
                source: Arc::new(error),
            },
        }
    }

    pub(crate) fn io(path: &Path, doing: &'static str, error: std::io::Error) -> Self {
        Self::Io {
            path: path.to_path_buf(),
            doing,
            source: Arc::new(error),
        }
    }

    pub(crate) fn open(path: &Path, error: &std::io::Error) -> Self {
        Self::Open {
            path: path.to_path_buf(),
            message: error.to_string(),
        }
    }
}
