//! Structured answers: the prompt's `format`, and the tool through which the model gives the answer.

use alloc::string::ToString;

use outrigger_protocol::message::NamedError;
use outrigger_protocol::session::OutputFormat;
use outrigger_protocol::tool::ToolOutcome;
use serde_json::{Value, json};

use super::Turn;
use super::tools::INVALID;

/// State of the structured answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StructuredAnswer {
    /// The answer of this step.
    value: Option<Value>,
    /// Number of answers that did not match the schema.
    misfits: u32,
    /// The turn ends without an answer.
    pub(super) missing: Option<NamedError>,
}

impl Turn {
    /// Returns how often the model is asked again for a valid answer; `None` if text is wanted.
    fn answer_retries(&self) -> Option<u32> {
        match &self.user.format {
            Some(OutputFormat::JsonSchema { retry_count, .. }) if self.compacting.is_none() => {
                Some(*retry_count)
            }
            _ => None,
        }
    }

    /// Returns whether the call is the structured answer instead of work.
    pub(super) fn is_answer(&self, tool: &str) -> bool {
        tool == OutputFormat::TOOL && self.answer_retries().is_some()
    }

    /// Records a structured answer from a call.
    pub(super) fn note_answer(&mut self, tool: &str, outcome: &ToolOutcome) {
        let input = match outcome {
            ToolOutcome::Completed { input, .. } | ToolOutcome::Failed { input, .. } => input,
        };
        // A call that was not valid JSON went to another tool and names the intended one.
        let meant = match input.get("tool").and_then(Value::as_str) {
            Some(meant) if tool == INVALID => meant,
            _ => tool,
        };
        if !self.is_answer(meant) {
            return;
        }
        match outcome {
            ToolOutcome::Completed { input, .. } if tool != INVALID => {
                self.answer.value = Some(input.clone());
            }
            _ => self.answer.misfits += 1,
        }
    }

    /// Puts the answer, or its absence, into the message; returns false if the turn continues as usual.
    pub(super) fn take_answer(&mut self) -> bool {
        let Some(most) = self.answer_retries() else {
            return false;
        };
        let Some(message) = &mut self.message else {
            return false;
        };
        if let Some(value) = self.answer.value.take() {
            message.structured = Some(value);
            return true;
        }
        if self.calls_in_step > 0 && self.answer.misfits <= most {
            return false;
        }
        let text = if self.answer.misfits == 0 {
            "the model gave no answer in the form that the prompt wants (it did not call StructuredOutput)"
        } else {
            "the model gave no answer that fits the schema of the prompt's `format`"
        };
        let error = NamedError {
            name: "StructuredOutputError".to_string(),
            data: json!({ "message": text, "retries": self.answer.misfits.min(most) }),
        };
        message.error = Some(error.clone());
        self.answer.missing = Some(error);
        true
    }
}
