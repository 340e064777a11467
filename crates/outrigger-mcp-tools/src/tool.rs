//! A server's tool, in the tool runtime.

use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_mcp::{McpError, ServerTool, content, tool_name};
use outrigger_protocol::descriptor::{Capability, Declared};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_tools::{PermissionAsk, Tool, ToolContext, ToolError};
use serde_json::{Value, json};

use crate::answering::Session;

/// Maximum duration of a call, with or without progress (the usual limit of a tool).
const MAX_CALL_DURATION: Duration = Duration::from_secs(600);
/// Prefix of the source of servers' tools.
pub(crate) const SOURCE: &str = "mcp:";

/// Returns the schema of a tool's arguments for the model, in OpenCode's form.
fn shown(arguments: &Value) -> Value {
    let mut shown = arguments.clone();
    if !shown["properties"].is_object() {
        shown["properties"] = json!({});
    }
    shown["additionalProperties"] = false.into();
    shown
}

/// One tool of a server.
#[derive(Clone)]
pub(crate) struct McpTool {
    pub(crate) spec: ToolSpec,
    // As sent by the server. The model gets a stricter one, and OpenCode validates nothing.
    pub(crate) arguments: Value,
    // The schema for its structured results.
    pub(crate) output: Option<Value>,
    pub(crate) tool: ServerTool,
}

impl McpTool {
    pub(crate) fn new(tool: ServerTool) -> Self {
        let mut arguments = tool.input_schema.clone();
        arguments["type"] = "object".into();
        let spec = ToolSpec {
            name: tool_name(&tool.server, &tool.name),
            description: tool.description.clone(),
            input_schema: shown(&arguments),
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

    /// Returns it with a permissive schema, if its own is invalid.
    pub(crate) fn lax(&self) -> Self {
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
        // The user can fix it; the model reports it.
        McpError::NeedsScope { .. } | McpError::ScopeRefused { .. } => {
            let hint = error.hint().unwrap_or_default();
            ToolError::failed(format!("{error}; {hint}"))
        }
        other => ToolError::failed(other.to_string()),
    }
}

/// Calls a tool that models know by `name`.
pub(crate) async fn call(
    tool: &ServerTool,
    name: &str,
    input: &Value,
    ctx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let session = Session {
        server: &tool.server,
        ctx,
    };
    let answer = tool
        .call_answering(input, &session)
        .await
        .map_err(|error| failed(name, error))?;
    if answer["isError"] == true {
        return Err(ToolError::failed(content::failure(&answer)));
    }
    let output = answered_as(&answer).unwrap_or_default();
    ctx.answered(answer);
    Ok(output)
}

/// Converts a result to an output.
pub(crate) fn answered_as(answer: &Value) -> Option<ToolOutput> {
    let content = content::read(answer)?;
    let mut metadata = content.metadata;
    if let Some(fields) = metadata.as_object_mut() {
        // Only we set it.
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

/// Returns the needs of servers' tools.
pub(crate) fn declared() -> Declared {
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

    /// The client enforces the usual deadline, which progress reports extend (as in OpenCode); this is the overall
    /// limit.
    fn deadline(&self, _input: &Value) -> Option<Duration> {
        let (call, start) = self.tool.waits();
        Some(MAX_CALL_DURATION.max(call).saturating_add(start))
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
    fn the_model_reads_the_form_of_opencode() {
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
            assert_eq!(shown(&arguments).to_string(), expected);
        }
    }
}
