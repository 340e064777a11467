//! Points where plugins are notified and not asked: nothing waits for them, and a turn does not depend on them.

use std::sync::Arc;

use outrigger_kernel::hooks::points::{execute, llm, run, session};
use outrigger_kernel::hooks::{Empty, HookInput, HookPoint};
use outrigger_kernel::turn::Effect;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, SessionId, TurnId};
use outrigger_protocol::message::{AssistantMessage, MessageInfo};
use outrigger_protocol::turn::{Begin, Input, ModelSignal, TurnOutcome};

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
    /// Notifies plugins of what an input means, beside what the machine makes of it.
    pub(crate) fn input(&self, input: &Input) {
        if let Input::Model {
            signal: ModelSignal::Finished { reason, usage },
            ..
        } = input
        {
            let input = llm::after_response::Input {
                session_id: self.session_id,
                agent: &self.begin.agent,
                model: &self.begin.model,
                reason,
                usage,
            };
            self.notify(&input, &Empty {});
        }
    }

    /// Notifies plugins of what the effects of a step mean, once they are stored.
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
                    let input = session::on_error::Input {
                        session_id: self.session_id,
                        error,
                    };
                    self.notify(&input, &Empty {});
                }
                Effect::PrepareTools { step, .. } => self.step_begins(*step),
                Effect::Finish {
                    outcome: TurnOutcome::Failed { error },
                } => {
                    let input = run::on_error::Input {
                        session_id: self.session_id,
                        error,
                    };
                    self.notify(&input, &Empty {});
                }
                _ => {}
            }
        }
    }

    fn step_begins(&self, step: u32) {
        let (session_id, agent, model) = (self.session_id, &self.begin.agent, &self.begin.model);
        if step == 1 {
            let input = run::after_start::Input {
                session_id,
                agent,
                model,
                message_id: self.user,
            };
            self.notify(&input, &Empty {});
        }
        let input = execute::before_step::Input {
            session_id,
            agent,
            model,
            step,
        };
        self.notify(&input, &Empty {});
    }

    /// The machine completes a message once, with every part of it in its final state (A4).
    fn completed(&self, message: &AssistantMessage) {
        let step = execute::after_step::Input {
            session_id: self.session_id,
            agent: &message.agent,
            model: &self.begin.model,
            message_id: &message.id,
            finish: message.finish.as_deref(),
        };
        if let Some(error) = &message.error {
            self.notify(&execute::on_error::Input { step, error }, &Empty {});
        }
        self.notify(&step, &Empty {});
        if !self.inner.plugins.pipeline().has(COMPLETED) {
            return;
        }
        let Ok(Some(stored)) = self.inner.store.message(self.session_id, &message.id) else {
            return;
        };
        let input = session::after_complete_message::Input {
            session_id: self.session_id,
            agent: &message.agent,
            message_id: &message.id,
            model: session::after_complete_message::Model {
                provider_id: &message.provider_id,
                model_id: &message.model_id,
            },
            variant: message.variant.as_deref(),
        };
        let output = session::after_complete_message::Output {
            message: &stored.info,
            parts: &stored.parts,
        };
        self.notify(&input, &output);
    }

    fn notify<I: HookInput>(&self, input: &I, output: &I::Output) {
        let about = About::Turn(self.session_id.clone(), self.turn.clone());
        self.inner.notify_hook(input, output, about);
    }
}
