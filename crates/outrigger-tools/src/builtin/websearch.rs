//! `websearch`: queries a search service. Exists only if the user enabled it, as every query is sent to that service.

use std::sync::OnceLock;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde_json::{Value, json};

use super::{number, reading, spec, text};
use crate::error::ToolError;
use crate::host::{PermissionAsk, ToolContext};
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Searches the web and returns titles, URLs and the relevant parts of the pages.

- Use it for information newer than your training data, and to find pages; webfetch fetches a known URL.
- query is a question or a few words. For news, name the year; the date is in your instructions.
- The query is sent to a search service: do not include secrets.
";

/// Timeout of the service (OpenCode's).
const TIMEOUT: Duration = Duration::from_secs(25);
/// Maximum size of an answer.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Default number of results (OpenCode's).
const RESULTS: u64 = 8;
/// The tool of the service.
const REMOTE_TOOL: &str = "web_search_exa";

/// The search service: an MCP server with Exa's tool.
#[derive(Clone, PartialEq, Eq)]
pub struct SearchService {
    /// Its URL.
    pub url: String,
    /// The user's API key, if the service requires one.
    pub key: Option<String>,
}

// The key is not shown (invariant 10).
impl std::fmt::Debug for SearchService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchService")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The websearch tool.
pub(super) struct WebSearch {
    spec: ToolSpec,
    service: SearchService,
    client: OnceLock<Result<Client, String>>,
}

impl WebSearch {
    pub(super) fn new(service: SearchService) -> Self {
        Self {
            spec: reading(spec(
                "websearch",
                DESCRIPTION,
                json!({
                    "query": {"type": "string"},
                    "numResults": {"type": "number"},
                    "livecrawl": {"type": "string", "enum": ["fallback", "preferred"]},
                    "type": {"type": "string", "enum": ["auto", "fast", "deep"]},
                    "contextMaxCharacters": {"type": "number"},
                }),
                &["query"],
            )),
            service,
            client: OnceLock::new(),
        }
    }

    fn client(&self) -> Result<&Client, ToolError> {
        let made = self.client.get_or_init(|| {
            outrigger_net::builder()
                .user_agent(concat!("outrigger/", env!("CARGO_PKG_VERSION")))
                .redirect(Policy::none())
                .build()
                .map_err(|error| error.to_string())
        });
        made.as_ref()
            .map_err(|error| ToolError::failed(format!("No web client could be made: {error}")))
    }

    /// Returns the URL with the key. It must not appear in messages.
    fn address(&self) -> Result<Url, ToolError> {
        let mut url = Url::parse(&self.service.url).map_err(|error| {
            ToolError::failed(format!(
                "`tools.websearch_url` in outrigger.toml is not an address: {error}"
            ))
        })?;
        outrigger_net::check(&url).map_err(|refused| ToolError::Denied(refused.to_string()))?;
        if let Some(key) = &self.service.key {
            url.query_pairs_mut().append_pair("exaApiKey", key);
        }
        Ok(url)
    }

    async fn ask(&self, input: &Value) -> Result<String, ToolError> {
        let unavailable = |error: reqwest::Error| {
            let error = error.without_url();
            ToolError::Unavailable(format!("The search service cannot be asked: {error}"))
        };
        let request = self
            .client()?
            .post(self.address()?)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(call(input).to_string());
        let mut response = request.send().await.map_err(unavailable)?;
        let status = response.status();
        if !status.is_success() {
            let message = format!("The search service answers with status {status}");
            return Err(ToolError::failed(message));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(unavailable)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MAX_BYTES {
                return Err(ToolError::failed("The search service answers too much"));
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Builds the call for the MCP server. Arguments that the model omitted have OpenCode's defaults.
fn call(input: &Value) -> Value {
    let word = |key: &str, default: &str| match text(input, key) {
        "" => json!(default),
        said => json!(said),
    };
    let mut arguments = json!({
        "query": text(input, "query"),
        "type": word("type", "auto"),
        "numResults": number(input, "numResults").filter(|it| *it > 0).unwrap_or(RESULTS),
        "livecrawl": word("livecrawl", "fallback"),
    });
    if let (Some(most), Value::Object(fields)) =
        (number(input, "contextMaxCharacters"), &mut arguments)
    {
        fields.insert("contextMaxCharacters".to_owned(), json!(most));
    }
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": { "name": REMOTE_TOOL, "arguments": arguments },
    })
}

/// Extracts the results: the answer is one document, or events one of which is the answer.
///
/// # Errors
/// The error reported by the service.
fn found(body: &str) -> Result<Option<String>, ToolError> {
    let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
    for text in std::iter::once(body).chain(events) {
        let Ok(answer) = serde_json::from_str::<Value>(text.trim()) else {
            continue;
        };
        let failed = |why: &str| ToolError::failed(format!("Web search failed: {why}"));
        if let Some(why) = answer.pointer("/error/message").and_then(Value::as_str) {
            return Err(failed(why));
        }
        let content = answer.pointer("/result/content").and_then(Value::as_array);
        let mut texts = content
            .into_iter()
            .flatten()
            .map(|it| super::text(it, "text"));
        let Some(text) = texts.find(|text| !text.is_empty()) else {
            continue;
        };
        if answer.pointer("/result/isError") == Some(&Value::Bool(true)) {
            return Err(failed(text));
        }
        return Ok(Some(text.to_owned()));
    }
    Ok(None)
}

impl Tool for WebSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permissions(
        &self,
        input: &Value,
        _ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        Ok(vec![PermissionAsk {
            permission: "websearch".to_owned(),
            patterns: vec![text(input, "query").to_owned()],
            always: vec!["*".to_owned()],
            metadata: input.clone(),
            ..PermissionAsk::default()
        }])
    }

    fn deadline(&self, _input: &Value) -> Option<Duration> {
        Some(TIMEOUT + Duration::from_secs(5))
    }

    fn run<'a>(
        &'a self,
        input: Value,
        _ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let body = tokio::time::timeout(TIMEOUT, self.ask(&input))
                .await
                .map_err(|_| {
                    ToolError::failed(format!(
                        "The search service did not answer within {} s",
                        TIMEOUT.as_secs()
                    ))
                })??;
            let nothing = "No search results found. Please try a different query.";
            Ok(ToolOutput {
                title: format!("Web search: {}", text(&input, "query")),
                output: found(&body)?.unwrap_or_else(|| nothing.to_owned()),
                metadata: json!({}),
                attachments: None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_as_a_document_or_as_events() {
        let answer =
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"found"}]}}"#;
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
        for body in [
            answer.to_owned(),
            format!("event: message\ndata: {answer}\n\n"),
            format!("data: {progress}\n\ndata:{answer}\r\n\r\n"),
        ] {
            assert_eq!(found(&body).unwrap().as_deref(), Some("found"), "{body}");
        }
        for nothing in ["", "data: x", progress, r#"{"result":{"content":[]}}"#] {
            assert_eq!(found(nothing).unwrap(), None, "{nothing}");
        }
        for (body, want) in [
            (r#"{"error":{"message":"no key"}}"#, "no key"),
            (
                r#"data: {"result":{"isError":true,"content":[{"text":"too many"}]}}"#,
                "too many",
            ),
        ] {
            let error = found(body).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }
}
