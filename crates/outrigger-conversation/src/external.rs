//! Converts the output of another agent in one of our sessions to the events of our own model's answer (E1).

use outrigger_kernel::merge::{AgentPart, AgentParts};
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{IdMaker, PartId};
use outrigger_protocol::merged::AgentOutput;
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, NamedError, Part, PartKind, PartTime, ReasoningPart, TextPart,
    Tokens, ToolState,
};
use outrigger_protocol::{Millis, Object};
use serde_json::Value;

/// The answer of another agent so far. Its events are stored and published in order.
pub struct ExternalAnswer {
    message: AssistantMessage,
    parts: AgentParts,
    maker: IdMaker,
    /// By the numbers of the parts.
    ids: Vec<PartId>,
    /// The parts in progress: a text, and a thought.
    writing: [Option<Writing>; 2],
}

/// A text of which pieces have arrived.
struct Writing {
    id: PartId,
    begun: Millis,
    text: String,
}

/// Maximum bytes of a text shown before it is complete.
const MAX_PIECES: usize = 1024 * 1024;

impl ExternalAnswer {
    /// Starts an answer: `message` contains the prompt (`parent_id`), the session and the author; its identifier is assigned here. `seed`
    /// is any number.
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
            writing: [None, None],
        };
        let event = answer.info();
        (answer, event)
    }

    /// Returns the message that is being written.
    #[must_use]
    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// Converts an output of the agent.
    #[must_use]
    pub fn say(&mut self, output: AgentOutput, at: Millis) -> Vec<Event> {
        self.say_with(output, &Object::new(), at)
    }

    /// Like [`Self::say`], with further facts about a call, which are added to the metadata of its result.
    #[must_use]
    pub fn say_with(&mut self, output: AgentOutput, facts: &Object, at: Millis) -> Vec<Event> {
        let written = match &output {
            AgentOutput::Text { .. } => self.writing[0].take(),
            AgentOutput::Thought { .. } => self.writing[1].take(),
            _ => None,
        };
        let mut parts = self.parts.on(output);
        for part in &mut parts {
            add_facts(&mut part.kind, facts);
        }
        if let (Some(written), [part]) = (written, parts.as_mut_slice()) {
            begun_at(&mut part.kind, written.begun);
            // It is the part in which its pieces were shown.
            self.ids.push(written.id);
        }
        self.events(parts, at)
    }

    /// Converts a piece of a text or thought that is completed later: the stored start, for the first piece, and the piece, which is only
    /// published.
    #[must_use]
    pub fn piece(
        &mut self,
        is_thought: bool,
        text: String,
        at: Millis,
    ) -> (Option<Event>, Option<Event>) {
        let writing = &mut self.writing[usize::from(is_thought)];
        let is_first = writing.is_none();
        let maker = &mut self.maker;
        let written = writing.get_or_insert_with(|| Writing {
            id: maker.part(at),
            begun: at,
            text: String::new(),
        });
        let id = written.id.clone();
        let fits = written.text.len() + text.len() <= MAX_PIECES;
        if fits {
            written.text.push_str(&text);
        }
        let begun = is_first.then(|| self.part(id.clone(), empty(is_thought, at), at));
        let piece = fits.then(|| Event::PartDelta {
            session_id: self.message.session_id.clone(),
            message_id: self.message.id.clone(),
            part_id: id,
            field: "text".into(),
            delta: text,
        });
        (begun, piece)
    }

    /// Sets the usage so far.
    pub fn used(&mut self, tokens: Tokens, cost: f64) {
        (self.message.tokens, self.message.cost) = (tokens, cost);
    }

    /// Adds a fact about the answer to its message.
    #[must_use]
    pub fn keep(&mut self, key: &str, value: Value) -> Event {
        self.message.extra.insert(key.to_owned(), value);
        self.info()
    }

    /// Ends the answer after the agent has finished or failed: open calls get no result.
    #[must_use]
    pub fn finish(mut self, error: Option<NamedError>, at: Millis) -> Vec<Event> {
        // The shown part of an incomplete text is kept.
        let mut events = Vec::new();
        let timestamp = at;
        if let Some(Writing { text, .. }) = &self.writing[1] {
            let text = text.clone();
            events.extend(self.say(AgentOutput::Thought { text, timestamp }, at));
        }
        if let Some(Writing { text, .. }) = &self.writing[0] {
            let text = text.clone();
            events.extend(self.say(AgentOutput::Text { text, timestamp }, at));
        }
        let left = self.parts.finish();
        events.extend(self.events(left, at));
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
            (id, kind)
        };
        let parts: Vec<_> = parts.into_iter().map(event).collect();
        parts
            .into_iter()
            .map(|(id, kind)| self.part(id, kind, at))
            .collect()
    }

    fn part(&self, id: PartId, kind: PartKind, time: Millis) -> Event {
        let session_id = self.message.session_id.clone();
        Event::PartUpdated {
            session_id: session_id.clone(),
            part: Box::new(Part {
                id,
                session_id,
                message_id: self.message.id.clone(),
                kind,
            }),
            time,
        }
    }

    fn info(&self) -> Event {
        Event::MessageUpdated {
            session_id: self.message.session_id.clone(),
            info: Box::new(MessageInfo::Assistant(self.message.clone())),
        }
    }
}

/// Creates an empty text or thought.
fn empty(is_thought: bool, start: Millis) -> PartKind {
    let time = PartTime {
        start,
        ..PartTime::default()
    };
    if is_thought {
        PartKind::Reasoning(ReasoningPart {
            time,
            ..ReasoningPart::default()
        })
    } else {
        PartKind::Text(TextPart {
            time: Some(time),
            ..TextPart::default()
        })
    }
}

/// Sets when its first piece arrived.
fn begun_at(kind: &mut PartKind, at: Millis) {
    match kind {
        PartKind::Text(TextPart {
            time: Some(time), ..
        })
        | PartKind::Reasoning(ReasoningPart { time, .. }) => time.start = at,
        _ => {}
    }
}

/// Adds facts to the metadata of a call that has ended.
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
