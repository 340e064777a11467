//! The lists of MCP servers and of what is in use.

use serde_json::{Value, json};

use crate::app::App;
use crate::app::history::get;
use crate::render::text::inline;
use crate::state::effect::{Effect, Then};
use crate::state::picker::{Item, ListKind, Picker};

impl App {
    /// Connects or disconnects a server; one that needs a login gets it in a shell.
    pub(super) fn switch_mcp(&mut self, chosen: &str) -> Vec<Effect> {
        let Some((status, name)) = chosen.split_once(' ') else {
            return Vec::new();
        };
        let what = match status {
            "connected" => "disconnect",
            "needs_auth" | "needs_client_registration" => {
                let name = inline(name);
                self.conversation.note(format!(
                    "this server needs a login: run `outrigger mcp auth {name}` in another terminal"
                ));
                self.scroll.to_end();
                return Vec::new();
            }
            _ => "connect",
        };
        self.picker = Some(Picker::loading(ListKind::Mcps, "MCP servers"));
        vec![Effect::Call {
            method: "POST",
            path: format!("/mcp/{}/{what}", outrigger_client::encoded(name)),
            body: Some(json!({})),
            then: Then::McpChanged,
        }]
    }

    /// Lists what is in use: what is known here at once, the rest when it has arrived.
    pub(super) fn open_status(&mut self) -> Vec<Effect> {
        let mut items = vec![
            Item::new(
                "agents",
                "agent",
                inline(self.agent.as_deref().unwrap_or("build")),
            ),
            Item::new(
                "models",
                "model",
                crate::view::model(self).map_or_else(|| "none".to_owned(), inline),
            ),
        ];
        if let Some(session) = &self.session {
            items.push(Item::new("rename", "session", inline(&session.title)));
            items.push(Item::new(
                "sessions",
                "session id",
                inline(session.id.as_str()),
            ));
        }
        items.push(Item::new("sessions", "folder", inline(&self.folder)));
        let mut picker = Picker::new(ListKind::Status, "Status", items);
        picker.is_loading = self.is_ready;
        self.picker = Some(picker);
        if !self.is_ready {
            return Vec::new();
        }
        vec![
            get("/mcp".to_owned(), Then::StatusMcps),
            get("/lsp".to_owned(), Then::StatusLsp),
            get("/outrigger/plugin".to_owned(), Then::StatusPlugins),
        ]
    }

    /// Adds lines to the open status.
    pub(crate) fn add_status(&mut self, items: Vec<Item>) {
        if let Some(picker) = self
            .picker
            .as_mut()
            .filter(|it| it.kind == ListKind::Status)
        {
            picker.extend(items);
        }
    }
}

/// Returns MCP servers with their state.
pub(crate) fn mcps(all: &Value) -> Vec<Item> {
    let servers = all.as_object().into_iter().flatten();
    servers
        .map(|(name, server)| {
            let status = server["status"].as_str().unwrap_or("unknown");
            Item::new(format!("{status} {name}"), inline(name), mcp_state(server))
        })
        .collect()
}

fn mcp_state(server: &Value) -> String {
    match server["status"].as_str().unwrap_or("unknown") {
        "needs_auth" => "needs a login".to_owned(),
        "needs_client_registration" => "needs a client id".to_owned(),
        status => match server["error"].as_str() {
            Some(error) => format!("{}: {}", inline(status), inline(error)),
            None => inline(status),
        },
    }
}

/// Returns MCP servers, as lines of the status.
pub(crate) fn status_of_mcps(all: &Value) -> Vec<Item> {
    let servers = all.as_object().into_iter().flatten();
    servers
        .map(|(name, server)| {
            Item::new(
                "mcps",
                format!("MCP server {}", inline(name)),
                mcp_state(server),
            )
        })
        .collect()
}

/// Returns language servers, as lines of the status.
pub(crate) fn status_of_lsp(all: &Value) -> Vec<Item> {
    let servers = all.as_array().into_iter().flatten();
    servers
        .map(|it| {
            let field = |key: &str| inline(it[key].as_str().unwrap_or_default());
            let name = format!("language server {}", field("name"));
            Item::new("status", name, field("status"))
        })
        .collect()
}

/// Returns how many plugins run, as a line of the status.
pub(crate) fn status_of_plugins(all: &Value) -> Vec<Item> {
    let plugins = all["plugins"].as_array().map_or(&[][..], Vec::as_slice);
    let active = plugins.iter().filter(|it| it["stage"] == "active").count();
    let text = match plugins.len() - active {
        0 => format!("{active} active"),
        rest => format!("{active} active, {rest} not running"),
    };
    vec![Item::new("plugins", "plugins", text)]
}
