//! Compaction within a turn: its plan from the store, and the payloads of the hooks of its request.

use outrigger_kernel::hooks::points::compaction::after_finish;
use outrigger_kernel::hooks::points::llm::{
    RequestInput, before_headers, before_messages, before_params, before_system,
};
use outrigger_kernel::hooks::{HookInput, HookPoint};
use outrigger_kernel::turn::Turn;
use outrigger_kernel::turn::compact::{AGENT, Compaction};
use outrigger_prompt::compaction::plan::{Planned, has_text, is_prompt, take_replay};
use outrigger_prompt::compaction::select;
use outrigger_prompt::history::active::Active;
use outrigger_protocol::compaction::{AutoCompact, CompactionPlan};
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, NamedError};
use outrigger_protocol::model::ModelInfo;
use outrigger_protocol::turn::{EffectId, HookPayload, Input};

use crate::error::AgentError;
use crate::state::AgentState;
use crate::turn::request_options;
use outrigger_session_state::turn_channel::Msg;

impl AgentState {
    /// Returns when a turn with this model compacts automatically, in a session whose last step used `used`
    /// tokens.
    pub(crate) fn auto_compact(&self, model: &ModelInfo, used: u64) -> Option<AutoCompact> {
        let config = &self.config.config.compaction;
        (config.auto != Some(false)).then(|| AutoCompact {
            limit: select::usable(config, model),
            used,
        })
    }

    /// Works out what the compaction that `message_id` stands for summarises, and what stays.
    ///
    /// # Errors
    /// [`AgentError::NothingToCompact`], a model that cannot be used, and those of the store.
    pub(crate) fn plan_compaction(
        &self,
        session_id: &SessionId,
        message_id: &MessageId,
        overflow: bool,
    ) -> Result<Planned, AgentError> {
        let mut all = self.store.messages(session_id)?;
        // Later messages are not part of it: a message that wants no reply, or the summary that is being
        // written.
        let at = all.iter().position(|m| m.info.id() == message_id);
        let message = at.and_then(|at| {
            let message = all.get(at).cloned();
            all.truncate(at);
            message
        });
        let Some(MessageInfo::User(asked)) = message.map(|m| m.info) else {
            return Err(AgentError::NothingToCompact(session_id.to_string()));
        };
        let agent = self.catalog.agents.get(AGENT);
        let model = agent.and_then(|a| a.model.clone()).unwrap_or(asked.model);
        let resolved = self.models.resolve(&model)?;
        let active = Active::of(all);
        let previous = active.summary();
        let mut head = active.rest;
        let replay = if overflow {
            take_replay(&mut head)
        } else {
            None
        };
        if !has_text(&head) {
            return Err(AgentError::NothingToCompact(session_id.to_string()));
        }
        let mut tail_start = None;
        if replay.is_none()
            && let Some((at, id)) =
                select::tail(&self.config.config.compaction, &resolved.model, &head)
        {
            head.truncate(at);
            tail_start = Some(id);
        } else if replay.is_none()
            && head.len() > 1
            && let Some(last) = head.pop_if(|last| is_prompt(last))
        {
            // The user's latest prompt is answered, not summarised, however much else fits.
            tail_start = Some(last.info.id().clone());
        }
        Ok(Planned {
            plan: CompactionPlan {
                model,
                prices: resolved.model.cost.into(),
                tail_start,
                replay: replay.map(Box::new),
            },
            head,
            previous,
        })
    }

    /// Returns the payload of a hook point of the summary request.
    pub(crate) fn compaction_payload(
        &self,
        session_id: &SessionId,
        turn: &Turn,
        compaction: &Compaction,
        planned: Option<&Planned>,
        point: HookPoint,
    ) -> Result<HookPayload, AgentError> {
        if point == HookPoint::LlmBeforeMessages {
            let head = planned.map(|planned| planned.head.iter().cloned().collect());
            return Ok(before_messages::Input::over(head.unwrap_or_default()));
        }
        let user = turn.user();
        if point == HookPoint::CompactionAfterFinish {
            let resolved = self.models.resolve(&user.model)?;
            let provider = resolved.provider_for_hooks(true);
            let input = after_finish::Input {
                session_id,
                agent: &user.agent,
                model: &resolved.model_for_hooks(),
                provider: after_finish::Provider {
                    source: &provider.source,
                    info: &provider,
                    options: &provider.options,
                },
                message: &MessageInfo::User(user.clone()),
                overflow: compaction.is_overflow(),
            };
            return Ok(input.payload(&after_finish::Output { enabled: true }));
        }
        let agent = self.catalog.agents.get(AGENT).cloned().unwrap_or_default();
        let resolved = self
            .models
            .resolve(compaction.model().unwrap_or(&user.model))?;
        let input = RequestInput {
            session_id,
            agent: AGENT,
            model: &resolved.model_for_hooks(),
            provider: &resolved.provider_for_hooks(true),
            message: &MessageInfo::User(user.clone()),
        };
        Ok(match point {
            HookPoint::LlmBeforeSystem => {
                let input = before_system::Input {
                    session_id,
                    model: &resolved.model_for_hooks(),
                };
                let prompt = agent.prompt.as_deref().unwrap_or_default();
                input.payload(&before_system::Output { system: [prompt] })
            }
            HookPoint::LlmBeforeParams => {
                let parameters = request_options::shown(&agent, &resolved, session_id, false);
                before_params::Input(input).payload(&parameters)
            }
            _ => before_headers::Input(input).payload(&before_headers::Output::default()),
        })
    }
}

/// Prepares a compaction; fails with the reason if it cannot start.
pub(crate) fn prepare(
    state: &AgentState,
    session_id: &SessionId,
    effect: EffectId,
    message_id: &MessageId,
    overflow: bool,
) -> Msg {
    match state.plan_compaction(session_id, message_id, overflow) {
        Ok(planned) => Msg::Planned {
            effect,
            planned: Box::new(planned),
        },
        Err(error) => refused(effect, error.to_named()),
    }
}

/// Returns the report for a panic in [`prepare`].
pub(crate) fn lost(effect: EffectId) -> Msg {
    let message = "the compaction ended in a panic; this is a defect of Outrigger";
    refused(effect, NamedError::new("UnknownError", message))
}

fn refused(effect: EffectId, error: NamedError) -> Msg {
    Msg::Input(Input::CompactionRefused { effect, error })
}
