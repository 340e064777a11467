//! An entry of `mcp` in `opencode.json`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::error::McpError;
use crate::oauth::OAuthConfig;

/// The transport of a server.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A child process.
    Local {
        /// Program and arguments.
        command: Vec<String>,
        /// Working directory, relative to the project's; `None`: the project's.
        cwd: Option<String>,
        /// Variables in addition to the short list that every server gets.
        environment: BTreeMap<String, String>,
    },
    /// Streamable HTTP or, if not supported, the older transport with an event stream.
    Remote {
        /// URL.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
        /// The login settings; `None` if login is disabled.
        oauth: Option<OAuthConfig>,
    },
}

/// The configuration of one server.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its transport.
    pub transport: Transport,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Timeout of its start and of each call.
    pub timeout: Option<Duration>,
}

/// Headers and environment contain keys: only their names are shown (invariant 10).
impl std::fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ServerConfig");
        match &self.transport {
            Transport::Local {
                command,
                environment,
                ..
            } => shown
                .field("command", command)
                .field("environment", &environment.keys()),
            Transport::Remote {
                url,
                headers,
                oauth,
            } => shown
                .field("url", url)
                .field("headers", &headers.keys())
                .field("oauth", oauth),
        };
        shown.finish_non_exhaustive()
    }
}

impl ServerConfig {
    /// Reads an entry. `None` for an enabled entry without a `type`: OpenCode skips it too.
    ///
    /// # Errors
    /// [`McpError::Config`] naming the invalid key.
    pub fn read(server: &str, entry: &Value) -> Result<Option<Self>, McpError> {
        let wrong = |reason: &str| McpError::Config {
            server: server.to_owned(),
            reason: reason.to_owned(),
        };
        let enabled = entry.get("enabled").and_then(Value::as_bool) != Some(false);
        let timeout = entry
            .get("timeout")
            .and_then(Value::as_u64)
            .filter(|ms| *ms > 0)
            .map(Duration::from_millis);
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        let transport = match entry.get("type").and_then(Value::as_str) {
            Some("local") => {
                let command: Option<Vec<String>> = entry
                    .get("command")
                    .and_then(Value::as_array)
                    .and_then(|list| {
                        list.iter()
                            .map(|item| item.as_str().map(str::to_owned))
                            .collect()
                    });
                Transport::Local {
                    command: command
                        .filter(|command| {
                            command.first().is_some_and(|program| !program.is_empty())
                        })
                        .ok_or_else(|| {
                            wrong("`command` must be a list of texts that begins with a program")
                        })?,
                    cwd: text("cwd"),
                    environment: texts(entry.get("environment")),
                }
            }
            Some("remote") => Transport::Remote {
                url: text("url")
                    .filter(|url| url.starts_with("http://") || url.starts_with("https://"))
                    .ok_or_else(|| wrong("`url` must begin with http:// or https://"))?,
                headers: texts(entry.get("headers")),
                oauth: OAuthConfig::read(entry.get("oauth")).map_err(wrong)?,
            },
            Some(_) => return Err(wrong("`type` must be \"local\" or \"remote\"")),
            None => return Ok(None),
        };
        Ok(Some(Self {
            transport,
            enabled,
            timeout,
        }))
    }
}

fn texts(value: Option<&Value>) -> BTreeMap<String, String> {
    value
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_are_read_and_the_key_at_fault_is_named() {
        let local = json!({"type": "local", "command": ["a", "b"], "environment": {"K": "secret"}, "timeout": 9});
        let read = ServerConfig::read("m", &local).unwrap().unwrap();
        assert_eq!(read.timeout, Some(Duration::from_millis(9)));
        assert!(read.enabled);
        let shown = format!("{read:?}");
        assert!(shown.contains('K') && !shown.contains("secret"), "{shown}");
        assert_eq!(
            ServerConfig::read("m", &json!({"enabled": false})),
            Ok(None)
        );
        let wrong = [
            json!({"type": "local"}),
            json!({"type": "local", "command": []}),
            json!({"type": "local", "command": [""]}),
            json!({"type": "local", "command": ["a", 1]}),
            json!({"type": "remote", "url": "file:///etc"}),
            json!({"type": "remote", "url": "http://a", "oauth": 1}),
            json!({"type": "stdio"}),
        ];
        for entry in wrong {
            assert!(ServerConfig::read("m", &entry).is_err(), "{entry}");
        }
    }
}
