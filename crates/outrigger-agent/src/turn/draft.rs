//! A model request under construction: what hooks see of it and how they change it.

use outrigger_kernel::hooks::points::llm::{
    RequestInput, before_headers, before_messages, before_params, before_system,
};
use outrigger_kernel::hooks::{HookInput, HookPoint};
use outrigger_kernel::turn::Turn;
use outrigger_kernel::turn::compact::{AGENT, Compaction};
use outrigger_permissions::agents::AgentInfo;
use outrigger_protocol::history::History;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, ModelRef};
use outrigger_protocol::model::{
    ChatMessage, Messages, ModelParams, ModelRequest, SharedMessage, ToolChoice, ToolOffer,
};
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

use crate::error::AgentError;
use crate::state::AgentState;
use crate::turn::effects::structured;
use crate::turn::request_options;
use outrigger_prompt::history::{decode, request};

/// Instruction for the model in the last step within the limit.
const LAST_STEP: &str = "This is the last step of this turn, and no tools are left. Say what was done, what is not \
    finished, and what you would do next.";

/// Returns whether the step limit allows no further step: the model then summarises instead of calling tools whose
/// results it would never see.
pub(crate) fn is_last_step(turn: &Turn) -> bool {
    turn.current_step() >= turn.begin().max_steps
}

/// The request so far.
#[derive(Default)]
pub(crate) struct Draft {
    /// Offered tools.
    pub(crate) offers: Vec<ToolOffer>,
    /// Messages before the history (the title request has one).
    pub(crate) opening: Vec<ChatMessage>,
    /// Plan of a summary request.
    pub(crate) planned: Option<outrigger_prompt::compaction::plan::Planned>,
    history: History,
    system: Vec<String>,
    params: ModelParams,
    headers: Vec<(String, String)>,
}

impl Draft {
    /// Applies the result of a chain. Returns the output of points whose result is not part of the request.
    pub(crate) fn take(
        &mut self,
        point: HookPoint,
        output: Value,
        history: Option<History>,
    ) -> Option<Value> {
        match point {
            HookPoint::LlmBeforeMessages => {
                self.history = decode::history(&history.unwrap_or_default())
            }
            HookPoint::LlmBeforeSystem => self.system = before_system::read(&output),
            HookPoint::LlmBeforeParams => self.params = before_params::read(&output),
            HookPoint::LlmBeforeHeaders => self.headers = before_headers::read(&output),
            _ => return Some(output),
        }
        None
    }

    /// Returns the payload of a hook point of the request.
    pub(crate) fn payload(
        &self,
        state: &AgentState,
        session_id: &SessionId,
        turn: &Turn,
        point: HookPoint,
    ) -> Result<HookPayload, AgentError> {
        match turn.compaction() {
            Some(compaction) => {
                let planned = self.planned.as_ref();
                state.compaction_payload(session_id, turn, compaction, planned, point)
            }
            None => payload(state, session_id, turn, point),
        }
    }

    /// Returns the request of a step with its agent and its model.
    pub(crate) fn finish(self, turn: &Turn) -> (String, ModelRef, ModelRequest) {
        let begin = turn.begin();
        match turn.compaction() {
            Some(compaction) => (
                AGENT.to_owned(),
                compaction.model().unwrap_or(&begin.model).clone(),
                self.into_compaction(compaction),
            ),
            None => {
                let mut request = self.into_request();
                if structured::wanted(turn).is_some() {
                    request.tool_choice = ToolChoice::Required;
                }
                (begin.agent.clone(), begin.model.clone(), request)
            }
        }
    }

    /// Returns the request for a summary: one message with the history as text.
    fn into_compaction(mut self, compaction: &Compaction) -> ModelRequest {
        let previous = self.planned.take().and_then(|planned| planned.previous);
        let history = std::mem::take(&mut self.history);
        self.opening = vec![outrigger_prompt::compaction::plan::question(
            compaction,
            stored(&history),
            previous.as_deref(),
        )];
        self.into_request()
    }

    /// Returns the request.
    pub(crate) fn into_request(self) -> ModelRequest {
        let system = self.system.into_iter();
        let system = system.map(|content| ChatMessage::System { content });
        let opening = system.chain(self.opening).map(SharedMessage::from);
        let mut messages: Messages = opening.collect();
        messages.append(request::messages(&self.history));
        ModelRequest {
            messages,
            tools: self.offers,
            tool_choice: ToolChoice::Auto,
            params: self.params,
            headers: self.headers,
        }
    }
}

/// Returns the valid messages of a history that plugins changed.
fn stored(history: &History) -> impl Iterator<Item = &MessageWithParts> {
    history.iter().filter_map(|message| message.stored())
}

fn payload(
    state: &AgentState,
    session_id: &SessionId,
    turn: &Turn,
    point: HookPoint,
) -> Result<HookPayload, AgentError> {
    let begin = turn.begin();
    let agent = state
        .catalog
        .agents
        .get(&begin.agent)
        .cloned()
        .unwrap_or_default();
    Ok(match point {
        HookPoint::LlmBeforeMessages => {
            let current = turn.message().map(|m| &m.id);
            let (waiting, own) = (state.sessions.queue.messages(session_id), &turn.user().id);
            let histories = &state.sessions.histories;
            let history = histories.as_read(&state.store, session_id, current, &waiting, own)?;
            before_messages::Input::over(history)
        }
        HookPoint::LlmBeforeSystem => system(state, session_id, turn, &agent)?,
        HookPoint::LlmBeforeParams | HookPoint::LlmBeforeHeaders => {
            let resolved = state.models.resolve(&begin.model)?;
            let input = RequestInput {
                session_id,
                agent: &begin.agent,
                model: &resolved.model_for_hooks(),
                provider: &resolved.provider_for_hooks(true),
                message: &MessageInfo::User(turn.user().clone()),
            };
            if point == HookPoint::LlmBeforeHeaders {
                before_headers::Input(input).payload(&before_headers::Output::default())
            } else {
                let parameters = request_options::shown(&agent, &resolved, session_id, false);
                before_params::Input(input).payload(&parameters)
            }
        }
        _ => HookPayload::default(),
    })
}

/// Returns the system prompt of a step: the agent's, the MCP servers' instructions, and what the turn needs.
fn system(
    state: &AgentState,
    session_id: &SessionId,
    turn: &Turn,
    agent: &AgentInfo,
) -> Result<HookPayload, AgentError> {
    let resolved = state.models.resolve(&turn.begin().model)?;
    let skills = !outrigger_kernel::permission::is_disabled("skill", &[&agent.permission]);
    let own = state.session_rules(session_id)?;
    let mcp =
        outrigger_mcp_tools::prompts::instructions(&state.tools.mcp, &[&agent.permission, &own]);
    let mut extra: Vec<&str> = mcp.as_deref().into_iter().collect();
    if structured::wanted(turn).is_some() {
        extra.push(outrigger_tools::answer::INSTRUCTION);
    }
    extra.extend(turn.user().system.as_deref());
    if is_last_step(turn) {
        extra.push(LAST_STEP);
    }
    let text = state.system_text(agent, &resolved.model, skills, &extra);
    let input = before_system::Input {
        session_id,
        model: &resolved.model_for_hooks(),
    };
    Ok(input.payload(&before_system::Output { system: [&text] }))
}
