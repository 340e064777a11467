//! Turns that another process left unfinished.

use std::fs::{File, TryLockError};
use std::sync::Arc;

use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::turn::{Input, TurnOutcome};

use crate::drive::Driver;
use crate::error::AgentError;
use crate::inner::{Agent, lock};

/// Held while this process runs a turn in a session. The system lets go of it when the process dies, however it dies, so a
/// turn whose lock can be taken has nobody who works on it.
#[derive(Debug)]
pub(crate) struct Owner {
    _file: File,
}

impl Agent {
    /// Takes a session for this process.
    ///
    /// # Errors
    /// [`AgentError::Busy`] when another process has it.
    pub(crate) fn own(&self, id: &SessionId) -> Result<Owner, AgentError> {
        let dir = self.inner.folders.data.join("locks");
        let path = dir.join(format!("{id}.lock"));
        let fail = |error: std::io::Error| AgentError::Folder { path: path.display().to_string(), reason: error.to_string() };
        std::fs::create_dir_all(&dir).map_err(fail)?;
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => Ok(Owner { _file: file }),
            Err(TryLockError::WouldBlock) => Err(AgentError::Busy(id.to_string())),
            Err(TryLockError::Error(error)) => Err(fail(error)),
        }
    }

    /// The unfinished turn of a session that nobody works on, if there is one.
    ///
    /// # Errors
    /// Those of the store.
    pub fn interrupted(&self, id: &SessionId) -> Result<Option<TurnId>, AgentError> {
        let open = self.inner.store.open_turns()?;
        Ok(open.into_iter().find(|(_, session)| session == id).map(|(turn, _)| turn))
    }

    /// Goes on with an unfinished turn, to its end.
    ///
    /// # Errors
    /// [`AgentError::Busy`] when another process works on it, [`AgentError::Replay`] when the log cannot be followed.
    pub async fn resume(&self, id: &SessionId, turn: &TurnId) -> Result<TurnOutcome, AgentError> {
        let queue = self.inner.sessions.queue(id);
        let _turn = queue.lock().await;
        let _owner = self.own(id)?;
        let steps = self.inner.store.turn_steps(turn)?;
        let cancel = self.register(id);
        let mut driver = Driver::new(Arc::clone(&self.inner), turn.clone(), id.clone(), cancel);
        let restored = driver.restore(&steps);
        let result = match restored {
            Ok(()) => driver.run(Input::Resumed).await,
            Err(error) => Err(error),
        };
        lock(&self.inner.running).remove(id);
        let (outcome, _) = result?;
        self.inner.store.flush(true).await?;
        Ok(outcome)
    }
}
