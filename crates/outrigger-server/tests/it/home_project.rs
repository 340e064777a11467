//! A project that is the home folder.

use std::fs;
use std::os::unix::fs::symlink;

use outrigger_agent::Answering;
use serde_json::json;

use crate::harness::Harness;
use outrigger_test_support::model::{Mock, call, done, turn};

/// Nobody is there to answer, so questions are refused. Files next to the secrets are read without a question.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_a_home_folder_are_asked_about_where_it_is_the_project() {
    let root = tempfile::Builder::new()
        .prefix("outrigger-home-")
        .tempdir()
        .unwrap();
    let home = root
        .path()
        .canonicalize()
        .unwrap()
        .join("project")
        .display()
        .to_string();
    let calls = [
        call("read", json!({ "filePath": ".ssh/id_rsa" })),
        call("read", json!({ "filePath": format!("{home}/.netrc") })),
        call("read", json!({ "filePath": "keys/id_rsa" })),
        call("grep", json!({ "pattern": "canary" })),
        call("grep", json!({ "pattern": "canary", "path": ".ssh" })),
        call("glob", json!({ "pattern": "**/*rsa*" })),
        call("read", json!({ "filePath": "notes.txt" })),
    ];
    let variables = [("HOME", home.as_str())];
    let nobody = Answering::Refuse;
    let h = Harness::in_place(
        root,
        Mock::new([turn(calls), done()]),
        json!({}),
        nobody,
        &variables,
        |project| {
            for folder in [".git", ".ssh"] {
                fs::create_dir(project.join(folder)).unwrap();
            }
            for file in [".ssh/id_rsa", ".netrc"] {
                fs::write(project.join(file), "canary-of-secrets\n").unwrap();
            }
            fs::write(project.join("notes.txt"), "canary-of-notes\n").unwrap();
            symlink(".ssh", project.join("keys")).unwrap();
        },
    );
    let h = h.await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    let parts = h.parts(&session, "tool").await;
    assert_eq!(parts.len(), 7);
    for part in &parts {
        assert!(
            !part["state"].to_string().contains("canary-of-secrets"),
            "{part}"
        );
    }
    for refused in &parts[..3] {
        assert_eq!(refused["state"]["status"], "error", "{refused}");
    }
    for shown in [&parts[3], &parts[6]] {
        assert!(
            shown["state"].to_string().contains("canary-of-notes"),
            "{shown}"
        );
    }
}
