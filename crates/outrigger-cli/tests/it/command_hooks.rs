//! Command hooks in Claude Code's form, through the real program.

use serde_json::{Value, json};

use crate::compact::{filled, said};
use crate::plugin_addresses::asked;
use crate::support::*;
use crate::user_grants::granting;

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

/// Returns a hook for each event, matcher and command.
fn settings(hooks: &[(&str, &str, &str)]) -> Value {
    let mut events = serde_json::Map::new();
    for (event, matcher, command) in hooks {
        let group = json!({"matcher": matcher, "hooks": [{"type": "command", "command": command, "timeout": 20}]});
        let groups = events.entry(*event).or_insert_with(|| json!([]));
        groups.as_array_mut().unwrap().push(group);
    }
    json!({ "hooks": events })
}

/// Sets up the user's own hooks.
fn with_hooks(turns: impl IntoIterator<Item = Value>, hooks: &[(&str, &str, &str)]) -> World {
    let world = World::new(turns);
    let folder = world.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), settings(hooks).to_string()).unwrap();
    world
}

fn says(object: Value) -> String {
    format!("cat > /dev/null; printf '%s' '{object}'")
}

fn specific(event: &str, mut fields: Value) -> String {
    fields["hookEventName"] = json!(event);
    says(json!({ "hookSpecificOutput": fields }))
}

#[test]
fn before_a_tool_it_gets_the_call_and_may_refuse_it() {
    let world = with_hooks(
        [bash("echo ran > ran.txt"), done()],
        &[(
            "PreToolUse",
            "Bash",
            "cat > in.json; echo 'not on my machine' >&2; exit 2",
        )],
    );
    world.run(&["do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert!(results[0].contains("not on my machine"), "{}", results[0]);
    assert!(!world.path("ran.txt").exists());
    let input = world.json("in.json");
    assert_eq!(input["hook_event_name"], "PreToolUse");
    assert_eq!(input["tool_name"], "Bash");
    assert_eq!(input["tool_input"]["command"], "echo ran > ran.txt");
    assert_eq!(input["cwd"], json!(world.project()));
    assert_eq!(input["permission_mode"], "default");
    assert!(input["session_id"].as_str().unwrap().starts_with("ses_"));
    assert!(input["tool_use_id"].is_string());
}

/// A user's guard runs in Bun, and a `bunfig.toml` in the folder would answer in its place.
#[test]
fn a_guard_reads_no_settings_of_its_runtime_from_the_folder() {
    let Some(bun) = outrigger_test_support::bun_or_skip() else {
        return;
    };
    let guard = format!("{} \"$HOME/hooks/guard.js\"", bun.display());
    let world = with_hooks(
        [bash("echo ran > ran.txt"), done()],
        &[("PreToolUse", "Bash", &guard)],
    );
    let hooks = world.home().join("hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let code = "for await (const _ of Bun.stdin.stream()); process.exit(process.env.OFF ? 0 : 2)";
    std::fs::write(hooks.join("guard.js"), code).unwrap();
    world.file("bunfig.toml", "preload = [\"./pre.js\"]\n");
    world.file("pre.js", "process.exit(0)");
    world.file(".env", "OFF=1\n");
    world.run(&["do it"]).ok();
    assert!(!world.path("ran.txt").exists());
}

#[test]
fn what_a_matcher_does_not_mean_is_not_run() {
    let world = with_hooks(
        [bash("echo hi"), done()],
        &[("PreToolUse", "Edit|Write", "touch ran; exit 2")],
    );
    world.run(&["do it"]).ok();
    assert!(!world.path("ran").exists());
}

/// Invariant 7: a call that a command rewrote is asked about like any other.
#[test]
fn a_rewritten_call_is_checked_again() {
    let rewrite = |command: &str| {
        specific(
            "PreToolUse",
            json!({"permissionDecision": "allow", "updatedInput": {"command": command, "description": "x"}}),
        )
    };
    for (command, ran) in [("echo two > two.txt", true), ("rm -rf /nowhere", false)] {
        let world = with_hooks(
            [bash("echo one > one.txt"), done()],
            &[("PreToolUse", "Bash", &rewrite(command))],
        );
        world.config(json!({"permission": {"bash": {"*": "allow", "rm *": "deny"}}}));
        world.run(&["do it"]).ok();
        let results = world.mock.last().texts("tool");
        assert!(!world.path("one.txt").exists());
        assert_eq!(world.path("two.txt").exists(), ran);
        assert_eq!(results[0].contains("denies bash"), !ran, "{}", results[0]);
    }
    // The schema is checked first.
    let wrong = specific("PreToolUse", json!({"updatedInput": {"command": 7}}));
    let world = with_hooks(
        [bash("echo one > one.txt"), done()],
        &[("PreToolUse", "Bash", &wrong)],
    );
    world.run(&["do it"]).ok();
    assert!(!world.path("one.txt").exists());
}

/// Hooks of an event run at the same time: if one of them changes the call, the others are asked again.
#[test]
fn a_guard_sees_what_another_hook_makes_of_the_call() {
    let guard = "cat > it; cat it >> seen; grep -q FORBID it && { echo 'the guard says no' >&2; exit 2; }; true";
    let rewrite = |command: &str| {
        let updated = json!({"command": command, "description": "x"});
        specific(
            "PreToolUse",
            json!({"permissionDecision": "allow", "updatedInput": updated}),
        )
    };
    let evil = rewrite("echo evil > evil.txt # FORBID");
    let fails_closed = "[plugins.\"claude:user\"]\nfail_closed = [\"tool.execute.before\"]\n";
    // In one file; in a project's file, which comes after the user's; and with guards whose failure refuses.
    for (of_project, settings_of_user) in [(false, ""), (true, ""), (true, fails_closed)] {
        let of_user = [("PreToolUse", "Bash", guard), ("PreToolUse", "Bash", &evil)];
        let count = if of_project { 1 } else { 2 };
        let world = with_hooks([bash("echo ok"), done()], &of_user[..count]);
        if of_project {
            let hooks = settings(&of_user[1..]).to_string();
            world.file(".claude/settings.json", &hooks);
        }
        granting(&world, settings_of_user);
        world.run(&["do it"]).ok();
        let results = world.mock.last().texts("tool");
        assert!(
            results[0].contains("the guard says no"),
            "{of_project}: {}",
            results[0]
        );
        assert!(!world.path("evil.txt").exists());
        assert_eq!(world.read("seen").lines().count(), 2);
    }
    // If the guard does not object, the changed call is made, and the hook that changed it is not asked again.
    let counted = format!("echo x >> changes; {}", rewrite("echo fine > fine.txt"));
    let hooks = [
        ("PreToolUse", "Bash", guard),
        ("PreToolUse", "Bash", &counted),
    ];
    let world = with_hooks([bash("echo ok"), done()], &hooks);
    world.config(json!({"permission": {"bash": {"*": "ask"}}}));
    world.run(&["--auto", "do it"]).ok();
    assert!(world.path("fine.txt").exists());
    assert_eq!(world.read("changes"), "x\n");
    // If two hooks both change it, there is no third round.
    let hooks = [
        ("PreToolUse", "Bash", &*rewrite("echo one > one.txt")),
        ("PreToolUse", "Bash", &*rewrite("echo two > two.txt")),
    ];
    let world = with_hooks([bash("echo ok"), done()], &hooks);
    world.run(&["do it"]).ok();
    assert!(!world.path("one.txt").exists() && !world.path("two.txt").exists());
    let results = world.mock.last().texts("tool");
    assert!(results[0].contains("only one of them"), "{}", results[0]);
}

/// A guard repeats the call it denies, which the model can make as long as it likes.
#[test]
fn a_denial_that_repeats_a_long_call_counts() {
    let deny = |pad: &str| {
        format!(
            "printf '{{\"pad\": \"'; {pad}; printf '\", \"hookSpecificOutput\": {{\"permissionDecision\": \"deny\", \"permissionDecisionReason\": \"no\"}}}}'"
        )
    };
    // As long as the call, and longer than anything that is read.
    for pad in [
        "tr -d '\"\\\\\\n'",
        "cat > /dev/null; head -c 9000000 /dev/zero | tr '\\0' x",
    ] {
        let long = json!({ "filePath": "evil.txt", "content": "x".repeat(300_000) });
        let world = with_hooks(
            [turn([call("write", long)]), done()],
            &[("PreToolUse", "Write", &deny(pad))],
        );
        world.run(&["do it"]).ok();
        assert!(!world.path("evil.txt").exists(), "{pad}");
    }
}

/// A hook answers a question that is asked by default. If a rule of the user's asks, only the user answers.
#[test]
fn allow_answers_the_question_of_that_call_and_no_rule() {
    let allow = specific("PreToolUse", json!({"permissionDecision": "allow"}));
    // Only the first of the two is allowed. Both are asked about by default, and nobody is there to answer.
    let hook = format!("in=$(cat); case $in in *one.env*) {allow};; esac");
    let read = |file: &str| turn([call("read", json!({ "filePath": file }))]);
    let world = with_hooks(
        [read("one.env"), read("two.env"), done()],
        &[("PreToolUse", "Read", &hook)],
    );
    world.file("one.env", "first");
    world.file("two.env", "second");
    world.run(&["do it"]);
    let results = world.mock.last().texts("tool");
    assert!(results[0].contains("first"), "{}", results[0]);
    assert!(!results.join(" ").contains("second"), "{results:?}");

    let world = with_hooks([bash("touch a"), done()], &[("PreToolUse", "Bash", &allow)]);
    world.config(json!({"permission": {"bash": "ask"}}));
    let ran = world.run(&["do it"]);
    assert!(!world.path("a").exists(), "{}", ran.stderr);
}

/// If two commands disagree, the one that asks wins over the one that allows. The user is asked whatever the rules allow,
/// also for tools that need no approval otherwise.
#[test]
fn ask_asks_the_user_whatever_the_rules_allow() {
    let ask = specific(
        "PreToolUse",
        json!({"permissionDecision": "ask", "permissionDecisionReason": "touchy"}),
    );
    let allow = specific("PreToolUse", json!({"permissionDecision": "allow"}));
    let todos = json!({"todos": [{"content": "c", "status": "pending", "priority": "low"}]});
    for (what, matcher) in [
        (bash("touch a"), "Bash"),
        (turn([call("todowrite", todos)]), "TodoWrite"),
    ] {
        for order in [[&ask, &allow], [&allow, &ask]] {
            let hooks = order.map(|hook| ("PreToolUse", matcher, hook.as_str()));
            let world = with_hooks([what.clone(), what.clone(), done()], &hooks);
            world.config(json!({"permission": "allow"}));
            let ran = world.run(&["do it"]);
            assert!(!world.path("a").exists());
            assert!(
                ran.stderr.contains("no user is available"),
                "{matcher}: {}",
                ran.stderr
            );
            assert_eq!(world.mock.requests().len(), 1, "{matcher}");
            // If the user says yes, the call is made.
            world.run(&["--auto", "do it"]).ok();
            assert_eq!(world.path("a").exists(), matcher == "Bash");
        }
    }
}

/// A hook of a project runs in the sandbox of commands. What it allows or changes may do no more. Attempts 1473 to 1476 of
/// docs/bypass/attempts.toml.
#[test]
fn hooks_of_a_project_allow_and_change_what_their_sandbox_may_do() {
    let outside = |world: &World, name: &str| {
        let file = world.home().join(name);
        file.display().to_string()
    };
    for (tool, name, input, changes) in [
        ("read", "Read", json!({"filePath": "ok.txt"}), true),
        ("read", "Read", json!({"filePath": "OUT"}), false),
        ("read", "Read", json!({"filePath": "one.env"}), false),
        (
            "write",
            "Write",
            json!({"filePath": "ok.txt", "content": "changed"}),
            true,
        ),
    ] {
        let world = World::new([done()]);
        let file = outside(&world, "notes.txt");
        std::fs::write(&file, "the notes").unwrap();
        world.file("ok.txt", "ok");
        world.file("one.env", "the variables");
        let mut call_input = input.clone();
        if call_input["filePath"] == "OUT" {
            call_input["filePath"] = json!(file);
        }
        world.mock.when("do it", turn([call(tool, call_input)]));
        let mut answer = json!({"permissionDecision": "allow"});
        if changes {
            answer["updatedInput"] = input.clone();
            answer["updatedInput"]["file_path"] = json!(file);
            answer["updatedInput"]["filePath"] = json!(file);
        }
        let hook = specific("PreToolUse", answer);
        let hooks = settings(&[("PreToolUse", name, &hook)]);
        world.file(".claude/settings.json", &hooks.to_string());
        let ran = world.run(&["do it"]);
        assert!(ran.stderr.contains("claude:project"), "{}", ran.stderr);
        assert!(ran.stderr.contains("its sandbox does not allow that"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "the notes");
        let read = world.mock.last().texts("tool").join("");
        assert!(
            !read.contains("the notes") && !read.contains("the variables"),
            "{read}"
        );
    }
    // What commands may do, it may do.
    let rewrite = specific(
        "PreToolUse",
        json!({"permissionDecision": "allow", "updatedInput": {"filePath": "ok.txt", "content": "changed"}}),
    );
    let write = json!({"filePath": "other.txt", "content": "x"});
    let world = World::new([turn([call("write", write)]), done()]);
    let hooks = settings(&[("PreToolUse", "Write", &rewrite)]);
    world.file(".claude/settings.json", &hooks.to_string());
    world.run(&["do it"]).ok();
    assert_eq!(world.read("ok.txt"), "changed");
    assert!(!world.path("other.txt").exists());
}

/// An MCP server with a tool that repeats its argument.
const SERVER: &str = "
import readline from 'node:readline'
const answers = {
  initialize: (p) => ({ protocolVersion: p.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'srv', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'post', inputSchema: { type: 'object' } }] }),
  'tools/call': (p) => ({ content: [{ type: 'text', text: `posted ${p.arguments.q}` }] }),
}
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const result = answers[method]?.(params)
  console.log(JSON.stringify(result ? { jsonrpc: '2.0', id, result } : { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }))
})
";

/// The user's MCP servers run with the user's rights.
#[test]
fn a_call_of_an_mcp_tool_that_a_hook_of_a_project_changed_needs_the_user() {
    for (changes, runs) in [(false, true), (true, false)] {
        let world = World::new([turn([call("srv_post", json!({"q": "fine"}))]), done()]);
        let server = world.home().join("server.mjs");
        std::fs::write(&server, SERVER).unwrap();
        let folder = world.home().join(".config/opencode");
        std::fs::create_dir_all(&folder).unwrap();
        let config = json!({"mcp": {"srv": {"type": "local", "command": ["node", server]}}});
        std::fs::write(folder.join("opencode.json"), config.to_string()).unwrap();
        let mut answer = json!({"permissionDecision": "allow"});
        if changes {
            answer["updatedInput"] = json!({"q": "evil"});
        }
        let hook = specific("PreToolUse", answer);
        let hooks = settings(&[("PreToolUse", ".*", &hook)]);
        world.file(".claude/settings.json", &hooks.to_string());
        let ran = world.run(&["do it"]);
        let results = world.mock.last().texts("tool").join("");
        assert_eq!(
            results.contains("posted fine"),
            runs,
            "{results} {}",
            ran.stderr
        );
        assert!(!results.contains("posted evil"), "{results}");
        assert_eq!(
            ran.stderr.contains("its sandbox does not allow that"),
            !runs,
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_question_may_be_answered_by_a_command() {
    let decide = |behavior: &str| {
        let decision = json!({"decision": {"behavior": behavior, "message": "because"}});
        format!(
            "tee in.json > /dev/null; {}",
            specific("PermissionRequest", decision)
        )
    };
    for (behavior, by_rule, ran) in [
        ("allow", false, true),
        ("deny", false, false),
        // The question comes from the user's rule.
        ("allow", true, false),
        ("deny", true, false),
    ] {
        let file = if by_rule { "plain" } else { "x.env" };
        let read = turn([call("read", json!({ "filePath": file }))]);
        let world = with_hooks(
            [read, done()],
            &[("PermissionRequest", "Read", &decide(behavior))],
        );
        world.file(file, "secret");
        world.config(json!({"permission": {"read": {"plain": "ask"}}}));
        world.run(&["do it"]);
        let requests = world.mock.requests();
        let result = requests.last().unwrap().texts("tool").join(" ");
        assert_eq!(
            result.contains("secret"),
            ran,
            "{behavior} {by_rule}: {result}"
        );
        let input = world.json("in.json");
        assert_eq!(input["tool_name"], "Read");
        assert_eq!(input["tool_input"]["file_path"], json!(world.path(file)));
    }
}

/// A question answered about another call stays open. A denial gives its reason to the model, too, and may end the turn.
#[test]
fn a_question_is_answered_about_the_call_that_was_asked() {
    let read = || turn([call("read", json!({ "filePath": "x.env" }))]);
    for (decision, expected, requests) in [
        (
            json!({"behavior": "allow", "updatedInput": {"file_path": "hello.txt"}}),
            "",
            1,
        ),
        (
            json!({"behavior": "deny", "message": "keys stay here"}),
            "[PermissionRequest hook] keys stay here",
            2,
        ),
        (
            json!({"behavior": "deny", "message": "keys stay here", "interrupt": true}),
            "",
            1,
        ),
    ] {
        let hook = specific("PermissionRequest", json!({ "decision": decision }));
        let world = with_hooks([read(), done()], &[("PermissionRequest", "Read", &hook)]);
        world.file("x.env", "SECRET=42");
        world.file("hello.txt", "hello");
        world.run(&["do it"]);
        let seen = world.mock.requests();
        assert_eq!(seen.len(), requests, "{decision}");
        let results = seen.last().unwrap().texts("tool").join(" ");
        assert!(results.contains(expected), "{decision}: {results}");
        assert!(!results.contains("SECRET"), "{decision}: {results}");
    }
}

/// The decision in the output object applies whatever the exit code is.
#[test]
fn a_denial_counts_whatever_the_code_is() {
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "because of JSON"}});
    for code in [0, 1, 2, 3] {
        let hook = format!("{}; echo told >&2; exit {code}", says(deny.clone()));
        let world = with_hooks(
            [bash("echo ran > ran.txt"), done()],
            &[("PreToolUse", "Bash", &hook)],
        );
        world.run(&["do it"]).ok();
        assert!(!world.path("ran.txt").exists(), "{code}");
        let result = world.mock.last().texts("tool").join(" ");
        assert!(result.contains("because of JSON"), "{code}: {result}");
    }
}

/// Tools that Claude Code lacks are held by the guards of its equivalents.
#[test]
fn guards_of_files_and_commands_hold_our_other_tools() {
    let guard = |result: &str| {
        format!(
            "grep -q '\"tool_name\":\"{result}\".*secret' && {{ echo 'not there' >&2; exit 2; }}; exit 0"
        )
    };
    let patch = |path: &str| {
        let text = format!(
            "*** Begin Patch\n*** Add File: ok.txt\n+x\n*** Add File: {path}\n+x\n*** End Patch\n"
        );
        call("apply_patch", json!({ "patchText": text }))
    };
    let paths = "python3 -c 'import json,sys; print(json.load(sys.stdin)[\"tool_input\"].get(\"file_path\"))' >> paths.txt";
    for (matcher, result, made, file) in [
        (
            "Edit|Write",
            "Write",
            patch("secret/new.txt"),
            "secret/new.txt",
        ),
        (
            "apply_patch",
            "Write",
            patch("secret/new.txt"),
            "secret/new.txt",
        ),
        (
            "Read",
            "Read",
            call("table", json!({ "path": "secret/s.csv" })),
            "",
        ),
        (
            "Write",
            "Write",
            call(
                "table",
                json!({ "rows": [{"a": "secret"}], "to": "secret/t.csv" }),
            ),
            "secret/t.csv",
        ),
        (
            "Bash",
            "Bash",
            call("python", json!({ "script": "open('secret.txt', 'w')" })),
            "secret.txt",
        ),
    ] {
        let world = with_hooks(
            [turn([made]), done()],
            &[("PreToolUse", matcher, &guard(result))],
        );
        world.file("secret/s.csv", "key\n42\n");
        world.config(json!({
            "permission": {"python": "allow", "table": "allow", "bash": "allow"},
            "provider": {"mock": {"models": {"m1": {"id": "gpt-5"}}}},
        }));
        world.run(&["do it"]).ok();
        assert!(
            file.is_empty() || !world.path(file).exists(),
            "{matcher} {file}"
        );
        let result = world.mock.last().texts("tool").join(" ");
        assert!(result.contains("not there"), "{matcher} {file}: {result}");
        assert!(!result.contains("42"), "{matcher} {file}: {result}");
    }
    let world = with_hooks(
        [turn([patch("b.txt")]), done()],
        &[("PreToolUse", "Write", paths)],
    );
    world.config(json!({"provider": {"mock": {"models": {"m1": {"id": "gpt-5"}}}}}));
    world.run(&["do it"]).ok();
    let file = |name: &str| world.path(name).display().to_string();
    assert_eq!(
        world.read("paths.txt"),
        format!("{}\n{}\n", file("ok.txt"), file("b.txt"))
    );
    assert!(world.path("b.txt").exists());
}

/// A path or an address means what it resolves to, however it is spelled.
#[test]
fn a_condition_means_what_a_call_does() {
    let (port, times) = asked();
    let write = |path: &str| call("write", json!({ "filePath": path, "content": "x" }));
    let fetch = |url: String| call("webfetch", json!({ "url": url, "format": "text" }));
    let (edits, host) = ("Edit(src/**)", "WebFetch(domain:127.0.0.1)");
    for (rule, made, refused) in [
        (edits, write("src/new.txt"), true),
        (edits, write("docs/../src/new.txt"), true),
        (edits, write("docs/way/new.txt"), true),
        (edits, write("docs/way/made/new.txt"), true),
        (edits, write("docs/new.txt"), false),
        (host, fetch(format!("http://127.0.0.1:{port}/x")), true),
        (host, fetch(format!("http:///127.0.0.1:{port}/x")), true),
        (
            host,
            fetch(format!("http://127.0.0.1:{port}\\@a.test/x")),
            true,
        ),
        (host, fetch(format!("http://127%2e0.0.1.:{port}/x")), true),
    ] {
        let world = with_hooks([turn([made.clone()]), done()], &[]);
        let hook =
            json!({"type": "command", "command": "echo 'not there' >&2; exit 2", "if": rule});
        let settings = json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}});
        let file = world.home().join(".claude/settings.json");
        std::fs::write(file, settings.to_string()).unwrap();
        world.file("docs/.keep", "");
        world.file("src/.keep", "");
        std::os::unix::fs::symlink("../src", world.path("docs/way")).unwrap();
        world.config(json!({"permission": {"*": "allow"}}));
        world.run(&["do it"]).ok();
        let result = world.mock.last().texts("tool").join(" ");
        assert_eq!(result.contains("not there"), refused, "{made}: {result}");
        let there = world.path("src/new.txt").exists() || world.path("src/made/new.txt").exists();
        assert!(!there, "{made}");
    }
    assert_eq!(times.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// A duplicate entry runs once, under the stricter of the two settings.
#[test]
fn of_two_entries_the_stricter_counts() {
    let hook = |more: Value| {
        let mut hook = json!({"type": "command", "command": "cat > /dev/null; exit 1"});
        hook.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"matcher": "Bash", "hooks": [hook]})
    };
    for (first, second, ran) in [
        (json!({}), json!({}), true),
        (json!({}), json!({"onFailure": "block"}), false),
        (json!({"async": true}), json!({"onFailure": "block"}), false),
    ] {
        let world = with_hooks([bash("echo ran > ran.txt"), done()], &[]);
        let settings =
            json!({"hooks": {"PreToolUse": [hook(first.clone()), hook(second.clone())]}});
        std::fs::write(
            world.home().join(".claude/settings.json"),
            settings.to_string(),
        )
        .unwrap();
        world.run(&["do it"]).ok();
        assert_eq!(world.path("ran.txt").exists(), ran, "{first} {second}");
    }
}

/// What a command removes from a result reaches neither the model nor the places clients look at.
#[test]
fn a_result_may_be_replaced() {
    let redact = specific(
        "PostToolUse",
        json!({"updatedToolOutput": {"stdout": "key=?", "stderr": ""}}),
    );
    let world = with_hooks(
        [bash("echo key=$((40+2))"), done()],
        &[("PostToolUse", "Bash", &redact)],
    );
    world.run(&["do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert_eq!(results, ["key=?"]);
    let exported = world.export().to_string();
    assert!(!exported.contains("key=42"), "{exported}");
}

/// Context printed before the call is read after its result; output without effect is reported.
#[test]
fn context_before_a_tool_is_read_behind_it() {
    let says = specific(
        "PreToolUse",
        json!({"additionalContext": "mind the gap", "watchPaths": ["x"]}),
    );
    let world = with_hooks([bash("echo hi"), done()], &[("PreToolUse", "Bash", &says)]);
    let ran = world.run(&["do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert_eq!(results, ["hi\n\n\n[PreToolUse hook] mind the gap"]);
    assert!(
        ran.stderr
            .contains("answers with `watchPaths`, which has no effect at PreToolUse"),
        "{}",
        ran.stderr
    );
}

#[test]
fn context_at_the_end_goes_on_with_it() {
    let more = specific("Stop", json!({"additionalContext": "one more thing"}));
    let hook = format!("if [ -e seen ]; then exit 0; fi; touch seen; {more}");
    let world = with_hooks([text("first"), text("second")], &[("Stop", "", &hook)]);
    world.run(&["do it"]).ok();
    let said = world.mock.last().texts("user").join("\n");
    assert!(said.contains("one more thing"), "{said}");
    assert_eq!(world.mock.requests().len(), 2);
}

/// `transcript_path` is a readable file, in the sandbox too, and is deleted afterwards.
#[test]
fn the_conversation_is_a_file() {
    let copy = "p=$(sed 's/.*\"transcript_path\":\"\\([^\"]*\\)\".*/\\1/'); echo \"$p\" > path; cp \"$p\" copy";
    let world = with_hooks(
        [bash("echo hi"), bash("echo again"), done()],
        &[("PostToolUse", "Bash", copy)],
    );
    world.file(".env", "x");
    world.config(json!({ "permission": { "read": { "*.env": "deny" } } }));
    world.run(&["do it"]).ok();
    let lines: Vec<Value> = world
        .read("copy")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["type"], "user");
    assert!(lines[0].to_string().contains("do it"), "{}", lines[0]);
    let result = &lines[2]["message"]["content"][0];
    assert_eq!(result["type"], "tool_result");
    assert_eq!(result["content"], "hi\n");
    let path = world.read("path");
    assert!(path.trim().ends_with(".jsonl"), "{path}");
    assert!(!std::path::Path::new(path.trim()).exists());
}

#[test]
fn the_plan_agent_is_a_mode() {
    let world = with_hooks([done()], &[("Stop", "", "cat > in.json")]);
    world.run(&["--agent", "plan", "do it"]).ok();
    let input = world.json("in.json");
    assert_eq!(input["permission_mode"], "plan");
}

#[test]
fn behind_a_tool_the_model_reads_what_it_says() {
    let world = with_hooks(
        [bash("echo result"), bash("echo again"), done()],
        &[
            (
                "PostToolUse",
                "Bash",
                "cat > in.json; echo 'lint: 3 problems' >&2; exit 2",
            ),
            (
                "PostToolUse",
                "Bash",
                &specific("PostToolUse", json!({"additionalContext": "by the way"})),
            ),
        ],
    );
    world.run(&["do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert!(results[0].contains("result"), "{}", results[0]);
    assert!(results[0].contains("[PostToolUse hook] lint: 3 problems"));
    assert!(results[0].contains("[PostToolUse hook] by the way"));
    let input = world.json("in.json");
    assert_eq!(input["tool_response"]["stdout"], "again\n");
    assert_eq!(input["tool_input"]["command"], "echo again");
}

#[test]
fn a_prompt_gets_context_or_is_refused() {
    let world = with_hooks(
        [done()],
        &[
            (
                "SessionStart",
                "startup",
                "cat > start.json; echo 'branch: main'",
            ),
            ("SessionStart", "resume", "touch resumed"),
            ("UserPromptSubmit", "", "cat > in.json; echo 'time: noon'"),
        ],
    );
    world.run(&["hello"]).ok();
    let said = world.mock.last().texts("user").join("\n");
    assert!(said.contains("hello"), "{said}");
    assert!(said.contains("time: noon"), "{said}");
    assert!(said.contains("branch: main"), "{said}");
    let input = world.json("in.json");
    assert_eq!(input["prompt"], "hello");
    let input = world.json("start.json");
    assert_eq!(input["source"], "startup");
    assert!(!world.path("resumed").exists());

    let refuse = says(json!({"decision": "block", "reason": "not that word"}));
    let world = with_hooks([done()], &[("UserPromptSubmit", "", &refuse)]);
    // A subagent's task from a command counts as the user's prompt as well.
    let sub = json!({"command": {"sub": {"template": "do $ARGUMENTS", "subtask": true}}});
    world.config(sub);
    for arguments in [&["hello"][..], &["--command", "sub", "hello"]] {
        let ran = world.run(arguments);
        assert!(ran.stderr.contains("not that word"), "{}", ran.stderr);
        assert_eq!(world.mock.requests().len(), 0);
    }
}

#[test]
fn a_failing_hook_stops_nothing_and_is_reported() {
    let world = with_hooks(
        [bash("echo ran > ran.txt"), done()],
        &[("PreToolUse", "", "echo broken >&2; exit 1")],
    );
    let ran = world.run(&["do it"]).ok();
    assert!(world.path("ran.txt").exists());
    assert!(ran.stderr.contains("broken"), "{}", ran.stderr);
}

/// A turn that ends in an error has an event of its own, by the kind of the error.
#[test]
fn a_turn_that_fails_is_reported() {
    for (status, kind) in [(401, "authentication_failed"), (400, "invalid_request")] {
        let refusal = json!({ "status": status, "error": "no" });
        let hooks = [
            ("StopFailure", kind, "cat > failed.json"),
            ("StopFailure", "rate_limit", "touch other"),
            ("Stop", "", "touch other"),
        ];
        let world = with_hooks([refusal], &hooks);
        world.run(&["do it"]);
        let written = world.json("failed.json");
        assert_eq!(written["error"], kind);
        assert!(written["error_details"].is_string(), "{written}");
        assert!(!world.path("other").exists());
    }
}

#[test]
fn a_hook_may_end_the_turn() {
    let stop = says(json!({"continue": false, "stopReason": "enough"}));
    for event in ["PreToolUse", "PostToolUse"] {
        let world = with_hooks([bash("echo hi"), done()], &[(event, "Bash", &stop)]);
        world.run(&["do it"]);
        assert_eq!(world.mock.requests().len(), 1, "{event}");
    }
}

/// A project's hooks run only after the user has allowed them, with their content.
#[test]
fn hooks_of_a_project_have_to_be_allowed() {
    let world = World::new([
        bash("echo 1"),
        done(),
        bash("echo 2"),
        done(),
        bash("echo 3"),
        done(),
    ]);
    let hooks = |command: &str| settings(&[("PreToolUse", "", command)]).to_string();
    world.file(".claude/settings.json", &hooks("echo x >> ran"));
    world.trusts_nothing();
    let ran = world.run(&["do it"]).ok();
    assert!(!world.path("ran").exists());
    assert!(
        ran.stderr
            .contains("ignoring settings of an untrusted folder: hooks;"),
        "{}",
        ran.stderr
    );
    let listed = world.cli(&["plugin", "list"]).ok();
    assert!(
        listed.stdout.contains("claude:project"),
        "{}",
        listed.stdout
    );
    assert!(listed.stdout.contains("allow-hooks"), "{}", listed.stdout);

    let shown = world.cli(&["plugin", "allow-hooks", "--list"]).ok();
    assert!(shown.stdout.contains("not allowed"), "{}", shown.stdout);
    assert!(
        shown.stdout.contains("PreToolUse: echo x >> ran"),
        "{}",
        shown.stdout
    );
    world.cli(&["plugin", "allow-hooks"]).ok();
    world.run(&["do it"]).ok();
    assert_eq!(world.read("ran"), "x\n");

    // A different command is asked about again.
    world.file(".claude/settings.json", &hooks("echo y >> ran"));
    world.run(&["do it"]).ok();
    assert_eq!(world.read("ran"), "x\n");
}

/// Runs `hooks/hooks.json` of a Claude Code plugin that the configuration names.
#[test]
fn hooks_of_a_claude_plugin_know_its_folder() {
    let world = World::new([bash("echo 1"), done(), bash("echo 2"), done()]);
    let shell = "echo \"$CLAUDE_PLUGIN_ROOT\" > shell; echo \"$CLAUDE_PROJECT_DIR\" > project";
    let hooks = json!({"description": "d", "hooks": {"PreToolUse": [{"hooks": [
        {"type": "command", "command": shell},
        {"type": "command", "command": "sh", "args": ["${CLAUDE_PLUGIN_ROOT}/guard.sh"]},
    ]}]}});
    let root = world.root().join("guard");
    std::fs::create_dir_all(root.join("hooks")).unwrap();
    std::fs::write(root.join("hooks/hooks.json"), hooks.to_string()).unwrap();
    std::fs::write(root.join("guard.sh"), "echo 'not that' >&2; exit 2").unwrap();
    granting(
        &world,
        &format!("[claude]\nplugins = [{:?}]\n", root.display().to_string()),
    );
    world.run(&["do it"]).ok();
    assert!(!world.path("shell").exists());
    world.cli(&["plugin", "allow-hooks"]).ok();
    world.run(&["do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert!(results[0].contains("not that"), "{}", results[0]);
    assert_eq!(world.read("shell"), format!("{}\n", root.display()));
    let project = world.project();
    assert_eq!(world.read("project"), format!("{}\n", project.display()));
    let listed = world.cli(&["plugin", "list"]).ok();
    assert!(listed.stdout.contains("claude:plugin"), "{}", listed.stdout);
}

/// The sandbox of the shell tool applies to hooks too.
#[test]
fn a_hook_cannot_read_what_a_rule_denies() {
    let world = with_hooks(
        [bash("echo hi"), done()],
        &[(
            "PreToolUse",
            "",
            "cat .env > copy 2>/dev/null; cat plain > seen; true",
        )],
    );
    world.file(".git/HEAD", "ref: refs/heads/main\n");
    world.file(".env", "secret");
    world.file("plain", "plain");
    world.config(json!({ "permission": { "read": { "*.env": "deny" } } }));
    world.run(&["do it"]).ok();
    assert_eq!(world.read("seen"), "plain");
    assert!(!world.read("copy").contains("secret"));
}

#[test]
fn a_turn_that_is_done_goes_on_when_a_hook_wants_more() {
    // The second time, the input states that the hook has already continued the turn, and it lets the turn end.
    let hook = "cat > in$(ls in* 2>/dev/null | wc -l).json; if [ -e in1.json ]; then exit 0; fi; echo 'the tests fail' >&2; exit 2";
    let world = with_hooks([text("first"), text("second")], &[("Stop", "", hook)]);
    world.run(&["do it"]).ok();
    let said = world.mock.last().texts("user").join("\n");
    assert!(said.contains("the tests fail"), "{said}");
    assert_eq!(world.mock.requests().len(), 2);
    let input = |name: &str| world.json(name);
    assert_eq!(input("in0.json")["stop_hook_active"], false);
    assert_eq!(input("in1.json")["stop_hook_active"], true);
    assert_eq!(input("in1.json")["last_assistant_message"], "second");
}

#[test]
fn a_turn_is_kept_from_ending_so_many_times_at_most() {
    let turns: Vec<Value> = (0..6).map(|_| text("done")).collect();
    let world = with_hooks(turns, &[("Stop", "", "echo more >&2; exit 2")]);
    granting(&world, "[agent]\nmax_continuations = 3\n");
    let ran = world.run(&["do it"]).ok();
    assert_eq!(world.mock.requests().len(), 4);
    assert!(ran.stderr.contains("max_continuations"), "{}", ran.stderr);
}

#[test]
fn a_session_that_continues_is_resumed_and_its_end_is_reported() {
    let world = with_hooks(
        [done(), done()],
        &[
            ("SessionStart", "", "cat >> start"),
            ("SessionEnd", "", "cat > end.json"),
        ],
    );
    world.run(&["one"]).ok();
    let end = world.json("end.json");
    assert_eq!(end["reason"], "other");
    world.run(&["--continue", "two"]).ok();
    assert!(world.read("start").contains("\"source\":\"resume\""));
}

#[test]
fn a_question_is_announced_before_it_is_asked() {
    let world = with_hooks(
        [bash("echo hi"), done()],
        &[("Notification", "", "cat > in.json")],
    );
    world.config(json!({"permission": {"bash": "ask"}}));
    world.run(&["do it"]);
    let input = world.json("in.json");
    assert_eq!(
        input["message"],
        "Outrigger needs your permission to use Bash"
    );
}

#[test]
fn a_subagent_has_its_own_event() {
    let args = json!({ "description": "job", "prompt": "Job", "subagent_type": "general" });
    let world = with_hooks(
        [
            turn([call("task", args)]),
            text("from below"),
            text("from above"),
        ],
        &[
            (
                "SubagentStart",
                "general",
                "cat > start.json; printf '%s' '{\"hookSpecificOutput\": {\"hookEventName\": \"SubagentStart\", \"additionalContext\": \"be brief\"}}'",
            ),
            ("SubagentStop", "general", "cat > sub.json"),
            ("SubagentStop", "explore", "touch other"),
            ("SubagentStart", "explore", "touch other"),
            ("Stop", "", "cat > stop.json"),
            ("UserPromptSubmit", "", "echo x >> prompts; cat > /dev/null"),
        ],
    );
    world.run(&["do it"]).ok();
    let input = |name: &str| world.json(name);
    assert_eq!(input("sub.json")["hook_event_name"], "SubagentStop");
    assert_eq!(input("sub.json")["last_assistant_message"], "from below");
    assert_eq!(input("stop.json")["last_assistant_message"], "from above");
    assert_ne!(
        input("sub.json")["session_id"],
        input("stop.json")["session_id"]
    );
    assert_eq!(input("sub.json")["agent_type"], "general");
    assert_eq!(input("start.json")["agent_type"], "general");
    assert_eq!(
        input("start.json")["agent_id"],
        input("sub.json")["agent_id"]
    );
    assert_eq!(input("stop.json")["agent_type"], Value::Null);
    assert!(!world.path("other").exists());
    let below = world.mock.requests()[1].texts("user").join("\n");
    assert!(below.contains("be brief"), "{below}");
    // A subagent's task is not a user's prompt.
    assert_eq!(world.read("prompts"), "x\n");
}

#[test]
fn a_compaction_is_reported() {
    let world = with_hooks(
        [done(), done(), done()],
        &[
            ("PreCompact", "manual", "cat > in.json"),
            ("PreCompact", "auto", "touch auto"),
            ("SessionStart", "", "cat >> starts"),
        ],
    );
    world.run(&["do it"]).ok();
    world
        .run(&["-c", "--command", "compact", "keep the port numbers"])
        .ok();
    let input = world.json("in.json");
    assert_eq!(input["trigger"], "manual");
    assert_eq!(input["custom_instructions"], "keep the port numbers");
    // The user's instructions go to the summary, with or without hooks.
    let asked = world.mock.last().texts("user").join("\n");
    assert!(
        asked.ends_with("The user says of this summary: keep the port numbers"),
        "{asked}"
    );
    assert!(!world.path("auto").exists());
}

/// If a compaction is merely due, it is postponed and the model reads nothing of it. If the user asked for it, it fails
/// with the hook's message.
#[test]
fn a_compaction_may_be_refused() {
    let code = "echo 'not before the release' >&2; exit 2";
    let object = says(json!({"decision": "block", "reason": "not before the release"}));
    for hook in [code, &object] {
        let world = with_hooks(
            [
                filled(text("one"), 97_000),
                filled(text("two"), 97_000),
                text("three"),
            ],
            &[("PreCompact", "", hook)],
        );
        // Due after the step, and before the next one.
        assert_eq!(world.run(&["first"]).ok().stdout, "one\n", "{hook}");
        assert_eq!(world.run(&["-c", "second"]).ok().stdout, "two\n", "{hook}");
        let asked = world.run(&["-c", "--command", "compact"]);
        assert_ne!(asked.code, 0);
        assert!(
            asked.stderr.contains("not before the release"),
            "{}",
            asked.stderr
        );
        world.config(json!({ "compaction": { "auto": false } }));
        assert_eq!(world.run(&["-c", "third"]).ok().stdout, "three\n", "{hook}");
        let requests = world.mock.requests();
        assert_eq!(requests.len(), 3, "no summary was asked for");
        assert_eq!(
            said(&requests[2].body),
            [
                "user: first",
                "assistant: one",
                "user: second",
                "assistant: two",
                "user: third"
            ],
            "{hook}"
        );
        world.verify();
    }
}

/// The point is open to all: a JavaScript plugin may use it too.
#[test]
fn a_plugin_may_keep_a_turn_from_ending() {
    let world = World::new([text("first"), text("second")]);
    world.plugin(
        "more",
        "export const P = async () => ({ 'agent_end.before_stop': async (input, output) => {
            if (!input.active) output.continue = 'say more than ' + input.lastMessage
        } })",
    );
    world.run(&["do it"]).ok();
    let said = world.mock.last().texts("user").join("\n");
    assert!(said.contains("say more than first"), "{said}");
    assert_eq!(world.mock.requests().len(), 2);
    world.verify();
}
