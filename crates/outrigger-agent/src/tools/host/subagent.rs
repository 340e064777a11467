//! Tasks that a call delegates to a subagent in a separate session.

use outrigger_permissions::pinned_rules;
use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;

use super::*;

impl CallHost {
    pub(super) async fn run_subagent(
        &self,
        request: SubagentRequest,
    ) -> Result<SubagentAnswer, ToolError> {
        let agent = Agent {
            state: Arc::clone(&self.state),
        };
        self.may_go_deeper(&agent)?;
        let known = self.state.catalog.agents.get(&request.agent);
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
        self.state
            .permissions
            .callers
            .add(&session.id, self.callers_of_child());
        let model = info.model.clone().unwrap_or_else(|| self.model.clone());
        self.started_subagent(&session.id, &model, &request);
        // Clients must learn of the child session before its events.
        self.sender.flushed().await;
        let prompt = self.subagent_prompt(&info.name, &model, request.prompt);
        let _awaited = self
            .state
            .sessions
            .deferred
            .awaits(&session.id, &self.session_id);
        // Dropping this cancels the child's turn, which then ends on its own.
        let outcome = tokio::select! {
            outcome = agent.run(TurnRequest::prompt(&session.id, prompt)) => outcome.map_err(failed),
            () = self.cancel.cancelled() => Err(ToolError::Cancelled),
        };
        // The task is finished; resuming it restarts them.
        self.state.tools.skill_servers.release(&session.id).await;
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

    /// Returns the options of the session for a new task.
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
            provenance: self.state.causes_of_prompt(&self.causes()),
            ..PromptInput::default()
        }
    }

    /// Returns the session of a task. It can be resumed only from the session that started it.
    fn own_child(&self, id: &str) -> Result<Session, ToolError> {
        let session = self
            .state
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

    /// Limits a resumed task to the permissions of the session that resumes it, which may run another agent than the one that
    /// started it.
    async fn within_caller(
        &self,
        agent: &Agent,
        session: Session,
        child: &AgentInfo,
    ) -> Result<Session, crate::AgentError> {
        let own = self.state.effective_rules(&session);
        let more = self.caller_limits(&[&child.permission[..], &own].concat());
        if more.is_empty() {
            return Ok(session);
        }
        let change =
            |session: &mut Session| session.permission.get_or_insert_default().extend(more);
        agent.update_session(&session.id, change).await
    }

    /// Returns the rules of a subagent's session: all denies and approvals of its parent, and no planning or delegating unless
    /// its own rules allow it.
    fn child_rules(&self, child: &AgentInfo) -> Vec<Rule> {
        let own = self.own_rules();
        let mut rules: Vec<Rule> = own
            .into_iter()
            .filter(|r| r.action == Action::Deny || r.permission == EXTERNAL_DIRECTORY)
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
        // The subagent may not change more than its own rules allow, even if the caller may.
        let of_child = child.permission.iter();
        let of_child = of_child.filter(|rule| rule.permission != EXTERNAL_DIRECTORY);
        let of_child: Vec<Rule> = of_child.cloned().collect();
        let all = |rules: &[Rule]| [&child.permission, rules].concat();
        rules.extend(pinned_rules::narrowing(&of_child, &all(&rules)));
        rules.extend(self.caller_limits(&all(&rules)));
        rules
    }

    /// Returns rules to append to a subagent's, which restrict it to the permissions of its caller: a subagent must not be a way
    /// around one's own limits. If the user's command names the subagent and no plugin contributed or changed that, the user's
    /// choice stands.
    fn caller_limits(&self, child: &[Rule]) -> Vec<Rule> {
        if self.is_named_by_user() {
            return Vec::new();
        }
        let caller = [&self.agent.permission[..], &self.own_rules()].concat();
        pinned_rules::subagent_limits(&caller, child)
    }

    fn is_named_by_user(&self) -> bool {
        self.is_users() && self.causes().plugins_that(Deed::Contributed).is_empty()
    }

    /// Returns the agents whose grants and routes limit a subagent of this call.
    fn callers_of_child(&self) -> Vec<String> {
        let mut callers = self.state.callers_of(&self.session_id);
        if !self.is_named_by_user() {
            callers.push(self.agent.name.clone());
        }
        callers
    }
}
