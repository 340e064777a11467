//! The cost of a bad server: one bounded wait, and nothing indefinite.

use std::time::{Duration, Instant};

use crate::support::*;
use outrigger_protocol::diagnose::Diagnose;

fn short_limits() -> Project {
    let mut project = Project::new();
    project.limits.document = Duration::from_millis(400);
    project.limits.ready = Duration::from_millis(1500);
    project.limits.start = Duration::from_millis(1500);
    project.limits.answer = Duration::from_millis(500);
    project
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_be_had_is_asked_once() {
    for (mode, code, says) in [
        (
            "exit",
            "lsp.gone",
            "exit code 3); its last words: no licence",
        ),
        (
            "mute",
            "lsp.timeout",
            "did not answer initialize within 1500 ms",
        ),
        ("garbage", "lsp.gone", "its header has no end"),
        ("huge", "lsp.gone", "a message of more than 32 MiB"),
    ] {
        // A server that exits is recognised by that, however late.
        let project = if mode == "mute" {
            short_limits()
        } else {
            Project::new()
        };
        let lsp = project.lsp(mode);
        let file = project.file("a.txt", "error");
        lsp.touch(&file).await;
        // A start that takes as long as a caller waits may be noticed a moment later.
        until("it is listed", || !lsp.status().is_empty()).await;
        // If each of them waited for a start, they would take twenty times as long as one.
        let began = Instant::now();
        for _ in 0..20 {
            lsp.touch(&file).await;
        }
        assert!(began.elapsed() < Duration::from_millis(10 * 1500), "{mode}");
        let error = lsp.status()[0].error.clone().unwrap();
        assert_eq!(error.code(), code, "{mode}: {error}");
        assert!(error.to_string().contains(says), "{mode}: {error}");
        assert_eq!(lsp.status()[0].status, "error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_says_nothing_is_waited_for_twice() {
    let mut project = short_limits();
    project.limits.start = PLENTY;
    let lsp = project.lsp("silent");
    let file = project.file("a.txt", "error");
    lsp.touch(&file).await;
    lsp.touch(&file).await;
    // If each of them waited for an answer, they would take twenty seconds.
    let began = Instant::now();
    for _ in 0..40 {
        lsp.touch(&file).await;
    }
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(listed(&lsp), r#"scripted "" connected"#);
    assert_eq!(project.diagnostics(&lsp), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_ends_is_started_again_a_few_times() {
    let project = Project::new();
    let lsp = project.lsp("dies");
    let file = project.file("a.txt", "error");
    for _ in 0..8 {
        lsp.touch(&file).await;
        // Its end is noticed a moment after its last output.
        until("its end is seen", || {
            lsp.status().iter().any(|s| s.status != "connected")
        })
        .await;
    }
    assert_eq!(project.count("start"), 4, "{:?}", project.log());
    let error = lsp.status()[0].error.clone().unwrap();
    assert!(error.to_string().contains("exit code 7"), "{error}");

    let project = Project::new();
    let lsp = project.lsp("dies-on-error");
    let (bad, good) = (
        project.file("bad.txt", "error"),
        project.file("good.txt", "a warning"),
    );
    lsp.touch(&bad).await;
    until("its end is seen", || {
        lsp.status().iter().any(|s| s.status != "connected")
    })
    .await;
    lsp.touch(&good).await;
    assert_eq!(project.diagnostics(&lsp), "good.txt: found: a warning");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_floods_neither_fills_memory_nor_holds_anybody() {
    let project = short_limits();
    let lsp = project.lsp("flood");
    let (a, b) = (
        project.file("a.txt", "error"),
        project.file("b.txt", "error"),
    );
    for _ in 0..3 {
        lsp.touch(&a).await;
        lsp.touch(&b).await;
    }
    until("what it said before is there", || {
        project.diagnostics(&lsp) == "a.txt: found: error"
    })
    .await;
    lsp.shutdown(Duration::from_millis(300)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_not_end_is_ended_and_nothing_is_left() {
    for mode in ["stays", "push"] {
        let project = Project::new();
        let lsp = project.lsp(mode);
        lsp.touch(&project.file("a.txt", "error")).await;
        let began = Instant::now();
        lsp.shutdown(Duration::from_millis(300)).await;
        assert!(began.elapsed() < Duration::from_secs(30), "{mode}");
        let folder = project.directory();
        let folder = folder.parent().unwrap().to_str().unwrap();
        let is_of_project = |entry: std::fs::DirEntry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(folder)
        };
        // A killed process is gone once the system has processed it.
        until(&format!("{mode}: its processes end"), || {
            !std::fs::read_dir("/proc")
                .unwrap()
                .flatten()
                .any(is_of_project)
        })
        .await;
        lsp.touch(&project.file("b.txt", "")).await;
    }
}
