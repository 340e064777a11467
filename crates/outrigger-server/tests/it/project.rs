//! Projects.

use serde_json::json;

use crate::support::World;

#[tokio::test]
async fn projects_are_known_from_their_first_agent_on() {
    let world = World::git().await;
    let current = world.get("/project/current").await.ok();
    assert_eq!(current["vcs"], "git");
    assert_eq!(current["worktree"], json!(world.project()));
    assert_eq!(current["sandboxes"], json!([]));
    world.neighbour("plain").await;
    let list = world.get("/project").await.ok();
    let ids: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&"global") && ids.contains(&current["id"].as_str().unwrap()));
    let id = current["id"].as_str().unwrap();
    let folders = world.get(&format!("/project/{id}/directories")).await.ok();
    assert_eq!(folders, json!([{"directory": world.project()}]));
    assert_eq!(world.get("/project/nope/directories").await.ok(), json!([]));
}

#[tokio::test]
async fn a_project_is_renamed_and_everyone_is_notified() {
    let world = World::git().await;
    let mut events = world.agent.listen();
    let id = world.agent.project().id.clone();
    let path = format!("/project/{id}");
    let body = json!({"name": "N", "icon": {"color": "red"}}).to_string();
    let changed = world.send("PATCH", &path, Some(&body)).await.ok();
    assert_eq!(
        (&changed["name"], &changed["icon"]),
        (&json!("N"), &json!({"color": "red"}))
    );
    assert_eq!(World::event(&mut events, "project.updated").await, changed);
    assert_eq!(world.get("/project/current").await.ok(), changed);
    assert_eq!(world.get("/project").await.ok(), json!([changed]));

    let absent = world.send("PATCH", "/project/nope", Some("{}")).await;
    assert_eq!(absent.status, 404);
    assert_eq!(absent.json()["_tag"], "ProjectNotFoundError");
    let wrong = world.send("PATCH", &path, Some(r#"{"name":3}"#)).await;
    assert_eq!(wrong.error(), (400, "BadRequest".to_owned()));
}

#[tokio::test]
async fn a_folder_becomes_a_repository_once() {
    let world = World::plain().await;
    let made = world.send("POST", "/project/git/init", None).await.ok();
    assert_eq!(
        (&made["vcs"], &made["worktree"]),
        (&json!("git"), &json!(world.project()))
    );
    assert!(world.project().join(".git").is_dir());
    let again = World::git().await;
    let known = again.get("/project/current").await.ok();
    assert_eq!(
        again.send("POST", "/project/git/init", None).await.ok(),
        known
    );
}

#[tokio::test]
async fn copies_are_refused_and_named() {
    let world = World::plain().await;
    for (method, path) in [
        ("POST", "/experimental/project/p/copy"),
        ("DELETE", "/experimental/project/p/copy"),
        ("POST", "/experimental/project/p/copy/refresh"),
    ] {
        let answer = world.send(method, path, Some("{}")).await;
        assert_eq!(
            answer.error(),
            (501, "NotSupportedError".to_owned()),
            "{path}"
        );
    }
    let path = "/experimental/project/p/copy/generate-name";
    let named = world
        .post(path, json!({"context": "Fix the Parser, please now"}))
        .await
        .ok();
    assert_eq!(named["name"], "fix-the-parser-please");
    let made = world.post(path, json!({})).await.ok();
    assert!(made["name"].as_str().unwrap().contains('-'));
}
