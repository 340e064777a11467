//! Hooks reach everything: each agent, each subagent, each call of a batch, tools of MCP servers; no declared hook stays
//! uncalled.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::{granting, rewrites};

const RICH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../outrigger-mcp/tests/it/rich.mjs"
);

/// Writes down each hook call, with the agent, the tool and the session if the hook's input has them.
const EVERY: &str = r"
import fs from 'node:fs'
const names = ['config', 'chat.message', 'chat.params', 'chat.headers', 'permission.ask', 'command.execute.before',
  'tool.execute.before', 'tool.execute.after', 'shell.env', 'experimental.chat.messages.transform',
  'experimental.chat.system.transform', 'experimental.session.compacting', 'experimental.compaction.autocontinue',
  'experimental.text.complete', 'tool.definition', 'event', 'dispose']
export const Every = async ({ directory }) => {
  const hooks = {}
  for (const name of names) hooks[name] = async (input, output) => {
    if (name === 'permission.ask') output.status = 'allow'
    const agent = input?.agent?.name ?? input?.agent ?? input?.message?.agent ?? ''
    const line = { name, agent: typeof agent === 'string' ? agent : '', tool: input?.tool, session: input?.sessionID, call: input?.callID }
    fs.appendFileSync(directory + '/every.jsonl', JSON.stringify(line) + '\n')
  }
  return hooks
}";

fn seen(world: &World) -> Vec<Value> {
    world
        .lines("every.jsonl")
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn named<'s>(seen: &'s [Value], name: &str) -> Vec<&'s Value> {
    seen.iter().filter(|line| line["name"] == name).collect()
}

#[test]
fn each_call_of_a_batch_and_each_agent_is_seen() {
    let bash = |word: &str| {
        call(
            "bash",
            json!({ "command": format!("echo {word}"), "description": "d" }),
        )
    };
    let glob = || call("glob", json!({ "pattern": "*" }));
    let say = || call("notes_say", json!({ "text": "x" }));
    let task = call(
        "task",
        json!({ "description": "d", "prompt": "sub", "subagent_type": "general" }),
    );
    let world = World::new([
        turn([bash("one"), say(), glob(), bash("two"), say()]),
        turn([task]),
        turn([say(), glob()]),
        text("the subagent is done"),
        done(),
    ]);
    world.config(json!({
        "mcp": { "notes": { "type": "local", "command": ["node", RICH] } },
        "permission": { "bash": "ask" },
    }));
    let plugin = world.plugin("every", EVERY);
    granting(&world, &format!("[plugins.{plugin:?}]\napprove = true\n"));
    assert_eq!(world.run(&["hi"]).ok().stdout, "All done.\n");
    let seen = seen(&world);
    let tools = |name: &str, session: &Value| -> Vec<String> {
        let mut tools: Vec<String> = named(&seen, name)
            .into_iter()
            .filter(|line| line["session"] == *session)
            .map(|line| line["tool"].as_str().unwrap().to_owned())
            .collect();
        tools.sort();
        tools
    };
    let sessions: Vec<&Value> = named(&seen, "chat.message")
        .into_iter()
        .map(|line| &line["session"])
        .collect();
    assert_eq!(sessions.len(), 2, "{seen:?}");
    for name in ["tool.execute.before", "tool.execute.after"] {
        assert_eq!(
            tools(name, sessions[0]),
            ["bash", "bash", "glob", "notes_say", "notes_say", "task"],
            "{name}"
        );
        assert_eq!(tools(name, sessions[1]), ["glob", "notes_say"], "{name}");
        let calls: BTreeSet<String> = named(&seen, name)
            .into_iter()
            .map(|line| format!("{} {}", line["session"], line["call"]))
            .collect();
        assert_eq!(calls.len(), 8, "{name}: each call has its own id");
    }
    assert_eq!(named(&seen, "permission.ask").len(), 2);
    assert_eq!(named(&seen, "shell.env").len(), 2);
    for name in ["chat.params", "chat.headers"] {
        let agents: BTreeSet<&str> = named(&seen, name)
            .into_iter()
            .filter_map(|line| line["agent"].as_str())
            .collect();
        assert!(
            agents.contains("build") && agents.contains("general"),
            "{name}: {agents:?}"
        );
    }
    for name in [
        "config",
        "experimental.chat.messages.transform",
        "experimental.chat.system.transform",
        "experimental.text.complete",
        "tool.definition",
        "event",
        "dispose",
    ] {
        assert!(!named(&seen, name).is_empty(), "{name} was never called");
    }
    world.verify();
}

/// Covers the hooks that a plain turn does not reach.
#[test]
fn hooks_of_commands_and_compactions_are_called() {
    let world = World::new([done()]);
    world.config(json!({ "command": { "greet": { "template": "say hi" } } }));
    world.plugin("every", EVERY);
    world.run(&["--command", "greet"]).ok();
    assert_eq!(named(&seen(&world), "command.execute.before").len(), 1);
    let server = world.serve(&["--no-auth"]);
    let session = server.get("/session").json(200)[0]["id"].clone();
    let path = format!("/session/{}/summarize", session.as_str().unwrap());
    let body = json!({ "providerID": "mock", "modelID": "m1", "auto": true });
    server.post(&path, &body).json(200);
    for name in [
        "experimental.session.compacting",
        "experimental.compaction.autocontinue",
    ] {
        assert_eq!(named(&seen(&world), name).len(), 1, "{name}");
    }
}

/// `shell.env` is asked again for each session: a cache would give one session the other's answer.
#[test]
fn shell_env_knows_its_session() {
    let world = World::with(
        Mock::new([
            turn([call(
                "bash",
                json!({ "command": "echo $WHOSE >> env.txt", "description": "d" }),
            )]),
            done(),
        ])
        .by_results(),
    );
    let plugin = world.plugin(
        "whose",
        "export const P = async () => ({ 'shell.env': async (i, o) => { o.env.WHOSE = i.sessionID } })",
    );
    granting(&world, &rewrites(&plugin));
    let server = world.serve(&["--no-auth"]);
    let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
    let mut ids = Vec::new();
    for _ in 0..3 {
        let session = server.post("/session", &json!({})).json(200);
        let id = session["id"].as_str().unwrap().to_owned();
        server
            .post(&format!("/session/{id}/message"), &prompt)
            .json(200);
        ids.push(id);
    }
    assert_eq!(world.lines("env.txt"), ids);
}
