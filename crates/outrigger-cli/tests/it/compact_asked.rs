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
