//! Declarations of tools, and how the runtime uses them (D6, D7); contracts and their providers (C11).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use outrigger_protocol::canonical::CanonicalCall;
use outrigger_protocol::descriptor::{Capability, Constraints, Contract, Declared};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::tool::{ToolOutcome, ToolOutput, ToolSpec};
use outrigger_tools::routes::{Invocation, Provider, Route, Routes};
use outrigger_tools::{FnTool, Grant, Stage, ToolContext, ToolError};
use serde_json::{Value, json};

use crate::support::Room;

pub(crate) fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        read_only: false,
        hidden: false,
        source: "plugin:test".into(),
    }
}

pub(crate) fn text(text: &str) -> ToolOutput {
    ToolOutput {
        title: "t".into(),
        output: text.into(),
        ..ToolOutput::default()
    }
}

/// Returns a tool that counts its runs and answers with `answer` of the count.
fn counting(
    room: &Room,
    name: &str,
    declared: Declared,
    answer: fn(u32) -> Result<ToolOutput, ToolError>,
) -> Arc<AtomicU32> {
    let runs = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&runs);
    let tool = FnTool::new(spec(name), move |_, _| {
        let run = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            answer(run)
        }
    });
    room.runtime
        .register(Arc::new(tool.declaring(declared)))
        .unwrap();
    runs
}

#[test]
fn a_descriptor_is_checked_when_the_tool_is_registered() {
    let room = Room::new();
    let constraints = |change: fn(&mut Constraints)| {
        let mut declared = Declared::default();
        change(&mut declared.constraints);
        declared
    };
    for (declared, want) in [
        (Declared::default(), "ok"),
        (constraints(|c| c.max_retries = 1), "tool.bad_descriptor"),
        (
            constraints(|c| c.timeout_ms = Some(0)),
            "tool.bad_descriptor",
        ),
        (
            Declared {
                contract: Some(Contract::Read),
                ..Declared::default()
            },
            "tool.bad_descriptor",
        ),
        // Nothing would enforce them for a plugin's tool.
        (
            Declared {
                capabilities: vec![Capability::FsRead],
                ..constraints(|c| c.allowed_read_roots = Some(vec!["src".into()]))
            },
            "tool.bad_descriptor",
        ),
        (
            Declared {
                output_schema: Some(json!({"type": 5})),
                ..Declared::default()
            },
            "tool.bad_schema",
        ),
        (
            Declared {
                output_schema: Some(json!({"$ref": "http://example.invalid/x.json"})),
                ..Declared::default()
            },
            "tool.bad_schema",
        ),
    ] {
        let tool = FnTool::new(spec("t"), |_, _| async { Ok(text("")) });
        let shown = format!("{declared:?}");
        let got = room.runtime.register(Arc::new(tool.declaring(declared)));
        let code = got.as_ref().map_or_else(|e| e.code(), |()| "ok");
        assert_eq!(code, want, "{shown}");
        assert_eq!(got.is_err_and(|e| e.hint().is_some()), want != "ok");
    }
}

#[test]
fn the_bundled_tools_declare_what_they_need() {
    let room = Room::new();
    let lines: Vec<String> = room
        .runtime
        .descriptors()
        .iter()
        .map(|it| {
            let declared = &it.declared;
            let needs: Vec<&str> = declared.capabilities.iter().map(|c| c.name()).collect();
            format!(
                "{} {} {} [{}] {:?} {}",
                it.spec.name,
                declared.version,
                declared.contract.map_or("-", Contract::name),
                needs.join(" "),
                declared.constraints.sandbox_profile,
                it.is_repeatable(),
            )
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    invalid 1.0.0 - [] NoIsolation false
    question 1.0.0 - [user.ask] NoIsolation true
    bash 1.0.0 exec [process.exec] Configured false
    read 1.0.0 read [fs.read] NoIsolation true
    glob 1.0.0 - [fs.read] NoIsolation true
    grep 1.0.0 - [fs.read] NoIsolation true
    edit 1.0.0 edit [fs.read fs.write] NoIsolation false
    write 1.0.0 write [fs.write] NoIsolation false
    task 1.0.0 - [agent.spawn] NoIsolation false
    webfetch 1.0.0 - [net.connect] NoIsolation true
    todowrite 1.0.0 - [session.write] NoIsolation false
    skill 1.0.0 - [] NoIsolation true
    apply_patch 1.0.0 - [fs.read fs.write] NoIsolation false
    table 1.0.0 - [fs.read fs.write] NoIsolation false
    python 1.0.0 - [process.exec] Configured false
    ");
}

#[tokio::test]
async fn what_was_not_granted_is_refused_by_name() {
    let room = Room::new();
    room.file("a.txt", "old");
    for (granted, tool, input, missing) in [
        (None, "read", json!({"filePath": "a.txt"}), ""),
        (
            Some(vec![Capability::FsRead]),
            "read",
            json!({"filePath": "a.txt"}),
            "",
        ),
        (
            Some(vec![Capability::FsRead]),
            "edit",
            json!({"filePath": "a.txt", "oldString": "old", "newString": "new"}),
            "fs.write",
        ),
        (
            Some(vec![]),
            "edit",
            json!({"filePath": "a.txt", "oldString": "old", "newString": "new"}),
            "fs.read and fs.write",
        ),
        (
            Some(vec![Capability::FsRead]),
            "bash",
            json!({"command": "echo x > a.txt"}),
            "process.exec",
        ),
    ] {
        let call = room.call(tool, input);
        let mut ctx = room.context(&call);
        ctx.granted.extend(granted.map(|list| Grant {
            who: "the agent `plan`".into(),
            capabilities: list.into_iter().collect(),
            how: "add it".into(),
        }));
        room.asked();
        let done = room.runtime.execute(call, ctx).await;
        match done.outcome {
            ToolOutcome::Completed { .. } => assert_eq!(missing, "", "{tool}"),
            ToolOutcome::Failed { code, message, .. } => {
                assert_eq!(code, "tool.not_granted", "{message}");
                assert!(
                    message.starts_with(&format!(
                        "The {tool} tool needs {missing}, which the agent `plan` has not been granted."
                    )),
                    "{message}"
                );
                // Refused before any question.
                assert_eq!(room.asked(), [""; 0]);
            }
        }
    }
    assert_eq!(room.text("a.txt"), "old");
}

#[tokio::test]
async fn only_what_is_safe_to_repeat_is_made_again_with_a_growing_pause() {
    let again = |safe_to_repeat, max_retries| Declared {
        safe_to_repeat,
        constraints: Constraints {
            max_retries,
            retry_backoff_ms: 10,
            ..Constraints::default()
        },
        ..Declared::default()
    };
    let third: fn(u32) -> Result<ToolOutput, ToolError> = |run| match run {
        3 => Ok(text("there")),
        _ => Err(ToolError::Unavailable("not now".into())),
    };
    for (declared, runs, outcome) in [
        (again(true, 2), 3, "completed"),
        (again(true, 1), 2, "tool.failed"),
        (again(true, 0), 1, "tool.failed"),
        (again(false, 0), 1, "tool.failed"),
    ] {
        let room = Room::new();
        let count = counting(&room, "flaky", declared, third);
        let begun = std::time::Instant::now();
        let done = room.execute("flaky", json!({})).await;
        assert_eq!(
            (count.load(Ordering::SeqCst), done.record.outcome.as_str()),
            (runs, outcome)
        );
        assert_eq!(done.record.retries, runs - 1);
        if runs == 3 {
            assert!(begun.elapsed().as_millis() >= 30, "10 ms and 20 ms");
        }
    }
}

#[tokio::test]
async fn an_answer_has_to_satisfy_the_schema_that_the_tool_declares() {
    let object =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    for (schema, answer, want) in [
        (None, "anything", ""),
        (Some(json!({"type": "string"})), "anything", ""),
        (
            Some(json!({"type": "string", "maxLength": 3})),
            "anything",
            "tool.invalid_output",
        ),
        (Some(object.clone()), r#"{"n": 1}"#, ""),
        (Some(object.clone()), r#"{"n": "1"}"#, "tool.invalid_output"),
        (Some(object.clone()), "{}", "tool.invalid_output"),
        (Some(object), "no JSON", "tool.invalid_output"),
    ] {
        let room = Room::new();
        let declared = Declared {
            output_schema: schema,
            ..Declared::default()
        };
        let tool = FnTool::new(spec("t"), move |_, _| async move { Ok(text(answer)) });
        room.runtime
            .register(Arc::new(tool.declaring(declared)))
            .unwrap();
        let done = room.execute("t", json!({})).await;
        let code = match &done.outcome {
            ToolOutcome::Completed { .. } => "",
            ToolOutcome::Failed { code, message, .. } => {
                assert!(
                    message.contains("does not satisfy its own output schema"),
                    "{message}"
                );
                code
            }
        };
        assert_eq!(code, want, "{answer}");
    }
}

#[tokio::test]
async fn equal_calls_of_one_step_run_once_where_the_tool_is_deterministic() {
    for (deterministic_hooks, runs) in [(true, 3), (false, 5)] {
        let room = Room::new();
        let declared = Declared {
            constraints: Constraints {
                deterministic_hooks,
                ..Constraints::default()
            },
            ..Declared::default()
        };
        let count = counting(&room, "t", declared, |run| Ok(text(&format!("run {run}"))));
        let go = |id: &str, message: &str, input: Value| {
            let mut call = room.call("t", input);
            call.call_id = id.into();
            call.message_id = message.into();
            let ctx = room.context(&call);
            room.runtime.execute(call, ctx)
        };
        // Equal in meaning: key order and number format do not matter.
        let (a, b, other) = tokio::join!(
            go("call_1", "msg_1", json!({"x": 1, "y": 2})),
            go("call_2", "msg_1", json!({"y": 2.0, "x": 1})),
            go("call_3", "msg_1", json!({"x": 2})),
        );
        let later = go("call_4", "msg_1", json!({"x": 1, "y": 2})).await;
        let next_step = go("call_5", "msg_2", json!({"x": 1, "y": 2})).await;
        assert_eq!(count.load(Ordering::SeqCst), runs);
        assert_eq!(a.record.fingerprint, b.record.fingerprint);
        assert_eq!(a.record.fingerprint, next_step.record.fingerprint);
        assert_ne!(a.record.fingerprint, other.record.fingerprint);
        let said = |done: &outrigger_tools::Executed| match &done.outcome {
            ToolOutcome::Completed { output, .. } => output.output.clone(),
            ToolOutcome::Failed { message, .. } => panic!("{message}"),
        };
        assert_eq!(
            said(&a) == said(&b) && said(&b) == said(&later),
            deterministic_hooks
        );
        assert_ne!(said(&a), said(&next_step));
        let joined = [&a, &b, &other, &later, &next_step].map(|done| done.record.joined);
        let (first, same) = (false, deterministic_hooks);
        assert_eq!(joined, [first, same, false, same, false]);
    }
}

#[tokio::test]
async fn listeners_are_notified_of_every_stage_and_disturb_nothing() {
    let room = Room::new();
    room.file("a.txt", "text");
    let seen = Arc::new(Mutex::new(Vec::new()));
    room.runtime
        .listen(Arc::new(|_, _| panic!("a listener that fails")));
    let sink = Arc::clone(&seen);
    room.runtime.listen(Arc::new(move |call, stage| {
        let stage = match stage {
            Stage::Canonical { .. } => "canonical".to_owned(),
            other => format!("{other:?}"),
        };
        sink.lock().unwrap().push(format!("{} {stage}", call.tool));
    }));
    room.output("read", json!({"filePath": "a.txt"})).await;
    room.failure("read", json!({})).await;
    room.failure("nosuch", json!({})).await;
    insta::assert_snapshot!(seen.lock().unwrap().join("\n"), @r#"
    read Found { version: "1.0.0" }
    read Validated
    read Granted
    read Hooked { rewritten: false }
    read canonical
    read Decided
    read Routed { contract: Read, provider: "local", rule: None }
    read Started { attempt: 1 }
    read Answered
    read Ended { outcome: "completed" }
    read Found { version: "1.0.0" }
    read Ended { outcome: "tool.invalid_input" }
    nosuch Ended { outcome: "tool.not_found" }
    "#);
}

#[tokio::test]
async fn a_tool_has_the_last_word_about_what_it_never_does() {
    let room = Room::new();
    let tool = FnTool::new(spec("drop"), |_, _| async { Ok(text("dropped")) });
    let tool = tool.deciding(|input| {
        if input["table"] == "users" {
            Err("the table users is never dropped".into())
        } else {
            Ok(())
        }
    });
    room.runtime.register(Arc::new(tool)).unwrap();
    assert_eq!(
        room.output("drop", json!({"table": "tmp"})).await.output,
        "dropped"
    );
    let got = room.failure("drop", json!({"table": "users"})).await;
    assert_eq!(
        got,
        (
            "tool.denied".into(),
            "the table users is never dropped".into()
        )
    );
    assert!(!room.host.lines().contains("started {\"table\":\"users\"}"));
}

#[tokio::test]
async fn a_call_that_has_no_canonical_form_is_refused() {
    let room = Room::new();
    let runs = counting(&room, "t", Declared::default(), |_| Ok(text("ran")));
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let (code, message) = room.failure("t", json!({ "a": deep })).await;
    assert_eq!(code, "tool.malformed");
    assert!(message.contains("deeper than 128"), "{message}");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

/// Answers by fingerprint, and reports the requested contract.
struct Recorded(Mutex<BTreeMap<u64, ToolOutput>>, &'static str);

impl Provider for Recorded {
    fn invoke<'a>(
        &'a self,
        call: Invocation<'a>,
        _ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let known = self.0.lock().unwrap();
        let answer = known
            .get(&call.canonical.fingerprint)
            .cloned()
            .ok_or_else(|| {
                ToolError::failed(format!(
                    "{}: {} {}",
                    self.1,
                    call.contract.name(),
                    call.input
                ))
            });
        Box::pin(async move { answer })
    }
}

pub(crate) fn bind(room: &Room, rules: Vec<Route>) {
    let provider = |name| -> Arc<dyn Provider> { Arc::new(Recorded(Mutex::default(), name)) };
    let providers = ["a", "b"].map(|name| (name.to_owned(), provider(name)));
    room.runtime
        .bind(Routes::new(providers.into(), rules).unwrap());
}

#[tokio::test]
async fn a_call_is_replayed_by_its_fingerprint() {
    let room = Room::new();
    let file = room.file("a.txt", "recorded\n");
    let input = json!({"filePath": "a.txt"});
    let ran = room.execute("read", input.clone()).await;
    let ToolOutcome::Completed { output: first, .. } = ran.outcome.clone() else {
        panic!()
    };
    let fingerprint = ran.record.fingerprint.clone().unwrap();
    std::fs::remove_file(file).unwrap();
    let needs = [Capability::FsRead];
    let canonical = CanonicalCall::of("read", "1.0.0", &input, &needs).unwrap();
    assert_eq!(canonical.hex(), fingerprint);
    let known = BTreeMap::from([(canonical.fingerprint, first.clone())]);
    let recorded: Arc<dyn Provider> = Arc::new(Recorded(Mutex::new(known), "recording"));
    let rule = Route {
        provider: "recording".into(),
        ..Route::default()
    };
    let routes = Routes::new([("recording".to_owned(), recorded)].into(), vec![rule]);
    room.runtime.bind(routes.unwrap());
    for _ in 0..3 {
        let again = room.execute("read", input.clone()).await;
        let ToolOutcome::Completed { mut output, .. } = again.outcome else {
            panic!("{:?}", again.outcome)
        };
        assert_eq!(output.metadata["provider"], "recording");
        output.metadata = first.metadata.clone();
        assert_eq!(output, first);
        assert_eq!(again.record.fingerprint, ran.record.fingerprint);
    }
    let (_, message) = room.failure("read", json!({"filePath": "b.txt"})).await;
    assert_eq!(message, r#"recording: read {"filePath":"b.txt"}"#);
}

/// `BHV-CAPABILITY-PROVIDER-ROUTING`: the first matching rule selects the provider.
#[tokio::test]
async fn bhv_capability_provider_routing() {
    let room = Room::new();
    room.file("src/a.txt", "local\n");
    room.file("b.txt", "local\n");
    let rule = |contract, agent: Option<&str>, path: Option<&str>, provider: &str| Route {
        contract,
        agent: agent.map(str::to_owned),
        path: path.map(Into::into),
        provider: provider.into(),
        ..Route::default()
    };
    bind(
        &room,
        vec![
            rule(Some(Contract::Read), Some("other"), None, "b"),
            rule(Some(Contract::Read), None, Some("src"), "a"),
            rule(Some(Contract::Exec), None, Some("src"), "b"),
            rule(Some(Contract::Exec), Some("build"), None, "a"),
            rule(Some(Contract::Write), None, None, "local"),
            rule(None, None, Some("deep/er"), "b"),
        ],
    );
    for (tool, input, who) in [
        ("read", json!({"filePath": "src/a.txt"}), "a: read"),
        ("read", json!({"filePath": "x/../src/a.txt"}), "a: read"),
        ("read", json!({"filePath": "b.txt"}), ""),
        // `bash` is the tool's name, `exec` its capability.
        ("bash", json!({"command": "echo x"}), "a: exec"),
        (
            "bash",
            json!({"command": "echo x", "workdir": "src"}),
            "b: exec",
        ),
        ("write", json!({"filePath": "deep/er/x", "content": ""}), ""),
        (
            "edit",
            json!({"filePath": "deep/er/y", "oldString": "", "newString": "z"}),
            "b: edit",
        ),
        // Without a contract there is nothing to bind, and nothing bypasses the provider of reads.
        (
            "glob",
            json!({"pattern": "src/*"}),
            "The glob tool works on this machine, and `read` is done by a",
        ),
    ] {
        let got = match room.execute(tool, input.clone()).await.outcome {
            ToolOutcome::Completed { .. } => String::new(),
            ToolOutcome::Failed { message, .. } => message,
        };
        assert_eq!(
            got.starts_with(who) && got.is_empty(),
            who.is_empty(),
            "{tool} {input}: {got}"
        );
        assert!(got.starts_with(who), "{tool} {input}: {got}");
    }
    let nobody = rule(None, None, None, "nobody");
    assert_eq!(
        Routes::new(BTreeMap::new(), vec![nobody]).err().unwrap(),
        "nobody"
    );
}

#[tokio::test]
async fn a_tool_is_held_to_its_roots_through_links_and_dots() {
    let room = Room::new();
    room.file("out/a.txt", "inside\n");
    room.file("src/b.txt", "outside\n");
    std::os::unix::fs::symlink(room.project().join("src"), room.project().join("out/link"))
        .unwrap();
    let roots = |list: &[&str]| Some(list.iter().map(|it| (*it).to_owned()).collect());
    for tool in ["read", "write", "edit", "glob", "grep", "apply_patch"] {
        let narrow = Constraints {
            allowed_read_roots: roots(&["out"]).filter(|_| tool != "write"),
            allowed_write_roots: roots(&["out"])
                .filter(|_| ["write", "edit", "apply_patch"].contains(&tool)),
            ..Constraints::default()
        };
        room.runtime.narrow(tool, &narrow).unwrap();
    }
    for (tool, input, fits) in [
        ("read", json!({"filePath": "out/a.txt"}), true),
        ("read", json!({"filePath": "src/b.txt"}), false),
        ("read", json!({"filePath": "out/../src/b.txt"}), false),
        ("read", json!({"filePath": "out/link/b.txt"}), false),
        ("read", json!({"filePath": "/etc/hostname"}), false),
        ("glob", json!({"pattern": "*", "path": "out"}), true),
        ("glob", json!({"pattern": "*"}), false),
        ("grep", json!({"pattern": "side", "path": "src"}), false),
        (
            "write",
            json!({"filePath": "out/new.txt", "content": "x"}),
            true,
        ),
        (
            "write",
            json!({"filePath": "src/new.txt", "content": "x"}),
            false,
        ),
        (
            "write",
            json!({"filePath": "out/link/new.txt", "content": "x"}),
            false,
        ),
        (
            "edit",
            json!({"filePath": "src/b.txt", "oldString": "out", "newString": "in"}),
            false,
        ),
        (
            "apply_patch",
            json!({"patchText": "*** Begin Patch\n*** Add File: src/c.txt\n+x\n*** End Patch"}),
            false,
        ),
    ] {
        let done = room.execute(tool, input.clone()).await;
        let want = if fits {
            "completed"
        } else {
            "tool.outside_roots"
        };
        assert_eq!(
            done.record.outcome, want,
            "{tool} {input}: {:?}",
            done.outcome
        );
    }
    assert_eq!(room.text("src/b.txt"), "outside\n");
    assert!(!room.project().join("src/new.txt").exists());
    // A constraint cannot be lifted again, and only tools that open files through the guard can be
    // constrained.
    let wider = Constraints {
        allowed_read_roots: roots(&["src"]),
        ..Constraints::default()
    };
    room.runtime.narrow("read", &wider).unwrap();
    let done = room.execute("read", json!({"filePath": "out/a.txt"})).await;
    assert_eq!(done.record.outcome, "tool.outside_roots");
    for (tool, code) in [
        ("bash", "tool.bad_descriptor"),
        ("nosuch", "tool.not_found"),
    ] {
        let got = room.runtime.narrow(tool, &wider).unwrap_err();
        assert_eq!(got.code(), code);
    }
}
