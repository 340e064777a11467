//! Language servers of the project, bound to the tools that change files.

use std::ffi::OsString;
use std::sync::Arc;

use outrigger_protocol::Object;
use outrigger_protocol::event::{CustomEvent, Event};
use serde_json::Value;

pub use outrigger_lsp::Status as LspStatus;

use crate::boot::options::Boot;
use crate::state::{Agent, AgentState};

/// Variables that language servers and formatters get besides the usual ones: where tool chains keep their things. None of
/// them holds a secret; proxies and keys are named in `env` of the server where they are needed.
const TOOL_CHAINS: &[&str] = &[
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUNDLE_GEMFILE",
    "BUNDLE_PATH",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CONDA_PREFIX",
    "DOTNET_CLI_HOME",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "GOARCH",
    "GOBIN",
    "GOCACHE",
    "GOFLAGS",
    "GOMODCACHE",
    "GOOS",
    "GOPATH",
    "GOROOT",
    "GOWORK",
    "HEX_HOME",
    "JAVA_HOME",
    "JULIA_DEPOT_PATH",
    "MIX_HOME",
    "NODE_PATH",
    "NVM_BIN",
    "NVM_DIR",
    "OPAM_SWITCH_PREFIX",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONPATH",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];

/// Variables of a process.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// The environment of language servers and formatters.
pub(crate) fn environment(boot: &Boot) -> Environment {
    let env = boot
        .env
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    outrigger_sandbox::env::allow_list_of(env, TOOL_CHAINS)
}

/// Whether the tool `lsp` is offered: OpenCode's switch, which that for all of its experiments stands in for.
pub(crate) fn tool_is_on(env: &std::collections::BTreeMap<String, String>) -> bool {
    switch(env, "OPENCODE_EXPERIMENTAL_LSP_TOOL")
        .or_else(|| switch(env, "OPENCODE_EXPERIMENTAL"))
        .unwrap_or(false)
}

/// What a variable of OpenCode's that switches something says; `None` where it is not set.
pub(crate) fn switch(env: &std::collections::BTreeMap<String, String>, name: &str) -> Option<bool> {
    let value = env.get(name)?.to_ascii_lowercase();
    Some(["1", "true", "yes", "on", "y"].contains(&value.as_str()))
}

/// Publishes when a server came up, as OpenCode does.
pub(crate) fn bind(inner: &Arc<AgentState>) {
    if !inner.lsp.is_on() {
        return;
    }
    let (owner, mut changes) = (Arc::downgrade(inner), inner.lsp.changes());
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            let Some(inner) = owner.upgrade() else { return };
            let event = Event::Custom(CustomEvent {
                depth: 0,
                kind: "lsp.updated".to_owned(),
                properties: Object::new(),
            });
            if let Err(error) = inner.commit(Vec::new(), vec![event]).await {
                tracing::warn!("[lsp] {error}");
            }
        }
    });
}

impl Agent {
    /// The language servers that were started, and how each is.
    #[must_use]
    pub fn lsp(&self) -> Vec<LspStatus> {
        self.inner.lsp.status()
    }

    /// Symbols of the project by name, from the language servers that run, in LSP's form.
    pub async fn symbols(&self, query: &str) -> Vec<Value> {
        self.inner.lsp.symbols(query).await
    }
}
