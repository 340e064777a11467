//! Answers to a plugin's client before there is an agent, while plugins load.
//!
//! Only requests that need no session, no configuration and no other plugin are answered: the program's identity, and
//! lines for the log. The rest is refused with 503 instead of waiting, since the agent waits for the plugins.

use outrigger_protocol::id::PluginId;
use outrigger_protocol::provenance::UNKNOWN_PLUGIN;
use outrigger_protocol::rpc::{SdkRequest, SdkResponse};
use serde::Deserialize;
use serde_json::{Value, json};

/// The body of `POST /log`.
#[derive(Debug, Deserialize)]
pub struct LogLine {
    service: String,
    level: String,
    message: String,
    #[serde(default)]
    extra: Value,
}

impl LogLine {
    /// Writes it to our log. A plugin's line starts with its id, which the plugin does not choose: it must not look like a line
    /// of this program.
    ///
    /// # Errors
    /// A message for the client if the level is unknown.
    pub fn write(self, by: Option<&PluginId>) -> Result<(), String> {
        let Self {
            service,
            level,
            message,
            extra,
        } = self;
        let service: Vec<&str> = service.split_whitespace().collect();
        let service = service.join(" ");
        let (service, message) = match by {
            Some(plugin) if plugin.0 == service => (format!("plugin:{plugin}"), message),
            Some(plugin) => (format!("plugin:{plugin}"), format!("{service}: {message}")),
            None => (service, message),
        };
        let extra = if extra.is_null() {
            String::new()
        } else {
            format!(" {extra}")
        };
        match level.as_str() {
            "error" => tracing::error!("[{service}] {message}{extra}"),
            "warn" => tracing::warn!("[{service}] {message}{extra}"),
            "info" => tracing::info!("[{service}] {message}{extra}"),
            "debug" => tracing::debug!("[{service}] {message}{extra}"),
            other => {
                return Err(format!(
                    "`{other}` is not a log level: debug, info, warn or error"
                ));
            }
        }
        Ok(())
    }
}

/// The body of `GET /global/health`.
#[must_use]
pub fn health() -> Value {
    json!({ "healthy": true, "version": env!("CARGO_PKG_VERSION") })
}

/// Answers a request that arrives before the agent exists.
#[must_use]
pub fn answer(request: &SdkRequest) -> SdkResponse {
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("GET", "/global/health") => answered(200, &health()),
        ("POST", "/log") => {
            let body = request.body.as_deref().unwrap_or_default();
            let line = serde_json::from_str::<LogLine>(body).map_err(|error| error.to_string());
            let plugin = request.plugin.clone();
            let plugin = PluginId(plugin.unwrap_or_else(|| UNKNOWN_PLUGIN.to_owned()));
            match line.and_then(|line| line.write(Some(&plugin))) {
                Ok(()) => answered(200, &json!(true)),
                Err(message) => answered(400, &error("BadRequest", &message)),
            }
        }
        _ => answered(
            503,
            &error(
                "UnknownError",
                "the agent is not ready yet: while plugins load, the client answers GET /global/health and POST /log only; \
                ask for the rest in a hook",
            ),
        ),
    }
}

fn error(name: &str, message: &str) -> Value {
    json!({ "name": name, "data": { "message": message } })
}

fn answered(status: u16, body: &Value) -> SdkResponse {
    SdkResponse {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        body: body.to_string(),
        stream: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_agent_is_answered_and_the_rest_says_when() {
        let line = r#"{"service":"acme","level":"info","message":"hello"}"#;
        let odd = r#"{"service":"acme","level":"loud","message":"hello"}"#;
        for (method, path, body, status, says) in [
            (
                "GET",
                "/global/health?directory=%2Fa",
                None,
                200,
                "\"version\"",
            ),
            ("POST", "/log", Some(line), 200, "true"),
            ("POST", "/log", Some(odd), 400, "`loud` is not a log level"),
            ("POST", "/log", Some("{"), 400, "EOF"),
            ("POST", "/log", None, 400, "EOF"),
            (
                "POST",
                "/global/health",
                None,
                503,
                "ask for the rest in a hook",
            ),
            ("GET", "/session", None, 503, "not ready yet"),
            ("GET", "/config", None, 503, "not ready yet"),
        ] {
            let request = SdkRequest {
                plugin: Some("acme".into()),
                method: method.into(),
                path: path.into(),
                headers: Vec::new(),
                body: body.map(str::to_owned),
            };
            let answer = answer(&request);
            assert_eq!(answer.status, status, "{method} {path}");
            assert!(
                answer.body.contains(says),
                "{method} {path}: {}",
                answer.body
            );
        }
    }
}
