//! Ownership of a session by a process: a lock in the data folder.

use std::fs::{File, TryLockError};

use outrigger_protocol::id::SessionId;
use outrigger_workspace::lock_file;

use crate::error::AgentError;

/// Held while this process runs a turn in a session. The operating system releases it when the process dies, so a turn
/// whose lock can be taken is not being worked on.
#[derive(Debug)]
pub(crate) struct Owner {
    _file: File,
}

/// Takes a session for this process, by a lock in the data folder.
///
/// # Errors
/// [`AgentError::Busy`] when another process has it, [`AgentError::Folder`] when the lock cannot be made.
pub(crate) fn own(data: &std::path::Path, id: &SessionId) -> Result<Owner, AgentError> {
    let dir = data.join("locks");
    let path = dir.join(format!("{id}.lock"));
    let fail = |error: std::io::Error| AgentError::Folder {
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    std::fs::create_dir_all(&dir).map_err(fail)?;
    let file = lock_file::open(&path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(Owner { _file: file }),
        Err(TryLockError::WouldBlock) => Err(AgentError::Busy(id.to_string())),
        Err(TryLockError::Error(error)) => Err(fail(error)),
    }
}
