//! What a session may use, and how many steps a turn has (C16).

use serde_json::json;

use crate::support::*;

/// C16: what a session may use, its subagents included; a project does not raise the user's limit of steps.
#[test]
fn a_budget_holds_for_a_session_and_its_subagents() {
    let world = World::new([
        turn([call(
            "task",
            json!({ "description": "job", "prompt": "Job", "subagent_type": "general" }),
        )]),
        text("done"),
        done(),
        done(),
        done(),
    ]);
    crate::user_grants::granting(&world, "[budget]\nturns = 3\n");
    world.run(&["go"]).ok();
    let shown = world.cli(&["session", "show"]).ok().stdout;
    assert!(shown.contains("budget: 2 of 3 turns"), "{shown}");
    world.run(&["-c", "again"]).ok();
    let asked = world.mock.requests().len();
    let over = world.run(&["-c", "once more"]).exited(1).stderr;
    assert!(over.contains("budget.turns"), "{over}");
    assert_eq!(world.mock.requests().len(), asked);
    // Another session has its own.
    world.run(&["hi"]).ok();
}

#[test]
fn a_project_does_not_raise_the_limit_of_steps() {
    let read = || turn([call("read", json!({ "filePath": "hello.txt" }))]);
    for (settings, steps) in [
        ("[agent]\nmax_steps = 50\n", Some(40)),
        ("", Some(40)),
        ("[agent]\nmax_steps = 40\n", None),
    ] {
        let world = World::new((0..5).map(|_| read()));
        crate::user_grants::granting(&world, "[agent]\nmax_steps = 2\n");
        world.settings(settings);
        let agent = steps.map_or(json!({}), |steps| json!({ "build": { "steps": steps } }));
        world.config(json!({ "agent": agent }));
        world.run(&["--title", "x", "go"]);
        let requests = world.mock.requests().len();
        assert!(requests <= 3, "{settings} {steps:?}: {requests}");
    }
}
