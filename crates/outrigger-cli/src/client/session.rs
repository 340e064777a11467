//! The session to work in.

use outrigger_agent::AgentError;
use outrigger_protocol::session::Session;
use serde_json::json;

use super::connection::{Connection, encoded};
use crate::failure::Failure;

/// Which session is meant.
pub(crate) struct Wanted<'a> {
    /// This one.
    pub(crate) id: Option<&'a str>,
    /// The last one of the folder.
    pub(crate) latest: bool,
    /// A copy of it.
    pub(crate) fork: bool,
}

/// The session that is wanted, and whether it was there before: a copy was not. `None` where a new one is wanted, or there is
/// none yet.
///
/// # Errors
/// No session of that identifier.
pub(crate) async fn find(
    connection: &Connection,
    wanted: &Wanted<'_>,
) -> Result<Option<(Session, bool)>, Failure> {
    let found = match wanted.id {
        Some(id) => Some(by_id(connection, id).await?),
        None if wanted.latest => latest(connection).await?,
        None => None,
    };
    match found {
        Some(session) if wanted.fork => {
            let path = format!("/session/{}/fork", session.id);
            let copy = connection.post(&path, &json!({})).await?;
            Ok(Some((copy, false)))
        }
        found => Ok(found.map(|session| (session, true))),
    }
}

/// The session of this identifier.
///
/// # Errors
/// There is none.
pub(crate) async fn by_id(connection: &Connection, id: &str) -> Result<Session, Failure> {
    if id.is_empty() {
        return Err(AgentError::NoSession(id.to_owned()).into());
    }
    connection.get(&format!("/session/{}", encoded(id))).await
}

/// The session of the folder that was used last.
///
/// # Errors
/// Those of the connection.
pub(crate) async fn latest(connection: &Connection) -> Result<Option<Session>, Failure> {
    connection.get("/outrigger/session/latest").await
}
