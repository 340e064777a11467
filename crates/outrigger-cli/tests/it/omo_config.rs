//! Functions of `oh-my-opencode` that its own configuration enables (requirement B7). The configuration is in
//! `.omo/omo.json` under `[opencode]`: this version reads no other file, and ignores these keys elsewhere in it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::omo::omo;
use crate::omo_server::{background, command, is_asked, say, serve, session, until_asked};
use crate::support::*;

/// Writes its configuration, marked as the newest form: otherwise it converts `fallback_models` into something it does not
/// read.
pub(crate) fn configure(world: &World, own: &Value) {
    let whole = json!({ "[opencode]": own, "_migrations": ["2026-08-reasoning-unification"] });
    world.file(".omo/omo.json", &whole.to_string());
}

/// Sets up a project with the plugin, its configuration, and a second model.
fn configured(own: &Value, turns: impl IntoIterator<Item = Value>) -> Option<World> {
    let world = omo(turns)?;
    configure(&world, own);
    let model =
        json!({ "name": "M2", "tool_call": true, "limit": { "context": 100_000, "output": 4000 } });
    world.config(json!({ "provider": { "mock": { "models": { "m2": model } } } }));
    Some(world)
}

#[test]
fn a_goal_is_gone_on_with_whenever_the_session_is_idle_until_it_is_cleared() {
    let own = json!({ "goal": { "enabled": true } });
    let Some(world) = configured(&own, [text("Not yet.")]) else {
        return;
    };
    let server = serve(&world);
    let id = session(&server);
    command(&server, &id, "goal", "Paint the boat");
    until_asked(&world, "<untrusted_objective>\nPaint the boat");
    command(&server, &id, "goal", "clear");
    server
        .post(&format!("/session/{id}/abort"), &json!({}))
        .json(200);
    std::thread::sleep(Duration::from_secs(1));
    let asked = world.mock.requests().len();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(world.mock.requests().len(), asked);
}

#[test]
fn another_model_goes_on_where_the_first_is_refused() {
    let own = json!({
        "runtime_fallback": { "enabled": true, "retry_on_errors": [403] },
        "agents": { "sisyphus": { "model": "mock/m1", "fallback_models": ["mock/m2"] } },
    });
    let turns = [
        json!({ "status": 403, "error": "not for you" }),
        text("By the other one."),
    ];
    let Some(world) = configured(&own, turns) else {
        return;
    };
    let server = serve(&world);
    let id = session(&server);
    say(&server, &id, "hello there");
    assert!(wait_until(WAIT_TIMEOUT, || world.mock.requests().len() > 1));
    let models: Vec<Value> = world
        .mock
        .requests()
        .iter()
        .map(|request| request.body["model"].clone())
        .collect();
    assert_eq!(models, ["m1", "m2"]);
    assert!(is_asked(&world, "hello there"));
}

#[test]
fn no_more_background_tasks_run_at_once_than_a_model_may_have() {
    // The model must be named: without one, a task's limit is per agent.
    let own = json!({
        "background_task": { "modelConcurrency": { "mock/m1": 1 } },
        "agents": { "explore": { "model": "mock/m1" } },
    });
    let turns = [
        turn([background("Look for zebras"), background("Look for lions")]),
        text("Nothing more."),
    ];
    let Some(world) = configured(&own, turns) else {
        return;
    };
    for animal in ["zebras", "lions"] {
        let stalls = json!({ "text": "I am looking", "stall": 2 });
        world.mock.when(&format!("Look for {animal}"), stalls);
    }
    let server = serve(&world);
    let parent = session(&server);
    // The call of the waiting task, and so its turn, takes up to half a minute.
    let body = json!({ "parts": [{ "type": "text", "text": "both in the background" }] });
    let path = format!("/session/{parent}/prompt_async");
    assert_eq!(server.post(&path, &body).status, 204);
    let asked = |animal: &str| is_asked(&world, &format!("Look for {animal}"));
    assert!(wait_until(WAIT_TIMEOUT, || asked("zebras") || asked("lions")));
    std::thread::sleep(Duration::from_secs(2));
    assert!(asked("zebras") != asked("lions"), "one waits for the other");
    let children = server.get(&format!("/session/{parent}/children")).json(200);
    let child = children[0]["id"].as_str().unwrap();
    let path = format!("/session/{child}/abort");
    server.post(&path, &json!({})).json(200);
    assert!(wait_until(WAIT_TIMEOUT, || asked("zebras") && asked("lions")));
}

#[test]
fn no_more_background_tasks_run_at_once_than_a_provider_may_have() {
    // Two models, one provider: the limit is per provider.
    let own = json!({
        "background_task": { "providerConcurrency": { "mock": 1 }, "modelConcurrency": {} },
        "agents": { "explore": { "model": "mock/m1" }, "librarian": { "model": "mock/m2" } },
    });
    let mut lions = background("Look for lions");
    lions["args"]["subagent_type"] = json!("librarian");
    let turns = [
        turn([background("Look for zebras"), lions]),
        text("Nothing more."),
    ];
    let Some(world) = configured(&own, turns) else {
        return;
    };
    for animal in ["zebras", "lions"] {
        let stalls = json!({ "text": "I am looking", "stall": 2 });
        world.mock.when(&format!("Look for {animal}"), stalls);
    }
    let server = serve(&world);
    let parent = session(&server);
    let body = json!({ "parts": [{ "type": "text", "text": "both in the background" }] });
    let path = format!("/session/{parent}/prompt_async");
    assert_eq!(server.post(&path, &body).status, 204);
    let asked = |animal: &str| is_asked(&world, &format!("Look for {animal}"));
    assert!(wait_until(WAIT_TIMEOUT, || asked("zebras") || asked("lions")));
    std::thread::sleep(Duration::from_secs(2));
    assert!(asked("zebras") != asked("lions"), "one waits for the other");
    let children = server.get(&format!("/session/{parent}/children")).json(200);
    let child = children[0]["id"].as_str().unwrap();
    let path = format!("/session/{child}/abort");
    server.post(&path, &json!({})).json(200);
    assert!(wait_until(WAIT_TIMEOUT, || asked("zebras") && asked("lions")));
    let models = world.mock.requests();
    let of = |animal: &str| {
        let text = format!("Look for {animal}");
        let mut found = models
            .iter()
            .filter(|r| r.texts("user").iter().any(|t| t.contains(&text)));
        found.next().map(|r| r.body["model"].clone())
    };
    assert_eq!(
        (of("zebras"), of("lions")),
        (Some(json!("m1")), Some(json!("m2")))
    );
}
