//! Enabling MCP servers by clients, and logins at them.

use outrigger_mcp::{AuthStart, AuthState, Status};
use outrigger_protocol::event::{CustomEvent, Event};
use serde_json::{Value, json};

use crate::error::AgentError;
use crate::state::Agent;
use outrigger_session_state::logins::LoginAt;

impl Agent {
    /// Adds an MCP server for as long as the program runs, or puts another in the place of one.
    ///
    /// # Errors
    /// [`AgentError::Mcp`] for an entry that is none.
    pub async fn mcp_add(&self, name: &str, entry: &Value) -> Result<Status, AgentError> {
        Ok(self.state.tools.mcp.add(name, entry).await?)
    }

    /// Switches an MCP server on, starting it anew, or off.
    ///
    /// # Errors
    /// [`AgentError::Mcp`] for a name that no server has.
    pub async fn mcp_switch(&self, name: &str, on: bool) -> Result<Status, AgentError> {
        Ok(self.state.tools.mcp.switch(name, on).await?)
    }

    /// Begins a login; the caller passes the code to [`Self::mcp_finish_auth`].
    ///
    /// # Errors
    /// [`AgentError::Mcp`].
    pub async fn mcp_start_auth(&self, name: &str) -> Result<AuthStart, AgentError> {
        let start = self.state.tools.mcp.start_auth(name).await?;
        self.state.logins.waiting.begin(LoginAt::McpServer, name);
        Ok(start)
    }

    /// Ends a login with its code, and connects. `iss`: who answered, where the answer says so.
    ///
    /// # Errors
    /// [`AgentError::Mcp`].
    pub async fn mcp_finish_auth(
        &self,
        name: &str,
        code: &str,
        iss: Option<&str>,
    ) -> Result<Status, AgentError> {
        let status = self.state.tools.mcp.finish_auth(name, code, iss).await?;
        self.state.logins.waiting.end(LoginAt::McpServer, name);
        Ok(status)
    }

    /// A whole login: the person is waited for. `show` gets the address to log in at, and so does everybody with the event
    /// `mcp.browser.open.failed`.
    ///
    /// # Errors
    /// [`AgentError::Mcp`].
    pub async fn mcp_authenticate(
        &self,
        name: &str,
        show: impl FnOnce(&str),
    ) -> Result<Status, AgentError> {
        let status = self
            .state
            .tools
            .mcp
            .authenticate(name, async |url: &str| {
                show(url);
                self.publish_address(name, url).await;
            })
            .await?;
        Ok(status)
    }

    /// Forgets a login.
    ///
    /// # Errors
    /// [`AgentError::Mcp`].
    pub fn mcp_remove_auth(&self, name: &str) -> Result<(), AgentError> {
        Ok(self.state.tools.mcp.remove_auth(name)?)
    }

    /// Returns the login state of a server; `None` if it has no login.
    #[must_use]
    pub fn mcp_auth_state(&self, name: &str) -> Option<AuthState> {
        self.state.tools.mcp.auth_state(name)
    }

    /// Returns the resources of all MCP servers, by OpenCode's keys, `SERVER:URI`.
    pub async fn mcp_resources(&self) -> Value {
        let listed = self.state.tools.mcp.resources(None).await;
        let entries = listed.into_iter().filter_map(|listed| {
            let uri = listed.entry["uri"].as_str()?;
            let server = listed.server.replace('%', "%25").replace(':', "%3A");
            let key = format!("{server}:{uri}");
            let mut entry = listed.entry;
            entry["client"] = listed.server.into();
            Some((key, entry))
        });
        Value::Object(entries.collect())
    }

    // A child process would end with Outrigger, which a browser must not; so a client opens the URL.
    async fn publish_address(&self, name: &str, url: &str) {
        let properties = json!({"mcpName": name, "url": url});
        let event = Event::Custom(CustomEvent {
            depth: 0,
            kind: "mcp.browser.open.failed".to_owned(),
            properties: properties.as_object().cloned().unwrap_or_default(),
        });
        if let Err(error) = self.publish(event).await {
            tracing::warn!("[mcp] {error}");
        }
    }
}
