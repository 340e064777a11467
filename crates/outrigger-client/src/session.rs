//! Selection of the session to work in.

use outrigger_agent::AgentError;
use outrigger_protocol::session::Session;
use serde_json::json;

use crate::connection::{Connection, encoded};
use crate::error::ClientError;

/// The requested session.
pub struct SessionSelector<'a> {
    /// This one.
    pub id: Option<&'a str>,
    /// The last one of the folder.
    pub latest: bool,
    /// A copy of it.
    pub fork: bool,
}

/// Finds the requested session; returns whether it existed before (a copy did not). `None` if a new one is requested, or
/// there is none yet.
///
/// # Errors
/// There is no session with that identifier.
pub async fn find(
    connection: &Connection,
    wanted: &SessionSelector<'_>,
) -> Result<Option<(Session, bool)>, ClientError> {
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

/// Finds the session with this ID, or with the only ID that starts with it.
///
/// # Errors
/// There is none, or several.
pub async fn by_id(connection: &Connection, id: &str) -> Result<Session, ClientError> {
    if id.is_empty() {
        return Err(AgentError::NoSession(id.to_owned()).into());
    }
    let exact = connection.get(&format!("/session/{}", encoded(id))).await;
    match exact {
        Err(failure) if failure.is_refusal() || failure.is("agent.no_session") => {
            let all = format!("/session?limit={MAX_SEARCHED}");
            with_prefix(connection.get(&all).await?, id)
        }
        exact => exact,
    }
}

/// Maximum number of sessions searched by the start of an ID.
const MAX_SEARCHED: usize = 100_000;
/// Maximum number of sessions named if the start of an ID is ambiguous.
const MAX_NAMED: usize = 5;

/// Returns the only session whose ID starts with the prefix, with or without `ses_`.
///
/// # Errors
/// None or several match.
pub fn with_prefix(sessions: Vec<Session>, prefix: &str) -> Result<Session, ClientError> {
    let bare = prefix.strip_prefix("ses_").unwrap_or(prefix);
    let fits = |session: &Session| {
        let id = session.id.as_str();
        !bare.is_empty() && id.strip_prefix("ses_").unwrap_or(id).starts_with(bare)
    };
    let mut found: Vec<Session> = sessions.into_iter().filter(fits).collect();
    match found.len() {
        0 => Err(AgentError::NoSession(prefix.to_owned()).into()),
        1 => Ok(found.remove(0)),
        count => {
            let ids = found
                .iter()
                .take(MAX_NAMED)
                .map(|it| it.id.as_str())
                .collect::<Vec<_>>()
                .join(", ");
            let more = if count > MAX_NAMED { ", ..." } else { "" };
            Err(ClientError::usage(
                format!("`{prefix}` is the start of {count} session IDs"),
                Some(format!("name more of it: {ids}{more}")),
            ))
        }
    }
}

/// The session of the folder that was used last.
///
/// # Errors
/// Those of the connection.
pub async fn latest(connection: &Connection) -> Result<Option<Session>, ClientError> {
    connection.get("/outrigger/session/latest").await
}
