//! Tools of MCP servers, bound to the tool runtime as all others are (requirement B5).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_config::Loaded;
use outrigger_mcp::{McpServers, ServerTool, content, tool_name};
use outrigger_protocol::descriptor::{Capability, Declared};
use outrigger_protocol::event::{CustomEvent, Event};
use outrigger_protocol::model::ToolOffer;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_sandbox::Spawner;
use outrigger_tools::{PermissionAsk, Tool, ToolContext, ToolError};
use serde_json::{Value, json};

mod attach;
mod claude;
mod contents;
mod login;
mod prompts;
mod resources;
pub(crate) mod skill_servers;
mod skills;

pub use claude::AllowedServers;
pub(crate) use claude::with_claude;
pub use outrigger_mcp::AuthStart;
pub use outrigger_mcp::{AuthState, McpError, State as McpState, Status as McpStatus, TokenStore};
pub use prompts::McpPrompt;
pub use skills::servers_of_skills;

use crate::boot::options::Boot;
use crate::state::{Agent, Inner};
use outrigger_workspace::Folders;
use outrigger_workspace::Place;

/// Longest call, reports of progress or not (the usual limit of a tool).
const LONGEST: Duration = Duration::from_secs(600);
const SOURCE: &str = "mcp:";

impl Agent {
    /// The MCP servers and how each is.
    #[must_use]
    pub fn mcp(&self) -> Vec<McpStatus> {
        let mut all = self.inner.mcp.status();
        for status in &mut all {
            if let Some(why) = self.inner.mcp_waiting.get(&status.name)
                && status.state == McpState::Disabled
            {
                status.code = Some("mcp.not_allowed");
                status.hint = Some(why.clone());
            }
        }
        all
    }
}

/// Starts the configured servers in the background, while plugins load.
pub(crate) fn start(boot: &Boot, config: &Loaded, place: &Place, boxed: &Spawner) -> McpServers {
    let options = options(&boot.env, config, place, boxed, &boot.folders);
    McpServers::start(&with_claude(config, &boot.folders).0, options)
}

fn options(
    env: &BTreeMap<String, String>,
    config: &Loaded,
    place: &Place,
    boxed: &Spawner,
    folders: &Folders,
) -> outrigger_mcp::Options {
    let env = env
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    outrigger_mcp::Options {
        spawner: boxed.clone(),
        directory: place.directory.clone(),
        env: outrigger_sandbox::env::allow_list_of(env, &[]),
        call_timeout: call_timeout(config),
        tokens: tokens(folders),
    }
}

/// `experimental.mcp_timeout`, in force for servers that set none.
pub(crate) fn call_timeout(config: &Loaded) -> Option<Duration> {
    let timeout = config.config.experimental.get("mcp_timeout");
    timeout.and_then(Value::as_u64).map(Duration::from_millis)
}

/// What servers of a running agent are started with.
fn surroundings(inner: &Inner) -> outrigger_mcp::Options {
    let config = &inner.config;
    let boxed = outrigger_permissions::sandbox_policy::spawner(
        &inner.spawner,
        config,
        &inner.place,
        &inner.folders,
        inner.settled.as_ref(),
    );
    options(config.env(), config, &inner.place, &boxed, &inner.folders)
}

/// What is kept of logins at MCP servers, with the reference's name in our folder.
#[must_use]
pub fn tokens(folders: &Folders) -> TokenStore {
    TokenStore::new(folders.data.join("mcp-auth.json"))
}

/// Waits for the servers, registers their tools behind those that there are, and follows changes: a server that came up
/// late, a list of tools that the server changed.
pub(crate) async fn bind(inner: &Arc<Inner>) {
    inner.mcp.ready().await;
    let (owner, mut changes) = (Arc::downgrade(inner), inner.mcp.changes());
    register(inner);
    let mut before = offered(inner);
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            let Some(inner) = owner.upgrade() else { return };
            register(&inner);
            let after = offered(&inner);
            tell_changes(&inner, &before, &after).await;
            before = after;
        }
    });
}

/// The tools of the servers that are connected, and of those that have ended.
type Offered = BTreeMap<String, (McpState, Vec<String>)>;

fn offered(inner: &Inner) -> Offered {
    let status = inner.mcp.status().into_iter();
    status
        .filter(|status| matches!(status.state, McpState::Connected | McpState::Failed))
        .map(|status| (status.name, (status.state, status.tools)))
        .collect()
}

/// `mcp.tools.changed`, as in the reference: for servers that were connected and have other tools now, or have ended.
async fn tell_changes(inner: &Inner, before: &Offered, after: &Offered) {
    let changed = before
        .iter()
        .filter(|(_, (state, _))| *state == McpState::Connected)
        .filter(|(name, was)| after.get(*name).is_some_and(|is| is != *was));
    for (server, _) in changed {
        let mut properties = outrigger_protocol::Object::new();
        properties.insert("server".to_owned(), server.as_str().into());
        let event = Event::Custom(CustomEvent {
            depth: 0,
            kind: "mcp.tools.changed".to_owned(),
            properties,
        });
        if let Err(error) = inner.commit(Vec::new(), vec![event]).await {
            tracing::warn!("[mcp] {error}");
        }
    }
}

/// Whether a tool is one of an MCP server.
pub(crate) fn is_mcp(spec: &ToolSpec) -> bool {
    spec.source.starts_with(SOURCE)
        || spec.source == resources::RESOURCES
        || skill_servers::is_of_skill(spec)
}

/// What the model is told: no hook is asked about these tools, as in the reference.
pub(crate) fn offer(spec: &ToolSpec) -> ToolOffer {
    ToolOffer {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.input_schema.clone(),
    }
}

fn register(inner: &Arc<Inner>) {
    resources::register(inner);
    let tools: Vec<McpTool> = inner.mcp.tools().into_iter().map(McpTool::new).collect();
    let of_servers = |spec: &&ToolSpec| spec.source.starts_with(SOURCE);
    for old in inner.runtime.specs().iter().filter(of_servers) {
        if !tools
            .iter()
            .any(|tool| tool.spec.name == old.name && tool.spec.source == old.source)
        {
            inner.runtime.remove_source(&old.source);
        }
    }
    for tool in tools {
        let source = inner.runtime.spec(&tool.spec.name).map(|spec| spec.source);
        if let Some(other) = source.filter(|source| *source != tool.spec.source) {
            tracing::warn!(
                "[{}] its tool {} takes the place of that of {other}",
                tool.spec.source,
                tool.spec.name
            );
        }
        registered(inner, tool);
    }
}

/// Registers a tool with what of its schemas can be used.
fn registered(inner: &Inner, tool: McpTool) {
    let unshaped = McpTool {
        output: None,
        ..tool.clone()
    };
    let lax = unshaped.lax();
    let is_checked = tool.output.is_some();
    let mut ways = vec![(tool, "")];
    if is_checked {
        ways.push((unshaped, "its answers are not checked"));
    }
    ways.push((lax, "its arguments are not checked"));
    let mut failed: Option<ToolError> = None;
    for (tool, without) in ways {
        let (name, source) = (tool.spec.name.clone(), tool.spec.source.clone());
        match inner.runtime.register(Arc::new(tool)) {
            Ok(()) => {
                if let Some(error) = failed {
                    tracing::warn!("[{source}] {error}; {without}");
                }
                crate::plugin_api::capability_grants::narrow_one(inner, &name);
                return;
            }
            Err(error) => failed = Some(error),
        }
    }
    if let Some(error) = failed {
        tracing::warn!("[mcp] {error}");
    }
}

/// What the model is told of a tool's arguments, in the reference's form.
fn told(arguments: &Value) -> Value {
    let mut told = arguments.clone();
    if !told["properties"].is_object() {
        told["properties"] = json!({});
    }
    told["additionalProperties"] = false.into();
    told
}

/// One tool of a server.
#[derive(Clone)]
struct McpTool {
    spec: ToolSpec,
    // As the server wrote it. What the model is told is stricter, and the reference checks nothing.
    arguments: Value,
    // What its structured answers are held to.
    output: Option<Value>,
    tool: ServerTool,
}

impl McpTool {
    fn new(tool: ServerTool) -> Self {
        let mut arguments = tool.input_schema.clone();
        arguments["type"] = "object".into();
        let spec = ToolSpec {
            name: tool_name(&tool.server, &tool.name),
            description: tool.description.clone(),
            input_schema: told(&arguments),
            read_only: false,
            hidden: false,
            source: format!("{SOURCE}{}", tool.server),
        };
        Self {
            spec,
            arguments,
            output: tool.output_schema.clone(),
            tool,
        }
    }

    /// For a schema that is none.
    fn lax(&self) -> Self {
        Self {
            arguments: json!({"type": "object"}),
            ..self.clone()
        }
    }
}

fn failed(name: &str, error: McpError) -> ToolError {
    match error {
        McpError::Timeout { after, .. } => ToolError::Timeout {
            tool: name.to_owned(),
            ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
        },
        other => ToolError::failed(other.to_string()),
    }
}

/// Calls a tool that models know by `name`.
async fn call(
    tool: &ServerTool,
    name: &str,
    input: &Value,
    ctx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let answer = tool
        .call(input)
        .await
        .map_err(|error| failed(name, error))?;
    if answer["isError"] == true {
        return Err(ToolError::failed(content::failure(&answer)));
    }
    let output = answered_as(&answer).unwrap_or_default();
    ctx.answered(answer);
    Ok(output)
}

/// The output that an answer stands for.
fn answered_as(answer: &Value) -> Option<ToolOutput> {
    let content = content::read(answer)?;
    let mut metadata = content.metadata;
    if let Some(fields) = metadata.as_object_mut() {
        // Ours to say.
        fields.remove("truncated");
        fields.remove("outputPath");
    }
    Some(ToolOutput {
        title: String::new(),
        output: content.text,
        metadata,
        attachments: Some(content.attachments).filter(|list| !list.is_empty()),
    })
}

/// What tools of servers need.
fn declared() -> Declared {
    Declared {
        capabilities: vec![Capability::Mcp],
        ..Declared::default()
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn argument_schema(&self) -> &Value {
        &self.arguments
    }

    fn declares(&self) -> Declared {
        Declared {
            output_schema: self.output.clone(),
            ..declared()
        }
    }

    fn is_undeclared(&self) -> bool {
        self.tool.is_local()
    }

    fn permissions(
        &self,
        _input: &Value,
        _ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let all = || vec!["*".to_owned()];
        Ok(vec![PermissionAsk {
            permission: self.spec.name.clone(),
            patterns: all(),
            always: all(),
            metadata: json!({}),
            ..PermissionAsk::default()
        }])
    }

    /// The client watches over the usual deadline, which reports of progress put off (as in the reference); this is the
    /// end of it all.
    fn deadline(&self, _input: &Value) -> Option<Duration> {
        let (call, start) = self.tool.waits();
        Some(LONGEST.max(call).saturating_add(start))
    }

    fn read(&self, answer: &Value) -> Option<ToolOutput> {
        answered_as(answer)
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { call(&self.tool, &self.spec.name, &input, ctx).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_told_the_references_form() {
        let cases = [
            (
                json!({"type": "object"}),
                r#"{"type":"object","properties":{},"additionalProperties":false}"#,
            ),
            (
                json!({"additionalProperties": true, "properties": {"a": {}}, "required": ["a"], "type": "object"}),
                r#"{"additionalProperties":false,"properties":{"a":{}},"required":["a"],"type":"object"}"#,
            ),
            (
                json!({"type": "object", "properties": null}),
                r#"{"type":"object","properties":{},"additionalProperties":false}"#,
            ),
        ];
        for (arguments, expected) in cases {
            assert_eq!(told(&arguments).to_string(), expected);
        }
    }
}
