//! Calls of other agents, under the names and arguments of our own tools.

use std::collections::BTreeMap;

use outrigger_protocol::merged::{AgentOutput, EXECUTOR};
use outrigger_protocol::{Millis, Object};
use serde_json::{Map, Value, json};

use crate::step::{Step, VendorOutput};

/// A call in our form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) input: Value,
}

impl Call {
    pub(crate) fn new(tool: &str, input: Value) -> Self {
        Self {
            tool: tool.to_owned(),
            input,
        }
    }

    /// Creates a command line.
    pub(crate) fn bash(command: &str, description: Option<&str>) -> Self {
        let mut input = json!({ "command": command });
        if let (Some(text), Value::Object(fields)) = (description, &mut input) {
            fields.insert("description".to_owned(), json!(text));
        }
        Self::new("bash", input)
    }
}

/// The calls of one agent, with the state of open ones.
#[derive(Debug)]
pub(crate) struct Calls {
    executor: &'static str,
    open: BTreeMap<String, OpenCall>,
    begun: u64,
}

#[derive(Debug)]
struct OpenCall {
    /// The number of earlier calls.
    number: u64,
    call: Call,
    vendor_tool: String,
    was_asked: bool,
}

/// Maximum number of open calls; beyond it the oldest is dropped.
pub(crate) const MAX_OPEN: usize = 256;

impl Calls {
    pub(crate) fn new(executor: &'static str) -> Self {
        Self {
            executor,
            open: BTreeMap::new(),
            begun: 0,
        }
    }

    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Call> {
        self.open.get(id).map(|it| &it.call)
    }

    /// Replaces a call before it was asked about.
    pub(crate) fn becomes(&mut self, id: &str, call: Call) {
        if let Some(open) = self.open.get_mut(id) {
            open.call = call;
            open.was_asked = false;
        }
    }

    /// Records a question about it.
    pub(crate) fn asked(&mut self, id: &str) {
        if let Some(open) = self.open.get_mut(id) {
            open.was_asked = true;
        }
    }

    pub(crate) fn starts(&mut self, id: &str, call: Call, vendor_tool: &str, at: Millis) -> Step {
        if self.open.len() >= MAX_OPEN {
            let oldest = self.open.iter().min_by_key(|(_, open)| open.number);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.and_then(|id| self.open.remove(&id));
        }
        self.begun += 1;
        let open = OpenCall {
            number: self.begun,
            call,
            vendor_tool: vendor_tool.to_owned(),
            was_asked: false,
        };
        let said = VendorOutput {
            output: AgentOutput::ToolUse {
                id: id.to_owned(),
                tool_name: open.call.tool.clone(),
                tool_input: open.call.input.clone(),
                timestamp: at,
            },
            facts: Object::new(),
        };
        self.open.insert(id.to_owned(), open);
        Step::Say(said)
    }

    /// Returns the result of a call, with `{executor: {name, tool, unasked?}}`: `unasked` if no question could have stopped it.
    pub(crate) fn ends(&mut self, id: &str, ended: Ended, at: Millis) -> Step {
        let open = self.open.remove(id);
        let mut whose = json!({ "name": self.executor });
        if let Value::Object(fields) = &mut whose {
            if let Some(open) = &open {
                fields.insert("tool".to_owned(), json!(open.vendor_tool));
            }
            // An unknown call was not asked about, either.
            if open.as_ref().is_none_or(|open| !open.was_asked) {
                fields.insert("unasked".to_owned(), json!(true));
            }
        }
        let mut facts = ended.facts;
        facts.insert(EXECUTOR.to_owned(), whose);
        Step::Say(VendorOutput {
            output: AgentOutput::ToolResult {
                tool_use_id: id.to_owned(),
                tool_name: open.map_or_else(|| "unknown".to_owned(), |open| open.call.tool),
                result: Value::String(ended.text),
                is_error: ended.is_error,
                timestamp: at,
            },
            facts,
        })
    }
}

/// How a call ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    pub(crate) facts: Object,
}

/// Returns an agent's text, unless it is empty.
pub(crate) fn said(text: &str, timestamp: Millis) -> Option<Step> {
    let text = text.to_owned();
    (!text.is_empty()).then(|| Step::say(AgentOutput::Text { text, timestamp }))
}

/// Returns an agent's reasoning, unless it is empty.
pub(crate) fn thought(text: &str, timestamp: Millis) -> Option<Step> {
    let text = text.to_owned();
    (!text.is_empty()).then(|| Step::say(AgentOutput::Thought { text, timestamp }))
}

/// Returns unknown output unmodified.
pub(crate) fn as_it_came(text: &str, timestamp: Millis) -> Step {
    let text = text.to_owned();
    Step::say(AgentOutput::Other { text, timestamp })
}

/// Maximum bytes of a file's content in the facts of a call.
pub(crate) const MAX_CONTENT: usize = 256 * 1024;

/// Renames fields of an object; the others are unchanged.
pub(crate) fn renamed(input: &Value, names: &[(&str, &str)]) -> Value {
    let Value::Object(fields) = input else {
        return input.clone();
    };
    let fields = fields.iter().map(|(key, value)| {
        let ours = names.iter().find(|(theirs, _)| theirs == key);
        let key = ours.map_or(key.as_str(), |(_, ours)| ours);
        (key.to_owned(), value.clone())
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Keeps only these fields.
pub(crate) fn only(input: &Value, keys: &[&str]) -> Value {
    let fields = keys
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), input.get(key)?.clone())));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Returns a text at a pointer.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}
