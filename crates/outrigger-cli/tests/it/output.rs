//! Where output is printed, and that it is complete.

use std::io::Read as _;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::support::*;

#[test]
fn failures_are_lines_of_json_too_and_leave_no_session() {
    let world = World::new([done()]);
    world.config(json!({
        "command": { "lost": { "template": "x", "agent": "nobody" }, "far": { "template": "x", "model": "mock/m9" } },
        "agent": { "odd": { "mode": "primary", "model": "mock/m8" } },
    }));
    for (args, code, exit) in [
        (&["-m", "mock/m2", "hi"][..], "model.unknown_model", 1),
        (&["-m", "m2", "hi"], "cli.usage", 2),
        (&["--command", "nope", "hi"], "agent.no_command", 1),
        (&["--command", "lost", "hi"], "agent.no_agent", 1),
        (&["--command", "far", "hi"], "model.unknown_model", 1),
        (&["--agent", "odd", "hi"], "model.unknown_model", 1),
        (&["-s", "ses_nope", "hi"], "agent.no_session", 1),
        (&["-f", "nowhere.txt", "--", "hi"], "agent.attachment", 1),
    ] {
        let done = world
            .run(&[&["--format", "json"], args].concat())
            .exited(exit);
        let lines = done.lines();
        assert_eq!(lines.len(), 1, "{args:?}: {}", done.stdout);
        assert_eq!(
            (&lines[0]["type"], &lines[0]["error"]["data"]["code"]),
            (&json!("error"), &json!(code)),
            "{args:?}: {}",
            done.stdout
        );
        assert!(
            done.stderr
                .contains(lines[0]["error"]["data"]["message"].as_str().unwrap()),
            "people see it, too: {}",
            done.stderr
        );
    }
    assert_eq!(world.cli(&["session", "list"]).ok().stdout, "");
    world.file("opencode.json", "{");
    let broken = world.run(&["--format", "json", "hi"]).exited(2);
    assert_eq!(broken.lines()[0]["error"]["data"]["code"], "config.syntax");
    assert_eq!(world.mock.all_requests().len(), 0);
}

#[test]
fn an_empty_answer_is_reported() {
    let empty = json!({ "text": "" });
    let world = World::new([
        empty.clone(),
        turn([call("read", json!({ "filePath": "hello.txt" }))]),
        empty,
    ]);
    for args in [&["hi"][..], &["-c", "again"]] {
        let done = world.run(args).ok();
        assert_eq!(done.stdout, "");
        assert!(
            done.stderr.ends_with("! the model gave no answer\n"),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn start_and_result_apart_on_request() {
    let world = World::new([
        turn([call(
            "bash",
            json!({ "command": "echo one", "description": "x" }),
        )]),
        done(),
    ]);
    let done = world.run(&["--no-merge", "go"]).ok();
    insta::assert_snapshot!(done.stderr.trim(), @r#"
    > build · m1

    ▸ bash {"command":"echo one","description":"x"}
    ◂ bash
    one
    "#);
}

/// Nothing reads the output while the turn runs: meanwhile more is published than a listener's backlog
/// holds.
#[test]
fn a_slow_reader_misses_nothing() {
    let long = |word: &str| word.repeat(16 * 1024);
    let read = call("read", json!({ "filePath": "hello.txt" }));
    let both = |text: String| json!({ "text": text, "tools": [read] });
    let world = World::new([
        both(long("first ")),
        both(long("second ")),
        both(long("third ")),
        done(),
    ]);
    world.config(json!({ "permission": { "doom_loop": "allow" } }));
    let mut command = world.command(&["run", "--title", "x", "go"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    assert!(wait_until(WAIT_TIMEOUT, || world.mock.requests().len() == 4));
    std::thread::sleep(Duration::from_millis(300));
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let wants = [
        long("first "),
        long("second "),
        long("third "),
        "All done.".to_owned(),
    ]
    .map(|text| text.trim().to_owned() + "\n");
    assert!(
        stdout == wants.concat(),
        "{} bytes of {}",
        stdout.len(),
        wants.concat().len()
    );
}
