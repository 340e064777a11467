//! Requests to token endpoints.

use std::time::Duration;

use http::{HeaderValue, StatusCode};
use serde_json::Value;

use crate::transport::client::{error_text, http_client};

/// Timeout of a response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes of a response.
const MAX_ANSWER: usize = 64 * 1024;

/// Fields of a form.
pub(crate) type Form = Vec<(&'static str, String)>;

/// The response of a token endpoint.
pub(crate) struct TokenResponse {
    url: String,
    pub(crate) status: StatusCode,
    /// Null if it is not JSON.
    pub(crate) body: Value,
}

impl TokenResponse {
    /// Returns a text field.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        let text = self.body.get(key)?.as_str()?;
        (!text.is_empty()).then_some(text)
    }

    /// Returns the reason of a refusal, for the user.
    pub(crate) fn refusal(&self) -> String {
        let why = self
            .text("error_description")
            .or_else(|| self.text("error"));
        let why = crate::adapters::wire::brief(why.unwrap_or_default());
        format!("{} answers {}: {why}", self.url, self.status)
    }

    /// Returns the error for a response without a token that is not a refusal.
    pub(crate) fn lacks_token(&self) -> String {
        format!("{} answers without a token", self.url)
    }
}

/// Posts a form.
///
/// # Errors
/// It could not be sent, or was not answered. The request is not shown.
pub(crate) async fn post_form(url: &str, form: &Form) -> Result<TokenResponse, String> {
    let pairs: Vec<String> = form
        .iter()
        .map(|(key, value)| format!("{key}={}", encoded(value)))
        .collect();
    post(url, "application/x-www-form-urlencoded", pairs.join("&")).await
}

/// Posts a JSON document.
///
/// # Errors
/// As [`post_form`].
pub(crate) async fn post_json(url: &str, body: &Value) -> Result<TokenResponse, String> {
    post(url, "application/json", body.to_string()).await
}

async fn post(url: &str, kind: &'static str, body: String) -> Result<TokenResponse, String> {
    let posted = tokio::time::timeout(ANSWER_TIMEOUT, send(url, kind, body)).await;
    posted.map_err(|_| format!("{url} does not answer"))?
}

async fn send(url: &str, kind: &'static str, body: String) -> Result<TokenResponse, String> {
    let failed = |error: &reqwest::Error| format!("{url}: {}", error_text(error));
    let parsed = reqwest::Url::parse(url).map_err(|error| format!("{url}: {error}"))?;
    if parsed.scheme() != "https" && !outrigger_net::is_local(&parsed) {
        return Err(format!("{url} does not begin with https://"));
    }
    let request = http_client(url)?
        .post(parsed)
        .header(http::header::CONTENT_TYPE, HeaderValue::from_static(kind))
        // GitHub responds with a form otherwise.
        .header(http::header::ACCEPT, "application/json")
        .body(body);
    let mut response = request.send().await.map_err(|error| failed(&error))?;
    let status = response.status();
    let mut text = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| failed(&error))? {
        text.extend_from_slice(&piece);
        if text.len() > MAX_ANSWER {
            return Err(format!("{url} answers too much"));
        }
    }
    Ok(TokenResponse {
        url: url.to_owned(),
        status,
        body: serde_json::from_slice(&text).unwrap_or_default(),
    })
}

/// Percent-encodes a text for a URL or a form.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
