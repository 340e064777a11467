//! Converts a stored session, line by line, to messages and their parts.

use outrigger_executors::{Piece, Stored};
use outrigger_kernel::merge::{AgentPart, AgentParts};
use outrigger_protocol::id::PartId;
use outrigger_protocol::merged::EXECUTOR;
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, MessageTime, MessageWithParts, Part, PartKind, TextPart,
    ToolState, UserMessage,
};
use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

use crate::transcript::{MAX_MESSAGES, Transcript};

/// Builds a transcript.
pub(crate) struct Speech {
    transcript: Transcript,
    provider: &'static str,
    parts: AgentParts,
    /// The position of each part by its number: message and part.
    slots: Vec<(usize, usize)>,
    /// The answer being read: its name and position.
    answer: Option<(String, usize)>,
    /// Name and model of the next answer.
    model: String,
    name: String,
    prompted: String,
    is_full: bool,
}

impl Speech {
    pub(crate) fn new(transcript: Transcript, provider: &'static str) -> Self {
        Self {
            transcript,
            provider,
            parts: AgentParts::default(),
            slots: Vec::new(),
            answer: None,
            model: String::new(),
            name: String::new(),
            prompted: String::new(),
            is_full: false,
        }
    }

    /// Adds the next item. Returns `false` if the session has too many messages: the rest is
    /// skipped.
    pub(crate) fn say(&mut self, said: Stored, at: Millis) -> bool {
        if self.transcript.messages.len() >= MAX_MESSAGES {
            self.is_full = true;
            return false;
        }
        if self.transcript.created == 0 {
            self.transcript.created = at;
        }
        self.transcript.updated = self.transcript.updated.max(at);
        match said {
            Stored::Session {
                id,
                folder,
                version,
            } => self.session(id, folder, version),
            Stored::Title(title) => self.transcript.title = title,
            Stored::Prompt(pieces) => self.prompt(pieces, at),
            Stored::Summary(text) => self.summary(text, at),
            Stored::Answer { id, model, tokens } => {
                if self.answer.as_ref().is_some_and(|(name, _)| *name != id) {
                    self.answer = None;
                }
                (self.name, self.model) = (id, model);
                let place = self.answer.as_ref().map(|(_, place)| *place);
                if let (Some(tokens), Some(answer)) =
                    (tokens, place.and_then(|it| self.answer_at(it)))
                {
                    answer.tokens = tokens;
                }
            }
            Stored::Say(said) => {
                let parts = self.parts.on(said.output);
                self.put(parts, &said.facts, at);
            }
        }
        true
    }

    /// Returns the transcript; open calls have no result.
    pub(crate) fn finish(mut self) -> Transcript {
        let left = self.parts.finish();
        let at = self.transcript.updated;
        self.put(left, &Object::new(), at);
        if self.transcript.title.trim().is_empty() {
            self.transcript.title = first_line(&self.prompted);
        }
        self.transcript
    }

    /// The first value wins: a session that continues elsewhere keeps its own.
    fn session(&mut self, id: Option<String>, folder: Option<String>, version: Option<String>) {
        let known = &mut self.transcript;
        for (place, said) in [
            (&mut known.id, id),
            (&mut known.directory, folder),
            (&mut known.version, version),
        ] {
            if let Some(said) = said.filter(|_| place.is_empty()) {
                *place = said;
            }
        }
    }

    fn prompt(&mut self, pieces: Vec<Piece>, at: Millis) {
        let kinds: Vec<PartKind> = pieces
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => PartKind::Text(TextPart {
                    text,
                    ..TextPart::default()
                }),
                Piece::Picture { mime, url } => {
                    let fields = [("mime", mime), ("url", url)].into_iter();
                    PartKind::File(
                        fields
                            .map(|(key, value)| (key.to_owned(), json!(value)))
                            .collect(),
                    )
                }
            })
            .collect();
        if self.prompted.is_empty()
            && let Some(PartKind::Text(said)) = kinds.first()
        {
            self.prompted = said.text.clone();
        }
        self.user(kinds, at);
    }

    fn user(&mut self, kinds: Vec<PartKind>, at: Millis) {
        self.answer = None;
        let user = UserMessage {
            id: format!("msg_{}", self.transcript.messages.len()).into(),
            time: MessageTime {
                created: at,
                completed: None,
            },
            ..UserMessage::default()
        };
        let parts = kinds.into_iter().map(part).collect();
        let info = MessageInfo::User(user);
        self.transcript
            .messages
            .push(MessageWithParts { info, parts });
    }

    fn summary(&mut self, text: String, at: Millis) {
        let asked = Object::from_iter([("auto".to_owned(), json!(true))]);
        self.user(vec![PartKind::Compaction(asked)], at);
        let place = self.begin(at);
        if let Some(answer) = self.answer_at(place) {
            answer.summary = Some(true);
        }
        let said = PartKind::Text(TextPart {
            text,
            ..TextPart::default()
        });
        if let Some(message) = self.transcript.messages.get_mut(place) {
            message.parts.push(part(said));
        }
        self.answer = None;
    }

    /// Starts a new answer to the last prompt.
    fn begin(&mut self, at: Millis) -> usize {
        let messages = &mut self.transcript.messages;
        let asked = messages
            .iter()
            .rev()
            .find_map(|message| match &message.info {
                MessageInfo::User(user) => Some(user.id.clone()),
                MessageInfo::Assistant(_) => None,
            });
        let place = messages.len();
        let answer = AssistantMessage {
            id: format!("msg_{place}").into(),
            parent_id: asked.unwrap_or_default(),
            model_id: self.model.clone(),
            provider_id: self.provider.to_owned(),
            time: MessageTime {
                created: at,
                completed: Some(at),
            },
            finish: Some("stop".to_owned()),
            ..AssistantMessage::default()
        };
        messages.push(MessageWithParts {
            info: MessageInfo::Assistant(answer),
            parts: Vec::new(),
        });
        self.answer = Some((self.name.clone(), place));
        place
    }

    fn answer_at(&mut self, place: usize) -> Option<&mut AssistantMessage> {
        match &mut self.transcript.messages.get_mut(place)?.info {
            MessageInfo::Assistant(answer) => Some(answer),
            MessageInfo::User(_) => None,
        }
    }

    fn put(&mut self, parts: Vec<AgentPart>, facts: &Object, at: Millis) {
        for AgentPart { slot, mut kind } in parts {
            add_facts(&mut kind, facts);
            let slot = usize::try_from(slot).unwrap_or(usize::MAX);
            if let Some((message, place)) = self.slots.get(slot).copied() {
                let message = self.transcript.messages.get_mut(message);
                if let Some(known) = message.and_then(|it| it.parts.get_mut(place)) {
                    known.kind = kind;
                }
                continue;
            }
            let place = match &self.answer {
                Some((_, place)) => *place,
                None => self.begin(at),
            };
            if let Some(answer) = self.answer_at(place) {
                answer.time.completed = Some(at);
            }
            if let Some(message) = self.transcript.messages.get_mut(place) {
                self.slots.push((place, message.parts.len()));
                message.parts.push(part(kind));
            }
        }
    }
}

/// Identifiers are assigned later.
fn part(kind: PartKind) -> Part {
    Part {
        id: PartId::default(),
        session_id: Default::default(),
        message_id: Default::default(),
        kind,
    }
}

/// Adds further facts of a call to its metadata.
fn add_facts(kind: &mut PartKind, facts: &Object) {
    let PartKind::Tool(call) = kind else { return };
    let metadata = match &mut call.state {
        ToolState::Completed { metadata, .. } => metadata,
        ToolState::Error { metadata, .. } => metadata.get_or_insert_with(|| json!({})),
        ToolState::Pending { .. } | ToolState::Running { .. } => return,
    };
    if let Value::Object(metadata) = metadata {
        let known = facts.iter().filter(|(key, _)| *key != EXECUTOR);
        metadata.extend(known.map(|(key, value)| (key.clone(), value.clone())));
    }
}

pub(crate) fn first_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .chars()
        .take(80)
        .collect()
}
