//! What another agent says in a session of ours, as the events that our own model's answer would be (E1).

use outrigger_kernel::merge::{AgentPart, AgentParts};
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{IdMaker, PartId};
use outrigger_protocol::merged::AgentOutput;
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, NamedError, Part, PartKind, ToolState,
};
use outrigger_protocol::{Millis, Object};
use serde_json::Value;

/// The answer of another agent, as far as it has come. Its events are stored and published in their order.
pub struct ExternalAnswer {
    message: AssistantMessage,
    parts: AgentParts,
    maker: IdMaker,
    /// By the numbers of the parts.
    ids: Vec<PartId>,
}

impl ExternalAnswer {
    /// Begins: `message` says to which prompt (`parent_id`) of which session, and who answers; it gets its identifier here. `seed` is any
    /// number.
    #[must_use]
    pub fn begin(mut message: AssistantMessage, seed: u64, at: Millis) -> (Self, Event) {
        let mut maker = IdMaker::new(seed);
        message.id = maker.message(at);
        message.time.created = at;
        let answer = Self {
            message,
            parts: AgentParts::default(),
            maker,
            ids: Vec::new(),
        };
        let event = answer.info();
        (answer, event)
    }

    /// The message that is written.
    #[must_use]
    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// What the agent says.
    #[must_use]
    pub fn say(&mut self, output: AgentOutput, at: Millis) -> Vec<Event> {
        self.say_with(output, &Object::new(), at)
    }

    /// The same, with what is known of a call besides: it goes into the metadata of its result.
    #[must_use]
    pub fn say_with(&mut self, output: AgentOutput, facts: &Object, at: Millis) -> Vec<Event> {
        let mut parts = self.parts.on(output);
        for part in &mut parts {
            add_facts(&mut part.kind, facts);
        }
        self.events(parts, at)
    }

    /// Keeps a fact about the answer with its message.
    #[must_use]
    pub fn keep(&mut self, key: &str, value: Value) -> Event {
        self.message.extra.insert(key.to_owned(), value);
        self.info()
    }

    /// The agent is done, or has failed: calls that are still open have no result.
    #[must_use]
    pub fn finish(mut self, error: Option<NamedError>, at: Millis) -> Vec<Event> {
        let left = self.parts.finish();
        let mut events = self.events(left, at);
        let finish = if error.is_some() { "error" } else { "stop" };
        self.message.finish = Some(finish.to_owned());
        self.message.error = error;
        self.message.time.completed = Some(at);
        events.push(self.info());
        events
    }

    fn events(&mut self, parts: Vec<AgentPart>, at: Millis) -> Vec<Event> {
        let event = |AgentPart { slot, kind }| {
            let slot = usize::try_from(slot).unwrap_or(usize::MAX);
            let id = self.ids.get(slot).cloned().unwrap_or_else(|| {
                let id = self.maker.part(at);
                self.ids.push(id.clone());
                id
            });
            let session_id = self.message.session_id.clone();
            Event::PartUpdated {
                session_id: session_id.clone(),
                part: Box::new(Part {
                    id,
                    session_id,
                    message_id: self.message.id.clone(),
                    kind,
                }),
                time: at,
            }
        };
        parts.into_iter().map(event).collect()
    }

    fn info(&self) -> Event {
        Event::MessageUpdated {
            session_id: self.message.session_id.clone(),
            info: Box::new(MessageInfo::Assistant(self.message.clone())),
        }
    }
}

/// Adds to the metadata of a call that has ended.
fn add_facts(kind: &mut PartKind, facts: &Object) {
    let PartKind::Tool(call) = kind else {
        return;
    };
    if facts.is_empty() {
        return;
    }
    let metadata = match &mut call.state {
        ToolState::Completed { metadata, .. } => metadata,
        ToolState::Error { metadata, .. } => metadata.get_or_insert_default(),
        ToolState::Pending { .. } | ToolState::Running { .. } => return,
    };
    if !metadata.is_object() {
        *metadata = Value::Object(Object::new());
    }
    if let Value::Object(metadata) = metadata {
        metadata.extend(facts.clone());
    }
}
