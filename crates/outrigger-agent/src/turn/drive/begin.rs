//! Starts the effects: each runs in a separate task and reports back with a message.

use std::sync::Arc;

use outrigger_kernel::hooks::points::{llm::before_request::Step, tool::on_error};
use outrigger_kernel::hooks::{Context, HookPoint};
use outrigger_kernel::turn::Effect;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::id::MessageId;
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::{NamedError, UserMessage};
use outrigger_protocol::provenance::{Deed, Provenance};
use outrigger_protocol::session::OutputFormat;
use outrigger_protocol::tool::{ToolCall, ToolOutcome};
use outrigger_protocol::turn::{EffectId, HookPayload, Input, ModelSignal};
use serde_json::Value;

use super::Driver;
use crate::compaction;
use crate::error::AgentError;
use crate::tools::host::{CallHost, CallTurn, MadeBy};
use crate::turn::draft::is_last_step;
use crate::turn::effects::model_task::ModelTask;
use crate::turn::effects::spawn::spawn_effect;
use crate::turn::effects::structured;
use outrigger_session_state::notifications::About;
use outrigger_session_state::turn_channel::Msg;

impl Driver {
    pub(super) fn begin(&mut self, effect: Effect) {
        match effect {
            Effect::Publish { .. } | Effect::PatchSession { .. } => {}
            Effect::Hooks {
                effect,
                point,
                payload,
            } => self.begin_hooks(effect, point, payload),
            Effect::PrepareTools { effect, .. } => self.begin_tools(effect),
            Effect::PrepareCompaction {
                effect,
                message_id,
                overflow,
            } => self.begin_compaction(effect, message_id, overflow),
            Effect::CallModel { effect, .. } => self.begin_model(effect),
            Effect::RunTool { effect, call } => self.begin_tool(effect, call),
            Effect::TrackFiles {
                effect,
                since,
                first,
            } => self.begin_files(effect, since, first),
            Effect::AskLoop { effect, call } => self.begin_loop_question(effect, &call),
            Effect::MakeTitle { message_id } => self.begin_title(message_id),
            Effect::Abort => {
                let _ = self.abort.0.send(true);
            }
            Effect::Finish { outcome } => self.outcome = Some(outcome),
        }
    }

    // ---- hooks ----

    fn begin_hooks(&mut self, effect: EffectId, point: HookPoint, payload: Option<HookPayload>) {
        let payload = match payload {
            Some(payload) => payload,
            None => match self.payload(point) {
                Ok(payload) => payload,
                Err(error) => {
                    let block = outrigger_protocol::hook::Block {
                        code: error.code().into(),
                        message: error.to_string(),
                        details: Value::Null,
                        plugin: None,
                    };
                    let _ = self.sender.send(Msg::Input(Input::HookDone {
                        effect,
                        output: None,
                        block: Some(block),
                        changed_by: Vec::new(),
                    }));
                    return;
                }
            },
        };
        let (state, sender) = (Arc::clone(&self.state), self.sender.clone());
        let (session, turn_id, cancel) = (
            self.session_id.clone(),
            self.turn_id.clone(),
            self.abort.1.clone(),
        );
        let lost = Msg::Input(Input::HookDone {
            effect,
            output: None,
            block: None,
            changed_by: Vec::new(),
        });
        spawn_effect(sender, lost, async move {
            let result = state
                .run_hooks(
                    point,
                    vec![payload],
                    Some(&session),
                    Some(&turn_id),
                    Some(cancel),
                )
                .await;
            Msg::Hooked {
                effect,
                point,
                result,
            }
        });
    }

    /// Returns the payload of a point whose contents the agent holds.
    fn payload(&mut self, point: HookPoint) -> Result<HookPayload, AgentError> {
        match &self.turn {
            Some(turn) if point == crate::turn::queue::continuation::POINT => Ok(self
                .continuation
                .payload(&self.state, turn, &self.session_id)),
            Some(turn) => {
                let mut payload = self
                    .draft
                    .payload(&self.state, &self.session_id, turn, point)?;
                if let Some(history) = &mut payload.history {
                    history.renew(&self.shown);
                    self.shown = history.clone();
                }
                Ok(payload)
            }
            None => Ok(HookPayload::default()),
        }
    }

    // ---- tools on offer ----

    fn begin_tools(&mut self, effect: EffectId) {
        let Some(turn) = &self.turn else { return };
        let (state, sender) = (Arc::clone(&self.state), self.sender.clone());
        let (session, turn_id, cancel) = (
            self.session_id.clone(),
            self.turn_id.clone(),
            self.abort.1.clone(),
        );
        let (agent, switches) = (turn.begin().agent.clone(), turn.user().tools.clone());
        let model = turn.begin().model.clone();
        let answer = structured::wanted(turn);
        if is_last_step(turn) {
            let (mut offers, mut known) = (Vec::new(), Vec::new());
            if let Some(schema) = answer {
                structured::add(schema, &mut offers, &mut known);
            }
            let _ = sender.send(Msg::Tools {
                effect,
                offers,
                known,
            });
            return;
        }
        let lost = Msg::Tools {
            effect,
            offers: Vec::new(),
            known: Vec::new(),
        };
        spawn_effect(sender, lost, async move {
            let (mut offers, mut known) = state
                .offer_tools(
                    &agent,
                    &model,
                    switches.as_ref(),
                    &session,
                    &turn_id,
                    cancel,
                )
                .await;
            if let Some(schema) = answer {
                structured::add(schema, &mut offers, &mut known);
            }
            Msg::Tools {
                effect,
                offers,
                known,
            }
        });
    }

    // ---- compaction ----

    fn begin_compaction(&mut self, effect: EffectId, message_id: MessageId, overflow: bool) {
        let (state, session) = (Arc::clone(&self.state), self.session_id.clone());
        spawn_effect(
            self.sender.clone(),
            compaction::run::lost(effect),
            async move { compaction::run::prepare(&state, &session, effect, &message_id, overflow) },
        );
    }

    // ---- the model ----

    fn begin_model(&mut self, effect: EffectId) {
        let Some(turn) = &self.turn else { return };
        let (agent, model, request) = std::mem::take(&mut self.draft).finish(turn);
        let task = ModelTask {
            state: Arc::clone(&self.state),
            sender: self.sender.clone(),
            effect,
            session_id: self.session_id.clone(),
            turn: self.turn_id.clone(),
            step: Step {
                session_id: self.session_id.clone(),
                agent,
                model: model.clone(),
                step: turn.current_step(),
                message_id: turn.message().map(|message| message.id.clone()),
            },
            cancel: self.abort.1.clone(),
        };
        outrigger_store::fault::point("model.before_call");
        let error = NamedError::new(
            "UnknownError",
            "the model request ended in a panic; this is a defect of Outrigger",
        );
        let lost = Msg::Input(Input::Model {
            effect,
            signal: ModelSignal::Failed { error },
        });
        spawn_effect(self.sender.clone(), lost, async move {
            let signal = task.run(model, request).await;
            Msg::Input(Input::Model { effect, signal })
        });
    }

    // ---- tools ----

    fn begin_tool(&mut self, effect: EffectId, call: ToolCall) {
        let Some(turn) = &self.turn else { return };
        if call.tool == OutputFormat::TOOL
            && let Some(schema) = structured::wanted(turn)
        {
            self.take_answer(effect, &schema, call.input);
            return;
        }
        let state = Arc::clone(&self.state);
        let agent = state
            .catalog
            .agents
            .get(&turn.begin().agent)
            .cloned()
            .unwrap_or_default();
        let made_by = match turn.is_subtask_call(effect) {
            false => MadeBy::Model,
            true if sent_by_plugin(turn.user()) => MadeBy::Plugin,
            true => MadeBy::User,
        };
        let mut model = turn.begin().model.clone();
        if let Some(message) = turn.message().filter(|_| made_by != MadeBy::Model) {
            model.provider_id.clone_from(&message.provider_id);
            model.model_id.clone_from(&message.model_id);
        }
        let call_turn = CallTurn {
            state: Arc::clone(&state),
            turn: self.turn_id.clone(),
            effect,
            sender: self.sender.clone(),
            cancel: self.abort.1.clone(),
            speaking: self.speaking.subscribe(),
        };
        let host = Arc::new(CallHost::new(call_turn, &call, agent, model, made_by));
        let ctx = host.context(&call);
        let (sender, turn_id) = (self.sender.clone(), self.turn_id.clone());
        let lost = Msg::Input(Input::ToolDone {
            effect,
            outcome: ToolOutcome::Failed {
                input: call.input.clone(),
                code: "tool.failed".into(),
                message: outrigger_tools::DEFECT.into(),
                metadata: None,
            },
        });
        spawn_effect(sender, lost, async move {
            outrigger_store::fault::point("tool.before_run");
            let executed = state.tools.runtime.execute(call, ctx).await;
            outrigger_store::fault::point("tool.after_run");
            let (outcome, mut record) = (executed.outcome, executed.record);
            record.audit = host.audit(&outcome);
            record.provenance = state.plugins.host.recorded_causes(&host.causes());
            record.turn = Some(turn_id);
            state.note(vec![LogRecord::Tool(Box::new(record))]);
            Msg::Input(Input::ToolDone { effect, outcome })
        });
    }

    /// Accepts the structured answer, which arrives as a tool call; no tool runs.
    fn take_answer(&self, effect: EffectId, schema: &Value, input: Value) {
        let started = Input::ToolStarted {
            effect,
            input: input.clone(),
            provenance: Provenance::default(),
        };
        let outcome = outrigger_tools::answer::take(schema, input);
        for input in [started, Input::ToolDone { effect, outcome }] {
            let _ = self.sender.send(Msg::Input(input));
        }
    }

    // ---- the project's files ----

    /// Not cancelled with the turn: changes made until then may have to be reverted.
    fn begin_files(&self, effect: EffectId, since: Option<String>, first: Option<String>) {
        let state = Arc::clone(&self.state);
        let lost = Input::FilesTracked {
            effect,
            tree: None,
            changed: Vec::new(),
            diffs: None,
        };
        spawn_effect(self.sender.clone(), Msg::Input(lost), async move {
            Msg::Input(state.track_files(effect, since, first).await)
        });
    }

    fn begin_loop_question(&self, effect: EffectId, call: &ToolCall) {
        let Some(turn) = &self.turn else { return };
        let state = Arc::clone(&self.state);
        let agent = state.catalog.agents.get(&turn.begin().agent).cloned();
        let (call, cancel) = (call.clone(), self.abort.1.clone());
        let about = (self.session_id.clone(), self.turn_id.clone());
        let answered =
            move |refusal: Option<String>| Msg::Input(Input::LoopAnswered { effect, refusal });
        let lost = answered(Some("It could not be asked about.".into()));
        spawn_effect(self.sender.clone(), lost, async move {
            let rules = agent.unwrap_or_default().permission;
            let refusal = tokio::select! {
                answer = state.ask_about_loop(&call, &rules) => answer.err(),
                () = cancel.cancelled() => Some("The turn was cancelled.".into()),
            };
            // The call does not reach the runtime, which notifies plugins of every other failure.
            if let Some(message) = &refusal {
                let input = on_error::Input {
                    tool: &call.tool,
                    session_id: &about.0,
                    call_id: &call.call_id,
                    args: &call.input,
                    code: "tool.loop",
                    message,
                    began: false,
                };
                let about = About::Turn(about.0.clone(), about.1);
                state.notify_hook(&input, &Context::default(), about);
            }
            answered(refusal)
        });
    }

    fn begin_title(&self, message_id: MessageId) {
        let state = Arc::clone(&self.state);
        let session_id = self.session_id.clone();
        let model = self
            .turn
            .as_ref()
            .map(|s| s.begin().model.clone())
            .unwrap_or_default();
        self.state
            .background
            .spawn(async move { state.make_title(session_id, message_id, model).await });
    }
}

/// Returns whether a plugin sent the message, or its hook made it start a subagent.
fn sent_by_plugin(message: &UserMessage) -> bool {
    !message.provenance.plugins_that(Deed::Prompted).is_empty()
}
