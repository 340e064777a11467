//! Hook points of our own: each is told as often as it happens (C1, C5, A4).

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::*;

const PLUGIN: &str = r"
import fs from 'node:fs'
const names = ['session.before_create', 'run.after_start', 'execute.before_step', 'llm.before_request', 'llm.after_response',
  'execute.after_step', 'message.completed', 'tool.on_error', 'run.on_error', 'session.on_error', 'hook.on_error']
export const Points = async () => {
  const hooks = { 'chat.headers': async (input) => { if (input.agent === 'build') throw new Error('broken') } }
  for (const name of names) hooks[name] = async (input, output) =>
    fs.appendFileSync('points.log', name + ' ' + (input.step ?? input.code ?? input.hook ?? output.parts?.length ?? '') + '\n')
  return hooks
}
";

fn told(world: &World) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in world.lines("points.log") {
        *counts.entry(line.trim().to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn each_is_told_as_often_as_it_happens() {
    let missing = call("read", json!({ "filePath": "missing.txt" }));
    let world = World::new([turn([missing]), done()]);
    world.plugin("points", PLUGIN);
    world.run(&["hi"]).ok();
    let want = [
        ("execute.after_step", 2),
        ("execute.before_step 1", 1),
        ("execute.before_step 2", 1),
        ("hook.on_error chat.headers", 2),
        ("llm.after_response", 2),
        // The title's.
        ("llm.before_request", 1),
        ("llm.before_request 1", 1),
        ("llm.before_request 2", 1),
        ("message.completed 3", 2),
        ("run.after_start", 1),
        ("session.before_create", 1),
        ("tool.on_error tool.failed", 1),
    ];
    let want: BTreeMap<String, usize> = want.map(|(name, n)| (name.to_owned(), n)).into();
    assert_eq!(told(&world), want);
    world.verify();
}

/// A call that is refused before it comes to the runtime is a failed one, too.
#[test]
fn a_call_that_is_refused_as_a_loop_is_told() {
    let again = || turn([call("read", json!({ "filePath": "hello.txt" }))]);
    let world = World::new([again(), again(), again(), again(), done()]);
    world.plugin("points", PLUGIN);
    world.run(&["hi"]);
    let told = told(&world);
    assert_eq!(told.get("tool.on_error tool.loop"), Some(&1), "{told:?}");
    world.verify();
}

/// A handler that throws there has failed, which is no refusal (C5): the request is sent, and the failure is told.
#[test]
fn a_throw_before_a_request_costs_nothing_and_is_told() {
    let world = World::new([done()]);
    let policy = "export const P = async () => ({ 'llm.before_request': async () => { throw new Error('not on my watch') } })";
    world.plugin("policy", policy);
    world.plugin("points", PLUGIN);
    world.run(&["hi"]).ok();
    assert_eq!(world.mock.requests().len(), 1);
    // The title's request is asked about, too.
    assert_eq!(
        told(&world).get("hook.on_error llm.before_request"),
        Some(&2)
    );
}

/// A4: on request a plugin's `chat.message` is about completed assistant messages, with every part in its final state.
#[test]
fn chat_message_can_be_about_the_assistant() {
    let world = World::new([
        turn([call("read", json!({ "filePath": "missing.txt" }))]),
        done(),
    ]);
    let source = r"
import fs from 'node:fs'
export const P = async () => ({ 'chat.message': async (_, o) => fs.appendFileSync('said.log',
  o.message.role + ' ' + o.parts.map((p) => p.state?.status ?? p.type).join(',') + '\n') })
";
    world.plugin("scribe", source);
    world.plugin("usual", &source.replace("said.log", "usual.log"));
    world.settings("[plugins.scribe]\nchat_message = \"assistant\"\n");
    world.run(&["hi"]).ok();
    let mut said = world.lines("said.log");
    said.sort();
    assert_eq!(
        said,
        [
            "assistant step-start,error,step-finish",
            "assistant step-start,text,step-finish"
        ]
    );
    assert_eq!(world.lines("usual.log"), ["user text"]);
}
