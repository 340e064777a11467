//! What a tool call may ask of its session.

mod subagent;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::HookPoint;
use outrigger_mcp_tools::start_skill_servers;
use outrigger_permissions::access::{Operation, hosts};
use outrigger_permissions::agents::AgentInfo;
use outrigger_permissions::approval::ApprovalReason;
use outrigger_protocol::audit::ToolAudit;
use outrigger_protocol::event::Event;
use outrigger_protocol::hook::{Decision, HookRecord};
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::message::{ModelRef, PartKind, TextPart};
use outrigger_protocol::permission::{Action, Rule, ToolRef};
use outrigger_protocol::provenance::{Actor, Cause, Deed, Provenance};
use outrigger_protocol::question::{Answer, Question};
use outrigger_protocol::session::{PartInput, PromptInput, Session, Todo};
use outrigger_protocol::tool::{ToolCall, ToolOutcome};
use outrigger_protocol::turn::{EffectId, HookPayload, Input, TurnOutcome};
use outrigger_sandbox::Policy;
use outrigger_tools::{
    AgentEntry, CancelFlag, Formatted, HookVerdict, NearbyInstruction, Outside, PermissionAsk,
    ReadRules, SkillEntry, SubagentAnswer, SubagentRequest, ToolError, ToolHost,
    nearby_instruction_files,
};
use outrigger_workspace::sync::lock;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::permission::ask::{Asker, Refusal};
use crate::session::sessions::NewSession;
use crate::state::notifications::About;
use crate::state::{Agent, Inner};
use crate::tools::mcp::host;
use crate::turn::message::Msg;
use crate::turn::request::TurnRequest;

/// The session's side of one tool call.
pub(crate) struct CallHost {
    inner: Arc<Inner>,
    turn: TurnId,
    session_id: SessionId,
    tool: ToolRef,
    call: ToolCall,
    agent: AgentInfo,
    model: ModelRef,
    effect: EffectId,
    sender: mpsc::UnboundedSender<Msg>,
    cancel: CancelFlag,
    speaking: watch::Receiver<bool>,
    /// The user is to be asked whatever the rules allow, and why.
    requires_approval: Mutex<Option<ApprovalReason>>,
    /// Who caused the call, as far as is known.
    causes: Mutex<Provenance>,
    /// Of the arguments that it runs with.
    input_hash: Mutex<Option<String>>,
    /// The call is the user's own: nobody is asked whether it may be made.
    users: bool,
}

impl CallHost {
    #[expect(
        clippy::too_many_arguments,
        reason = "made in one place, from what the driver holds"
    )]
    pub(crate) fn new(
        inner: Arc<Inner>,
        turn: TurnId,
        call: &ToolCall,
        agent: AgentInfo,
        model: ModelRef,
        effect: EffectId,
        sender: mpsc::UnboundedSender<Msg>,
        cancel: CancelFlag,
        speaking: watch::Receiver<bool>,
    ) -> Self {
        let tool = ToolRef {
            message_id: call.message_id.clone(),
            call_id: call.call_id.clone(),
        };
        let mut causes = call.provenance.clone();
        causes.extend(inner.message_changes.causes(&call.session_id));
        Self {
            inner,
            turn,
            session_id: call.session_id.clone(),
            tool,
            call: ToolCall {
                // Its arguments may be long, and the audit has their hash.
                input: Value::Null,
                ..call.clone()
            },
            agent,
            model,
            effect,
            sender,
            cancel,
            speaking,
            requires_approval: Mutex::default(),
            causes: Mutex::new(causes),
            input_hash: Mutex::default(),
            users: false,
        }
    }

    /// The same for a call of the user's (a command that runs as a subtask), or not.
    pub(crate) fn of_user(mut self, users: bool) -> Self {
        self.users = users;
        if !users {
            let caller = self.inner.caller(&self.model.provider_id);
            self.caused_by(caller, Deed::Called, None);
        }
        self
    }

    /// Who caused the call, as far as is known.
    pub(crate) fn causes(&self) -> Provenance {
        lock(&self.causes).clone()
    }

    fn caused_by(&self, actor: Actor, did: Deed, what: Option<String>) {
        lock(&self.causes).push(Cause { actor, did, what });
    }

    /// What plugins changed at a point in front of the call.
    fn note_changes(&self, point: HookPoint, records: &[HookRecord]) {
        let what = match point {
            HookPoint::ToolBeforeCall => None,
            HookPoint::ExecuteBeforeShell => Some("variables".to_owned()),
            _ => return,
        };
        let changed = records.iter();
        for record in changed.filter(|it| it.decision == Decision::Patch) {
            self.caused_by(Actor::plugin(&record.plugin), Deed::Changed, what.clone());
        }
    }

    /// What is asked at a point, with who caused it where that is not the user and the model alone.
    fn with_causes(&self, point: HookPoint, mut payload: HookPayload) -> HookPayload {
        let causes = self.causes();
        if let (false, HookPoint::ToolBeforeCall, Value::Object(fields)) =
            (causes.is_plain(), point, &mut payload.input)
        {
            fields.insert("provenance".to_owned(), serde_json::json!(causes));
        }
        payload
    }

    /// Rules of the session.
    fn own_rules(&self) -> Vec<Rule> {
        let own = self.inner.store.session(&self.session_id).ok().flatten();
        own.and_then(|it| it.permission).unwrap_or_default()
    }

    /// Whether the user is to be asked though the tool asks nothing, since a plugin sent the prompt.
    fn is_prompted(&self) -> bool {
        let ask = PermissionAsk {
            permission: self.call.tool.clone(),
            ..PermissionAsk::default()
        };
        let tool = self.call.tool.as_str();
        let causes = self.causes();
        Inner::is_loud(tool)
            && self
                .inner
                .prompted_without_grant(&causes, Some(tool), &ask)
                .is_some()
    }

    /// What the audit keeps of the call besides its record.
    pub(crate) fn audit(&self, outcome: &ToolOutcome) -> ToolAudit {
        self.inner.tool_audit(
            &self.turn,
            &self.call.tool,
            lock(&self.input_hash).take(),
            outrigger_plugins::hash(outcome),
        )
    }

    /// A fast tool may have its answer while the model still speaks. Its result is of no use before the model is done, and
    /// plugins are told of it after the text that announced the call, as in OpenCode.
    async fn after_the_model(&self) {
        let mut speaking = self.speaking.clone();
        tokio::select! {
            _ = speaking.wait_for(|speaking| !*speaking) => {}
            () = self.cancel.cancelled() => {}
        }
    }

    /// Subagents of subagents are made as deep as `subagent_depth` of the configuration says, which is 1 where it says
    /// nothing (as in OpenCode).
    fn may_go_deeper(&self, agent: &Agent) -> Result<(), ToolError> {
        let failed = |error: crate::AgentError| ToolError::failed(error.to_string());
        let most = self.inner.config.config.subagent_depth.unwrap_or(1);
        let mut depth = 0;
        let mut session = agent.session(&self.session_id).map_err(failed)?;
        while let Some(parent) = session.parent_id {
            depth += 1;
            session = agent.session(&parent).map_err(failed)?;
        }
        if depth < most {
            return Ok(());
        }
        Err(ToolError::failed(format!(
            "A subagent at depth {depth} may not start another one: the limit is {most}. Do the work yourself, or raise \
             `subagent_depth` in opencode.json."
        )))
    }

    /// What a hook requires it does once, and not where a folder is in question; what a plugin did without a grant holds
    /// for every question of the call.
    fn approval_for(&self, ask: &PermissionAsk) -> Option<ApprovalReason> {
        if let Some(ApprovalReason::Ungranted(lacking)) = &*lock(&self.requires_approval) {
            return Some(ApprovalReason::Ungranted(lacking.clone()));
        }
        let causes = self.causes();
        let tool = Some(self.call.tool.as_str());
        let prompted = self.inner.prompted_without_grant(&causes, tool, ask);
        let hook = match ask.permission.as_str() {
            "external_directory" => None,
            _ => lock(&self.requires_approval).take(),
        };
        prompted.map(ApprovalReason::Ungranted).or(hook)
    }

    fn started_subagent(&self, id: &SessionId, model: &ModelRef, request: &SubagentRequest) {
        let metadata = serde_json::json!({ "sessionId": id, "parentSessionId": self.session_id, "model": model });
        self.progress(Some(request.description.clone()), metadata);
    }
}

impl Drop for CallHost {
    fn drop(&mut self) {
        self.inner.questions.over(&self.call);
    }
}

impl ToolHost for CallHost {
    fn hooks<'a>(&'a self, point: HookPoint, payload: HookPayload) -> BoxFuture<'a, HookVerdict> {
        Box::pin(async move {
            if point == HookPoint::ToolAfterResult {
                self.after_the_model().await;
            }
            // Nobody waits for plugins in a turn that was stopped.
            if point == HookPoint::ToolOnError && self.cancel.is_cancelled() {
                let about = About::Turn(self.session_id.clone(), self.turn.clone());
                let output = payload.output.clone();
                self.inner.notify_payload(point, payload, about);
                return HookVerdict {
                    output,
                    ..HookVerdict::default()
                };
            }
            let fallback = payload.output.clone();
            let payload = self.with_causes(point, payload);
            let result = self
                .inner
                .run_hooks(
                    point,
                    vec![payload],
                    Some(&self.session_id),
                    Some(&self.turn),
                    Some(self.cancel.clone()),
                )
                .await;
            // The turn ends behind this step, as where the user says no.
            if result.stop.is_some() {
                let _ = self.sender.send(Msg::Input(Input::EndAfterStep));
            }
            let output = result.outputs.into_iter().next();
            let requires_approval = match (point, &output) {
                (HookPoint::ToolBeforeCall, Some(output)) => {
                    let model = (!self.users).then_some(self.model.provider_id.as_str());
                    self.inner.approval_reason(
                        &self.call,
                        model,
                        &result.records,
                        &fallback,
                        output,
                    )
                }
                _ => None,
            };
            self.note_changes(point, &result.records);
            let verdict = HookVerdict {
                output: output.unwrap_or(fallback),
                block: result.block,
                requires_approval: requires_approval.is_some()
                    || (point == HookPoint::ToolBeforeCall && self.is_prompted()),
            };
            if point == HookPoint::ToolBeforeCall {
                *lock(&self.requires_approval) = requires_approval;
            }
            verdict
        })
    }

    fn ask<'a>(&'a self, ask: PermissionAsk) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async move {
            let requires_approval = self.approval_for(&ask);
            if self.users && !matches!(requires_approval, Some(ApprovalReason::Ungranted(_))) {
                return Ok("allow (the user's call)".to_owned());
            }
            let own = match self.inner.store.session(&self.session_id) {
                Ok(session) => session.and_then(|s| s.permission).unwrap_or_default(),
                Err(error) => return Err(ToolError::Denied(error.to_string())),
            };
            let causes = self.causes();
            let asker = Asker {
                session_id: &self.session_id,
                tool: Some(self.tool.clone()),
                rules: &[&self.agent.permission, &own],
                requires_approval: requires_approval.as_ref(),
                causes: &causes,
            };
            let answer = self.inner.decide(&asker, ask).await;
            for actor in answer.iter().flat_map(|it| &it.by) {
                self.caused_by(actor.clone(), Deed::Answered, None);
            }
            answer.map(|it| it.text).map_err(|refusal| match refusal {
                Refusal::Rule(text) => ToolError::Denied(text),
                Refusal::User(text) => ToolError::Rejected(text),
            })
        })
    }

    fn record_intent<'a>(&'a self, input: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        let input_hash = outrigger_plugins::hash(&(&self.call.tool, input));
        *lock(&self.input_hash) = Some(input_hash.clone());
        Box::pin(
            self.inner
                .audit_intent((&self.call, self.causes()), &self.turn, input_hash),
        )
    }

    fn started(&self, input: &Value) {
        self.inner.questions.begins(&self.call, input);
        let _ = self.sender.send(Msg::Input(Input::ToolStarted {
            effect: self.effect,
            input: input.clone(),
            provenance: self.causes(),
        }));
    }

    fn progress(&self, title: Option<String>, metadata: Value) {
        // A tool that says what it is at is a fact of the turn; one that shows what came out so far does so many times,
        // and all of it is in its result.
        let _ = self.sender.send(match title {
            Some(_) => Msg::Input(Input::ToolProgress {
                effect: self.effect,
                title,
                metadata,
            }),
            None => Msg::Preview {
                effect: self.effect,
                metadata,
            },
        });
    }

    fn publish(&self, event: Event) {
        let _ = self.sender.send(Msg::Event(Box::new(event)));
    }

    fn wrote<'a>(
        &'a self,
        file: &'a Path,
        before: Option<&'a [u8]>,
        after: &'a [u8],
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(workspace_trust) = self.inner.workspace_trust.clone() else {
                return;
            };
            let (before, after) = (
                before.map(outrigger_permissions::workspace_trust::hash),
                outrigger_permissions::workspace_trust::hash(after),
            );
            let file = file.to_path_buf();
            // It may read the configuration, and another program may have the notes.
            let count = move || workspace_trust.count(&file, before.as_deref(), &after);
            if let Err(error) = tokio::task::spawn_blocking(count).await {
                tracing::warn!("[config] {error}");
            }
        })
    }

    fn subagent<'a>(
        &'a self,
        request: SubagentRequest,
    ) -> BoxFuture<'a, Result<SubagentAnswer, ToolError>> {
        Box::pin(self.run_subagent(request))
    }

    fn confine<'a>(&'a self) -> BoxFuture<'a, Result<Option<Policy>, ToolError>> {
        Box::pin(async move {
            let own = self.inner.store.session(&self.session_id);
            let own = own.map_err(|error| ToolError::failed(error.to_string()))?;
            let mut rules = self.agent.permission.clone();
            rules.extend(
                own.and_then(|session| session.permission)
                    .unwrap_or_default(),
            );
            self.inner.confine(rules).await.map_err(|error| {
                ToolError::failed(format!(
                    "The command was not started: {error} ({})",
                    error.hint()
                ))
            })
        })
    }

    fn outside<'a>(
        &'a self,
        command: &'a str,
        why: &'a str,
    ) -> BoxFuture<'a, Result<Option<Outside>, ToolError>> {
        Box::pin(async move {
            if !self.inner.may_leave_sandbox() {
                return Ok(None);
            }
            let own = self.inner.store.session(&self.session_id);
            let own = own.map_err(|error| ToolError::failed(error.to_string()))?;
            let own = own
                .and_then(|session| session.permission)
                .unwrap_or_default();
            let causes = self.causes();
            let asker = Asker {
                session_id: &self.session_id,
                tool: Some(self.tool.clone()),
                rules: &[&self.agent.permission, &own],
                requires_approval: None,
                causes: &causes,
            };
            if !self.inner.ask_person_outside(&asker, command, why).await {
                return Ok(None);
            }
            let rules = [self.agent.permission.clone(), own].concat();
            let policy = self.inner.confine_outside(rules).await.map_err(|error| {
                ToolError::failed(format!(
                    "The command was not started: {error} ({})",
                    error.hint()
                ))
            })?;
            Ok(Some(Outside(policy)))
        })
    }

    fn question<'a>(&'a self, questions: Vec<Question>) -> BoxFuture<'a, Option<Vec<Answer>>> {
        Box::pin(async move {
            self.inner
                .ask_questions(&self.session_id, Some(self.tool.clone()), questions)
                .await
        })
    }

    fn skills(&self) -> Vec<SkillEntry> {
        self.inner.skill_entries()
    }

    fn skill_loaded<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let skill = self.inner.skills.iter().find(|skill| skill.name == name)?;
            start_skill_servers(&host(&self.inner), &self.session_id, skill).await
        })
    }

    fn extra(&self) -> Value {
        let model = self.inner.models.resolve(&self.model);
        let model = model.ok().map(|resolved| resolved.model);
        serde_json::json!({ "model": model, "bypassAgentCheck": self.users })
    }

    fn agents(&self) -> Vec<AgentEntry> {
        self.inner.agent_entries()
    }

    fn format<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, Formatted> {
        Box::pin(self.inner.formatters.format(file))
    }

    fn diagnose<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, BTreeMap<PathBuf, Vec<Value>>> {
        Box::pin(async move {
            self.inner.lsp.touch(file).await;
            self.inner.lsp.diagnostics()
        })
    }

    fn ask_language<'a>(
        &'a self,
        file: &'a Path,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Option<Vec<Value>>> {
        Box::pin(async move { self.inner.lsp.ask(file, method, &params).await })
    }

    fn symbols<'a>(&'a self, query: &'a str) -> BoxFuture<'a, Vec<Value>> {
        Box::pin(self.inner.lsp.symbols(query))
    }

    fn read_rules(&self) -> ReadRules {
        if self.users {
            return ReadRules::default();
        }
        let own = self.inner.store.session(&self.session_id).ok().flatten();
        let own = own.and_then(|it| it.permission).unwrap_or_default();
        let approvals = lock(&self.inner.questions.approvals).clone();
        let access = self.inner.access.clone();
        let rules = access.rules(&[&self.agent.permission, &own]);
        let approvals = access.rules(&[&approvals]);
        let denied = rules.denies().then(|| rules.denied());
        ReadRules::new(move |file| {
            let verdict = rules.decide(Operation::Read, file);
            let other_name = || match &denied {
                None => false,
                Some(Ok(denied)) => denied.holds(file).is_some(),
                // Which files are denied is not known.
                Some(Err(_)) => true,
            };
            match verdict.action {
                Action::Deny => Action::Deny,
                _ if other_name() => Action::Deny,
                // "Always" answers what is asked about; it lifts no deny.
                Action::Ask => approvals.decide(Operation::Read, file).action,
                Action::Allow => Action::Allow,
            }
        })
    }

    fn names_address(&self, url: &str) -> bool {
        let approvals = lock(&self.inner.questions.approvals).clone();
        let own = self.own_rules();
        let layers: [&[Rule]; 3] = [&self.agent.permission, &own, &approvals];
        self.users || hosts::is_named(url, &layers)
    }

    fn denies_address(&self, url: &str) -> bool {
        let own = self.own_rules();
        !self.users && hosts::decide(url, &[&self.agent.permission, &own]) == Action::Deny
    }

    fn opened(&self, file: &Path) {
        self.inner.lsp.warm(file);
    }

    /// Instructions of folders below the working folder, each told once in a session.
    fn nearby_instructions(&self, file: &Path) -> Vec<NearbyInstruction> {
        let mut told = lock(&self.inner.told_instructions);
        nearby_instruction_files(file, &self.inner.place.directory)
            .into_iter()
            .filter(|path| told.insert((self.session_id.clone(), path.clone())))
            .filter_map(|path| {
                let text = self.inner.instruction(&path)?;
                Some(NearbyInstruction { path, text })
            })
            .collect()
    }

    fn set_todos<'a>(&'a self, todos: Vec<Todo>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let event = Event::TodoUpdated {
                session_id: self.session_id.clone(),
                todos,
            };
            self.inner
                .commit(Vec::new(), vec![event])
                .await
                .map_err(|error| ToolError::failed(error.to_string()))
        })
    }
}
