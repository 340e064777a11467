//! Models and agents that plugins choose in prompts. The user must have chosen the model's provider: otherwise a token that
//! is in the environment for another purpose (`GITHUB_TOKEN`) would let a plugin send conversations to that service.

use outrigger_kernel::hooks::HookPoint;
use outrigger_kernel::turn::Turn;
use outrigger_plugins::Grant;
use outrigger_protocol::id::{PluginId, SessionId};
use outrigger_protocol::message::{ModelRef, PartKind};
use outrigger_protocol::provenance::{Actor, Deed, Provenance};
use outrigger_protocol::session::{PartInput, SessionModel};
use serde_json::{Value, json};

use crate::error::AgentError;
use crate::state::{Agent, AgentState};
use crate::turn::request::{TurnInput, TurnRequest};

impl AgentState {
    /// Returns why a model that one of these plugins named is refused: the user has not chosen its provider, the plugin does
    /// not implement the provider, and the plugin lacks the grant. An unavailable model is not refused here; it fails later
    /// with a separate error.
    pub(crate) fn not_chosen(&self, plugins: &[PluginId], model: &ModelRef) -> Option<String> {
        let provider = &model.provider_id;
        let is_chosen = plugins.is_empty()
            || self.config.has_chosen(provider)
            || self.models.credentials().get(provider).is_some()
            || self.models.resolve(model).is_err();
        if is_chosen {
            return None;
        }
        let what =
            format!("sends requests to {provider}, a provider of models that you have not chosen");
        let speaker = self.models.speaker(provider);
        let others = plugins.iter().filter(|it| speaker.as_ref() != Some(&it.0));
        let mut lacking = others.filter_map(|it| self.lacks(it, Grant::Model, &what));
        lacking.next().map(|it| it.why)
    }

    /// Reverts choices that plugins made in a user message at a hook point: the models of the message and its subtasks if the
    /// user has not chosen their providers, and the agent if it has more permissions than the previous one.
    pub(crate) fn hold_choices(
        &self,
        turn: &Turn,
        point: HookPoint,
        output: &mut Value,
        changed_by: &[PluginId],
    ) {
        self.hold_subtasks(turn, point, output, changed_by);
        if point == HookPoint::RunBeforeStart {
            self.hold_model(&turn.user().model, output, changed_by);
            self.hold_agent(&turn.user().agent, output, changed_by);
        }
    }

    fn hold_model(&self, before: &ModelRef, output: &mut Value, changed_by: &[PluginId]) {
        let Some(value) = output.pointer_mut("/message/model") else {
            return;
        };
        let named = serde_json::from_value::<ModelRef>(value.clone());
        let Some(named) = named.ok().filter(|it| it.provider_id != before.provider_id) else {
            return;
        };
        if let Some(why) = self.not_chosen(changed_by, &named) {
            let asked = &before.provider_id;
            tracing::warn!(
                "[model] {asked} is used instead of a model of {}: {why}",
                named.provider_id
            );
            *value = json!(before);
        }
    }

    /// A subtask without a model uses that of its agent or of the session.
    fn hold_subtasks(
        &self,
        turn: &Turn,
        point: HookPoint,
        output: &mut Value,
        changed_by: &[PluginId],
    ) {
        let known: Vec<&Value> = turn.parts_before(point).filter_map(of_subtask).collect();
        let parts = output.get_mut("parts").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            let Some(fields) = part.as_object_mut() else {
                continue;
            };
            let is_subtask = fields.get("type").is_some_and(|it| it == "subtask");
            let model = fields
                .get("model")
                .filter(|it| is_subtask && !known.contains(it));
            let named = model.and_then(|it| serde_json::from_value::<ModelRef>(it.clone()).ok());
            let Some(named) = named else {
                continue;
            };
            if let Some(why) = self.not_chosen(changed_by, &named) {
                tracing::warn!(
                    "[model] a subtask does not use a model of {}: {why}",
                    named.provider_id
                );
                fields.shift_remove("model");
            }
        }
    }

    /// Editors use the agent of the message for the user's next prompt, too.
    fn hold_agent(&self, before: &str, output: &mut Value, changed_by: &[PluginId]) {
        let Some(agent) = output.pointer_mut("/message/agent") else {
            return;
        };
        let named = agent.as_str().unwrap_or_default();
        if named == before {
            return;
        }
        let may = |plugin: &&PluginId| self.may_leave_agent(plugin, Some(before), named);
        if let Some(plugin) = changed_by.iter().find(|it| !may(it)) {
            let what =
                format!("names the agent {named:?} in your message, which has more permissions");
            let why = self.lacks(plugin, Grant::Prompt, &what).map(|it| it.why);
            tracing::warn!(
                "[agent] the message stays with {before}: {}",
                why.unwrap_or_default()
            );
            *agent = json!(before);
        }
    }
}

fn of_subtask(part: &PartKind) -> Option<&Value> {
    match part {
        PartKind::Subtask(task) => task.get("model"),
        _ => None,
    }
}

impl Agent {
    /// Checks the models of a prompt and its subtasks that a plugin names in a request. The session's own model is allowed,
    /// since the user may have chosen it.
    ///
    /// # Errors
    /// [`AgentError::NotGranted`] if a model is refused.
    pub fn may_ask(&self, request: &TurnRequest) -> Result<(), AgentError> {
        let (by, model, parts) = match &request.input {
            TurnInput::Prompt(prompt) | TurnInput::Command { prompt, .. } => {
                (&prompt.provenance, &prompt.model, &prompt.parts[..])
            }
            TurnInput::Compact(compact) => (&compact.provenance, &compact.model, &[][..]),
            TurnInput::Resume(_) => return Ok(()),
        };
        self.may_use(by, Some(&request.session), model.as_ref(), parts)
    }

    fn may_use(
        &self,
        by: &Provenance,
        session: Option<&SessionId>,
        model: Option<&ModelRef>,
        parts: &[PartInput],
    ) -> Result<(), AgentError> {
        let plugins = by.plugins_that(Deed::Prompted);
        if plugins.is_empty() {
            return Ok(());
        }
        let current = session.and_then(|id| self.session(id).ok()?.model);
        let is_current = |model: &ModelRef| {
            let same = |it: &SessionModel| {
                (&it.provider_id, &it.id) == (&model.provider_id, &model.model_id)
            };
            current.as_ref().is_some_and(same)
        };
        let of_subtask =
            |part: &PartInput| serde_json::from_value(of_subtask(&part.kind)?.clone()).ok();
        let of_subtasks = parts.iter().filter_map(of_subtask);
        let named = model.cloned().into_iter().chain(of_subtasks);
        let mut named = named.filter(|it| !is_current(it));
        match named.find_map(|it| self.state.not_chosen(&plugins, &it)) {
            Some(why) => Err(AgentError::NotGranted(why)),
            None => Ok(()),
        }
    }

    /// Like [`Self::may_ask`], for the model of a new session.
    ///
    /// # Errors
    /// [`AgentError::NotGranted`] if the model is refused.
    pub fn may_begin_with(&self, by: &Actor, model: &SessionModel) -> Result<(), AgentError> {
        let model = ModelRef {
            provider_id: model.provider_id.clone(),
            model_id: model.id.clone(),
            variant: None,
        };
        let by = Provenance::prompted(by.clone());
        self.may_use(&by, None, Some(&model), &[])
    }
}
