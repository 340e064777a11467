//! Unreachable servers. Without a network that is a single problem, not one per server: they are named in one line.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_stdx::sync::lock;

use crate::error::McpError;

/// How long further failures are collected after the first one.
const GATHERED: Duration = Duration::from_millis(500);

/// Errors that wait to be logged.
#[derive(Debug, Default)]
pub(crate) struct Unreached(Mutex<Vec<McpError>>);

impl Unreached {
    /// Logs it in a moment, together with others until then.
    pub(crate) fn add(self: &Arc<Self>, error: McpError) {
        let mut waiting = lock(&self.0);
        waiting.push(error);
        if waiting.len() == 1 {
            let all = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(GATHERED).await;
                all.log();
            });
        }
    }

    fn log(&self) {
        if let Some(line) = line(&std::mem::take(&mut *lock(&self.0))) {
            tracing::warn!("{line}");
        }
    }
}

/// Pending errors are also logged at the end of the program.
impl Drop for Unreached {
    fn drop(&mut self) {
        self.log();
    }
}

fn line(errors: &[McpError]) -> Option<String> {
    if let [error] = errors {
        return Some(format!("[mcp] {error}"));
    }
    let mut named: Vec<String> = errors
        .iter()
        .filter_map(|error| match error {
            McpError::Unreachable { server, host, .. } => Some(format!("{server} at {host}")),
            _ => None,
        })
        .collect();
    named.sort();
    named.dedup();
    (!named.is_empty()).then(|| {
        format!(
            "[mcp] cannot reach {} servers ({}): is there a network? `outrigger mcp list` says more",
            named.len(),
            named.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_servers_are_one_line() {
        let error = |server: &str| McpError::Unreachable {
            server: server.to_owned(),
            host: format!("{server}.test"),
            reason: "no route".to_owned(),
        };
        assert_eq!(line(&[]), None);
        insta::assert_snapshot!(line(&[error("a")]).unwrap(), @"[mcp] cannot reach MCP server a at a.test: no route");
        insta::assert_snapshot!(line(&[error("b"), error("a"), error("b")]).unwrap(), @"[mcp] cannot reach 2 servers (a at a.test, b at b.test): is there a network? `outrigger mcp list` says more");
    }
}
