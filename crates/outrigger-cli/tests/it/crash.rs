//! After a SIGKILL at any named point of a turn, the next `run -c` continues to the end and repeats nothing that was done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::support::*;

/// The exit code that a shell reports after SIGKILL: 128 + 9.
const KILLED: i32 = 137;
/// The result that the model reads for a call with an unknown outcome.
const UNKNOWN: &str = "interrupted, outcome unknown";

/// Sets up a turn with a read-only tool and one that changes something.
fn world() -> World {
    let effect = json!({ "command": "echo did >> effects.txt", "description": "leaves a trace" });
    let turns = [
        turn([call("read", json!({ "filePath": "hello.txt" }))]),
        turn([call("bash", effect)]),
        done(),
    ];
    World::with(Mock::new(turns).by_results())
}

/// Kills a run at the n-th pass of a point and resumes it. Returns false if the run never reached it.
fn kill_and_go_on(world: &World, options: &[&str], point: &str, n: usize) -> bool {
    let what = format!("{point}:{n}");
    let killed = world.run_with(
        &[("OUTRIGGER_FAULT", &what)],
        &[options, &["do", "it"]].concat(),
    );
    if killed.code == 0 {
        return false;
    }
    killed.exited(KILLED);
    let resumed = world.run(&[options, &["-c"]].concat());
    match resumed.code {
        0 => {}
        // Killed before the turn was stored or after its last step: nothing is left to resume, and the error says so.
        2 => {
            assert!(
                resumed.stderr.contains("nothing to say"),
                "{what}: {}",
                resumed.stderr
            );
            if world.mock.requests().is_empty() {
                world.run(&[options, &["do", "it"]].concat()).ok();
            }
        }
        code => panic!("{what}: {code}\n{}", resumed.stderr),
    }
    check(world, &what);
    true
}

/// Checks that the turn completed, no call was lost or doubled, and the command ran at most once.
fn check(world: &World, what: &str) {
    let texts = world.parts("text");
    assert_eq!(
        texts.last().map(|p| &p["text"]),
        Some(&json!("All done.")),
        "{what}: {texts:?}"
    );
    let last = world.mock.last();
    let results = last.texts("tool");
    assert_eq!(results.len(), 2, "{what}: {results:?}");
    let ran = world.lines("effects.txt").len();
    let in_flight = results[1].contains(UNKNOWN);
    assert!(
        if in_flight { ran <= 1 } else { ran == 1 },
        "{what}: ran {ran} times, the model got {:?}",
        results[1]
    );
    assert!(
        results[0].contains("hi there"),
        "{what}: a tool that changes nothing is run again: {:?}",
        results[0]
    );
    for request in world.mock.requests() {
        let (calls, answers) = request.call_ids();
        assert_eq!(calls, answers, "{what}: every call has its one result");
        assert_eq!(
            calls.iter().collect::<BTreeSet<_>>().len(),
            calls.len(),
            "{what}: {calls:?}"
        );
    }
    world.verify();
}

/// Kills at the passes `from`, `from + step`, … until a run is no longer killed. Fewer than `least` kills mean that the point
/// is dead.
fn sweep(point: &str, from: usize, step: usize, least: usize) {
    let mut kills = 0;
    let mut n = from;
    while kill_and_go_on(&world(), &["--pure"], point, n) {
        kills += 1;
        n += step;
    }
    assert!(kills >= least, "{point} was passed {kills} times");
}

#[test]
fn killed_before_a_step_is_stored() {
    sweep("turn.before_step", 1, 3, 8);
}

#[test]
fn killed_after_a_step_is_stored() {
    sweep("turn.after_step", 2, 3, 8);
}

#[test]
fn killed_before_a_commit() {
    sweep("store.before_commit", 3, 4, 6);
}

#[test]
fn killed_after_a_commit() {
    sweep("store.after_commit", 1, 4, 6);
}

#[test]
fn killed_before_a_model_call() {
    sweep("model.before_call", 1, 1, 3);
}

#[test]
fn killed_around_a_tool() {
    sweep("tool.before_run", 1, 1, 2);
    sweep("tool.after_run", 1, 1, 2);
}

#[test]
fn a_call_in_flight_is_reported_with_its_outcome_unknown() {
    for (point, ran) in [("tool.before_run", 0), ("tool.after_run", 1)] {
        let world = world();
        assert!(kill_and_go_on(&world, &["--pure"], point, 2));
        assert!(
            world.mock.last().texts("tool")[1].contains(UNKNOWN),
            "{point}"
        );
        assert_eq!(world.lines("effects.txt").len(), ran, "{point}");
        let shown = world.cli(&["session", "show"]).ok().stdout;
        assert!(shown.contains(UNKNOWN), "{shown}");
    }
}

/// Of two processes that want to resume the same turn, one does and the other gets an error.
#[test]
fn an_interrupted_turn_is_gone_on_with_once() {
    let world = world();
    world
        .run_with(
            &[("OUTRIGGER_FAULT", "turn.after_step:5")],
            &["--pure", "do it"],
        )
        .exited(KILLED);
    let both: Vec<_> = (0..2)
        .map(|_| world.start(world.command(&["run", "--pure", "-c"])))
        .collect();
    let codes: Vec<i32> = both.into_iter().map(|run| run.end().code).collect();
    // The second process arrives while the first is at work (1) or when nothing is left to do (2).
    assert!(
        codes.contains(&0) && codes.iter().all(|code| [0, 1, 2].contains(code)) && codes != [0, 0],
        "{codes:?}"
    );
    check(&world, "two at once");
}

#[test]
fn a_subagent_that_was_killed_is_reported_to_its_parent() {
    let task = call(
        "task",
        json!({ "description": "sub job", "prompt": "work", "subagent_type": "general" }),
    );
    let effect = call(
        "bash",
        json!({ "command": "echo did >> effects.txt", "description": "x" }),
    );
    let world = World::new([turn([task]), turn([effect]), done()]);
    world
        .run_with(
            &[("OUTRIGGER_FAULT", "tool.after_run:1")],
            &["--pure", "delegate"],
        )
        .exited(KILLED);
    assert_eq!(world.run(&["--pure", "-c"]).ok().stdout, "All done.\n");
    assert!(
        world.mock.last().texts("tool")[0].contains(UNKNOWN),
        "{:?}",
        world.mock.last().texts("tool")
    );
    assert_eq!(world.lines("effects.txt").len(), 1);
    world.verify();
}

const PID: &str = "
import fs from 'node:fs'
export const Pid = async ({ directory }) => {
  fs.appendFileSync(directory + '/pids.txt', fs.readlinkSync('/proc/self/ns/pid').replace(/[^0-9]/g, '') + '\\n')
  return {
    'chat.message': async () => fs.appendFileSync(directory + '/messages.txt', 'seen\\n'),
    'tool.execute.before': async () => {},
  }
}";

/// A hook that may have run is not run again.
#[test]
fn a_message_is_shown_to_plugins_once_however_often_the_host_dies() {
    for n in 1..=4 {
        let world = world();
        world.plugin("pid", PID);
        kill_and_go_on(&world, &[], "turn.after_step", n);
        let seen = world.lines("messages.txt").len();
        assert!(
            seen <= 1,
            "killed after step {n}, the message was shown {seen} times"
        );
    }
}

/// After SIGKILL no code of the host runs, so the kernel must end its plugins.
#[test]
fn plugin_processes_do_not_outlive_a_killed_host() {
    for point in [
        "model.before_call",
        "tool.before_run:2",
        "turn.after_step:4",
    ] {
        let world = world();
        world.plugin("pid", PID);
        world
            .run_with(&[("OUTRIGGER_FAULT", point)], &["do it"])
            .exited(KILLED);
        let pids: Vec<u32> = world
            .lines("pids.txt")
            .iter()
            .filter_map(|pid| pid.parse().ok())
            .collect();
        assert!(!pids.is_empty(), "{point}: the plugin was never loaded");
        assert!(gone(&pids), "{point}: {pids:?}");
        world.run(&["-c"]).ok();
        check(&world, point);
    }
}

/// A plugin with an endless timer and a tool's shell end with the host. The next start finds what the shell had started in
/// the dead host's ledger and ends it.
#[test]
fn nothing_outlives_a_host_killed_in_the_middle_of_a_tool() {
    let command = "N=$(readlink /proc/self/ns/pid | tr -dc 0-9); echo $N >> pids.txt; sleep 321 & echo $N >> pids.txt; wait";
    let turns = [
        turn([call(
            "bash",
            json!({ "command": command, "description": "waits" }),
        )]),
        done(),
    ];
    let world = World::with(Mock::new(turns).by_results());
    world.plugin(
        "pid",
        &PID.replace("return", "setInterval(() => {}, 1)\n  return"),
    );
    let running = world.start(world.command(&["run", "wait"]));
    assert!(
        wait_until(WAIT_TIMEOUT, || world.lines("pids.txt").len() == 3),
        "{}",
        running.stderr()
    );
    running.signal(Signal::KILL);
    running.end().exited(KILLED);
    let pids: Vec<u32> = world
        .lines("pids.txt")
        .iter()
        .filter_map(|pid| pid.parse().ok())
        .collect();
    let left = |pids: &[u32]| {
        pids.iter()
            .copied()
            .filter(|pid| alive(*pid))
            .collect::<Vec<_>>()
    };
    assert!(
        wait_until(WAIT_TIMEOUT, || left(&pids[..2]).is_empty()),
        "{pids:?}, left {:?}",
        left(&pids)
    );
    world.run(&["-c"]).ok();
    assert!(world.mock.last().texts("tool")[0].contains(UNKNOWN));
    assert!(
        wait_until(WAIT_TIMEOUT, || left(&pids).is_empty()),
        "{pids:?}, left {:?}",
        left(&pids)
    );
}

/// Returns the content of events whose content is stored.
fn stored_content(event: &serde_json::Value) -> Option<(String, serde_json::Value)> {
    let properties = &event["properties"];
    let (key, body) = match kind(event) {
        "message.updated" => ("info", &properties["info"]),
        "message.part.updated" => ("part", &properties["part"]),
        _ => return None,
    };
    let id = body["id"].as_str()?;
    Some((format!("{key} {id}"), body.clone()))
}

/// Fifty turns run and their server is killed. The next server must have everything that a client was notified of within a
/// second (five here, because the machine is shared).
#[test]
fn nothing_that_a_client_knows_is_lost_with_its_server() {
    const TURNS: usize = 50;
    let world = World::with(Mock::new([
        json!({ "text": "one two three four five six seven eight", "delay": 40, "tools": [call("read", json!({ "filePath": "hello.txt" }))] }),
    ]));
    let server = world.serve(&["--no-auth"]);
    let sessions: Vec<String> = (0..TURNS)
        .map(|n| {
            let session = server.post("/session", &json!({ "title": format!("turn {n}") }));
            session.json(200)["id"].as_str().unwrap().to_owned()
        })
        .collect();
    let mut events = server.events("/event");
    for session in &sessions {
        let prompt = json!({ "parts": [{ "type": "text", "text": "go on" }] });
        let path = format!("/session/{session}/prompt_async");
        assert_eq!(server.post(&path, &prompt).status, 204);
    }
    // The last known state of each message and part.
    let mut known = BTreeMap::new();
    let mut of_tools = 0;
    while of_tools < 2 * TURNS {
        let event = events.next().expect("turns are under way");
        of_tools += usize::from(event["properties"]["part"]["type"] == "tool");
        known.extend(stored_content(&event));
    }
    server.running.signal(Signal::KILL);
    // Events still in transit count as known, too.
    while let Some(event) = events.next() {
        known.extend(stored_content(&event));
    }
    server.running.end();
    let began = Instant::now();
    let server = world.serve(&["--no-auth"]);
    server.get("/global/health").json(200);
    let took = began.elapsed();
    let mut stored = BTreeMap::new();
    for session in &sessions {
        let messages = server.get(&format!("/session/{session}/message")).json(200);
        for message in messages.as_array().unwrap() {
            let parts = message["parts"].as_array().unwrap().iter();
            for (key, body) in parts
                .map(|part| ("part", part))
                .chain([("info", &message["info"])])
            {
                let id = body["id"].as_str().unwrap();
                stored.insert(format!("{key} {id}"), body.clone());
            }
        }
    }
    assert!(known.len() > 3 * TURNS, "{}", known.len());
    for (name, body) in &known {
        let stored = stored.get(name).unwrap_or_else(|| panic!("{name} is lost"));
        // The store may be ahead of the client for a call in progress.
        for field in ["role", "type", "text", "callID", "sessionID"] {
            let known = body.get(field).filter(|it| it.as_str() != Some(""));
            assert!(
                known.is_none() || known == stored.get(field),
                "{name}: {body} is {stored}"
            );
        }
    }
    println!("ready again after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}
