//! Command hooks as handlers: exit codes, timeouts, output, concurrency, deduplication.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_config::claude_hooks::{BrokenHook, HookEvent, HookFile, HookScope, Unreadable};
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::{
    CommandFile, CommandHooks, CommandHost, PipelineContext, PipelineResult, Plugins, SessionAbout,
    Stage,
};
use outrigger_protocol::hook::Decision;
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::{Policy, Spawner};
use outrigger_test_support::process::alive;
use serde_json::json;

use crate::command_events::hook;
use crate::support::*;

/// The agent's side: no sandbox, or one that cannot be created, and an ordinary session.
#[derive(Default)]
struct Host {
    boxless: Arc<AtomicBool>,
}

impl CommandHost for Host {
    fn confine<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Option<Policy>, String>> {
        let fails = self.boxless.load(Ordering::SeqCst);
        Box::pin(async move {
            if fails {
                Err("no box".to_owned())
            } else {
                Ok(None)
            }
        })
    }
    fn session(&self, _: &str) -> SessionAbout {
        SessionAbout::default()
    }
    fn mcp_servers(&self) -> Vec<String> {
        Vec::new()
    }
    fn rule_asks(&self, _: &str) -> bool {
        false
    }
    fn call(&self, _: &str, _: &str) -> Option<(String, serde_json::Value)> {
        None
    }
    fn may_run(&self, _: &str, _: &dyn Fn(&str) -> bool) -> bool {
        true
    }
    fn patched(&self, _: &str) -> Option<Vec<(String, bool)>> {
        None
    }

    fn transcript(&self, _: &MessageWithParts) -> String {
        String::new()
    }
}

fn file(scope: HookScope, commands: &[&str]) -> CommandFile {
    let hook = |command: &&str| hook(HookEvent::PreToolUse, command);
    CommandFile {
        hooks: HookFile {
            file: format!("/somewhere/{}/.claude/settings.json", scope.name()).into(),
            scope,
            folder: "/somewhere".into(),
            written: json!({}),
            hooks: commands.iter().map(hook).collect(),
            ..HookFile::default()
        },
        allowed: true,
        is_pure: false,
    }
}

fn project(files: Vec<CommandFile>) -> Project {
    let mut project = Project::new();
    project.commands = Some(CommandHooks {
        files,
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        permission_mode: "default",
        host: Arc::new(Host::default()),
        spawner: Spawner::new().unwrap(),
        changed: Arc::new(|_, _| None),
    });
    project
}

async fn before_call(plugins: &Plugins) -> PipelineResult {
    in_turn(plugins, "tool.before_call", None).await
}

async fn in_turn(plugins: &Plugins, point: &str, turn: Option<&str>) -> PipelineResult {
    let item = HookPayload::new(
        json!({"tool": "bash", "sessionID": "ses_1", "callID": "c1"}),
        json!({"args": {"command": "ls"}}),
    );
    let context = PipelineContext {
        session: Some(SessionId("ses_1".into())),
        turn: turn.map(|turn| TurnId(turn.into())),
        ..PipelineContext::default()
    };
    plugins
        .pipeline()
        .run(HookPoint::parse(point).unwrap(), vec![item], context)
        .await
}

/// It may be a denial that repeats what it denies.
#[tokio::test]
async fn an_answer_that_is_too_long_to_read_is_a_refusal() {
    let command = "echo '{'; head -c 1000000 /dev/zero";
    let project = project(vec![file(HookScope::User, &[command])]);
    let plugins = project.load(Vec::new()).await;
    let result = before_call(&plugins).await;
    assert_eq!(result.records[0].decision, Decision::Block);
    let message = result.block.unwrap().message;
    assert!(message.contains("wrote 1000002 bytes, and "), "{message}");
}

#[tokio::test]
async fn ends_of_a_command() {
    for (command, outcome, decision, block, says) in [
        ("cat > /dev/null", "ok", Decision::Continue, None, ""),
        ("exit 0", "ok", Decision::Continue, None, ""),
        (
            "echo no >&2; exit 2",
            "blocked",
            Decision::Block,
            Some("no"),
            "no",
        ),
        (
            "echo oops >&2; exit 1",
            "lost",
            Decision::FailedOpen,
            None,
            "ended with code 1: oops",
        ),
        (
            "/no/such/program",
            "lost",
            Decision::FailedOpen,
            None,
            "ended with code 127",
        ),
        (
            "kill -9 $$",
            "lost",
            Decision::FailedOpen,
            None,
            "ended by signal 9",
        ),
        (
            "echo '{junk'",
            "lost",
            Decision::FailedOpen,
            None,
            "looks like JSON and is not",
        ),
        ("echo junk", "ok", Decision::Continue, None, ""),
    ] {
        let project = project(vec![file(HookScope::User, &[command])]);
        let plugins = project.load(Vec::new()).await;
        let result = before_call(&plugins).await;
        let [record] = result.records.as_slice() else {
            panic!("{command}: {:?}", result.records);
        };
        assert_eq!(record.plugin.0, "claude:user");
        assert_eq!(record.outcome.name(), outcome, "{command}");
        assert_eq!(record.decision, decision, "{command}");
        let message = record.message.clone().unwrap_or_default();
        assert!(message.contains(says), "{command}: {message}");
        assert_eq!(result.block.map(|block| block.message).as_deref(), block);
        assert_eq!(result.outputs, [json!({"args": {"command": "ls"}})]);
        assert!(record.payload_bytes > 0);
    }
}

#[tokio::test]
async fn one_that_hangs_costs_a_call_and_leaves_nothing() {
    let pid = "echo $$ > pid; sleep 1000 & echo $! > child; wait";
    let mut slow = file(HookScope::User, &[pid]);
    slow.hooks.hooks[0].timeout = Duration::from_millis(700);
    let project = project(vec![slow]);
    let plugins = project.load(Vec::new()).await;
    let result = before_call(&plugins).await;
    assert_eq!(result.records[0].outcome.name(), "timeout");
    assert!(result.block.is_none());
    for name in ["project/pid", "project/child"] {
        let pid = std::fs::read_to_string(project.path(name))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        wait_for(name, || !alive(pid)).await;
    }
}

/// Each waits until the other has started, so they end only if they run concurrently; across files too.
#[tokio::test]
async fn all_of_an_event_run_at_once_and_the_same_once() {
    let meet = |own: &str, other: &str| {
        format!(
            "touch {own}; for i in $(seq 150); do [ -e {other} ] && exit 0; sleep 0.1; done; exit 2"
        )
    };
    let (one, two) = (meet("a", "b"), meet("b", "a"));
    let count = "echo x >> count";
    let mut local = file(HookScope::Local, &[count]);
    local.hooks.folder = "/somewhere".into();
    let project = project(vec![
        file(HookScope::User, &[&one]),
        file(HookScope::Project, &[&two, count, count]),
        local,
    ]);
    let plugins = project.load(Vec::new()).await;
    let result = before_call(&plugins).await;
    assert!(result.block.is_none(), "{:?}", result.block);
    let called: Vec<&str> = result.records.iter().map(|r| r.plugin.0.as_str()).collect();
    assert_eq!(called, ["claude:user", "claude:project", "claude:local"]);
    let counted = std::fs::read_to_string(project.path("project/count")).unwrap();
    assert_eq!(counted, "x\n");
}

/// A refusal of any file is effective, whatever the others answer; they come after the plugins.
#[tokio::test]
async fn a_refusal_of_one_file_counts() {
    let allow = r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"pwd"}}}'"#;
    let project = project(vec![
        file(HookScope::User, &[allow]),
        file(HookScope::Project, &["echo never >&2; exit 2"]),
    ]);
    let plugins = project.load(Vec::new()).await;
    let result = before_call(&plugins).await;
    assert_eq!(result.block.unwrap().message, "never");
}

#[tokio::test]
async fn they_are_listed_and_settings_reach_them() {
    let mut waiting = file(HookScope::Local, &["exit 2"]);
    waiting.allowed = false;
    let mut project = project(vec![
        file(HookScope::User, &["exit 2"]),
        file(HookScope::Project, &["exit 1"]),
        waiting,
    ]);
    let rules = |change: &dyn Fn(&mut outrigger_plugins::PluginRules)| {
        let mut rules = outrigger_plugins::PluginRules::default();
        change(&mut rules);
        rules
    };
    project.rules("claude:user", rules(&|rules| rules.disabled = true));
    let critical = rules(&|rules| rules.fail_closed = vec!["tool.execute.before".into()]);
    project.rules("claude:project", critical);
    let plugins = project.load(Vec::new()).await;
    let list = plugins.list();
    let seen: Vec<_> = list.iter().map(|p| (p.id.as_str(), p.stage)).collect();
    assert_eq!(
        seen,
        [
            ("claude:user", Stage::Skipped),
            ("claude:project", Stage::Active),
            ("claude:local", Stage::Skipped)
        ]
    );
    assert_eq!(
        list[1].hooks,
        [
            "tool.execute.before",
            "permission.ask",
            "tool.execute.after",
            "tool.on_error"
        ]
    );
    assert_eq!(json!(list[1].kind), "command");
    let cause = list[2].cause.as_ref().unwrap();
    assert_eq!(cause.code, "plugin.hooks_not_allowed");
    assert!(cause.hint.as_ref().unwrap().contains("allow-hooks"));
    // Security-critical: a failure refuses.
    let result = before_call(&plugins).await;
    assert_eq!(result.block.unwrap().code, "hook.failed_closed");
}

/// A command whose failure refuses and that cannot run refuses, and names itself.
#[tokio::test]
async fn a_command_that_guards_and_cannot_be_asked_refuses() {
    struct Case {
        what: &'static str,
        fail_closed: bool,
        change: fn(&mut CommandFile),
        says: Option<&'static str>,
    }
    fn broken(file: &mut CommandFile, blocks_on_failure: bool) {
        file.hooks.broken.push(BrokenHook {
            event: HookEvent::PreToolUse,
            matcher: "Bash".into(),
            why: "hooks.PreToolUse[0].hooks[0]: it has no `command`".into(),
            blocks_on_failure,
        });
    }
    for case in [
        Case {
            what: "a matcher of a file that guards",
            fail_closed: true,
            change: |file| file.hooks.hooks[0].matcher = "a(".into(),
            says: Some("the matcher \"a(\" of PreToolUse is not a regular expression"),
        },
        Case {
            what: "a matcher of a hook that guards",
            fail_closed: false,
            change: |file| {
                file.hooks.hooks[0].matcher = "a(".into();
                file.hooks.hooks[0].blocks_on_failure = true;
            },
            says: Some("the matcher \"a(\" of PreToolUse is not a regular expression"),
        },
        Case {
            what: "a matcher of one that does not",
            fail_closed: false,
            change: |file| file.hooks.hooks[0].matcher = "a(".into(),
            says: None,
        },
        Case {
            what: "an entry of a file that guards",
            fail_closed: true,
            change: |file| broken(file, false),
            says: Some("it has no `command`"),
        },
        Case {
            what: "an entry that guards",
            fail_closed: false,
            change: |file| broken(file, true),
            says: Some("it has no `command`"),
        },
        Case {
            what: "an entry that does not",
            fail_closed: false,
            change: |file| broken(file, false),
            says: None,
        },
        Case {
            what: "a file",
            fail_closed: true,
            change: |file| {
                file.hooks.hooks.clear();
                file.hooks.unreadable = Some(Unreadable {
                    why: "not valid JSON at line 3".into(),
                    may_guard: true,
                });
            },
            says: Some("not valid JSON at line 3; correct the file"),
        },
        Case {
            what: "a program",
            fail_closed: true,
            change: |file| file.hooks.hooks[0].command = "/no/such/program".into(),
            says: Some("ended with code 127"),
        },
        Case {
            what: "a program without a shell",
            fail_closed: true,
            change: |file| {
                file.hooks.hooks[0].command = "/no/such/program".into();
                file.hooks.hooks[0].args = Some(Vec::new());
            },
            says: Some("could not be run"),
        },
        Case {
            what: "`--pure`, where nothing guards",
            fail_closed: false,
            change: |file| {
                file.is_pure = true;
                file.hooks.hooks[0].command = "exit 2".into();
            },
            says: None,
        },
        Case {
            what: "`--pure`, a file that guards",
            fail_closed: true,
            change: |file| {
                file.is_pure = true;
                file.hooks.hooks[0].command = "echo asked >&2; exit 2".into();
            },
            says: Some("asked"),
        },
        Case {
            what: "`--pure`, a hook that guards",
            fail_closed: false,
            change: |file| {
                file.is_pure = true;
                file.hooks.hooks[0].command = "exit 1".into();
                file.hooks.hooks[0].blocks_on_failure = true;
            },
            says: Some("ended with code 1"),
        },
    ] {
        let mut hooks = file(HookScope::User, &["exit 0"]);
        (case.change)(&mut hooks);
        let mut project = project(vec![hooks]);
        if case.fail_closed {
            let rules = outrigger_plugins::PluginRules {
                fail_closed: vec!["tool.execute.before".into()],
                ..Default::default()
            };
            project.rules("claude:user", rules);
        }
        let plugins = project.load(Vec::new()).await;
        let result = before_call(&plugins).await;
        let message = result.block.map(|block| block.message);
        let (Some(says), Some(message)) = (case.says, &message) else {
            assert_eq!(message.as_deref(), case.says, "{}", case.what);
            continue;
        };
        assert!(message.contains(says), "{}: {message}", case.what);
    }
}

/// A slow command costs only itself, and never the guard next to it: not in its own group, and not in a turn in which it
/// timed out at two events.
#[tokio::test]
async fn a_slow_command_never_costs_a_guard() {
    let slow = "echo slow >> slow; sleep 1000";
    let mut hooks = file(HookScope::User, &[slow, "echo no >&2; exit 2", slow]);
    hooks.hooks.hooks[0].timeout = Duration::from_millis(300);
    hooks.hooks.hooks[2].timeout = Duration::from_millis(300);
    hooks.hooks.hooks[2].event = HookEvent::PostToolUse;
    let project = project(vec![hooks]);
    let plugins = project.load(Vec::new()).await;
    for call in 0..6 {
        let result = in_turn(&plugins, "tool.before_call", Some("t1")).await;
        assert_eq!(result.block.unwrap().message, "no", "call {call}");
        in_turn(&plugins, "tool.after_result", Some("t1")).await;
    }
    // Once at each event, and then it is skipped for the rest of the turn.
    let ran = std::fs::read_to_string(project.path("project/slow")).unwrap();
    assert_eq!(ran, "slow\nslow\n");
    // In other turns its own breakers apply; they are listed under its name.
    for turn in ["t2", "t3"] {
        in_turn(&plugins, "tool.before_call", Some(turn)).await;
    }
    let breakers: Vec<_> = plugins.list()[0]
        .breakers
        .iter()
        .map(|breaker| format!("{} {}", breaker.hook, breaker.state))
        .collect();
    assert_eq!(
        breakers,
        [
            format!("PreToolUse `{slow}` open"),
            format!("PostToolUse `{slow}` closed")
        ]
    );
    let result = in_turn(&plugins, "tool.before_call", Some("t4")).await;
    assert_eq!(result.block.unwrap().message, "no");
    let ran = std::fs::read_to_string(project.path("project/slow")).unwrap();
    assert_eq!(ran.lines().count(), 4);
}

#[tokio::test]
async fn a_guard_that_is_left_out_is_reported() {
    let mut hooks = file(HookScope::User, &["sleep 1000"]);
    hooks.hooks.hooks[0].timeout = Duration::from_millis(100);
    let project = project(vec![hooks]);
    let plugins = project.load(Vec::new()).await;
    for _ in 0..3 {
        before_call(&plugins).await;
    }
    let result = before_call(&plugins).await;
    let [record] = result.records.as_slice() else {
        panic!("{:?}", result.records);
    };
    let message = record.message.clone().unwrap_or_default();
    assert!(
        message.contains("PreToolUse `sleep 1000` is skipped: its breaker is open for another"),
        "{message}"
    );
}

#[tokio::test]
async fn on_failure_block_refuses() {
    for (command, says) in [
        ("exit 1", "ended with code 1"),
        ("sleep 1000", "did not end within 300 ms"),
    ] {
        let mut hooks = file(HookScope::User, &[command]);
        hooks.hooks.hooks[0].timeout = Duration::from_millis(300);
        hooks.hooks.hooks[0].blocks_on_failure = true;
        let project = project(vec![hooks]);
        let plugins = project.load(Vec::new()).await;
        let block = before_call(&plugins).await.block.unwrap();
        assert!(block.message.contains(says), "{}", block.message);
    }
}

/// With `args` no shell interprets anything, and the input ends with a newline.
#[tokio::test]
async fn arguments_go_to_the_program_itself() {
    let mut hooks = file(HookScope::Project, &["sh"]);
    let script =
        "printf '%s|' \"$@\" > seen; while read -r line; do echo \"$line\" > stdin; done; exit 2";
    let args = ["-c", script, "x", "$HOME", "a b", "${CLAUDE_PROJECT_DIR}/y"];
    hooks.hooks.hooks[0].args = Some(args.map(str::to_owned).to_vec());
    let project = project(vec![hooks]);
    let plugins = project.load(Vec::new()).await;
    assert!(before_call(&plugins).await.block.is_some());
    let seen = std::fs::read_to_string(project.path("project/seen")).unwrap();
    assert_eq!(seen, "$HOME|a b|/somewhere/y|");
    let stdin = std::fs::read_to_string(project.path("project/stdin")).unwrap();
    assert!(
        stdin.contains("\"hook_event_name\":\"PreToolUse\""),
        "{stdin}"
    );
}

/// A command that did not run has not answered: its breaker's count stays.
#[tokio::test]
async fn a_call_without_a_sandbox_says_nothing_of_its_command() {
    let mut hooks = file(HookScope::User, &["sleep 1000"]);
    hooks.hooks.hooks[0].timeout = Duration::from_millis(100);
    let mut project = project(vec![hooks]);
    let host = Host::default();
    let boxless = Arc::clone(&host.boxless);
    project.commands.as_mut().unwrap().host = Arc::new(host);
    let plugins = project.load(Vec::new()).await;
    for fails in [false, false, true, false] {
        boxless.store(fails, Ordering::SeqCst);
        before_call(&plugins).await;
    }
    let state = plugins.list()[0].breakers[0].state;
    assert_eq!(state.to_string(), "open");
}
