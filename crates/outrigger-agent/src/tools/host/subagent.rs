//! Work that a call hands to a subagent in a session of its own.

use super::*;

impl CallHost {
    pub(super) async fn run_subagent(
        &self,
        request: SubagentRequest,
    ) -> Result<SubagentAnswer, ToolError> {
        let agent = Agent {
            inner: Arc::clone(&self.inner),
        };
        self.may_go_deeper(&agent)?;
        let known = self.inner.agents.get(&request.agent);
        let info = known.cloned().ok_or_else(|| {
            ToolError::failed(format!(
                "Unknown agent type: {} is not a valid agent type",
                request.agent
            ))
        })?;
        let failed = |error: crate::AgentError| ToolError::failed(error.to_string());
        let session = match &request.task_id {
            Some(id) => self.own_child(id)?,
            None => {
                let child = self.child(&info, &request.description);
                agent.create_session(child).await.map_err(failed)?
            }
        };
        let model = info.model.clone().unwrap_or_else(|| self.model.clone());
        self.started_subagent(&session.id, &model, &request);
        let prompt = self.subagent_prompt(&info.name, &model, request.prompt);
        let _awaited = self.inner.deferred.awaits(&session.id, &self.session_id);
        // Dropping this cancels the child's turn, which then ends by itself.
        let outcome = tokio::select! {
            outcome = agent.run(TurnRequest::prompt(&session.id, prompt)) => outcome.map_err(failed),
            () = self.cancel.cancelled() => Err(ToolError::Cancelled),
        };
        // Its work is done; a task that is gone on with starts them again.
        self.inner.skill_servers.release(&session.id).await;
        let outcome = outcome?;
        match outcome {
            TurnOutcome::Done { .. } => Ok(SubagentAnswer {
                text: agent.last_text(&session.id),
                session_id: session.id,
                model,
            }),
            TurnOutcome::Failed { error } => Err(ToolError::failed(error.message().to_owned())),
            TurnOutcome::Cancelled => Err(ToolError::Cancelled),
        }
    }

    /// The session that a new task gets.
    fn child(&self, info: &AgentInfo, description: &str) -> NewSession {
        NewSession {
            parent: Some(self.session_id.clone()),
            title: Some(format!("{description} (@{} subagent)", info.name)),
            permission: Some(self.child_rules(info)),
            agent: Some(info.name.clone()),
            ..NewSession::default()
        }
    }

    fn subagent_prompt(&self, agent: &str, model: &ModelRef, text: String) -> PromptInput {
        PromptInput {
            agent: Some(agent.to_owned()),
            model: Some(model.clone()),
            message_id: Some(crate::ids::message()),
            parts: vec![PartInput {
                id: None,
                kind: PartKind::Text(TextPart {
                    text,
                    ..TextPart::default()
                }),
            }],
            provenance: self.inner.causes_of_prompt(&self.causes()),
            ..PromptInput::default()
        }
    }

    /// A task can only be gone on with where it was begun.
    fn own_child(&self, id: &str) -> Result<Session, ToolError> {
        let session = self
            .inner
            .store
            .session(&SessionId(id.to_owned()))
            .map_err(|e| ToolError::failed(e.to_string()))?;
        session
            .filter(|session| session.parent_id.as_ref() == Some(&self.session_id))
            .ok_or_else(|| {
                ToolError::failed(format!(
                    "Unknown task: {id} was not started in this session; leave task_id out"
                ))
            })
    }

    /// What holds in a subagent's session: whatever its parent is denied, and no planning or delegating unless its own
    /// rules say so.
    fn child_rules(&self, child: &AgentInfo) -> Vec<Rule> {
        let own = self
            .inner
            .store
            .session(&self.session_id)
            .ok()
            .flatten()
            .and_then(|s| s.permission)
            .unwrap_or_default();
        let mut rules: Vec<Rule> = own
            .into_iter()
            .filter(|r| r.action == Action::Deny || r.permission == "external_directory")
            .collect();
        if self
            .agent
            .permission
            .iter()
            .any(|r| r.permission == "edit" && r.action == Action::Deny)
        {
            rules.extend(
                self.agent
                    .permission
                    .iter()
                    .filter(|r| r.permission == "edit")
                    .cloned(),
            );
        }
        let says = |name: &str| child.permission.iter().any(|rule| rule.permission == name);
        let quiet = ["todowrite", "task"].into_iter().filter(|name| !says(name));
        rules.extend(quiet.map(|name| Rule {
            permission: name.into(),
            pattern: "*".into(),
            action: Action::Deny,
        }));
        rules
    }
}
