//! Messages of a session, in pages from newest to oldest.
//!
//! As in OpenCode: if there are older messages, a page has their cursor in `X-Next-Cursor` and as a URL in `Link`. The
//! cursor is the oldest message of the page, `{id, time}` as base64url.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse as _, Response};
use outrigger_agent::Agent;
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::MessageInfo;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::routes::cursor;

/// The requested messages.
#[derive(Deserialize)]
pub(crate) struct Window {
    /// The number of newest messages; all if absent or 0.
    limit: Option<usize>,
    /// Only messages older than this cursor.
    before: Option<String>,
}

/// The position of a message in its session.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Cursor {
    id: MessageId,
    /// When it was created, in milliseconds. The identifiers define the order here; the field is OpenCode's.
    time: f64,
}

impl Cursor {
    fn of(message: &MessageInfo) -> Self {
        let created = match message {
            MessageInfo::User(m) => m.time.created,
            MessageInfo::Assistant(m) => m.time.created,
        };
        #[expect(
            clippy::cast_precision_loss,
            reason = "milliseconds are exact for 285000 years"
        )]
        let time = created as f64;
        Self {
            id: message.id().clone(),
            time,
        }
    }

    fn decode(text: &str) -> Result<Self, ApiError> {
        cursor::decode::<Self>(text)
            .filter(|c| c.time >= 0.0 && c.id.as_str().starts_with(MessageId::PREFIX))
            .ok_or_else(|| {
                ApiError::bad_request("invalid `before`: use `X-Next-Cursor` of the previous page")
            })
    }
}

pub(crate) async fn messages(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    Query(window): Query<Window>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let before = window.before.as_deref().filter(|before| !before.is_empty());
    if before.is_some() && window.limit.is_none() {
        return Err(ApiError::bad_request("`before` requires `limit`"));
    }
    let before = before.map(Cursor::decode).transpose()?;
    agent.session(&id)?;
    let Some(limit) = window.limit.filter(|limit| *limit > 0) else {
        return Ok(Json(agent.history(&id)?).into_response());
    };
    // Identifiers ascend, so a deleted message still has its position. One extra message shows whether there are older ones.
    let (before, most) = (before.map(|before| before.id), limit.saturating_add(1));
    let mut page = agent.store().newest_messages(&id, before.as_ref(), most)?;
    let older = page.len().saturating_sub(limit);
    page.drain(..older);
    let next = match page.first().filter(|_| older > 0) {
        Some(oldest) => Some(cursor::encode(&Cursor::of(&oldest.info))?),
        None => None,
    };
    let mut answer = Json(page).into_response();
    if let Some(cursor) = next {
        let link = format!(
            "<{}>; rel=\"next\"",
            address(&uri, &headers, limit, &cursor)
        );
        let out = answer.headers_mut();
        out.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("Link, X-Next-Cursor"),
        );
        for (name, value) in [("link", link), ("x-next-cursor", cursor)] {
            let value = HeaderValue::from_str(&value)
                .map_err(|e| ApiError::internal(format!("the header {name} of a page: {e}")))?;
            out.insert(name, value);
        }
    }
    Ok(answer)
}

/// Returns the URL of the next page: that of this request, with the cursor.
fn address(uri: &Uri, headers: &HeaderMap, limit: usize, cursor: &str) -> String {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = uri.authority().map(|a| a.as_str()).or(host);
    let kept = uri.query().unwrap_or_default().split('&').filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        !matches!(name, "" | "limit" | "before")
    });
    let mut query: Vec<&str> = kept.collect();
    let own = format!("limit={limit}&before={cursor}");
    query.push(&own);
    format!(
        "http://{}{}?{}",
        host.unwrap_or("localhost"),
        uri.path(),
        query.join("&")
    )
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = Cursor {
            id: "msg_1".into(),
            time: 1.0,
        };
        let text = cursor::encode(&cursor).unwrap();
        assert_eq!(Cursor::decode(&text).unwrap(), cursor);
        assert_eq!(Cursor::decode(&format!("{text}=")).unwrap(), cursor);
        for bad in [
            "x",
            "{}",
            &URL_SAFE_NO_PAD.encode("{}"),
            &URL_SAFE_NO_PAD.encode(r#"{"id":"ses_1","time":1}"#),
            &URL_SAFE_NO_PAD.encode(r#"{"id":"msg_1","time":-1}"#),
            &URL_SAFE_NO_PAD.encode(r#"{"id":"msg_1"}"#),
        ] {
            assert!(Cursor::decode(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_next_address_keeps_what_was_asked_for() {
        let mut headers = HeaderMap::new();
        let uri: Uri = "/session/ses_1/message?directory=%2Fa&limit=9&before=old"
            .parse()
            .unwrap();
        let path = "/session/ses_1/message?directory=%2Fa&limit=2&before=C";
        assert_eq!(
            address(&uri, &headers, 2, "C"),
            format!("http://localhost{path}")
        );
        headers.insert("host", HeaderValue::from_static("127.0.0.1:4096"));
        assert_eq!(
            address(&uri, &headers, 2, "C"),
            format!("http://127.0.0.1:4096{path}")
        );
    }
}
