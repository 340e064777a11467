//! The call behind a question: what clients show of it, and the MCP tool's definition when it was allowed.

use outrigger_protocol::permission::CALL;
use outrigger_stdx::sync::lock;
use serde_json::{Map, Value, json};

use super::Asker;
use crate::state::{PermissionServices, ToolServices};

/// Why a previously allowed tool needs approval again.
pub(super) const TOOL_CHANGED: &str =
    "its server changed the tool's definition since you allowed it with \"always\"";

impl PermissionServices {
    /// Adds the call to the metadata of a question. The metadata of a tool, which may be a plugin's, cannot replace it.
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
            // The diff shows the same in fewer bytes.
            let has_diff = fields.get("diff").is_some_and(|diff| *diff != json!(""));
            let call = if permission == "edit" && has_diff {
                json!({ "tool": tool })
            } else {
                json!({ "tool": tool, "input": input })
            };
            fields.insert(CALL.to_owned(), call);
        }
        Value::Object(fields)
    }

    /// Records that the user allowed the tool with "always", as it was defined when the question was asked.
    pub(super) fn allowed_as(&self, tool: &str, tool_as: &str) {
        lock(&self.questions.allowed_as).insert(tool.to_owned(), tool_as.to_owned());
    }
}

impl ToolServices {
    /// Returns the hash of an MCP tool's current definition; `None` for other permissions.
    pub(super) fn mcp_tool_as(&self, permission: &str) -> Option<String> {
        let spec = self.runtime.spec(permission)?;
        outrigger_mcp_tools::is_mcp(&spec).then(|| {
            outrigger_plugins::hash(&(&spec.source, &spec.description, &spec.input_schema))
        })
    }
}
