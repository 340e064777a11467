//! Input of each command hook event, and the meaning of its answers, in one table: the fields on standard input, exit codes 0, 2
//! and another, and the decisions of an object.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_config::claude_hooks::{CommandHook, HookEvent, HookFile, HookScope};
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::{
    CommandFile, CommandHooks, CommandHost, Notice, PipelineContext, PipelineResult, Plugins,
    SessionAbout,
};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::Policy;
use serde_json::{Value, json};

use crate::support::*;

/// The agent's side: no sandbox, sessions of which one is a subagent's, and a shell that can be parsed up to `&&`.
#[derive(Default)]
struct Host {
    /// Number of times that a session was read.
    looks: AtomicUsize,
}

impl CommandHost for Host {
    fn confine<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Option<Policy>, String>> {
        Box::pin(async { Ok(None) })
    }
    fn session(&self, id: &str) -> SessionAbout {
        self.looks.fetch_add(1, Ordering::SeqCst);
        SessionAbout {
            child: id == "ses_child",
            agent: if id == "ses_child" {
                "explore"
            } else {
                "build"
            }
            .to_owned(),
            ..SessionAbout::default()
        }
    }
    fn mcp_servers(&self) -> Vec<String> {
        Vec::new()
    }
    fn rule_asks(&self, _: &str) -> bool {
        false
    }
    fn call(&self, _: &str, call: &str) -> Option<(String, Value)> {
        Some(match call {
            "patch" => ("apply_patch".to_owned(), json!({"patchText": "a b"})),
            _ => ("bash".to_owned(), json!({"command": "ls"})),
        })
    }
    fn may_run(&self, line: &str, means: &dyn Fn(&str) -> bool) -> bool {
        line.split(" && ").any(means)
    }
    fn patched(&self, patch: &str) -> Option<Vec<(String, bool)>> {
        let files = patch.split(' ');
        Some(files.map(|file| (file.to_owned(), true)).collect())
    }

    fn transcript(&self, _: &MessageWithParts) -> String {
        String::new()
    }
}

pub(crate) fn hook(event: HookEvent, command: &str) -> CommandHook {
    CommandHook {
        event,
        matcher: String::new(),
        command: command.to_owned(),
        args: None,
        timeout: Duration::from_secs(20),
        condition: None,
        runs_async: false,
        wakes: false,
        blocks_on_failure: false,
    }
}

async fn loaded(hooks: Vec<CommandHook>) -> (Project, Plugins) {
    loaded_by(Arc::default(), hooks).await
}

async fn loaded_by(host: Arc<Host>, hooks: Vec<CommandHook>) -> (Project, Plugins) {
    let mut project = Project::new();
    project.commands = Some(CommandHooks {
        files: vec![CommandFile {
            hooks: HookFile {
                file: "/somewhere/.claude/settings.json".into(),
                scope: HookScope::User,
                folder: "/somewhere".into(),
                written: json!({}),
                hooks,
                ..HookFile::default()
            },
            allowed: true,
            is_pure: false,
        }],
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        spawner: outrigger_sandbox::Spawner::new().unwrap(),
        changed: Arc::new(|_, _| None),
        permission_mode: "default",
        host,
    });
    let plugins = project.load(Vec::new()).await;
    (project, plugins)
}

async fn at(plugins: &Plugins, point: &str, input: &Value, output: &Value) -> PipelineResult {
    let session = input["sessionID"].as_str().unwrap();
    let context = PipelineContext {
        session: Some(SessionId(session.into())),
        ..PipelineContext::default()
    };
    let item = HookPayload::new(input.clone(), output.clone());
    plugins
        .pipeline()
        .run(HookPoint::parse(point).unwrap(), vec![item], context)
        .await
}

/// Returns the call of each event by the agent: point, input, output.
fn place(event: HookEvent) -> (&'static str, Value, Value) {
    let call = json!({"tool": "bash", "sessionID": "ses_1", "callID": "c1"});
    let with = |more: Value| {
        let mut input = call.clone();
        let fields = more.as_object().unwrap().clone();
        input.as_object_mut().unwrap().extend(fields);
        input
    };
    let args = json!({"command": "ls"});
    let prompt = |session: &str| {
        let input = json!({"sessionID": session, "agent": "explore"});
        (
            "run.before_start",
            input,
            json!({"message": {}, "parts": [{"type": "text", "text": "do it"}]}),
        )
    };
    let question = (
        "tool.before_permission",
        json!({"id": "q1", "sessionID": "ses_1", "permission": "bash", "patterns": ["ls"], "tool": {"callID": "c1"}}),
        json!({"status": "ask"}),
    );
    let stop = |session: &str| {
        let input = json!({"sessionID": session, "active": false, "lastMessage": "done"});
        ("agent_end.before_stop", input, json!({}))
    };
    match event {
        HookEvent::PreToolUse => ("tool.before_call", call, json!({"args": args})),
        HookEvent::PostToolUse => (
            "tool.after_result",
            with(json!({"args": args})),
            json!({"title": "ls", "output": "a\n", "metadata": {"exit": 0}}),
        ),
        HookEvent::PostToolUseFailure => (
            "tool.on_error",
            with(
                json!({"args": args, "code": "tool.failed", "message": "no such file", "began": true}),
            ),
            json!({"context": []}),
        ),
        HookEvent::PermissionRequest | HookEvent::Notification => question,
        HookEvent::UserPromptSubmit | HookEvent::SessionStart => prompt("ses_1"),
        HookEvent::SubagentStart => prompt("ses_child"),
        HookEvent::PreCompact => (
            "compaction.before_start",
            json!({"sessionID": "ses_1", "instructions": "keep the names"}),
            json!({"context": []}),
        ),
        HookEvent::Stop => stop("ses_1"),
        HookEvent::StopFailure => (
            "run.on_error",
            json!({"sessionID": "ses_1", "error": {"name": "APIError", "data": {"message": "slow down", "statusCode": 429}}}),
            json!({}),
        ),
        HookEvent::SubagentStop => stop("ses_child"),
        HookEvent::SessionEnd => ("runtime.dispose", json!({"sessionID": "ses_1"}), json!({})),
    }
}

/// Returns the outcome in a line: refusal, changes, the end of the turn, and notices to the user.
fn line(result: &PipelineResult, before: &Value, project: &Project) -> String {
    let mut said = Vec::new();
    if let Some(block) = &result.block {
        said.push(format!("blocked {}: {}", block.code, block.message));
    } else if result.outputs.first() != Some(before) {
        said.push(format!("now {}", result.outputs[0]));
    }
    if let Some(why) = &result.stop {
        said.push(format!("turn ends: {why}"));
    }
    for notice in project.notices.lock().unwrap().drain(..) {
        if let Notice::Command { message, .. } = notice {
            said.push(format!("told: {message}"));
        }
    }
    if said.is_empty() {
        said.push("nothing".to_owned());
    }
    said.join("; ")
}

#[tokio::test]
async fn every_event_by_table() {
    let object = |value: Value| format!("printf '%s' '{value}'");
    let mut seen = String::new();
    for event in HookEvent::ALL {
        let specific = |mut fields: Value| {
            fields["hookEventName"] = json!(event.name());
            object(json!({ "hookSpecificOutput": fields }))
        };
        writeln!(seen, "{}", event.name()).unwrap();
        let mut answers = vec![
            ("exit 0, text", "echo hi".to_owned()),
            ("exit 2", "echo why >&2; exit 2".to_owned()),
            ("exit 1", "echo why >&2; exit 1".to_owned()),
            ("block", object(json!({"decision": "block", "reason": "r"}))),
            ("context", specific(json!({"additionalContext": "c"}))),
            (
                "continue",
                object(json!({"continue": false, "stopReason": "s", "systemMessage": "m"})),
            ),
        ];
        match event {
            HookEvent::PreToolUse => {
                let says = |decision: &str| {
                    specific(
                        json!({"permissionDecision": decision, "permissionDecisionReason": "r"}),
                    )
                };
                answers.push(("allow", says("allow")));
                answers.push(("deny", says("deny")));
                answers.push((
                    "input",
                    specific(json!({"updatedInput": {"command": "pwd"}})),
                ));
            }
            HookEvent::PostToolUse | HookEvent::PostToolUseFailure => {
                answers.push(("output", specific(json!({"updatedToolOutput": "b"}))));
            }
            HookEvent::PermissionRequest => {
                let says = |behavior: &str| specific(json!({"decision": {"behavior": behavior}}));
                answers.push(("allow", says("allow")));
                answers.push(("deny", says("deny")));
            }
            _ => {}
        }
        let (point, input, output) = place(event);
        for (number, (name, command)) in answers.iter().enumerate() {
            let run = "cat > in.json; . ./answer.sh";
            let (project, plugins) = loaded(vec![hook(event, run)]).await;
            std::fs::write(project.path("project/answer.sh"), command).unwrap();
            let result = at(&plugins, point, &input, &output).await;
            if number == 0 {
                let given = std::fs::read_to_string(project.path("project/in.json")).unwrap();
                let mut given: Value = serde_json::from_str(&given).unwrap();
                let folder = project.path("project").canonicalize().unwrap();
                assert_eq!(given["cwd"], json!(folder));
                let path = given["transcript_path"].as_str().unwrap();
                assert!(path.ends_with(".jsonl"), "{path}");
                for key in ["cwd", "transcript_path"] {
                    given.as_object_mut().unwrap().shift_remove(key);
                }
                writeln!(seen, "  < {given}").unwrap();
            }
            writeln!(seen, "  {name}: {}", line(&result, &output, &project)).unwrap();
        }
    }
    insta::assert_snapshot!(seen);
}

/// Output of a command from before a call is read after the error, if the call fails or is refused; a call that never started
/// has not failed.
#[tokio::test]
async fn context_before_a_call_is_read_behind_its_failure() {
    let context = r#"printf '%s' '{"hookSpecificOutput": {"additionalContext": "mind the gap"}}'"#;
    let (project, plugins) = loaded(vec![
        hook(HookEvent::PreToolUse, context),
        hook(
            HookEvent::PostToolUseFailure,
            "touch failed; echo worse >&2; exit 2",
        ),
    ])
    .await;
    for (began, want) in [
        (
            true,
            json!([
                "[PreToolUse hook] mind the gap",
                "[PostToolUseFailure hook] worse"
            ]),
        ),
        (false, json!(["[PreToolUse hook] mind the gap"])),
    ] {
        let _ = std::fs::remove_file(project.path("project/failed"));
        let (point, input, output) = place(HookEvent::PreToolUse);
        at(&plugins, point, &input, &output).await;
        let (point, mut input, output) = place(HookEvent::PostToolUseFailure);
        input["began"] = json!(began);
        let result = at(&plugins, point, &input, &output).await;
        assert_eq!(result.outputs[0]["context"], want);
        assert_eq!(project.path("project/failed").exists(), began);
    }
}

/// A failure of a call that never started is not an event, so nothing is read for it.
#[tokio::test]
async fn a_failure_before_a_call_reads_no_session() {
    let host = Arc::<Host>::default();
    let hooks = vec![hook(HookEvent::PostToolUseFailure, "true")];
    let (_project, plugins) = loaded_by(Arc::clone(&host), hooks).await;
    let (point, mut input, output) = place(HookEvent::PostToolUseFailure);
    for (began, looks) in [(false, 0), (true, 1)] {
        input["began"] = json!(began);
        let before = host.looks.load(Ordering::SeqCst);
        at(&plugins, point, &input, &output).await;
        assert_eq!(host.looks.load(Ordering::SeqCst) - before, looks, "{began}");
    }
}

/// A command with a failing exit code has failed, although the tool has not.
#[tokio::test]
async fn a_command_that_fails_is_a_failure() {
    let (project, plugins) = loaded(vec![
        hook(HookEvent::PostToolUse, "touch went-well"),
        hook(HookEvent::PostToolUseFailure, "cat > in.json"),
    ])
    .await;
    let (point, input, mut output) = place(HookEvent::PostToolUse);
    output["metadata"]["exit"] = json!(3);
    at(&plugins, point, &input, &output).await;
    assert!(!project.path("project/went-well").exists());
    let given = std::fs::read_to_string(project.path("project/in.json")).unwrap();
    let given: Value = serde_json::from_str(&given).unwrap();
    assert_eq!(given["error"], "Exit code 3\na\n");
    assert_eq!(given["tool_response"], Value::Null);
}

/// `if` keeps a command from being started for calls that its rule does not match.
#[tokio::test]
async fn a_condition_chooses_the_calls() {
    let mut hook = hook(HookEvent::PreToolUse, "exit 2");
    hook.condition = Some("Bash(git push *)".to_owned());
    let (_project, plugins) = loaded(vec![hook]).await;
    let (point, input, _) = place(HookEvent::PreToolUse);
    for (command, refused) in [
        ("git push -f", true),
        ("ls && git push", true),
        ("git log", false),
    ] {
        let output = json!({"args": {"command": command}});
        let result = at(&plugins, point, &input, &output).await;
        assert_eq!(result.block.is_some(), refused, "{command}");
    }
}

/// An answer about one file of a call does not cover the others: the call is denied if one is, and allowed if all are.
#[tokio::test]
async fn a_call_of_several_files_is_answered_as_a_whole() {
    for event in [HookEvent::PreToolUse, HookEvent::PermissionRequest] {
        for (a, b, want) in [
            ("allow", "allow", "allow"),
            ("allow", "-", "ask"),
            ("-", "allow", "ask"),
            ("allow", "deny", "deny"),
            ("deny", "allow", "deny"),
        ] {
            let command = "cat > in.json; f=$(sed 's/.*\"file_path\":\"[^\"]*\\/\\([ab]\\)\".*/\\1/' in.json); \
                echo $f >> seen; cat answer.$f";
            let (project, plugins) = loaded(vec![hook(event, command)]).await;
            for (file, says) in [("a", a), ("b", b)] {
                // No opinion.
                let says = if says == "-" {
                    Value::Null
                } else {
                    json!(says)
                };
                let decision = match event {
                    HookEvent::PreToolUse => json!({"permissionDecision": says}),
                    _ => json!({"decision": {"behavior": says}}),
                };
                let said = json!({ "hookSpecificOutput": decision });
                std::fs::write(
                    project.path("project").join(format!("answer.{file}")),
                    said.to_string(),
                )
                .unwrap();
            }
            let call = json!({"tool": "apply_patch", "sessionID": "ses_1", "callID": "patch"});
            let args = json!({"args": {"patchText": "a b"}});
            let before = at(&plugins, "tool.before_call", &call, &args).await;
            let question = json!({"id": "q1", "sessionID": "ses_1", "permission": "edit", "patterns": ["a"], "tool": {"callID": "patch"}});
            let result = at(
                &plugins,
                "tool.before_permission",
                &question,
                &json!({"status": "ask"}),
            )
            .await;
            let status = match before.block {
                Some(_) => "deny",
                None => result.outputs[0]["status"].as_str().unwrap(),
            };
            assert_eq!(status, want, "{event:?}: {a}, {b}");
            let seen = std::fs::read_to_string(project.path("project/seen")).unwrap();
            let both = if a == "deny" { "a\n" } else { "a\nb\n" };
            assert_eq!(seen, both, "{event:?}: {a}, {b}");
        }
    }
}

/// A key that was added for commands has no effect in the tool, and one call cannot become two.
#[tokio::test]
async fn what_cannot_be_changed_refuses_the_call() {
    let script = json!({"script": "print(1)"});
    let table = json!({"path": "a.csv", "to": "b.csv"});
    let patch = json!({"patchText": "a b"});
    for (tool, args, updated, want) in [
        (
            "python",
            &script,
            r#"{"script": "print(2)"}"#,
            Ok(json!({"script": "print(2)"})),
        ),
        (
            "python",
            &script,
            r#"{"script": "print(2)", "command": "python3 -c '\''print(1)'\''"}"#,
            Ok(json!({"script": "print(2)"})),
        ),
        (
            "python",
            &script,
            r#"{"script": "print(1)", "command": "true"}"#,
            Err("a hook changes `command`, which \"python\" does not have"),
        ),
        (
            "table",
            &table,
            r#"{"path": "a.csv", "to": "b.csv", "file_path": "/c.csv"}"#,
            Err("a hook changes `file_path`, which \"table\" does not have"),
        ),
        (
            "table",
            &table,
            r#"{"path": "c.csv"}"#,
            Ok(json!({"path": "c.csv"})),
        ),
        (
            "apply_patch",
            &patch,
            r#"{"patchText": "'$(wc -l < seen)'"}"#,
            Err("hooks change the arguments of a call of several files in different ways"),
        ),
    ] {
        let said = format!(
            r#"{{"hookSpecificOutput": {{"permissionDecision": "allow", "updatedInput": {updated}}}}}"#
        );
        let command = format!("cat > /dev/null; echo x >> seen; printf '%s' '{said}'");
        let (project, plugins) = loaded(vec![hook(HookEvent::PreToolUse, &command)]).await;
        let call = json!({"tool": tool, "sessionID": "ses_1", "callID": "c1"});
        let result = at(
            &plugins,
            "tool.before_call",
            &call,
            &json!({ "args": args }),
        )
        .await;
        let got = match &result.block {
            None => Ok(result.outputs[0]["args"].clone()),
            Some(block) => Err(block.message.clone()),
        };
        match (&got, &want) {
            (Err(got), Err(want)) => {
                assert!(got.starts_with(want), "{got}");
                assert!(line(&result, args, &project).contains(want));
            }
            _ => assert_eq!(got.as_ref().ok(), want.as_ref().ok(), "{updated}: {got:?}"),
        }
    }
}

/// Output of an `asyncRewake` command with exit code 2 keeps the turn from ending, once, in its session.
#[tokio::test]
async fn an_async_command_may_keep_a_turn_going() {
    let mut hook = hook(
        HookEvent::PostToolUse,
        "until [ -e go ]; do sleep 0.02; done; echo '3 tests fail' >&2; exit 2",
    );
    (hook.runs_async, hook.wakes) = (true, true);
    let (project, plugins) = loaded(vec![hook]).await;
    let (point, input, output) = place(HookEvent::PostToolUse);
    let result = at(&plugins, point, &input, &output).await;
    assert_eq!(result.outputs[0], output);
    let (point, input, output) = place(HookEvent::Stop);
    let result = at(&plugins, point, &input, &output).await;
    assert_eq!(result.outputs[0], output, "it runs still");
    std::fs::write(project.path("project/go"), "").unwrap();
    let mut other = input.clone();
    other["sessionID"] = json!("ses_2");
    let mut said = Value::Null;
    for _ in 0..500 {
        let result = at(&plugins, point, &other, &output).await;
        assert_eq!(result.outputs[0], output);
        let result = at(&plugins, point, &input, &output).await;
        said = result.outputs[0]["continue"].clone();
        if !said.is_null() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(said, "[PostToolUse hook] 3 tests fail");
    let result = at(&plugins, point, &input, &output).await;
    assert_eq!(result.outputs[0], output);
}

/// Nothing waits for an async command; its output is read later, once, in its session, and its decisions are ignored.
#[tokio::test]
async fn an_async_command_holds_nothing_up() {
    let command = "until [ -e go ]; do sleep 0.02; done; \
        printf '%s' '{\"continue\": false, \"stopReason\": \"enough\", \"hookSpecificOutput\": {\"additionalContext\": \"3 tests fail\"}}'";
    let mut hook = hook(HookEvent::PostToolUse, command);
    hook.runs_async = true;
    let (project, plugins) = loaded(vec![hook]).await;
    let (point, input, output) = place(HookEvent::PostToolUse);
    // It returns although the command cannot end yet.
    let result = at(&plugins, point, &input, &output).await;
    assert_eq!(result.outputs[0], output);
    assert_eq!(result.stop, None);
    std::fs::write(project.path("project/go"), "").unwrap();
    wait_for("the async command", || {
        let notices = project.notices.lock().unwrap();
        notices
            .iter()
            .any(|notice| matches!(notice, Notice::Command { .. }))
    })
    .await;
    let (prompt, asked, parts) = place(HookEvent::UserPromptSubmit);
    let mut other = asked.clone();
    other["sessionID"] = json!("ses_2");
    let result = at(&plugins, prompt, &other, &parts).await;
    assert_eq!(result.outputs[0], parts);
    let result = at(&plugins, prompt, &asked, &parts).await;
    assert_eq!(
        result.outputs[0]["parts"][1]["text"],
        "[PostToolUse hook] 3 tests fail"
    );
    let result = at(&plugins, prompt, &asked, &parts).await;
    assert_eq!(result.outputs[0], parts);
    let notices = line(&result, &parts, &project);
    assert_eq!(
        notices,
        "told: an async hook has decided something, which has no effect: enough"
    );
}
