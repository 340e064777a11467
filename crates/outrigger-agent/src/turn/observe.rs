//! Notification points: nothing waits for them, and a turn does not depend on them.

use std::sync::Arc;

use outrigger_kernel::hooks::points::{execute, llm, run, session};
use outrigger_kernel::hooks::{Context, Empty, HookInput};
use outrigger_kernel::turn::Effect;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, SessionId, TurnId};
use outrigger_protocol::log::CompletionRecord;
use outrigger_protocol::message::{AssistantMessage, MessageInfo};
use outrigger_protocol::turn::{Begin, Input, ModelSignal, TurnOutcome};

use crate::state::AgentState;
use outrigger_session_state::notifications::About;

/// The turn that the notifications are about.
pub(crate) struct Observer<'a> {
    pub(crate) state: &'a Arc<AgentState>,
    pub(crate) session_id: &'a SessionId,
    pub(crate) turn: &'a TurnId,
    pub(crate) begin: &'a Begin,
    /// User message that began the turn.
    pub(crate) user: &'a MessageId,
    /// Message whose step was passed to handlers already and needs no notification.
    pub(crate) asked: Option<&'a MessageId>,
}

impl Observer<'_> {
    /// Notifies plugins of an input, separately from the state machine.
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

    /// Notifies plugins of the effects of a step once they are stored; `completed` are the messages that it completed.
    pub(crate) fn effects(&self, effects: &[Effect], completed: &[CompletionRecord]) {
        for (index, effect) in effects.iter().enumerate() {
            match effect {
                Effect::Publish {
                    event: Event::MessageUpdated { info, .. },
                } => {
                    let ended = completed.iter().find(|it| it.message == *info.id());
                    let later = effects.get(index + 1..).unwrap_or_default();
                    if let MessageInfo::Assistant(message) = info.as_ref()
                        && let Some(ended) = ended
                        && !later.iter().any(|it| updates(it, &message.id))
                    {
                        self.completed(message, ended);
                    }
                }
                Effect::Publish {
                    event: Event::SessionError { error, .. },
                } => {
                    let input = session::on_error::Input {
                        session_id: self.session_id,
                        error,
                    };
                    self.notify(&input, &Context::default());
                }
                Effect::PrepareTools { step, .. } => {
                    self.state
                        .sessions
                        .turns
                        .at_step(self.turn, u64::from(*step));
                    self.step_begins(*step);
                }
                Effect::Finish {
                    outcome: TurnOutcome::Failed { error },
                } => {
                    let input = run::on_error::Input {
                        session_id: self.session_id,
                        error,
                    };
                    self.notify(&input, &Context::default());
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

    /// Notifies plugins of a completed message with all its parts in their final state (A4).
    fn completed(&self, message: &AssistantMessage, ended: &CompletionRecord) {
        let step = execute::after_step::Input {
            session_id: self.session_id,
            agent: &message.agent,
            model: &self.begin.model,
            message_id: &message.id,
            finish: message.finish.as_deref(),
        };
        if let Some(error) = &message.error {
            self.notify(
                &execute::on_error::Input { step, error },
                &Context::default(),
            );
        }
        if self.asked != Some(&message.id) {
            self.notify(&step, &execute::after_step::Output::default());
        }
        self.state.notify_completions(vec![ended.clone()]);
    }

    fn notify<I: HookInput>(&self, input: &I, output: &I::Output) {
        let about = About::Turn(self.session_id.clone(), self.turn.clone());
        self.state.notify_hook(input, output, about);
    }
}

/// Returns whether an effect updates this message.
fn updates(effect: &Effect, id: &MessageId) -> bool {
    matches!(effect, Effect::Publish { event: Event::MessageUpdated { info, .. } } if info.id() == id)
}
