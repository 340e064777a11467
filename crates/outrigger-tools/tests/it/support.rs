//! A host for one call, and a folder to work in.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::event::Event;
use outrigger_protocol::hook::Block;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::permission::Action;
use outrigger_protocol::session::Todo;
use outrigger_protocol::tool::{ToolCall, ToolOutcome, ToolOutput};
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::{Policy, Spawner};
use outrigger_tools::builtin::{Options, register_all};
use outrigger_tools::{
    AgentEntry, Executed, HookVerdict, Limits, NearbyInstruction, Outside, PermissionAsk,
    ReadRules, SkillEntry, SubagentAnswer, SubagentRequest, ToolContext, ToolError, ToolHost,
    ToolRuntime,
};
use serde_json::{Value, json};

/// The answer of a hook point: the output made from its input, or a refusal.
pub(crate) type Answer = Box<dyn FnOnce(Value) -> Result<Value, String> + Send>;

#[derive(Default)]
pub(crate) struct Host {
    pub(crate) log: Mutex<Vec<String>>,
    pub(crate) asks: Mutex<Vec<PermissionAsk>>,
    pub(crate) progress: Mutex<Vec<Value>>,
    pub(crate) hooks: Mutex<VecDeque<(HookPoint, Answer)>>,
    /// A permission that is refused.
    pub(crate) refuse: Mutex<Option<&'static str>>,
    /// How the next questions are decided; a rule allows the others.
    pub(crate) decisions: Mutex<VecDeque<&'static str>>,
    /// A link that is changed once a question was answered.
    pub(crate) swap: Mutex<Option<(PathBuf, PathBuf)>>,
    /// Renames made once a question was answered.
    pub(crate) renames: Mutex<Vec<(PathBuf, PathBuf)>>,
    /// Commands have this sandbox. One that fails runs once more outside it, while the processes of the spawner are frozen.
    pub(crate) sandbox: Mutex<Option<(Policy, Spawner)>>,
    pub(crate) skills: Mutex<Vec<SkillEntry>>,
    pub(crate) todos: Mutex<Vec<Todo>>,
    pub(crate) nearby: Mutex<Vec<NearbyInstruction>>,
}

impl Host {
    fn note(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }
    pub(crate) fn lines(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }
    pub(crate) fn hook(
        &self,
        point: HookPoint,
        answer: impl FnOnce(Value) -> Result<Value, String> + Send + 'static,
    ) {
        self.hooks
            .lock()
            .unwrap()
            .push_back((point, Box::new(answer)));
    }
}

impl ToolHost for Host {
    fn hooks<'a>(&'a self, point: HookPoint, payload: HookPayload) -> BoxFuture<'a, HookVerdict> {
        self.note(format!(
            "hooks {point} {} -> {}",
            payload.input, payload.output
        ));
        let mut waiting = self.hooks.lock().unwrap();
        let next = waiting
            .iter()
            .position(|(p, _)| *p == point)
            .and_then(|at| waiting.remove(at));
        let (output, block) = match next.map(|(_, answer)| answer(payload.output.clone())) {
            None => (payload.output, None),
            Some(Ok(output)) => (output, None),
            Some(Err(message)) => {
                let block = Block {
                    code: "hook.threw".into(),
                    message,
                    details: Value::Null,
                    plugin: None,
                };
                (payload.output, Some(block))
            }
        };
        Box::pin(async move {
            HookVerdict {
                output,
                block,
                requires_approval: false,
            }
        })
    }
    fn ask<'a>(&'a self, ask: PermissionAsk) -> BoxFuture<'a, Result<String, ToolError>> {
        self.note(format!(
            "ask {} {:?} always {:?}",
            ask.permission, ask.patterns, ask.always
        ));
        let decision = self
            .decisions
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or("allow");
        let refused =
            decision == "deny" || *self.refuse.lock().unwrap() == Some(ask.permission.as_str());
        if let Some((link, to)) = self.swap.lock().unwrap().take() {
            std::fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink(to, link).unwrap();
        }
        for (from, to) in self.renames.lock().unwrap().drain(..) {
            std::fs::rename(from, to).unwrap();
        }
        self.asks.lock().unwrap().push(ask);
        let slow = self
            .asks
            .lock()
            .unwrap()
            .last()
            .is_some_and(|ask| ask.permission == "slow");
        Box::pin(async move {
            if slow {
                tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            }
            if refused {
                let text = "The user rejected permission to use this specific tool call.";
                return Err(ToolError::Rejected(text.into()));
            }
            Ok(decision.into())
        })
    }
    fn confine<'a>(&'a self) -> BoxFuture<'a, Result<Option<Policy>, ToolError>> {
        let sandbox = self.sandbox.lock().unwrap().clone();
        Box::pin(async move { Ok(sandbox.map(|(policy, _)| policy)) })
    }
    fn outside<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Outside>, ToolError>> {
        let sandbox = self.sandbox.lock().unwrap().clone();
        Box::pin(async move {
            let Some((_, spawner)) = sandbox else {
                return Ok(None);
            };
            let freeze = spawner.freeze().await;
            let freeze = freeze.map_err(|error| ToolError::failed(error.to_string()))?;
            let policy = None;
            Ok(Some(Outside { policy, freeze }))
        })
    }
    fn record_intent<'a>(&'a self, _input: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn read_rules(&self) -> ReadRules {
        Box::new(|_: &Path| Action::Allow)
    }
    fn denies_address(&self, _url: &str) -> bool {
        false
    }
    fn denies_page(&self, _url: &str) -> bool {
        false
    }
    fn started(&self, input: &Value) {
        self.note(format!("started {input}"));
    }
    fn progress(&self, title: Option<String>, metadata: Value) {
        self.note(format!("progress {}", title.unwrap_or_default()));
        self.progress.lock().unwrap().push(metadata);
    }
    fn publish(&self, event: Event) {
        self.note(format!("publish {}", event.kind()));
    }
    fn subagent<'a>(
        &'a self,
        request: SubagentRequest,
    ) -> BoxFuture<'a, Result<SubagentAnswer, ToolError>> {
        self.note(format!("subagent {} {}", request.agent, request.prompt));
        Box::pin(async {
            Ok(SubagentAnswer {
                session_id: "ses_child".into(),
                model: ModelRef {
                    provider_id: "mock".into(),
                    model_id: "m1".into(),
                    variant: None,
                },
                text: "sub says done".into(),
            })
        })
    }
    fn skills(&self) -> Vec<SkillEntry> {
        self.skills.lock().unwrap().clone()
    }
    fn agents(&self) -> Vec<AgentEntry> {
        vec![AgentEntry {
            name: "general".into(),
            description: "does things".into(),
            subagent: true,
        }]
    }
    fn set_todos<'a>(&'a self, todos: Vec<Todo>) -> BoxFuture<'a, Result<(), ToolError>> {
        *self.todos.lock().unwrap() = todos;
        Box::pin(async { Ok(()) })
    }
    fn nearby_instructions(&self, _file: &Path) -> Vec<NearbyInstruction> {
        self.nearby.lock().unwrap().clone()
    }
}

/// A project folder with the bundled tools.
pub(crate) struct Room {
    pub(crate) runtime: ToolRuntime,
    pub(crate) host: Arc<Host>,
    pub(crate) limits: Limits,
    pub(crate) spawner: Spawner,
    base: tempfile::TempDir,
}

impl Room {
    pub(crate) fn new() -> Self {
        let runtime = ToolRuntime::new();
        let options = Options {
            shell: Some("/bin/sh".into()),
            ..Options::default()
        };
        register_all(&runtime, &options).unwrap();
        let base = tempfile::tempdir().unwrap();
        for dir in ["project", "artifacts", "outside"] {
            std::fs::create_dir(base.path().join(dir)).unwrap();
        }
        Self {
            runtime,
            host: Arc::default(),
            limits: Limits::default(),
            spawner: Spawner::new().unwrap(),
            base,
        }
    }
    pub(crate) fn project(&self) -> PathBuf {
        self.base.path().join("project")
    }
    pub(crate) fn outside(&self) -> PathBuf {
        self.base.path().join("outside")
    }
    pub(crate) fn artifacts(&self) -> PathBuf {
        self.base.path().join("artifacts")
    }
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.project().join(path)).unwrap()
    }
    pub(crate) fn call(&self, tool: &str, input: Value) -> ToolCall {
        ToolCall {
            call_id: "call_1".into(),
            session_id: "ses_1".into(),
            message_id: "msg_1".into(),
            agent: "build".into(),
            tool: tool.into(),
            input,
            provenance: outrigger_protocol::provenance::Provenance::default(),
        }
    }
    pub(crate) fn context(&self, call: &ToolCall) -> ToolContext {
        let mut ctx = ToolContext::new(
            call.clone(),
            self.project(),
            self.project(),
            self.host.clone(),
            self.spawner.clone(),
            self.artifacts(),
        );
        ctx.limits = self.limits.clone();
        ctx
    }
    pub(crate) async fn execute(&self, tool: &str, input: Value) -> Executed {
        let call = self.call(tool, input);
        let ctx = self.context(&call);
        self.runtime.execute(call, ctx).await
    }
    /// Returns the output of a call that must work, with the room's folder written as `ROOM`.
    pub(crate) async fn output(&self, tool: &str, input: Value) -> ToolOutput {
        match self.execute(tool, input).await.outcome {
            ToolOutcome::Completed { mut output, .. } => {
                output.output = self.plain(&output.output);
                output
            }
            ToolOutcome::Failed { message, .. } => panic!("{tool}: {message}"),
        }
    }
    /// Returns code and text of a call that must fail.
    pub(crate) async fn failure(&self, tool: &str, input: Value) -> (String, String) {
        match self.execute(tool, input).await.outcome {
            ToolOutcome::Failed { code, message, .. } => (code, self.plain(&message)),
            ToolOutcome::Completed { output, .. } => panic!("{tool} worked: {}", output.output),
        }
    }
    pub(crate) fn plain(&self, text: &str) -> String {
        text.replace(&self.base.path().display().to_string(), "ROOM")
    }
    /// Returns the questions as `permission patterns always`, with the room's folder written as
    /// `ROOM`.
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut asks = self.host.asks.lock().unwrap();
        asks.drain(..)
            .map(|a| {
                self.plain(&format!(
                    "{} {} {}",
                    a.permission,
                    json!(a.patterns),
                    json!(a.always)
                ))
            })
            .collect()
    }
}
