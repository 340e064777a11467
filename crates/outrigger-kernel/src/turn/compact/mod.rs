//! Compaction: a model writes a summary that replaces the earlier history.
//!
//! A compaction is a separate kind of step: a user message with a `compaction` part, and an assistant message with the summary.
//! It starts when a client requests it, when the last step filled the model's context, or when the model refused a request as
//! too long. The order of messages, hooks and events is OpenCode's.

mod summary;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::hooks::points::compaction::before_start;
use crate::hooks::{HookInput, HookPoint};
use outrigger_protocol::compaction::{CompactRequest, CompactionPlan};
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{
    AssistantMessage, MessageTime, ModelRef, NamedError, Part, PartKind, UserMessage,
};
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::turn::{EffectId, SessionPatch};
use outrigger_protocol::{Millis, Object};
use serde_json::Value;

use super::effect::Effect;
use super::{OpenEffect, Turn};

/// Name of the agent that writes summaries, and the mode of its messages.
pub const AGENT: &str = "compaction";
/// Name of the error with which a model refuses a request as too long (as in OpenCode).
pub const OVERFLOW: &str = "ContextOverflowError";

/// Prefix of the user's instructions for the summary.
const INSTRUCTIONS: &str = "The user says of this summary: ";

/// A compaction in progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    auto: bool,
    overflow: Option<bool>,
    part: Part,
    /// The user's instructions for the summary.
    instructions: Option<String>,
    plan: Option<Box<CompactionPlan>>,
    /// The chain of `compaction.before_start` has run: it never runs twice.
    hooked: bool,
    context: Vec<String>,
    prompt: Option<String>,
    /// State of the turn to return to if a hook refuses.
    before: Box<Before>,
}

/// State of a turn when a compaction started.
#[derive(Clone, Debug, PartialEq)]
struct Before {
    user: UserMessage,
    message: Option<AssistantMessage>,
    /// A request was about to follow: the first one, or one with tool results.
    goes_on: bool,
}

impl Compaction {
    /// Returns whether the session continues automatically afterwards.
    #[must_use]
    pub fn is_auto(&self) -> bool {
        self.auto
    }
    /// Returns whether the history did not fit into a request.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        self.overflow == Some(true)
    }
    /// Returns the model that writes the summary, once known.
    #[must_use]
    pub fn model(&self) -> Option<&ModelRef> {
        self.plan.as_ref().map(|plan| &plan.model)
    }
    /// Returns the texts that hooks add to the prompt.
    #[must_use]
    pub fn context(&self) -> &[String] {
        &self.context
    }
    /// Returns a hook's replacement for the prompt.
    #[must_use]
    pub fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }
}

impl Turn {
    /// Returns the compaction in progress.
    #[must_use]
    pub fn compaction(&self) -> Option<&Compaction> {
        self.compacting.as_ref()
    }

    /// Returns whether a requested compaction follows this step.
    #[must_use]
    pub fn has_asked_compaction(&self) -> bool {
        self.asked.is_some()
    }

    /// Starts a turn that is a requested compaction.
    pub(in crate::turn) fn start_compaction(
        &mut self,
        asked: CompactRequest,
        out: &mut Vec<Effect>,
    ) {
        let at = self.user.time.created;
        let part = self.compaction_part(at, asked.auto, None, out);
        out.push(Effect::PatchSession {
            patch: SessionPatch::default(),
        });
        out.push(self.status(SessionStatus::Busy));
        let before = self.user.clone();
        self.begin_compaction(asked, None, part, before, out);
    }

    /// Handles a request for a compaction while the turn runs: its message is stored at once, its step follows this one.
    pub(in crate::turn) fn compaction_asked(
        &mut self,
        at: Millis,
        request: CompactRequest,
        model: Option<ModelRef>,
        out: &mut Vec<Effect>,
    ) {
        if self.stopping() {
            return;
        }
        let before = self.user.clone();
        self.user = self.next_user(at);
        if let Some(model) = model {
            self.user.model = model;
        }
        let part = self.compaction_part(at, request.auto, None, out);
        let asked = core::mem::replace(&mut self.user, before);
        self.asked = Some((asked, part, request));
    }

    /// Starts a compaction if one was requested or the history is full; returns false if none is needed.
    pub(in crate::turn) fn compact_if_needed(
        &mut self,
        at: Millis,
        used: u64,
        out: &mut Vec<Effect>,
    ) -> bool {
        if self.is_full(used) && self.may_compact() {
            self.asked = None;
            let overflow = self.message.as_ref().map(|_| false);
            self.compact_by_itself(at, overflow, out);
            return true;
        }
        match self.asked.take() {
            Some((user, part, request)) if self.step < self.begin.max_steps => {
                let before = core::mem::replace(&mut self.user, user);
                out.push(self.status(SessionStatus::Busy));
                self.begin_compaction(request, None, part, before, out);
                true
            }
            _ => false,
        }
    }

    /// Returns whether the used tokens leave no room for another step.
    fn is_full(&self, used: u64) -> bool {
        let limit = self.begin.auto_compact.as_ref().and_then(|auto| auto.limit);
        limit.is_some_and(|limit| used >= limit)
    }

    /// Returns whether a compaction is useful: there are steps left for it and for continuing, and this is not the first step
    /// after one. A context that is full again at once contains something that no summary makes smaller.
    fn may_compact(&self) -> bool {
        self.begin.auto_compact.is_some()
            && self.step + 2 <= self.begin.max_steps
            && self.compacted.is_none_or(|step| self.step > step + 1)
    }

    /// Returns whether a compaction may help after the model refused this step's request as too long.
    pub(in crate::turn) fn may_compact_after(&self, error: &NamedError) -> bool {
        error.name == OVERFLOW
            && self.compacting.is_none()
            && self.calls_in_step == 0
            && !self.stopping()
            && self.may_compact()
    }

    /// Ends the refused step without an answer; the summary replaces it.
    pub(in crate::turn) fn settle_overflow(
        &mut self,
        at: Millis,
        error: NamedError,
        out: &mut Vec<Effect>,
    ) {
        out.push(Effect::Publish {
            event: Event::SessionError {
                session_id: Some(self.begin.session_id.clone()),
                error,
            },
        });
        self.close_leftovers(at, out);
        if let Some(message) = &mut self.message {
            message.time.completed = Some(at);
        }
        self.publish_message(out);
        self.asked = None;
        self.compact_by_itself(at, Some(true), out);
    }

    fn compact_by_itself(&mut self, at: Millis, overflow: Option<bool>, out: &mut Vec<Effect>) {
        let user = self.next_user(at);
        let before = core::mem::replace(&mut self.user, user);
        let part = self.compaction_part(at, true, overflow, out);
        out.push(self.status(SessionStatus::Busy));
        let request = CompactRequest {
            auto: true,
            instructions: None,
        };
        self.begin_compaction(request, overflow, part, before, out);
    }

    /// Creates a user message for the same agent and model as the last one.
    fn next_user(&mut self, at: Millis) -> UserMessage {
        UserMessage {
            id: self.ids.message(at),
            session_id: self.begin.session_id.clone(),
            time: MessageTime {
                created: at,
                completed: None,
            },
            agent: self.user.agent.clone(),
            model: self.user.model.clone(),
            // The same structured answer is wanted after a summary (OpenCode forgets it).
            format: self.user.format.clone(),
            provenance: self.begin.provenance.clone(),
            ..UserMessage::default()
        }
    }

    /// Stores the message that stands for a compaction, with its part.
    fn compaction_part(
        &mut self,
        at: Millis,
        auto: bool,
        overflow: Option<bool>,
        out: &mut Vec<Effect>,
    ) -> Part {
        let mut body = Object::new();
        body.insert("auto".to_string(), Value::Bool(auto));
        if let Some(overflow) = overflow {
            body.insert("overflow".to_string(), Value::Bool(overflow));
        }
        let part = self.user_part(at, PartKind::Compaction(body));
        out.push(self.publish_user());
        out.push(self.publish_part(at, part.clone()));
        part
    }

    fn user_part(&mut self, at: Millis, kind: PartKind) -> Part {
        Part {
            id: self.ids.part(at),
            session_id: self.begin.session_id.clone(),
            message_id: self.user.id.clone(),
            kind,
        }
    }

    fn begin_compaction(
        &mut self,
        request: CompactRequest,
        overflow: Option<bool>,
        part: Part,
        before: UserMessage,
        out: &mut Vec<Effect>,
    ) {
        let before = Before {
            user: before,
            goes_on: self.message.is_none() || self.calls_in_step > 0,
            message: self.message.take(),
        };
        self.step += 1;
        self.clear_step();
        self.compacting = Some(Compaction {
            auto: request.auto,
            overflow,
            part,
            instructions: request.instructions,
            plan: None,
            hooked: false,
            context: Vec::new(),
            prompt: None,
            before: Box::new(before),
        });
        self.prepare_compaction(out);
    }

    pub(in crate::turn) fn prepare_compaction(&mut self, out: &mut Vec<Effect>) {
        let overflow = self
            .compacting
            .as_ref()
            .is_some_and(Compaction::is_overflow);
        let effect = self.open(OpenEffect::Plan);
        out.push(Effect::PrepareCompaction {
            effect,
            message_id: self.user.id.clone(),
            overflow,
        });
    }

    pub(in crate::turn) fn compaction_planned(
        &mut self,
        effect: EffectId,
        plan: Box<CompactionPlan>,
        out: &mut Vec<Effect>,
    ) {
        if self.open.get(&effect) != Some(&OpenEffect::Plan) {
            return;
        }
        self.open.remove(&effect);
        let Some(compacting) = &mut self.compacting else {
            return;
        };
        compacting.plan = Some(plan);
        let hooked = compacting.hooked;
        let instructions = compacting.instructions.clone();
        if self.stopping() {
            return;
        }
        if hooked {
            self.hooks(HookPoint::LlmBeforeMessages, None, out);
        } else {
            // The user's instructions go where hooks add theirs.
            let context = instructions
                .iter()
                .map(|text| [INSTRUCTIONS, text.as_str()].concat());
            let output = before_start::Output {
                context: context.collect(),
            };
            let input = before_start::Input {
                session_id: &self.begin.session_id,
                instructions: instructions.as_deref(),
            };
            let payload = input.payload(&output);
            self.hooks(HookPoint::CompactionBeforeStart, Some(payload), out);
        }
    }

    pub(in crate::turn) fn compaction_refused(&mut self, effect: EffectId, error: NamedError) {
        if self.open.get(&effect) == Some(&OpenEffect::Plan) {
            self.open.remove(&effect);
            if !self.stopping() {
                self.failed = Some(error);
            }
        }
    }

    /// Handles a refusal by a hook: the history stays unchanged, without the compaction's message. An automatic compaction is
    /// postponed and the turn continues; a requested one, or one without which no request fits, fails with the hook's message.
    pub(in crate::turn) fn compaction_blocked(
        &mut self,
        at: Millis,
        error: NamedError,
        out: &mut Vec<Effect>,
    ) {
        let Some(compacting) = self.compacting.take() else {
            return;
        };
        let before = *compacting.before;
        let gone = core::mem::replace(&mut self.user, before.user);
        out.push(Effect::Publish {
            event: Event::MessageRemoved {
                session_id: self.begin.session_id.clone(),
                message_id: gone.id,
            },
        });
        self.step -= 1;
        self.message = before.message;
        if !compacting.auto || compacting.overflow == Some(true) {
            self.failed = Some(error);
            return;
        }
        // Do not ask again at the next step.
        self.compacted = Some(self.step);
        out.push(self.status(SessionStatus::Busy));
        match before.goes_on {
            _ if self.refused => self.end(at, out),
            true => self.next_step(at, out),
            false => self.stop(at, out),
        }
    }

    /// Takes the hooks' additions to the prompt. Values that are not text are ignored.
    pub(in crate::turn) fn take_compaction_hooks(&mut self, output: Option<&Value>) {
        let Some(compacting) = &mut self.compacting else {
            return;
        };
        compacting.hooked = true;
        let Some(left) = output.map(before_start::read) else {
            return;
        };
        if let Some(context) = left.context {
            compacting.context = context;
        }
        compacting.prompt = left.prompt;
    }
}
