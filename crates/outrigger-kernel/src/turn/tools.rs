//! Tool calls of the model.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::effect::Effect;
use outrigger_protocol::Millis;
use outrigger_protocol::buffer::from_text;
use outrigger_protocol::id::CallId;
use outrigger_protocol::message::{PartKind, PartTime, ToolPart, ToolState};
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::tool::{ToolCall, ToolOutcome};
use outrigger_protocol::turn::EffectId;
use serde_json::{Value, json};

use super::{OpenCall, Turn};

/// The tool that answers calls that cannot be made. It is never offered.
pub(super) const INVALID: &str = "invalid";

/// A call that the model has completed.
pub(super) struct ModelCall {
    /// The id that the provider gave it; not always unique.
    pub(super) call_id: String,
    pub(super) tool: String,
    /// The input, as the model wrote it.
    pub(super) raw: String,
    /// The provider's own data of the call.
    pub(super) metadata: Option<Value>,
}

impl Turn {
    /// Handles the start of a call by the model.
    pub(super) fn tool_written(
        &mut self,
        at: Millis,
        given: String,
        tool: &str,
        out: &mut Vec<Effect>,
    ) {
        // Providers reject a history with a duplicate id, and plugins file results by id: an empty or used id is
        // replaced.
        let mut call_id = CallId(given.clone());
        if given.is_empty() || self.used_calls.contains(&call_id) {
            call_id = self.ids.call(at);
        }
        self.used_calls.insert(call_id.clone());
        let part = self.new_part(
            at,
            PartKind::Tool(ToolPart {
                call_id,
                tool: self.known_name(tool).unwrap_or(tool).to_string(),
                state: ToolState::Pending {
                    input: json!({}),
                    raw: String::new(),
                },
                metadata: None,
                provenance: self.begin.provenance.clone(),
                extra: serde_json::Map::new(),
            }),
        );
        self.writing.push(OpenCall {
            given,
            part: part.id.clone(),
        });
        let name = match &part.kind {
            PartKind::Tool(body) => body.tool.clone(),
            _ => String::new(),
        };
        out.push(self.keep_part(at, part));
        self.before_files(&name, out);
    }

    /// Finds a tool by name, ignoring case: models sometimes get it wrong.
    fn known_name(&self, tool: &str) -> Option<&str> {
        self.tools
            .iter()
            .find(|known| known.name == tool)
            .or_else(|| {
                self.tools
                    .iter()
                    .find(|known| known.name.eq_ignore_ascii_case(tool))
            })
            .map(|known| known.name.as_str())
    }

    /// Runs a call that the model has completed.
    pub(super) fn tool_called(&mut self, at: Millis, call: ModelCall, out: &mut Vec<Effect>) {
        let is_this = |begun: &OpenCall| begun.given == call.call_id;
        if !self.writing.iter().any(is_this) {
            self.tool_written(at, call.call_id.clone(), &call.tool, out);
        }
        let Some(place) = self.writing.iter().position(is_this) else {
            return;
        };
        let id = self.writing.remove(place).part;
        let Some(mut part) = self.part(&id) else {
            return;
        };
        let PartKind::Tool(body) = &mut part.kind else {
            return;
        };
        let (tool, input) = self.call_or_invalid(&call.tool, &call.raw);
        body.tool.clone_from(&tool);
        if call.metadata.is_some() {
            body.metadata = call.metadata;
        }
        body.state = ToolState::Pending {
            input: json!({}),
            raw: call.raw,
        };
        let call = ToolCall {
            call_id: body.call_id.clone(),
            session_id: self.begin.session_id.clone(),
            message_id: self.message_id(),
            agent: self.begin.agent.clone(),
            tool,
            input,
            provenance: self.begin.provenance.clone(),
        };
        self.parts.insert(id.clone(), Box::new(part));
        self.calls_in_step += 1;
        if self.stopping() {
            return;
        }
        self.make_call(id, call, out);
    }

    fn call_or_invalid(&self, tool: &str, raw: &str) -> (String, Value) {
        let wrong = |error: String| (INVALID.to_string(), json!({ "tool": tool, "error": error }));
        let Some(name) = self.known_name(tool) else {
            let mut names: Vec<&str> = self.tools.iter().map(|known| known.name.as_str()).collect();
            names.sort_unstable();
            return wrong(format!(
                "Model tried to call unavailable tool '{tool}'. Available tools: {}.",
                names.join(", ")
            ));
        };
        if raw.trim().is_empty() {
            return (name.to_string(), json!({}));
        }
        match from_text(raw) {
            Ok(input) => (name.to_string(), input),
            Err(error) => wrong(format!(
                "Invalid input for tool {name}: JSON parsing failed: {error}. Text: {raw}"
            )),
        }
    }

    pub(super) fn tool_started(
        &mut self,
        at: Millis,
        effect: EffectId,
        input: Value,
        provenance: Provenance,
        out: &mut Vec<Effect>,
    ) {
        let Some(mut part) = self.part_of_call(effect).cloned() else {
            return;
        };
        // The user has answered: the duration of the call is counted from here. Clients have the call already.
        if let PartKind::Tool(body) = &mut part.kind
            && let ToolState::Running { time, .. } = &mut body.state
        {
            time.start = at;
            body.provenance.extend(provenance);
            self.parts.insert(part.id.clone(), Box::new(part));
            return;
        }
        if let PartKind::Tool(body) = &mut part.kind {
            body.provenance.extend(provenance);
            body.state = ToolState::Running {
                input,
                title: None,
                metadata: None,
                time: PartTime {
                    start: at,
                    end: None,
                    ..PartTime::default()
                },
            };
        }
        out.push(self.keep_part(at, part));
    }

    pub(super) fn tool_progress(
        &mut self,
        at: Millis,
        effect: EffectId,
        title: Option<String>,
        metadata: Value,
        out: &mut Vec<Effect>,
    ) {
        let Some(mut part) = self.part_of_call(effect).cloned() else {
            return;
        };
        if let PartKind::Tool(ToolPart {
            state:
                ToolState::Running {
                    title: t,
                    metadata: m,
                    ..
                },
            ..
        }) = &mut part.kind
        {
            *t = title.or_else(|| t.take());
            // Absent and null are equivalent here: a stored input cannot tell them apart.
            *m = Some(metadata).filter(|metadata| !metadata.is_null());
            out.push(self.keep_part(at, part));
        }
    }

    pub(super) fn tool_done(
        &mut self,
        at: Millis,
        effect: EffectId,
        outcome: ToolOutcome,
        out: &mut Vec<Effect>,
    ) {
        let Some(mut part) = self.part_of_call(effect).cloned() else {
            return;
        };
        self.open.remove(&effect);
        if let PartKind::Tool(body) = &part.kind {
            self.note_answer(&body.tool, &outcome);
        }
        if let PartKind::Tool(body) = &mut part.kind {
            // A refused call has not run: the user's thinking time is not its duration.
            let is_refused =
                matches!(&outcome, ToolOutcome::Failed { code, .. } if code == "tool.rejected");
            let start = match &body.state {
                ToolState::Running { time, .. } if !is_refused => time.start,
                _ => at,
            };
            let time = PartTime {
                start,
                end: Some(at),
                ..PartTime::default()
            };
            body.state = match outcome {
                ToolOutcome::Completed { input, output } => ToolState::Completed {
                    input,
                    output: output.output,
                    title: output.title,
                    metadata: output.metadata,
                    time,
                    attachments: output.attachments,
                },
                ToolOutcome::Failed {
                    input,
                    code,
                    message,
                    metadata,
                } => {
                    self.refused |= code == "tool.rejected";
                    ToolState::Error {
                        input,
                        error: message,
                        metadata: metadata.filter(|m| !m.is_null()),
                        time,
                    }
                }
            };
        }
        let id = part.id.clone();
        out.push(self.keep_part(at, part));
        self.note_result(&id);
    }
}
