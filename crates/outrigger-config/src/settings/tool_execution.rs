//! Who executes what tools do, and within what limits: `[connectors.NAME]`, `[[routes]]`, `[capabilities]`, `[tool_limits.NAME]`
//! (C11, D6), and `[mcp.NAME]`. These tables have names of the user's own, so they are not rows of the table of settings.

mod unfit;

use std::collections::BTreeMap;

use outrigger_protocol::descriptor::{Capability, Contract};
use outrigger_schema::{COUNT, Schema, schema};
use serde::{Deserialize, Serialize};

use super::Profile;
use crate::ConfigError;
use crate::origin::Position;

/// Providers on this machine: for files and commands, and for the browser.
const HERE: [&str; 2] = ["local", "cdp"];

const CAPABILITY: Schema = schema!(
    "fs.read"
        | "fs.write"
        | "process.exec"
        | "net.connect"
        | "mcp.call"
        | "agent.spawn"
        | "session.write"
        | "user.ask"
        | "browser.read"
        | "browser.write"
);

const CONNECTOR: Schema = schema!({
    /// URL of an `outrigger bridge`, as `ws://HOST:PORT`.
    url?: string,
    /// Id of a plugin that executes the calls instead, with its tool of the connector's name.
    plugin?: string,
    /// Environment variable that contains the token.
    token_env?: string,
    /// File that contains the token.
    token_file?: string,
    /// Send the token unencrypted to another machine.
    allow_plain?: boolean,
});

const ROUTE: Schema = schema!({
    contract?: "read" | "write" | "edit" | "exec" | "bash" | "browser.read" | "browser.write",
    /// Name of a tool; a trailing `*` matches any text.
    tool?: string,
    /// Name of an agent.
    agent?: string,
    /// Path at or below which the call must be.
    path?: string,
    /// `local`, or the name of a connector.
    provider: string,
});

const TOOL_LIMITS: Schema = schema!({
    /// Maximum duration of a call, in milliseconds.
    timeout_ms?: COUNT,
    /// Maximum number of retries of a failed call.
    max_retries?: (0..=4_294_967_295),
    /// Run equal calls of a step once.
    deterministic_hooks?: boolean,
    /// Folders that it may read.
    allowed_read_roots?: [string],
    /// Folders that it may change.
    allowed_write_roots?: [string],
});

const MCP_SERVER: Schema = schema!({
    /// What the server may access. Default: for servers of the user everything that the user may, for servers of a
    /// project what `tools.sandbox` allows.
    sandbox?: "full" | "workspace-write" | "read-only",
    /// Issuer of the remote server's authorization server, if it differs from the URL by which it was discovered.
    issuer?: string,
    /// URL of the server that the following settings apply to; required with `client_credentials` and
    /// `identity_provider`.
    url?: string,
    /// URL of a client metadata document, which is used as the client id (Client ID Metadata Documents).
    client_metadata_url?: string,
    /// Log in as the client itself, with `oauth.clientId` and `oauth.clientSecret` or `private_key_file`.
    client_credentials?: boolean,
    /// Private key that authenticates the client, in PEM.
    private_key_file?: string,
    /// Identity provider that authenticates the user, so that no login at the server is needed (cross-app access).
    identity_provider?: {
        /// URL of its token exchange.
        token_endpoint: string,
        /// Client id at the identity provider.
        client_id?: string,
        /// File that contains the user's ID token.
        id_token_file: string,
    },
});

/// The sections, for `docs/outrigger.schema.json`; [`ToolExecution`] reads them, and a test holds one against the other.
pub const SECTIONS: Schema = schema!({
    /// Bridges and connectors by name.
    connectors?: {CONNECTOR},
    /// Which provider executes which calls; the first match applies.
    routes?: [ROUTE],
    /// Capabilities of agents, by name. Agents without an entry have all of them.
    capabilities?: {[CAPABILITY]},
    /// Stricter limits than a tool declares, by tool name.
    tool_limits?: {TOOL_LIMITS},
    /// Execution settings of MCP servers, by name.
    mcp?: {MCP_SERVER},
});

/// Returns the names of the sections.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let fields = match SECTIONS {
        Schema::Object(fields) => fields,
        _ => &[],
    };
    fields.iter().map(|field| field.name)
}

/// These settings. They are ignored in a project's file: a project must not send commands elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolExecution {
    /// Bridges and connectors by name.
    pub connectors: BTreeMap<String, Connector>,
    /// Which contract is whose; the first that fits counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteRule>,
    /// What agents are granted, by their name; those that are not named are granted everything.
    pub capabilities: BTreeMap<String, Vec<Capability>>,
    /// Less than what a tool declares, by its name.
    pub tool_limits: BTreeMap<String, ToolLimits>,
    /// How MCP servers run, by their name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp: BTreeMap<String, McpServer>,
}

/// `[mcp.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// What it may do: `full`, what the user may. Where nothing is set, a server of the user's may that, and one of the
    /// project's what `tools.sandbox` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Profile>,
    /// Who the authorization server of a remote one is, where that says another name than the one by which it is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The address that the rest is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The address of a document about this client, which is then its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<String>,
    /// The client logs in itself.
    #[serde(skip_serializing_if = "is_false")]
    pub client_credentials: bool,
    /// The key that signs who the client is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key_file: Option<String>,
    /// Vouches for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_provider: Option<McpIdentityProvider>,
}

/// `[mcp.NAME.identity_provider]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpIdentityProvider {
    /// Where it exchanges tokens.
    pub token_endpoint: String,
    /// The client there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Holds the user's ID token.
    pub id_token_file: String,
}

/// `[connectors.NAME]`: an executor elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connector {
    /// `ws://HOST:PORT`, where an `outrigger bridge` listens; empty where a plugin executes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// A plugin that executes, by its id: its tool of the connector's name is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// Variable that holds the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// File that holds the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<String>,
    /// Send the token in the clear to another machine.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_plain: bool,
}

/// `[[routes]]`: what a rule does not name it does not ask about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteRule {
    /// `read`, `write`, `edit` or `exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// Name of a tool, or with a `*` behind it the beginning of names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Name of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Paths at or below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `local`, or a connector.
    pub provider: String,
}

/// `[tool_limits.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolLimits {
    /// Longest call, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Most repetitions of a failed call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Equal calls of a step run once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deterministic_hooks: Option<bool>,
    /// It reads below these only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_read_roots: Option<Vec<String>>,
    /// It writes below these only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_write_roots: Option<Vec<String>>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde calls"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

impl ToolExecution {
    /// These settings of a file's text, which has been read as TOML before.
    ///
    /// # Errors
    /// `config.setting` with the place.
    pub(crate) fn read(text: &str, file: &str) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let read: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            problem(text, file, at, error.message())
        })?;
        let mut connectors = read.connectors.iter();
        if let Some((name, _)) = connectors.find(|(_, it)| it.url.is_empty() == it.plugin.is_none())
        {
            let at = text
                .find(&format!("[connectors.{name}]"))
                .unwrap_or_default();
            let message = format!(
                "[connectors.{name}] takes either the url of a bridge or the plugin that executes"
            );
            return Err(problem(text, file, at, &message));
        }
        let unknown = read.routes.iter().find(|rule| {
            !HERE.contains(&&*rule.provider) && !read.connectors.contains_key(&rule.provider)
        });
        if let Some(rule) = unknown {
            let at = text.find("[[routes]]").unwrap_or_default();
            let message = format!(
                "a route names the provider {:?}, and there is no [connectors.{}]",
                rule.provider, rule.provider
            );
            return Err(problem(text, file, at, &message));
        }
        for (tool, limits) in &read.tool_limits {
            if let Some((key, why)) = unfit::limit(tool, limits) {
                let header = format!("[tool_limits.{tool}]");
                let at = place(text, &header, key);
                return Err(problem(text, file, at, &format!("{header} {why}")));
            }
        }
        for agent in read.capabilities.keys() {
            if let Some(meant) = unfit::agent(agent) {
                let at = place(text, "[capabilities]", agent);
                let message = format!("[capabilities] {agent}: the agent is called {meant:?}");
                return Err(problem(text, file, at, &message));
            }
        }
        Ok(read)
    }

    /// Adds the settings of a later file; its routes come first.
    pub(crate) fn merge(&mut self, later: Self) {
        self.connectors.extend(later.connectors);
        self.routes.splice(0..0, later.routes);
        self.capabilities.extend(later.capabilities);
        self.tool_limits.extend(later.tool_limits);
        self.mcp.extend(later.mcp);
    }
}

/// Returns the position of a key below a header, or of the header if it is not found.
fn place(text: &str, header: &str, key: &str) -> usize {
    let Some(start) = text.find(header) else {
        return text.find(key).unwrap_or_default();
    };
    let below = start + header.len();
    text.get(below..)
        .and_then(|rest| rest.find(key))
        .filter(|_| !key.is_empty())
        .map_or(start, |at| below + at)
}

fn problem(text: &str, file: &str, at: usize, message: &str) -> ConfigError {
    let at = Position::at(text, at);
    ConfigError::Syntax {
        file: file.to_owned(),
        line: at.line,
        column: at.column,
        language: "settings",
        message: message.lines().next().unwrap_or_default().to_owned(),
        hint:
            "docs/tools.md shows what stands under connectors, routes, capabilities and tool_limits, docs/sandbox.md what under mcp"
                .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::same_names::assert_same;
    use outrigger_protocol::diagnose::Diagnose;

    #[test]
    fn routes_connectors_grants_and_limits_are_read() {
        let text = r#"
            sandbox = "on"
            [connectors.remote]
            url = "ws://127.0.0.1:7070"
            token_env = "REMOTE_TOKEN"
            [[routes]]
            contract = "bash"
            agent = "build"
            path = "src"
            provider = "remote"
            [[routes]]
            tool = "weather_*"
            provider = "local"
            [capabilities]
            plan = ["fs.read"]
            [tool_limits.write]
            allowed_write_roots = ["out"]
            [mcp.s]
            sandbox = "full"
            issuer = "https://auth.test"
        "#;
        let read = ToolExecution::read(text, "f").unwrap();
        assert_eq!(read.routes.len(), 2);
        assert_eq!(read.routes[0].contract, Some(Contract::Exec));
        assert_eq!(read.routes[1].tool.as_deref(), Some("weather_*"));
        assert_eq!(read.capabilities["plan"], [Capability::FsRead]);
        assert_eq!(
            read.connectors["remote"].token_env.as_deref(),
            Some("REMOTE_TOKEN")
        );
        let limits = &read.tool_limits["write"];
        assert_eq!(read.mcp["s"].sandbox, Some(Profile::Full));
        assert_eq!(read.mcp["s"].issuer.as_deref(), Some("https://auth.test"));
        assert_eq!(limits.allowed_write_roots.as_deref().unwrap(), ["out"]);
    }

    /// The table and the types agree.
    #[test]
    fn the_table_is_the_type() {
        assert_same::<ToolExecution>(&SECTIONS);
        let mut whole = SECTIONS.example();
        let Schema::Word(capabilities) = CAPABILITY else {
            panic!()
        };
        assert_eq!(capabilities, Capability::ALL.map(Capability::name));
        for contract in Contract::ALL.map(Contract::name).iter().chain(&["bash"]) {
            whole["routes"][0]["contract"] = (*contract).into();
            assert!(SECTIONS.check(&whole).is_empty(), "{contract}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, want) in [
            ("[connectors.a]\nurl = 5", "f:2:7"),
            ("[connectors.a]\nurl = \"x\"\ncolour = 1", "f:3:1"),
            ("[connectors.a]", "f:1:1"),
            ("\n[[routes]]\nprovider = \"x\"", "no [connectors.x]"),
            (
                "[[routes]]\ncontract = \"fly\"\nprovider = \"local\"",
                "f:2:12",
            ),
            ("[capabilities]\nplan = [\"fs.all\"]", "f:2:9"),
            ("[tool_limits.x]\ntimeout = 5", "f:2:1"),
            (
                "[tool_limits.write]\nallowed_write_roots = [\"a\"]\nallowed_read_roots = [\"a\"]",
                "f:3:1: not valid settings: [tool_limits.write] allowed_read_roots: `write` does not ask for fs.read",
            ),
            (
                "[tool_limits.bash]\ntimeout_ms = 5\nallowed_write_roots = []",
                "f:3:1: not valid settings: [tool_limits.bash] allowed_write_roots: nothing would hold",
            ),
            (
                "[tool_limits.read]\ntimeout_ms = 86400001",
                "f:2:1: not valid settings: [tool_limits.read] timeout_ms: at most",
            ),
            ("[tool_limits.bash]\ntimeout_ms = 0", "f:2:1"),
            (
                "[tool_limits.Write]\ntimeout_ms = 5",
                "f:1:1: not valid settings: [tool_limits.Write] the tool is called \"write\"",
            ),
            (
                "[capabilities]\nBuild = []",
                "f:2:1: not valid settings: [capabilities] Build: the agent is called \"build\"",
            ),
            ("routes = 5", "f:1:10"),
            ("[mcp.s]\nsandbox = \"none\"", "f:2:11"),
            ("[mcp.s]\nroot = 1", "f:2:1"),
        ] {
            let error = ToolExecution::read(text, "f").unwrap_err();
            assert!(error.to_string().contains(want), "{text}: {error}");
            assert_eq!(error.code(), "config.syntax");
        }
    }
}
