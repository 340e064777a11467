//! A session that was interrupted, or is in use by another process.

use std::fs::File;

use serde_json::json;

use crate::support::*;

/// Sets up a session whose turn was killed after its tool had run.
fn interrupted(turns: impl IntoIterator<Item = serde_json::Value>) -> World {
    let read = turn([call("read", json!({ "filePath": "hello.txt" }))]);
    let world = World::new([read].into_iter().chain(turns));
    world.config(json!({ "command": { "greet": { "template": "Say hello to $ARGUMENTS" } } }));
    world
        .run_with(&[("OUTRIGGER_FAULT", "tool.after_run")], &["start"])
        .exited(137);
    world
}

#[test]
fn what_was_given_goes_out_after_the_turn_that_is_gone_on_with() {
    for (args, want) in [
        (
            &["-c", "--command", "greet", "world"][..],
            "Say hello to world",
        ),
        (&["-c", "--command", "greet"][..], "Say hello to"),
        (&["-c", "-f", "hello.txt"][..], "hi there"),
        (&["-c", "and then"][..], "and then"),
    ] {
        let world = interrupted([done(), text("And that.")]);
        let ran = world.run(args).ok();
        assert_eq!(
            ran.stdout, "All done.\nAnd that.\n",
            "{args:?}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("going on with the turn"),
            "{}",
            ran.stderr
        );
        let sent = world.mock.last().texts("user").join("\n");
        assert!(sent.contains(want), "{args:?}: {sent}");
        world.verify();
    }
    let world = interrupted([done()]);
    assert_eq!(world.run(&["-c"]).ok().stdout, "All done.\n");
    assert_eq!(
        world.mock.requests().len(),
        2,
        "with nothing to say it is gone on with, and that is all"
    );
}

#[test]
fn what_could_not_be_sent_is_named() {
    let world = interrupted([json!({ "status": 400, "error": "no" }), done()]);
    let ran = world
        .run(&[
            "-c",
            "-f",
            "hello.txt",
            "--command",
            "greet",
            "my",
            "friend",
        ])
        .exited(1);
    let lines: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.contains("not sent"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"! the turn that was interrupted did not complete; not sent: --command greet, "my friend", --file hello.txt"#);
    assert_eq!(world.mock.requests().len(), 2);
}

fn busy() -> (World, Running, String) {
    let world = World::new([json!({ "text": "Wait for it", "stall": 2 }), done()]);
    let running = world.start(world.command(&["run", "wait"]));
    assert!(
        wait_until(WAIT_TIMEOUT, || !world.mock.requests().is_empty()),
        "{}",
        running.stderr()
    );
    let sessions = world.cli(&["session", "list", "--json"]).ok().json();
    let id = sessions[0]["id"].as_str().unwrap().to_owned();
    (world, running, id)
}

#[test]
fn a_session_at_work_elsewhere_is_left_alone() {
    let (world, running, id) = busy();
    for args in [
        &["-s", &id, "hi"][..],
        &["-s", &id],
        &["-c", "--command", "init"],
    ] {
        let refused = world.run(args).exited(1);
        assert!(
            refused.stderr.contains("[agent.busy]"),
            "{}",
            refused.stderr
        );
        assert!(!refused.stderr.contains("going on"), "{}", refused.stderr);
    }
    let refused = world.cli(&["session", "delete", &id]).exited(1);
    assert!(
        refused.stderr.contains("[agent.busy]"),
        "{}",
        refused.stderr
    );
    running.signal(rustix::process::Signal::INT);
    running.end().exited(130);
    world.cli(&["session", "delete", &id]).ok();
}

#[test]
fn a_session_whose_program_is_gone_can_be_deleted() {
    let world = interrupted([done()]);
    let id = world.export()["info"]["id"].as_str().unwrap().to_owned();
    world.cli(&["session", "delete", &id]).ok();
    assert_eq!(world.cli(&["session", "list"]).ok().stdout, "");
    world.verify();
}

#[test]
fn a_subagent_at_work_keeps_the_whole_tree() {
    let task = call(
        "task",
        json!({ "description": "look", "prompt": "look around", "subagent_type": "general" }),
    );
    let world = World::new([turn([task]), done()]);
    world.run(&["go"]).ok();
    let id = world.export()["info"]["id"].as_str().unwrap().to_owned();
    let child = world.parts("tool")[0]["state"]["metadata"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    // Another process would hold it like this.
    let lock = File::options()
        .create(true)
        .append(true)
        .open(
            world
                .store()
                .with_file_name("locks")
                .join(format!("{child}.lock")),
        )
        .unwrap();
    lock.try_lock().unwrap();
    let refused = world.cli(&["session", "delete", &id]).exited(1);
    assert!(
        refused.stderr.contains(&child) && refused.stderr.contains("[agent.busy]"),
        "{}",
        refused.stderr
    );
    assert!(
        world.cli(&["session", "list"]).ok().stdout.contains(&id),
        "nothing of it is gone"
    );
    drop(lock);
    world.cli(&["session", "delete", &id]).ok();
    assert_eq!(world.cli(&["session", "list"]).ok().stdout, "");
}
