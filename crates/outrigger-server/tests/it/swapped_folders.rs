//! A project folder or file is constantly swapped with a link: tools and routes always act in the folder, never at the link's target.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outrigger_agent::Answering;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::access_matrix::is_few;
use crate::harness::Harness;
use outrigger_test_support::model::{Mock, call, done, turn};

/// A text that only files of the folder next to the project contain.
const CANARY: &str = "canary-of-the-vault";
/// A name that only that folder has.
const NAME: &str = "named-in-the-vault";
/// The number of files in each folder, with the same names.
const FILES: usize = 40;
/// The maximum number of swaps, and with that of rounds.
const SWAPS: usize = 6000;

/// Swaps the folder until it is stopped.
struct Swapping {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<usize>,
}

impl Swapping {
    fn of(project: &Path, name: &str, link: &str) -> Self {
        let (folder, link) = (project.join(name), project.join(link));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut swaps = 0;
            while swaps < SWAPS && !stopped.load(Ordering::SeqCst) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
                // Irregular, so that it is sometimes in step with the code and sometimes not.
                let pause = [0, 50, 300, 1000, 20][swaps % 5];
                std::thread::sleep(Duration::from_micros(pause));
            }
            // The folder again, not the link.
            if folder.is_symlink() {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
            swaps
        });
        Self { stop, thread }
    }

    /// Returns whether nothing is swapped any more: one more round finds everything in its place.
    fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        let swaps = self.thread.join().unwrap();
        assert!(swaps > 50, "it was swapped {swaps} times");
    }
}

async fn world() -> Harness {
    let root = tempfile::Builder::new()
        .prefix("outrigger-swap-")
        .tempdir()
        .unwrap();
    let config = json!({
        "permission": { "*": "allow", "external_directory": "ask", "read": { "*": "allow", "*.pem": "deny" } },
        "command": { "look": { "template": "see $ARGUMENTS" } },
    });
    let nobody = Answering::Refuse;
    Harness::in_place(root, Mock::new([done()]), config, nobody, &[], |project| {
        for (folder, holds) in [("work", "plain"), ("../vault", CANARY)] {
            let folder = project.join(folder);
            std::fs::create_dir(&folder).unwrap();
            for n in 0..FILES {
                std::fs::write(folder.join(format!("f{n}.txt")), format!("{holds} line\n"))
                    .unwrap();
            }
        }
        std::fs::write(project.join("../vault").join(NAME), CANARY).unwrap();
        std::os::unix::fs::symlink("../vault", project.join("other")).unwrap();
        std::fs::write(project.join("one.txt"), "plain line\n").unwrap();
        std::fs::write(project.join("key.pem"), format!("{CANARY} line\n")).unwrap();
        std::os::unix::fs::symlink("key.pem", project.join("one.link")).unwrap();
    })
    .await
}

/// Returns the vault's contents, which must stay the same.
fn vault(harness: &Harness) -> Vec<(String, String)> {
    let listed = std::fs::read_dir(harness.path("../vault")).unwrap();
    let mut files: Vec<_> = listed
        .map(|entry| {
            let entry = entry.unwrap();
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            (entry.file_name().into_string().unwrap(), text)
        })
        .collect();
    files.sort();
    files
}

/// Returns a smaller number if the test is repeated as another user.
fn rounds(all: usize) -> usize {
    if is_few() { all / 4 } else { all }
}

fn patch(lines: &str) -> Value {
    call(
        "apply_patch",
        json!({ "patchText": format!("*** Begin Patch\n{lines}\n*** End Patch") }),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_stay_in_a_folder_that_is_swapped_for_a_link() {
    let harness = world().await;
    let before = vault(&harness);
    let swapping = Swapping::of(&harness.path(""), "work", "other");
    let of_file = Swapping::of(&harness.path(""), "one.txt", "one.link");
    for round in 0..rounds(12) {
        let is_last = swapping.is_over() && of_file.is_over();
        let mut calls = Vec::new();
        for n in 0..FILES / 4 {
            let file = format!("work/f{n}.txt");
            calls.extend([
                call("read", json!({ "filePath": file })),
                call(
                    "edit",
                    json!({ "filePath": file, "oldString": "line", "newString": "line." }),
                ),
                call(
                    "write",
                    json!({ "filePath": format!("work/new{round}-{n}.txt"), "content": "x" }),
                ),
                call(
                    "write",
                    json!({ "filePath": format!("work/deep{round}-{n}/new.txt"), "content": "x" }),
                ),
                call(
                    "write",
                    json!({ "filePath": format!("work/f{}.txt", n + 20), "content": "x" }),
                ),
            ]);
        }
        for _ in 0..6 {
            calls.extend([
                call("grep", json!({ "pattern": "line" })),
                call("grep", json!({ "pattern": "line", "include": "one.*" })),
                call("read", json!({ "filePath": "one.txt" })),
                call("grep", json!({ "pattern": "line", "path": "work" })),
                call("glob", json!({ "pattern": "**/*", "path": "work" })),
                call("glob", json!({ "pattern": "**/*" })),
                call("read", json!({ "filePath": "work" })),
                call(
                    "read",
                    json!({ "filePath": format!("work/{}", &NAME[..9]) }),
                ),
            ]);
        }
        let patches = (0..10).flat_map(|n| {
            let n = n + 30;
            [
                patch(&format!(
                    "*** Update File: work/f{n}.txt\n@@\n-plain line\n+plain  line"
                )),
                patch(&format!("*** Add File: work/added{round}-{n}.txt\n+x")),
                patch(&format!("*** Delete File: work/f{n}.txt")),
            ]
        });
        for (model, calls) in [("m1", calls), ("gpt-5", patches.collect())] {
            let mark = format!("round {round} of {model}");
            harness.mock.when(&mark, turn(calls));
            let session = harness.session().await;
            let text = [json!({ "type": "text", "text": mark })];
            let model = json!({ "providerID": "mock", "modelID": model });
            let path = format!("/session/{session}/message");
            harness
                .ok("POST", &path, json!({ "parts": text, "model": model }))
                .await;
            for part in harness.parts(&session, "tool").await {
                let output = part["state"].to_string();
                assert!(
                    !output.contains(CANARY) && !output.contains(NAME),
                    "{output}"
                );
            }
        }
        if is_last {
            break;
        }
    }
    swapping.end();
    of_file.end();
    assert_eq!(vault(&harness), before);
    assert!(harness.read("work/f0.txt").contains("line."));
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_and_prompts_stay_in_a_folder_that_is_swapped_for_a_link() {
    let harness = world().await;
    let swapping = Swapping::of(&harness.path(""), "work", "other");
    let mut shown = 0;
    for round in 0..rounds(40) {
        let is_last = swapping.is_over();
        let file = format!("f{}.txt", round % FILES);
        for path in [
            "/find?pattern=line".to_owned(),
            "/find?pattern=canary".to_owned(),
            "/find/file?query=named-in&limit=200".to_owned(),
            "/find/file?query=vault&limit=200".to_owned(),
            "/file?path=work".to_owned(),
            format!("/file/content?path=work/{file}"),
        ] {
            let published = harness.text("GET", &path).await;
            shown += usize::from(published.contains("plain"));
            assert!(
                !published.contains(CANARY) && !published.contains(NAME),
                "{path}: {published}"
            );
        }
        let url = |name: &str| format!("file://{}", harness.path(name).display());
        let part = |name: &str| json!({ "type": "file", "mime": "text/plain", "filename": "x", "url": url(name) });
        let session = harness.session().await;
        let parts = [
            part(&format!("work/{file}")),
            part("work"),
            json!({ "type": "text", "text": "see" }),
        ];
        let path = format!("/session/{session}/message");
        harness.ok("POST", &path, json!({ "parts": parts })).await;
        let command = json!({ "command": "look", "arguments": format!("@work/{file} @work") });
        harness
            .ok("POST", &format!("/session/{session}/command"), command)
            .await;
        if is_last {
            break;
        }
    }
    swapping.end();
    for request in harness.mock.requests() {
        let published = request.body.to_string();
        assert!(
            !published.contains(CANARY) && !published.contains(NAME),
            "{published}"
        );
    }
    assert!(shown > 0);
}
