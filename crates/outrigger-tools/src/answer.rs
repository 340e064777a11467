//! The structured answer of a prompt, in the form of a JSON Schema (its `format`). The model passes it as arguments
//! of [`OutputFormat::TOOL`], which is offered for that prompt only and does nothing. As in OpenCode, it is not a
//! tool that hooks or rules know, and calls of it never reach the runtime.

use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::model::ToolOffer;
use outrigger_protocol::session::OutputFormat;
use outrigger_protocol::tool::{ToolOutcome, ToolOutput};
use serde_json::{Value, json};

use crate::error::ToolError;
use crate::schema::Schema;

const DESCRIPTION: &str = "Takes your final answer. Call it once, when all other work is done: nothing is done behind it. \
    Its arguments are the answer and have to satisfy the schema.";

/// The instruction in the system prompt.
pub const INSTRUCTION: &str = "The user wants the final answer in a fixed form. Give it by calling the tool \
    StructuredOutput, with arguments that satisfy its schema; an answer in plain text does not count.";

/// Checks whether answers can be validated against the schema.
///
/// # Errors
/// [`ToolError::BadSchema`] if it is not JSON Schema, or refers to other documents: nothing is fetched.
pub fn check_form(schema: &Value) -> Result<(), ToolError> {
    compile(schema).map(|_| ())
}

/// Returns the tool as offered to the model.
#[must_use]
pub fn offer(schema: Value) -> ToolOffer {
    ToolOffer {
        name: OutputFormat::TOOL.to_owned(),
        description: DESCRIPTION.to_owned(),
        parameters: schema,
    }
}

/// Handles a call of it: either accepts the answer, or returns what is wrong with it to the model.
#[must_use]
pub fn take(schema: &Value, input: Value) -> ToolOutcome {
    let checked = compile(schema).and_then(|schema| {
        schema
            .check(&input)
            .map_err(|reason| ToolError::InvalidInput {
                tool: OutputFormat::TOOL.to_owned(),
                reason,
            })
    });
    match checked {
        Ok(()) => ToolOutcome::Completed {
            input,
            output: ToolOutput {
                title: "Structured output".to_owned(),
                output: "The answer was taken.".to_owned(),
                metadata: json!({ "valid": true }),
                ..ToolOutput::default()
            },
        },
        Err(error) => ToolOutcome::Failed {
            input,
            code: error.code().to_owned(),
            message: error.to_string(),
            metadata: None,
        },
    }
}

fn compile(schema: &Value) -> Result<Schema, ToolError> {
    Schema::compile(schema).map_err(|reason| ToolError::BadSchema {
        tool: OutputFormat::TOOL.to_owned(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_fits_the_schema_is_an_answer() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
        for (schema, input, want) in [
            (&schema, json!({"n": 1}), ""),
            (&schema, json!({"n": "1"}), "tool.invalid_input"),
            (&schema, json!({}), "tool.invalid_input"),
            (&schema, json!([1]), "tool.invalid_input"),
            (&json!({"type": 5}), json!({}), "tool.bad_schema"),
        ] {
            let got = match take(schema, input.clone()) {
                ToolOutcome::Completed { input: taken, .. } => {
                    assert_eq!(taken, input);
                    String::new()
                }
                ToolOutcome::Failed { code, .. } => code,
            };
            assert_eq!(got, want, "{input}");
        }
        let elsewhere = json!({"$ref": "https://example.com/schema.json"});
        assert!(check_form(&schema).is_ok() && check_form(&elsewhere).is_err());
    }
}
