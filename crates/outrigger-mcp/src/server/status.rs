//! The listed state of a server.

use outrigger_protocol::diagnose::Diagnose;
use serde::Serialize;

use super::Server;
use crate::config::Transport;
use crate::error::McpError;
use crate::launch::Placement;

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Disabled in the configuration.
    Disabled,
    /// Not connected yet.
    Starting,
    /// Its tools can be called.
    Connected,
    /// It did not start, or it ended. A server that was connected is restarted by the next call.
    Failed,
    /// It requires a login.
    NeedsAuth,
    /// It requires a login with a client that was registered by hand.
    NeedsClientRegistration,
}

/// The listed state of one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// Name in the configuration.
    pub name: String,
    /// `local` or `remote`; empty if the entry is invalid.
    pub transport: &'static str,
    /// Its state.
    pub state: State,
    /// Why it is not connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stable code of that error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Names of its tools, as the model calls them.
    pub tools: Vec<String>,
    /// Its own name and version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Its process id, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How often it was restarted.
    pub restarts: u32,
    /// Where and in which sandbox its process is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Milliseconds from its last start to its list of tools.
    pub start_ms: Option<u64>,
}

impl Server {
    pub(crate) fn status(&self) -> Status {
        let inside = self.inside();
        let link = inside.link.as_ref();
        let lost = link.and_then(|link| link.closed());
        let error = lost.or_else(|| inside.error.as_ref().map(|(error, _)| error.clone()));
        let disabled = match inside.switched {
            Some(on) => !on,
            None => self.config.as_ref().is_ok_and(|config| !config.enabled),
        };
        let state = match &error {
            _ if disabled => State::Disabled,
            Some(McpError::NeedsAuth { .. } | McpError::NeedsScope { .. }) => State::NeedsAuth,
            Some(McpError::NeedsClientRegistration { .. }) => State::NeedsClientRegistration,
            Some(_) => State::Failed,
            None if link.is_some() => State::Connected,
            None => State::Starting,
        };
        let about = inside
            .about
            .name
            .as_ref()
            .map(|name| match &inside.about.version {
                Some(version) => format!("{name} {version}"),
                None => name.clone(),
            });
        let request = self.launch_request();
        let launcher = self.around.launcher.as_ref();
        let placement = launcher.and_then(|it| it.placement(request.as_ref()?));
        let remedy = placement.as_ref().and_then(|it| it.remedy.clone());
        let hint = error.as_ref().map(|error| match (error, remedy) {
            (McpError::NotStarted { .. } | McpError::Config { .. }, _) | (_, None) => error.hint(),
            (_, Some(remedy)) => {
                let hints = error.hint().into_iter().chain([remedy]);
                Some(hints.collect::<Vec<_>>().join("; "))
            }
        });
        Status {
            name: self.name.clone(),
            transport: match self.config.as_ref().map(|config| &config.transport) {
                Ok(Transport::Local { .. }) => "local",
                Ok(Transport::Remote { .. }) => "remote",
                Err(_) => "",
            },
            state,
            code: error.as_ref().map(McpError::code),
            hint: hint.flatten(),
            placement,
            tools: inside
                .tools
                .iter()
                .map(|tool| crate::tool_name(&self.name, &tool.name))
                .collect(),
            server: about,
            pid: link.filter(|_| error.is_none()).and_then(|link| link.pid()),
            restarts: inside.starts.saturating_sub(1),
            start_ms: inside.start_ms,
            error: error.map(|error| error.to_string()),
        }
    }
}
