//! The turn that a request asks for, as every route that starts one has to extract it: its cause is the sender of the request, its
//! session exists, and a plugin names no model whose provider the user has not chosen.

use std::marker::PhantomData;

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts as _, Path, Request};
use axum::response::{IntoResponse as _, Response};
use outrigger_agent::{Agent, Origin, TurnRequest};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::provenance::Provenance;
use serde::de::DeserializeOwned;

use crate::access::author::Author;
use crate::access::marks::FromPlugin;
use crate::error::ApiError;

/// The body of a request that starts a turn.
pub(crate) trait TurnBody: DeserializeOwned + Send + 'static {
    /// Returns the turn that it asks for in a session; `author` is its cause.
    ///
    /// # Errors
    /// Whatever of the body is not allowed.
    fn turn(self, session: &SessionId, author: Provenance) -> Result<TurnRequest, ApiError>;
}

/// A turn that may be started in the session of the path `{id}`.
pub(crate) struct Turn<B> {
    request: TurnRequest,
    is_from_plugin: bool,
    body: PhantomData<B>,
}

impl<B> Turn<B> {
    /// Returns the request of a client that waits for the answer. A plugin's is cancelled with it.
    pub(crate) fn attended(self) -> TurnRequest {
        let origin = if self.is_from_plugin {
            Origin::Plugin
        } else {
            Origin::Client
        };
        self.of(origin)
    }

    /// Returns the request, from this origin for every sender.
    pub(crate) fn of(self, origin: Origin) -> TurnRequest {
        self.request.from_origin(origin)
    }
}

impl<B: TurnBody> FromRequest<Agent> for Turn<B> {
    type Rejection = Response;

    async fn from_request(request: Request, agent: &Agent) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let session = Path::<SessionId>::from_request_parts(&mut parts, agent).await;
        let Path(session) = session.map_err(|error| error.into_response())?;
        let Ok(Author(author)) = Author::from_request_parts(&mut parts, agent).await;
        let is_from_plugin = parts.extensions.get::<FromPlugin>().is_some();
        let request = Request::from_parts(parts, body);
        let body = Json::<B>::from_request(request, agent).await;
        let Json(body) = body.map_err(|error| error.into_response())?;
        let request = allowed(agent, &session, body, author);
        Ok(Self {
            request: request.map_err(|error| error.into_response())?,
            is_from_plugin,
            body: PhantomData,
        })
    }
}

fn allowed(
    agent: &Agent,
    session: &SessionId,
    body: impl TurnBody,
    author: Provenance,
) -> Result<TurnRequest, ApiError> {
    let request = body.turn(session, author)?;
    agent.session(session)?;
    agent.may_ask(&request)?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .flat_map(|path| {
                if path.is_dir() {
                    sources(&path)
                } else {
                    vec![path]
                }
            })
            .collect()
    }

    /// A route that made a request by itself could leave out what is checked here.
    #[test]
    fn a_route_makes_a_request_for_a_turn_from_a_body_only() {
        let routes = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/routes");
        let mut bodies = 0;
        for path in sources(&routes) {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("mod tests {").next().unwrap();
            let of = |what: &str| text.matches(what).count();
            assert_eq!(
                of("TurnRequest::"),
                of("impl TurnBody for "),
                "{}: make it in `TurnBody::turn`, and extract `Turn`",
                path.display()
            );
            bodies += of("impl TurnBody for ");
        }
        assert_eq!(bodies, 4);
    }
}
