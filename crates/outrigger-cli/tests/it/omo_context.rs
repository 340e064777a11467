//! What `oh-my-opencode` does about the model's context, and outside the turn (requirement B7).

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::omo::{offline, omo, run};
use crate::omo_config::configure;
use crate::omo_server::{background, command, say, serve, session, until_asked};
use crate::support::*;

/// An MCP server with one tool.
const ECHO: &str = r#"
import readline from 'node:readline'
const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n')
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') send(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'echo', version: '1' } })
  else if (method === 'tools/list') send(id, { tools: [{ name: 'say', description: 'says', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } }] })
  else if (method === 'tools/call') send(id, { content: [{ type: 'text', text: 'echo says ' + params.arguments.text }] })
  else if (id !== undefined) send(id, {})
})
"#;

/// Removes the result of the first call that it sees.
const LOSER: &str = r#"
export const Loser = async () => ({
  "experimental.chat.messages.transform": async (_, output) => {
    const part = output.messages.flatMap((message) => message.parts).find((part) => part.type === "tool");
    if (part) part.state = { status: "running", input: part.state.input, time: { start: 1 } };
  },
});
"#;

/// Returns a turn that fills most of the context of [`it_keeps_the_context_small_and_whole`]'s model.
fn filled(tool: Value) -> Value {
    let mut turn = turn([tool]);
    turn["usage"] = json!([16_500, 10]);
    turn
}

#[test]
fn it_keeps_the_context_small_and_whole() {
    let Some(bun) = bun_or_skip() else { return };
    let Some(world) = omo([
        turn([call(
            "skill_mcp",
            json!({ "mcp_name": "echo", "tool_name": "say", "arguments": { "text": "pong" } }),
        )]),
        filled(call("read", json!({ "filePath": "hello.txt" }))),
        filled(call(
            "grep",
            json!({ "pattern": "line", "path": ".", "output_mode": "content" }),
        )),
        done(),
    ]) else {
        return;
    };
    let own = json!({ "experimental": { "preemptive_compaction": true, "truncate_all_tool_outputs": true } });
    configure(&world, &own);
    let echo = world.file("echo.mjs", ECHO);
    let skill = format!(
        "---\nname: echoes\ndescription: echoes\nmcp:\n  echo:\n    command: {}\n    args: [{}]\n---\nEcho.\n",
        bun.display(),
        echo.display(),
    );
    world.file(".opencode/skills/echoes/SKILL.md", &skill);
    // Loaded before the plugin, which must repair the damage.
    let loser = world.file("loser.js", LOSER);
    let plugins = [
        format!("file://{}", loser.display()),
        crate::omo::OMO.to_owned(),
    ];
    world.config(json!({ "plugin": plugins }));
    let limit = json!({ "limit": { "context": 20_000, "output": 1000 } });
    world.config(json!({ "provider": { "mock": { "models": { "m1": limit } } } }));
    for n in 0..30 {
        let text = format!("a line of file {n} that is long enough to matter when it is cut\n");
        world.file(&format!("big/{n}.txt"), &text.repeat(20));
    }
    run(&world, &["look around"]).ok();
    let requests = world.mock.requests();
    let result: Vec<String> = requests
        .iter()
        .filter_map(|request| request.texts("tool").pop())
        .collect();
    // An MCP server of one of its skills. Its result reached the log, and the other plugin removed it from the
    // request.
    assert!(result[0].contains("interrupted"), "{}", result[0]);
    let calls = world.parts("tool");
    assert!(
        calls[0]["state"]["output"]
            .as_str()
            .unwrap_or_default()
            .contains("echo says pong"),
        "{}",
        calls[0]
    );
    // A call without a result is followed by a note.
    let mended = "Recovered missing tool results.";
    assert!(
        requests[1]
            .texts("user")
            .iter()
            .any(|t| t.starts_with(mended)),
        "{:#?}",
        requests[1].body["messages"]
    );
    // Output is cut to what fits into the context.
    let grep = calls[2]["state"]["output"].as_str().unwrap_or_default();
    assert!(
        grep.contains("truncated due to context window limit"),
        "{grep}"
    );
    // A summary before the context is full, with the parts the plugin requires.
    let summary = requests.iter().find(|request| request.is_summary);
    let asked = summary.unwrap().texts("user").concat();
    assert!(asked.contains("## 8. Delegated Agent Sessions"), "{asked}");
}

#[test]
fn it_tells_of_a_session_that_waits_and_of_an_agent_that_hangs() {
    let Some(world) = omo([
        text("Hello."),
        turn([background("Look for zebras")]),
        turn([call(
            "bash",
            json!({ "command": "sleep 2; true", "description": "waits" }),
        )]),
        text("Not yet."),
    ]) else {
        return;
    };
    let own = json!({ "babysitting": { "timeout_ms": 500 }, "agents": { "explore": { "model": "mock/gemini" } } });
    configure(&world, &own);
    let model =
        json!({ "name": "G", "tool_call": true, "limit": { "context": 100_000, "output": 4000 } });
    world.config(json!({ "provider": { "mock": { "models": { "gemini": model } } } }));
    world.mock.when(
        "Look for zebras",
        json!({ "reasoning": "hm", "text": "I am looking", "stall": 3 }),
    );
    let notify = world.file(
        "bin/notify-send",
        "#!/bin/sh\necho \"$1: $2\" >> notified.txt\n",
    );
    std::fs::set_permissions(&notify, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", notify.parent().unwrap().display());
    let mut command = offline(&world, &["serve", "--port", &free_port(), "--no-auth"]);
    command.env("PATH", path);
    let server = world.serve_with(command);
    let id = session(&server);

    say(&server, &id, "hello there");
    let notified = wait_until(WAIT_TIMEOUT, || {
        world.read("notified.txt").contains("Hello.")
    });
    assert!(notified, "{}", world.read("notified.txt"));

    say(&server, &id, "look for zebras in the background");
    until_asked(&world, "Unstable background agent appears idle");
}

/// The program's own compaction is switched off, so the plugin recovers the session.
#[test]
fn a_full_context_is_summarised_and_the_session_goes_on() {
    let error = "prompt is too long: 210000 tokens > 200000 maximum";
    let Some(mut world) = omo([
        text("Hello."),
        json!({ "status": 400, "error": error }),
        text("Here it is."),
    ]) else {
        return;
    };
    world.mock = world.mock.summaries([text("We greeted each other.")]);
    world.config(json!({ "compaction": { "auto": false } }));
    let server = serve(&world);
    let id = session(&server);
    say(&server, &id, "hello there");
    let mut events = server.events("/event");
    let mut toast = |begins: &str| {
        let mut toasts = (0..9).map(|_| events.until("tui.toast.show"));
        let found = |toast: Value| {
            let toast = &toast["properties"];
            let said = format!("{}: {}", toast["title"], toast["message"]);
            said.replace('"', "").starts_with(begins)
        };
        assert!(toasts.any(found), "{begins}");
    };
    let failed = say(&server, &id, "find it");
    assert!(failed["info"]["error"].is_object(), "{failed}");
    toast("Context Limit Hit");
    toast("Auto Compact: Summarizing session (attempt 1/");
    events.until("session.compacted");
    // The model is asked again, with the summary in place of the conversation.
    let answered = || {
        let messages = server.get(&format!("/session/{id}/message")).json(200);
        messages.to_string().contains("Here it is.")
    };
    assert!(wait_until(WAIT_TIMEOUT, answered));
    let last = world.mock.last();
    let said = last.body["messages"].to_string();
    assert!(
        said.contains("We greeted each other.") && !said.contains("hello there"),
        "{said}"
    );
}

/// After a summary its plan executor starts its own list, which must not replace the existing one.
#[test]
fn a_list_of_todos_outlives_a_summary() {
    let todo =
        |content: &str| json!({ "content": content, "status": "pending", "priority": "high" });
    let begun = [
        todo("Complete ALL implementation tasks"),
        todo("Pass Final Verification Wave - ALL reviewers APPROVE"),
    ];
    let Some(mut world) = omo([
        filled(call(
            "todowrite",
            json!({ "todos": [todo("Paint the boat")] }),
        )),
        turn([call("todowrite", json!({ "todos": begun }))]),
        text("Begun."),
    ]) else {
        return;
    };
    world.mock = world.mock.summaries([text("A boat is to be painted.")]);
    let limit = json!({ "limit": { "context": 17_000, "output": 1000 } });
    world.config(json!({ "provider": { "mock": { "models": { "m1": limit } } } }));
    run(&world, &["paint the boat"]).ok();
    assert!(
        world.mock.requests().iter().any(|it| it.is_summary),
        "no summary"
    );
    let calls = world.parts("tool");
    let written: Vec<&Value> = calls
        .iter()
        .map(|call| &call["state"]["input"]["todos"])
        .collect();
    assert_eq!(written.len(), 2, "{calls:#?}");
    for list in written {
        assert_eq!(list[0]["content"], "Paint the boat", "{calls:#?}");
    }
}

#[test]
fn a_plan_is_gone_on_with_until_it_is_stopped() {
    let Some(world) = omo([text("Not yet.")]) else {
        return;
    };
    world.file(
        ".omo/plans/paint.md",
        "# Paint\n\n## TODOs\n\n- [ ] 1. Paint the boat\n- [ ] 2. Paint the oar\n",
    );
    let server = serve(&world);
    let id = session(&server);
    command(&server, &id, "start-work", "paint");
    until_asked(&world, "BOULDER CONTINUATION]");
    command(&server, &id, "stop-continuation", "");
    let asked = world.mock.requests().len();
    // Its cool-down is five seconds: without the stop it would have continued by then.
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(world.mock.requests().len(), asked);
}
