//! What hooks add to a failed call, and the output of a command nothing waits for, through the real program.

use serde_json::{Value, json};

use crate::support::*;

fn read(file: &str) -> Value {
    turn([call("read", json!({ "filePath": file }))])
}

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

fn hooked(turns: impl IntoIterator<Item = Value>, hooks: Value) -> World {
    let world = World::new(turns);
    let folder = world.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = json!({ "hooks": hooks });
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    world
}

fn group(hook: Value) -> Value {
    let mut entry = json!({"type": "command", "timeout": 20});
    let fields = hook.as_object().unwrap().clone();
    entry.as_object_mut().unwrap().extend(fields);
    json!([{ "hooks": [entry] }])
}

fn context(text: &str) -> String {
    let object = json!({"hookSpecificOutput": {"additionalContext": text}});
    format!("printf '%s' '{object}'")
}

/// C4: the message stays, and the explanations from before and after the call follow it. A call denied by a rule never
/// started.
#[test]
fn a_failure_is_reported_and_explained() {
    let hooks = json!({
        "PreToolUse": group(json!({"command": context("mind the gap")})),
        "PostToolUseFailure": group(json!({"command": "cat >> in.json; echo 'try ls' >&2; exit 2"})),
    });
    let world = hooked([read("gone.txt"), bash("rm x"), done()], hooks);
    world.config(json!({"permission": {"bash": {"rm *": "deny"}}}));
    world.run(&["do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert!(results[0].starts_with("File not found"), "{}", results[0]);
    assert!(
        results[0]
            .ends_with("\n\n[PreToolUse hook] mind the gap\n\n[PostToolUseFailure hook] try ls"),
        "{}",
        results[0]
    );
    assert!(results[1].contains("denies bash"), "{}", results[1]);
    assert!(
        results[1].ends_with("\n\n[PreToolUse hook] mind the gap"),
        "{}",
        results[1]
    );
    let given = world.read("in.json");
    let lines: Vec<Value> = given
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 1, "{given}");
    assert_eq!(lines[0]["tool_name"], "Read");
    assert_eq!(lines[0]["is_interrupt"], false);
    let error = lines[0]["error"].as_str().unwrap();
    assert!(error.starts_with("File not found"), "{error}");
    world.verify();
}

/// A JavaScript plugin may do the same at the point, but can neither empty the message nor turn it into a success.
#[test]
fn a_plugin_explains_a_failure_and_cannot_swallow_it() {
    let world = World::new([read("gone.txt"), done()]);
    world.plugin(
        "explain",
        "export const P = async () => ({ 'tool.on_error': async (input, output) => {
            output.context.push(`${input.code} ${input.began}: look in src`)
            output.message = ''
            input.message = ''
        } })",
    );
    world.run(&["do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert!(results[0].starts_with("File not found"), "{}", results[0]);
    assert!(
        results[0].ends_with("\n\ntool.failed true: look in src"),
        "{}",
        results[0]
    );
}

/// It delays nothing, and its output is read in the same turn once it has ended.
#[test]
fn an_async_command_is_heard_later() {
    let command = format!(
        "until [ -e go ]; do sleep 0.05; done; {}; touch said",
        context("3 tests fail")
    );
    let hooks = json!({
        "PreToolUse": group(json!({"command": command, "async": true, "if": "Bash(touch *)"})),
    });
    // The second call waits until the hook is about to end; one of the next requests has its output.
    let wait = bash("until [ -e said ]; do sleep 0.05; done; sleep 0.3");
    let more = (1..10).map(|n| bash(&format!("sleep 0.{n}")));
    let calls = [bash("touch go"), wait].into_iter().chain(more);
    let world = hooked(calls.chain([done()]), hooks);
    world.run(&["do it"]).ok();
    let result = world.mock.last().texts("tool").join("\n");
    assert!(
        result.contains("[PreToolUse hook] 3 tests fail"),
        "{result}"
    );
    assert_eq!(result.matches("3 tests fail").count(), 1, "{result}");
}

/// The program exits although a command has not ended, and leaves nothing behind.
#[test]
fn an_async_command_ends_with_the_program() {
    let mut hooks = json!({
        "Stop": group(json!({"command": "readlink /proc/self/ns/pid | tr -dc 0-9 > pid.new; mv pid.new pid; exec sleep 1000", "async": true})),
    });
    // The program does not exit before the command has started.
    let begun = json!({"type": "command", "command": "until [ -e pid ]; do sleep 0.05; done", "timeout": 60});
    hooks["Stop"][0]["hooks"]
        .as_array_mut()
        .unwrap()
        .push(begun);
    let world = hooked([done()], hooks);
    world.run(&["do it"]).ok();
    let pid = world.read("pid");
    // It has been killed; its new parent may take a moment to reap it.
    let pid: u32 = pid.trim().parse().unwrap();
    assert!(wait_until(WAIT_TIMEOUT, || !alive(pid)));
}
