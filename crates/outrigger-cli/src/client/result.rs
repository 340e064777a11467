//! The object that ends `run --output-format json|stream-json`: the result of the turn, in Claude Code's fields.

use std::time::Instant;

use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{NamedError, Part, PartKind, Tokens};
use outrigger_protocol::turn::TurnOutcome;
use serde_json::{Value, json};

/// The state of a turn so far.
pub(crate) struct TurnResult {
    started: Instant,
    steps: u64,
    cost: f64,
    tokens: Tokens,
    /// The last text of the model.
    text: String,
    error: Option<String>,
}

impl Default for TurnResult {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            steps: 0,
            cost: 0.0,
            tokens: Tokens::default(),
            text: String::new(),
            error: None,
        }
    }
}

impl TurnResult {
    /// Adds a part of a message. Each final part is passed once.
    pub(crate) fn add(&mut self, part: &Part) {
        match &part.kind {
            PartKind::StepFinish(step) => {
                self.steps += 1;
                self.cost += step.cost;
                self.tokens.input += step.tokens.input;
                self.tokens.output += step.tokens.output;
                self.tokens.reasoning += step.tokens.reasoning;
                self.tokens.cache.read += step.tokens.cache.read;
                self.tokens.cache.write += step.tokens.cache.write;
            }
            PartKind::Text(text)
                if text.synthetic != Some(true)
                    && text.time.as_ref().is_some_and(|time| time.end.is_some())
                    && !text.text.trim().is_empty() =>
            {
                text.text.trim().clone_into(&mut self.text);
            }
            _ => {}
        }
    }

    pub(crate) fn fail(&mut self, error: &NamedError) {
        self.error = Some(error.message().to_owned());
    }

    /// Returns the line that ends the output.
    pub(crate) fn line(&self, session: &SessionId, outcome: &TurnOutcome) -> String {
        let failed = match outcome {
            TurnOutcome::Failed { error } => Some(error.message().to_owned()),
            TurnOutcome::Cancelled => Some("cancelled".to_owned()),
            _ => None,
        };
        let error = self.error.clone().or(failed);
        format!("{}\n", self.object(session, error.as_deref()))
    }

    fn object(&self, session: &SessionId, error: Option<&str>) -> Value {
        json!({
            "type": "result",
            "subtype": if error.is_some() { "error_during_execution" } else { "success" },
            "is_error": error.is_some(),
            "result": error.unwrap_or(&self.text),
            "session_id": session,
            "num_turns": self.steps,
            "duration_ms": u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "total_cost_usd": self.cost,
            "usage": {
                "input_tokens": self.tokens.input,
                "output_tokens": self.tokens.output + self.tokens.reasoning,
                "cache_read_input_tokens": self.tokens.cache.read,
                "cache_creation_input_tokens": self.tokens.cache.write,
            },
        })
    }
}
