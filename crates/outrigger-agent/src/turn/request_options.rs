//! The parts of a model request besides messages and tools: system prompt, parameters, deadlines.

use std::time::Duration;

use outrigger_config::Origin;
use outrigger_models::Resolved;
use outrigger_permissions::agents::AgentInfo;
use outrigger_prompt::system::{SystemPrompt, instructions};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::model::{ModelInfo, ModelParams};

use crate::state::AgentState;

impl AgentState {
    /// Returns the system prompt of an agent as one text.
    pub(crate) fn system_text(
        &self,
        agent: &AgentInfo,
        model: &ModelInfo,
        skills: bool,
        extra: &[&str],
    ) -> String {
        let found = instructions(
            &self.project.location,
            &self.project.folders.home,
            &self.project.folders.config,
            &self.config.config.instructions,
            |path| self.instruction(path),
        );
        let skills: Vec<(String, String)> = if skills {
            self.catalog
                .skills
                .iter()
                .filter_map(|s| Some((s.name.clone(), s.description.clone()?)))
                .collect()
        } else {
            Vec::new()
        };
        let today = jiff::Zoned::now().strftime("%a %b %d %Y").to_string();
        SystemPrompt {
            agent_prompt: agent.prompt.as_deref(),
            model: &model.api.id,
            model_ref: &format!("{}/{}", model.provider_id, model.id),
            location: &self.project.location,
            today: &today,
            instructions: &found,
            skills: &skills,
            extra,
        }
        .text()
    }

    pub(crate) fn stream_options(&self, session: &SessionId) -> outrigger_models::StreamOptions {
        let models = &self.config.settings.models;
        let set = |key: &str| {
            self.config
                .settings_origins
                .get(key)
                .is_some_and(|origin| *origin != Origin::Default)
        };
        // Unset values are left to the provider's own options.
        let deadlines = ["first_byte_ms", "idle_ms", "total_ms"]
            .iter()
            .any(|key| set(&format!("models.{key}")));
        let ms = |value| Some(Duration::from_millis(value));
        outrigger_models::StreamOptions {
            session_id: session.to_string(),
            directory: self.project.location.directory.clone(),
            deadlines: deadlines.then(|| outrigger_models::Deadlines {
                first_byte: ms(models.first_byte_ms),
                idle: ms(models.idle_ms),
                total: ms(models.total_ms),
            }),
            retry: set("models.max_retries").then(|| outrigger_models::RetryPolicy {
                max_retries: models.max_retries,
                ..outrigger_models::RetryPolicy::default()
            }),
            ..outrigger_models::StreamOptions::default()
        }
    }
}

/// Returns the parameters for hooks: absent if neither agent nor model sets them, and without likely secrets.
pub(crate) fn shown(
    agent: &AgentInfo,
    resolved: &Resolved,
    session: &SessionId,
    small: bool,
) -> ModelParams {
    let mut parameters = parameters(agent, resolved, session, small);
    parameters.options = resolved.options_for_hooks(&parameters.options);
    parameters
}

/// Restores the parameters that were hidden from hooks.
pub(crate) fn put_back(
    left: &mut ModelParams,
    agent: &AgentInfo,
    resolved: &Resolved,
    session: &SessionId,
    small: bool,
) {
    let real = parameters(agent, resolved, session, small).options;
    let shown = resolved.options_for_hooks(&real);
    outrigger_models::put_back(&mut left.options, &shown, &real);
}

fn parameters(
    agent: &AgentInfo,
    resolved: &Resolved,
    session: &SessionId,
    small: bool,
) -> ModelParams {
    let model = &resolved.model;
    let mut options = resolved.default_options(&session.0, small);
    options.extend(agent.options.clone());
    ModelParams {
        temperature: agent
            .temperature
            .or_else(|| outrigger_models::temperature(model))
            .filter(|_| model.capabilities.temperature),
        top_p: agent.top_p.or_else(|| outrigger_models::top_p(model)),
        top_k: outrigger_models::top_k(model),
        max_output_tokens: Some(outrigger_models::max_output_tokens(model)),
        options,
    }
}
