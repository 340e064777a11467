//! Inputs: the changes of each, and what follows when no effect is open.

use alloc::vec::Vec;

use outrigger_protocol::Millis;
use outrigger_protocol::compaction::CompactRequest;
use outrigger_protocol::hook::Block;
use outrigger_protocol::id::{CallId, PluginId};
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::turn::{EffectId, Input, KnownTool, SessionPatch};
use serde_json::{Value, json};

use super::effect::Effect;
use super::files::TrackedFiles;
use super::prompt::first_subtask;
use super::{OpenEffect, Turn};
use crate::hooks::HookPoint;
use crate::hooks::points::llm::after_text;
use crate::hooks::points::run::before_command;

/// The result of a hook chain.
#[derive(Default)]
pub(super) struct Folded {
    pub(super) output: Option<Value>,
    /// The plugins that changed it, at the points where a prompt is built.
    pub(super) changed_by: Vec<PluginId>,
}

impl Turn {
    pub(super) fn take(&mut self, at: Millis, input: Input, out: &mut Vec<Effect>) {
        self.note(at, input, out);
        if self.done || !self.open.is_empty() {
            return;
        }
        let step_is_over = self.stopping() || self.finished.is_some();
        if step_is_over && self.after_files(out) {
            return;
        }
        if self.stopping() {
            self.end(at, out);
        } else if let Some(command) = self.subtask.take() {
            self.settle_subtask(at, command, out);
        } else if self.finished.is_some() {
            self.settle(at, out);
        } else if let Some(error) = self.overflowed.take() {
            self.settle_overflow(at, error, out);
        }
    }

    /// Applies the direct changes of an input.
    fn note(&mut self, at: Millis, input: Input, out: &mut Vec<Effect>) {
        match input {
            Input::Begin(_) => {}
            Input::Cancel => self.cancel(out),
            Input::Resumed => self.resume(at, out),
            Input::EndAfterStep => self.refused = true,
            Input::CallsUsed { ids } => self.used_calls.extend(ids.into_iter().map(CallId)),
            Input::Joined { begin } => self.join(*begin),
            Input::Left { message_id } => self.leave(&message_id),
            Input::HookDone {
                effect,
                output,
                block,
                changed_by,
            } => {
                let folded = Folded { output, changed_by };
                self.hook_done(at, effect, folded, block, out);
            }
            Input::ToolsReady { effect, tools } => self.tools_ready(effect, tools, out),
            Input::Model { effect, signal } => self.model(at, effect, signal, out),
            Input::Compact {
                auto,
                model,
                instructions,
            } => {
                let asked = CompactRequest { auto, instructions };
                self.compaction_asked(at, asked, model, out);
            }
            Input::CompactionPlanned { effect, plan } => self.compaction_planned(effect, plan, out),
            Input::CompactionRefused { effect, error } => self.compaction_refused(effect, error),
            Input::ToolStarted {
                effect,
                input,
                provenance,
            } => self.tool_started(at, effect, input, provenance, out),
            Input::ToolProgress {
                effect,
                title,
                metadata,
            } => self.tool_progress(at, effect, title, metadata, out),
            Input::ToolDone { effect, outcome } => self.tool_done(at, effect, outcome, out),
            Input::FilesTracked {
                effect,
                tree,
                changed,
                diffs,
            } => {
                let tracked = TrackedFiles {
                    tree,
                    changed,
                    diffs,
                };
                self.files_tracked(at, effect, tracked, out);
            }
            Input::LoopAnswered { effect, refusal } => {
                self.loop_answered(at, effect, refusal, out);
            }
        }
    }

    fn cancel(&mut self, out: &mut Vec<Effect>) {
        if !self.cancelled {
            self.cancelled = true;
            if !self.open.is_empty() {
                out.push(Effect::Abort);
            }
        }
    }

    fn tools_ready(&mut self, effect: EffectId, tools: Vec<KnownTool>, out: &mut Vec<Effect>) {
        if self.open.get(&effect) == Some(&OpenEffect::Tools) {
            self.open.remove(&effect);
            self.tools = tools;
            if !self.stopping() {
                self.hooks(HookPoint::LlmBeforeMessages, None, out);
            }
        }
    }

    pub(super) fn hook_done(
        &mut self,
        at: Millis,
        effect: EffectId,
        folded: Folded,
        block: Option<Block>,
        out: &mut Vec<Effect>,
    ) {
        match self.open.get(&effect) {
            Some(OpenEffect::Hooks(point)) => {
                let point = *point;
                self.open.remove(&effect);
                if let Some(block) = block {
                    let error = block.into_error(point.name());
                    match point {
                        HookPoint::CompactionBeforeStart if !self.stopping() => {
                            self.compaction_blocked(at, error, out);
                        }
                        // Final: a refused request is not repeated (C2).
                        _ => self.failed = Some(error),
                    }
                } else if !self.stopping() || point == HookPoint::RunBeforeStart {
                    // What the user typed is kept, even if the turn is cancelled before it starts.
                    self.after_hooks(at, point, folded, out);
                }
            }
            Some(OpenEffect::Text(part)) => {
                let part = part.clone();
                self.open.remove(&effect);
                if let Some(block) = block {
                    // Only a security-critical handler that failed can refuse here (C5): the text was not checked, so it
                    // is not stored.
                    self.failed
                        .get_or_insert_with(|| block.into_error(HookPoint::LlmAfterText.name()));
                    if !self.open.is_empty() {
                        out.push(Effect::Abort);
                    }
                    self.finish_text(at, &part, Some(""), out);
                    return;
                }
                let text = folded.output.as_ref().and_then(after_text::read);
                self.finish_text(at, &part, text, out);
            }
            _ => {}
        }
    }

    fn after_hooks(&mut self, at: Millis, point: HookPoint, folded: Folded, out: &mut Vec<Effect>) {
        let Folded { output, changed_by } = folded;
        match point {
            HookPoint::RunBeforeCommand => {
                let drafts = output
                    .as_ref()
                    .and_then(before_command::read)
                    .unwrap_or_else(|| self.begin.parts.clone());
                let before = first_subtask(self.begin.parts.iter().map(|part| &part.kind));
                let after = first_subtask(drafts.iter().map(|part| &part.kind));
                self.subtask_caused_by(before != after, &changed_by);
                self.offer_user_message(drafts, out);
            }
            HookPoint::RunBeforeStart => self.store_user_message(at, output, &changed_by, out),
            HookPoint::CompactionBeforeStart => {
                self.take_compaction_hooks(output.as_ref());
                self.hooks(HookPoint::LlmBeforeMessages, None, out);
            }
            HookPoint::ExecuteAfterStep => {
                if let Some(left) = &output {
                    self.take_results(at, left, out);
                }
            }
            HookPoint::AgentEndBeforeStop => self.after_before_stop(at, out),
            HookPoint::CompactionAfterFinish => self.after_compaction(at, output.as_ref(), out),
            HookPoint::LlmBeforeMessages => {
                if self.compacting.is_some() {
                    self.open_summary(at, out);
                } else if self.step == 1 {
                    out.push(Effect::PatchSession {
                        patch: SessionPatch {
                            summarize: true,
                            ..SessionPatch::default()
                        },
                    });
                    self.user.summary = Some(json!({ "diffs": [] }));
                    out.push(self.publish_user());
                }
                out.push(self.status(SessionStatus::Busy));
                self.hooks(HookPoint::LlmBeforeSystem, None, out);
            }
            HookPoint::LlmBeforeSystem => self.hooks(HookPoint::LlmBeforeParams, None, out),
            HookPoint::LlmBeforeParams => self.hooks(HookPoint::LlmBeforeHeaders, None, out),
            HookPoint::LlmBeforeHeaders => {
                let effect = self.open(OpenEffect::Model);
                let message_id = self.message_id();
                out.push(Effect::CallModel {
                    effect,
                    step: self.step,
                    message_id,
                });
            }
            _ => {}
        }
    }
}
