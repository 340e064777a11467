//! `oh-my-opencode` on a running server (requirement B7): its work once a session is idle, in the background, and across
//! sessions.

use std::time::Duration;

use serde_json::{Value, json};

use crate::omo::{offline, omo};
use crate::support::*;

pub(crate) fn serve(world: &World) -> Server {
    world.serve_with(offline(
        world,
        &["serve", "--port", &free_port(), "--no-auth"],
    ))
}

pub(crate) fn session(server: &Server) -> String {
    let made = server.post("/session", &json!({})).json(200);
    made["id"].as_str().unwrap().to_owned()
}

pub(crate) fn say(server: &Server, session: &str, text: &str) -> Value {
    let body = json!({ "parts": [{ "type": "text", "text": text }] });
    server
        .post(&format!("/session/{session}/message"), &body)
        .json(200)
}

/// Waits until a request to the model contains this in the user's text.
#[track_caller]
pub(crate) fn until_asked(world: &World, text: &str) {
    assert!(
        wait_until(WAIT_TIMEOUT, || is_asked(world, text)),
        "{text}: {:#?}",
        world
            .mock
            .requests()
            .iter()
            .map(|r| r.texts("user"))
            .collect::<Vec<_>>()
    );
}

pub(crate) fn is_asked(world: &World, text: &str) -> bool {
    let requests = world.mock.requests();
    requests
        .iter()
        .any(|r| r.texts("user").iter().any(|t| t.contains(text)))
}

pub(crate) fn background(prompt: &str) -> Value {
    call(
        "task",
        json!({
            "description": "look", "prompt": prompt, "subagent_type": "explore", "run_in_background": true,
            "load_skills": [],
        }),
    )
}

pub(crate) fn command(server: &Server, session: &str, name: &str, arguments: &str) {
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
    // Its own countdown is two seconds, its cool-downs five and six: without the stop it would have continued by then.
    std::thread::sleep(Duration::from_secs(15));
    assert_eq!(world.mock.requests().len(), asked);
}
