//! Compactions that plugins and clients request in the middle of a turn, and their cancellation.

use serde_json::json;

use crate::compact::{noted, roles, said};
use crate::support::*;

const CLIENT: &str = "
import fs from 'node:fs'
export const P = async ({ serverUrl }) => {
  const note = (x) => fs.appendFileSync('noted.jsonl', JSON.stringify(x) + '\\n')
  const ask = async (id, body) => {
    const answer = await fetch(new URL('/session/' + id + '/summarize', serverUrl), { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
    const said = await answer.json()
    note({ status: answer.status, answer: said === true ? true : said.data?.message ?? said })
  }
  const model = { providerID: 'mock', modelID: 'm1' }
  return { tool: {
    wrong: { description: 'x', args: {}, execute: async (_, { sessionID }) => {
      await ask(sessionID, { providerID: 'mock' })
      await ask(sessionID, { ...model, modelID: 'nosuch' })
      await ask('ses_none', model)
      return 'ok'
    } },
    shrink: { description: 'x', args: {}, execute: async (_, { sessionID }) => {
      await ask(sessionID, { ...model, auto: true })
      return 'asked'
    } },
    waits: { description: 'x', args: {}, execute: async (_, { sessionID }) => {
      await ask(sessionID, model)
      return 'answered'
    } },
  } }
}
";

/// As in OpenCode, the message is added at once and the summary follows after the step.
#[test]
fn a_plugin_asks_for_a_compaction_in_the_middle_of_a_turn() {
    let world = World::new([turn([call("shrink", json!({}))]), done()]);
    world.plugin("p", CLIENT);
    assert_eq!(world.run(&["go"]).ok().stdout, "All done.\n");
    assert_eq!(
        roles(&world),
        [
            "user",
            "assistant",
            "compaction",
            "summary",
            "user",
            "assistant"
        ]
    );
    let asked = said(&world.mock.requests()[1].body).remove(0);
    assert!(
        asked.contains("[Tool result]: asked"),
        "the step is part of it: {asked}"
    );
    world.verify();
}

/// A tool that waits for the summary would wait for itself, so it is answered once the request is
/// stored.
#[test]
fn a_plugin_that_waits_for_a_compaction_of_its_own_turn_is_answered() {
    let world = World::new([turn([call("waits", json!({}))]), done()]);
    world.plugin("p", CLIENT);
    world.run(&["go"]).ok();
    assert_eq!(
        roles(&world),
        ["user", "assistant", "compaction", "summary"]
    );
    assert_eq!(
        noted(&world, "noted.jsonl"),
        [json!({ "status": 200, "answer": true })]
    );
    world.verify();
}

#[test]
fn a_request_for_a_compaction_that_makes_no_sense_is_refused() {
    let world = World::new([turn([call("wrong", json!({}))]), done()]);
    world.plugin("p", CLIENT);
    world.run(&["go"]).ok();
    let statuses: Vec<_> = noted(&world, "noted.jsonl")
        .iter()
        .map(|n| n["status"].clone())
        .collect();
    assert_eq!(statuses, [400, 400, 404]);
    assert_eq!(roles(&world), ["user", "assistant", "assistant"]);
}

#[test]
fn cancelled_in_a_compaction_the_history_stays() {
    let stalled = json!({ "text": "Half of the summary is here", "stall": 3 });
    let world = World::with(Mock::new([text("one"), text("two")]).summaries([stalled]));
    world.run(&["first-question"]).ok();
    let running = world.start(world.command(&["run", "-c", "--command", "compact"]));
    let asked = || {
        world
            .mock
            .requests()
            .iter()
            .any(|request| request.is_summary)
    };
    assert!(wait_until(WAIT_TIMEOUT, asked));
    running.signal(rustix::process::Signal::INT);
    running.end().exited(130);
    world.run(&["-c", "second-question"]).ok();
    assert_eq!(
        said(&world.mock.last().body),
        [
            "user: first-question",
            "assistant: one",
            "user: second-question"
        ]
    );
    world.verify();
}

/// Leaves a message for the agent AGENT in the session whose turn has ended.
const LEAVES: &str = r"
import fs from 'node:fs'
let done = false
export const P = async ({ serverUrl, directory }) => ({ event: async ({ event }) => {
  if (event.type !== 'session.idle' || done) return
  done = true
  const path = '/session/' + event.properties.sessionID + '/message'
  const body = JSON.stringify({ noReply: true, agent: 'AGENT', parts: [{ type: 'text', text: 'x' }] })
  const answer = await fetch(new URL(path, serverUrl), { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  fs.writeFileSync(directory + '/left.txt', String(answer.status))
} })
";

/// The agent of the last prompt answers, but not one that a plugin named and that may do more than the one before.
#[test]
fn a_compaction_is_answered_by_no_wider_agent_that_a_plugin_named() {
    for (named, is_granted, want) in [
        ("wide", false, "build"),
        ("careful", false, "careful"),
        ("wide", true, "wide"),
    ] {
        let world = World::new([done(), done()]);
        world.config(json!({ "permission": { "bash": "ask" }, "agent": {
            "wide": { "permission": { "bash": "allow" } },
            "careful": { "permission": { "bash": "deny" } },
        } }));
        let plugin = world.plugin("leaves", &LEAVES.replace("AGENT", named));
        let grant = format!("[plugins.{plugin:?}]\nprompt = {is_granted}\n");
        crate::user_grants::granting(&world, &grant);
        let server = world.serve(&["--no-auth"]);
        let session = server.post("/session", &json!({ "title": "x" })).json(200);
        let path = format!("/session/{}", session["id"].as_str().unwrap());
        let prompt = json!({ "parts": [{ "type": "text", "text": "hello" }] });
        server.post(&format!("{path}/message"), &prompt).json(200);
        assert!(wait_until(WAIT_TIMEOUT, || world.path("left.txt").exists()));
        assert!(wait_until(WAIT_TIMEOUT, || world.read("left.txt") == "200"));
        let model = json!({ "providerID": "mock", "modelID": "m1" });
        server.post(&format!("{path}/summarize"), &model).json(200);
        let messages = server.get(&format!("{path}/message")).json(200);
        let mut asked = messages
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .filter(|it| it["parts"][0]["type"] == "compaction");
        let info = &asked.next().unwrap()["info"];
        assert_eq!(info["agent"], want, "{named} {is_granted}: {info}");
    }
}
