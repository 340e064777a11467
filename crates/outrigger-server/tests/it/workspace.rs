//! Workspaces, of which there are none: OpenCode's answers without their setting were measured.

use serde_json::json;

use crate::support::World;

#[tokio::test]
async fn what_a_client_says_of_a_workspace_is_kept_and_none_is_found() {
    let world = World::plain().await;
    let of = |id: &str| json!({ "title": "w", "workspaceID": id });
    let made = world.post("/session", of("wrk_1")).await.ok();
    assert_eq!(made["workspaceID"], "wrk_1");
    let id = made["id"].as_str().unwrap();
    let kept = world.get(&format!("/session/{id}")).await.ok();
    assert_eq!(kept["workspaceID"], "wrk_1");
    assert_eq!(world.post("/session", of("other")).await.status, 400);
    // The list has no such filter; the parameter has another name.
    let listed = world.get("/session?workspaceID=wrk_2").await.ok();
    assert_eq!(listed[0]["id"], id);
    for path in ["/session?workspace=wrk_1", "/config?workspace=wrk_1"] {
        assert_eq!(world.get(path).await.error().0, 400, "{path}");
    }
    for path in [
        "/session?workspace=",
        "/experimental/workspace?workspace=wrk_1",
    ] {
        world.get(path).await.ok();
    }
    assert_eq!(
        world.get("/session").await.ok().as_array().unwrap().len(),
        1
    );
}
