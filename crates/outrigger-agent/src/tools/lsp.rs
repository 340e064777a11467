//! Language servers of the project, connected to the tools that change files.

use std::ffi::OsString;
use std::sync::Arc;

use outrigger_protocol::Object;
use outrigger_protocol::event::{CustomEvent, Event};
use serde_json::Value;

pub use outrigger_lsp::Status as LspStatus;

use crate::boot::options::Boot;
use crate::state::{Agent, AgentState};

/// Variables of a process.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// Returns the environment of language servers and formatters.
pub(crate) fn environment(boot: &Boot) -> Environment {
    let env = boot
        .env
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    outrigger_sandbox::env::allow_list_of(env, outrigger_lsp::TOOL_CHAINS)
}

/// Returns whether the tool `lsp` is offered: OpenCode's variable for it, or the one for all of its experiments.
pub(crate) fn tool_is_on(env: &std::collections::BTreeMap<String, String>) -> bool {
    switch(env, "OPENCODE_EXPERIMENTAL_LSP_TOOL")
        .or_else(|| switch(env, "OPENCODE_EXPERIMENTAL"))
        .unwrap_or(false)
}

/// Returns the value of one of OpenCode's boolean variables; `None` if it is not set.
pub(crate) fn switch(env: &std::collections::BTreeMap<String, String>, name: &str) -> Option<bool> {
    let value = env.get(name)?.to_ascii_lowercase();
    Some(["1", "true", "yes", "on", "y"].contains(&value.as_str()))
}

/// Publishes an event when a server has started, as OpenCode does.
pub(crate) fn bind(state: &Arc<AgentState>) {
    if !state.tools.lsp.is_on() {
        return;
    }
    let (owner, mut changes) = (Arc::downgrade(state), state.tools.lsp.changes());
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            let Some(state) = owner.upgrade() else { return };
            let event = Event::Custom(CustomEvent {
                depth: 0,
                kind: "lsp.updated".to_owned(),
                properties: Object::new(),
            });
            if let Err(error) = state.commit(Vec::new(), vec![event]).await {
                tracing::warn!("[lsp] {error}");
            }
        }
    });
}

impl Agent {
    /// Returns the language servers that were started, with their status.
    #[must_use]
    pub fn lsp(&self) -> Vec<LspStatus> {
        self.state.tools.lsp.status()
    }

    /// Returns project symbols by name, from the running language servers, in LSP's form.
    pub async fn symbols(&self, query: &str) -> Vec<Value> {
        self.state.tools.lsp.symbols(query).await
    }
}
