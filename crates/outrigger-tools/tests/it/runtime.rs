//! Order, validation, hooks, limits, deadlines.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::descriptor::{Constraints, Declared};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::tool::{ToolOutcome, ToolOutput, ToolSpec};
use outrigger_tools::{
    CancelFlag, FnTool, PermissionAsk, Tool, ToolContext, ToolError, ToolRuntime, builtin,
};
use serde_json::{Value, json};

use crate::support::Room;

fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: "for tests".into(),
        input_schema: json!({"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}),
        read_only: true,
        hidden: false,
        source: "plugin:test".into(),
    }
}

fn answer(text: &str) -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput {
        title: "t".into(),
        output: text.into(),
        ..ToolOutput::default()
    })
}

fn add(room: &Room, tool: FnTool) {
    room.runtime.register(Arc::new(tool)).unwrap();
}

#[tokio::test]
async fn a_call_goes_through_every_stage_in_order() {
    let room = Room::new();
    let ask = PermissionAsk {
        permission: "demo".into(),
        patterns: vec!["*".into()],
        always: vec!["*".into()],
        metadata: json!({}),
        ..PermissionAsk::default()
    };
    let tool = FnTool::new(spec("demo"), |input, ctx: ToolContext| async move {
        ctx.progress(Some("working".into()), json!({"at": 1}));
        answer(&format!("n is {}", input["n"]))
    });
    add(&room, tool.asks(ask));
    room.host.hook(HookPoint::ToolBeforeCall, |mut o| {
        o["args"]["n"] = json!(2);
        Ok(o)
    });
    room.host.hook(HookPoint::ToolAfterResult, |mut o| {
        o["output"] = json!(format!("{} [seen]", o["output"].as_str().unwrap()));
        o["metadata"]["mark"] = json!(true);
        Ok(o)
    });
    let done = room.execute("demo", json!({"n": 1})).await;
    insta::assert_snapshot!(room.host.lines(), @r#"
    hooks tool.before_call {"tool":"demo","sessionID":"ses_1","callID":"call_1"} -> {"args":{"n":1}}
    started {"n":2}
    ask demo ["*"] always ["*"]
    progress working
    hooks tool.after_result {"tool":"demo","sessionID":"ses_1","callID":"call_1","args":{"n":2}} -> {"title":"t","output":"n is 2","metadata":{"truncated":false}}
    "#);
    assert_eq!(
        done.outcome,
        ToolOutcome::Completed {
            input: json!({"n": 2}),
            output: ToolOutput {
                title: "t".into(),
                output: "n is 2 [seen]".into(),
                metadata: json!({"truncated": false, "mark": true}),
                attachments: None,
            },
        }
    );
    assert_eq!(done.record.permissions, ["demo * -> allow"]);
    assert_eq!(
        (done.record.outcome.as_str(), &done.record.call.input),
        ("completed", &json!({"n": 1}))
    );
}

#[tokio::test]
async fn bad_input_is_refused_before_anyone_is_asked() {
    let room = Room::new();
    for (tool, input, code, text) in [
        (
            "bash",
            json!({}),
            "tool.invalid_input",
            "The bash tool was called with invalid arguments: SchemaError(Missing key\n  at [\"command\"]).\nPlease rewrite the input so it satisfies the expected schema.",
        ),
        (
            "bash",
            json!("ls"),
            "tool.invalid_input",
            "SchemaError(Expected object, got \"ls\")",
        ),
        (
            "bash",
            Value::Null,
            "tool.invalid_input",
            "Expected object, got null",
        ),
        (
            "bash",
            json!({"command": "x", "timeout": 0}),
            "tool.invalid_input",
            "Expected a value greater than 0, got 0",
        ),
        (
            "read",
            json!({"filePath": "x", "offset": -1}),
            "tool.invalid_input",
            "greater than or equal to 0",
        ),
        (
            "nosuch",
            json!({}),
            "tool.not_found",
            "Model tried to call unavailable tool 'nosuch'. Available tools: ",
        ),
        (
            "question",
            json!({"questions": []}),
            "tool.failed",
            "There is no question in this call",
        ),
    ] {
        let (got, message) = room.failure(tool, input).await;
        assert_eq!(got, code, "{tool}");
        assert!(message.contains(text), "{message}");
    }
    assert_eq!(room.asked(), [""; 0]);
}

#[tokio::test]
async fn arguments_that_a_hook_changed_are_checked_again() {
    for (args, code) in [
        (json!({"n": "two"}), "tool.invalid_input"),
        (json!({}), "tool.invalid_input"),
        (json!("text"), "tool.invalid_input"),
        (Value::Null, "tool.invalid_input"),
    ] {
        let room = Room::new();
        let runs = Arc::new(AtomicU32::new(0));
        let count = runs.clone();
        add(
            &room,
            FnTool::new(spec("demo"), move |_, _| {
                count.fetch_add(1, Ordering::SeqCst);
                async { answer("ran") }
            }),
        );
        room.host.hook(HookPoint::ToolBeforeCall, move |_| {
            Ok(json!({"args": args}))
        });
        let (got, message) = room.failure("demo", json!({"n": 1})).await;
        assert_eq!(got, code);
        assert!(
            message.starts_with("A plugin changed the arguments of the demo tool"),
            "{message}"
        );
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        assert!(!room.host.lines().contains("started"));
    }
}

// A rule is asked about what will run, not about what the model wrote (invariant 7).
#[tokio::test]
async fn permission_is_asked_for_the_rewritten_command() {
    let room = Room::new();
    room.host.hook(HookPoint::ToolBeforeCall, |_| {
        Ok(json!({"args": {"command": "echo rewritten"}}))
    });
    let output = room
        .output("bash", json!({"command": "echo original"}))
        .await;
    assert_eq!(output.output, "rewritten\n");
    assert_eq!(room.asked(), [r#"bash ["echo rewritten"] ["echo *"]"#]);
}

#[tokio::test]
async fn hooks_that_throw_become_the_error_text() {
    let room = Room::new();
    room.host.hook(HookPoint::ToolBeforeCall, |_| {
        Err("blocked by recorder: bash".into())
    });
    let got = room
        .failure("bash", json!({"command": "echo x > ran.txt"}))
        .await;
    assert_eq!(
        got,
        ("tool.blocked".into(), "blocked by recorder: bash".into())
    );
    assert!(!room.project().join("ran.txt").exists());

    room.host.hook(HookPoint::ExecuteBeforeShell, |_| {
        Err("no env for you".into())
    });
    let got = room
        .failure("bash", json!({"command": "echo x > ran.txt"}))
        .await;
    assert_eq!(got, ("tool.blocked".into(), "no env for you".into()));
    assert!(!room.project().join("ran.txt").exists());

    room.host
        .hook(HookPoint::ToolAfterResult, |_| Err("after threw".into()));
    let got = room.failure("bash", json!({"command": "echo x"})).await;
    assert_eq!(got, ("tool.blocked".into(), "after threw".into()));
}

#[tokio::test]
async fn a_refusal_is_the_hosts_text_and_the_after_hook_does_not_run() {
    let room = Room::new();
    *room.host.refuse.lock().unwrap() = Some("bash");
    let done = room
        .execute("bash", json!({"command": "echo x > ran.txt"}))
        .await;
    assert_eq!(done.record.outcome, "tool.rejected");
    assert_eq!(done.record.permissions, ["bash echo x > ran.txt -> deny"]);
    assert!(!room.host.lines().contains("tool.after_result"));
    assert!(!room.project().join("ran.txt").exists());
}

#[tokio::test]
async fn long_output_of_any_tool_is_cut_and_kept() {
    let room = Room::new();
    add(
        &room,
        FnTool::new(spec("long"), |_, _| async {
            answer(&(0..3000).map(|n| format!("line {n}\n")).collect::<String>())
        }),
    );
    let output = room.output("long", json!({"n": 1})).await;
    assert!(
        output
            .output
            .contains("line 1999\n\n...1001 lines truncated..."),
        "{}",
        output.output
    );
    assert_eq!(output.metadata["truncated"], true);
    let saved = output.metadata["outputPath"].as_str().unwrap();
    assert_eq!(
        std::fs::read_to_string(saved).unwrap().lines().count(),
        3000
    );
    // The model can read it without a question about a folder outside.
    room.asked();
    let read = room
        .output(
            "read",
            json!({"filePath": saved, "offset": 2500, "limit": 1}),
        )
        .await;
    assert!(read.output.contains("2500: line 2499"), "{}", read.output);
    assert!(
        !room
            .asked()
            .iter()
            .any(|ask| ask.starts_with("external_directory"))
    );
}

#[tokio::test]
async fn neither_a_tool_nor_a_hook_gets_around_the_limits() {
    let room = Room::new();
    let flood = "x\n".repeat(500_000);
    let text = flood.clone();
    add(
        &room,
        FnTool::new(spec("liar"), move |_, _| {
            let text = text.clone();
            async move {
                Ok(ToolOutput {
                    output: text,
                    metadata: json!({"truncated": false}),
                    ..ToolOutput::default()
                })
            }
        }),
    );
    let output = room.output("liar", json!({"n": 1})).await;
    assert!(output.output.len() < 128 * 1024);
    room.host.hook(HookPoint::ToolAfterResult, move |mut o| {
        o["output"] = json!(flood);
        Ok(o)
    });
    let output = room.output("bash", json!({"command": "echo"})).await;
    assert!(output.output.len() < 128 * 1024);
    assert_eq!(output.metadata["truncated"], true);
}

/// A hook that replaces the text and omits the path of the full output has removed that; appending a note does not. A file
/// path from the tool's own text never deletes that file.
#[tokio::test]
async fn the_whole_output_goes_with_the_text_that_a_hook_took_out() {
    let room = Room::new();
    let own = room.file("own.txt", b"mine").display().to_string();
    let named = Arc::new(Mutex::new(own.clone()));
    let names = Arc::clone(&named);
    add(
        &room,
        FnTool::new(spec("demo"), move |_, _| {
            let named = names.lock().unwrap().clone();
            async move {
                let metadata = json!({"truncated": true, "outputPath": named});
                let output = "x".to_owned();
                Ok(ToolOutput {
                    output,
                    metadata,
                    ..ToolOutput::default()
                })
            }
        }),
    );
    let long = json!({"command": "seq 100000"});
    let path = |output: &ToolOutput| output.metadata["outputPath"].as_str().unwrap().to_owned();
    room.host.hook(HookPoint::ToolAfterResult, |mut left| {
        left["output"] = json!(format!("{} and more", left["output"].as_str().unwrap()));
        Ok(left)
    });
    let noted = room.output("bash", long.clone()).await;
    assert!(std::path::Path::new(&path(&noted)).exists());
    let (paths, seen) = std::sync::mpsc::channel();
    let paths = std::sync::Mutex::new(paths);
    room.host.hook(HookPoint::ToolAfterResult, move |left| {
        let path = left["metadata"]["outputPath"].as_str().unwrap().to_owned();
        paths.lock().unwrap().send(path).unwrap();
        Ok(json!({"output": "?", "metadata": {"exit": 0, "truncated": true}}))
    });
    let replaced = room.output("bash", long).await;
    assert_eq!(replaced.output, "?");
    assert!(!std::path::Path::new(&seen.recv().unwrap()).exists());
    // The calls of a room have one ID.
    for path in [own, path(&noted)] {
        *named.lock().unwrap() = path.clone();
        room.output("demo", json!({"n": 1})).await;
        assert!(std::path::Path::new(&path).exists(), "{path}");
    }
}

#[tokio::test]
async fn what_hooks_leave_is_read_tolerantly() {
    let room = Room::new();
    add(
        &room,
        FnTool::new(spec("demo"), |_, _| async { answer("out") }),
    );
    for (left, want) in [
        (
            json!({"title": "t", "output": 42, "metadata": {"truncated": false}}),
            ("t", "42"),
        ),
        (
            json!({"title": null, "output": "new", "metadata": 3}),
            ("t", "new"),
        ),
        (json!("gone"), ("t", "out")),
        (json!({}), ("t", "out")),
    ] {
        room.host
            .hook(HookPoint::ToolAfterResult, move |_| Ok(left));
        let output = room.output("demo", json!({"n": 1})).await;
        assert_eq!((output.title.as_str(), output.output.as_str()), want);
        assert_eq!(output.metadata, json!({"truncated": false}));
    }
}

#[tokio::test]
async fn attachments_have_identifiers_before_hooks_see_them() {
    let room = Room::new();
    room.file("i.png", b"\x89PNG");
    let output = room.output("read", json!({"filePath": "i.png"})).await;
    let attachment = &output.attachments.unwrap()[0];
    assert_eq!(attachment["url"], "data:image/png;base64,iVBORw==");
    assert_eq!(
        (&attachment["sessionID"], &attachment["messageID"]),
        (&json!("ses_1"), &json!("msg_1"))
    );
    assert!(attachment["id"].as_str().unwrap().starts_with("prt_"));
    assert_eq!(output.output, "Image read successfully");
}

#[tokio::test]
async fn a_tool_that_hangs_panics_or_is_cancelled_costs_its_call() {
    let room = Room::new();
    let hang = |_: Value, ctx: ToolContext| async move {
        ctx.progress(None, json!({"step": 1}));
        std::future::pending::<()>().await;
        answer("never")
    };
    add(
        &room,
        FnTool::new(spec("slow"), hang).deadline(Duration::from_millis(30)),
    );
    let done = room.execute("slow", json!({"n": 1})).await;
    let ToolOutcome::Failed {
        code,
        message,
        metadata,
        ..
    } = done.outcome
    else {
        panic!()
    };
    assert_eq!(code, "tool.timeout");
    assert_eq!(
        message,
        "The slow tool did not finish within 30 ms and was stopped."
    );
    assert_eq!(metadata, Some(json!({"step": 1})));

    add(
        &room,
        FnTool::new(spec("bad"), |_, _| async { panic!("inside") }),
    );
    assert_eq!(room.failure("bad", json!({"n": 1})).await.0, "tool.failed");
    // As in a run: the plugins are notified, and there is a record.
    let tool = FnTool::new(spec("worse"), |_, _| async { answer("never") });
    add(&room, tool.deciding(|_| panic!("outside")));
    let done = room.execute("worse", json!({"n": 1})).await;
    assert_eq!(done.record.outcome, "tool.failed");
    let lines = room.host.lines();
    let mut errors = lines
        .lines()
        .filter(|line| line.starts_with("hooks tool.on_error"));
    assert!(errors.any(|line| line.contains("worse")), "{lines}");

    add(&room, FnTool::new(spec("hang"), hang));
    let (switch, flag) = CancelFlag::new();
    let call = room.call("hang", json!({"n": 1}));
    let mut ctx = room.context(&call);
    ctx.cancel = flag;
    let (done, ()) = tokio::join!(room.runtime.execute(call, ctx), async {
        tokio::task::yield_now().await;
        switch.send(true).unwrap();
    });
    assert_eq!(done.record.outcome, "tool.cancelled");
}

struct Flaky {
    spec: ToolSpec,
    runs: AtomicU32,
}

impl Tool for Flaky {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn declares(&self) -> Declared {
        let max_retries = if self.spec.read_only { 2 } else { 0 };
        Declared {
            constraints: Constraints {
                max_retries,
                ..Constraints::default()
            },
            ..Declared::default()
        }
    }
    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move {
            match (input["n"].as_u64(), run) {
                // Like a plugin's tool whose question was refused.
                (Some(4), _) => {
                    let ask = PermissionAsk {
                        permission: "forbidden".to_owned(),
                        patterns: vec!["*".to_owned()],
                        ..PermissionAsk::default()
                    };
                    let refused = ctx.ask(ask).await.unwrap_err();
                    Err(ToolError::Unavailable(refused.to_string()))
                }
                (Some(1), 1 | 2) => Err(ToolError::Unavailable("not now".into())),
                (Some(2), _) => Err(ToolError::Failed("no".into())),
                (Some(3), _) => Err(ToolError::Unavailable("never".into())),
                _ => answer("there"),
            }
        })
    }
}

#[tokio::test]
async fn only_read_only_tools_are_called_again_and_only_when_something_was_unavailable() {
    for (read_only, n, runs, outcome) in [
        (true, 1, 3, "completed"),
        (true, 2, 1, "tool.failed"),
        (true, 3, 3, "tool.failed"),
        (true, 4, 1, "tool.failed"),
        (false, 1, 1, "tool.failed"),
    ] {
        let room = Room::new();
        let spec = ToolSpec {
            read_only,
            ..spec("flaky")
        };
        let tool = Arc::new(Flaky {
            spec,
            runs: AtomicU32::new(0),
        });
        room.runtime.register(tool.clone()).unwrap();
        let done = room.execute("flaky", json!({"n": n})).await;
        assert_eq!(
            (
                tool.runs.load(Ordering::SeqCst),
                done.record.outcome.as_str()
            ),
            (runs, outcome)
        );
    }
}

#[tokio::test]
async fn waiting_for_an_answer_does_not_count_against_the_deadline() {
    let room = Room::new();
    add(
        &room,
        FnTool::new(spec("asks"), |_, ctx: ToolContext| async move {
            let ask = PermissionAsk {
                permission: "slow".into(),
                patterns: vec!["x".into()],
                always: vec![],
                metadata: json!({}),
                ..PermissionAsk::default()
            };
            ctx.ask(ask).await?;
            answer("asked")
        })
        .deadline(Duration::from_millis(100)),
    );
    let done = room.execute("asks", json!({"n": 1})).await;
    assert_eq!(
        (done.record.outcome.as_str(), &done.record.permissions[..]),
        ("completed", &["slow x -> allow".to_owned()][..])
    );
}

#[tokio::test]
async fn a_plugins_tool_takes_the_place_of_ours() {
    let room = Room::new();
    let names = |room: &Room| {
        room.runtime
            .specs()
            .into_iter()
            .map(|s| s.name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let before = names(&room);
    assert_eq!(
        before,
        "invalid question bash read glob grep edit write task webfetch todowrite skill apply_patch table python"
    );
    add(
        &room,
        FnTool::new(spec("bash"), |_, _| async { answer("mine") }),
    );
    assert_eq!(names(&room), before);
    assert_eq!(room.output("bash", json!({"n": 1})).await.output, "mine");
    room.runtime.remove_source("plugin:test");
    assert!(!names(&room).contains("bash"));

    let mut broken = spec("broken");
    broken.input_schema = json!({"type": 5});
    let error = room
        .runtime
        .register(Arc::new(FnTool::new(broken, |_, _| async { answer("") })))
        .unwrap_err();
    assert_eq!(error.code(), "tool.bad_schema");
}

#[tokio::test]
async fn invalid_tells_the_model_what_was_wrong_with_its_call() {
    let room = Room::new();
    let error =
        "Model tried to call unavailable tool 'nosuch'. Available tools: bash, invalid, read.";
    let call = room.call("invalid", json!({"tool": "nosuch", "error": error}));
    let ctx = room.context(&call);
    let done = room.runtime.execute(call, ctx).await;
    let ToolOutcome::Completed { output, .. } = done.outcome else {
        panic!()
    };
    assert_eq!(output.title, "Invalid Tool");
    assert_eq!(
        output.output,
        "The arguments provided to the tool are invalid: Model tried to call unavailable tool 'nosuch'. Available tools: bash, invalid, read."
    );
}

/// Removes the descriptions of parameters: the recording has none of OpenCode's texts.
fn without_texts(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|key, value| key != "description" || !value.is_string());
            fields.values_mut().for_each(without_texts);
        }
        Value::Array(items) => items.iter_mut().for_each(without_texts),
        _ => {}
    }
}

#[test]
fn schemas_are_opencodes() {
    let runtime = ToolRuntime::new();
    let options = builtin::Options {
        lsp: true,
        search: Some(crate::web::service("http://127.0.0.1:1")),
        ..builtin::Options::default()
    };
    builtin::register_all(&runtime, &options).unwrap();
    let want: serde_json::Map<String, Value> =
        serde_json::from_str(include_str!("schemas.json")).unwrap();
    let mut shown = Vec::new();
    for spec in runtime.specs() {
        assert_eq!(
            spec.hidden,
            matches!(spec.name.as_str(), "invalid" | "question")
        );
        // OpenCode does not have the tools of bundled plugins.
        if !spec.hidden && spec.source == "builtin" {
            let mut schema = spec.input_schema;
            without_texts(&mut schema);
            assert_eq!(schema, want[&spec.name], "{}", spec.name);
            assert!(spec.description.len() > 150, "{}", spec.name);
            shown.push(spec.name);
        }
    }
    assert_eq!(shown.len(), want.len());
}
