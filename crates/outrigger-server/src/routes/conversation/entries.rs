//! Routes for lists of conversations, pages of their entries, and texts that were shortened in
//! them.

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use outrigger_api::{Conversation, ConversationPage, EntryPage, SearchPage};
use outrigger_conversation::{Form, ListQuery, SearchQuery};
use outrigger_protocol::id::{MessageId, SessionId};
use serde::Deserialize;

use super::Source;
use crate::access::scope::Scope;
use crate::error::{ApiError, JsonResult};

/// Default and maximum page size.
const PAGE: usize = 50;
const MAX_PAGE: usize = 1000;
const NO_CURSOR: &str = "invalid `cursor`: use `next` of the previous page";

#[derive(Deserialize)]
pub(super) struct Listed {
    limit: Option<usize>,
    cursor: Option<String>,
    search: Option<String>,
    directory: Option<String>,
    project: Option<String>,
    #[serde(default)]
    children: bool,
}

pub(super) async fn list(
    State(source): State<Source>,
    scope: Option<Extension<Scope>>,
    Query(listed): Query<Listed>,
) -> JsonResult<ConversationPage> {
    let query = ListQuery {
        limit: listed.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE),
        cursor: listed.cursor.filter(|text| !text.is_empty()),
        search: listed.search,
        directory: listed.directory,
        project: listed.project,
        children: listed.children,
    };
    let allowed = |folder: &std::path::Path| scope.as_ref().is_none_or(|it| it.holds(folder));
    let page = source
        .reader()?
        .list(&query, &allowed)?
        .ok_or_else(|| ApiError::bad_request(NO_CURSOR))?;
    Ok(Json(page))
}

pub(super) async fn one(
    State(source): State<Source>,
    Path(id): Path<SessionId>,
    scope: Option<Extension<Scope>>,
) -> JsonResult<Conversation> {
    Ok(Json(source.find(&id, scope.as_ref())?.1))
}

#[derive(Deserialize)]
pub(super) struct Window {
    limit: Option<usize>,
    before: Option<MessageId>,
    merge: Option<bool>,
}

/// Returns the requested form of tool entries.
pub(super) fn form(merge: Option<bool>) -> Form {
    match merge {
        Some(false) => Form::Apart,
        _ => Form::Merged,
    }
}

pub(super) async fn page(
    State(source): State<Source>,
    Path(id): Path<SessionId>,
    scope: Option<Extension<Scope>>,
    Query(window): Query<Window>,
) -> JsonResult<EntryPage> {
    source.find(&id, scope.as_ref())?;
    let limit = window.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let before = window.before.filter(|id| !id.as_str().is_empty());
    let page = source
        .reader()?
        .page(&id, before.as_ref(), limit, form(window.merge))?;
    Ok(Json(page))
}

pub(super) async fn content(
    State(source): State<Source>,
    Path((id, reference)): Path<(SessionId, String)>,
    scope: Option<Extension<Scope>>,
) -> Result<Response, ApiError> {
    source.find(&id, scope.as_ref())?;
    let text = source
        .reader()?
        .content(&id, &reference)?
        .ok_or_else(|| ApiError::missing("that text no longer exists"))?;
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, text).into_response())
}

#[derive(Deserialize)]
pub(super) struct Looked {
    q: String,
    limit: Option<usize>,
    cursor: Option<String>,
    conversation: Option<SessionId>,
}

/// Searches what is stored, of all projects.
pub(super) async fn search(
    State(source): State<Source>,
    scope: Option<Extension<Scope>>,
    Query(looked): Query<Looked>,
) -> JsonResult<SearchPage> {
    let cursor = looked
        .cursor
        .filter(|text| !text.is_empty())
        .map(|text| text.parse())
        .transpose();
    let query = SearchQuery {
        words: looked.q,
        limit: looked.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE),
        cursor: cursor.map_err(|_| ApiError::bad_request(NO_CURSOR))?,
        conversation: looked.conversation,
    };
    let reader = source.reader()?;
    let found = tokio::task::spawn_blocking(move || {
        let allowed = |folder: &std::path::Path| scope.as_ref().is_none_or(|it| it.holds(folder));
        reader.search(&query, &allowed)
    });
    let found = found.await;
    let page = found.map_err(|lost| ApiError::internal(lost.to_string()))??;
    Ok(Json(page))
}
