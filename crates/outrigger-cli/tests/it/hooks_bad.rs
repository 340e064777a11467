//! Hooks that throw, hang, crash or make noise: each has only the necessary cost, and the culprit is named.

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

const NEIGHBOUR: &str = "
import fs from 'node:fs'
export const Neighbour = async ({ directory }) => ({
  'chat.message': async (_, o) => { o.parts[0].text += ' (neighbour)' },
  'tool.execute.after': async () => fs.appendFileSync(directory + '/after.txt', 'after\\n'),
})";

/// Sets up a turn with one tool, a neighbour in the same process, and this plugin.
fn beside(source: &str) -> World {
    let world = World::new([bash("echo ran >> ran.txt"), done()]);
    world.plugin("culprit", source);
    world.plugin("neighbour", NEIGHBOUR);
    world
}

/// Checks that the turn is what it would have been without the culprit, and returns the output outside the
/// turn.
#[track_caller]
fn costs_nothing(world: &World) -> String {
    let done = world.run(&["hi"]).ok();
    assert_eq!(done.stdout, "All done.\n");
    assert_eq!(world.lines("ran.txt"), ["ran"], "{}", done.stderr);
    assert_eq!(world.lines("after.txt"), ["after"], "{}", done.stderr);
    assert!(
        world
            .mock
            .last()
            .texts("user")
            .concat()
            .contains("hi (neighbour)"),
        "{}",
        done.stderr
    );
    world.verify();
    without_turn(&done.stderr)
}

/// Returns the lines of standard error that are not about the turn itself.
fn without_turn(stderr: &str) -> String {
    let about = |line: &&str| !line.is_empty() && !line.starts_with(['>', '$', '(']);
    let lines: Vec<String> = stderr
        .lines()
        .map(str::trim_start)
        .filter(about)
        .map(without_session)
        .collect();
    lines.join("\n")
}

#[test]
fn a_throw_in_chat_message() {
    let world = beside(
        "export const C = async () => ({ 'chat.message': async () => { throw new Error('not today') } })",
    );
    insta::assert_snapshot!(costs_nothing(&world), @"WARN plugin culprit: error at chat.message in session ID: not today");
}

#[test]
fn a_throw_in_an_event_hook() {
    let world =
        beside("export const C = async () => ({ event: () => { throw new Error('sync') } })");
    costs_nothing(&world);
    let world = beside(
        "export const C = async () => ({ event: async () => { throw new Error('async') } })",
    );
    costs_nothing(&world);
}

#[test]
fn stray_promises_and_late_errors() {
    let world = beside(
        "export const C = async () => ({ 'chat.message': async () => { Promise.reject(new Error('stray')); setTimeout(() => { throw new Error('late') }, 0) } })",
    );
    costs_nothing(&world);
}

/// stdout does not carry the protocol.
#[test]
fn noise_on_standard_output() {
    let world = beside("
console.log('loading', { a: 1 })
process.stdout.write('x'.repeat(300000) + '\\n')
export const C = async () => ({
  'chat.message': async () => { console.log('{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'); console.error('oops') },
  event: async () => { process.stdout.write(Buffer.from([0, 0, 0, 5, 255, 254])) },
})");
    costs_nothing(&world);
}

#[test]
fn a_hook_that_never_answers_costs_one_call() {
    let world =
        beside("export const C = async () => ({ 'chat.message': () => new Promise(() => {}) })");
    granting(&world, "[plugins.culprit]\ntimeout_ms = 700\n");
    insta::assert_snapshot!(costs_nothing(&world), @"WARN plugin process shared (generation 1) is started again: culprit (chat.message) did not answer within 700 ms");
}

/// The process no longer answers at all: it is restarted, and the plugin whose hook was running is named.
#[test]
fn a_hook_that_spins() {
    let world =
        beside("export const C = async () => ({ 'chat.message': async () => { for (;;) {} } })");
    granting(&world, "[plugins.culprit]\ntimeout_ms = 700\n");
    insta::assert_snapshot!(costs_nothing(&world), @r"
    WARN plugin process shared (generation 1) is started again: culprit (chat.message) did not answer within 700 ms
    ");
}

#[test]
fn a_crash_in_the_middle_of_a_turn() {
    let world = beside(
        "export const C = async () => ({ 'chat.message': async () => { process.exit(3) } })",
    );
    insta::assert_snapshot!(costs_nothing(&world), @r"
    WARN plugin process shared (generation 1) is started again: culprit (chat.message): the plugin process shared is gone (exit code 3)
    ");
}

/// If the process dies before it could forbid the tool, the tool runs: a crash is not a refusal (C5).
#[test]
fn a_crash_before_a_tool() {
    let world = beside(
        "export const C = async () => ({ 'tool.execute.before': async () => { process.kill(process.pid, 'SIGKILL') } })",
    );
    costs_nothing(&world);
}

/// A guard may be declared so that its failure is a refusal.
#[test]
fn what_hooks_return_does_not_matter_and_bad_shapes_are_refused() {
    let world = beside(
        "
export const C = async () => ({
  'chat.message': async (i, o) => { o.parts = 'not a list'; return 42 },
  'tool.execute.after': async (i, o) => { o.output = { not: 'text' } },
  'experimental.chat.messages.transform': async (i, o) => { o.messages.push(null, 7) },
})",
    );
    let done = world.run(&["hi"]).ok();
    assert_eq!(done.stdout, "All done.\n", "{}", done.stderr);
    assert_eq!(world.lines("ran.txt"), ["ran"]);
    world.verify();
}

/// Once per process: what a plugin holds in memory is lost only when its process is restarted.
#[test]
fn a_plugin_keeps_its_memory_for_the_whole_run() {
    let world = World::new([bash("true"), bash("true"), bash("true"), done()]);
    world.plugin("counts", "export const C = async () => { let n = 0; return { 'tool.execute.after': async (_, o) => { o.output = 'call ' + ++n } } }");
    world.run(&["hi"]).ok();
    assert_eq!(
        world.mock.last().texts("tool"),
        ["call 1", "call 2", "call 3"]
    );
}

/// Frames far larger than a socket accepts at once.
#[test]
fn large_payloads_reach_hooks_and_come_back() {
    let world = World::new([bash("head -c 40000 /dev/zero | tr '\\0' x"), done()]);
    world.plugin("grows", "export const G = async () => ({ 'tool.execute.after': async (_, o) => { o.metadata.size = o.output.length; o.metadata.big = 'y'.repeat(3_000_000) } })");
    world.run(&["hi"]).ok();
    let metadata = &world.parts("tool")[0]["state"]["metadata"];
    assert!(metadata["size"].as_u64().unwrap() >= 40_000);
    assert_eq!(metadata["big"].as_str().unwrap().len(), 3_000_000);
    assert_eq!(world.run(&["-c", "again"]).ok().stdout, "All done.\n");
}
