//! A bridge as a provider of contracts: swapped for the local machine, nothing else changes (C11).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_bridge::Remote;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::event::Event;
use outrigger_protocol::permission::Action;
use outrigger_protocol::session::Todo;
use outrigger_protocol::tool::{ToolCall, ToolOutcome};
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::{Policy, Spawner};
use outrigger_tools::builtin::{Options, register_all};
use outrigger_tools::routes::{Provider, Route, Routes};
use outrigger_tools::{
    AgentEntry, CancelFlag, HookVerdict, PermissionAsk, ReadRules, SkillEntry, SubagentAnswer,
    SubagentRequest, ToolContext, ToolError, ToolHost, ToolRuntime,
};
use serde_json::{Value, json};

use crate::support::*;

struct Host;

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
        Box::pin(std::future::ready(Ok(())))
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

fn runtime(routes: Routes) -> ToolRuntime {
    let runtime = ToolRuntime::new();
    register_all(&runtime, &Options::default()).unwrap();
    runtime.bind(routes);
    runtime
}

fn through(remote: Arc<dyn Provider>) -> Routes {
    let rule = Route {
        provider: "box".into(),
        ..Route::default()
    };
    Routes::new([("box".to_owned(), remote)].into(), vec![rule]).unwrap()
}

fn remote(world: &World) -> Arc<dyn Provider> {
    Arc::new(Remote::new("box", &world.url(), TOKEN.into(), false).unwrap())
}

fn context(folder: &Path, tool: &str, input: Value) -> (ToolCall, ToolContext) {
    let call = ToolCall {
        call_id: "call_1".into(),
        session_id: "ses_1".into(),
        message_id: "msg_1".into(),
        agent: "build".into(),
        tool: tool.into(),
        input,
        provenance: outrigger_protocol::provenance::Provenance::default(),
    };
    let ctx = ToolContext::new(
        call.clone(),
        folder.to_owned(),
        folder.to_owned(),
        Arc::new(Host),
        Spawner::new().unwrap(),
        folder.join("artifacts"),
    );
    (call, ctx)
}

async fn run(runtime: &ToolRuntime, folder: &Path, tool: &str, input: Value) -> (String, String) {
    let (call, ctx) = context(folder, tool, input);
    match runtime.execute(call, ctx).await.outcome {
        ToolOutcome::Completed { output, .. } => ("completed".into(), output.output),
        ToolOutcome::Failed { code, message, .. } => (code, message),
    }
}

/// `BHV-CAPABILITY-PROVIDER-ROUTING`: the same call, by the same runtime, is done here or there as the routes say; what the
/// tool, its schema and its checks are does not change.
#[tokio::test]
async fn bhv_capability_provider_routing() {
    let world = World::new(|_| {}).await;
    let local = tempfile::tempdir().unwrap();
    let here = std::fs::canonicalize(local.path()).unwrap();
    std::fs::write(here.join("a.txt"), "here").unwrap();
    let runtime = runtime(Routes::default());
    let (state, said) = run(&runtime, &here, "read", json!({"filePath": "a.txt"})).await;
    assert!(state == "completed" && said.contains("1: here"), "{said}");
    runtime.bind(through(remote(&world)));
    for (tool, input, asked) in [
        (
            "read",
            json!({"filePath": "a.txt"}),
            r#"read {"filePath":"a.txt"}"#,
        ),
        (
            "read",
            json!({"filePath": here.join("a.txt"), "offset": 2}),
            r#"read {"filePath":"a.txt","offset":2}"#,
        ),
        (
            "write",
            json!({"filePath": "b.txt", "content": "x"}),
            r#"write {"filePath":"b.txt","content":"x"}"#,
        ),
        (
            "edit",
            json!({"filePath": "not/here.txt", "oldString": "old", "newString": "new"}),
            r#"edit {"filePath":"not/here.txt","oldString":"old","newString":"new"}"#,
        ),
        (
            "bash",
            json!({"command": "ls", "timeout": 5000}),
            r#"exec {"command":"ls","timeout":5000}"#,
        ),
    ] {
        let got = run(&runtime, &here, tool, input).await;
        assert_eq!(got, ("completed".to_owned(), asked.to_owned()));
    }
    // The checks of this side hold all the same, and nothing was done here.
    let (code, _) = run(&runtime, &here, "read", json!({})).await;
    assert_eq!(code, "tool.invalid_input");
    assert!(!here.join("b.txt").exists());
    assert_eq!(std::fs::read_to_string(here.join("a.txt")).unwrap(), "here");
    runtime.bind(Routes::default());
    let (_, said) = run(&runtime, &here, "read", json!({"filePath": "a.txt"})).await;
    assert!(said.contains("1: here"), "{said}");
}

#[tokio::test]
async fn refusals_and_losses_are_reported_and_a_lost_connection_is_made_again() {
    let world = World::new(|_| {}).await;
    let here = tempfile::tempdir().unwrap();
    let runtime = runtime(through(remote(&world)));
    let go = |input: Value| run(&runtime, here.path(), "bash", input);
    let (code, said) = go(json!({"command": "fail"})).await;
    assert_eq!((code.as_str(), said.as_str()), ("tool.failed", "as asked"));
    let (_, said) = go(json!({"command": "ls", "workdir": "/etc"})).await;
    assert!(
        said.starts_with("The connector `box` refused the call: ")
            && said.ends_with("[bridge.path]"),
        "{said}"
    );
    // Given up here, it ends there.
    let (call, mut ctx) = context(here.path(), "bash", json!({"command": "hang"}));
    let (switch, flag) = CancelFlag::new();
    ctx.cancel = flag;
    let (done, ()) = tokio::join!(runtime.execute(call, ctx), async {
        world.wait_until_running(1).await;
        switch.send(true).unwrap();
    });
    assert_eq!(done.record.outcome, "tool.cancelled");
    world.wait_until_running(0).await;
    assert_eq!(go(json!({"command": "ls"})).await.0, "completed");

    // Nobody is there.
    let nobody = Remote::new("box", "ws://127.0.0.1:1", TOKEN.into(), false).unwrap();
    runtime.bind(through(Arc::new(nobody)));
    let (code, said) = go(json!({"command": "ls"})).await;
    assert!(
        code == "tool.failed" && said.contains("Cannot reach"),
        "{said}"
    );
    // Somebody, who does not know us.
    let stranger = Remote::new("box", &world.url(), "another token, long".into(), false).unwrap();
    runtime.bind(through(Arc::new(stranger)));
    let (code, said) = go(json!({"command": "ls"})).await;
    assert!(code == "tool.failed" && said.contains("401"), "{said}");
    assert!(!said.contains("another token"), "{said}");
}

#[tokio::test]
async fn a_bridge_that_goes_away_in_the_middle_leaves_the_outcome_unknown() {
    let world = World::new(|options| options.idle = Duration::from_secs(3)).await;
    let here = tempfile::tempdir().unwrap();
    let runtime = runtime(through(remote(&world)));
    let (code, said) = run(&runtime, here.path(), "bash", json!({"command": "hang"})).await;
    assert_eq!(code, "tool.failed");
    assert!(
        said.contains("whether the call was made is not known"),
        "{said}"
    );
    world.stop();
    assert_eq!(world.executor.running.load(Ordering::SeqCst), 0);
}

/// A call that the bridge would not take is refused here: sent, it would cost those beside it their connection.
#[tokio::test]
async fn a_call_that_is_too_large_costs_no_other() {
    let world = World::new(|options| options.frame_bytes = 64 * 1024).await;
    let here = tempfile::tempdir().unwrap();
    let runtime = runtime(through(remote(&world)));
    let (call, mut ctx) = context(here.path(), "bash", json!({"command": "hang"}));
    let (switch, flag) = CancelFlag::new();
    ctx.cancel = flag;
    let (done, ()) = tokio::join!(runtime.execute(call, ctx), async {
        world.wait_until_running(1).await;
        let large = json!({"filePath": "a", "content": "x".repeat(100 * 1024)});
        let (code, said) = run(&runtime, here.path(), "write", large).await;
        assert_eq!(code, "tool.failed");
        assert!(
            said.contains("at most 65536 are taken [bridge.too_large]"),
            "{said}"
        );
        world.wait_until_running(1).await;
        switch.send(true).unwrap();
    });
    assert_eq!(done.record.outcome, "tool.cancelled");
}

/// Large calls and large answers at the same time: neither side waits for the other to read.
#[tokio::test(flavor = "multi_thread")]
async fn large_frames_in_both_directions_do_not_block_each_other() {
    let world = World::new(|_| {}).await;
    let here = tempfile::tempdir().unwrap();
    let runtime = runtime(through(remote(&world)));
    let content = "x".repeat(6 * 1024 * 1024);
    let calls = (0..6).map(|n| {
        let input = json!({"filePath": format!("a{n}"), "content": content});
        run(&runtime, here.path(), "write", input)
    });
    let done = futures_util::future::join_all(calls);
    let done = tokio::time::timeout(Duration::from_secs(120), done).await;
    for (code, said) in done.unwrap() {
        assert_eq!(
            code,
            "completed",
            "{}",
            said.chars().take(300).collect::<String>()
        );
    }
}

/// A bridge whose machine is gone answers nothing, pings neither.
#[tokio::test]
async fn a_bridge_without_a_sign_of_life_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let silent =
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            #[expect(clippy::result_large_err, reason = "the form of tungstenite's callback")]
        let agree = |_: &tokio_tungstenite::tungstenite::handshake::server::Request,
                     mut answer: tokio_tungstenite::tungstenite::handshake::server::Response| {
            let name = "sec-websocket-protocol";
            let value = "outrigger.bridge.v1".parse().unwrap();
            answer.headers_mut().insert(name, value);
            Ok(answer)
        };
            let mut socket = tokio_tungstenite::accept_hdr_async(stream, agree)
                .await
                .unwrap();
            let hello = json!({"type": "hello", "protocol": 1, "root": "/", "contracts": []});
            let hello = tokio_tungstenite::tungstenite::Message::text(hello.to_string());
            futures_util::SinkExt::send(&mut socket, hello)
                .await
                .unwrap();
            // Neither reads nor closes.
            std::future::pending::<()>().await;
        });
    let here = tempfile::tempdir().unwrap();
    let remote = Remote::new("box", &url, TOKEN.into(), false).unwrap();
    let remote = remote.with_pings(Duration::from_millis(100));
    let runtime = runtime(through(Arc::new(remote)));
    let call = run(&runtime, here.path(), "bash", json!({"command": "ls"}));
    let (code, said) = tokio::time::timeout(Duration::from_secs(120), call)
        .await
        .unwrap();
    assert_eq!(code, "tool.failed");
    assert!(said.contains("was lost"), "{said}");
    silent.abort();
}
