//! What another agent says in a session of ours, as the events that our own model's answer would be (E1).

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

/// The answer of another agent, as far as it has come. Its events are stored and published in their order.
pub struct ExternalAnswer {
    message: AssistantMessage,
    parts: AgentParts,
    maker: IdMaker,
    /// By the numbers of the parts.
    ids: Vec<PartId>,
    /// What is being written: a text, and a thought.
    writing: [Option<Writing>; 2],
}

/// A text of which pieces have come.
struct Writing {
    id: PartId,
    begun: Millis,
    text: String,
}

/// Bytes of a text that are shown before it is complete.
const MAX_PIECES: usize = 1024 * 1024;

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
            writing: [None, None],
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
            // It is the part that its pieces were shown in.
            self.ids.push(written.id);
        }
        self.events(parts, at)
    }

    /// A piece of a text or of a thought, which is said as a whole later: what is stored of it, where it is the first, and the
    /// piece, which is only published.
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

    /// What was used up so far.
    pub fn used(&mut self, tokens: Tokens, cost: f64) {
        (self.message.tokens, self.message.cost) = (tokens, cost);
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
        // Of a text that was not completed, what was shown of it stays.
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
        let parts = parts.into_iter();
        parts.map(|(id, kind)| self.part(id, kind, at)).collect()
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

/// A text or a thought that is only about to be written.
fn empty(is_thought: bool, start: Millis) -> PartKind {
    let time = PartTime {
        start,
        ..PartTime::default()
    };
    match is_thought {
        true => PartKind::Reasoning(ReasoningPart {
            time,
            ..ReasoningPart::default()
        }),
        false => PartKind::Text(TextPart {
            time: Some(time),
            ..TextPart::default()
        }),
    }
}

/// When its first piece came.
fn begun_at(kind: &mut PartKind, at: Millis) {
    match kind {
        PartKind::Text(TextPart {
            time: Some(time), ..
        })
        | PartKind::Reasoning(ReasoningPart { time, .. }) => time.start = at,
        _ => {}
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
