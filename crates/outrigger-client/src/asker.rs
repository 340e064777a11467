//! Permission questions over the API: the open ones, and their answers.

use std::collections::HashSet;

use outrigger_protocol::id::{PermissionId, SessionId};
use outrigger_protocol::permission::{PermissionRequest, Reply};
use serde_json::json;

use crate::connection::Connection;
use crate::error::ClientError;

/// Sessions whose questions are asked.
#[derive(Debug)]
pub enum Sessions {
    /// Every session: the agent belongs to this user.
    All,
    /// A session and its subagents.
    Of(HashSet<SessionId>),
}

impl Sessions {
    /// Creates a set of this session.
    #[must_use]
    pub fn of(id: &SessionId) -> Self {
        Self::Of(HashSet::from([id.clone()]))
    }

    /// Returns whether its questions are asked.
    #[must_use]
    pub fn hold(&self, id: &SessionId) -> bool {
        match self {
            Self::All => true,
            Self::Of(sessions) => sessions.contains(id),
        }
    }

    /// Records a new session.
    pub fn created(&mut self, id: &SessionId, parent: Option<&SessionId>) {
        if let Self::Of(sessions) = self
            && parent.is_some_and(|parent| sessions.contains(parent))
        {
            sessions.insert(id.clone());
        }
    }
}

/// Lists and answers questions through a connection.
pub struct Asker {
    connection: Connection,
    /// Sessions whose questions are asked.
    pub sessions: Sessions,
}

impl Asker {
    /// Starts with all sessions if the agent is in this process, otherwise with none.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        let sessions = if connection.is_local() {
            Sessions::All
        } else {
            Sessions::Of(HashSet::new())
        };
        Self {
            connection,
            sessions,
        }
    }

    /// Returns the open questions.
    pub async fn questions(&self) -> Vec<PermissionRequest> {
        let mut open: Vec<PermissionRequest> = self
            .connection
            .get("/permission")
            .await
            .unwrap_or_else(|failure| {
                tracing::warn!("[client] the open questions are not known: {failure:?}");
                Vec::new()
            });
        open.retain(|request| self.sessions.hold(&request.session_id));
        open
    }

    /// Answers a question. One that is no longer open needs no answer.
    pub async fn answer(&self, id: &PermissionId, reply: Reply) {
        self.answer_with(id, reply, None).await;
    }

    /// Like [`Self::answer`], with instructions for the model.
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

    /// Grants permanently what the question is about, and answers it; returns the result. `None` if that is not possible from
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

    /// Returns whether [`Self::grant`] has an effect: only the local user may change what plugins may do.
    #[must_use]
    pub fn can_grant(&self) -> bool {
        self.connection.is_local()
    }
}
