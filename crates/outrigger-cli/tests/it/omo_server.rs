//! `oh-my-opencode` on a running server (requirement B7): what it does once a session is idle, beside it, or across
//! sessions.

use std::time::Duration;

use serde_json::{Value, json};

use crate::omo::omo;
use crate::support::*;

/// Its own timers are of seconds, and the machine may be busy.
const SOON: Duration = Duration::from_secs(40);

fn serve(world: &World) -> Server {
    let mut command = world.command(&["serve", "--port", &free_port(), "--no-auth"]);
    command.env("OMO_DISABLE_POSTHOG", "1");
    world.serve_with(command)
}

fn session(server: &Server) -> String {
    let made = server.post("/session", &json!({})).json(200);
    made["id"].as_str().unwrap().to_owned()
}

fn say(server: &Server, session: &str, text: &str) -> Value {
    let body = json!({ "parts": [{ "type": "text", "text": text }] });
    server
        .post(&format!("/session/{session}/message"), &body)
        .json(200)
}

/// Waits until a request to the model has this in what the user says.
#[track_caller]
fn until_asked(world: &World, text: &str) {
    assert!(
        wait_until(SOON, || is_asked(world, text)),
        "{text}: {:#?}",
        world
            .mock
            .requests()
            .iter()
            .map(|r| r.texts("user"))
            .collect::<Vec<_>>()
    );
}

fn is_asked(world: &World, text: &str) -> bool {
    let requests = world.mock.requests();
    requests
        .iter()
        .any(|r| r.texts("user").iter().any(|t| t.contains(text)))
}

fn background(prompt: &str) -> Value {
    call(
        "task",
        json!({
            "description": "look", "prompt": prompt, "subagent_type": "explore", "run_in_background": true,
            "load_skills": [],
        }),
    )
}

fn command(server: &Server, session: &str, name: &str, arguments: &str) {
    let body = json!({ "command": name, "arguments": arguments });
    server
        .post(&format!("/session/{session}/command"), &body)
        .json(200);
}

#[test]
fn a_background_task_runs_in_a_child_session_and_its_end_wakes_the_parent() {
    let mut turns = vec![turn([background("Look for zebras")])];
    turns.extend((0..12).map(|_| text("Nothing more.")));
    let Some(world) = omo(turns) else { return };
    let server = serve(&world);
    let parent = session(&server);
    say(&server, &parent, "look for zebras in the background");
    until_asked(&world, "[BACKGROUND TASK COMPLETED]");
    let children = server.get(&format!("/session/{parent}/children")).json(200);
    let [child] = children.as_array().unwrap().as_slice() else {
        panic!("{children}")
    };
    assert_eq!(
        (&child["agent"], &child["title"]),
        (&json!("explore"), &json!("look (@explore subagent)"))
    );
    // The call did not wait for the child.
    let requests = world.mock.requests();
    let launched = requests.iter().find_map(|r| r.texts("tool").pop()).unwrap();
    assert!(
        launched.starts_with("Background task launched."),
        "{launched}"
    );
    world.verify();
}

#[test]
fn no_more_background_tasks_run_at_once_than_the_model_may_have() {
    let mut turns = vec![turn([background("zebra one"), background("zebra two")])];
    turns.extend((0..12).map(|_| json!({ "text": "late", "stall": 0 })));
    let Some(world) = omo(turns) else { return };
    world.file(
        ".opencode/oh-my-opencode.json",
        &json!({ "background_task": { "modelConcurrency": { "mock/m1": 1 } } }).to_string(),
    );
    let server = serve(&world);
    let parent = session(&server);
    let body = json!({ "parts": [{ "type": "text", "text": "find both" }] });
    server.post(&format!("/session/{parent}/prompt_async"), &body);
    let child = |text: &str| is_asked(&world, text);
    assert!(wait_until(SOON, || child("zebra one") || child("zebra two")));
    std::thread::sleep(Duration::from_secs(3));
    assert!(child("zebra one") != child("zebra two"), "both run");
    let children = server.get(&format!("/session/{parent}/children")).json(200);
    let first = children[0]["id"].as_str().unwrap();
    server
        .post(&format!("/session/{first}/abort"), &json!({}))
        .json(200);
    assert!(wait_until(SOON, || child("zebra one") && child("zebra two")));
}

#[test]
fn unfinished_todos_are_gone_on_with_until_the_user_stops_it() {
    let todos = call(
        "todowrite",
        json!({ "todos": [{ "content": "Paint the boat", "status": "pending", "priority": "high" }] }),
    );
    let mut turns = vec![turn([todos])];
    turns.extend((0..12).map(|_| text("Not yet.")));
    let Some(world) = omo(turns) else { return };
    let server = serve(&world);
    let id = session(&server);
    say(&server, &id, "paint the boat");
    until_asked(&world, "TODO CONTINUATION]");
    command(&server, &id, "stop-continuation", "");
    let asked = world.mock.requests().len();
    // Its own countdown is of two seconds.
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(world.mock.requests().len(), asked);
}

#[test]
fn a_goal_is_pursued_from_idle_to_idle() {
    let Some(world) = omo((0..12).map(|_| text("On it."))) else {
        return;
    };
    let server = serve(&world);
    let id = session(&server);
    command(&server, &id, "goal", "paint the boat red");
    until_asked(&world, "Continue working toward the active thread goal.");
    assert!(is_asked(&world, "paint the boat red"));
    command(&server, &id, "stop-continuation", "");
}

#[test]
fn a_model_that_fails_is_replaced_by_the_next_of_its_chain() {
    let Some(world) = omo([
        json!({ "status": 403, "error": "this account is over its quota" }),
        text("m2 answers"),
    ]) else {
        return;
    };
    world.config(json!({ "provider": { "mock": { "models": { "m2": { "name": "M2", "tool_call": true, "limit": { "context": 100_000, "output": 4000 } } } } } }));
    world.file(
        ".opencode/oh-my-opencode.json",
        &json!({
            "runtime_fallback": { "enabled": true, "retry_on_errors": [403, 429] },
            "agents": { "sisyphus": { "model": "mock/m1", "fallback_models": ["mock/m2"] } },
        })
        .to_string(),
    );
    let server = serve(&world);
    let id = session(&server);
    let body = json!({ "parts": [{ "type": "text", "text": "hello" }] });
    server.post(&format!("/session/{id}/prompt_async"), &body);
    let models = || -> Vec<String> {
        let requests = world.mock.requests();
        requests
            .iter()
            .map(|r| r.body["model"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(
        wait_until(SOON, || models().len() > 1),
        "{}",
        server.running.stderr()
    );
    assert_eq!(models()[..2], ["m1", "m2"]);
}
