//! Resources, prompts, instructions; enabling and disabling servers.

use outrigger_mcp::State;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_test_support::process::alive;
use serde_json::{Value, json};

use crate::support::{Room, node};

fn rich(modes: &[&str]) -> Value {
    let mut entry = node(modes);
    entry["command"][1] = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/rich.mjs").into();
    entry
}

#[tokio::test]
async fn what_servers_have_besides_tools_is_listed_and_read() {
    let room = Room::new(json!({"z": rich(&[]), "b": rich(&["bare"]), "plain": node(&[])})).await;
    let servers = &room.servers;
    assert_eq!(servers.resource_servers(), ["b", "z"]);
    assert_eq!(
        [
            servers.has_resources("z"),
            servers.has_resources("plain"),
            servers.has_resources("none")
        ],
        [Some(true), Some(false), None]
    );
    let listed = servers.resources(None).await;
    assert_eq!(listed.len(), 4, "{listed:?}");
    let one = servers.resources(Some("z")).await;
    let names: Vec<&Value> = one.iter().map(|listed| &listed.entry["uri"]).collect();
    assert_eq!(names, ["note://a", "note://b"]);
    assert_eq!(
        servers.resource_templates(Some("z")).await[0].entry["uriTemplate"],
        "note://{id}"
    );
    assert_eq!(servers.prompts().await.len(), 2);
    let read = servers.read_resource("z", "note://a").await.unwrap();
    assert_eq!(read["contents"][0]["text"], "text of note://a");
    let prompt = servers
        .prompt("z", "greet me", &json!({"who": "$1"}))
        .await
        .unwrap();
    assert_eq!(prompt["messages"][0]["content"]["text"], "Say hello to $1.");
    let instructions = servers.instructions();
    assert_eq!(instructions.len(), 2);
    assert_eq!(
        (
            instructions[1].text.as_str(),
            instructions[1].tools.as_slice()
        ),
        ("Ask for notes.\nThen read them.", &["z_say".to_owned()][..])
    );
    assert!(instructions[0].tools.is_empty());
}

#[tokio::test]
async fn failures_are_those_of_the_server() {
    let room = Room::new(json!({"z": rich(&[]), "plain": node(&[])})).await;
    let mut list = Vec::new();
    for (server, uri) in [("z", "note://none"), ("none", "note://a")] {
        let error = room.servers.read_resource(server, uri).await.unwrap_err();
        list.push(format!("{error} [{}]", error.code()));
    }
    insta::assert_snapshot!(list.join("\n"), @r"
    MCP server z: no such note (-32002) [mcp.refused]
    MCP server not found: none [mcp.unknown]
    ");
}

#[tokio::test]
async fn servers_are_added_and_switched() {
    let room = Room::new(json!({"m": node(&[]), "off": {"enabled": false}})).await;
    let servers = &room.servers;
    let pid = room.status("m").pid.unwrap();
    assert_eq!(
        servers.switch("m", false).await.unwrap().state,
        State::Disabled
    );
    assert!(servers.tools().is_empty() && !alive(pid));
    assert!(room.servers.read_resource("m", "x").await.is_err());
    assert_eq!(
        servers.switch("m", true).await.unwrap().state,
        State::Connected
    );
    assert_eq!(room.text("say", json!({"text": "hi"})).await, "said hi");
    let added = servers.add("new", &rich(&[])).await.unwrap();
    assert_eq!(added.state, State::Connected);
    // Another one in its place.
    let broken = json!({"type": "local", "command": ["/nonexistent"]});
    let added = servers.add("new", &broken).await.unwrap();
    assert_eq!(added.state, State::Failed);
    assert_eq!(servers.status().len(), 3);
    assert!(servers.add("x", &json!({})).await.is_err());
    assert!(servers.switch("nobody", true).await.is_err());
}
