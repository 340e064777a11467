//! Permission questions over the routes: which are open, and their answers.

use std::collections::HashSet;

use outrigger_protocol::id::{PermissionId, SessionId};
use outrigger_protocol::permission::{PermissionRequest, Reply};
use serde_json::json;

use crate::connection::Connection;
use crate::error::ClientError;

/// Whose questions are put.
#[derive(Debug)]
pub enum Sessions {
    /// Those of every session: the agent is the person's own.
    All,
    /// Those of a session and its subagents.
    Of(HashSet<SessionId>),
}

impl Sessions {
    /// Those of this one.
    #[must_use]
    pub fn of(id: &SessionId) -> Self {
        Self::Of(HashSet::from([id.clone()]))
    }

    /// Whether its questions are put.
    #[must_use]
    pub fn hold(&self, id: &SessionId) -> bool {
        match self {
            Self::All => true,
            Self::Of(sessions) => sessions.contains(id),
        }
    }

    /// There is a new session.
    pub fn created(&mut self, id: &SessionId, parent: Option<&SessionId>) {
        if let Self::Of(sessions) = self
            && parent.is_some_and(|parent| sessions.contains(parent))
        {
            sessions.insert(id.clone());
        }
    }
}

/// Where the questions are, and their answers go.
pub struct Asker {
    connection: Connection,
    /// Whose questions are put.
    pub sessions: Sessions,
}

impl Asker {
    /// Of all sessions where the agent is in this process, else of none yet.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        let sessions = match connection.is_local() {
            true => Sessions::All,
            false => Sessions::Of(HashSet::new()),
        };
        Self {
            connection,
            sessions,
        }
    }

    /// Questions that wait for an answer.
    pub async fn questions(&self) -> Vec<PermissionRequest> {
        let open = self.connection.get("/permission").await;
        let mut open: Vec<PermissionRequest> = open.unwrap_or_else(|failure| {
            tracing::warn!("[client] the open questions are not known: {failure:?}");
            Vec::new()
        });
        open.retain(|request| self.sessions.hold(&request.session_id));
        open
    }

    /// Answers a question. One that nobody waits for any more needs no answer.
    pub async fn answer(&self, id: &PermissionId, reply: Reply) {
        self.answer_with(id, reply, None).await;
    }

    /// The same, with what the model is to do instead.
    pub async fn answer_with(&self, id: &PermissionId, reply: Reply, instead: Option<&str>) {
        let path = format!("/permission/{id}/reply");
        let answered: Result<bool, ClientError> = self
            .connection
            .post(&path, &json!({ "reply": reply, "message": instead }))
            .await;
        if let Err(failure) = answered
            && !failure.is_refusal()
        {
            tracing::warn!("[client] an answer did not arrive: {failure:?}");
        }
    }

    /// Grants for good what the question is about, and answers it; says what came of it. `None` where that cannot be done from
    /// here.
    pub async fn grant(&self, id: &PermissionId) -> Option<Result<String, String>> {
        #[derive(serde::Deserialize)]
        struct Granted {
            file: Option<String>,
        }
        if !self.can_grant() {
            return None;
        }
        let path = format!("/outrigger/permission/{id}/grant");
        match self.connection.post::<Granted>(&path, &json!({})).await {
            Ok(granted) => granted.file.map(|file| Ok(format!("granted in {file}"))),
            Err(failure) => Some(Err(failure.message().to_owned())),
        }
    }

    /// Whether [`Self::grant`] does something: only the person at the program changes what its plugins may do.
    #[must_use]
    pub fn can_grant(&self) -> bool {
        self.connection.is_local()
    }
}
