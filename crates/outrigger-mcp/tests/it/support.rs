//! A folder with servers, and helpers to inspect them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use outrigger_mcp::{McpError, McpServers, Options, ServerTool, Status};
use outrigger_sandbox::{Spawner, env};
use serde_json::{Map, Value, json};

/// Longer than anything here takes, on a busy machine too.
pub(crate) const LONG: Duration = Duration::from_secs(120);

pub(crate) struct Room {
    pub(crate) servers: McpServers,
    // Removed with the room.
    _dir: tempfile::TempDir,
}

/// Returns an entry for `server.mjs`.
pub(crate) fn node(modes: &[&str]) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.mjs");
    let command: Vec<&str> = ["node", script].iter().chain(modes).copied().collect();
    json!({"type": "local", "command": command, "timeout": 20_000})
}

/// Returns an entry for a shell script.
pub(crate) fn sh(script: &str, timeout: u64) -> Value {
    json!({"type": "local", "command": ["sh", "-c", script], "timeout": timeout})
}

pub(crate) fn entries(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn options(dir: &Path) -> Options {
    Options {
        spawner: Spawner::new().unwrap(),
        directory: dir.to_owned(),
        env: env::allow_list(&[]),
        call_timeout: None,
        launcher: None,
        tokens: outrigger_mcp::TokenStore::new(dir.join("mcp-auth.json")),
        logins: BTreeMap::new(),
    }
}

impl Room {
    /// Starts servers and waits for them.
    pub(crate) async fn new(value: Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let servers = McpServers::start(&entries(value), options(dir.path()));
        servers.ready().await;
        Self { servers, _dir: dir }
    }

    /// Starts one server called `m`.
    pub(crate) async fn one(entry: Value) -> Self {
        Self::new(json!({"m": entry})).await
    }

    pub(crate) fn tool(&self, name: &str) -> ServerTool {
        let tools = self.servers.tools();
        tools
            .into_iter()
            .find(|tool| tool.name == name)
            .unwrap_or_else(|| panic!("no tool {name}: {:?}", self.servers.status()))
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Result<Value, McpError> {
        self.tool(name).call(&arguments).await
    }

    /// Returns the text of a call's answer.
    pub(crate) async fn text(&self, name: &str, arguments: Value) -> String {
        let answer = self.call(name, arguments).await.unwrap();
        answer["content"][0]["text"].as_str().unwrap().to_owned()
    }

    pub(crate) fn status(&self, name: &str) -> Status {
        let list = self.servers.status();
        list.into_iter().find(|status| status.name == name).unwrap()
    }

    /// Returns state and cause, for a snapshot.
    pub(crate) fn cause(&self, name: &str) -> String {
        let status = self.status(name);
        format!(
            "{:?} {}: {}",
            status.state,
            status.code.unwrap_or_default(),
            status.error.unwrap_or_default()
        )
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(LONG, async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

/// Returns the number in a file, once it exists.
pub(crate) async fn pid_in(file: &Path) -> u32 {
    let read = || std::fs::read_to_string(file).ok()?.trim().parse().ok();
    until("the process has written its number", || read().is_some()).await;
    read().unwrap()
}
