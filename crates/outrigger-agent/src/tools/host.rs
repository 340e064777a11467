//! Requests of a tool call to its session.

mod subagent;
mod tool_host;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use outrigger_contributions::grants;
use outrigger_kernel::hooks::HookPoint;
use outrigger_kernel::merge::name_changes;
use outrigger_mcp_tools::start_skill_servers;
use outrigger_permissions::access::{SearchRules, hosts};
use outrigger_permissions::agents::AgentInfo;
use outrigger_permissions::approval::ApprovalReason;
use outrigger_plugins::Grant;
use outrigger_protocol::event::Event;
use outrigger_protocol::hook::{Decision, HookRecord};
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::log::ToolAudit;
use outrigger_protocol::message::{ModelRef, PartKind, TextPart};
use outrigger_protocol::permission::{Action, Rule, ToolRef};
use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;
use outrigger_protocol::provenance::{Actor, Cause, Deed, Provenance};
use outrigger_protocol::question::{Answer, Question};
use outrigger_protocol::session::{PartInput, PromptInput, Session, Todo};
use outrigger_protocol::tool::{ToolCall, ToolOutcome};
use outrigger_protocol::turn::{EffectId, HookPayload, Input, TurnOutcome};
use outrigger_sandbox::Policy;
use outrigger_stdx::sync::lock;
use outrigger_tools::{
    AgentEntry, CancelFlag, Formatted, HookVerdict, NearbyInstruction, Outside, PermissionAsk,
    ReadRules, SampleAnswer, SampleRequest, SkillEntry, SubagentAnswer, SubagentRequest,
    ToolContext, ToolError, ToolHost, nearby_instruction_files,
};
use serde_json::Value;
use tokio::sync::watch;

use crate::permission::ask::{Asker, Refusal};
use crate::session::sessions::NewSession;
use crate::state::{Agent, AgentState};
use crate::tools::mcp::host;
use crate::turn::request::TurnRequest;
use outrigger_session_state::notifications::About;
use outrigger_session_state::turn_channel::{Msg, Outbox};

/// Name of the tool by which the model asks the user.
const QUESTION: &str = "question";

/// The turn that a call belongs to.
pub(crate) struct CallTurn {
    pub(crate) state: Arc<AgentState>,
    pub(crate) turn: TurnId,
    /// Effect that the kernel waits for.
    pub(crate) effect: EffectId,
    pub(crate) sender: Outbox,
    pub(crate) cancel: CancelFlag,
    /// True while the model's answer is incomplete.
    pub(crate) speaking: watch::Receiver<bool>,
}

/// The session's side of one tool call.
pub(crate) struct CallHost {
    state: Arc<AgentState>,
    turn: TurnId,
    session_id: SessionId,
    tool: ToolRef,
    call: ToolCall,
    agent: AgentInfo,
    model: ModelRef,
    effect: EffectId,
    sender: Outbox,
    cancel: CancelFlag,
    speaking: watch::Receiver<bool>,
    /// Why the user is asked regardless of the rules.
    requires_approval: Mutex<Option<ApprovalReason>>,
    /// Known causes of the call.
    causes: Mutex<Provenance>,
    /// Hash of the arguments that the call runs with.
    input_hash: Mutex<Option<String>>,
    made_by: MadeBy,
}

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MadeBy {
    Model,
    /// The user, whose command runs as a subtask: it needs no approval.
    User,
    /// A plugin that sent the subtask, or whose hook added or changed it.
    Plugin,
    /// Another agent (`outrigger mcp serve`).
    Client,
    /// Another vendor's agent, which also runs it: no plugin's tool does, whatever it is called.
    Executor,
}

impl CallHost {
    pub(crate) fn new(
        turn: CallTurn,
        call: &ToolCall,
        agent: AgentInfo,
        model: ModelRef,
        made_by: MadeBy,
    ) -> Self {
        let tool = ToolRef {
            message_id: call.message_id.clone(),
            call_id: call.call_id.clone(),
        };
        let mut causes = call.provenance.clone();
        causes.extend(turn.state.plugins.message_changes.causes(&call.session_id));
        let host = Self {
            state: turn.state,
            turn: turn.turn,
            session_id: call.session_id.clone(),
            tool,
            call: ToolCall {
                // The arguments may be long, and the audit has their hash.
                input: Value::Null,
                ..call.clone()
            },
            agent,
            model,
            effect: turn.effect,
            sender: turn.sender,
            cancel: turn.cancel,
            speaking: turn.speaking,
            requires_approval: Mutex::default(),
            causes: Mutex::new(causes),
            input_hash: Mutex::default(),
            made_by,
        };
        let replaced = host.state.replaces_bundled(&call.tool);
        if let Some(plugin) = replaced.filter(|_| made_by != MadeBy::Executor) {
            let causes = Provenance::default().by_replaced_tool(&plugin, &call.tool);
            lock(&host.causes).extend(causes);
        }
        if matches!(made_by, MadeBy::Model | MadeBy::Executor) {
            let caller = host.state.caller(&host.model.provider_id);
            host.caused_by(caller, Deed::Called, None);
        }
        host
    }

    /// Returns the tool that runs, if it is one of the registered.
    fn own_tool(&self) -> Option<&str> {
        (self.made_by != MadeBy::Executor).then_some(self.call.tool.as_str())
    }

    /// Returns the session's own rules; without them every question is refused.
    fn stored_rules(&self) -> Result<Vec<Rule>, String> {
        let own = self.state.session_rules(&self.session_id);
        own.map_err(|error| error.to_string())
    }

    /// Returns the context for permission questions of this call.
    fn asker<'a>(&'a self, rules: &'a [&'a [Rule]], causes: &'a Provenance) -> Asker<'a> {
        Asker {
            session_id: &self.session_id,
            tool: Some(self.tool.clone()),
            rules,
            wanted: None,
            requires_approval: None,
            causes,
            reports: Some(&self.sender),
        }
    }

    /// Returns the context for the tool.
    pub(crate) fn context(self: &Arc<Self>, call: &ToolCall) -> ToolContext {
        let state = &self.state;
        let mut ctx = ToolContext::new(
            call.clone(),
            state.project.location.directory.clone(),
            state.project.location.worktree.clone(),
            Arc::clone(self) as Arc<dyn ToolHost>,
            state.processes.commands_spawner.clone(),
            state.outputs_of(&call.session_id),
        );
        ctx.cancel = self.cancel.clone();
        ctx.limits = state.tool_limits();
        // Grants of agents do not limit the user's own call.
        ctx.callers = state.callers_of(&call.session_id);
        if !self.is_users() {
            let agents = ctx.callers.iter().chain([&call.agent]);
            ctx.granted = grants::of_agents(&state.config.settings.tool_execution, agents);
        }
        ctx
    }

    /// Returns whether the user made the call.
    fn is_users(&self) -> bool {
        self.made_by == MadeBy::User
    }

    /// Returns the known causes of the call.
    pub(crate) fn causes(&self) -> Provenance {
        lock(&self.causes).clone()
    }

    fn caused_by(&self, actor: Actor, did: Deed, what: Option<String>) {
        lock(&self.causes).push(Cause { actor, did, what });
    }

    /// Records what plugins changed at a point before the call, and in its result.
    fn note_changes(&self, point: HookPoint, records: &[HookRecord]) {
        let what = match point {
            HookPoint::ToolBeforeCall => None,
            HookPoint::ExecuteBeforeShell => Some("variables".to_owned()),
            HookPoint::ToolAfterResult => Some("its result".to_owned()),
            _ => return,
        };
        let changed = records.iter();
        for record in changed.filter(|it| it.decision == Decision::Patch) {
            self.caused_by(Actor::plugin(&record.plugin), Deed::Changed, what.clone());
        }
    }

    /// Returns the changes by plugins to an output, with their names if the result is displayed; `None` if it is
    /// unchanged.
    fn output_left(
        &self,
        point: HookPoint,
        before: &Value,
        output: Option<Value>,
        records: &[HookRecord],
    ) -> Option<Value> {
        let mut output = output.filter(|_| !self.keeps_answer(point, records))?;
        if point == HookPoint::ToolAfterResult {
            name_changes(before, &mut output, records);
        }
        Some(output)
    }

    /// Returns whether an answer of the user must stay: a plugin that may not answer for the user cannot change what the
    /// model reads of it.
    fn keeps_answer(&self, point: HookPoint, records: &[HookRecord]) -> bool {
        if point != HookPoint::ToolAfterResult || self.call.tool != QUESTION {
            return false;
        }
        let mut changed = records.iter().filter(|it| it.decision == Decision::Patch);
        let lacking = changed.find_map(|record| {
            let what = "changed your answer, and the change is ignored";
            self.state.lacks(&record.plugin, Grant::Approve, what)
        });
        if let Some(lacking) = &lacking {
            tracing::warn!("[permission] {}", lacking.why);
        }
        lacking.is_some()
    }

    /// Adds the causes to a payload, unless they are only the user and the model.
    fn with_causes(&self, point: HookPoint, mut payload: HookPayload) -> HookPayload {
        let causes = self.causes();
        if let (false, HookPoint::ToolBeforeCall, Value::Object(fields)) =
            (causes.is_plain(), point, &mut payload.input)
        {
            fields.insert("provenance".to_owned(), serde_json::json!(causes));
        }
        payload
    }

    /// Returns the rules of the session.
    fn own_rules(&self) -> Vec<Rule> {
        self.stored_rules().unwrap_or_default()
    }

    /// Returns whether the user must be asked although the tool itself asks nothing, since a plugin sent the prompt, or
    /// a command hook of others changed the call.
    fn is_prompted(&self) -> bool {
        let ask = PermissionAsk {
            permission: self.call.tool.clone(),
            ..PermissionAsk::default()
        };
        let causes = self.causes();
        let (state, tool) = (&self.state, self.own_tool());
        let causes_it = || {
            state.changed_beyond(&causes, &ask).is_some()
                || state.prompted_without_grant(&causes, tool, &ask).is_some()
        };
        state.is_loud(&self.call.tool, tool) && causes_it()
    }

    /// Returns the audit data of the call besides its record.
    pub(crate) fn audit(&self, outcome: &ToolOutcome) -> ToolAudit {
        self.state.tool_audit(
            &self.turn,
            &self.call.tool,
            lock(&self.input_hash).take(),
            outrigger_plugins::hash(outcome),
        )
    }

    /// Waits until the model's answer is complete. A fast tool may finish earlier, but its result is not needed before
    /// then, and plugins are notified of it after the text that announced the call, as in OpenCode.
    async fn after_the_model(&self) {
        let mut speaking = self.speaking.clone();
        tokio::select! {
            _ = speaking.wait_for(|speaking| !*speaking) => {}
            () = self.cancel.cancelled() => {}
        }
    }

    /// Checks the depth of subagents: `subagent_depth` of the configuration, default 1 (as in OpenCode).
    fn may_go_deeper(&self, agent: &Agent) -> Result<(), ToolError> {
        let failed = |error: crate::AgentError| ToolError::failed(error.to_string());
        let most = self.state.config.config.subagent_depth.unwrap_or(1);
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

    /// Returns why the question needs approval. A hook's requirement applies once, and not to questions about folders; an
    /// ungranted action of a plugin applies to every question of the call.
    fn approval_for(&self, ask: &PermissionAsk) -> Option<ApprovalReason> {
        // The command itself has been approved.
        if ask.by_command {
            return None;
        }
        if let Some(ApprovalReason::Ungranted(lacking)) = &*lock(&self.requires_approval) {
            return Some(ApprovalReason::Ungranted(lacking.clone()));
        }
        let causes = self.causes();
        let tool = self.own_tool();
        let prompted = self.state.prompted_without_grant(&causes, tool, ask);
        let ungranted = prompted.or_else(|| self.state.changed_beyond(&causes, ask));
        let hook = match ask.permission.as_str() {
            EXTERNAL_DIRECTORY => None,
            _ => lock(&self.requires_approval).take(),
        };
        ungranted.map(ApprovalReason::Ungranted).or(hook)
    }

    fn started_subagent(&self, id: &SessionId, model: &ModelRef, request: &SubagentRequest) {
        let metadata = serde_json::json!({ "sessionId": id, "parentSessionId": self.session_id, "model": model });
        self.progress(Some(request.description.clone()), metadata);
    }
}

impl Drop for CallHost {
    fn drop(&mut self) {
        self.state.permissions.questions.over(&self.call);
    }
}
