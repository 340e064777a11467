//! Points where plugins are told and not asked: nothing waits for them, and a turn does not depend on them.

use std::sync::Arc;

use outrigger_kernel::hooks::HookPoint;
use outrigger_kernel::turn::Effect;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, SessionId, TurnId};
use outrigger_protocol::message::{AssistantMessage, MessageInfo};
use outrigger_protocol::turn::{Begin, Input, ModelSignal, TurnOutcome};
use serde_json::{Value, json};

use crate::state::Inner;
use crate::state::notifications::About;

const COMPLETED: HookPoint = HookPoint::SessionAfterCompleteMessage;

/// Whom a turn's observations are about.
pub(crate) struct Observer<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    pub(crate) session_id: &'a SessionId,
    pub(crate) turn: &'a TurnId,
    pub(crate) begin: &'a Begin,
    /// The message that began the turn.
    pub(crate) user: &'a MessageId,
}

impl Observer<'_> {
    /// Tells what an input means, beside what the machine makes of it.
    pub(crate) fn input(&self, input: &Input) {
        if let Input::Model {
            signal: ModelSignal::Finished { reason, usage },
            ..
        } = input
        {
            let about = json!({
                "sessionID": self.session_id, "agent": self.begin.agent, "model": self.begin.model, "reason": reason, "usage": usage,
            });
            self.tell(HookPoint::LlmAfterResponse, about, json!({}));
        }
    }

    /// Tells what the effects of a step mean, once they are stored.
    pub(crate) fn effects(&self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Publish {
                    event: Event::MessageUpdated { info, .. },
                } => {
                    if let MessageInfo::Assistant(message) = info.as_ref()
                        && message.time.completed.is_some()
                    {
                        self.completed(message);
                    }
                }
                Effect::Publish {
                    event: Event::SessionError { error, .. },
                } => {
                    let about = json!({ "sessionID": self.session_id, "error": error });
                    self.tell(HookPoint::SessionOnError, about, json!({}));
                }
                Effect::PrepareTools { step, .. } => self.step_begins(*step),
                Effect::Finish {
                    outcome: TurnOutcome::Failed { error },
                } => {
                    self.tell(
                        HookPoint::RunOnError,
                        json!({ "sessionID": self.session_id, "error": error }),
                        json!({}),
                    );
                }
                _ => {}
            }
        }
    }

    fn step_begins(&self, step: u32) {
        let mut about = json!({ "sessionID": self.session_id, "agent": self.begin.agent, "model": self.begin.model });
        if step == 1 {
            let mut about = about.clone();
            if let Some(fields) = about.as_object_mut() {
                fields.insert("messageID".into(), json!(self.user));
            }
            self.tell(HookPoint::RunAfterStart, about, json!({}));
        }
        if let Some(fields) = about.as_object_mut() {
            fields.insert("step".into(), json!(step));
        }
        self.tell(HookPoint::ExecuteBeforeStep, about, json!({}));
    }

    /// The machine completes a message once, with every part of it in its final state (A4).
    fn completed(&self, message: &AssistantMessage) {
        let step = json!({
            "sessionID": self.session_id, "agent": message.agent, "model": self.begin.model, "messageID": message.id,
            "finish": message.finish,
        });
        if let Some(error) = &message.error {
            let mut about = step.clone();
            if let Some(fields) = about.as_object_mut() {
                fields.insert("error".into(), json!(error));
            }
            self.tell(HookPoint::ExecuteOnError, about, json!({}));
        }
        self.tell(HookPoint::ExecuteAfterStep, step, json!({}));
        if !self.inner.plugins.pipeline().has(COMPLETED) {
            return;
        }
        let Ok(Some(stored)) = self.inner.store.message(self.session_id, &message.id) else {
            return;
        };
        let mut about = json!({
            "sessionID": self.session_id, "agent": message.agent, "messageID": message.id,
            "model": { "providerID": message.provider_id, "modelID": message.model_id },
        });
        if let (Some(variant), Some(fields)) = (&message.variant, about.as_object_mut()) {
            fields.insert("variant".into(), json!(variant));
        }
        let output = json!({ "message": stored.info, "parts": stored.parts });
        self.tell(COMPLETED, about, output);
    }

    fn tell(&self, point: HookPoint, input: Value, output: Value) {
        let about = About::Turn(self.session_id.clone(), self.turn.clone());
        self.inner.notify_hook(point, input, output, about);
    }
}
