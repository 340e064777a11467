//! `read`, `edit` and `write`.

use std::os::unix::fs::{PermissionsExt, symlink};

use outrigger_tools::NearbyInstruction;
use serde_json::json;

use crate::support::Room;

#[tokio::test]
async fn read_shows_files_as_opencode_does() {
    let room = Room::new();
    room.file("hello.txt", "hi there\n");
    let output = room
        .output(
            "read",
            json!({"filePath": room.project().join("hello.txt")}),
        )
        .await;
    assert_eq!(output.title, "hello.txt");
    insta::assert_snapshot!(output.output, @r"
    <path>ROOM/project/hello.txt</path>
    <type>file</type>
    <content>
    1: hi there

    (End of file - total 1 lines)
    </content>
    ");
    assert_eq!(
        output.metadata,
        json!({"preview": "hi there", "truncated": false, "loaded": [], "display": {"type": "file",
            "path": room.project().join("hello.txt"), "text": "hi there", "lineStart": 1, "lineEnd": 1, "totalLines": 1, "truncated": false}})
    );
    let big: String = (1..=2500).map(|n| format!("line {n}\n")).collect();
    let wide: String = (1..=100)
        .map(|n| format!("w{n} {}\n", "x".repeat(900)))
        .collect();
    let long = format!("{}\nshort\n", "ä".repeat(3000));
    for (name, content, input, note) in [
        (
            "big",
            big.as_str(),
            json!({}),
            "2000: line 2000\n\n(Showing lines 1-2000 of 2500. Use offset=2001 to continue.)",
        ),
        (
            "big",
            &big,
            json!({"offset": 2400, "limit": 50}),
            "2449: line 2449\n\n(Showing lines 2400-2449 of 2500. Use offset=2450 to continue.)",
        ),
        (
            "big",
            &big,
            json!({"offset": 2500}),
            "2500: line 2500\n\n(End of file - total 2500 lines)",
        ),
        (
            "wide",
            &wide,
            json!({}),
            "(Output capped at 50 KB. Showing lines 1-56. Use offset=57 to continue.)",
        ),
        (
            "long",
            &long,
            json!({}),
            "ä... (line truncated to 2000 chars)\n2: short\n\n(End of file - total 2 lines)",
        ),
        (
            "empty",
            "",
            json!({}),
            "<content>\n\n\n(End of file - total 0 lines)",
        ),
        (
            "noeol",
            "one\ntwo",
            json!({}),
            "1: one\n2: two\n\n(End of file - total 2 lines)",
        ),
        ("crlf", "one\r\ntwo\r\n", json!({}), "1: one\n2: two\n\n"),
        ("bom", "\u{feff}one\n", json!({}), "<content>\n1: one\n\n"),
        (
            "zero",
            "one\n",
            json!({"limit": 0}),
            "(Showing lines 1-0 of 1. Use offset=1 to continue.)",
        ),
        (
            "from0",
            "one\n",
            json!({"offset": 0}),
            "1: one\n\n(End of file - total 1 lines)",
        ),
        ("latin", "caf\u{e9}\n", json!({"offset": 1.0}), "1: café"),
    ] {
        let path = room.file(name, content);
        let mut input = input;
        input["filePath"] = json!(path);
        let output = room.output("read", input).await.output;
        assert!(
            output.contains(note),
            "{name}: {}",
            &output[output.len().saturating_sub(300)..]
        );
        assert!(output.len() < 60 * 1024);
    }
}

#[tokio::test]
async fn read_says_why_it_cannot() {
    let room = Room::new();
    room.file("hello.txt", "hi\n");
    room.file("data.bin", "text in a binary suffix");
    room.file("nul", "a\0b");
    symlink("loop", room.project().join("loop")).unwrap();
    for (input, text) in [
        (
            json!({"filePath": "missing.txt"}),
            "File not found: ROOM/project/missing.txt",
        ),
        (
            json!({"filePath": "hello.tx"}),
            "File not found: ROOM/project/hello.tx\n\nDid you mean one of these?\nROOM/project/hello.txt",
        ),
        (
            json!({"filePath": "hello.txt/x"}),
            "There is nothing at ROOM/project/hello.txt/x: a part of its path is a file, not a folder",
        ),
        (
            json!({"filePath": "hello.txt", "offset": 10}),
            "Offset 10 is out of range for this file (1 lines)",
        ),
        (
            json!({"filePath": "data.bin"}),
            "Cannot read binary file: ROOM/project/data.bin",
        ),
        (
            json!({"filePath": "nul"}),
            "Cannot read binary file: ROOM/project/nul",
        ),
        (
            json!({"filePath": "/dev/null"}),
            "Could not open /dev/null: it is not a regular file",
        ),
        (
            json!({"filePath": "loop"}),
            "ROOM/project/loop has more than 40 symbolic links",
        ),
        (json!({"filePath": "a\u{0}b"}), "holds a NUL byte"),
    ] {
        let (code, message) = room.failure("read", input).await;
        assert_eq!(code, "tool.failed");
        assert!(message.contains(text), "{message}");
    }
}

#[tokio::test]
async fn read_lists_folders() {
    let room = Room::new();
    for name in ["b.rs", "AGENTS.md", "a.txt", ".env", "dir/x"] {
        room.file(name, "");
    }
    let output = room.output("read", json!({"filePath": "."})).await;
    assert_eq!(output.title, "");
    insta::assert_snapshot!(output.output, @r"
    <path>ROOM/project</path>
    <type>directory</type>
    <entries>
    .env
    a.txt
    AGENTS.md
    b.rs
    dir/

    (5 entries)
    </entries>
    ");
    let output = room
        .output("read", json!({"filePath": ".", "offset": 2, "limit": 1}))
        .await;
    assert!(output.output.contains("<entries>\na.txt\n\n(Showing 1 of 5 entries. Use 'offset' parameter to read beyond entry 3)"), "{}", output.output);
    assert_eq!(output.metadata["truncated"], true);
}

#[tokio::test]
async fn instructions_beside_a_file_come_with_it() {
    let room = Room::new();
    room.file("sub/a.txt", "A\n");
    let path = room.file("sub/AGENTS.md", "SUBRULE\n");
    room.host.nearby.lock().unwrap().push(NearbyInstruction {
        path: path.clone(),
        text: "SUBRULE\n".into(),
    });
    let output = room.output("read", json!({"filePath": "sub/a.txt"})).await;
    assert!(output.output.ends_with("\n</content>\n\n<system-reminder>\nInstructions from: ROOM/project/sub/AGENTS.md\nSUBRULE\n\n</system-reminder>"), "{}", output.output);
    assert_eq!(output.metadata["loaded"], json!([path]));
}

#[tokio::test]
async fn what_is_asked_for_files() {
    let room = Room::new();
    room.file("hello.txt", "hi\n");
    room.file(".env", "SECRET=1\n");
    let outside = room.outside().join("o.txt");
    std::fs::write(&outside, "secret\n").unwrap();
    std::fs::create_dir(room.outside().join("*")).unwrap();
    std::fs::write(room.outside().join("*/x"), "x\n").unwrap();
    symlink(&outside, room.project().join("link.txt")).unwrap();
    symlink(
        room.project().join(".env"),
        room.project().join("innocent.txt"),
    )
    .unwrap();
    symlink(room.outside(), room.project().join("way-out")).unwrap();
    let edit = |path: &str| json!({"filePath": path, "oldString": "hi", "newString": "ho"});
    for (tool, input, want) in [
        (
            "read",
            json!({"filePath": "hello.txt"}),
            vec![r#"read ["hello.txt"] ["*"]"#],
        ),
        (
            "read",
            json!({"filePath": ".env"}),
            vec![r#"read [".env"] ["*"]"#],
        ),
        (
            "read",
            json!({"filePath": "innocent.txt"}),
            vec![r#"read ["innocent.txt",".env"] ["*"]"#],
        ),
        ("read", json!({"filePath": "."}), vec![r#"read [""] ["*"]"#]),
        // "Always" for one folder covers no others that its name would match.
        (
            "read",
            json!({"filePath": "../outside/*/x"}),
            vec![
                r#"external_directory ["ROOM/outside/*/*"] []"#,
                r#"read ["../outside/*/x"] ["*"]"#,
            ],
        ),
        (
            "read",
            json!({"filePath": outside}),
            vec![
                r#"external_directory ["ROOM/outside/*"] ["ROOM/outside/*"]"#,
                r#"read ["../outside/o.txt"] ["*"]"#,
            ],
        ),
        (
            "read",
            json!({"filePath": "link.txt"}),
            vec![
                r#"external_directory ["ROOM/outside/*"] ["ROOM/outside/*"]"#,
                r#"read ["link.txt","../outside/o.txt"] ["*"]"#,
            ],
        ),
        (
            "read",
            json!({"filePath": "sub/../../outside"}),
            vec![
                r#"external_directory ["ROOM/outside/*"] ["ROOM/outside/*"]"#,
                r#"read ["../outside"] ["*"]"#,
            ],
        ),
        (
            "edit",
            edit("hello.txt"),
            vec![r#"edit ["hello.txt"] ["*"]"#],
        ),
        (
            "write",
            json!({"filePath": "new/w.txt", "content": "x"}),
            vec![r#"edit ["new/w.txt"] ["*"]"#],
        ),
        (
            "write",
            json!({"filePath": "way-out/w.txt", "content": "x"}),
            vec![
                r#"external_directory ["ROOM/outside/*"] ["ROOM/outside/*"]"#,
                r#"edit ["way-out/w.txt","../outside/w.txt"] ["*"]"#,
            ],
        ),
    ] {
        room.output(tool, input.clone()).await;
        assert_eq!(room.asked(), want, "{tool} {input}");
    }
    // The question shows what would change.
    room.file("hello.txt", "hi\n");
    room.execute("edit", edit("hello.txt")).await;
    let asks = room.host.asks.lock().unwrap();
    assert!(
        asks[0].metadata["diff"]
            .as_str()
            .unwrap()
            .ends_with("@@ -1,1 +1,1 @@\n-hi\n+ho\n")
    );
}

#[tokio::test]
async fn nothing_of_a_file_outside_is_shown_when_the_question_is_refused() {
    let room = Room::new();
    *room.host.refuse.lock().unwrap() = Some("external_directory");
    let path = room.outside().join("o.txt");
    std::fs::write(&path, "secret\n").unwrap();
    for (tool, input) in [
        ("read", json!({"filePath": path})),
        (
            "edit",
            json!({"filePath": path, "oldString": "secret", "newString": "x"}),
        ),
        (
            "edit",
            json!({"filePath": path, "oldString": "other", "newString": "x"}),
        ),
        ("write", json!({"filePath": path, "content": "x"})),
        ("glob", json!({"pattern": "*", "path": room.outside()})),
        (
            "glob",
            json!({"pattern": format!("{}/*", room.outside().display())}),
        ),
        ("grep", json!({"pattern": "secret", "path": path})),
        (
            "bash",
            json!({"command": format!("cat {}", path.display())}),
        ),
        (
            "bash",
            json!({"command": format!("echo x > {}", path.display())}),
        ),
        ("bash", json!({"command": "ls", "workdir": room.outside()})),
    ] {
        let got = room.failure(tool, input).await;
        assert_eq!(
            got,
            (
                "tool.rejected".into(),
                "The user rejected permission to use this specific tool call.".into()
            )
        );
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "secret\n");
    assert!(
        room.host
            .asks
            .lock()
            .unwrap()
            .iter()
            .all(|ask| !ask.metadata.to_string().contains("secret\\n"))
    );
}

#[tokio::test]
async fn edit_answers_as_opencode_does() {
    let room = Room::new();
    let path = room.file("hello.txt", "hi there\n");
    let output = room
        .output(
            "edit",
            json!({"filePath": path, "oldString": "hi there", "newString": "bye there"}),
        )
        .await;
    assert_eq!(
        (output.title.as_str(), output.output.as_str()),
        ("hello.txt", "Edit applied successfully.")
    );
    let patch = format!(
        "Index: {p}\n{}\n--- {p}\n+++ {p}\n@@ -1,1 +1,1 @@\n-hi there\n+bye there\n",
        "=".repeat(67),
        p = path.display()
    );
    assert_eq!(
        output.metadata,
        json!({"diagnostics": {}, "diff": patch, "filediff": {"file": path, "patch": patch, "additions": 1, "deletions": 1,
            "before": "hi there\n", "after": "bye there\n"}, "truncated": false})
    );
    assert_eq!(room.text("hello.txt"), "bye there\n");
    let lines = room.host.lines();
    assert!(
        lines.contains("publish file.edited\npublish file.watcher.updated\nprogress"),
        "{lines}"
    );
}

#[tokio::test]
async fn edit_refuses_as_opencode_does() {
    let room = Room::new();
    room.file("dup.txt", "x = 1\nx = 1\n");
    room.file("sub/x", "");
    room.file("latin.txt", b"caf\xe9\n");
    let edit = |path: &str, old: &str, new: &str| json!({"filePath": path, "oldString": old, "newString": new});
    for (input, text) in [
        (
            edit("dup.txt", "x = 1", "x = 2"),
            "Found multiple matches for oldString. Provide more surrounding context to make the match unique.",
        ),
        (
            edit("dup.txt", "nothere", "x"),
            "Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings.",
        ),
        (
            edit("dup.txt", "x", "x"),
            "No changes to apply: oldString and newString are identical.",
        ),
        (
            edit("missing.txt", "a", "b"),
            "File ROOM/project/missing.txt not found",
        ),
        (
            edit("dup.txt", "", "gone\n"),
            "oldString cannot be empty when editing an existing file. Provide the exact text to replace, or use write for an intentional full-file replacement.",
        ),
        (
            edit("sub", "a", "b"),
            "Path is a directory, not a file: ROOM/project/sub",
        ),
        (edit("", "a", "b"), "filePath is required"),
        (
            edit("latin.txt", "caf", "b"),
            "ROOM/project/latin.txt is not UTF-8 text; it was left as it is",
        ),
    ] {
        assert_eq!(
            room.failure("edit", input).await,
            ("tool.failed".into(), text.into())
        );
    }
    assert_eq!(room.asked(), [""; 0]);
    assert_eq!(
        std::fs::read(room.project().join("latin.txt")).unwrap(),
        b"caf\xe9\n"
    );
}

#[tokio::test]
async fn edit_keeps_line_ends_marks_modes_and_links() {
    let room = Room::new();
    room.file("crlf.txt", "one\r\ntwo\r\nthree\r\n");
    let script = room.file("run.sh", "\u{feff}echo one\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("run.sh", room.project().join("link.sh")).unwrap();
    room.output(
        "edit",
        json!({"filePath": "crlf.txt", "oldString": "one\ntwo", "newString": "1\n2"}),
    )
    .await;
    assert_eq!(room.text("crlf.txt"), "1\r\n2\r\nthree\r\n");
    room.output(
        "edit",
        json!({"filePath": "link.sh", "oldString": "one", "newString": "two"}),
    )
    .await;
    assert_eq!(room.text("run.sh"), "\u{feff}echo two\n");
    assert_eq!(
        std::fs::metadata(&script).unwrap().permissions().mode() & 0o777,
        0o755
    );
    assert!(
        std::fs::symlink_metadata(room.project().join("link.sh"))
            .unwrap()
            .is_symlink()
    );
    room.output(
        "edit",
        json!({"filePath": "made/new.txt", "oldString": "", "newString": "made\n"}),
    )
    .await;
    assert_eq!(room.text("made/new.txt"), "made\n");
    room.file("dup.txt", "x = 1\nx = 1\n");
    room.output(
        "edit",
        json!({"filePath": "dup.txt", "oldString": "x = 1", "newString": "$&", "replaceAll": true}),
    )
    .await;
    assert_eq!(room.text("dup.txt"), "$&\n$&\n");
}

#[tokio::test]
async fn edits_of_one_file_side_by_side_lose_nothing() {
    let room = Room::new();
    let content: String = (0..20).map(|n| format!("<{n}>\n")).collect();
    room.file("f.txt", content);
    let edits = (0..20).map(|n| {
        room.output("edit", json!({"filePath": "f.txt", "oldString": format!("<{n}>"), "newString": format!("[{n}]")}))
    });
    futures_util::future::join_all(edits).await;
    assert_eq!(
        room.text("f.txt"),
        (0..20).map(|n| format!("[{n}]\n")).collect::<String>()
    );
}

#[tokio::test]
async fn write_answers_as_opencode_does() {
    let room = Room::new();
    let path = room.project().join("d1/new.txt");
    let output = room
        .output("write", json!({"filePath": path, "content": "fresh\n"}))
        .await;
    assert_eq!(
        (output.title.as_str(), output.output.as_str()),
        ("d1/new.txt", "Wrote file successfully.")
    );
    let mut metadata = output.metadata;
    let filediff = metadata
        .as_object_mut()
        .unwrap()
        .remove("filediff")
        .unwrap();
    assert_eq!(
        metadata,
        json!({"diagnostics": {}, "filepath": path, "exists": false, "truncated": false})
    );
    assert_eq!(
        (&filediff["before"], &filediff["after"]),
        (&json!(""), &json!("fresh\n"))
    );
    room.file("bom.txt", "\u{feff}one\r\n");
    let output = room
        .output("write", json!({"filePath": "bom.txt", "content": "x\n"}))
        .await;
    assert_eq!(output.metadata["exists"], true);
    assert_eq!(room.text("bom.txt"), "\u{feff}x\n");
    room.file("sub/x", "");
    let (_, message) = room
        .failure("write", json!({"filePath": "sub", "content": "x"}))
        .await;
    assert_eq!(message, "Path is a directory, not a file: ROOM/project/sub");
}

/// The decision is about the link's target at that time, and no other file is opened.
#[tokio::test]
async fn a_link_that_is_swapped_behind_the_decision_opens_nothing_else() {
    for (tool, input) in [
        ("read", json!({"filePath": "link"})),
        ("write", json!({"filePath": "link", "content": "changed"})),
        (
            "edit",
            json!({"filePath": "link", "oldString": "plain", "newString": "changed"}),
        ),
    ] {
        let room = Room::new();
        room.file("plain.txt", "plain");
        room.file("secret.txt", "plain secret");
        let link = room.project().join("link");
        symlink("plain.txt", &link).unwrap();
        *room.host.swap.lock().unwrap() = Some((link, "secret.txt".into()));
        let (_, said) = room.failure(tool, input).await;
        assert!(
            said.contains("leads elsewhere than when it was checked"),
            "{tool}: {said}"
        );
        let secret = std::fs::read_to_string(room.project().join("secret.txt")).unwrap();
        assert_eq!(secret, "plain secret", "{tool}");
    }
}

/// An edit of the same answer replaces the file between the check of a `read` and its opening: the rules decide about the new one.
#[tokio::test]
async fn a_file_that_an_edit_replaces_is_checked_again() {
    for (decisions, want) in [
        (["allow", "allow"], Ok("2: new")),
        (["allow", "deny"], Err("rejected permission")),
    ] {
        let room = Room::new();
        let (named, new) = (room.project().join("plain.txt"), room.project().join("new"));
        room.file("plain.txt", "plain");
        room.file("new", "the\nnew");
        *room.host.renames.lock().unwrap() = vec![(new, named.clone())];
        *room.host.decisions.lock().unwrap() = decisions.into();
        let input = json!({"filePath": named});
        match want {
            Ok(text) => {
                let output = room.output("read", input).await.output;
                assert!(output.contains(text), "{output}");
            }
            Err(text) => {
                let (_, said) = room.failure("read", input).await;
                assert!(said.contains(text), "{said}");
            }
        }
        assert_eq!(room.host.asks.lock().unwrap().len(), 2);
    }
}

/// A file of another name that gets the approved one is another file.
#[tokio::test]
async fn a_file_that_is_renamed_to_an_approved_name_is_not_read() {
    for (approved, other) in [
        (Some("plain.txt"), "secret.txt"),
        (None, "secret.txt"),
        (Some("folder"), "vault"),
    ] {
        let room = Room::new();
        room.file("plain.txt", "plain");
        room.file("folder/plain.txt", "plain");
        room.file("secret.txt", "the secret");
        room.file("vault/the secret", "");
        let named = room.project().join(approved.unwrap_or("missing.txt"));
        let aside = approved.map(|_| (named.clone(), room.project().join("aside")));
        let renames = aside
            .into_iter()
            .chain([(room.project().join(other), named.clone())]);
        *room.host.renames.lock().unwrap() = renames.collect();
        room.host.decisions.lock().unwrap().push_back("once");
        let (_, said) = room.failure("read", json!({"filePath": named})).await;
        assert!(
            said.contains("is another file than when it was checked"),
            "{approved:?}: {said}"
        );
        assert!(!said.contains("the secret"), "{said}");
        // Asked about anew, it is what has the name now.
        let output = room.output("read", json!({"filePath": named})).await;
        assert!(output.output.contains("the secret"), "{}", output.output);
    }
}
