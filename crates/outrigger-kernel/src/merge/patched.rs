//! `apply_patch`: one line that names the files.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use outrigger_protocol::merged::{ConversationMessage, Details};
use serde_json::Value;

use super::processors::{ToolProcessor, failed, reported};

/// Names that are shown; a patch may have many.
const MAX_NAMED: usize = 5;

/// `apply_patch`.
pub(super) struct Patched;

impl ToolProcessor for Patched {
    fn tools(&self) -> &[&str] {
        &["apply_patch"]
    }
    fn details(&self, _: &ConversationMessage, _: &ConversationMessage) -> Option<Details> {
        None
    }
    fn summary(
        &self,
        _: &ConversationMessage,
        result: &ConversationMessage,
        _: Option<&Details>,
    ) -> Option<String> {
        if failed(result) {
            return None;
        }
        let files = reported(result, "/files")?.as_array()?;
        let sign = |file: &Value| match file.get("type").and_then(Value::as_str) {
            Some("add") => "+",
            Some("delete") => "-",
            _ => "",
        };
        let names: Vec<String> = files
            .iter()
            .filter_map(|file| {
                let name = file.get("relativePath")?.as_str()?;
                Some(format!("{}{name}", sign(file)))
            })
            .collect();
        let more = names.len().saturating_sub(MAX_NAMED);
        let shown = names.get(..MAX_NAMED).unwrap_or(&names).join(", ");
        Some(if more == 0 {
            format!("Patched {shown}").trim_end().to_string()
        } else {
            format!("Patched {shown} and {more} more")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(metadata: &Value) -> Option<String> {
        let message = json!({
            "id": "m", "role": "assistant", "messageType": "tool_result", "content": "", "timestamp": 1, "metadata": metadata,
        });
        let message: ConversationMessage = serde_json::from_value(message).unwrap();
        Patched.summary(&message, &message, None)
    }

    #[test]
    fn files_are_named_up_to_a_limit() {
        let file = |kind: &str, name: &str| json!({ "type": kind, "relativePath": name });
        let files = [file("add", "a"), file("delete", "b"), file("move", "c")];
        let of = |files: &[Value]| json!({ "metadata": { "files": files } });
        assert_eq!(said(&of(&files)).as_deref(), Some("Patched +a, -b, c"));
        let many: Vec<Value> = (0..7).map(|n| file("update", &n.to_string())).collect();
        assert_eq!(
            said(&of(&many)).as_deref(),
            Some("Patched 0, 1, 2, 3, 4 and 2 more")
        );
        assert_eq!(said(&json!({ "metadata": {} })), None);
        assert_eq!(
            said(&json!({ "is_error": true, "metadata": { "files": [] } })),
            None
        );
    }
}
