//! Every fault of the misbehaving plugin in a real turn (issue 4, item 11): a prompt, a request with a tool of ours and the
//! plugin's own, another request; beside it a plugin that does nothing wrong. A line says how the turn ended and whom
//! standard error and the log of the session name. What holds for every line is asserted: the turn finished, the good
//! plugin's effects are there, the log replays, and no process is left. What each fault looks like at all places, and what is
//! logged of it, stands in `misbehaving.rs` of outrigger-plugins.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::*;

const BAD: &str = include_str!("../../../outrigger-plugins/tests/it/misbehaving.mjs");
const GOOD: &str = "
export const Good = async () => ({
  'chat.message': async (_, o) => { o.parts[0].text += ' (good)' },
  'tool.execute.after': async (_, o) => { o.output += ' (good, too)' },
})";
const HOOKS: [&str; 3] = [
    "experimental.chat.system.transform",
    "chat.params",
    "tool.execute.before",
];
/// Within which a process has to be gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// The deadlines of these worlds, and a restart (A7), five times, for each of the calls of a turn.
const TURN: Duration = Duration::from_secs(60);

fn world(fault: &str, place: &str) -> World {
    let tools = [
        call(
            "bash",
            json!({ "command": "echo ran >> ran.txt", "description": "x" }),
        ),
        call("act", json!({})),
    ];
    let world = World::with(Mock::new([turn(tools), done()]).by_results());
    world.packages();
    let bad = world.root().join("bad.mjs");
    std::fs::write(&bad, BAD).unwrap();
    let url = format!("file://{}", bad.display());
    world.config(json!({ "plugin": [[url, { "fault": fault, "where": place }]] }));
    world.plugin("good", GOOD);
    world.settings(settings(fault));
    // Its own: a project does not limit tools.
    let limit = if works(fault) { 10_000 } else { 1500 };
    let limit = format!("[tool_limits.act]\ntimeout_ms = {limit}\n");
    let user = world.home().join(".config/outrigger");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("outrigger.toml"), limit).unwrap();
    world
}

/// Does work that takes its time, and does not hang.
fn works(fault: &str) -> bool {
    matches!(fault, "stdout" | "stderr" | "huge" | "large" | "requests")
        || fault.starts_with("allocates")
}

fn settings(fault: &str) -> &'static str {
    if fault.starts_with("allocates") {
        "[deadlines]\nnormal_ms = 10000\n[limits]\nplugin_memory_mb = 700\n"
    } else if works(fault) {
        "[deadlines]\nnormal_ms = 10000\n"
    } else {
        "[deadlines]\nnormal_ms = 700\nload_ms = 2500\n"
    }
}

/// A runtime that tells a wrong version of the protocol the next time that it is started for `bad` once there is a file `lie`.
fn liar(world: &World) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let hello = r#"{"jsonrpc":"2.0","method":"hello","params":{"protocol":"9.0","features":[],"runtime":"bun","version":"1.3.0"}}"#;
    let source = format!(
        "import {{ writeSync }} from 'node:fs'\nconst body = Buffer.from('{hello}')\nconst head = Buffer.alloc(4)\nhead.writeUInt32BE(body.length)\nwriteSync(3, Buffer.concat([head, body]))\nsetInterval(() => {{}}, 1000)\n"
    );
    let script = world.root().join("liar.mjs");
    std::fs::write(&script, source).unwrap();
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in */bad/*) if mv '{mark}' '{mark}.told' 2>/dev/null; then exec '{bun}' '{script}'; fi;; esac\nexec '{bun}' \"$@\"\n",
        mark = world.path("lie").display(),
        bun = bun().unwrap().display(),
        script = script.display(),
    );
    let runtime = world.root().join("bun");
    std::fs::write(&runtime, text).unwrap();
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o755)).unwrap();
    runtime
}

/// Whether a process runs whose environment names this world.
fn runs(world: &World) -> bool {
    let root = world.root().display().to_string();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("environ")).ok())
        .any(|environ| String::from_utf8_lossy(&environ).contains(&root))
}

/// Whom standard error names.
fn named(stderr: &str) -> &'static str {
    let has = |word: &str| stderr.contains(word);
    if has("plugin bad") || has("bad (") || has("of bad:") {
        "bad"
    } else if has("[plugin:bad]") {
        "the process of bad"
    } else if has("[plugin:shared]") || has("process shared") {
        "the process of both"
    } else {
        "nobody"
    }
}

/// Outcomes of the calls of `bad` that were not well, as the session's log has them.
fn recorded(world: &World) -> String {
    let records = world.cli(&["plugin", "trace", "--json"]).ok().json();
    let mut outcomes: Vec<String> = Vec::new();
    for record in records.as_array().into_iter().flatten() {
        let text = |key: &str| record[key].as_str().unwrap_or_default();
        assert!(
            text("plugin") != "good" || matches!(text("outcome"), "ok" | "lost"),
            "{record}"
        );
        let outcome = text("outcome").to_owned();
        if text("plugin") == "bad" && outcome != "ok" && !outcomes.contains(&outcome) {
            outcomes.push(outcome);
        }
    }
    outcomes.sort();
    outcomes.join(" ")
}

fn line(fault: &str, place: &str) -> String {
    let world = world(fault, place);
    let mut command = world.command(&["run", "hi"]);
    if fault == "wrong_version" {
        // The box lets a process execute its runtime, and not what that stands for.
        command.env("OUTRIGGER_SANDBOX", "off");
        command.env("OUTRIGGER_BUN", liar(&world));
    }
    let began = Instant::now();
    let run = world.start(command).end();
    let took = began.elapsed();
    let what = format!("{fault} at {place}: {}", run.stderr);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "All done.\n"),
        "{what}"
    );
    assert!(took < TURN, "{what}: {took:?}");
    // Other sessions may have asked, too.
    let asked = world.mock.requests().into_iter();
    let asked = asked.filter(|asked| asked.texts("user").concat().contains("hi (good)"));
    let results = asked
        .last()
        .map(|asked| asked.texts("tool"))
        .unwrap_or_default();
    assert_eq!(results.len(), 2, "{what}: {results:?}");
    // A throw of `bad` before a tool is a refusal.
    let ran = world.path("ran.txt").exists();
    assert_eq!(
        results
            .iter()
            .any(|result| result.contains("(no output) (good, too)")),
        ran,
        "{what}: {results:?}"
    );
    let gone = wait_until(PATIENCE, || !runs(&world));
    assert!(gone, "{what}: a process is left");
    world.verify();
    let tool = if ran { "" } else { ", the tool was refused" };
    let recorded = recorded(&world);
    let recorded = if recorded.is_empty() {
        recorded
    } else {
        format!(" ({recorded})")
    };
    let said = run.stderr.chars().take(3000).collect::<String>();
    eprintln!("{fault} at {place}: {took:?} {said}");
    format!("finished{tool}; named: {}{recorded}", named(&run.stderr))
}

/// A hook for each fault in turn, and the places that are named with it.
fn table(faults: &[&str]) -> String {
    let mut out = String::new();
    for (number, fault) in faults.iter().enumerate() {
        let (fault, more) = fault.split_once(' ').unwrap_or((fault, ""));
        let hook = HOOKS[number % HOOKS.len()];
        for place in std::iter::once(hook).chain(more.split_whitespace()) {
            let name = place.rsplit('.').next().unwrap();
            let name = if place == HOOKS[0] { "system" } else { name };
            let _ = writeln!(out, "{fault} at {name}: {}", line(fault, place));
        }
    }
    out
}

#[test]
fn hangs() {
    let told = table(&[
        "never tool load",
        "spin tool load",
        "second tool",
        "spin_in_timer tool",
        "spin_later",
        "reads_nothing",
        "half_a_frame tool load",
    ]);
    insta::assert_snapshot!(told, @"");
}

#[test]
fn ends() {
    let told = table(&[
        "exit0",
        "exit1 tool load",
        "kill tool load",
        "abort",
        "exit_in_timer tool load",
        "forks_and_exits tool",
        "closes tool",
        "dispose_never tool",
        "dispose_spins load",
    ]);
    insta::assert_snapshot!(told, @"");
}

#[test]
fn throws_and_values() {
    let told = table(&[
        "throw_text",
        "throw_error tool load",
        "throw_undefined tool",
        "throw_cycle",
        "reject_late",
        "unhandled tool",
        "throw_in_timer",
        "cycle tool",
        "bigint",
        "nan",
        "surrogate tool",
        "deletes load",
        "types load",
        "nulls load",
        "input",
        "later",
        "freezes",
        "getter load",
    ]);
    insta::assert_snapshot!(told, @"");
}

#[test]
fn floods() {
    let told = table(&[
        "stdout load",
        "stderr tool",
        "files",
        "huge",
        "large tool",
        "deep",
        "requests tool",
        "allocates",
        "allocates_objects tool",
    ]);
    insta::assert_snapshot!(told, @"");
}

#[test]
fn lies() {
    let told = table(&[
        "protocol_lines",
        "answers_another",
        "answers_early",
        "answers_twice",
        "answers_again tool",
        "answers_for_another tool",
        "not_json tool load",
        "not_utf8",
        "too_large",
        "hello_again load",
    ]);
    insta::assert_snapshot!(told, @"");
}

/// Its hook, its tool or its start prompts a session, whose turn comes by there again: the first deadline ends them all.
#[test]
fn what_triggers_itself_through_the_client() {
    let mut out = String::new();
    for place in [
        "chat.params",
        "experimental.chat.system.transform",
        "tool.execute.before",
        "tool",
        "load",
    ] {
        let told = line("recursive", place);
        let _ = writeln!(out, "{place}: {told}");
    }
    insta::assert_snapshot!(out, @"");
}

#[test]
fn a_process_of_another_version_of_the_protocol() {
    if bun_or_skip().is_some() {
        insta::assert_snapshot!(table(&["wrong_version tool"]), @"");
    }
}

/// A terminal sends Ctrl-C to every process of the foreground. The plugin's process takes it and stays, wherever it is.
#[test]
fn ctrl_c_while_the_plugin_takes_signals_for_itself() {
    for place in HOOKS.iter().copied().chain(["tool", "load"]) {
        let world = world("signals", place);
        world.settings("[deadlines]\nnormal_ms = 60000\nload_ms = 60000\n");
        let running = world.start(world.command(&["run", "hi"]));
        let pid = || world.read("pid.txt").trim().parse::<u32>().ok();
        assert!(
            wait_until(PATIENCE, || pid().is_some()),
            "{place}: {}",
            running.stderr()
        );
        let plugin = pid().unwrap();
        let number = Pid::from_raw(i32::try_from(plugin).unwrap()).unwrap();
        kill_process(number, Signal::INT).unwrap();
        let began = Instant::now();
        running.signal(Signal::INT);
        running.end().exited(130);
        // 2 s to dispose, five times.
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{place}: {:?}",
            began.elapsed()
        );
        assert!(
            wait_until(PATIENCE, || !alive(plugin) && !runs(&world)),
            "{place}"
        );
        world.verify();
    }
}
