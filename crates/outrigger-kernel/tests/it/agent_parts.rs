//! Tests of an executor's handling of another agent's parts: it numbers and stores them.

use std::collections::BTreeMap;

use outrigger_kernel::merge::{AgentPart, Converter, Form};
use outrigger_protocol::merged::{AgentOutput, Placed};
use outrigger_protocol::message::Part;
use serde_json::json;

use crate::merge::assistant;

/// The stored parts of a message.
#[derive(Default)]
pub(crate) struct Written(BTreeMap<u64, Part>);

impl Written {
    pub(crate) fn take(&mut self, parts: Vec<AgentPart>) {
        for AgentPart { slot, kind } in parts {
            let part = Part {
                id: format!("prt_{slot:04}").as_str().into(),
                session_id: "ses_1".into(),
                message_id: "msg_2".into(),
                kind,
            };
            // What the store keeps is what is read back.
            let text = serde_json::to_string(&part).unwrap();
            self.0.insert(slot, serde_json::from_str(&text).unwrap());
        }
    }

    pub(crate) fn placed(&self, converter: &Converter, form: Form) -> Vec<Placed> {
        self.0
            .values()
            .flat_map(|part| converter.part(&assistant(), part, form))
            .collect()
    }
}

pub(crate) fn use_of(call: &str, timestamp: u64) -> AgentOutput {
    AgentOutput::ToolUse {
        id: call.into(),
        tool_name: "read".into(),
        tool_input: json!({ "filePath": call }),
        timestamp,
    }
}

pub(crate) fn result_of(call: &str, timestamp: u64) -> AgentOutput {
    AgentOutput::ToolResult {
        tool_use_id: call.into(),
        tool_name: "read".into(),
        result: json!("o"),
        is_error: false,
        timestamp,
    }
}
