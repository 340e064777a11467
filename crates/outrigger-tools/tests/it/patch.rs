//! `apply_patch`.

use std::os::unix::fs::symlink;

use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::tool::ToolOutcome;
use serde_json::{Value, json};

use crate::support::Room;

fn patch(body: &str) -> Value {
    json!({"patchText": format!("*** Begin Patch\n{body}\n*** End Patch")})
}

#[tokio::test]
async fn a_patch_adds_changes_moves_and_deletes() {
    let room = Room::new();
    room.file("src/app.py", "def greet():\n    print(\"Hi\")\n");
    room.file("old.txt", "one\ntwo\n");
    room.file("keep.txt", "a\nb\n");
    let body = "*** Add File: new/hello.txt\n+Hello\n+\n+world\n*** Update File: src/app.py\n*** Move to: src/main.py\n@@ def greet():\n-    print(\"Hi\")\n+    print(\"Hello\")\n*** Update File: keep.txt\n@@\n a\n-b\n+c\n*** Delete File: old.txt";
    let output = room.output("apply_patch", patch(body)).await;
    insta::assert_snapshot!(output.output, @r"
    Success. Updated the following files:
    A new/hello.txt
    M src/main.py
    M keep.txt
    D old.txt
    ");
    assert_eq!(output.title, output.output);
    assert_eq!(room.text("new/hello.txt"), "Hello\n\nworld\n");
    assert_eq!(
        room.text("src/main.py"),
        "def greet():\n    print(\"Hello\")\n"
    );
    assert_eq!(room.text("keep.txt"), "a\nc\n");
    assert!(
        !room.project().join("src/app.py").exists() && !room.project().join("old.txt").exists()
    );
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        keys(&output.metadata),
        ["diff", "files", "diagnostics", "truncated"]
    );
    let files = output.metadata["files"].as_array().unwrap();
    let shown: Vec<String> = files
        .iter()
        .map(|f| {
            format!(
                "{} {} +{} -{} {}",
                f["type"],
                f["relativePath"],
                f["additions"],
                f["deletions"],
                keys(f).join(",")
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    "add" "new/hello.txt" +3 -0 filePath,relativePath,type,patch,additions,deletions
    "move" "src/main.py" +1 -1 filePath,relativePath,type,patch,additions,deletions,movePath
    "update" "keep.txt" +1 -1 filePath,relativePath,type,patch,additions,deletions
    "delete" "old.txt" +0 -2 filePath,relativePath,type,patch,additions,deletions
    "#);
    let all: String = files
        .iter()
        .map(|f| f["patch"].as_str().unwrap().to_owned() + "\n")
        .collect();
    assert_eq!(output.metadata["diff"], json!(all));
    let asks = room.host.asks.lock().unwrap().clone();
    // A moved file is asked about as a read, then the whole as an edit.
    assert_eq!(asks.len(), 2);
    assert_eq!(
        (asks[0].permission.as_str(), asks[0].patterns.as_slice()),
        ("read", &["src/app.py".to_owned()][..])
    );
    assert_eq!(
        asks[1].patterns,
        [
            "new/hello.txt",
            "src/app.py",
            "src/main.py",
            "keep.txt",
            "old.txt"
        ]
    );
    assert_eq!(
        asks[1].metadata["filepath"],
        "new/hello.txt, src/app.py, src/main.py, keep.txt, old.txt"
    );
    assert_eq!(asks[1].metadata["files"], output.metadata["files"]);
    assert_eq!(asks[1].metadata["diff"], output.metadata["diff"]);
    let events: Vec<String> = room
        .host
        .lines()
        .lines()
        .filter(|l| l.starts_with("publish"))
        .map(str::to_owned)
        .collect();
    insta::assert_snapshot!(events.join("\n"), @r"
    publish file.edited
    publish file.edited
    publish file.edited
    publish file.watcher.updated
    publish file.watcher.updated
    publish file.watcher.updated
    publish file.watcher.updated
    publish file.watcher.updated
    ");
}

#[tokio::test]
async fn what_does_not_fit_changes_nothing() {
    let many = "*** Delete File: a\n".repeat(1001);
    for (body, want) in [
        ("", "patch rejected: empty patch"),
        ("nothing", "apply_patch verification failed: no hunks found"),
        (
            "*** Update File: no.txt\n@@\n-a\n+b",
            "apply_patch verification failed: Failed to read file to update: ROOM/project/no.txt",
        ),
        (
            "*** Delete File: no.txt",
            "apply_patch verification failed: Failed to read file to delete: ROOM/project/no.txt",
        ),
        (
            "*** Delete File: dir",
            "apply_patch verification failed: ROOM/project/dir is not a file; remove it with a command",
        ),
        (
            "*** Add File: dir\n+x",
            "apply_patch verification failed: Path is a directory, not a file: ROOM/project/dir",
        ),
        (
            "*** Add File: a.txt/b\n+x",
            "There is nothing at ROOM/project/a.txt/b: a part of its path is a file, not a folder",
        ),
        (
            "*** Update File: a.txt\n@@\n-x\n+y",
            "apply_patch verification failed: Error: Failed to find expected lines in ROOM/project/a.txt:\nx",
        ),
        (
            "*** Update File: a.txt\n@@ x\n-a\n+y",
            "apply_patch verification failed: Error: Failed to find context 'x' in ROOM/project/a.txt",
        ),
        (
            "*** Update File: bin\n@@\n-x\n+y",
            "apply_patch verification failed: ROOM/project/bin is not UTF-8 text; it was left as it is",
        ),
        (
            "*** Update File: a.txt\n*** Move to: b.txt\n@@\n-a\n+y",
            "apply_patch verification failed: Failed to move ROOM/project/a.txt: ROOM/project/b.txt is there already; delete it first",
        ),
        (
            many.as_str(),
            "apply_patch verification failed: it has more than 1000 sections; send it in parts",
        ),
    ] {
        let room = Room::new();
        room.file("a.txt", "a\n");
        room.file("b.txt", "b\n");
        room.file("bin", [0xff, 0xfe]);
        std::fs::create_dir(room.project().join("dir")).unwrap();
        // The matching part comes first, and is not applied either.
        let first = if body.contains("***") {
            "*** Add File: first\n+x\n"
        } else {
            ""
        };
        let input = if body.is_empty() {
            json!({"patchText": "*** Begin Patch\n*** End Patch"})
        } else {
            patch(&format!("{first}{body}"))
        };
        let (_, message) = room.failure("apply_patch", input).await;
        assert_eq!(message, want, "{body:?}");
        assert!(room.asked().is_empty(), "{body:?}");
        assert_eq!(
            (room.text("a.txt"), room.text("b.txt")),
            ("a\n".into(), "b\n".into())
        );
        assert!(!room.project().join("first").exists(), "{body:?}");
    }
    let room = Room::new();
    for (input, want) in [
        (json!({"patchText": ""}), "patchText is required"),
        (
            json!({"patchText": "x"}),
            "apply_patch verification failed: Error: Invalid patch format: missing Begin/End markers",
        ),
    ] {
        assert_eq!(room.failure("apply_patch", input).await.1, want);
    }
}

#[tokio::test]
async fn what_is_there_is_shown_and_kept() {
    for (body, want) in [
        // An existing file is replaced, and the diff shows what is removed.
        ("*** Add File: a.txt\n+new", "M a.txt | a.txt=new\n"),
        // A second section for a file continues from the first.
        (
            "*** Update File: a.txt\n@@\n-a\n+b\n*** Update File: a.txt\n@@\n-b\n+c",
            "M a.txt M a.txt | a.txt=c\n",
        ),
        (
            "*** Add File: n.txt\n+1\n*** Update File: n.txt\n@@\n-1\n+2",
            "A n.txt M n.txt | n.txt=2\n",
        ),
        (
            "*** Update File: a.txt\n@@\n-a\n+b\n*** Delete File: a.txt",
            "M a.txt D a.txt | a.txt gone",
        ),
        (
            "*** Delete File: a.txt\n*** Add File: a.txt\n+z",
            "D a.txt A a.txt | a.txt=z\n",
        ),
        // A move onto itself is not a move.
        (
            "*** Update File: a.txt\n*** Move to: ./x/../a.txt\n@@\n-a\n+b",
            "M a.txt | a.txt=b\n",
        ),
        // One without changes, and one onto a file that the patch removes.
        (
            "*** Update File: a.txt\n*** Move to: d/e.txt",
            "M d/e.txt | d/e.txt=a\n",
        ),
        (
            "*** Delete File: b.txt\n*** Update File: a.txt\n*** Move to: b.txt",
            "D b.txt M b.txt | b.txt=a\n",
        ),
        ("*** Delete File: bin", "D bin | bin gone"),
        ("*** Add File: empty.txt", "A empty.txt | empty.txt="),
        // Byte order mark and line ends stay.
        (
            "*** Update File: dos.txt\n@@\n-one\n+two",
            "M dos.txt | dos.txt=\u{feff}two\r\nx\r\n",
        ),
    ] {
        let room = Room::new();
        room.file("a.txt", "a\n");
        room.file("b.txt", "b\n");
        room.file("bin", [0xff, 0xfe]);
        room.file("dos.txt", "\u{feff}one\r\nx\r\n");
        let output = room.output("apply_patch", patch(body)).await;
        let lines: Vec<&str> = output.output.lines().skip(1).collect();
        let name = lines.last().unwrap().split_at(2).1;
        let left = std::fs::read_to_string(room.project().join(name))
            .map_or(format!("{name} gone"), |text| format!("{name}={text}"));
        assert_eq!(format!("{} | {left}", lines.join(" ")), want, "{body:?}");
        if body.starts_with("*** Add File: a.txt") {
            assert!(
                output.metadata["diff"]
                    .as_str()
                    .unwrap()
                    .contains("-a\n+new\n")
            );
        }
    }
}

#[tokio::test]
async fn what_lies_outside_is_asked_for_first() {
    let body = "*** Add File: ../outside/new.txt\n+x";
    let room = Room::new();
    room.output("apply_patch", patch(body)).await;
    assert_eq!(
        room.asked(),
        [
            r#"external_directory ["ROOM/outside/*"] ["ROOM/outside/*"]"#,
            r#"edit ["../outside/new.txt"] ["*"]"#
        ]
    );
    assert!(room.outside().join("new.txt").exists());
    // The target of a move, a link into another folder, and a link elsewhere that leads in here count as outside.
    std::fs::write(room.outside().join("secret.txt"), "secret\n").unwrap();
    room.file("a.txt", "a\n");
    symlink(room.outside(), room.project().join("out")).unwrap();
    symlink(room.project().join("a.txt"), room.outside().join("in.txt")).unwrap();
    *room.host.refuse.lock().unwrap() = Some("external_directory");
    for body in [
        "*** Add File: ../outside/b.txt\n+x",
        "*** Add File: out/b.txt\n+x",
        "*** Update File: a.txt\n*** Move to: out/b.txt",
        "*** Update File: out/secret.txt\n@@\n-guess\n+x",
        "*** Delete File: out/secret.txt",
        "*** Delete File: ../outside/in.txt",
    ] {
        let (code, message) = room.failure("apply_patch", patch(body)).await;
        assert!(
            code == "tool.rejected" && !message.contains("secret"),
            "{body}: {code} {message}"
        );
        assert!(!room.outside().join("b.txt").exists(), "{body}");
    }
    assert!(
        room.outside().join("secret.txt").exists() && room.outside().join("in.txt").is_symlink()
    );
}

#[tokio::test]
async fn a_link_goes_itself_and_not_what_it_leads_to() {
    let room = Room::new();
    room.file("a.txt", "a\n");
    symlink("a.txt", room.project().join("link")).unwrap();
    room.output("apply_patch", patch("*** Delete File: link"))
        .await;
    assert_eq!(room.text("a.txt"), "a\n");
    assert!(!room.project().join("link").is_symlink());
}

#[tokio::test]
async fn a_refusal_and_a_hook_that_rewrites_count() {
    let room = Room::new();
    room.file("a.txt", "a\n");
    *room.host.refuse.lock().unwrap() = Some("edit");
    room.failure("apply_patch", patch("*** Delete File: a.txt"))
        .await;
    assert_eq!(room.text("a.txt"), "a\n");
    *room.host.refuse.lock().unwrap() = None;
    room.host.hook(HookPoint::ToolBeforeCall, |mut output| {
        output["args"] = patch("*** Add File: other.txt\n+x");
        Ok(output)
    });
    room.output("apply_patch", patch("*** Delete File: a.txt"))
        .await;
    assert_eq!(
        (room.text("a.txt"), room.text("other.txt")),
        ("a\n".into(), "x\n".into())
    );
}

#[tokio::test]
async fn when_a_file_cannot_be_written_the_error_names_what_was_done() {
    let room = Room::new();
    let body = "*** Add File: a.txt\n+x\n*** Add File: b\n+x\n*** Add File: b/c\n+x";
    let done = room.execute("apply_patch", patch(body)).await;
    let ToolOutcome::Failed { message, .. } = done.outcome else {
        panic!("a file became a folder");
    };
    assert!(
        message.ends_with("Changed before that:\nA a.txt\nA b"),
        "{message}"
    );
}
