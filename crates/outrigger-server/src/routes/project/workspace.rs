//! OpenCode's workspaces: copies of a project elsewhere, to which requests are forwarded. There are none here, so a
//! request for one (`workspace` in the query) is refused. If it were answered from this folder, a client would take these
//! sessions for those of the workspace.

use axum::extract::{Query, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::error::ApiError;

/// Refuses requests for a workspace. The routes that list workspaces are exempt.
pub(crate) async fn none(request: Request, next: Next) -> Response {
    let lists = request.uri().path().starts_with("/experimental/workspace");
    match named(&request).filter(|_| !lists) {
        Some(name) => ApiError::bad_request(format!(
            "there is no workspace `{name}`: workspaces are not supported (see docs/compatibility.md)"
        ))
        .into_response(),
        None => next.run(request).await,
    }
}

fn named(request: &Request) -> Option<String> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).ok()?;
    let mut named = pairs.into_iter().filter(|(key, _)| key == "workspace");
    named
        .next()
        .map(|(_, name)| name)
        .filter(|name| !name.is_empty())
}
