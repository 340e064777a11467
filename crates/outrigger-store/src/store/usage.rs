//! Cost of models, from a store.

use outrigger_protocol::Millis;
use outrigger_protocol::id::SessionId;

use super::Store;
use crate::error::StoreError;
use crate::usage::{self, ModelUsage, SessionUsage};

impl Store {
    /// What models cost since a time, in sessions of one folder or of all: by day and model, the oldest day first.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn usage(
        &self,
        since: Millis,
        directory: Option<&str>,
    ) -> Result<Vec<ModelUsage>, StoreError> {
        self.read_sql(|conn| usage::usage(conn, since, directory))
    }

    /// What a session used until now, its subagents and the session that it is a subagent of included.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn session_usage(&self, id: &SessionId) -> Result<SessionUsage, StoreError> {
        self.read_sql(|conn| usage::of_session(conn, &id.0))
    }
}
