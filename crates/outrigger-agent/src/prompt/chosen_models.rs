//! Models that plugins name. Their provider has to be one that the user has chosen: a token that is in the environment for
//! another purpose (`GITHUB_TOKEN`) would otherwise send conversations to a service that the user did not choose.

use outrigger_plugins::Grant;
use outrigger_protocol::id::{PluginId, SessionId};
use outrigger_protocol::message::{ModelRef, PartKind};
use outrigger_protocol::provenance::{Actor, Deed, Provenance};
use outrigger_protocol::session::{PartInput, SessionModel};
use serde_json::{Value, json};

use crate::error::AgentError;
use crate::state::{Agent, AgentState};

impl AgentState {
    /// Returns why requests to a model are refused that one of these plugins named: the user has not chosen its provider, the
    /// plugin is not the provider, and it lacks the grant. A model that cannot be asked has an error of its own.
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

    /// Restores the model of a user message if a plugin changed it to one of a provider that the user has not chosen.
    pub(crate) fn hold_model(
        &self,
        before: &ModelRef,
        output: &mut Option<Value>,
        changed_by: &[PluginId],
    ) {
        let model = output
            .as_mut()
            .and_then(|it| it.pointer_mut("/message/model"));
        let Some(value) = model else {
            return;
        };
        let named = serde_json::from_value::<ModelRef>(value.clone());
        let Some(named) = named.ok().filter(|it| it.provider_id != before.provider_id) else {
            return;
        };
        if let Some(why) = self.not_chosen(changed_by, &named) {
            let asked = &before.provider_id;
            tracing::warn!(
                "[model] {asked} is asked instead of a model of {}: {why}",
                named.provider_id
            );
            *value = json!(before);
        }
    }
}

impl Agent {
    /// Checks the models that a plugin names in a request: that of a prompt, and those of its subtasks. That of the session stays
    /// possible: the user may have named it.
    ///
    /// # Errors
    /// [`AgentError::NotGranted`].
    pub fn may_ask(
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
        let of_subtask = |part: &PartInput| match &part.kind {
            PartKind::Subtask(task) => serde_json::from_value(task.get("model")?.clone()).ok(),
            _ => None,
        };
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
    /// [`AgentError::NotGranted`].
    pub fn may_begin_with(&self, by: &Actor, model: &SessionModel) -> Result<(), AgentError> {
        let model = ModelRef {
            provider_id: model.provider_id.clone(),
            model_id: model.id.clone(),
            variant: None,
        };
        let by = Provenance::prompted(by.clone());
        self.may_ask(&by, None, Some(&model), &[])
    }
}
