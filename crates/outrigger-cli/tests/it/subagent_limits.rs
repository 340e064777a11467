//! No subagent has more permissions than its caller.

use serde_json::{Value, json};

use crate::support::*;

fn task(agent: &str) -> Value {
    let args = json!({ "description": "job", "prompt": format!("Job of {agent}"), "subagent_type": agent });
    turn([call("task", args)])
}

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

/// The answers that the model read.
fn results(world: &World) -> String {
    let requests = world.mock.requests();
    let texts = requests.iter().flat_map(|request| request.texts("tool"));
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_subagent_has_no_more_than_the_agent_that_calls_it() {
    let ran = |permission: Value, step: Value| {
        let world = World::new([task("general"), step, text("done"), done()]);
        world.file("keys/k", "KEYS_SECRET");
        world.config(json!({ "agent": { "ro": { "mode": "primary", "permission": permission } } }));
        world.run(&["--agent", "ro", "go"]);
        world
    };
    let write = || {
        turn([call(
            "write",
            json!({ "filePath": "ran.txt", "content": "x" }),
        )])
    };
    for permission in [
        json!({ "bash": "deny" }),
        json!({ "bash": "ask" }),
        json!({ "bash": { "*": "allow", "echo *": "deny" } }),
        json!({ "*": "deny", "task": "allow", "read": "allow" }),
        json!({ "*": "ask", "task": "allow" }),
    ] {
        let world = ran(permission.clone(), bash("echo x > ran.txt"));
        assert!(!world.path("ran.txt").exists(), "{permission}");
    }
    for permission in [
        json!({ "edit": "ask" }),
        json!({ "edit": { "*": "allow", "ran.txt": "deny" } }),
        json!({ "*": "deny", "task": "allow" }),
    ] {
        let world = ran(permission.clone(), write());
        assert!(!world.path("ran.txt").exists(), "{permission}");
    }
    let keys = json!({ "read": { "*": "allow", "keys/*": "deny" } });
    for step in [
        call("read", json!({ "filePath": "keys/k" })),
        call("grep", json!({ "pattern": "SECRET" })),
        call(
            "bash",
            json!({ "command": "cat keys/k", "description": "d" }),
        ),
    ] {
        let world = ran(keys.clone(), turn([step]));
        assert!(!results(&world).contains("KEYS_SECRET"));
    }
    // What the caller may do it may do, too.
    let world = ran(
        json!({ "bash": { "*": "deny", "echo *": "allow" } }),
        bash("echo x > ran.txt"),
    );
    assert!(world.path("ran.txt").exists(), "{}", results(&world));
}

#[test]
fn a_task_that_another_agent_goes_on_with_has_that_ones_limits() {
    // The mock answers by the order of requests, so the session is begun in one run and resumed in the next.
    let world = World::new([task("general"), text("begun"), done()]);
    let user =
        json!({ "agent": { "ro": { "mode": "primary", "permission": { "bash": "deny" } } } });
    world.config(user);
    world.run(&["begin"]).ok();
    let begun = results(&world);
    let id = begun.split('"').find(|it| it.starts_with("ses_"));
    let id = id.unwrap().to_owned();
    let args = json!({ "description": "job", "prompt": "more", "subagent_type": "general", "task_id": id });
    world.mock.when("go on", turn([call("task", args)]));
    world.mock.when("more", bash("echo x > ran.txt"));
    world.run(&["-c", "--agent", "ro", "go on"]);
    let results = results(&world);
    assert!(results.contains("unavailable tool 'bash'"), "{results}");
    assert!(!world.path("ran.txt").exists());
}
