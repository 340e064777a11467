//! What other agents say, as parts of a session (E1, E4).

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

/// The key of a tool part of which one half never came.
pub(super) const UNMATCHED: &str = "unmatched";
/// Its result came, and no start before it.
pub(super) const UNMATCHED_RESULT: &str = "result";
/// Its start came, and no result after it.
pub(super) const UNMATCHED_START: &str = "start";

/// Calls that may be open at once; with one more, the oldest gets its end without a result. So memory is bounded (E4).
const MAX_OPEN: usize = 256;

/// Makes parts of what an agent says. One for each run of it.
pub struct AgentParts {
    max_open: usize,
    next: u64,
    open: BTreeMap<String, Open>,
    /// Open calls, the oldest first.
    order: VecDeque<String>,
}

/// A part of the message that the agent writes.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentPart {
    /// Which part, from 0. A number that was there before is that part, changed.
    pub slot: u64,
    /// What it is now.
    pub kind: PartKind,
}

struct Open {
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
    /// With at most so many calls open.
    #[must_use]
    pub fn with_limit(max_open: usize) -> Self {
        Self {
            max_open,
            next: 0,
            open: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }

    /// How many calls are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// The parts that are new or changed with this, in order.
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
                let kind = |open: Option<&Open>| {
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

    /// The agent is done: what is still open has its end without a result.
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
        // A second start under the same identifier: the first will not get a result of its own any more.
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
        let open = Open {
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

    fn close(&mut self, call: &str) -> Option<Open> {
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

/// A call that gets no result any more.
fn given_up(call: &str, open: Open) -> AgentPart {
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
    open: Option<&Open>,
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
