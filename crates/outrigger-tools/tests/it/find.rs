//! `glob` and `grep`.

use std::fs::File;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::support::Room;

// Creates files of increasing age, so that the order of results is known.
fn aged(room: &Room, files: &[(&str, &str)]) {
    for (n, (path, content)) in files.iter().enumerate() {
        let path = room.file(path, content);
        let time = SystemTime::now() - Duration::from_secs(60 * n as u64);
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
}

fn small(room: &Room) {
    aged(
        room,
        &[
            ("hello.txt", "hi there\n"),
            ("sub/a.txt", "A\n"),
            (".hidden/h.txt", "hi hidden\n"),
            ("code.ts", "function a() {\n    if (x) {\n    }\n}\n"),
            (".gitignore", "ignored/\n*.log\n"),
            ("ignored/i.txt", "hi ignored\n"),
            ("x.log", "hi log\n"),
            (".git/config", "hi git\n"),
            ("bin", "hi\0there\n"),
        ],
    );
}

#[tokio::test]
async fn glob_finds_by_name_newest_first() {
    let room = Room::new();
    small(&room);
    let project = room.project();
    for (input, title, want) in [
        (
            json!({"pattern": "*.txt"}),
            "",
            "ROOM/project/hello.txt\nROOM/project/sub/a.txt\nROOM/project/.hidden/h.txt",
        ),
        (
            json!({"pattern": "sub/*.txt"}),
            "",
            "ROOM/project/sub/a.txt",
        ),
        (
            json!({"pattern": "**/*.{ts,log}"}),
            "",
            "ROOM/project/code.ts",
        ),
        (
            json!({"pattern": "*.txt", "path": project.join("sub")}),
            "sub",
            "ROOM/project/sub/a.txt",
        ),
        (
            json!({"pattern": "**/*.txt", "path": "sub"}),
            "sub",
            "ROOM/project/sub/a.txt",
        ),
        (
            json!({"pattern": format!("{}/sub/*", project.display())}),
            "sub",
            "ROOM/project/sub/a.txt",
        ),
        (json!({"pattern": "*.nope"}), "", "No files found"),
        (json!({"pattern": "i.txt"}), "", "No files found"),
    ] {
        let output = room.output("glob", input.clone()).await;
        assert_eq!(
            (output.title.as_str(), output.output.as_str()),
            (title, want),
            "{input}"
        );
    }
    for (input, text) in [
        (
            json!({"pattern": "*.txt", "path": "nope"}),
            "There is no directory ROOM/project/nope",
        ),
        (
            json!({"pattern": "*.txt", "path": "hello.txt"}),
            "glob path must be a directory: ROOM/project/hello.txt",
        ),
        (json!({"pattern": "["}), "The pattern [ cannot be used"),
        (json!({"pattern": ""}), "pattern is required"),
    ] {
        let (_, message) = room.failure("glob", input).await;
        assert!(message.starts_with(text), "{message}");
    }
}

#[tokio::test]
async fn a_search_with_a_pattern_without_end_is_refused() {
    let room = Room::new();
    for n in [2000, 100_000] {
        let nested = format!("{}a{}", "{".repeat(n), "}".repeat(n));
        for (tool, input) in [
            ("glob", json!({"pattern": nested})),
            ("grep", json!({"pattern": "a", "include": nested})),
        ] {
            let (_, message) = room.failure(tool, input).await;
            let want = if n == 2000 {
                "braces are nested more than 32 deep"
            } else {
                "longer than 4096 bytes"
            };
            assert!(message.contains(want), "{message}");
            assert!(message.len() < 400, "{message}");
        }
        let nested = format!("{}a{}", "(".repeat(n), ")".repeat(n));
        let (_, message) = room.failure("grep", json!({"pattern": nested})).await;
        assert!(message.len() < 9000, "{message}");
    }
}

#[tokio::test]
async fn results_beyond_a_hundred_are_cut() {
    let room = Room::new();
    for n in 0..130 {
        room.file(&format!("many/f{n:03}.txt"), format!("needle {n}\n"));
    }
    let output = room.output("glob", json!({"pattern": "many/*.txt"})).await;
    assert!(output.output.ends_with(".txt\n\n(Results are truncated: showing first 100 results. Consider using a more specific path or pattern.)"));
    assert_eq!(output.metadata, json!({"count": 100, "truncated": true}));
    let output = room.output("grep", json!({"pattern": "needle"})).await;
    assert!(
        output
            .output
            .starts_with("Found 100 matches (more matches available)\nROOM/project/many/")
    );
    assert!(
        output.output.ends_with(
            "\n\n\n(Results truncated. Consider using a more specific path or pattern.)"
        ),
        "{}",
        output.output
    );
    assert_eq!(output.metadata, json!({"matches": 100, "truncated": true}));
    room.file("many/f000.txt", "needle\n".repeat(5000));
    let output = room
        .output(
            "grep",
            json!({"pattern": "needle", "path": "many/f000.txt"}),
        )
        .await;
    assert_eq!(output.metadata, json!({"matches": 100, "truncated": true}));
}

#[tokio::test]
async fn grep_finds_lines_as_opencode_shows_them() {
    let room = Room::new();
    small(&room);
    let output = room.output("grep", json!({"pattern": "hi"})).await;
    assert_eq!(
        (output.title.as_str(), &output.metadata),
        ("hi", &json!({"matches": 2, "truncated": false}))
    );
    insta::assert_snapshot!(output.output, @r"
    Found 2 matches
    ROOM/project/hello.txt:
      Line 1: hi there


    ROOM/project/.hidden/h.txt:
      Line 1: hi hidden
    ");
    room.file("long.txt", "a".repeat(3000));
    for (input, want) in [
        (
            json!({"pattern": "hi", "include": "h*.txt", "path": ".hidden"}),
            "Found 1 matches\nROOM/project/.hidden/h.txt:\n  Line 1: hi hidden\n",
        ),
        (
            json!({"pattern": "x", "include": "*.{ts,tsx}"}),
            "Found 1 matches\nROOM/project/code.ts:\n  Line 2:     if (x) {\n",
        ),
        (
            json!({"pattern": "hi", "path": room.project().join("hello.txt")}),
            "Found 1 matches\nROOM/project/hello.txt:\n  Line 1: hi there\n",
        ),
        (json!({"pattern": "nothere"}), "No files found"),
        (
            json!({"pattern": "hi\\nthere|^HI"}),
            "the literal \"\\n\" is not allowed in a regex",
        ),
        (
            json!({"pattern": "(?i)^HI THERE$"}),
            "Found 1 matches\nROOM/project/hello.txt:\n  Line 1: hi there\n",
        ),
        (
            json!({"pattern": "("}),
            "regex parse error:\n    (\n    ^\nerror: unclosed group",
        ),
        (
            json!({"pattern": "x", "path": "nope"}),
            "There is nothing at ROOM/project/nope",
        ),
        (json!({"pattern": ""}), "pattern is required"),
    ] {
        let done = room.execute("grep", input.clone()).await;
        let text = match done.outcome {
            outrigger_protocol::tool::ToolOutcome::Completed { output, .. } => output.output,
            outrigger_protocol::tool::ToolOutcome::Failed { message, .. } => message,
        };
        assert_eq!(room.plain(&text), want, "{input}");
    }
    let output = room.output("grep", json!({"pattern": "a{50}"})).await;
    assert!(output.output.ends_with("a...") && output.output.len() < 2100);
    assert!(room.asked().contains(&r#"grep ["a{50}"] ["*"]"#.to_owned()));
}
