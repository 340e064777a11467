//! The call behind a question: what clients show of it, and what a tool of an MCP server was when it was allowed.

use outrigger_protocol::permission::CALL;
use outrigger_workspace::sync::lock;
use serde_json::{Map, Value, json};

use super::Asker;
use crate::state::AgentState;

/// Why a tool is asked about that the user had allowed.
pub(super) const TOOL_CHANGED: &str =
    "its server changed what the tool says of itself since you allowed it with \"always\"";

impl AgentState {
    /// What a tool of an MCP server says of itself now, as a hash; nothing for other permissions.
    pub(super) fn mcp_tool_as(&self, permission: &str) -> Option<String> {
        let spec = self.runtime.spec(permission)?;
        outrigger_mcp_tools::is_mcp(&spec).then(|| {
            outrigger_plugins::hash(&(&spec.source, &spec.description, &spec.input_schema))
        })
    }

    /// The user allowed the tool by "always", as it was when it was asked about.
    pub(super) fn allowed_as(&self, tool: &str, tool_as: &str) {
        lock(&self.questions.allowed_as).insert(tool.to_owned(), tool_as.to_owned());
    }

    /// What is shown of a question, with the call that asks. A tool, which may be a plugin's, says nothing in its place.
    pub(super) fn with_call(&self, metadata: Value, permission: &str, asker: &Asker<'_>) -> Value {
        let mut fields = match metadata {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        fields.remove(CALL);
        let session = &asker.session_id.0;
        let called = asker.tool.as_ref();
        let called = called.and_then(|tool| self.questions.call(session, &tool.call_id.0));
        if let Some((tool, input)) = called {
            // The difference says it in fewer bytes.
            let has_diff = fields.get("diff").is_some_and(|diff| *diff != json!(""));
            let call = match permission == "edit" && has_diff {
                true => json!({ "tool": tool }),
                false => json!({ "tool": tool, "input": input }),
            };
            fields.insert(CALL.to_owned(), call);
        }
        Value::Object(fields)
    }
}
