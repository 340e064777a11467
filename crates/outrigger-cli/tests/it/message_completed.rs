//! `message.completed` fires exactly once for each message of a model (A4), however its turn ends.

use std::collections::BTreeMap;

use outrigger_protocol::message::MessageInfo;
use outrigger_store::{SessionFilter, Store};
use rustix::process::Signal;
use serde_json::json;

use crate::support::*;

/// Writes a line for each call: hook, message, and the number of its tool parts still in progress.
const SCRIBE: &str = r"
import fs from 'node:fs'
export const P = async ({ directory }) => {
  const hooks = {}, said = directory + '/completed.log'
  for (const name of ['message.completed', 'execute.after_step']) hooks[name] = async (input, output) => {
    const open = (output.parts ?? []).filter((part) => part.type === 'tool' && !['completed', 'error'].includes(part.state.status))
    fs.appendFileSync(said, name + ' ' + input.messageID + ' ' + open.length + '\n')
  }
  return hooks
}
";

/// Returns the lines of one hook, each with its number of occurrences.
fn heard(world: &World, hook: &str) -> BTreeMap<String, usize> {
    let mut heard = BTreeMap::new();
    for line in world.lines("completed.log") {
        if let Some(message) = line.strip_prefix(&format!("{hook} ")) {
            *heard.entry(message.to_owned()).or_default() += 1;
        }
    }
    heard
}

/// Returns the expected [`heard`] if each message of a model was reported once, with nothing unfinished.
fn once_each(world: &World) -> BTreeMap<String, usize> {
    let (store, _) = Store::open(&world.store()).unwrap();
    let mut want = BTreeMap::new();
    for session in store.sessions(&SessionFilter::default()).unwrap() {
        for message in store.messages(&session.id).unwrap() {
            if let MessageInfo::Assistant(answer) = message.info
                && answer.time.completed.is_some()
            {
                want.insert(format!("{} 0", answer.id), 1);
            }
        }
    }
    want
}

#[test]
fn a_summary_completes_once_whether_it_is_empty_or_not() {
    for (summary, code) in [("", 1), ("What was said.", 0)] {
        let world = World::with(Mock::new([text("one")]).summaries([text(summary)]));
        world.plugin("scribe", SCRIBE);
        world.run(&["first-question"]).ok();
        world.run(&["-c", "--command", "compact"]).exited(code);
        let want = once_each(&world);
        assert_eq!(want.len(), 2, "{summary}");
        assert_eq!(heard(&world, "message.completed"), want, "{summary}");
        assert_eq!(heard(&world, "execute.after_step"), want, "{summary}");
        world.verify();
    }
}

#[test]
fn an_aborted_turn_and_a_subagent_complete_once() {
    let waits = json!({ "command": "touch begun; sleep 60", "description": "waits" });
    let task = json!({ "description": "sub", "prompt": "work", "subagent_type": "general" });
    let world = World::new([
        turn([call("task", task)]),
        text("The subagent's."),
        turn([call("bash", waits)]),
    ]);
    world.plugin("scribe", SCRIBE);
    let running = world.start(world.command(&["run", "delegate"]));
    assert!(wait_until(WAIT_TIMEOUT, || world.path("begun").exists()));
    running.signal(Signal::INT);
    running.end().exited(130);
    let want = once_each(&world);
    assert_eq!(want.len(), 3);
    assert_eq!(heard(&world, "message.completed"), want);
    world.verify();
}

/// After a kill at any step, the next process reports what this one could not, and reports nothing twice.
#[test]
fn a_killed_process_loses_none_and_doubles_none() {
    for n in [5, 7, 9, 11] {
        let world = World::new([
            turn([call("read", json!({ "filePath": "hello.txt" }))]),
            done(),
            done(),
        ]);
        world.plugin("scribe", SCRIBE);
        let what = format!("turn.after_step:{n}");
        let killed = world.run_with(&[("OUTRIGGER_FAULT", &what)], &["hi"]);
        assert!(killed.code != 0, "{what} was never reached");
        world.run(&["-c", "go on"]).ok();
        assert_eq!(
            heard(&world, "message.completed"),
            once_each(&world),
            "{what}"
        );
        world.verify();
    }
}
