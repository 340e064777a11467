//! The conversation of a session as a list of blocks: one for each displayed part of a message.

use std::collections::HashMap;
use std::sync::Arc;

use outrigger_protocol::Millis;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, PartId};
use outrigger_protocol::message::{MessageInfo, MessageWithParts, Part, PartKind, ToolState};
use outrigger_protocol::session::SessionStatus;
use serde_json::Value;

use super::footer::{Footer, ModelNames};
use super::layout::Cache;

/// Number of the last blocks among which the same error is looked for.
const RECENT: usize = 4;
/// Name of the error of an answer that was interrupted.
const ABORTED: &str = "MessageAbortedError";

/// A displayed part of a conversation.
#[derive(Debug)]
pub struct Block {
    /// The id of the part, or of its substitute: unique in its conversation.
    pub id: String,
    /// Its message.
    pub message: MessageId,
    /// Its kind.
    pub kind: Kind,
    /// Its rows, while they are cached.
    pub cache: Cache,
    /// It is expanded although others are folded, or the other way round.
    pub is_toggled: bool,
}

/// The kind of a block.
#[derive(Debug)]
pub enum Kind {
    /// Text of the user.
    User(String),
    /// A file that the user attached.
    File(String),
    /// Text of the model, in Markdown.
    Text(String),
    /// The model's reasoning, and whether it is complete.
    Reasoning(String, bool),
    /// A tool call, and the folder of its session.
    Tool(Box<Part>, Arc<str>),
    /// Something failed.
    Failed(String),
    /// A message of the program.
    Note(String),
    /// The end of an answer.
    Footer(Footer),
}

impl Block {
    fn new(id: impl Into<String>, message: &MessageId, kind: Kind) -> Self {
        Self {
            id: id.into(),
            message: message.clone(),
            kind,
            cache: Cache::default(),
            is_toggled: false,
        }
    }
}

/// The blocks of a session and their sources.
#[derive(Debug, Default)]
pub struct Conversation {
    blocks: Vec<Block>,
    /// The messages: of those of the user the time at which they were written.
    known: HashMap<MessageId, Option<Millis>>,
    names: ModelNames,
    root: Arc<str>,
    /// The session's status.
    pub status: Option<SessionStatus>,
}

impl Conversation {
    /// Returns the blocks, in order.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Like [`Self::blocks`], mutable, for the layout.
    pub fn blocks_mut(&mut self) -> &mut Vec<Block> {
        &mut self.blocks
    }

    /// Creates a conversation of stored messages, with the settings of another one.
    fn of(messages: Vec<MessageWithParts>, like: &Self) -> Self {
        let mut conversation = Self {
            names: like.names.clone(),
            root: Arc::clone(&like.root),
            ..Self::default()
        };
        for message in messages {
            let end = conversation.message(&message.info);
            for part in message.parts {
                conversation.part(part);
            }
            end.into_iter().for_each(|block| conversation.put(block));
        }
        conversation
    }

    /// Shows these messages instead; the status and the names of models stay.
    pub fn replace(&mut self, messages: Vec<MessageWithParts>) {
        let status = self.status.take();
        *self = Self::of(messages, self);
        self.status = status;
    }

    /// Shows no messages and no status; the names of models stay.
    pub fn clear(&mut self) {
        *self = Self::of(Vec::new(), self);
    }

    /// Sets the folder that paths are shown relative to.
    pub fn set_root(&mut self, root: &str) {
        self.root = root.into();
    }

    /// Sets the names of models.
    pub fn name_models(&mut self, names: ModelNames) {
        for block in &mut self.blocks {
            if let Kind::Footer(footer) = &mut block.kind
                && footer.name_model(&names)
            {
                block.cache.outdate();
            }
        }
        self.names = names;
    }

    /// Returns the names of models.
    #[must_use]
    pub fn names(&self) -> &ModelNames {
        &self.names
    }

    /// Applies an event of this session.
    pub fn on(&mut self, event: &Event) {
        // New parts show that the retry succeeded.
        if matches!(event, Event::PartDelta { .. })
            && matches!(self.status, Some(SessionStatus::Retry { .. }))
        {
            self.status = Some(SessionStatus::Busy);
        }
        match event {
            Event::MessageUpdated { info, .. } => {
                let end = self.message(info);
                end.into_iter().for_each(|block| self.put(block));
            }
            Event::PartUpdated { part, .. } => self.part(part.as_ref().clone()),
            Event::PartDelta {
                part_id,
                field,
                delta,
                ..
            } if field == "text" => self.delta(part_id, delta),
            Event::PartRemoved { part_id, .. } => {
                self.blocks.retain(|it| it.id != part_id.as_str())
            }
            Event::MessageRemoved { message_id, .. } => {
                self.blocks.retain(|it| it.message != *message_id);
                self.known.remove(message_id);
            }
            Event::SessionStatus { status, .. } => self.status = Some(status.clone()),
            Event::SessionIdle { .. } => self.status = Some(SessionStatus::Idle),
            // The message says that it was interrupted.
            Event::SessionError { error, .. } if error.name == ABORTED => {}
            Event::SessionError { error, .. } => {
                let message = self.last_message();
                let known = self.blocks.iter().rev().take(RECENT);
                let said = known
                    .filter(|it| matches!(&it.kind, Kind::Failed(text) if text == error.message()));
                if said.count() == 0 {
                    let id = format!("error:{}", self.blocks.len());
                    self.put(Block::new(
                        id,
                        &message,
                        Kind::Failed(error.message().to_owned()),
                    ));
                }
            }
            _ => {}
        }
    }

    /// Returns the last answer of the model.
    #[must_use]
    pub fn last_answer(&self) -> Option<&str> {
        self.blocks.iter().rev().find_map(|it| match &it.kind {
            Kind::Text(text) if !text.trim().is_empty() => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns whether it ends with an answer, or with why there is none.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        let last = self.blocks.last().map(|it| &it.kind);
        matches!(
            last,
            Some(Kind::Footer(_) | Kind::Note(_) | Kind::Failed(_))
        )
    }

    /// Returns whether it ends with a call that was refused without words for the model: the agent ends the turn there. A client
    /// elsewhere may have refused it.
    #[must_use]
    pub fn ends_at_refusal(&self) -> bool {
        let Some(Kind::Tool(part, _)) = self.blocks.last().map(|it| &it.kind) else {
            return false;
        };
        let PartKind::Tool(call) = &part.kind else {
            return false;
        };
        matches!(&call.state, ToolState::Error { error, .. } if error.contains("rejected permission for this tool call"))
    }

    /// Returns the user's prompts: message and text, in order.
    pub fn prompts(&self) -> impl DoubleEndedIterator<Item = (&MessageId, &str)> {
        self.blocks.iter().filter_map(|it| match &it.kind {
            Kind::User(text) => Some((&it.message, text.as_str())),
            _ => None,
        })
    }

    /// Keeps only the newest messages.
    pub fn keep_newest(&mut self, blocks: usize) {
        let from = self.blocks.len().saturating_sub(blocks);
        if let Some(message) = self.blocks.get(from).map(|it| it.message.clone()) {
            let start = self.blocks.iter().position(|it| it.message == message);
            self.blocks.drain(..start.unwrap_or(from));
            self.forget_messages();
        }
    }

    /// Forgets messages without blocks.
    fn forget_messages(&mut self) {
        let kept: std::collections::HashSet<_> = self.blocks.iter().map(|it| &it.message).collect();
        self.known.retain(|id, _| kept.contains(id));
    }

    /// Inserts messages before the existing ones.
    pub fn prepend(&mut self, messages: Vec<MessageWithParts>) {
        let mut older = Self::of(messages, self);
        older
            .blocks
            .retain(|it| !self.known.contains_key(&it.message));
        older.blocks.append(&mut self.blocks);
        self.blocks = older.blocks;
        self.known.extend(older.known);
    }

    /// Keeps only the oldest messages; returns whether any were dropped.
    pub fn keep_oldest(&mut self, blocks: usize) -> bool {
        let Some(message) = self.blocks.get(blocks).map(|it| it.message.clone()) else {
            return false;
        };
        let end = self.blocks.iter().position(|it| it.message == message);
        self.blocks
            .truncate(end.filter(|it| *it > 0).unwrap_or(blocks));
        self.forget_messages();
        true
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.known.len()
    }

    /// Returns the lines of prompts and answers, with their blocks.
    pub fn lines(&self) -> impl Iterator<Item = (&str, String)> {
        self.blocks.iter().flat_map(|block| {
            let text = match &block.kind {
                Kind::User(text)
                | Kind::Text(text)
                | Kind::Reasoning(text, _)
                | Kind::Failed(text) => text.clone(),
                Kind::Tool(part, _) => match &part.kind {
                    PartKind::Tool(call) => {
                        format!("{} {}", call.tool, text_of(call.state.input()))
                    }
                    _ => String::new(),
                },
                Kind::File(_) | Kind::Note(_) | Kind::Footer(_) => String::new(),
            };
            let lines: Vec<String> = text
                .lines()
                .filter(|it| !it.trim().is_empty())
                .map(|it| it.trim().to_owned())
                .collect();
            lines.into_iter().map(|it| (block.id.as_str(), it))
        })
    }

    /// Appends a message of the program.
    pub fn note(&mut self, text: impl Into<String>) {
        let message = self.last_message();
        let id = format!("note:{}", self.blocks.len());
        // After the end of the last answer, which `put` keeps last.
        self.blocks
            .push(Block::new(id, &message, Kind::Note(text.into())));
    }

    /// Appends an error.
    pub fn fail(&mut self, text: impl Into<String>) {
        let message = self.last_message();
        let id = format!("error:{}", self.blocks.len());
        self.blocks
            .push(Block::new(id, &message, Kind::Failed(text.into())));
    }

    fn last_message(&self) -> MessageId {
        self.blocks
            .last()
            .map_or_else(|| MessageId(String::new()), |it| it.message.clone())
    }

    /// Drops an error of the session that a message has as well: its event may come first.
    fn forget_error(&mut self, text: &str) {
        let recent = self.blocks.len().saturating_sub(RECENT);
        let of_session = |it: &Block| {
            let number = it.id.strip_prefix("error:");
            let is_numbered = number.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
            is_numbered && matches!(&it.kind, Kind::Failed(known) if known == text)
        };
        let found = self.blocks.iter().skip(recent).position(of_session);
        if let Some(found) = found {
            self.blocks.remove(recent + found);
        }
    }

    /// Records a message; returns the blocks of its end.
    fn message(&mut self, info: &MessageInfo) -> Vec<Block> {
        let written = match info {
            MessageInfo::User(prompt) => Some(prompt.time.created),
            MessageInfo::Assistant(_) => None,
        };
        self.known.insert(info.id().clone(), written);
        let MessageInfo::Assistant(answer) = info else {
            return Vec::new();
        };
        let mut end = Vec::new();
        if let Some(error) = &answer.error {
            let kind = match error.name.as_str() {
                ABORTED => Kind::Note("interrupted".to_owned()),
                _ => {
                    self.forget_error(error.message());
                    Kind::Failed(error.message().to_owned())
                }
            };
            end.push(Block::new(format!("error:{}", answer.id), &answer.id, kind));
        }
        if answer.summary == Some(true) && answer.time.completed.is_none() {
            let text = "making a summary of the conversation".to_owned();
            end.push(Block::new(
                format!("summary:{}", answer.id),
                &answer.id,
                Kind::Note(text),
            ));
        }
        if answer
            .finish
            .as_deref()
            .is_some_and(|it| it != "tool-calls")
            && answer.time.completed.is_some()
        {
            let asked = self.known.get(&answer.parent_id).copied().flatten();
            let kind = Kind::Footer(Footer::of(answer, asked, &self.names));
            end.push(Block::new(format!("end:{}", answer.id), &answer.id, kind));
        }
        end
    }

    fn part(&mut self, part: Part) {
        let is_user = matches!(self.known.get(&part.message_id), Some(Some(_)));
        let (id, message) = (part.id.0.clone(), part.message_id.clone());
        let kind = match &part.kind {
            PartKind::Text(text)
                if text.synthetic == Some(true) || text.ignored == Some(true) && !is_user =>
            {
                return;
            }
            PartKind::Text(text) if is_user => Kind::User(text.text.clone()),
            PartKind::Text(text) => Kind::Text(text.text.clone()),
            PartKind::Reasoning(thought) => {
                Kind::Reasoning(thought.text.clone(), thought.time.end.is_some())
            }
            PartKind::File(file) => {
                let name = file.get("filename").or_else(|| file.get("url"));
                Kind::File(name.and_then(Value::as_str).unwrap_or("file").to_owned())
            }
            PartKind::Tool(_) => Kind::Tool(Box::new(part), Arc::clone(&self.root)),
            PartKind::Compaction(_) => {
                Kind::Note("the conversation before this is summarised".to_owned())
            }
            PartKind::Retry(retry) => {
                let why = retry
                    .get("error")
                    .and_then(|it| it.pointer("/data/message")?.as_str());
                Kind::Note(format!(
                    "tried again: {}",
                    why.unwrap_or("the model's provider failed")
                ))
            }
            _ => return,
        };
        self.put(Block {
            id,
            message,
            kind,
            cache: Cache::default(),
            is_toggled: false,
        });
    }

    /// Replaces the block with the same identifier, or inserts after those of its message.
    fn put(&mut self, block: Block) {
        if let Some(known) = self.blocks.iter_mut().rev().find(|it| it.id == block.id) {
            known.kind = block.kind;
            known.cache.outdate();
            return;
        }
        let is_last = |it: &Block| it.message <= block.message || block.message.0.is_empty();
        let at = match self.blocks.last() {
            Some(last) if !is_last(last) => {
                self.blocks.iter().rposition(is_last).map_or(0, |at| at + 1)
            }
            _ => self.blocks.len(),
        };
        // A text that arrives after a message's end is shown before it.
        let ends = |it: &Block| it.message == block.message && matches!(it.kind, Kind::Footer(_));
        let before_end = at
            .checked_sub(1)
            .filter(|at| self.blocks.get(*at).is_some_and(ends));
        self.blocks.insert(before_end.unwrap_or(at), block);
    }

    fn delta(&mut self, part: &PartId, delta: &str) {
        let found = self
            .blocks
            .iter_mut()
            .rev()
            .find(|it| it.id == part.as_str());
        if let Some(Block {
            kind: Kind::Text(text) | Kind::Reasoning(text, _),
            cache,
            ..
        }) = found
        {
            text.push_str(delta);
            cache.grow();
        }
    }
}

/// Collects the texts of a tool's input, to search them.
fn text_of(input: &Value) -> String {
    input
        .as_object()
        .into_iter()
        .flat_map(|it| it.values())
        .filter_map(Value::as_str)
        .filter_map(|it| it.lines().next())
        .collect::<Vec<_>>()
        .join(" ")
}
