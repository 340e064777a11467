//! Shared parts of the adapters: the prepared request, the decoder's interface, and the parsing of error
//! responses.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use outrigger_protocol::model::StreamEvent;
use serde_json::Value;

use crate::error::ModelError;
use crate::secret::Secrets;
use crate::transport::error_response::ErrorResponse;
use crate::transport::retry::{asked_wait, is_retryable_status};
use outrigger_sse::Event as SseEvent;

/// Whether a decoder expects more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done,
}

/// Why a decoder cannot continue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// Not of the expected form.
    Malformed(String),
    /// The provider reports an error inside the stream.
    Provider {
        /// The equivalent HTTP status, if there is one.
        status: Option<u16>,
        body: Value,
    },
}

/// Converts the events of one response to stream events. Does no I/O.
pub(crate) trait Decode: Send + Sync {
    /// Takes one event of the stream.
    fn feed(&mut self, event: &SseEvent, out: &mut Vec<StreamEvent>) -> Result<Progress, Failure>;
    /// Takes a response that is one JSON document although a stream was requested.
    fn whole(&mut self, body: Value, out: &mut Vec<StreamEvent>) -> Result<(), Failure>;
    /// Handles the end of the bytes. Returns `false` if the response is incomplete.
    fn end(&mut self, out: &mut Vec<StreamEvent>) -> bool;
}

/// Creates a decoder for one response; every attempt gets a new one.
pub(crate) type MakeDecoder = fn() -> Box<dyn Decode>;

/// The target of a request, for error messages.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) url: String,
    pub(crate) key_source: String,
    pub(crate) secrets: Secrets,
}

impl Target {
    /// Converts a response with an error status to an error and the requested wait.
    pub(crate) fn status_error(
        &self,
        status: u16,
        headers: &HeaderMap,
        body: &str,
    ) -> (ModelError, Option<Duration>) {
        let wait = asked_wait(headers, SystemTime::now());
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let mut message = parsed
            .as_ref()
            .and_then(message_of)
            .unwrap_or_else(|| plain_message(body));
        if (300..400).contains(&status) {
            let to = headers.get("location").and_then(|v| v.to_str().ok());
            message = format!(
                "redirects to {}; set options.baseURL to the final address",
                to.unwrap_or("?")
            );
        }
        let code = parsed.as_ref().and_then(code_of).unwrap_or_default();
        let error = self.classify(Some(status), &code, &message, wait);
        let refusal = ErrorResponse::new(&self.url, status, headers, body, &self.secrets);
        (error.with_refusal(refusal), wait)
    }

    /// Converts a decoder's failure to an error.
    pub(crate) fn stream_error(&self, failure: &Failure) -> ModelError {
        match failure {
            Failure::Malformed(message) => ModelError::BadStream {
                provider: self.provider.clone(),
                message: self.secrets.scrub(message),
            },
            Failure::Provider { status, body } => {
                let message = message_of(body).unwrap_or_else(|| brief(&body.to_string()));
                let code = code_of(body).unwrap_or_default();
                self.classify(*status, &code, &message, None)
            }
        }
    }

    fn classify(
        &self,
        status: Option<u16>,
        code: &str,
        message: &str,
        wait: Option<Duration>,
    ) -> ModelError {
        let provider = self.provider.clone();
        let message = self.secrets.scrub(&brief(message));
        let lower = message.to_ascii_lowercase();
        if matches!(status, Some(400 | 413) | None) && is_overflow(code, &lower) {
            return ModelError::ContextOverflow {
                provider,
                message,
                refusal: None,
            };
        }
        match status {
            Some(status @ (401 | 403)) => ModelError::Auth {
                provider,
                status,
                key_source: self.key_source.clone(),
                message,
                refusal: None,
            },
            Some(429) => ModelError::RateLimited {
                provider,
                retry_after: wait,
                message,
                refusal: None,
            },
            Some(404) => self.not_found(message),
            Some(400) if code == "model_not_found" || lower.contains("not a valid model") => {
                self.not_found(message)
            }
            other => ModelError::Api {
                provider,
                status: other,
                message,
                retryable: other.is_some_and(is_retryable_status),
                refusal: None,
            },
        }
    }

    fn not_found(&self, message: String) -> ModelError {
        ModelError::NotFound {
            provider: self.provider.clone(),
            model: self.model.clone(),
            url: self.secrets.scrub(&self.url).into(),
            message,
            refusal: None,
        }
    }
}

fn is_overflow(code: &str, lower: &str) -> bool {
    code == "context_length_exceeded"
        || [
            "context length",
            "context window",
            "prompt is too long",
            "input is too long",
            "maximum context",
            "maximum prompt length",
            "input token count",
            "too many tokens",
        ]
        .iter()
        .any(|part| lower.contains(part))
}

/// Returns the message in an error document, in the forms of various providers.
pub(crate) fn message_of(body: &Value) -> Option<String> {
    // Google wraps the document in an array.
    let body = body.get(0).unwrap_or(body);
    let candidates = [
        body.pointer("/error/message"),
        body.get("error"),
        body.get("message"),
        body.get("detail"),
        body.pointer("/detail/0/msg"),
    ];
    let text = candidates.into_iter().flatten().find_map(Value::as_str)?;
    // OpenRouter puts the real provider's message here.
    match body.pointer("/error/metadata/raw").and_then(Value::as_str) {
        Some(raw) if !raw.is_empty() => Some(format!("{text}: {raw}")),
        _ => Some(text.to_owned()),
    }
}

fn code_of(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    ["/error/code", "/error/type", "/code"]
        .iter()
        .find_map(|p| body.pointer(p).and_then(Value::as_str))
        .map(str::to_owned)
}

fn plain_message(body: &str) -> String {
    let text = body.trim();
    if text.is_empty() {
        "empty answer".into()
    } else if text.starts_with('<') {
        "an HTML page, not an API's answer".into()
    } else {
        text.to_owned()
    }
}

/// Shortens a text to at most 400 characters on one line.
pub(crate) fn brief(text: &str) -> String {
    const MAX: usize = 400;
    let mut out: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = out.char_indices().nth(MAX) {
        out.truncate(cut);
        out.push('\u{2026}');
    }
    out
}

/// Formats a number as JavaScript does: no `.0` after integers, so that bodies equal those of OpenCode.
pub(crate) fn js_number(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    if number.fract() == 0.0 && number.abs() < 9.0e15 {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}
