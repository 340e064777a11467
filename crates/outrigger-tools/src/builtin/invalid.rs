//! `invalid`: receives calls that name no tool. Models do not see it.

use outrigger_protocol::tool::ToolOutput;
use serde_json::json;

use super::{spec, text};
use crate::tool::FnTool;

/// Creates `invalid`, which reports to the model that its call could not be understood.
pub(super) fn invalid() -> FnTool {
    let mut spec = spec(
        "invalid",
        "Do not use.",
        json!({"tool": {"type": "string"}, "error": {"type": "string"}}),
        &["tool", "error"],
    );
    spec.hidden = true;
    FnTool::new(spec, |input, _| async move {
        Ok(ToolOutput {
            title: "Invalid Tool".to_owned(),
            output: format!(
                "The arguments provided to the tool are invalid: {}",
                text(&input, "error")
            ),
            ..ToolOutput::default()
        })
    })
}
