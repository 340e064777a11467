//! The first Ctrl-C cancels the turn and keeps everything, the second exits; SIGTERM cancels too and leaves no
//! process behind.

use rustix::process::Signal;
use serde_json::json;

use crate::support::*;

#[test]
fn a_cancelled_tool_is_gone_and_the_session_goes_on() {
    let command = "N=$(readlink /proc/self/ns/pid | tr -dc 0-9); echo $N >> pids.txt; sleep 322 & echo $N >> pids.txt; wait";
    let world = World::new([
        turn([call(
            "bash",
            json!({ "command": command, "description": "waits" }),
        )]),
        done(),
    ]);
    let running = world.start(world.command(&["run", "wait"]));
    assert!(
        wait_until(WAIT_TIMEOUT, || world.lines("pids.txt").len() == 2),
        "{}",
        running.stderr()
    );
    running.signal(Signal::INT);
    let ended = running.end().exited(130);
    assert!(ended.stderr.contains("cancelling"), "{}", ended.stderr);
    let pids: Vec<u32> = world
        .lines("pids.txt")
        .iter()
        .filter_map(|pid| pid.parse().ok())
        .collect();
    assert!(
        gone(&pids),
        "the tool's processes are gone when the run is over"
    );
    let state = &world.parts("tool")[0]["state"];
    insta::assert_snapshot!(format!("{}: {}", state["status"], state["error"]), @r#""error": "Tool execution aborted""#);
    assert_eq!(world.run(&["-c", "go on"]).ok().stdout, "All done.\n");
    assert_eq!(
        world.mock.last().texts("tool").len(),
        1,
        "the cancelled call has its result"
    );
    world.verify();
}

// For how much of the answer is kept, see `turns::an_abort_ends_what_waits_too` of `outrigger-server`.
#[test]
fn a_cancelled_answer_is_an_error_of_the_run() {
    let world = World::new([json!({ "text": "not all of it", "stall": 3 })]);
    let running = world.start(world.command(&["run", "--format", "json", "--title", "x", "talk"]));
    assert!(wait_until(WAIT_TIMEOUT, || !world
        .mock
        .requests()
        .is_empty()));
    running.signal(Signal::INT);
    let ended = running.end().exited(130);
    let errors: Vec<_> = ended
        .lines()
        .into_iter()
        .filter(|line| line["type"] == "error")
        .collect();
    assert_eq!(errors[0]["error"]["name"], "MessageAbortedError");
    world.verify();
}

const SLOW: &str = "
import fs from 'node:fs'
export const Slow = async ({ directory }) => ({
  tool: { wait: { description: 'waits', args: {}, execute: (_, { abort }) => new Promise((_, reject) => {
    fs.writeFileSync(directory + '/began.txt', '')
    abort.addEventListener('abort', () => { fs.writeFileSync(directory + '/aborted.txt', ''); reject(new Error('aborted')) })
  }) } },
  dispose: () => new Promise((done) => setTimeout(() => { fs.writeFileSync(directory + '/disposed.txt', ''); done() }, 1500)),
})";

#[test]
fn a_plugin_is_notified_of_the_cancel() {
    let world = World::new([turn([call("wait", json!({}))]), done()]);
    world.plugin("slow", SLOW);
    let running = world.start(world.command(&["run", "wait"]));
    assert!(
        wait_until(WAIT_TIMEOUT, || world.path("began.txt").exists()),
        "{}",
        running.stderr()
    );
    running.signal(Signal::INT);
    assert!(
        wait_until(WAIT_TIMEOUT, || world.path("aborted.txt").exists()),
        "{}",
        running.stderr()
    );
    running.end().exited(130);
    assert!(
        world.path("disposed.txt").exists(),
        "one Ctrl-C lets plugins finish"
    );
    world.verify();
}

#[test]
fn twice_leaves_at_once() {
    let world = World::new([turn([call("wait", json!({}))]), done()]);
    world.plugin("slow", SLOW);
    let running = world.start(world.command(&["run", "wait"]));
    assert!(
        wait_until(WAIT_TIMEOUT, || world.path("began.txt").exists()),
        "{}",
        running.stderr()
    );
    running.signal(Signal::INT);
    assert!(
        wait_until(WAIT_TIMEOUT, || world.path("aborted.txt").exists()),
        "{}",
        running.stderr()
    );
    running.signal(Signal::INT);
    running.end().exited(130);
    assert!(
        !world.path("disposed.txt").exists(),
        "the second one waits for nothing"
    );
    world.verify();
}

#[test]
fn sigterm_leaves_no_process_behind() {
    let world = World::with(Mock::new([turn([call("wait", json!({}))]), done()]).by_results());
    world.plugin(
        "slow",
        &SLOW.replace(
            "fs.writeFileSync(directory + '/began.txt', '')",
            "fs.writeFileSync(directory + '/began.txt', fs.readlinkSync('/proc/self/ns/pid').replace(/[^0-9]/g, ''))",
        ),
    );
    let running = world.start(world.command(&["run", "wait"]));
    let pid = || world.read("began.txt").parse::<u32>().ok();
    assert!(
        wait_until(WAIT_TIMEOUT, || pid().is_some()),
        "{}",
        running.stderr()
    );
    running.signal(Signal::TERM);
    running.end().exited(143);
    assert!(wait_until(WAIT_TIMEOUT, || !alive(pid().unwrap())));
    assert_eq!(world.run(&["-c", "go on"]).ok().stdout, "All done.\n");
    world.verify();
}
