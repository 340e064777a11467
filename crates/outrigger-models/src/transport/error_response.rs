//! A provider's response to a refused request, for clients in addition to the message.

use http::HeaderMap;
use serde_json::{Map, Value};

use crate::secret::Secrets;

/// Bytes of a body that are kept. It is stored with the failed message.
const MAX_BODY: usize = 16 * 1024;
/// Bytes of a header's value that are kept.
const MAX_VALUE: usize = 1024;
/// Headers with credentials.
const SECRET_HEADERS: &[&str] = &["set-cookie", "authorization", "proxy-authenticate"];

/// A response with an error status: URL, status, headers and body without keys (invariant 10). OpenCode's `APIError`
/// has these fields (`statusCode`, `responseHeaders`, `responseBody`, `metadata.url`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorResponse {
    /// The requested URL.
    pub url: String,
    /// HTTP status.
    pub status: u16,
    /// Headers by name in lower case; repeated ones are joined.
    pub headers: Vec<(String, String)>,
    /// Body as text, truncated if it is long.
    pub body: String,
}

impl ErrorResponse {
    pub(crate) fn new(
        url: &str,
        status: u16,
        headers: &HeaderMap,
        body: &str,
        secrets: &Secrets,
    ) -> Self {
        let mut kept: Vec<(String, String)> = Vec::new();
        for (name, value) in headers {
            if SECRET_HEADERS.contains(&name.as_str()) {
                continue;
            }
            let text = String::from_utf8_lossy(value.as_bytes());
            let text = secrets.scrub(beginning(&text, MAX_VALUE));
            match kept.iter_mut().find(|(known, _)| known == name.as_str()) {
                Some((_, before)) => {
                    before.push_str(", ");
                    before.push_str(&text);
                }
                None => kept.push((name.as_str().to_owned(), text)),
            }
        }
        Self {
            url: secrets.scrub(url),
            status,
            headers: kept,
            // Redacted first: a truncated key would not be found.
            body: beginning(&secrets.scrub(body), MAX_BODY).to_owned(),
        }
    }

    /// Adds the fields to the data of an error, under OpenCode's names.
    pub(crate) fn describe(&self, data: &mut Map<String, Value>) {
        let headers: Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
            .collect();
        data.insert("statusCode".into(), self.status.into());
        data.insert("responseHeaders".into(), Value::Object(headers));
        data.insert("responseBody".into(), Value::from(self.body.as_str()));
        data.insert("metadata".into(), serde_json::json!({ "url": self.url }));
    }
}

/// Truncates a text to at most `most` bytes of whole characters.
fn beginning(text: &str, most: usize) -> &str {
    let end = outrigger_stdx::text::floor_char_boundary(text, most);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use http::HeaderValue;

    #[test]
    fn keys_and_cookies_are_not_in_it_and_long_bodies_are_cut() {
        let mut secrets = Secrets::default();
        secrets.add(&Secret::new("top-secret-key"));
        let mut headers = HeaderMap::new();
        headers.append("set-cookie", HeaderValue::from_static("session=1"));
        headers.append("x-echo", HeaderValue::from_static("top-secret-key"));
        headers.append("via", HeaderValue::from_static("a"));
        headers.append("via", HeaderValue::from_static("b"));
        let body = format!("top-secret-key {}", "\u{e4}".repeat(MAX_BODY));
        let url = "http://h/v1?key=top-secret-key";
        let refusal = ErrorResponse::new(url, 418, &headers, &body, &secrets);
        assert!(!format!("{refusal:?}").contains("top-secret-key"));
        assert_eq!(
            refusal.headers,
            [
                ("x-echo".to_owned(), "[key removed]".to_owned()),
                ("via".to_owned(), "a, b".to_owned())
            ]
        );
        assert!(refusal.body.len() <= MAX_BODY && refusal.body.ends_with('\u{e4}'));
        let mut data = Map::new();
        refusal.describe(&mut data);
        assert_eq!(
            data.keys().map(String::as_str).collect::<Vec<_>>(),
            ["statusCode", "responseHeaders", "responseBody", "metadata"]
        );
    }
}
