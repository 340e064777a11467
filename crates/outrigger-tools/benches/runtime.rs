//! `cargo xtask bench runtime`: what the tool runtime costs over a bare function call, alone and with its two commits (the
//! intent before, the outcome after), and what a check of the guard costs (limits: under 100 us and under 10 us at p50).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "a benchmark"
)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use outrigger_kernel::guard;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::event::Event;
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::permission::Action;
use outrigger_protocol::session::Todo;
use outrigger_protocol::tool::{ToolCall, ToolOutcome, ToolOutput, ToolSpec};
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::{Policy, Spawner};
use outrigger_store::Store;
use outrigger_tools::{
    AgentEntry, FnTool, HookVerdict, PermissionAsk, ReadRules, SkillEntry, SubagentAnswer,
    SubagentRequest, ToolContext, ToolError, ToolHost, ToolRuntime,
};
use serde_json::{Value, json};

const RUNS: usize = 5_000;

/// A session that allows everything; with a store it writes the intent down before the tool runs.
struct Host(Option<Store>);

impl ToolHost for Host {
    fn hooks<'a>(&'a self, _point: HookPoint, payload: HookPayload) -> BoxFuture<'a, HookVerdict> {
        Box::pin(async {
            HookVerdict {
                output: payload.output,
                ..HookVerdict::default()
            }
        })
    }
    fn ask<'a>(&'a self, _ask: PermissionAsk) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Ok("allow".into()) })
    }
    fn record_intent<'a>(&'a self, _input: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async {
            let Some(store) = &self.0 else { return Ok(()) };
            let record = AuditRecord {
                trace_id: "trn_01JD000000000000000000".into(),
                session_id: Some("ses_01JD000000000000000000".into()),
                subject: Some("sum call_1".into()),
                input_hash: Some("ab".repeat(32)),
                ..AuditRecord::new(AuditKind::ToolIntent, 1, "run")
            };
            let written = store.audit(1, vec![record]).await;
            written.map_err(|error| error.to_string())
        })
    }
    fn confine<'a>(&'a self) -> BoxFuture<'a, Result<Option<Policy>, ToolError>> {
        Box::pin(std::future::ready(Ok(None)))
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
    fn started(&self, _input: &Value) {}
    fn progress(&self, _title: Option<String>, _metadata: Value) {}
    fn publish(&self, _event: Event) {}
    fn subagent<'a>(
        &'a self,
        _request: SubagentRequest,
    ) -> BoxFuture<'a, Result<SubagentAnswer, ToolError>> {
        Box::pin(async { Err(ToolError::failed("none")) })
    }
    fn skills(&self) -> Vec<SkillEntry> {
        Vec::new()
    }
    fn agents(&self) -> Vec<AgentEntry> {
        Vec::new()
    }
    fn set_todos<'a>(&'a self, _todos: Vec<Todo>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async { Ok(()) })
    }
}

fn sum(input: &Value) -> ToolOutput {
    let n = input["a"].as_i64().unwrap_or(0) + input["b"].as_i64().unwrap_or(0);
    ToolOutput {
        title: "sum".into(),
        output: n.to_string(),
        metadata: json!({ "n": n }),
        attachments: None,
    }
}

fn tool() -> FnTool {
    let spec = ToolSpec {
        name: "sum".into(),
        description: "adds".into(),
        input_schema: json!({"type": "object", "required": ["a", "b"],
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "text": {"type": "string"}}}),
        read_only: true,
        hidden: false,
        source: "builtin".into(),
    };
    let ask = PermissionAsk {
        permission: "sum".into(),
        patterns: vec!["*".into()],
        always: vec!["*".into()],
        metadata: json!({}),
        ..PermissionAsk::default()
    };
    FnTool::new(spec, |input, _| async move { Ok(sum(&input)) }).asks(ask)
}

fn call() -> ToolCall {
    ToolCall {
        call_id: "call_1".into(),
        session_id: "ses_01JD000000000000000000".into(),
        message_id: "msg_01JD000000000000000000".into(),
        agent: "build".into(),
        tool: "sum".into(),
        input: json!({"a": 2, "b": 3, "text": "as long as a usual argument of a tool, or nearly so"}),
        provenance: outrigger_protocol::provenance::Provenance::default(),
    }
}

fn tell(what: &str, goal: &str, mut us: Vec<f64>) {
    us.sort_by(f64::total_cmp);
    let at = |part: f64| {
        us.get((us.len() as f64 * part) as usize)
            .copied()
            .unwrap_or_default()
    };
    println!(
        "{what:<48} p50 {:>7.2} us  p99 {:>7.2} us  {goal}",
        at(0.5),
        at(0.99)
    );
}

fn us(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e6
}

fn guard_check() -> Vec<f64> {
    let point = HookPoint::ToolAfterResult;
    let mut output = json!({"title": "t", "output": "x".repeat(2_000), "status": "failed_verify",
        "metadata": {"isError": true, "truncated": false}});
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let began = Instant::now();
        let kept = guard::keep(point, black_box(&output));
        let breaches = guard::uphold(point, &kept, black_box(&mut output));
        times.push(us(began));
        assert!(breaches.is_empty());
    }
    times
}

async fn full(store: Option<Store>) -> Vec<f64> {
    let folder = tempfile::tempdir().unwrap();
    let runtime = ToolRuntime::new();
    runtime.register(Arc::new(tool())).unwrap();
    let ctx = ToolContext::new(
        call(),
        folder.path().to_owned(),
        folder.path().to_owned(),
        Arc::new(Host(store.clone())),
        Spawner::new().unwrap(),
        folder.path().join("artifacts"),
    );
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let (call, ctx) = (call(), ctx.clone());
        let began = Instant::now();
        let done = runtime.execute(call, ctx).await;
        if let Some(store) = &store {
            let record = LogRecord::Tool(Box::new(done.record));
            store.append(1, vec![record]).await.unwrap();
        }
        times.push(us(began));
        let ToolOutcome::Completed { .. } = done.outcome else {
            panic!("{:?}", done.outcome)
        };
    }
    times
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut bare = Vec::new();
        for _ in 0..RUNS {
            let input = call().input;
            let began = Instant::now();
            black_box(sum(black_box(&input)));
            bare.push(us(began));
        }
        tell("the bare function", "", bare);
        tell("execute, nothing written", "", full(None).await);
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(&folder.path().join("store.db")).unwrap();
        tell(
            "execute with its two commits",
            "goal: p50 under 100 us",
            full(Some(store)).await,
        );
        tell(
            "a check of the guard",
            "goal: p50 under 10 us",
            guard_check(),
        );
    });
}
