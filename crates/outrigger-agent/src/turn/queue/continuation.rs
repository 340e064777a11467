//! Turns that handlers keep from ending (`agent_end.before_stop`): their request follows as a user message in the same
//! turn, with a limit on consecutive continuations (C16).

use std::sync::Arc;

use outrigger_kernel::hooks::points::agent_end::before_stop;
use outrigger_kernel::hooks::{Empty, HookInput, HookPoint};
use outrigger_kernel::turn::Turn;
use outrigger_plugins::PipelineResult;
use outrigger_prompt::parts::prompt_of;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{
    MessageInfo, MessageTime, Part, PartKind, TextPart, UserMessage,
};
use outrigger_protocol::provenance::{Actor, Deed, Provenance};
use outrigger_protocol::turn::{Begin, HookPayload};

use crate::error::AgentError;
use crate::state::{Agent, AgentState};
use crate::turn::queue::steering::stored;
use outrigger_config::settings::Settings;
use outrigger_session_state::ids;
use outrigger_stdx::clock::now_ms;

/// The hook point.
pub(crate) const POINT: HookPoint = HookPoint::AgentEndBeforeStop;
/// Default of `agent.max_continuations`.
const MAX_CONTINUATIONS: u64 = 10;

/// Number of continuations since the user's last message.
#[derive(Debug, Default)]
pub(crate) struct Continuation {
    times: u64,
}

impl Continuation {
    /// Returns the payload for the handlers.
    pub(crate) fn payload(
        &self,
        state: &Arc<AgentState>,
        turn: &Turn,
        session: &SessionId,
    ) -> HookPayload {
        let begin = turn.begin();
        let agent = Agent {
            state: Arc::clone(state),
        };
        let input = before_stop::Input {
            session_id: session,
            agent: &begin.agent,
            model: &begin.model,
            message_id: turn.message().map(|message| &message.id),
            active: self.times > 0,
            last_message: &agent.last_text(session),
        };
        input.payload(&Empty {})
    }

    /// Returns what to do before the turn ends, unless the limit is reached.
    pub(crate) fn wanted(
        &mut self,
        settings: &Settings,
        result: &PipelineResult,
    ) -> Option<(String, Provenance)> {
        if result.stop.is_some() || result.block.is_some() {
            return None;
        }
        let text = before_stop::read(result.outputs.first()?)?.to_owned();
        let most = settings.agent.max_continuations;
        let most = most.unwrap_or(MAX_CONTINUATIONS);
        if self.times >= most {
            tracing::warn!(
                "[turn] handlers of {POINT} have kept the turn from ending {most} times in a row; it ends now (agent.max_continuations)"
            );
            return None;
        }
        self.times += 1;
        let plugins = result.changed_by();
        let by = plugins.iter().fold(Provenance::default(), |causes, id| {
            causes.with(Actor::plugin(id), Deed::Prompted, None)
        });
        Some((text, by))
    }
}

impl Agent {
    /// Stores the message that a turn continues with, as one written by the program, and returns its start.
    pub(crate) async fn continue_with(
        &self,
        id: &SessionId,
        turn: &Turn,
        text: String,
        by: Provenance,
    ) -> Result<Option<Begin>, AgentError> {
        let before = turn.user();
        let at = now_ms();
        let user = UserMessage {
            id: ids::message(),
            session_id: id.clone(),
            time: MessageTime {
                created: at,
                completed: None,
            },
            agent: before.agent.clone(),
            model: before.model.clone(),
            system: before.system.clone(),
            tools: before.tools.clone(),
            provenance: by,
            ..UserMessage::default()
        };
        let part = Part {
            id: ids::part(),
            session_id: id.clone(),
            message_id: user.id.clone(),
            kind: PartKind::Text(TextPart {
                text,
                synthetic: Some(true),
                ..TextPart::default()
            }),
        };
        let prompt = prompt_of(&user);
        let events = vec![
            Event::MessageUpdated {
                session_id: id.clone(),
                info: Box::new(MessageInfo::User(user)),
            },
            Event::PartUpdated {
                session_id: id.clone(),
                part: Box::new(part),
                time: at,
            },
        ];
        self.state.commit(Vec::new(), events).await?;
        let session = self.session(id)?;
        let conversation = self.state.conversation(id)?;
        let begin = self.begin(&session, &conversation, prompt.into())?;
        Ok(stored(begin, &conversation))
    }
}
