//! `POST /experimental/control-plane/move-session`: moves a session to another folder of its project, for `/move` of OpenCode's
//! terminal interface.
//!
//! The folder's agent is started as for any other request for the folder. So the questions before a session may start there are
//! also asked before one may move there, and its next turn runs under that folder's settings.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use outrigger_agent::{AgentError, ProjectLocation};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::NamedError;
use serde::Deserialize;

use crate::error::ApiError;
use crate::hosting::hub::Hub;

#[derive(Deserialize)]
pub(crate) struct MoveRequest {
    #[serde(rename = "sessionID")]
    session_id: SessionId,
    destination: Destination,
    /// Also moves uncommitted changes.
    #[serde(default, rename = "moveChanges")]
    move_changes: bool,
}

#[derive(Deserialize)]
struct Destination {
    directory: String,
}

pub(crate) async fn move_session(
    State(hub): State<Hub>,
    Json(wanted): Json<MoveRequest>,
) -> Result<StatusCode, ApiError> {
    let (id, named) = (wanted.session_id, wanted.destination.directory);
    let folder = hub.resolve(Some(&named));
    if !Path::new(&named).is_absolute() || !folder.is_dir() {
        return Err(refused(format!("There is no folder `{named}`")));
    }
    let agent = hub.instance(&folder).await?.agent;
    agent.folder()?;
    let _working = agent.begin_work();
    let session = match agent.session(&id) {
        Err(AgentError::NoSession(_)) => return Err(refused(format!("Session not found: {id}"))),
        found => found?,
    };
    if Path::new(&session.directory) == folder {
        return Ok(StatusCode::NO_CONTENT);
    }
    if session.project_id != agent.project().id {
        return Err(refused("Destination directory belongs to another project"));
    }
    let from = ProjectLocation::find(Path::new(&session.directory)).worktree;
    if wanted.move_changes && from != agent.location().worktree {
        return Err(refused(
            "Changes that are not committed are not moved to another worktree: commit or stash them, and move without them",
        ));
    }
    agent.move_here(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Creates an error with the name that clients know here.
fn refused(message: impl Into<String>) -> ApiError {
    ApiError::named(
        StatusCode::BAD_REQUEST,
        NamedError::new("MoveSessionError", message),
    )
}
