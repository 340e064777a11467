//! Converts rejections of axum to the API's form.
//!
//! A failed extractor answers with a line of plain text. OpenCode answers 400 with `BadRequest` and reports which
//! part of the request was wrong; this does the same for every route.

use axum::Json;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt as _, Limited};
use serde_json::json;

/// Maximum length of an extractor's text, which is a line or two.
const MAX_TEXT: usize = 16 * 1024;

/// Converts a plain-text rejection to the API's form; other responses are unchanged.
pub(crate) async fn typed(response: Response) -> Response {
    let plain = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    let status = match response.status() {
        StatusCode::BAD_REQUEST
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        StatusCode::PAYLOAD_TOO_LARGE => StatusCode::PAYLOAD_TOO_LARGE,
        _ => return response,
    };
    if !plain {
        return response;
    }
    let body: Body = response.into_body();
    let text = match Limited::new(body, MAX_TEXT).collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(_) => "the request cannot be read".to_owned(),
    };
    let error = json!({ "_tag": "BadRequest", "name": "BadRequest", "data": { "message": text, "kind": kind(&text) } });
    (status, Json(error)).into_response()
}

/// Returns which part of the request was wrong, in OpenCode's words.
fn kind(text: &str) -> &'static str {
    if text.contains("query string") {
        "Query"
    } else if text.contains("URL") || text.contains("path") {
        "Params"
    } else {
        "Payload"
    }
}
