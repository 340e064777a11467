//! The end of a step and of a turn.

use super::effect::Effect;
use crate::hooks::points::execute::after_step::{self, StepResult};
use crate::hooks::{HookInput, HookPoint};
use alloc::string::String;
use alloc::vec::Vec;
use outrigger_protocol::Millis;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::PartId;
use outrigger_protocol::message::{
    AssistantMessage, CacheTokens, ModelRef, NamedError, Part, PartKind, StepFinishPart, Tokens,
    ToolState,
};
use outrigger_protocol::model::{Prices, Usage};
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::turn::{SessionPatch, TurnOutcome};
use serde_json::Value;

use super::Turn;

/// What a step cost.
struct StepBill {
    /// Why the model stopped.
    reason: String,
    /// Price of this step.
    cost: f64,
    tokens: Tokens,
}

impl Turn {
    /// Ends the step: its final events, then the next step or the end of the turn.
    pub(super) fn settle(&mut self, at: Millis, out: &mut Vec<Effect>) {
        self.close_leftovers(at, out);
        if self.ask_after_step(out) {
            return;
        }
        if self.step > 1 {
            self.files.unpublished = false;
            out.push(self.publish_user());
        }
        let Some(bill) = self.bill_step() else {
            return;
        };
        let used = bill.tokens.total.unwrap_or(0);
        let finish = StepFinishPart {
            reason: bill.reason.clone(),
            snapshot: self.files.after.clone(),
            tokens: bill.tokens,
            cost: bill.cost,
        };
        let part = self.new_part(at, PartKind::StepFinish(finish));
        out.push(self.keep_part(at, part));
        if let Some(message) = &mut self.message {
            message.finish = Some(bill.reason);
        }
        self.publish_message(out);
        self.publish_patch(at, out);
        if let Some(message) = &mut self.message {
            message.time.completed = Some(at);
        }
        let answered = self.take_answer();
        self.publish_message(out);
        if answered {
            self.end_answered(at, used, out);
            return;
        }
        if self.compacting.is_some() {
            self.settle_summary(at, out);
            return;
        }
        if self.refused {
            self.end(at, out);
            return;
        }
        // Before an automatic compaction: the latest answer is not part of what is summarised.
        if !self.has_asked_compaction() && self.go_on_with_joined(at, used, out) {
            return;
        }
        if self.compact_if_needed(at, used, out) {
            return;
        }
        out.push(self.status(SessionStatus::Busy));
        if self.calls_in_step > 0 {
            self.next_step(at, out);
        } else {
            self.stop(at, out);
        }
    }

    /// Asks the handlers that may change the step's results for the model, once; returns true if it did.
    fn ask_after_step(&mut self, out: &mut Vec<Effect>) -> bool {
        let (Some(message), true) = (&self.message, self.begin.asks_after_step) else {
            return false;
        };
        if self.asked_after_step.as_ref() == Some(&message.id) {
            return false;
        }
        let model = ModelRef {
            provider_id: message.provider_id.clone(),
            model_id: message.model_id.clone(),
            variant: message.variant.clone(),
        };
        let input = after_step::Input {
            session_id: &self.begin.session_id,
            agent: &message.agent,
            model: &model,
            message_id: &message.id,
            finish: self.finished.as_ref().map(|(reason, _)| reason.as_str()),
        };
        let results = self
            .parts
            .values()
            .filter_map(|part| result(part))
            .collect();
        let payload = input.payload(&after_step::Output { results });
        self.asked_after_step = Some(message.id.clone());
        self.hooks(HookPoint::ExecuteAfterStep, Some(payload), out);
        true
    }

    /// Applies the step's results as handlers left them.
    pub(super) fn take_results(&mut self, at: Millis, left: &Value, out: &mut Vec<Effect>) {
        let ids: Vec<PartId> = self.parts.keys().cloned().collect();
        for id in ids {
            let Some(mut part) = self.part(&id) else {
                continue;
            };
            if let PartKind::Tool(call) = &mut part.kind
                && let ToolState::Completed { title, output, .. } = &mut call.state
            {
                after_step::read(left, &call.call_id, title, output);
            }
            if self.parts.get(&id).map(|it| &**it) != Some(&part) {
                out.push(self.keep_part(at, part));
            }
        }
    }

    /// Ends the turn if there is nothing left to do, unless a handler wants it to continue.
    pub(super) fn stop(&mut self, at: Millis, out: &mut Vec<Effect>) {
        if self.begin.asks_before_stop {
            self.hooks(HookPoint::AgentEndBeforeStop, None, out);
        } else {
            self.end(at, out);
        }
    }

    /// Continues after handlers were asked whether the turn may end; their message has joined it.
    pub(super) fn after_before_stop(&mut self, at: Millis, out: &mut Vec<Effect>) {
        // The usage was checked before they were asked.
        if !self.go_on_with_joined(at, 0, out) {
            self.end(at, out);
        }
    }

    /// Ends the turn when the prompt has its answer or cannot get one: only joined prompts are left.
    fn end_answered(&mut self, at: Millis, used: u64, out: &mut Vec<Effect>) {
        let is_given = self.answer.missing.is_none() && !self.refused;
        if is_given && !self.has_asked_compaction() && self.go_on_with_joined(at, used, out) {
            return;
        }
        if is_given && self.compact_if_needed(at, 0, out) {
            return;
        }
        self.end(at, out);
    }

    /// Publishes the file changes of the step.
    fn publish_patch(&mut self, at: Millis, out: &mut Vec<Effect>) {
        if let Some(kind) = self.files.patch() {
            let part = self.new_part(at, kind);
            out.push(self.keep_part(at, part));
        }
    }

    /// Bills what the model reported for this step to the message, and to the session with its next patch, since OpenCode
    /// has no separate event for it. Returns `None` if the model reported nothing, or this was done.
    fn bill_step(&mut self) -> Option<StepBill> {
        let (reason, usage) = self.finished.take()?;
        let (cost, tokens) = (price(&usage, &self.step_prices()), tokens(&usage));
        self.unbilled = Some((usage, cost));
        if let Some(message) = &mut self.message {
            message.cost += cost;
            message.tokens = tokens.clone();
        }
        Some(StepBill {
            reason,
            cost,
            tokens,
        })
    }

    /// Returns the patch with which a step begins and a turn ends.
    pub(super) fn patch_session(&mut self, summarize: bool) -> Effect {
        let (usage, cost) = match self.unbilled.take() {
            Some((usage, cost)) => (Some(usage), cost),
            None => (None, 0.0),
        };
        Effect::PatchSession {
            patch: SessionPatch {
                usage,
                cost,
                summarize,
                ..SessionPatch::default()
            },
        }
    }

    pub(super) fn end(&mut self, at: Millis, out: &mut Vec<Effect>) {
        self.done = true;
        let outcome = if self.cancelled {
            self.close_failed(
                at,
                NamedError::new("MessageAbortedError", "The turn was cancelled."),
                out,
            );
            TurnOutcome::Cancelled
        } else if let Some(error) = self.failed.clone() {
            self.close_failed(at, error.clone(), out);
            TurnOutcome::Failed { error }
        } else if let Some(error) = self.answer.missing.take() {
            // The message has it already; OpenCode has no separate event for it.
            TurnOutcome::Failed { error }
        } else {
            TurnOutcome::Done {
                message_id: self.message.as_ref().map(|m| m.id.clone()),
            }
        };
        if core::mem::take(&mut self.files.unpublished) {
            out.push(self.publish_user());
        }
        let session_id = self.begin.session_id.clone();
        out.push(self.status(SessionStatus::Idle));
        out.push(Effect::Publish {
            event: Event::SessionIdle {
                session_id: session_id.clone(),
            },
        });
        // A command whose message was never created was not executed.
        let commands = core::mem::take(&mut self.commands);
        let last = self.begin.command.clone();
        for command in commands.into_iter().chain(last).filter(|_| self.step > 0) {
            out.push(Effect::Publish {
                event: Event::CommandExecuted {
                    name: command.name,
                    session_id: session_id.clone(),
                    arguments: command.arguments,
                    message_id: self
                        .message
                        .as_ref()
                        .map_or_else(|| self.user.id.clone(), |m| m.id.clone()),
                },
            });
        }
        // A request that failed before any tool call has changed nothing in the session (as in OpenCode).
        if !self.stopping() || self.calls_in_step > 0 || self.unbilled.is_some() {
            let patch = self.patch_session(true);
            out.push(patch);
        }
        out.push(Effect::Finish { outcome });
    }

    /// Closes a failed step. The order is OpenCode's: the error is published before the message that it ended.
    fn close_failed(&mut self, at: Millis, error: NamedError, out: &mut Vec<Effect>) {
        let session_id = self.begin.session_id.clone();
        out.push(Effect::Publish {
            event: Event::SessionError {
                session_id: Some(session_id),
                error: error.clone(),
            },
        });
        self.close_leftovers(at, out);
        // A settled step has published its files already: its message is complete.
        let is_open = |message: &AssistantMessage| message.time.completed.is_none();
        if self.message.as_ref().is_some_and(is_open) {
            self.publish_patch(at, out);
        }
        // The model's answer was complete, only its tools were not: its tokens are billed.
        self.bill_step();
        if let Some(message) = &mut self.message {
            // The step limit applies between two steps: the last message is complete and stays unchanged.
            if message.time.completed.is_none() {
                message.error = Some(error);
                message.time.completed = Some(at);
                self.publish_message(out);
            }
        }
    }
}

/// Returns the result of a call, if there is one.
fn result(part: &Part) -> Option<StepResult> {
    let PartKind::Tool(call) = &part.kind else {
        return None;
    };
    let ToolState::Completed { title, output, .. } = &call.state else {
        return None;
    };
    Some(StepResult {
        call_id: call.call_id.clone(),
        tool: call.tool.clone(),
        title: title.clone(),
        output: output.clone(),
    })
}

/// Upper bound for the tokens of a request, whatever a provider reports.
const MAX_TOKENS: u64 = 1_000_000_000;

/// Returns tokens as in messages: cache hits and reasoning are counted separately from input and output.
fn tokens(said: &Usage) -> Tokens {
    let most = |tokens: u64| tokens.min(MAX_TOKENS);
    let usage = &Usage {
        input: most(said.input),
        output: most(said.output),
        reasoning: most(said.reasoning),
        cache_read: most(said.cache_read),
        cache_write: most(said.cache_write),
    };
    Tokens {
        total: Some(usage.input + usage.output),
        input: usage
            .input
            .saturating_sub(usage.cache_read)
            .saturating_sub(usage.cache_write),
        output: usage.output.saturating_sub(usage.reasoning),
        reasoning: usage.reasoning,
        cache: CacheTokens {
            read: usage.cache_read,
            write: usage.cache_write,
        },
    }
}

/// Returns the price of a request in US dollars; reasoning is priced as output.
#[expect(
    clippy::cast_precision_loss,
    reason = "token counts stay far below 2^52"
)]
fn price(usage: &Usage, prices: &Prices) -> f64 {
    let t = tokens(usage);
    (t.input as f64 * prices.input
        + (t.output + t.reasoning) as f64 * prices.output
        + t.cache.read as f64 * prices.cache_read
        + t.cache.write as f64 * prices.cache_write)
        / 1_000_000.0
}
