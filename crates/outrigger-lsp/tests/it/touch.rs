use std::time::Duration;

use outrigger_protocol::diagnose::Diagnose;
use serde_json::json;

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_sent_when_it_is_met_and_again_when_it_has_changed() {
    for mode in ["push", "versions", "ranges", "pull", "registers", "late"] {
        let project = Project::new();
        let lsp = project.lsp(mode);
        assert!(
            lsp.is_on() && lsp.status().is_empty(),
            "nothing is started before a file is met"
        );
        let file = project.file("a.txt", "fine\nan error here\n");
        lsp.touch(&file).await;
        assert_eq!(
            project.diagnostics(&lsp),
            "a.txt: found: an error here",
            "{mode}"
        );
        project.file("a.txt", "a warning\nanother error");
        lsp.touch(&file).await;
        assert_eq!(
            project.diagnostics(&lsp),
            "a.txt: found: a warning, found: another error",
            "{mode}"
        );
        project.file("a.txt", "fine");
        lsp.touch(&file).await;
        assert_eq!(project.diagnostics(&lsp), "a.txt: ", "{mode}");
        let log = project.log();
        assert_eq!(log.iter().filter(|l| *l == "start").count(), 1, "{mode}");
        for line in [
            "open plaintext",
            r#"options {"a": {"b": 7}}"#,
            "answer [7]",
            "workspace/didChangeConfiguration",
            "textDocument/didSave",
        ] {
            assert!(
                log.contains(&line.to_owned()),
                "{mode}: {line} is not in {log:?}"
            );
        }
        let ranges = log.iter().filter(|l| l.starts_with("range ")).count();
        assert_eq!(ranges, if mode == "ranges" { 2 } else { 0 });
        if mode == "ranges" {
            assert!(
                log.contains(&r#"range {"character": 0, "line": 2}"#.to_owned()),
                "{log:?}"
            );
            assert!(
                log.contains(&r#"range {"character": 13, "line": 1}"#.to_owned()),
                "{log:?}"
            );
        }
        let asked: Vec<_> = log
            .iter()
            .filter(|l| l.starts_with("identifier"))
            .cloned()
            .collect();
        match mode {
            "pull" => assert_eq!(asked, ["identifier None"; 3]),
            "registers" => assert!(asked.contains(&"identifier mine".to_owned())),
            _ => assert!(asked.is_empty()),
        }
        assert_eq!(listed(&lsp), r#"scripted "" connected"#);
        lsp.shutdown(Duration::from_secs(5)).await;
        assert_eq!(project.count("exit"), 1, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_others_and_outside_start_nothing() {
    let project = Project::new();
    let lsp = project.lsp("push");
    lsp.touch(&project.file("a.md", "error")).await;
    lsp.touch("/etc/hosts.txt".as_ref()).await;
    lsp.warm(&project.file("b.md", "error"));
    assert_eq!((listed(&lsp).as_str(), project.log().len()), ("", 0));
    let off = project.configured(&json!({"typescript": {"disabled": true}, "acme": {"command": ["/nowhere/acme"], "extensions": [".x"]}}));
    off.touch(&project.file("a.zz", "error")).await;
    off.touch(&project.file("a.x", "error")).await;
    let [status] = &off.status()[..] else {
        unreachable!("{}", listed(&off))
    };
    assert_eq!((status.id.as_str(), status.status), ("acme", "error"));
    let error = status.error.clone().unwrap();
    assert_eq!((error.code(), error.hint().is_some()), ("lsp.start", true));
    assert!(error.to_string().contains("/nowhere/acme"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_files_at_once_are_one_server() {
    let project = Project::new();
    let lsp = project.lsp("push");
    let mut changes = lsp.changes();
    let files: Vec<_> = (0..10)
        .map(|n| project.file(&format!("{n}.txt"), &format!("error {n}")))
        .collect();
    futures_util::future::join_all(files.iter().map(|file| lsp.touch(file))).await;
    assert_eq!(lsp.diagnostics().len(), 10);
    assert_eq!(
        (
            project.count("start"),
            project.count("textDocument/didOpen")
        ),
        (1, 10)
    );
    assert_eq!(*changes.borrow_and_update(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_read_is_known_before_it_is_changed() {
    let project = Project::new();
    let lsp = project.lsp("push");
    let file = project.file("a.txt", "error");
    lsp.warm(&file);
    let mut changes = lsp.changes();
    changes.wait_for(|count| *count == 1).await.unwrap();
    until("it is opened", || project.count("textDocument/didOpen") > 0).await;
    lsp.touch(&file).await;
    assert_eq!(
        (
            project.count("textDocument/didOpen"),
            project.count("textDocument/didChange")
        ),
        (1, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn symbols_of_the_kinds_that_count() {
    let project = Project::new();
    let lsp = project.lsp("push");
    assert!(lsp.symbols("all").await.is_empty());
    lsp.touch(&project.file("a.txt", "")).await;
    let names: Vec<_> = lsp
        .symbols("all")
        .await
        .iter()
        .map(|s| s["name"].clone())
        .collect();
    assert_eq!(names, ["s12", "s5"]);
    assert_eq!(lsp.symbols("many").await.len(), 10);
}

/// A server runs in a sandbox and may change the project: what it must not read, it must not be sent either. Attempts
/// 1413 and 1414 of docs/bypass/attempts.toml.
#[tokio::test(flavor = "multi_thread")]
async fn links_out_of_the_project_and_withheld_files_are_not_sent() {
    for (mode, name, link) in [
        ("links", "a.txt", None),
        ("push", "b.txt", Some("../outside.txt")),
        ("push", "c.txt", Some("secret.txt")),
        ("push", "secret.txt", None),
    ] {
        let project = Project::new();
        let (lsp, other) = (project.lsp(mode), project.lsp("push"));
        std::fs::write(
            project.directory().with_file_name("outside.txt"),
            "an error",
        )
        .unwrap();
        project.file("secret.txt", "an error");
        let file = match link {
            Some(target) => {
                let link = project.directory().join(name);
                std::os::unix::fs::symlink(target, &link).unwrap();
                link
            }
            None => project.file(name, "an error"),
        };
        lsp.touch(&file).await;
        let sent = |line: &String| line.starts_with("open ");
        assert!(
            !project.log().iter().any(sent),
            "{mode} {name}: {:?}",
            project.log()
        );
        assert_eq!(project.count("start"), 1);
        // The same server is sent what it may see.
        other.touch(&project.file("d.txt", "an error")).await;
        assert!(project.log().iter().any(sent));
    }
}
