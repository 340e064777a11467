//! What rules allow, deny and ask about, with nobody to ask. For the answers of a terminal or a plugin, see `permission.rs` of
//! outrigger-cli.

use outrigger_test_support::model::{Mock, call, done, turn};
use serde_json::{Value, json};

use crate::harness::Harness;

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

/// Runs a whole turn under these rules, and returns its session.
async fn ran(
    turns: impl IntoIterator<Item = Value>,
    config: Value,
    prepare: impl FnOnce(&std::path::Path),
) -> (Harness, String) {
    let turns = turns.into_iter().chain([done()]);
    let h = Harness::unattended(Mock::new(turns), config, prepare).await;
    let session = h.session().await;
    h.prompt(&session, "do it").await;
    (h, session)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_matching_rule_decides() {
    let rules = json!({ "bash": { "*": "deny", "echo *": "allow", "echo secret*": "deny" } });
    let calls = [
        "echo one > one.txt",
        "echo secret > two.txt",
        "ls > three.txt",
        "echo one > four.txt; ls > five.txt",
    ];
    let (h, _) = ran(calls.map(bash), json!({ "permission": rules }), |_| {}).await;
    let there =
        ["one", "two", "three", "four", "five"].map(|file| h.path(&format!("{file}.txt")).exists());
    assert_eq!(there, [true, false, false, false, false]);
}

/// A tool that is always denied is not offered either.
#[tokio::test(flavor = "multi_thread")]
async fn a_denied_tool_is_not_offered() {
    let config = json!({ "permission": { "bash": "deny" } });
    let (h, _) = ran([bash("echo ran > ran.txt")], config, |_| {}).await;
    let offered = h.mock.requests()[0].tools();
    assert!(
        !offered.contains(&"bash".to_owned()) && offered.contains(&"read".to_owned()),
        "{offered:?}"
    );
    assert!(!h.path("ran.txt").exists());
}

/// Files outside the project need an answer, which nobody gives; symlinks do not bypass this.
#[tokio::test(flavor = "multi_thread")]
async fn files_outside_the_project() {
    for (tool, args) in [
        ("read", json!({ "filePath": "../outside.txt" })),
        (
            "write",
            json!({ "filePath": "../outside.txt", "content": "mine" }),
        ),
        (
            "edit",
            json!({ "filePath": "../outside.txt", "oldString": "theirs", "newString": "mine" }),
        ),
        ("read", json!({ "filePath": "link.txt" })),
        (
            "write",
            json!({ "filePath": "link.txt", "content": "mine" }),
        ),
    ] {
        let turns = [turn([call(tool, args.clone())])];
        let (h, session) = ran(turns, json!({}), |project| {
            let outside = project.join("../outside.txt");
            std::fs::write(&outside, "theirs").unwrap();
            std::os::unix::fs::symlink(outside, project.join("link.txt")).unwrap();
        })
        .await;
        assert_eq!(h.read("../outside.txt"), "theirs");
        let state = &h.parts(&session, "tool").await[0]["state"];
        assert_eq!(state["status"], "error", "{tool} {args}: {state}");
        let error = state["error"].as_str().unwrap();
        assert!(
            error.contains("Permission was not given"),
            "{tool} {args}: {error}"
        );
    }
}

/// No other file tool shows what `read` is denied: searches skip it, and a patch cannot rename it.
#[tokio::test(flavor = "multi_thread")]
async fn searches_and_moves_keep_to_the_rules_about_reading() {
    let grep = |path: &str| ("grep", json!({ "pattern": "SECRET", "path": path }));
    let whole = |from: &str| {
        format!(
            "*** Begin Patch\n*** Update File: {from}\n*** Move to: open.txt\n@@\n-SECRET=1\n+SECRET=1 \n*** End Patch"
        )
    };
    for (rules, (tool, args), seen) in [
        (json!({ "read": { "*.env": "deny" } }), grep("."), false),
        (json!({ "read": { "*.env": "deny" } }), grep("sub"), false),
        (
            json!({ "read": { "*.env": "deny" } }),
            grep("sub/x.env"),
            false,
        ),
        (
            json!({ "read": { "*": "allow", "sub/*": "deny" } }),
            grep("."),
            false,
        ),
        (json!({ "read": { "*": "deny" } }), grep("."), false),
        (json!({ "read": { "*.env": "ask" } }), grep("."), false),
        (json!({}), grep("."), false),
        (json!({ "read": "allow" }), grep("."), true),
        (
            json!({ "read": { "*.env": "deny" } }),
            ("glob", json!({ "pattern": "**/*.env" })),
            false,
        ),
        (
            json!({ "read": { "*.env": "ask" } }),
            ("glob", json!({ "pattern": "**/*.env" })),
            true,
        ),
        (
            json!({ "read": { "*.env": "deny" } }),
            ("apply_patch", json!({ "patchText": whole("sub/x.env") })),
            false,
        ),
    ] {
        let mut config = json!({ "permission": rules });
        if tool == "apply_patch" {
            config["provider"] = json!({ "mock": { "models": { "m1": { "id": "gpt-5" } } } });
        }
        let turns = [turn([call(tool, args.clone())])];
        let (h, session) = ran(turns, config, |project| {
            std::fs::create_dir(project.join("sub")).unwrap();
            std::fs::write(project.join("sub/x.env"), "SECRET=1\n").unwrap();
        })
        .await;
        let state = h.parts(&session, "tool").await[0]["state"].clone();
        let output = state["output"].as_str().unwrap_or_default();
        let shows = output.contains("SECRET") || output.contains("x.env");
        assert_eq!(shows, seen, "{rules} {tool} {args}: {state}");
        assert!(!h.path("open.txt").exists(), "{rules} {tool} {args}");
    }
}
