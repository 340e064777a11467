//! Chooses the agent and the model that answer a prompt.

use outrigger_permissions::agents::AgentInfo;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{MessageInfo, ModelRef, PartKind};
use outrigger_protocol::session::{PromptInput, Session};

use crate::error::AgentError;
use crate::state::Agent;

impl Agent {
    /// Returns the agent that answers if the prompt names none.
    #[must_use]
    pub fn default_agent(&self) -> Option<String> {
        outrigger_permissions::agents::default_name(
            &self.inner.agents,
            self.inner.config.config.default_agent.as_deref(),
        )
    }

    /// Returns the text of a session's last answer.
    #[must_use]
    pub fn last_text(&self, id: &SessionId) -> String {
        let history = self.inner.history(id).unwrap_or_default();
        let mut messages = history.iter().rev().filter_map(|m| m.stored());
        let last = messages.find(|m| matches!(m.info, MessageInfo::Assistant(_)));
        let texts = last
            .map(|m| m.parts.as_slice())
            .unwrap_or_default()
            .iter()
            .rev();
        texts
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
        self.inner.models.resolve(&model)?;
        Ok(())
    }

    pub(crate) fn choose_agent(&self, name: Option<&str>) -> Result<AgentInfo, AgentError> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.default_agent().unwrap_or_else(|| "build".to_owned()),
        };
        self.inner
            .agents
            .get(&name)
            .cloned()
            .ok_or_else(|| AgentError::NoAgent {
                known: self
                    .inner
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
            None => Ok(self.inner.models.default_model()?),
        }
    }
}
