//! Open questions as clients see them, and their answers.

use outrigger_plugins::Grant;
use outrigger_protocol::id::{PermissionId, PluginId};
use outrigger_protocol::permission::{PermissionRequest, Reply};
use outrigger_protocol::provenance::Actor;
use outrigger_stdx::sync::lock;

use crate::error::AgentError;
use crate::state::Agent;
use outrigger_permissions::questions::{Firmness, OpenQuestion};

impl Agent {
    /// Returns the questions that wait for an answer.
    #[must_use]
    pub fn questions(&self) -> Vec<PermissionRequest> {
        lock(&self.state.permissions.questions.open)
            .values()
            .map(|it| it.request.clone())
            .collect()
    }

    /// Returns why a client of this plugin may not approve this question for the user; `None` if it may.
    #[must_use]
    pub fn may_not_approve(&self, id: &PermissionId, plugin: &PluginId) -> Option<String> {
        let why = match lock(&self.state.permissions.questions.firm).get(id) {
            Some(Firmness::Person) => "it is about what a plugin did",
            Some(Firmness::Startup) => "it is about a file that is executed later",
            Some(Firmness::Asked) | None => return self.state.may_not_approve(plugin),
        };
        Some(format!("only you may answer it: {why}"))
    }

    /// Returns why a client of this plugin may not answer the model's questions to the user; `None` if it may.
    #[must_use]
    pub fn may_not_answer(&self, plugin: &PluginId) -> Option<String> {
        let what = "may not answer in the user's place";
        let lacking = self.state.lacks(plugin, Grant::Approve, what);
        lacking.map(|it| it.why)
    }

    /// Returns why this plugin may not have a client send the text that the user has typed; `None` if it may.
    #[must_use]
    pub fn may_not_submit(&self, plugin: &PluginId) -> Option<String> {
        let what = "may not send prompts in the user's place";
        let lacking = self.state.lacks(plugin, Grant::Prompt, what);
        lacking.map(|it| it.why)
    }

    /// Answers a question; returns false if there is no open question with that id.
    #[must_use]
    pub fn answer(&self, id: &PermissionId, reply: Reply) -> bool {
        self.answer_with(id, reply, None, Actor::User)
    }

    /// Gives the plugin for good what it lacks, in the user's own `outrigger.toml`, and lets what is asked about be done. Answers
    /// which file says so now; `None` where no grant is missing.
    ///
    /// # Errors
    /// The file cannot be changed; the question stays.
    pub fn grant(&self, id: &PermissionId) -> Result<Option<std::path::PathBuf>, AgentError> {
        let open = lock(&self.state.permissions.questions.open);
        let missing = open.get(id).and_then(|it| it.request.missing_grant.clone());
        let session = open.get(id).map(|it| it.request.session_id.clone());
        drop(open);
        let Some(missing) = missing else {
            return Ok(None);
        };
        let Some(grant) = Grant::of_key(&missing.grant) else {
            return Ok(None);
        };
        let file = self.state.project.folders.settings();
        outrigger_config::write_grant(&file, &missing.name, grant.key(), true)?;
        if let Some(session) = session {
            let what = format!("{} of the plugin {}", missing.grant, missing.plugin);
            self.state.audit_grant(&session, &what, &[]);
        }
        self.state.grant_for_now(missing.plugin, grant);
        let _ = self.answer(id, Reply::Once);
        Ok(Some(file))
    }

    /// Like [`Self::answer`], with the actor that answers. A refusal with a message does not end the turn: the model reads what
    /// to do instead.
    #[must_use]
    pub fn answer_with(
        &self,
        id: &PermissionId,
        reply: Reply,
        message: Option<String>,
        by: Actor,
    ) -> bool {
        let Some(OpenQuestion {
            request,
            ask,
            answer,
            ..
        }) = lock(&self.state.permissions.questions.open).remove(id)
        else {
            return false;
        };
        let answered = (reply, message.filter(|m| !m.is_empty()), by);
        let is_open = answer.send(answered.clone()).is_ok();
        self.state.answer_others(&request, &ask, &answered);
        is_open
    }
}
