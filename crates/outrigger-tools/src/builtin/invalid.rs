//! Two tools that the model is not shown: where calls go that name no tool, and the question nobody can answer.

use outrigger_protocol::tool::ToolOutput;
use serde_json::json;

use super::{spec, text};
use crate::error::ToolError;
use crate::tool::FnTool;

/// `invalid`: tells the model that its call could not be understood.
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

/// `question`: asks the user. There is no one to ask in a run without a terminal, as in the reference.
pub(super) fn question() -> FnTool {
    let option = json!({"type": "object", "properties": {"label": {"type": "string"}, "description": {"type": "string"}},
        "required": ["label", "description"]});
    let mut spec = spec(
        "question",
        "Asks the user one or more questions with options to choose from.",
        json!({"questions": {"type": "array", "items": {"type": "object", "properties": {
            "question": {"type": "string"}, "header": {"type": "string"},
            "options": {"type": "array", "items": option}, "multiple": {"type": "boolean"}},
            "required": ["question", "header", "options"]}}}),
        &["questions"],
    );
    spec.hidden = true;
    FnTool::new(spec, |_, _| async {
        Err(ToolError::failed(
            "No user is there to answer questions. Decide by yourself with what you know, and say in your answer what you assumed.",
        ))
    })
}
