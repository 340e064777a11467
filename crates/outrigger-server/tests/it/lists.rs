//! Lists of what an agent has: commands, agents, skills, configuration, providers.

use serde_json::{Value, json};

use crate::support::World;

fn config() -> Value {
    json!({
        "model": "mock/m1",
        "command": {"hi": {"template": "say $2 and $1 to $ARGUMENTS", "description": "d", "subtask": true}},
        "provider": {"mock": {
            "npm": "@ai-sdk/openai-compatible", "name": "Mock",
            "options": {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "k-123456"},
            "models": {"m1": {"name": "M1", "tool_call": true, "limit": {"context": 100_000, "output": 4000}}},
        }},
    })
}

#[tokio::test]
async fn commands_tell_where_they_come_from_and_what_they_take() {
    let world = World::with(&config(), |_| {}).await;
    let list = world.get("/command").await.ok();
    let hi = list
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["name"] == "hi")
        .unwrap();
    assert_eq!(
        *hi,
        json!({
            "name": "hi", "source": "command", "template": "say $2 and $1 to $ARGUMENTS",
            "hints": ["$1", "$2", "$ARGUMENTS"], "description": "d", "subtask": true,
            // As in OpenCode, values missing in a configured command are null.
            "agent": null, "model": null,
        })
    );
}

#[tokio::test]
async fn the_default_agent_stands_first() {
    let mut config = config();
    config["default_agent"] = json!("plan");
    let world = World::with(&config, |_| {}).await;
    let list = world.get("/agent").await.ok();
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..3], ["plan", "build", "compaction"]);
    for key in ["name", "mode", "native", "permission", "options"] {
        assert!(
            list.as_array()
                .unwrap()
                .iter()
                .all(|a| a.get(key).is_some()),
            "{key}"
        );
    }
}

/// As in the configuration.
#[tokio::test]
async fn options_of_agents_are_whole_but_for_their_keys() {
    let mut config = config();
    config["agent"]["keyed"] = json!({
        "variant": "v", "hidden": true, "temperature": 0.5, "top_p": 0.5, "steps": 3, "color": "#ffffff",
        "options": { "apiKey": "sk-secret", "store": true },
    });
    let world = World::with(&config, |_| {}).await;
    let list = world.get("/agent").await.ok();
    let keyed = list
        .as_array()
        .unwrap()
        .iter()
        .clone()
        .find(|it| it["name"] == "keyed")
        .unwrap();
    assert_eq!(keyed["options"]["store"], true);
    assert!(!list.to_string().contains("sk-secret"), "{keyed}");
}

#[tokio::test]
async fn providers_are_whole_but_for_their_keys() {
    let world = World::with(&config(), |_| {}).await;
    let configured = world.get("/config/providers").await;
    let all = configured.ok();
    assert_eq!(all["default"]["mock"], "m1");
    let mock = all["providers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["id"] == "mock")
        .unwrap();
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    for key in ["id", "name", "source", "env", "options", "models"] {
        assert!(keys(mock).contains(&key.to_owned()), "{key}");
    }
    let reference = [
        "id",
        "providerID",
        "api",
        "name",
        "family",
        "capabilities",
        "cost",
        "limit",
        "status",
        "options",
        "headers",
        "release_date",
        "variants",
    ];
    for key in reference {
        assert!(
            keys(&mock["models"]["m1"]).contains(&key.to_owned()),
            "{key}"
        );
    }
    assert!(!configured.text.contains("k-123456"));
    let listed = world.get("/provider").await.ok();
    assert_eq!(listed["connected"], json!(["mock"]));
    assert!(!world.get("/config").await.text.contains("k-123456"));
}

#[tokio::test]
async fn a_line_for_the_log_has_one_of_four_levels() {
    let world = World::plain().await;
    let line = |level: &str| json!({"service": "s", "level": level, "message": "m"});
    assert_eq!(world.post("/log", line("info")).await.ok(), json!(true));
    assert_eq!(world.post("/log", line("loud")).await.error().0, 400);
}
