//! Security-critical hooks (`fail_closed`): if one cannot say yes, the answer is no (C5).

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

fn critical(hook: &str) -> String {
    format!("[deadlines]\nnormal_ms = 2000\n[plugins.guard]\nfail_closed = [\"{hook}\"]\n")
}

/// Runs a turn that calls a tool. Returns what the model read of it, and the messages about
/// plugins.
fn run_turn(guard: &str, settings: &str) -> (World, String) {
    let world = World::new([bash("echo ran >> ran.txt"), done()]);
    world.plugin("guard", guard);
    granting(&world, settings);
    let run = world.run(&["hi"]);
    let result = world.mock.last().texts("tool");
    let first = result.first().cloned().unwrap_or_default();
    let text = format!("exit {}: {first}", run.code);
    assert_eq!(
        world.path("ran.txt").exists(),
        first.is_empty() && run.code == 0 || first.contains("(no output)"),
        "{text}\n{}",
        run.stderr
    );
    (world, text)
}

#[test]
fn a_guard_that_fails_is_late_crashes_or_is_not_there_refuses() {
    for (guard, says) in [
        (
            "export const G = async () => ({ 'tool.execute.before': async () => { throw new Error('no idea') } })",
            "no idea",
        ),
        (
            "export const G = async () => ({ 'tool.execute.before': () => new Promise(() => {}) })",
            "no answer within 2000 ms",
        ),
        (
            "export const G = async () => ({ 'tool.execute.before': () => process.exit(3) })",
            "is gone (exit code 3)",
        ),
        (
            "export const G = async () => { throw new Error('not today') }",
            "guard is failed: plugin guard",
        ),
        ("export const G = (", "guard is failed: "),
    ] {
        let (world, run_turn) = run_turn(guard, &critical("tool.execute.before"));
        assert!(run_turn.starts_with("exit 0: "), "{run_turn}");
        assert!(run_turn.contains(says), "{says}: {run_turn}");
        assert!(!world.path("ran.txt").exists(), "{guard}");
        world.verify();
    }
}

#[test]
fn the_same_guards_let_it_pass_where_they_are_not_critical() {
    for guard in [
        "export const G = async () => ({ 'tool.execute.before': () => new Promise(() => {}) })",
        "export const G = async () => ({ 'tool.execute.before': () => process.exit(3) })",
        "export const G = async () => { throw new Error('not today') }",
    ] {
        let (world, _) = run_turn(guard, "[deadlines]\nnormal_ms = 700\n");
        assert!(world.path("ran.txt").exists(), "{guard}");
    }
}

/// The third call opens the breaker, which refuses as well, with a code in the record.
#[test]
fn an_open_breaker_refuses() {
    let calls = || (0..4).map(|n| bash(&format!("echo {n} >> ran.txt")));
    let world = World::new(calls().chain([done()]));
    world.plugin(
        "guard",
        "export const G = async () => ({ 'tool.execute.before': () => new Promise(() => {}) })",
    );
    granting(&world, &critical("tool.execute.before"));
    world.run(&["hi"]).ok();
    let results = world.mock.last().texts("tool");
    assert_eq!(results.len(), 4, "{results:?}");
    for result in &results[..3] {
        assert!(result.contains("no answer within 2000 ms"), "{results:?}");
    }
    assert!(results[3].contains("its breaker is open"), "{results:?}");
    assert!(!world.path("ran.txt").exists());
    let records = world
        .cli(&["plugin", "trace", "--json", &session(&world)])
        .ok()
        .stdout;
    assert_eq!(records.matches("failed_closed").count(), 4, "{records}");
}

fn session(world: &World) -> String {
    let list = world.cli(&["session", "list", "--json"]).ok();
    list.json()[0]["id"].as_str().unwrap().to_owned()
}

/// A request that a critical hook has not seen is not sent, and the turn gives the reason.
#[test]
fn a_request_that_was_not_looked_at_is_not_sent() {
    let world = World::new([done()]);
    world.plugin(
        "guard",
        "export const G = async () => ({ 'chat.params': () => { throw new Error('no idea') } })",
    );
    granting(&world, &critical("chat.params"));
    let run = world.run(&["hi"]);
    assert_ne!(run.code, 0);
    assert!(run.stderr.contains("no idea"), "{}", run.stderr);
    assert!(world.mock.all_requests().is_empty());
    world.verify();
}

/// A refused prompt is not sent in the title's request either.
#[test]
fn a_refused_request_is_not_sent_as_the_titles() {
    let world = World::new([done()]);
    world.plugin(
        "guard",
        "export const G = async () => ({ 'llm.before_request': () => { throw new Error('not this prompt') } })",
    );
    granting(&world, &critical("llm.before_request"));
    let run = world.run(&["hi"]);
    assert_ne!(run.code, 0);
    assert!(run.stderr.contains("not this prompt"), "{}", run.stderr);
    assert!(world.mock.all_requests().is_empty());
    world.verify();
}

#[test]
fn a_permission_that_could_not_be_looked_at_is_not_given() {
    let world = World::new([bash("echo ran > ran.txt"), done()]);
    world.config(json!({ "permission": { "bash": "ask" } }));
    world.plugin(
        "guard",
        "export const G = async () => ({ 'permission.ask': () => { throw new Error('no idea') } })",
    );
    granting(&world, &critical("permission.ask"));
    // `--auto` would allow it.
    world.run(&["--auto", "hi"]).ok();
    assert!(!world.path("ran.txt").exists());
    let result = world.mock.last().texts("tool").concat();
    assert!(result.contains("no idea (hook.failed_closed)"), "{result}");
}

/// The list of plugins reports settings without effect.
#[test]
fn names_without_effect_are_listed() {
    let world = World::new([]);
    world.plugin(
        "guard",
        "export const G = async () => ({ 'tool.execute.before': () => {} })",
    );
    granting(
        &world,
        "[plugins.guard]\nfail_closed = [\"tool.execute.befor\", \"config\"]\n",
    );
    let list = world.cli(&["plugin", "list"]).ok().stdout;
    for says in [
        "fail_closed names tool.execute.befor, which is not a hook",
        "fail_closed names config, where nothing can be refused",
    ] {
        assert!(list.contains(says), "{list}");
    }
}
