//! Submits a prompt: from its input to the start of its turn.

use outrigger_kernel::hooks::HookPoint;
use outrigger_permissions::agents::AgentInfo;
use outrigger_protocol::Object;
use outrigger_protocol::compaction::AutoCompact;
use outrigger_protocol::message::{ModelRef, NamedError, UserMessage};
use outrigger_protocol::model::Cost;
use outrigger_protocol::provenance::{Actor, Provenance};
use outrigger_protocol::session::{PromptInput, Session};
use outrigger_protocol::turn::Begin;
use serde_json::{Value, json};

use crate::error::AgentError;
use crate::session::edit::plugins_that_prompted;
use crate::session::sessions::is_placeholder;
use crate::state::Agent;
use crate::turn::start::Prompt;
use outrigger_session_state::histories::Conversation;
use outrigger_session_state::ids;

/// Step limit of a turn if neither the agent nor the settings set one. A turn always needs a limit (C16).
const MAX_STEPS: u32 = 200;

/// Properties of a prompt's model, if it is available.
struct ModelFacts {
    cost: Cost,
    auto_compact: Option<AutoCompact>,
    /// Why the model is unavailable.
    unaskable: Option<NamedError>,
}

impl Agent {
    /// Returns the start of a turn.
    pub(crate) fn begin(
        &self,
        session: &Session,
        conversation: &Conversation,
        prompt: Prompt,
    ) -> Result<Begin, AgentError> {
        let (prompt, command) = (prompt.input, prompt.command);
        let agent = self.choose_agent(prompt.agent.as_deref())?;
        let model = self.choose_model(session, &agent, prompt.model.clone())?;
        let facts = self.facts(&model, conversation, command.is_some())?;
        let model = ModelRef {
            variant: prompt.variant.clone().or(model.variant),
            ..model
        };
        let sent = sender(&prompt);
        let extra = self.kept_executor(&prompt);
        let own = prompt.message_id.as_ref();
        let mut provenance = sent.clone();
        provenance.extend(plugins_that_prompted(&conversation.facts, own));
        provenance.extend(self.state.contributions(&agent.name, command.as_ref()));
        Ok(Begin {
            turn: ids::turn(),
            session_id: session.id.clone(),
            provenance,
            seed: ids::seed(),
            requested: requested(session, &prompt, command.is_some(), &agent.name, &model),
            no_reply: prompt.no_reply == Some(true),
            message: UserMessage {
                id: prompt.message_id.unwrap_or_default(),
                agent: agent.name.clone(),
                model: model.clone(),
                system: prompt.system,
                tools: prompt.tools,
                format: prompt.format,
                provenance: sent,
                extra,
                ..UserMessage::default()
            },
            parts: prompt.parts,
            command,
            agent: agent.name.clone(),
            model,
            path: self.state.project.message_path(),
            wants_title: session.parent_id.is_none() && is_placeholder(&session.title),
            max_steps: self.max_steps(&agent),
            used_calls: Vec::new(),
            stored: false,
            snapshots: self.state.project.snapshots.is_on(),
            asks_loops: true,
            asks_before_stop: self.has_hooks(HookPoint::AgentEndBeforeStop),
            asks_after_step: self.has_hooks(HookPoint::ExecuteAfterStep),
            unaskable: facts.unaskable,
            prices: facts.cost.into(),
            compact: None,
            auto_compact: facts.auto_compact,
        })
    }

    /// Looks up the model. If it is unavailable, a prompt is stored unanswered and a command is rejected (as in
    /// OpenCode).
    fn facts(
        &self,
        model: &ModelRef,
        conversation: &Conversation,
        is_command: bool,
    ) -> Result<ModelFacts, AgentError> {
        match self.state.models.resolve(model) {
            Ok(resolved) => Ok(ModelFacts {
                auto_compact: self
                    .state
                    .auto_compact(&resolved.model, conversation.used()),
                cost: resolved.model.cost,
                unaskable: None,
            }),
            Err(error) if is_command => Err(error.into()),
            Err(error) => Ok(ModelFacts {
                cost: Cost::default(),
                auto_compact: None,
                unaskable: Some(error.to_named()),
            }),
        }
    }

    fn has_hooks(&self, point: HookPoint) -> bool {
        self.state.plugins.host.pipeline().has(point)
    }

    fn max_steps(&self, agent: &AgentInfo) -> u32 {
        let config = &self.state.config;
        let settings = config.settings.agent.max_steps;
        let users = config.users.as_ref();
        let users = users.and_then(|it| it.agent.iter().find(|it| it.name == agent.name)?.steps);
        let (settings, users) = (limit(settings), limit(users));
        // A project can lower the user's limit but not raise it (C16).
        let cap = users.or(settings).unwrap_or(u32::MAX);
        let steps = agent.steps.or(settings).unwrap_or(MAX_STEPS);
        steps.min(cap)
    }
}

fn limit(set: Option<u64>) -> Option<u32> {
    set.map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

/// Returns the hook's view of the prompt: keys that the client did not set are absent. A command always names agent
/// and model.
fn requested(
    session: &Session,
    prompt: &PromptInput,
    command: bool,
    agent: &str,
    model: &ModelRef,
) -> Value {
    let mut out = Object::new();
    out.insert("sessionID".into(), json!(session.id));
    let optional = [
        (
            "agent",
            json!(prompt.agent.as_deref().or(command.then_some(agent))),
        ),
        (
            "model",
            json!(prompt.model.as_ref().or(command.then_some(model))),
        ),
        ("messageID", json!(prompt.message_id)),
        ("variant", json!(prompt.variant)),
    ];
    out.extend(
        optional
            .into_iter()
            .filter(|(_, v)| !v.is_null())
            .map(|(k, v)| (k.to_owned(), v)),
    );
    Value::Object(out)
}

/// Returns who sent a prompt: the user, if it does not say.
fn sender(prompt: &PromptInput) -> Provenance {
    if prompt.provenance.is_empty() {
        Provenance::prompted(Actor::User)
    } else {
        prompt.provenance.clone()
    }
}
