//! The routes of the `outrigger` command, for the user at this program and for clients of a server.

use http::Method;
use outrigger_server::{LocalClient, RequestError, serve_plugins};
use serde_json::{Value, json};

use crate::support::World;

async fn post(client: &LocalClient, path: &str, body: Value) -> Result<Value, RequestError> {
    let body = Some(body.to_string().into_bytes());
    let answer = client.call(Method::POST, path, body).await?;
    Ok(serde_json::from_slice(&answer).unwrap_or_default())
}

/// Fields that OpenCode's error format lacks are kept in process.
#[tokio::test]
async fn an_error_has_its_code_and_hint_in_process() {
    let world = World::plain().await;
    let client = serve_plugins(&world.agent);
    let refused = client.call(Method::GET, "/session/ses_none", None).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, Some("agent.no_session"));
    assert_eq!(refused.message, "there is no session `ses_none`");
    assert!(refused.hint.unwrap().contains("session list"));
    let answer = world.get("/session/ses_none").await;
    assert_eq!(answer.error(), (404, "NotFoundError".to_owned()));
    assert!(!answer.text.contains("session list"), "{}", answer.text);
    let named = json!({ "command": "nonsense" });
    let refused = post(&client, "/outrigger/check", named).await.unwrap_err();
    assert_eq!(refused.code, Some("agent.no_command"));
}

#[tokio::test]
async fn the_latest_session_and_what_runs_in_it() {
    let world = World::plain().await;
    assert_eq!(
        world.get("/outrigger/session/latest").await.ok(),
        Value::Null
    );
    let made = world.post("/session", json!({ "title": "T" })).await.ok();
    let latest = world.get("/outrigger/session/latest").await.ok();
    assert_eq!(latest["id"], made["id"]);
    let path = format!("/outrigger/session/{}", made["id"].as_str().unwrap());
    let interrupted = world.get(&format!("{path}/interrupted")).await;
    assert_eq!(interrupted.ok(), json!({ "turn": null }));
    assert_eq!(
        world.post(&format!("{path}/cancel"), json!({})).await.ok(),
        false
    );
    let log = world.get(&format!("{path}/event")).await.ok();
    assert!(log["head"].as_i64().unwrap() > 0);
    assert_eq!(log["events"], json!([]));
    let log = world.get(&format!("{path}/event?after=0")).await.ok();
    assert_eq!(log["events"][0]["type"], "session.created");
    for request in [json!({}), json!({ "prompt": 5 }), json!("x")] {
        let answer = world.post(&format!("{path}/turn"), request).await;
        assert_eq!(answer.error(), (400, "BadRequest".to_owned()));
    }
}

/// A grant changes the user's own settings: a client of a server cannot give one.
#[tokio::test]
async fn only_the_person_at_the_program_grants() {
    let world = World::plain().await;
    let path = "/outrigger/permission/per_1/grant";
    let answer = world.post(path, json!({})).await;
    assert_eq!(answer.error(), (403, "Forbidden".to_owned()));
    let client = serve_plugins(&world.agent);
    let granted = post(&client, path, json!({})).await.unwrap();
    assert_eq!(granted, json!({ "file": null }));
}
