//! The state machine of a turn: from a prompt to idle.
//!
//! [`step`] takes what happened and returns what must happen next. It holds the message that is being written and the open
//! effects; everything else (history, instructions, the request itself) belongs to the agent, which carries the effects
//! out. Every input is stored before its effects are carried out, so a killed run is restored by replaying the inputs and
//! then feeding [`Input::Resumed`].
//!
//! The order of hooks and events is OpenCode's, as recorded (`tests/parity/gold`).

mod answer;
pub mod compact;
mod effect;
mod ends;
mod files;
mod inputs;
mod loops;
mod model;
mod parts;
mod prompt;
mod resume;
mod steering;
mod subtask;
mod tools;

pub use effect::Effect;
pub use resume::INTERRUPTED;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use outrigger_protocol::Millis;
use outrigger_protocol::compaction::CompactRequest;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{CallId, IdMaker, MessageId, PartId};
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, MessageTime, ModelRef, NamedError, Part, PartKind, UserMessage,
};
use outrigger_protocol::model::Usage;
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::tool::ToolCall;
use outrigger_protocol::turn::{Begin, CommandCall, EffectId, HookPayload, Input, KnownTool};

use crate::hooks::HookPoint;
use crate::sorted::SortedMap;

/// An effect that was requested and has not reported yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OpenEffect {
    /// A chain at that point.
    Hooks(HookPoint),
    /// The text of a part is with the hooks.
    Text(PartId),
    /// The list of tools.
    Tools,
    /// The plan of a compaction.
    Plan,
    /// The model.
    Model,
    /// The snapshot before the first call of a step that may write.
    FilesBefore,
    /// The snapshot after a step.
    FilesAfter,
    /// Whether a repeated call may be made.
    Loop(PartId, Box<ToolCall>),
    /// A tool call, by its part; with the call as the model made it, to be repeated if possible.
    Tool(PartId, Box<ToolCall>),
}

/// A streamed block that is not complete.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenBlock {
    pub(crate) index: u32,
    pub(crate) part: PartId,
}

/// A tool call that the model has started to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenCall {
    pub(crate) given: String,
    pub(crate) part: PartId,
}

/// State of a turn. Equal states behave equally.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    begin: Box<Begin>,
    ids: IdMaker,
    effects: u64,
    step: u32,
    user: UserMessage,
    /// Parts of the user message as sent to the hooks.
    offered: Vec<Part>,
    message: Option<AssistantMessage>,
    /// Parts of the current assistant message. Each has its own allocation, so that moving an entry is cheap.
    parts: SortedMap<PartId, Box<Part>>,
    blocks: Vec<OpenBlock>,
    writing: Vec<OpenCall>,
    tools: Vec<KnownTool>,
    used_calls: BTreeSet<CallId>,
    open: SortedMap<EffectId, OpenEffect>,
    /// Reason and usage that the model reported in this step.
    finished: Option<(String, Usage)>,
    /// Usage that is not in the session record yet.
    unbilled: Option<(Usage, f64)>,
    calls_in_step: u32,
    /// The last message whose step handlers were asked about, before it was complete.
    asked_after_step: Option<MessageId>,
    files: files::Files,
    /// Prompts that joined the turn, oldest first.
    joined: Vec<Begin>,
    /// Commands that the turn has answered, except the last.
    commands: Vec<CommandCall>,
    loops: loops::Loops,
    /// Set while a subtask of the user runs: the command that it comes from.
    subtask: Option<Option<String>>,
    /// The user refused a tool call, so the turn stops after this step, as in OpenCode.
    refused: bool,
    compacting: Option<compact::Compaction>,
    /// A compaction after this step: its message, its part, and the request.
    asked: Option<(UserMessage, Part, CompactRequest)>,
    answer: answer::StructuredAnswer,
    /// Step of the last compaction.
    compacted: Option<u32>,
    /// The model refused this step's request as too long.
    overflowed: Option<NamedError>,
    cancelled: bool,
    failed: Option<NamedError>,
    done: bool,
}

/// Starts a turn, or reports what happened. `turn` is `None` before [`Input::Begin`].
///
/// Inputs that do not fit the state (an outcome of an effect that is not open, anything after the end) change nothing and
/// have no effects: a late answer is not an error.
pub fn step(turn: &mut Option<Turn>, at: Millis, input: Input) -> Vec<Effect> {
    let mut out = Vec::new();
    match (turn.as_mut(), input) {
        (None, Input::Begin(begin)) => {
            let mut fresh = Turn::new(begin, at);
            fresh.start(at, &mut out);
            *turn = Some(fresh);
        }
        (Some(turn), input) if !turn.done => turn.take(at, input, &mut out),
        _ => {}
    }
    out
}

impl Turn {
    fn new(begin: Box<Begin>, at: Millis) -> Self {
        let mut ids = IdMaker::new(begin.seed);
        let mut user = begin.message.clone();
        if user.id.as_str().is_empty() {
            user.id = ids.message(at);
        }
        user.session_id = begin.session_id.clone();
        if !begin.stored {
            user.time = MessageTime {
                created: at,
                completed: None,
            };
        }
        let used_calls = begin
            .used_calls
            .iter()
            .map(|id| CallId(id.clone()))
            .collect();
        Self {
            ids,
            effects: 0,
            step: 0,
            user,
            offered: Vec::new(),
            message: None,
            parts: SortedMap::default(),
            blocks: Vec::new(),
            writing: Vec::new(),
            tools: Vec::new(),
            used_calls,
            open: SortedMap::default(),
            finished: None,
            unbilled: None,
            calls_in_step: 0,
            asked_after_step: None,
            files: files::Files::default(),
            joined: Vec::new(),
            commands: Vec::new(),
            loops: loops::Loops::default(),
            subtask: None,
            refused: false,
            compacting: None,
            asked: None,
            answer: answer::StructuredAnswer::default(),
            compacted: None,
            overflowed: None,
            cancelled: false,
            failed: None,
            done: false,
            begin,
        }
    }

    /// Returns whether the turn has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Returns the start of the turn.
    #[must_use]
    pub fn begin(&self) -> &Begin {
        &self.begin
    }

    /// Returns the current user message.
    #[must_use]
    pub fn user(&self) -> &UserMessage {
        &self.user
    }

    /// Returns the parts of the user message before the hooks at a point saw them.
    pub fn parts_before(&self, point: HookPoint) -> impl Iterator<Item = &PartKind> {
        let (drafts, offered) = match point {
            HookPoint::RunBeforeStart => (&[][..], &self.offered[..]),
            _ => (&self.begin.parts[..], &[][..]),
        };
        drafts
            .iter()
            .map(|part| &part.kind)
            .chain(offered.iter().map(|part| &part.kind))
    }

    /// Returns the step of the model, from 1; 0 before the first.
    #[must_use]
    pub fn current_step(&self) -> u32 {
        self.step
    }

    /// Returns the assistant message that is being written.
    #[must_use]
    pub fn message(&self) -> Option<&AssistantMessage> {
        self.message.as_ref()
    }

    /// Returns the part of a streamed block.
    #[must_use]
    pub fn part_of_block(&self, index: u32) -> Option<&PartId> {
        self.blocks
            .iter()
            .find(|b| b.index == index)
            .map(|b| &b.part)
    }

    /// Returns the part of a running tool call.
    #[must_use]
    pub fn part_of_call(&self, effect: EffectId) -> Option<&Part> {
        match self.open.get(&effect)? {
            OpenEffect::Tool(id, _) => self.parts.get(id).map(|part| &**part),
            _ => None,
        }
    }

    /// Returns the last message whose step handlers were asked about (`execute.after_step`); they are not notified of it
    /// again.
    #[must_use]
    pub fn asked_after_step(&self) -> Option<&MessageId> {
        self.asked_after_step.as_ref()
    }

    /// Returns whether a new call cannot have this id, as far as the turn knows.
    #[must_use]
    pub fn has_used_call(&self, id: &CallId) -> bool {
        self.used_calls.contains(id)
    }

    /// Returns whether the model's answer of this step is incomplete: it streams, or its text is with the hooks.
    #[must_use]
    pub fn is_speaking(&self) -> bool {
        self.open
            .values()
            .any(|open| matches!(open, OpenEffect::Model | OpenEffect::Text(_)))
    }

    /// Returns the effects that have not reported yet.
    #[must_use]
    pub fn open_effects(&self) -> Vec<EffectId> {
        self.open.keys().copied().collect()
    }

    fn open(&mut self, what: OpenEffect) -> EffectId {
        self.effects += 1;
        let id = EffectId(self.effects);
        self.open.insert(id, what);
        id
    }

    fn hooks(&mut self, point: HookPoint, payload: Option<HookPayload>, out: &mut Vec<Effect>) {
        let effect = self.open(OpenEffect::Hooks(point));
        out.push(Effect::Hooks {
            effect,
            point,
            payload,
        });
    }

    // ---- steps ----

    fn next_step(&mut self, at: Millis, out: &mut Vec<Effect>) {
        if self.step >= self.begin.max_steps {
            let error = NamedError::new(
                "StepLimitError",
                format!(
                    "stopped after {} model requests, the limit of this turn (agent steps, or max_steps in outrigger.toml)",
                    self.step
                ),
            );
            self.failed = Some(error);
            self.end(at, out);
            return;
        }
        self.step += 1;
        let first = self.step == 1;
        let (agent, model) = (self.begin.agent.clone(), self.begin.model.clone());
        self.message = Some(self.new_message(at, &agent, &model));
        self.clear_step();
        self.publish_message(out);
        if first {
            self.ask_title(out);
        }
        let patch = self.patch_session(!first);
        out.push(patch);
        self.prepare(out);
    }

    /// Requests the title once, with the turn's first effects.
    fn ask_title(&mut self, out: &mut Vec<Effect>) {
        if core::mem::take(&mut self.begin.wants_title) {
            out.push(Effect::MakeTitle {
                message_id: self.user.id.clone(),
            });
        }
    }

    fn new_message(&mut self, at: Millis, agent: &str, model: &ModelRef) -> AssistantMessage {
        AssistantMessage {
            id: self.ids.message(at),
            parent_id: self.user.id.clone(),
            session_id: self.begin.session_id.clone(),
            mode: agent.to_string(),
            agent: agent.to_string(),
            variant: self.begin.model.variant.clone(),
            path: self.begin.path.clone(),
            model_id: model.model_id.clone(),
            provider_id: model.provider_id.clone(),
            provenance: self.begin.provenance.prompted_by_plugins(),
            time: MessageTime {
                created: at,
                completed: None,
            },
            ..AssistantMessage::default()
        }
    }

    fn clear_step(&mut self) {
        self.parts.clear();
        self.blocks.clear();
        self.writing.clear();
        self.finished = None;
        self.calls_in_step = 0;
        self.files.next_step();
    }

    fn prepare(&mut self, out: &mut Vec<Effect>) {
        let effect = self.open(OpenEffect::Tools);
        out.push(Effect::PrepareTools {
            effect,
            step: self.step,
        });
    }

    /// Returns whether no new effect may start.
    fn stopping(&self) -> bool {
        self.cancelled || self.failed.is_some()
    }

    fn message_id(&self) -> MessageId {
        self.message
            .as_ref()
            .map(|m| m.id.clone())
            .unwrap_or_default()
    }

    fn publish_message(&self, out: &mut Vec<Effect>) {
        if let Some(message) = &self.message {
            out.push(Effect::Publish {
                event: Event::MessageUpdated {
                    session_id: self.begin.session_id.clone(),
                    info: Box::new(MessageInfo::Assistant(message.clone())),
                },
            });
        }
    }

    fn publish_user(&self) -> Effect {
        Effect::Publish {
            event: Event::MessageUpdated {
                session_id: self.begin.session_id.clone(),
                info: Box::new(MessageInfo::User(self.user.clone())),
            },
        }
    }

    fn status(&self, status: SessionStatus) -> Effect {
        Effect::Publish {
            event: Event::SessionStatus {
                session_id: self.begin.session_id.clone(),
                status,
            },
        }
    }
}
