//! Tools of `oh-my-opencode` at work (requirement B7): `interactive_bash` in a real tmux, background tasks from launch
//! to completion, and the reminders after tool results.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::omo::{omo, run};
use crate::omo_config::configure;
use crate::omo_lists::has_tmux;
use crate::omo_server::{background, is_asked, say, serve, session};
use crate::support::*;
use crate::user_grants::granting;

fn tmux(command: &str) -> Value {
    call("interactive_bash", json!({ "tmux_command": command }))
}

/// Sets up a project with a model with these turns, in which the plugin tracks its terminals. Without tmux, prints a
/// note and returns `None`.
fn with_tmux(turns: impl IntoIterator<Item = Value>) -> Option<World> {
    if !has_tmux() {
        skip("there is no tmux on PATH (Debian: apt-get install tmux)");
        return None;
    }
    let world = omo(turns)?;
    configure(&world, &json!({ "tmux": { "enabled": true } }));
    // In the sandbox neither a plugin nor a command can create a socket unless the user grants it.
    granting(
        &world,
        "[plugins.\"oh-my-opencode\"]\nunix_sockets = true\n[tools]\nunix_sockets = true\n",
    );
    Some(world)
}

/// Returns the processes with a part of this folder in their environment.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(Result::ok)
        .filter(|entry| {
            fs::read(entry.path().join("environ"))
                .is_ok_and(|env| String::from_utf8_lossy(&env).contains(&folder))
        })
        .map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
        .collect()
}

#[test]
fn interactive_bash_drives_a_real_tmux_that_the_shell_sees_and_that_ends_with_us() {
    let look = "for i in $(seq 100); do tmux capture-pane -p -t omo-it | grep -q '^42 boats' && break; sleep 0.1; done; tmux capture-pane -p -t omo-it";
    let Some(world) = with_tmux([
        turn([tmux("new-session -d -s omo-it sh")]),
        turn([tmux(r#"send-keys -t omo-it "echo $((6*7)) boats" Enter"#)]),
        turn([tmux("capture-pane -p -t omo-it")]),
        turn([call(
            "bash",
            json!({ "command": look, "description": "looks" }),
        )]),
        turn([tmux("kill-server")]),
        turn([tmux("new-session -d -s omo-two sh")]),
        turn([tmux("kill-session -t omo-it")]),
        turn([tmux("list-sessions -F '#{session_name}'")]),
        turn([tmux("no-such-command")]),
        done(),
    ]) else {
        return;
    };
    run(&world, &["drive it"]).ok();
    let requests = world.mock.requests();
    let result: Vec<String> = requests
        .iter()
        .filter_map(|r| r.texts("tool").pop())
        .collect();
    let [made, sent, captured, seen, server, two, killed, list, odd] = &result[..] else {
        panic!("{result:#?}")
    };
    assert_eq!(
        made,
        "(no output)\n\n[System Reminder] Active omo-* tmux sessions: omo-it"
    );
    assert_eq!(sent, "(no output)");
    // The plugin refers the model to its shell for that, which finds the same server.
    assert!(
        captured.contains("**USE BASH TOOL INSTEAD:**"),
        "{captured}"
    );
    assert!(seen.lines().any(|line| line == "42 boats"), "{seen}");
    assert!(
        server.starts_with("Error: 'kill-server' is prohibited"),
        "{server}"
    );
    assert!(two.ends_with("sessions: omo-it, omo-two"), "{two}");
    assert!(killed.ends_with("sessions: omo-two"), "{killed}");
    assert_eq!(list.trim(), "omo-two");
    assert_eq!(odd, "Error: unknown command: no-such-command");
    // The session that was never closed ended with the program.
    let gone = || processes_of(&world.home()).is_empty();
    assert!(
        wait_until(WAIT_TIMEOUT, gone),
        "{:?}",
        processes_of(&world.home())
    );
}

#[test]
fn a_deleted_session_takes_its_tmux_sessions_with_it() {
    let Some(world) = with_tmux([turn([tmux("new-session -d -s omo-gone sh")]), done()]) else {
        return;
    };
    let server = serve(&world);
    let (first, second) = (session(&server), session(&server));
    say(&server, &first, "open it");
    let list = |said: &str| {
        say(&server, &second, said);
        result(&server, &second, "interactive_bash")
    };
    world
        .mock
        .when("list", turn([tmux("list-sessions -F '#{session_name}'")]));
    assert_eq!(list("list them").trim(), "omo-gone");
    let deleted = server.send("DELETE", &format!("/session/{first}"), &[], None);
    assert_eq!(deleted.status, 200);
    let gone = || !list("list again").contains("omo-gone");
    assert!(wait_until(WAIT_TIMEOUT, gone));
}

/// Returns the output of a tool's last call in a session.
fn result(server: &Server, session: &str, tool: &str) -> String {
    let messages = server.get(&format!("/session/{session}/message")).json(200);
    let parts = messages
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["parts"].as_array().unwrap());
    let mut calls = parts.filter(|part| part["tool"] == tool);
    let last = calls.next_back().unwrap_or_else(|| panic!("{messages:#}"));
    let state = &last["state"];
    let said = state["output"].as_str().or(state["error"].as_str());
    said.unwrap_or_else(|| panic!("{last:#}")).to_owned()
}

/// Returns what follows a label in a tool's answer.
fn named(text: &str, label: &str) -> String {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(label))
        .unwrap_or_else(|| panic!("no {label:?} in {text}"));
    line.trim().trim_matches('`').to_owned()
}

#[test]
fn background_tasks_are_polled_waited_for_and_cancelled() {
    let Some(world) = omo([text("Two zebras graze.")]) else {
        return;
    };
    // The child's command comes from a prompt of the plugin.
    granting(&world, "[plugins.oh-my-opencode]\nprompt = true\n");
    let server = serve(&world);
    let id = session(&server);
    let ask = |said: &str, tool: &str, args: Value| {
        world.mock.when(said, turn([call(tool, args)]));
        say(&server, &id, said);
        result(&server, &id, tool)
    };
    let launch = |said: &str, prompt: &str| {
        let task = background(prompt);
        let launched = ask(said, "task", task["args"].clone());
        assert!(
            launched.starts_with("Background task launched."),
            "{launched}"
        );
        named(&launched, "Background Task ID:")
    };
    let output = |said: &str, task: &str, block: bool| {
        let args = json!({ "task_id": task, "block": block, "timeout": 30_000 });
        ask(said, "background_output", args)
    };

    // Its child waits in a command until it may continue.
    let wait = "while [ ! -e go ]; do sleep 0.05; done";
    let wait = call("bash", json!({ "command": wait, "description": "waits" }));
    world.mock.when("Look for zebras", turn([wait]));
    let zebras = launch("launch the first", "Look for zebras");
    assert!(wait_until(WAIT_TIMEOUT, || is_asked(
        &world,
        "Look for zebras"
    )));
    let polled = output("poll the first", &zebras, false);
    assert!(polled.contains("**running**"), "{polled}");
    world.file("go", "");
    let waited = output("wait for the first", &zebras, true);
    assert!(
        waited.starts_with("Task Result") && waited.contains("Two zebras graze."),
        "{waited}"
    );
    let late = ask(
        "cancel the first",
        "background_cancel",
        json!({ "taskId": zebras }),
    );
    assert!(late.contains("current status is \"completed\""), "{late}");

    // One that would never end.
    let wait = "while [ ! -e never ]; do sleep 0.05; done";
    let wait = call("bash", json!({ "command": wait, "description": "waits" }));
    world.mock.when("Look for lions", turn([wait]));
    let lions = launch("launch the second", "Look for lions");
    assert!(wait_until(WAIT_TIMEOUT, || is_asked(
        &world,
        "Look for lions"
    )));
    let cancelled = ask(
        "cancel the second",
        "background_cancel",
        json!({ "taskId": lions }),
    );
    assert!(
        cancelled.starts_with("Task cancelled successfully"),
        "{cancelled}"
    );
    let child = named(&cancelled, "Session ID:");
    let busy = || {
        server
            .get("/session/status")
            .json(200)
            .get(&child)
            .is_some()
    };
    assert!(
        wait_until(WAIT_TIMEOUT, || !busy()),
        "its child session is aborted"
    );
    let polled = output("poll the second", &lions, false);
    assert!(polled.contains("**cancelled**"), "{polled}");

    // All remaining ones.
    launch("launch the third", "Look for lions");
    launch("launch the fourth", "Look for lions");
    let all = ask(
        "cancel them all",
        "background_cancel",
        json!({ "all": true }),
    );
    assert!(all.starts_with("Cancelled 2 background task(s):"), "{all}");
    drop(server);
    world.verify();
}

#[test]
fn it_reminds_of_agents_and_of_skills() {
    let grep = || turn([call("grep", json!({ "pattern": "hi", "path": "." }))]);
    let Some(world) = omo([grep(), grep(), grep(), grep(), done()]) else {
        return;
    };
    run(&world, &["look for hi"]).ok();
    let requests = world.mock.requests();
    let reminded: Vec<bool> = requests
        .iter()
        .filter_map(|request| request.texts("tool").pop())
        .map(|result| result.contains("[Agent Usage Reminder]"))
        .collect();
    // Three times at most.
    assert_eq!(reminded, [true, true, true, false]);
    // Once, before the user's own words, after three tools that another agent could have been sent for.
    let skills: Vec<usize> = requests
        .iter()
        .map(|request| {
            request
                .texts("user")
                .join("\n")
                .matches("[Category+Skill Reminder]")
                .count()
        })
        .collect();
    assert_eq!(skills, [0, 0, 0, 1, 0]);
}

/// An `edit` that returns its arguments, in place of the program's own.
const EDITS: &str = "export default { description: 'edits', args: { says: { type: 'string' } }, execute: async (args) => args.says }\n";

/// Its pattern matches another `edit` tool's messages, and it sees results only, while OpenCode's own tool throws.
#[test]
fn it_helps_after_edits_that_fail_where_the_tool_answers_so() {
    let edit = json!({ "filePath": "hello.txt", "oldString": "not in there", "newString": "x" });
    let says = |text: &str| turn([call("edit", json!({ "says": text }))]);
    let thrown = "Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings.";
    let Some(world) = omo([
        turn([call("edit", edit)]),
        done(),
        says("Error: oldString not found in content"),
        says("oldString found multiple times and requires more context"),
        says("oldString and newString must be different"),
        says(thrown),
        done(),
    ]) else {
        return;
    };
    run(&world, &["edit it"]).ok();
    world.file(".opencode/tools/edit.js", EDITS);
    run(&world, &["edit it with another tool"]).ok();
    let requests = world.mock.requests();
    let result: Vec<String> = requests
        .iter()
        .filter_map(|r| r.texts("tool").pop())
        .collect();
    let [own, found @ .., reworded] = &result[..] else {
        panic!("{result:#?}")
    };
    assert_eq!((own.as_str(), reworded.as_str()), (thrown, thrown));
    assert_eq!(found.len(), 3, "{found:#?}");
    for found in found {
        assert!(
            found.contains("[EDIT ERROR - IMMEDIATE ACTION REQUIRED]"),
            "{found}"
        );
    }
}

#[test]
fn its_agents_may_not_use_what_they_are_denied_and_sessions_are_read() {
    let Some(world) = omo([text("Two whales swim.")]) else {
        return;
    };
    // Without its own model, that tool requests the first of its chain, which is not available here.
    configure(
        &world,
        &json!({ "agents": { "explore": { "model": "mock/m1" } } }),
    );
    let server = serve(&world);
    let id = session(&server);
    let ask = |agent: &str, tool: &str, args: &Value| {
        let said = format!("{agent}, try {tool}");
        world.mock.when(&said, turn([call(tool, args.clone())]));
        let body = json!({ "agent": agent, "parts": [{ "type": "text", "text": said }] });
        let path = format!("/session/{id}/message");
        server.post(&path, &body).json(200);
    };
    let child = || {
        let children = server.get(&format!("/session/{id}/children")).json(200);
        children[0]["id"].as_str().map(str::to_owned)
    };
    // A tool denied to an agent is not offered, and a call of it is refused anyway.
    let refused = |session: &str, tool: &str| {
        let refused = result(&server, session, "invalid");
        let says = format!("Model tried to call unavailable tool '{tool}'.");
        assert!(refused.contains(&says), "{refused}");
    };
    let (leader, junior) = ("Sisyphus - ultraworker", "Sisyphus-Junior");
    let look = json!({
        "description": "look", "prompt": "Look for whales", "subagent_type": "explore", "run_in_background": false,
    });
    ask(leader, "call_omo_agent", &look);
    refused(&id, "call_omo_agent");
    assert_eq!(child(), None);

    let write = json!({ "filePath": "whales.txt", "content": "two" });
    let write = turn([call("write", write)]);
    world.mock.when("Look for whales", write);
    ask(junior, "call_omo_agent", &look);
    let answer = result(&server, &id, "call_omo_agent");
    assert!(answer.contains("Two whales swim."), "{answer}");
    let child = child().unwrap();
    refused(&child, "write");
    assert!(!world.path("whales.txt").exists());

    let of_child = json!({ "session_id": child });
    ask(leader, "session_read", &of_child);
    let read = result(&server, &id, "session_read");
    for part in ["[user (explore)]", "Look for whales", "Two whales swim."] {
        assert!(read.contains(part), "{part}: {read}");
    }
    ask(leader, "session_info", &of_child);
    let info = result(&server, &id, "session_info");
    let begins = format!("Session ID: {child}\nMessages: 3\n");
    assert!(
        info.starts_with(&begins) && info.contains("Agents Used: explore\n"),
        "{info}"
    );
}

/// Without its own model, `call_omo_agent` requests the first of its chain, which is not available here. The message is
/// stored as in OpenCode; otherwise the tool would wait half a minute for it.
#[test]
fn a_model_that_nobody_has_does_not_hold_its_agents_up() {
    let Some(world) = omo([text("Two whales swim.")]) else {
        return;
    };
    let server = serve(&world);
    let id = session(&server);
    let look = json!({
        "description": "look", "prompt": "Look for whales", "subagent_type": "explore", "run_in_background": false,
    });
    let said = "try the agent";
    world.mock.when(said, turn([call("call_omo_agent", look)]));
    let body = json!({ "agent": "Sisyphus-Junior", "parts": [{ "type": "text", "text": said }] });
    server
        .post(&format!("/session/{id}/message"), &body)
        .json(200);
    let children = server.get(&format!("/session/{id}/children")).json(200);
    let child = children[0]["id"].as_str().unwrap();
    let messages = server.get(&format!("/session/{child}/message")).json(200);
    assert_eq!(messages[0]["parts"][0]["text"], "Look for whales");
    let answer = result(&server, &id, "call_omo_agent");
    assert_eq!(answer, "Error: No assistant or tool response found");
}
