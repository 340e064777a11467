//! Tools and sessions across projects.

use outrigger_agent::NewSession;
use serde_json::{Value, json};

use crate::support::World;

#[tokio::test]
async fn tools_are_listed_with_their_schemas() {
    let world = World::plain().await;
    let ids = world.get("/experimental/tool/ids").await.ok();
    let tools = world
        .get("/experimental/tool?provider=mock&model=m1")
        .await
        .ok();
    let named: Vec<&Value> = tools.as_array().unwrap().iter().map(|t| &t["id"]).collect();
    for tool in ["bash", "edit", "read", "task", "invalid"] {
        assert!(ids.as_array().unwrap().contains(&json!(tool)), "{tool}");
        assert!(named.contains(&&json!(tool)), "{tool}");
    }
    let task = tools
        .as_array()
        .unwrap()
        .iter()
        .find(|t| t["id"] == "task")
        .unwrap();
    assert_eq!(task["parameters"]["type"], "object");
    assert!(
        task["description"].as_str().unwrap().contains("explore"),
        "agents are listed"
    );
    assert_eq!(
        world
            .get("/experimental/tool?provider=mock")
            .await
            .error()
            .0,
        400
    );
}

#[tokio::test]
async fn sessions_are_listed_by_page_and_by_what_is_asked() {
    let world = World::git().await;
    let other = world.neighbour("other").await;
    let made = |agent: &outrigger_agent::Agent, title: &str, parent| {
        let (agent, title) = (agent.clone(), Some(title.to_owned()));
        async move {
            let new = NewSession {
                title,
                parent,
                ..NewSession::default()
            };
            let id = agent.create_session(new).await.unwrap().id;
            // Sessions are ordered by milliseconds.
            tokio::time::sleep(std::time::Duration::from_millis(3)).await;
            id
        }
    };
    let first = made(&world.agent, "first", None).await;
    made(&world.agent, "child", Some(first.clone())).await;
    made(&other, "elsewhere", None).await;
    let late = made(&world.agent, "late", None).await;
    world
        .agent
        .update_session(&late, |s| s.time.archived = Some(1))
        .await
        .unwrap();
    let late = world.agent.session(&late).unwrap().time.updated;

    let titles = |list: &Value| -> String {
        let list = list.as_array().unwrap();
        list.iter()
            .map(|s| s["title"].as_str().unwrap())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let here = format!("directory={}", world.project().display());
    let cases = [
        ("/experimental/session".to_owned(), "elsewhere child first"),
        (
            "/experimental/session?archived=true".to_owned(),
            "late elsewhere child first",
        ),
        (
            "/experimental/session?roots=true".to_owned(),
            "elsewhere first",
        ),
        (format!("/experimental/session?{here}"), "child first"),
        ("/experimental/session?search=FIR".to_owned(), "first"),
        (
            format!("/experimental/session?start={late}&archived=true"),
            "late",
        ),
        ("/session".to_owned(), "late child first"),
        ("/session?roots=true".to_owned(), "late first"),
        ("/session?limit=1".to_owned(), "late"),
        (format!("/session?{here}&search=i"), "child first"),
        (format!("/session?start={late}"), "late"),
        ("/session?scope=project&path=sub".to_owned(), ""),
    ];
    for (path, want) in cases {
        assert_eq!(titles(&world.get(&path).await.ok()), want, "{path}");
    }
    let page = world.get("/experimental/session?limit=2").await;
    assert_eq!(titles(&page.ok()), "elsewhere child");
    let project = &page.ok()[0]["project"];
    assert_eq!(project, &json!({"id": "global", "worktree": "/"}));
    let cursor = page.headers["x-next-cursor"].to_str().unwrap().to_owned();
    let rest = world
        .get(&format!("/experimental/session?limit=2&cursor={cursor}"))
        .await;
    assert_eq!(titles(&rest.ok()), "first");
    assert!(!rest.headers.contains_key("x-next-cursor"));
    for path in [
        "/session?roots=zz",
        "/session?scope=zz",
        "/experimental/session?limit=x",
    ] {
        assert_eq!(
            world.get(path).await.error(),
            (400, "BadRequest".to_owned()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_says_so() {
    let world = World::plain().await;
    let empty = [
        ("GET", "/experimental/worktree", json!([])),
        ("GET", "/experimental/workspace", json!([])),
        (
            "GET",
            "/experimental/capabilities",
            json!({"backgroundSubagents": false}),
        ),
        (
            "POST",
            "/experimental/session/ses_x/background",
            json!(false),
        ),
        ("POST", "/sync/start", json!(true)),
        ("POST", "/sync/history", json!([])),
    ];
    for (method, path, want) in empty {
        assert_eq!(world.send(method, path, None).await.ok(), want, "{path}");
    }
    for path in [
        "/sync/replay",
        "/sync/steal",
        "/experimental/worktree",
        "/experimental/workspace",
    ] {
        let answer = world.post(path, json!({})).await;
        assert_eq!(
            answer.error(),
            (501, "NotSupportedError".to_owned()),
            "{path}"
        );
        assert!(answer.text.contains("compatibility.md"));
    }
}
