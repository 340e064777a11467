//! Files and searches: nothing outside the project is shown.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::World;

#[tokio::test]
async fn lines_and_names_are_found() {
    let world = World::git().await;
    world.write(".gitignore", "*.log\n");
    world.write("x.log", "hello\n");
    let found = world.get("/find?pattern=w.r").await.ok();
    assert_eq!(
        found,
        json!([{
            "path": {"text": "hello.txt"}, "lines": {"text": "world\n"}, "line_number": 2, "absolute_offset": 6,
            "submatches": [{"match": {"text": "wor"}, "start": 0, "end": 3}],
        }])
    );
    let names = world.get("/find/file?query=main").await.ok();
    assert_eq!(names, json!(["src/main.rs"]));
    let folders = world.get("/find/file?query=s&type=directory").await.ok();
    assert_eq!(folders, json!(["src/"]));
    let files = world.get("/find/file?query=&dirs=false&limit=2").await.ok();
    assert_eq!(files, json!(["hello.txt", ".gitignore"]));
    // The suggestions of OpenCode's terminal interface after `@`.
    let entries = world.get("/api/fs/find?query=main&limit=1000").await.ok();
    assert_eq!(
        entries["data"],
        json!([{ "path": "src/main.rs", "type": "file" }])
    );
    assert_eq!(entries["location"], world.get("/api/location").await.ok());
    let entries = world.get("/api/fs/find?query=s&type=directory").await.ok();
    assert_eq!(
        entries["data"],
        json!([{ "path": "src/", "type": "directory" }])
    );
}

#[tokio::test]
async fn folders_and_files_have_opencode_form() {
    let world = World::git().await;
    world.write(".gitignore", "*.log\n");
    world.write("x.log", " kept short \n\n");
    std::fs::write(world.project().join("pic.png"), b"\x89PNG\0").unwrap();
    std::fs::write(world.project().join("latin"), b"caf\xe9").unwrap();
    symlink("hello.txt", world.project().join("link")).unwrap();
    let root = world.get("/file?path=").await.ok();
    let shown: Vec<String> = root
        .as_array()
        .unwrap()
        .iter()
        .map(|n| {
            format!(
                "{} {} {}",
                n["path"].as_str().unwrap(),
                n["type"].as_str().unwrap(),
                n["ignored"]
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ".git/ directory false",
            "src/ directory false",
            ".gitignore file false",
            "hello.txt file false",
            "latin file false",
            "opencode.json file false",
            "pic.png file false",
            "x.log file true",
        ]
    );
    let inner = world.get("/file?path=src").await.ok();
    assert_eq!(inner[0]["path"], "src/main.rs");
    assert_eq!(
        inner[0]["absolute"],
        json!(world.project().join("src/main.rs"))
    );
    let cases = [
        ("x.log", json!({"type": "text", "content": "kept short"})),
        ("link", json!({"type": "text", "content": "hello\nworld"})),
        ("absent", json!({"type": "text", "content": ""})),
        (
            "pic.png",
            json!({"type": "binary", "content": "iVBORwA=", "encoding": "base64", "mimeType": "image/png"}),
        ),
        (
            "latin",
            json!({"type": "binary", "content": "Y2Fm6Q==", "encoding": "base64", "mimeType": "application/octet-stream"}),
        ),
    ];
    for (path, want) in cases {
        assert_eq!(
            world.get(&format!("/file/content?path={path}")).await.ok(),
            want,
            "{path}"
        );
    }
    assert_eq!(world.get("/file/status").await.ok(), json!([]));
}

#[tokio::test]
async fn what_cannot_be_shown_is_refused_with_a_reason() {
    let world = World::with(
        &json!({"permission": {"read": {"secret/*": "deny"}}}),
        |project| {
            std::fs::create_dir(project.join("secret")).unwrap();
            std::fs::write(project.join("secret/key"), "sesame").unwrap();
            std::fs::write(project.join(".env"), "A=1").unwrap();
            symlink("secret/key", project.join("way")).unwrap();
            symlink("/etc/hostname", project.join("out")).unwrap();
            symlink("/etc", project.join("etc")).unwrap();
            let large = std::fs::File::create(project.join("large")).unwrap();
            large.set_len(32 * 1024 * 1024 + 1).unwrap();
        },
    )
    .await;
    let cases = [
        ("/file/content?path=large", 400, "BadRequest"),
        ("/file/content?path=../x", 400, "BadRequest"),
        ("/file/content?path=/etc/hostname", 400, "BadRequest"),
        ("/file/content?path=out", 400, "BadRequest"),
        ("/file/content?path=etc/hostname", 400, "BadRequest"),
        ("/file/content?path=secret", 400, "BadRequest"),
        ("/file/content?path=secret/key", 403, "Forbidden"),
        ("/file/content?path=way", 403, "Forbidden"),
        ("/file/content?path=a%00b", 400, "BadRequest"),
        ("/file/content", 400, "BadRequest"),
        ("/file?path=etc", 400, "BadRequest"),
        ("/file?path=..", 400, "BadRequest"),
        ("/file?path=absent", 404, "NotFoundError"),
        ("/file?path=.env", 400, "BadRequest"),
        ("/find?pattern=(", 400, "BadRequest"),
        ("/find", 400, "BadRequest"),
        ("/find/file?query=a&limit=0", 400, "BadRequest"),
        ("/find/file?query=a&limit=201", 400, "BadRequest"),
        ("/find/file?query=a&type=odd", 400, "BadRequest"),
    ];
    for (path, status, name) in cases {
        let answer = world.get(path).await;
        assert_eq!(answer.error(), (status, name.to_owned()), "{path}");
        assert!(!answer.text.contains("sesame"), "{path}");
    }
    assert_eq!(world.get("/find?pattern=sesame").await.ok(), json!([]));
    // What the rules ask the user about, the client may see: it is the user's own.
    assert_eq!(
        world.get("/file/content?path=.env").await.ok()["content"],
        "A=1"
    );
}

#[tokio::test]
async fn bad_requests_have_opencode_form() {
    let world = World::plain().await;
    let query = world.get("/find").await.json();
    assert_eq!(query["data"]["kind"], "Query");
    for (path, body) in [
        ("/vcs/apply", Some("{")),
        ("/vcs/apply", Some("{}")),
        ("/vcs/apply", Some("[]")),
        ("/vcs/apply", None),
    ] {
        let answer = world.send("POST", path, body).await;
        assert_eq!(answer.error(), (400, "BadRequest".to_owned()), "{body:?}");
        assert_eq!(answer.json()["data"]["kind"], "Payload", "{body:?}");
        assert!(answer.json()["data"]["message"].as_str().unwrap().len() > 10);
    }
    for (method, path) in [("GET", "/nope"), ("POST", "/nope"), ("DELETE", "/vcs")] {
        let answer = world.send(method, path, None).await;
        assert_eq!(answer.error(), (404, "NotFoundError".to_owned()), "{path}");
    }
    let none: Value = world.get("/file/status").await.ok();
    assert_eq!(none, json!([]));
}
