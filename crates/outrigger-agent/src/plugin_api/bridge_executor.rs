//! Requests of a remote controller over a bridge (C17): run by the bundled tools, in the sandbox, and recorded. They run without
//! plugin hooks or permission prompts; what the rules of this machine do not allow is refused.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_bridge::{BridgeError, Call, ToolExecutor};
use outrigger_kernel::hooks::HookPoint;
use outrigger_permissions::access::SearchRules;
use outrigger_permissions::access::ask_rules::by_spelling;
use outrigger_permissions::sandbox_policy::shows;
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;
use outrigger_protocol::provenance::{Actor, Provenance};
use outrigger_protocol::session::Todo;
use outrigger_protocol::tool::{ToolCall, ToolOutcome, ToolOutput};
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::Policy;
use outrigger_tools::{
    AgentEntry, CancelFlag, HookVerdict, PermissionAsk, ReadRules, SkillEntry, SubagentAnswer,
    SubagentRequest, ToolContext, ToolError, ToolHost, ToolRuntime,
};
use serde_json::Value;

use crate::error::AgentError;
use crate::state::{Agent, AgentState};
use outrigger_session_state::notifications::About;
use outrigger_stdx::clock::now_ms;
use outrigger_workspace::git_policy;

/// Caller name if the remote controller names no session.
const NOBODY: &str = "bridge";

struct Executor {
    state: Arc<AgentState>,
    runtime: Arc<ToolRuntime>,
    root: PathBuf,
    rules: Arc<Vec<Rule>>,
    reads: Option<Arc<[PathBuf]>>,
}

impl Agent {
    /// The executing side of a bridge over this agent's folder, sandbox, rules, plugins and audit. `reads`: what its commands read
    /// besides the project, the system and temporary folders; without them everything.
    ///
    /// # Errors
    /// Tools that cannot be registered, which would be a defect.
    pub fn tool_executor(
        &self,
        reads: Option<Vec<PathBuf>>,
    ) -> Result<Arc<dyn ToolExecutor>, AgentError> {
        let state = Arc::clone(&self.state);
        // A separate runtime: plugin replacements of bundled tools are not for remote controllers.
        let runtime = ToolRuntime::new();
        outrigger_tools::builtin::register_all(&runtime, &state.tools.options)
            .map_err(|e| AgentError::Tools(e.to_string()))?;
        let rules = state
            .catalog
            .agents
            .get("build")
            .map(|it| it.permission.clone());
        Ok(Arc::new(Executor {
            root: state.project.location.directory.clone(),
            runtime: Arc::new(runtime),
            rules: Arc::new(rules.unwrap_or_default()),
            reads: reads.map(Into::into),
            state,
        }))
    }
}

/// Returns the tool that fulfils a contract.
fn tool(contract: Contract) -> &'static str {
    match contract {
        Contract::Read => "read",
        Contract::Write => "write",
        Contract::Edit => "edit",
        Contract::Exec => "bash",
        // A bridge frame has no such contract (C16).
        Contract::BrowserRead | Contract::BrowserWrite => "invalid",
    }
}

impl Executor {
    async fn run(&self, call: &Call, cancel: CancelFlag) -> Result<ToolOutput, BridgeError> {
        let missing = || BridgeError::new("bridge.params", "the parameters were not read");
        let params = call.params.as_ref().ok_or_else(missing)?;
        let session = call.invoke.session_id.as_deref().unwrap_or(NOBODY);
        let tool_call = ToolCall {
            call_id: call.invoke.id.as_str().into(),
            session_id: session.into(),
            message_id: NOBODY.into(),
            agent: NOBODY.to_owned(),
            tool: tool(params.contract()).to_owned(),
            input: params.to_value(),
            provenance: Provenance::prompted(Actor::Client),
        };
        let host = Host {
            state: Arc::clone(&self.state),
            call: tool_call.clone(),
            rules: Arc::clone(&self.rules),
            reads: self.reads.clone(),
        };
        let mut ctx = ToolContext::new(
            tool_call.clone(),
            self.root.clone(),
            self.root.clone(),
            Arc::new(host),
            self.state.processes.commands_spawner.clone(),
            self.state.outputs_of(&tool_call.session_id),
        );
        ctx.cancel = cancel;
        ctx.limits = self.state.tool_limits();
        match self.runtime.execute(tool_call, ctx).await.outcome {
            ToolOutcome::Completed { output, .. } => Ok(output),
            ToolOutcome::Failed { code, message, .. } => Err(BridgeError::new(&code, message)),
        }
    }
}

impl ToolExecutor for Executor {
    fn execute<'a>(
        &'a self,
        call: &'a Call,
        cancel: CancelFlag,
    ) -> BoxFuture<'a, Result<ToolOutput, BridgeError>> {
        Box::pin(self.run(call, cancel))
    }

    fn tell(&self, connection: u64, point: HookPoint, payload: HookPayload) {
        let session = payload.input.get("sessionID").and_then(Value::as_str);
        let about = About::Connection(connection, session.map(SessionId::from));
        self.state.notify_payload(point, payload, about);
    }

    fn audit(&self, mut record: AuditRecord) {
        record.at = now_ms();
        self.state.store.audit_lazily(now_ms(), vec![record]);
    }
}

/// The session side of a bridge call, which has no session.
struct Host {
    state: Arc<AgentState>,
    call: ToolCall,
    rules: Arc<Vec<Rule>>,
    reads: Option<Arc<[PathBuf]>>,
}

fn elsewhere<T>() -> Result<T, ToolError> {
    Err(ToolError::failed("a bridge has no sessions"))
}

impl ToolHost for Host {
    fn hooks<'a>(&'a self, point: HookPoint, payload: HookPayload) -> BoxFuture<'a, HookVerdict> {
        Box::pin(async move {
            let mut output = payload.output;
            if point == HookPoint::ExecuteBeforeShell
                && let Some(Value::Object(variables)) = output.get_mut("env")
            {
                let settings = git_policy::without_programs();
                variables.extend(settings.map(|(name, value)| (name, value.into())));
            }
            HookVerdict {
                output,
                ..HookVerdict::default()
            }
        })
    }

    fn ask<'a>(&'a self, ask: PermissionAsk) -> BoxFuture<'a, Result<String, ToolError>> {
        let what = format!("{} {}", ask.permission, ask.patterns.join(", "));
        Box::pin(async move {
            // Paths for the tools of this host are relative to the working directory.
            let (access, base) = (
                &self.state.permissions.access,
                &self.state.project.location.directory,
            );
            let rules: [&[Rule]; 1] = [&self.rules];
            let actions = access.actions_from(base, &ask, &ask.patterns, &rules).await;
            let actions = actions.into_iter();
            // There is no user to ask.
            let runs_later =
                ask.permission == "edit" && !access.runs_later(base, &ask.patterns, &[]).is_empty();
            let is_outside = ask.permission == EXTERNAL_DIRECTORY;
            // Commands have a sandbox that shows them these folders.
            let is_shown = self.call.tool == "bash" && shows(self.reads.as_deref(), &ask.patterns);
            let passes = |it| it == Action::Allow || is_outside && it == Action::Ask;
            let refused = runs_later
                || is_outside && !is_shown
                || !actions.chain(by_spelling(&ask, &rules)).all(passes);
            if refused {
                Err(ToolError::Denied(format!(
                    "The rules of the bridge's machine do not allow {what}"
                )))
            } else {
                Ok("allow".to_owned())
            }
        })
    }

    fn record_intent<'a>(&'a self, input: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        let record = AuditRecord {
            session_id: Some(self.call.session_id.clone()),
            subject: Some(format!("bridge: {} {}", self.call.tool, self.call.call_id)),
            input_hash: Some(outrigger_plugins::hash(&(&self.call.tool, input))),
            ..AuditRecord::new(AuditKind::ToolIntent, now_ms(), "run")
        };
        Box::pin(async move {
            let written = self.state.store.audit(now_ms(), vec![record]).await;
            written.map_err(|error| {
                format!("the call could not be recorded and was not made: {error}")
            })
        })
    }

    fn confine<'a>(&'a self) -> BoxFuture<'a, Result<Option<Policy>, ToolError>> {
        Box::pin(async move {
            let (rules, reads) = (self.rules.to_vec(), self.reads.as_deref());
            let sandboxed = self.state.confine_bridge(rules, reads).await;
            sandboxed.map_err(|error| {
                ToolError::failed(format!(
                    "The command was not started: {error} ({})",
                    error.hint()
                ))
            })
        })
    }

    fn read_rules(&self) -> ReadRules {
        let rules = self.state.permissions.access.rules(&[&self.rules]);
        Box::new(SearchRules::new(rules))
    }

    /// No tool of a bridge requests URLs.
    fn denies_address(&self, _url: &str) -> bool {
        true
    }
    fn denies_page(&self, _url: &str) -> bool {
        true
    }
    fn started(&self, _input: &Value) {}
    fn progress(&self, _title: Option<String>, _metadata: Value) {}
    fn publish(&self, _event: Event) {}
    fn subagent<'a>(
        &'a self,
        _request: SubagentRequest,
    ) -> BoxFuture<'a, Result<SubagentAnswer, ToolError>> {
        Box::pin(async { elsewhere() })
    }
    fn skills(&self) -> Vec<SkillEntry> {
        Vec::new()
    }
    fn agents(&self) -> Vec<AgentEntry> {
        Vec::new()
    }
    fn set_todos<'a>(&'a self, _todos: Vec<Todo>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async { elsewhere() })
    }
}
