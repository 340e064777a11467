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

/// Faults of which it is chance whether the plugin is named or only its process: who is faster, the system or the watch that
/// looks once a second, or whose call a timer meets.
const CHANCE: [&str; 5] = [
    "spin_in_timer",
    "files",
    "allocates",
    "allocates_objects",
    "answers_again",
];

/// Whom standard error names.
fn named(stderr: &str) -> &'static str {
    let has = |word: &str| stderr.contains(word);
    if has("plugin bad") || has("bad (") || has("of bad:") {
        "bad"
    } else if has("[plugin:bad]") || has("[plugin:shared]") || has("process shared") {
        "its process"
    } else {
        "nobody"
    }
}

/// Whether the session's log has calls of `bad` that were not well; those of `good` were, or were lost with a shared process,
/// or were not wanted any more.
fn recorded(world: &World) -> bool {
    let records = world.cli(&["plugin", "trace", "--json"]).ok().json();
    let mut found = false;
    for record in records.as_array().into_iter().flatten() {
        let text = |key: &str| record[key].as_str().unwrap_or_default();
        if text("plugin") == "bad" {
            found |= text("outcome") != "ok";
        } else {
            let well = matches!(text("outcome"), "ok" | "lost" | "skipped");
            assert!(well, "{record}");
        }
    }
    found
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
    let mut asked = asked.filter(|asked| asked.texts("user").concat().contains("hi (good)"));
    let results = asked
        .next_back()
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
    // While it loads, the flood may be over before its plugin is asked anything.
    let chance = CHANCE.contains(&fault) || (fault == "stdout" && place == "load");
    let named = if chance {
        "by chance"
    } else {
        named(&run.stderr)
    };
    let recorded = if recorded(&world) { ", recorded" } else { "" };
    let said = run.stderr.chars().take(3000).collect::<String>();
    eprintln!("{fault} at {place}: {took:?} {said}");
    format!("finished{tool}; named: {named}{recorded}")
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
        "second",
        "spin_in_timer tool",
        "spin_later",
        "reads_nothing",
        "half_a_frame tool load",
    ]);
    insta::assert_snapshot!(told, @r"
    never at system: finished; named: bad, recorded
    never at tool: finished; named: bad
    never at load: finished; named: bad
    spin at params: finished; named: bad, recorded
    spin at tool: finished; named: bad
    spin at load: finished; named: bad
    second at before: finished; named: bad, recorded
    spin_in_timer at system: finished; named: by chance, recorded
    spin_in_timer at tool: finished; named: by chance
    spin_later at params: finished; named: nobody
    reads_nothing at before: finished; named: bad, recorded
    half_a_frame at system: finished; named: bad, recorded
    half_a_frame at tool: finished; named: bad
    half_a_frame at load: finished; named: bad
    ");
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
    insta::assert_snapshot!(told, @r"
    exit0 at system: finished; named: bad, recorded
    exit1 at params: finished; named: bad, recorded
    exit1 at tool: finished; named: bad
    exit1 at load: finished; named: bad
    kill at before: finished; named: bad, recorded
    kill at tool: finished; named: bad
    kill at load: finished; named: bad
    abort at system: finished; named: bad, recorded
    exit_in_timer at params: finished; named: bad, recorded
    exit_in_timer at tool: finished; named: bad
    exit_in_timer at load: finished; named: bad
    forks_and_exits at before: finished; named: bad, recorded
    forks_and_exits at tool: finished; named: bad
    closes at system: finished; named: bad, recorded
    closes at tool: finished; named: bad
    dispose_never at params: finished; named: bad
    dispose_never at tool: finished; named: bad
    dispose_spins at before: finished; named: bad
    dispose_spins at load: finished; named: bad
    ");
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
    insta::assert_snapshot!(told, @r"
    throw_text at system: finished; named: bad, recorded
    throw_error at params: finished; named: bad, recorded
    throw_error at tool: finished; named: nobody
    throw_error at load: finished; named: bad
    throw_undefined at before: finished, the tool was refused; named: nobody, recorded
    throw_undefined at tool: finished; named: nobody
    throw_cycle at system: finished; named: bad, recorded
    reject_late at params: finished; named: bad, recorded
    unhandled at before: finished; named: its process
    unhandled at tool: finished; named: its process
    throw_in_timer at system: finished; named: its process
    cycle at params: finished; named: bad, recorded
    cycle at tool: finished; named: nobody
    bigint at before: finished, the tool was refused; named: nobody, recorded
    nan at system: finished; named: nobody
    surrogate at params: finished; named: nobody
    surrogate at tool: finished; named: nobody
    deletes at before: finished; named: bad
    deletes at load: finished; named: nobody
    types at system: finished; named: bad
    types at load: finished; named: nobody
    nulls at params: finished; named: bad
    nulls at load: finished; named: nobody
    input at before: finished; named: nobody
    later at system: finished; named: nobody
    freezes at params: finished; named: nobody
    getter at before: finished, the tool was refused; named: nobody, recorded
    getter at load: finished; named: bad
    ");
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
    insta::assert_snapshot!(told, @r"
    stdout at system: finished; named: its process
    stdout at load: finished; named: by chance
    stderr at params: finished; named: its process
    stderr at tool: finished; named: its process
    files at before: finished; named: by chance
    huge at system: finished; named: bad, recorded
    large at params: finished; named: nobody
    large at tool: finished; named: nobody
    deep at before: finished, the tool was refused; named: nobody, recorded
    requests at system: finished; named: nobody
    requests at tool: finished; named: nobody
    allocates at params: finished; named: by chance, recorded
    allocates_objects at before: finished; named: by chance, recorded
    allocates_objects at tool: finished; named: by chance
    ");
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
    insta::assert_snapshot!(told, @r"
    protocol_lines at system: finished; named: its process
    answers_another at params: finished; named: nobody
    answers_early at before: finished; named: bad, recorded
    answers_twice at system: finished; named: its process
    answers_again at params: finished; named: by chance
    answers_again at tool: finished; named: by chance
    answers_for_another at before: finished; named: bad, recorded
    answers_for_another at tool: finished; named: bad
    not_json at system: finished; named: bad, recorded
    not_json at tool: finished; named: bad
    not_json at load: finished; named: bad
    not_utf8 at params: finished; named: bad, recorded
    too_large at before: finished; named: bad, recorded
    hello_again at system: finished; named: nobody
    hello_again at load: finished; named: nobody
    ");
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
        // Which of the many calls is the one that is too late is chance, and so is whether its turn is the one shown.
        let told = line("recursive", place).replace(", recorded", "");
        let _ = writeln!(out, "{place}: {told}");
    }
    insta::assert_snapshot!(out, @r"
    chat.params: finished; named: bad
    experimental.chat.system.transform: finished; named: bad
    tool.execute.before: finished; named: bad
    tool: finished; named: nobody
    load: finished; named: nobody
    ");
}

#[test]
fn a_process_of_another_version_of_the_protocol() {
    if bun_or_skip().is_some() {
        insta::assert_snapshot!(table(&["wrong_version tool"]), @r"
        wrong_version at system: finished; named: bad, recorded
        wrong_version at tool: finished; named: bad
        ");
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
