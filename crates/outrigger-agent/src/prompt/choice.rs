//! Chooses the agent and the model that answer a prompt.

use outrigger_permissions::agents::AgentInfo;
use outrigger_permissions::pinned_rules;
use outrigger_plugins::Grant;
use outrigger_protocol::id::{PluginId, SessionId};
use outrigger_protocol::message::{MessageInfo, ModelRef, PartKind};
use outrigger_protocol::session::{PromptInput, Session};

use crate::error::AgentError;
use crate::state::{Agent, AgentState};

impl AgentState {
    /// See [`Agent::may_leave_agent`].
    pub(crate) fn may_leave_agent(
        &self,
        plugin: &PluginId,
        usual: Option<&str>,
        named: &str,
    ) -> bool {
        if self.lacks(plugin, Grant::Prompt, "").is_none() {
            return true;
        }
        let configured = self.config.config.default_agent.as_deref();
        let default = outrigger_permissions::agents::default_name(&self.catalog.agents, configured);
        let usual = usual.map(str::to_owned).or(default);
        let rules = |name: &str| self.catalog.agents.get(name).map(|it| &it.permission[..]);
        match (usual.as_deref().and_then(rules), rules(named)) {
            (Some(usual), Some(named)) => pinned_rules::is_within(usual, named),
            // One that does not exist answers nobody.
            _ => rules(named).is_none(),
        }
    }
}

impl Agent {
    /// Returns whether a plugin may leave a session with `named` as its agent. It may with the grant `prompt`, and if `named` may do
    /// no more than the agent that answers without the plugin. The user's next prompt goes to the agent of the session.
    #[must_use]
    pub fn may_leave_agent(&self, plugin: &PluginId, usual: Option<&str>, named: &str) -> bool {
        self.state.may_leave_agent(plugin, usual, named)
    }

    /// Returns the agent that answers if the prompt names none.
    #[must_use]
    pub fn default_agent(&self) -> Option<String> {
        outrigger_permissions::agents::default_name(
            &self.state.catalog.agents,
            self.state.config.config.default_agent.as_deref(),
        )
    }

    /// Returns the text of a session's last answer.
    #[must_use]
    pub fn last_text(&self, id: &SessionId) -> String {
        let history = self.state.history(id).unwrap_or_default();
        let mut messages = history.iter().rev().filter_map(|m| m.stored());
        messages
            .find(|m| matches!(m.info, MessageInfo::Assistant(_)))
            .map(|m| m.parts.as_slice())
            .unwrap_or_default()
            .iter()
            .rev()
            .filter_map(|part| match &part.kind {
                PartKind::Text(text) => Some(text.text.clone()),
                _ => None,
            })
            .next()
            .unwrap_or_default()
    }

    /// Whether the model can be asked that a prompt would go to. A prompt for another one is stored and not answered, so a
    /// program that has a person in front of it looks first.
    ///
    /// # Errors
    /// Unknown session, agent, provider or model, and a provider without a key.
    pub fn check_model(&self, id: &SessionId, prompt: &PromptInput) -> Result<(), AgentError> {
        let agent = self.choose_agent(prompt.agent.as_deref())?;
        let model = self.choose_model(&self.session(id)?, &agent, prompt.model.clone())?;
        self.state.models.resolve(&model)?;
        Ok(())
    }

    pub(crate) fn choose_agent(&self, name: Option<&str>) -> Result<AgentInfo, AgentError> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.default_agent().unwrap_or_else(|| "build".to_owned()),
        };
        self.state
            .catalog
            .agents
            .get(&name)
            .cloned()
            .ok_or_else(|| AgentError::NoAgent {
                known: self
                    .state
                    .catalog
                    .agents
                    .values()
                    .filter(|a| !a.hidden)
                    .map(|a| a.name.clone())
                    .collect(),
                name,
            })
    }

    /// Returns the model: the prompt's, else the agent's, else the session's last, else the configured one or the
    /// provider's best.
    pub(crate) fn choose_model(
        &self,
        session: &Session,
        agent: &AgentInfo,
        asked: Option<ModelRef>,
    ) -> Result<ModelRef, AgentError> {
        let last = || {
            session.model.as_ref().map(|m| ModelRef {
                provider_id: m.provider_id.clone(),
                model_id: m.id.clone(),
                variant: m.variant.clone().filter(|v| v != "default"),
            })
        };
        match asked.or_else(|| agent.model.clone()).or_else(last) {
            Some(model) => Ok(model),
            None => Ok(self.state.models.default_model()?),
        }
    }
}
