//! Work that a call hands to a subagent in a session of its own.

use outrigger_permissions::pinned_rules;

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
            Some(id) => {
                let session = self.own_child(id)?;
                let within = self.within_caller(&agent, session, &info).await;
                within.map_err(failed)?
            }
            None => {
                let child = self.child(&info, &request.description);
                agent.create_session(child).await.map_err(failed)?
            }
        };
        self.inner.callers.add(&session.id, self.callers_of_child());
        let model = info.model.clone().unwrap_or_else(|| self.model.clone());
        self.started_subagent(&session.id, &model, &request);
        // Clients know of the child session before anything comes of it.
        self.sender.flushed().await;
        let prompt = self.subagent_prompt(&info.name, &model, request.prompt);
        let _awaited = self.inner.deferred.awaits(&session.id, &self.session_id);
        // Dropping this cancels the child's turn, which then ends by itself.
        let outcome = tokio::select! {
            outcome = agent.run(TurnRequest::prompt(&session.id, prompt)) => outcome.map_err(failed),
            () = self.cancel.cancelled() => Err(ToolError::Cancelled),
        };
        // Its work is done; a task that is resumed starts them again.
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
            message_id: Some(outrigger_session_state::ids::message()),
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

    /// A task can only be resumed where it was begun.
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

    /// A resumed task has no more permissions than the session that resumes it, which may run another agent than the
    /// one that began it.
    async fn within_caller(
        &self,
        agent: &Agent,
        session: Session,
        child: &AgentInfo,
    ) -> Result<Session, crate::AgentError> {
        let own = session.permission.as_deref().unwrap_or_default();
        let more = self.caller_limits(&[&child.permission[..], own].concat());
        if more.is_empty() {
            return Ok(session);
        }
        let change =
            |session: &mut Session| session.permission.get_or_insert_default().extend(more);
        agent.update_session(&session.id, change).await
    }

    /// What holds in a subagent's session: whatever its parent is denied or asked about, and no planning or delegating unless its own
    /// rules say so.
    fn child_rules(&self, child: &AgentInfo) -> Vec<Rule> {
        let own = self.session_rules();
        let mut rules: Vec<Rule> = own
            .into_iter()
            .filter(|r| r.action == Action::Deny || r.permission == "external_directory")
            .collect();
        let of_edit = self.agent.permission.iter();
        let of_edit = of_edit.filter(|rule| rule.permission == "edit");
        if of_edit.clone().any(|rule| rule.action == Action::Deny) {
            rules.extend(of_edit.cloned());
        }
        let says = |name: &str| child.permission.iter().any(|rule| rule.permission == name);
        let quiet = ["todowrite", "task"].into_iter().filter(|name| !says(name));
        rules.extend(quiet.map(|name| Rule {
            permission: name.into(),
            pattern: "*".into(),
            action: Action::Deny,
        }));
        // What the caller may change is no reason for the subagent to change more than its own rules say.
        let of_child = child.permission.iter();
        let of_child = of_child.filter(|rule| rule.permission != "external_directory");
        let of_child: Vec<Rule> = of_child.cloned().collect();
        let all = |rules: &[Rule]| [&child.permission, rules].concat();
        rules.extend(pinned_rules::narrowing(&of_child, &all(&rules)));
        rules.extend(self.caller_limits(&all(&rules)));
        rules
    }

    /// What of the rules of a subagent permits more than the caller's do, as rules behind them: nobody gets by a subagent what they may
    /// not do themselves (issue 18). A command of the user's names its subagent as the user wants it, where no
    /// plugin contributed or changed that.
    fn caller_limits(&self, child: &[Rule]) -> Vec<Rule> {
        if self.is_named_by_user() {
            return Vec::new();
        }
        let caller = [&self.agent.permission[..], &self.session_rules()].concat();
        pinned_rules::subagent_limits(&caller, child)
    }

    fn is_named_by_user(&self) -> bool {
        self.is_users() && self.causes().plugins_that(Deed::Contributed).is_empty()
    }

    /// The agents within whose grants and routes a subagent of this call stays.
    fn callers_of_child(&self) -> Vec<String> {
        let mut callers = self.inner.callers_of(&self.session_id);
        if !self.is_named_by_user() {
            callers.push(self.agent.name.clone());
        }
        callers
    }

    fn session_rules(&self) -> Vec<Rule> {
        let session = self.inner.store.session(&self.session_id);
        let session = session.ok().flatten();
        session.and_then(|it| it.permission).unwrap_or_default()
    }
}
