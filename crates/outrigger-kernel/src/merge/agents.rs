//! Output of other agents as parts of a session (E1, E4).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use outrigger_protocol::id::CallId;
use outrigger_protocol::merged::AgentOutput;
use outrigger_protocol::message::{
    PartKind, PartTime, ReasoningPart, TextPart, ToolPart, ToolState,
};
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

/// Key of a tool part with only one half.
pub(super) const UNMATCHED: &str = "unmatched";
/// The result came without a start.
pub(super) const UNMATCHED_RESULT: &str = "result";
/// The start came without a result.
pub(super) const UNMATCHED_START: &str = "start";

/// Maximum number of open calls; with one more, the oldest is closed without a result, so that memory is bounded (E4).
const MAX_OPEN: usize = 256;

/// Converts the output of an agent to parts. One for each run.
pub struct AgentParts {
    max_open: usize,
    next: u64,
    open: BTreeMap<String, OpenPart>,
    /// Open calls, oldest first.
    order: VecDeque<String>,
}

/// A part of the message that the agent writes.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentPart {
    /// Index of the part. An existing index updates that part.
    pub slot: u64,
    /// Its new content.
    pub kind: PartKind,
}

struct OpenPart {
    slot: u64,
    tool: String,
    input: Value,
    start: Millis,
}

impl Default for AgentParts {
    fn default() -> Self {
        Self::with_limit(MAX_OPEN)
    }
}

impl AgentParts {
    /// Creates one with a limit of open calls.
    #[must_use]
    pub fn with_limit(max_open: usize) -> Self {
        Self {
            max_open,
            next: 0,
            open: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Returns the number of open calls.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Returns the parts that this output adds or changes, in order.
    #[must_use]
    pub fn on(&mut self, output: AgentOutput) -> Vec<AgentPart> {
        match output {
            AgentOutput::ToolUse {
                id,
                tool_name,
                tool_input,
                timestamp,
            } => self.starts(id, tool_name, tool_input, timestamp),
            AgentOutput::ToolResult {
                tool_use_id,
                tool_name,
                result,
                is_error,
                timestamp,
            } => {
                let kind = |open: Option<&OpenPart>| {
                    result_part(open, &tool_use_id, &tool_name, &result, is_error, timestamp)
                };
                let open = self.close(&tool_use_id);
                let slot = open.as_ref().map(|open| open.slot);
                let kind = kind(open.as_ref());
                vec![AgentPart {
                    slot: slot.unwrap_or_else(|| self.slot()),
                    kind,
                }]
            }
            AgentOutput::Text { text, timestamp } | AgentOutput::Other { text, timestamp } => {
                let time = Some(at_once(timestamp));
                let text = TextPart {
                    text,
                    time,
                    ..TextPart::default()
                };
                vec![self.new_part(PartKind::Text(text))]
            }
            AgentOutput::Thought { text, timestamp } => {
                let time = at_once(timestamp);
                let thought = ReasoningPart {
                    text,
                    time,
                    ..ReasoningPart::default()
                };
                vec![self.new_part(PartKind::Reasoning(thought))]
            }
        }
    }

    /// Ends the run: open calls are closed without a result.
    #[must_use]
    pub fn finish(&mut self) -> Vec<AgentPart> {
        let left = core::mem::take(&mut self.order);
        left.iter()
            .filter_map(|call| Some(given_up(call, self.open.remove(call)?)))
            .collect()
    }

    fn starts(
        &mut self,
        call: String,
        tool: String,
        input: Value,
        start: Millis,
    ) -> Vec<AgentPart> {
        let mut out = vec![];
        // A second start with the same id: the first will no longer get a result.
        if let Some(earlier) = self.close(&call) {
            out.push(given_up(&call, earlier));
        }
        let state = ToolState::Running {
            input: input.clone(),
            title: None,
            metadata: None,
            time: PartTime {
                start,
                ..PartTime::default()
            },
        };
        let part = self.new_part(tool_part(&call, &tool, state, Object::new()));
        let open = OpenPart {
            slot: part.slot,
            tool,
            input,
            start,
        };
        out.push(part);
        self.order.push_back(call.clone());
        self.open.insert(call, open);
        while self.open.len() > self.max_open {
            let oldest = self.order.front().cloned().unwrap_or_default();
            out.extend(self.close(&oldest).map(|open| given_up(&oldest, open)));
        }
        out
    }

    fn close(&mut self, call: &str) -> Option<OpenPart> {
        let open = self.open.remove(call)?;
        self.order.retain(|other| other != call);
        Some(open)
    }

    fn slot(&mut self) -> u64 {
        let slot = self.next;
        self.next += 1;
        slot
    }

    fn new_part(&mut self, kind: PartKind) -> AgentPart {
        AgentPart {
            slot: self.slot(),
            kind,
        }
    }
}

fn at_once(at: Millis) -> PartTime {
    PartTime {
        start: at,
        end: Some(at),
        ..PartTime::default()
    }
}

fn tool_part(call: &str, tool: &str, state: ToolState, extra: Object) -> PartKind {
    PartKind::Tool(ToolPart {
        call_id: CallId(call.to_string()),
        tool: tool.to_string(),
        state,
        metadata: None,
        provenance: Provenance::default(),
        extra,
    })
}

fn half(which: &str) -> Object {
    Object::from_iter([(UNMATCHED.to_string(), json!(which))])
}

/// Returns a call that gets no result.
fn given_up(call: &str, open: OpenPart) -> AgentPart {
    let state = ToolState::Error {
        input: open.input,
        error: "no result came".to_string(),
        metadata: None,
        time: at_once(open.start),
    };
    AgentPart {
        slot: open.slot,
        kind: tool_part(call, &open.tool, state, half(UNMATCHED_START)),
    }
}

fn result_part(
    open: Option<&OpenPart>,
    call: &str,
    tool: &str,
    result: &Value,
    is_error: bool,
    end: Millis,
) -> PartKind {
    let text = match result {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let time = PartTime {
        start: open.map_or(end, |open| open.start),
        end: Some(end),
        ..PartTime::default()
    };
    let input = open.map_or(Value::Null, |open| open.input.clone());
    let state = if is_error {
        ToolState::Error {
            input,
            error: text,
            metadata: None,
            time,
        }
    } else {
        ToolState::Completed {
            input,
            output: text,
            title: String::new(),
            metadata: json!({}),
            time,
            attachments: None,
        }
    };
    let tool = open.map_or(tool, |open| open.tool.as_str());
    let extra = if open.is_some() {
        Object::new()
    } else {
        half(UNMATCHED_RESULT)
    };
    tool_part(call, tool, state, extra)
}
