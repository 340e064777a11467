//! Snapshots of files, reverting a session's changes, and restoring them.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::Harness;
use outrigger_test_support::model::{call, done, turn};

/// Creates a git project with git itself.
#[expect(
    clippy::disallowed_methods,
    reason = "a test makes a project as a user would"
)]
pub(crate) fn git(project: &Path) {
    for args in [
        vec!["init", "-q"],
        vec!["add", "-A"],
        vec![
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qm",
            "init",
        ],
    ] {
        let done = std::process::Command::new("git")
            .args(args)
            .current_dir(project)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .unwrap();
        assert!(done.success());
    }
}

fn bash(command: &str) -> Value {
    call("bash", json!({ "command": command, "description": "x" }))
}

fn edit(from: &str, to: &str) -> Value {
    call(
        "edit",
        json!({ "filePath": "hello.txt", "oldString": from, "newString": to }),
    )
}

async fn project(turns: impl IntoIterator<Item = Value>) -> Harness {
    Harness::in_folder(turns, json!({}), git).await
}

/// Returns the identifiers of the user messages.
async fn users(h: &Harness, session: &str) -> Vec<String> {
    let messages = h.messages(session).await;
    messages
        .iter()
        .filter(|m| m["info"]["role"] == "user")
        .map(|m| m["info"]["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn revert(h: &Harness, session: &str, body: Value) -> (u16, Value) {
    h.call("POST", &format!("/session/{session}/revert"), body)
        .await
}

async fn unrevert(h: &Harness, session: &str) -> (u16, Value) {
    h.call("POST", &format!("/session/{session}/unrevert"), Value::Null)
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_writes_has_trees_and_a_patch_and_one_that_reads_has_none() {
    let read = call("read", json!({ "filePath": "hello.txt" }));
    let h = project([
        turn([read]),
        turn([bash("echo new > new.txt; echo x >> hello.txt")]),
        turn([bash("true")]),
        done(),
    ])
    .await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    let starts = h.parts(&session, "step-start").await;
    let ends = h.parts(&session, "step-finish").await;
    let has = |parts: &[Value]| {
        parts
            .iter()
            .map(|p| p["snapshot"].is_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(has(&starts), [false, true, true, false]);
    assert_eq!(has(&ends), [false, true, true, false]);
    assert_ne!(starts[1]["snapshot"], ends[1]["snapshot"]);
    assert_eq!(starts[2]["snapshot"], ends[2]["snapshot"]);
    let patches = h.parts(&session, "patch").await;
    assert_eq!(patches.len(), 1);
    assert_eq!(patches[0]["hash"], starts[1]["snapshot"]);
    assert_eq!(
        patches[0]["files"],
        json!([h.path("hello.txt"), h.path("new.txt")])
    );

    let user = users(&h, &session).await.remove(0);
    let diff = h
        .ok(
            "GET",
            &format!("/session/{session}/diff?messageID={user}"),
            Value::Null,
        )
        .await;
    let seen: Vec<_> = diff
        .as_array()
        .unwrap()
        .iter()
        .map(|d| {
            (
                d["file"].as_str().unwrap(),
                d["status"].as_str().unwrap(),
                d["additions"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [("hello.txt", "modified", 1), ("new.txt", "added", 1)]
    );
    assert!(diff[0]["patch"].as_str().unwrap().contains("+x\n"));
    let summary = &h
        .ok("GET", &format!("/session/{session}"), Value::Null)
        .await["summary"];
    assert_eq!(
        summary,
        &json!({ "additions": 2, "deletions": 0, "files": 2 })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_trees_where_they_are_switched_off_or_there_is_no_git() {
    for (config, prepare) in [
        (json!({ "snapshot": false }), git as fn(&Path)),
        (json!({}), |_: &Path| {}),
    ] {
        let h = Harness::in_folder([turn([bash("echo x > x.txt")]), done()], config, prepare).await;
        let session = h.session().await;
        h.prompt(&session, "go").await;
        assert!(h.parts(&session, "patch").await.is_empty());
        assert!(
            h.parts(&session, "step-start")
                .await
                .iter()
                .all(|p| p["snapshot"].is_null())
        );
        // Messages are reverted anyway; the files stay.
        let user = users(&h, &session).await.remove(0);
        let (status, answer) = revert(&h, &session, json!({ "messageID": user })).await;
        assert_eq!(
            (status, &answer["revert"]),
            (200, &json!({ "messageID": user }))
        );
        assert_eq!(h.read("x.txt"), "x\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reverted_and_restored() {
    let h = project([
        turn([
            edit("hi", "ho"),
            bash("mkdir d; echo new > d/new.txt; rm -f opencode.jsonc"),
        ]),
        done(),
        turn([bash("echo more >> hello.txt; rm d/new.txt")]),
        done(),
    ])
    .await;
    let session = h.session().await;
    h.prompt(&session, "first").await;
    h.prompt(&session, "second").await;
    let users = users(&h, &session).await;
    assert_eq!(h.read("hello.txt"), "ho there\nmore\n");

    // The second prompt, then the first one too, then forward again to the second one.
    for (message, text, new) in [
        (&users[1], "ho there\n", "new\n"),
        (&users[0], "hi there\n", ""),
        (&users[1], "ho there\n", "new\n"),
    ] {
        let (status, answer) = revert(&h, &session, json!({ "messageID": message })).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["revert"]["messageID"], json!(message));
        assert!(answer["revert"]["snapshot"].is_string());
        assert_eq!(
            (h.read("hello.txt").as_str(), h.read("d/new.txt").as_str()),
            (text, new)
        );
    }
    let (_, answer) = unrevert(&h, &session).await;
    assert!(answer["revert"].is_null());
    assert_eq!(h.read("hello.txt"), "ho there\nmore\n");
    assert!(!h.path("d/new.txt").exists());
    assert_eq!(h.messages(&session).await.len(), 6);

    // The next prompt removes reverted messages permanently.
    revert(&h, &session, json!({ "messageID": users[1] })).await;
    let before = h.published("message.removed").len();
    h.prompt(&session, "third").await;
    let texts: Vec<_> = h
        .parts(&session, "text")
        .await
        .iter()
        .map(|p| p["text"].clone())
        .collect();
    assert_eq!(
        texts,
        [
            json!("first"),
            json!("All done."),
            json!("third"),
            json!("All done.")
        ]
    );
    assert_eq!(h.published("message.removed").len() - before, 3);
    let one = h
        .ok("GET", &format!("/session/{session}"), Value::Null)
        .await;
    assert!(one["revert"].is_null());
    assert_eq!(h.mock.last().texts("user"), ["first", "third"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_part_on() {
    let h = project([turn([edit("hi", "ho")]), turn([edit("ho", "hu")]), done()]).await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    let second = h.parts(&session, "tool").await.remove(1);
    let text = h.parts(&session, "text").await.pop().unwrap();
    let message = &text["messageID"];
    // No text precedes the tool in its message, so the whole prompt is removed.
    let (_, answer) = revert(
        &h,
        &session,
        json!({ "messageID": second["messageID"], "partID": second["id"] }),
    )
    .await;
    assert_eq!(answer["revert"]["partID"], Value::Null);
    assert_eq!(h.read("hello.txt"), "hi there\n");
    unrevert(&h, &session).await;
    assert_eq!(h.read("hello.txt"), "hu there\n");
    // A missing one changes nothing.
    for body in [
        json!({ "messageID": "msg_none" }),
        json!({ "messageID": message, "partID": "prt_none" }),
    ] {
        let (status, answer) = revert(&h, &session, body).await;
        assert_eq!((status, &answer["revert"]), (200, &Value::Null));
    }
}

/// Later changes to a file from elsewhere are not overwritten.
#[tokio::test(flavor = "multi_thread")]
async fn work_of_others_is_not_destroyed() {
    let h = project([
        turn([edit("hi", "ho")]),
        done(),
        turn([bash("echo mine > mine.txt; echo more >> hello.txt")]),
        done(),
    ])
    .await;
    let session = h.session().await;
    h.prompt(&session, "first").await;
    std::fs::write(h.path("hello.txt"), "ho there\nby hand\n").unwrap();
    h.prompt(&session, "second").await;
    let users = users(&h, &session).await;
    let refused = |(status, error): (u16, Value), files: Value| {
        assert_eq!(
            (status, &error["name"]),
            (409, &json!("RevertConflictError")),
            "{error}"
        );
        assert_eq!(error["data"]["files"], files);
    };
    // In between: the first prompt cannot be reverted without the line added by hand.
    let all = json!({ "messageID": users[0] });
    refused(
        revert(&h, &session, all.clone()).await,
        json!(["hello.txt"]),
    );
    assert_eq!(h.read("hello.txt"), "ho there\nby hand\nmore\n");
    assert_eq!(h.read("mine.txt"), "mine\n");
    // Since then: a file that the session created has been extended.
    std::fs::write(h.path("mine.txt"), "mine\nand yours\n").unwrap();
    let second = json!({ "messageID": users[1] });
    refused(
        revert(&h, &session, second.clone()).await,
        json!(["mine.txt"]),
    );
    std::fs::write(h.path("mine.txt"), "mine\n").unwrap();
    let (status, _) = revert(&h, &session, second).await;
    assert_eq!(status, 200);
    assert_eq!(h.read("hello.txt"), "ho there\nby hand\n");
    // While it is reverted: restoring must not overwrite either.
    std::fs::write(h.path("hello.txt"), "rewritten\n").unwrap();
    refused(unrevert(&h, &session).await, json!(["hello.txt"]));
    assert_eq!(h.read("hello.txt"), "rewritten\n");
    let forced = h
        .ok(
            "POST",
            &format!("/session/{session}/unrevert"),
            json!({ "force": true }),
        )
        .await;
    assert!(forced["revert"].is_null());
    assert_eq!(h.read("hello.txt"), "ho there\nby hand\nmore\n");
    // A file that already has the restored content is not a conflict.
    std::fs::remove_file(h.path("mine.txt")).unwrap();
    let forced = json!({ "messageID": users[0], "force": true });
    let (status, _) = revert(&h, &session, forced).await;
    assert_eq!((status, h.read("hello.txt").as_str()), (200, "hi there\n"));
}

/// Contents are kept byte by byte whatever attributes say; ignored files and large new files are left alone.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_a_tree() {
    let prepare = |project: &Path| {
        std::fs::write(project.join(".gitattributes"), "* text=auto eol=lf\n").unwrap();
        std::fs::write(project.join(".gitignore"), "ignored.txt\n").unwrap();
        std::fs::write(project.join("crlf.txt"), "a\r\nb\r\n").unwrap();
        std::fs::write(project.join("ignored.txt"), "before\n").unwrap();
        git(project);
        std::fs::write(project.join("crlf.txt"), "a\r\nuncommitted\r\n").unwrap();
    };
    let command = "printf 'x' > crlf.txt; echo after > ignored.txt; head -c 3000000 /dev/zero > large.bin; ln -s hello.txt link; printf '\\0\\1' > 'odd \"name\".bin'";
    let h = Harness::in_folder([turn([bash(command)]), done()], json!({}), prepare).await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    let patches = h.parts(&session, "patch").await;
    let files = ["crlf.txt", "link", "odd \"name\".bin"].map(|name| h.path(name));
    assert_eq!(patches[0]["files"], json!(files));
    let user = users(&h, &session).await.remove(0);
    let (status, _) = revert(&h, &session, json!({ "messageID": user })).await;
    assert_eq!(status, 200);
    assert_eq!(h.read("crlf.txt"), "a\r\nuncommitted\r\n");
    assert_eq!(h.read("ignored.txt"), "after\n");
    assert!(h.path("large.bin").exists() && !h.path("link").is_symlink());
    unrevert(&h, &session).await;
    assert_eq!(h.read("crlf.txt"), "x");
    assert!(h.path("link").is_symlink());
}

/// A part that a client rewrote cannot refer outside of the project.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_cannot_name_files_outside() {
    let h = project([turn([bash("echo x > x.txt")]), done()]).await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    let outside = h.path("../outside.txt");
    std::fs::write(&outside, "keep").unwrap();
    std::os::unix::fs::symlink(".git", h.path("g")).unwrap();
    let mut patch = h.parts(&session, "patch").await.remove(0);
    let user = users(&h, &session).await.remove(0);
    for file in [
        json!(outside),
        json!("../outside.txt"),
        json!(h.path(".git/config")),
        json!(h.path("g/config")),
        json!("g/hooks/pre-push"),
    ] {
        patch["files"] = json!([file]);
        let at = format!(
            "/session/{session}/message/{}/part/{}",
            patch["messageID"].as_str().unwrap(),
            patch["id"].as_str().unwrap()
        );
        h.ok("PATCH", &at, patch.clone()).await;
        let (status, error) =
            revert(&h, &session, json!({ "messageID": user, "force": true })).await;
        assert_eq!(
            (status, &error["data"]["code"]),
            (500, &json!("agent.snapshot")),
            "{file}"
        );
    }
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "keep");
    assert!(h.path("x.txt").exists() && h.path(".git/config").exists());
}

/// A record that no turn wrote is none: in a message of the user, or with a name that git would take for an option.
#[tokio::test(flavor = "multi_thread")]
async fn only_records_of_turns_are_restored() {
    let h = project([turn([bash("echo x > x.txt")]), done()]).await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    let user = users(&h, &session).await.remove(0);
    let patch = h.parts(&session, "patch").await.remove(0);
    let start = h.parts(&session, "step-start").await.remove(0);
    let add = async |part: Value| {
        let at = ["messageID", "id"].map(|key| part[key].as_str().unwrap().to_owned());
        let at = format!("/session/{session}/message/{}/part/{}", at[0], at[1]);
        h.ok("PATCH", &at, part).await;
    };
    let mut forged = patch.clone();
    forged["id"] = json!("prt_zzz");
    forged["messageID"] = json!(user);
    forged["files"] = json!([h.path("hello.txt")]);
    add(forged).await;
    let mut option = start;
    let file = h.path("../made-by-git.txt");
    option["snapshot"] = json!(format!("--output={}", file.display()));
    add(option).await;
    std::fs::write(h.path("hello.txt"), "mine").unwrap();
    let (status, answer) = revert(&h, &session, json!({ "messageID": user })).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(h.read("hello.txt"), "mine");
    assert!(!file.exists() && !h.path("x.txt").exists());
}
