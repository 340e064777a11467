//! The misbehaving plugin in real turns: a prompt, a request with one of our tools and the plugin's own, another request, next to a
//! well-behaved plugin. A row records how the turn ended and which plugins standard error and the session's log name. Each row must hold:
//! the turn finished, the good plugin's effects exist, the log replays, and no process is left.
//!
//! For the cost of each fault at each place, see `misbehaving.rs` of outrigger-plugins. A turn sees of a fault only how its call ended,
//! what it left and its effect on others. Here is a fault for each of these (`IN_TURNS` there ensures it), at a hook, in the tool and while
//! the plugin loads.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use outrigger_test_support::misbehaving::{HOOKS, SOURCE, is_hang, liar, short};
use outrigger_test_support::process::runs_with;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::*;
use crate::user_grants::granting;

const GOOD: &str = "
export const Good = async () => ({
  'chat.message': async (_, o) => { o.parts[0].text += ' (good)' },
  'tool.execute.after': async (_, o) => { o.output += ' (good, too)' },
})";
/// The deadlines of these worlds, and a restart (A7), five times, for each call of a turn.
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
    std::fs::write(&bad, SOURCE).unwrap();
    let url = format!("file://{}", bad.display());
    world.config(json!({ "plugin": [[url, { "fault": fault, "where": place }]] }));
    world.plugin("good", GOOD);
    // The user's own setting: a project neither limits tools nor extends deadlines.
    let limit = if is_hang(fault) { 1500 } else { 60_000 };
    granting(&world, &(tool_limit(limit) + settings(fault)));
    world
}

fn tool_limit(milliseconds: u64) -> String {
    format!("[tool_limits.act]\ntimeout_ms = {milliseconds}\n")
}

fn settings(fault: &str) -> &'static str {
    if fault.starts_with("allocates") {
        "[limits]\nplugin_memory_mb = 700\n"
    } else if fault == "second" {
        // Its first call must be answered.
        "[deadlines]\nnormal_ms = 3000\nload_ms = 3000\n[plugins.good]\ntimeout_ms = 60000\n"
    } else if is_hang(fault) {
        "[deadlines]\nnormal_ms = 700\nload_ms = 3000\n[plugins.good]\ntimeout_ms = 60000\n"
    } else {
        ""
    }
}

/// Checks whether a process of this world is running.
fn runs(world: &World) -> bool {
    runs_with(&world.root().display().to_string())
}

/// Faults that are races: between the system and the watch that checks once a second, or in which call a timer fires. Standard error names
/// the plugin or its process; the audit has the cost, but not whether the deadline or the end of the process came first.
const RACES: [&str; 4] = [
    "spin_in_timer",
    "allocates",
    "allocates_objects",
    "wrong_version",
];
/// Faults that hit one call or none, by chance: at most the process is restarted.
const HARMLESS: [&str; 3] = ["files", "answers_twice", "spin_later"];

/// Returns which plugins standard error names.
fn named(stderr: &str, fault: &str) -> &'static str {
    // Slow disposal on a busy machine is not an error, unless the fault is a hang.
    let hangs = is_hang(fault) || fault.starts_with("dispose");
    let lines: Vec<&str> = stderr
        .lines()
        .filter(|line| hangs || !line.contains("its dispose"))
        .collect();
    let has = |word: &str| lines.iter().any(|line| line.contains(word));
    if has("plugin bad") || has("bad (") || has("of bad:") {
        "bad"
    } else if has("[plugin:bad]") || has("[plugin:shared]") || has("process shared") {
        "its process"
    } else {
        "nobody"
    }
}

/// Events in the life of every plugin, and those that depend on the turn's number of requests.
const ORDINARY: [&str; 6] = [
    "found",
    "installed",
    "starting",
    "initialised",
    "active",
    "breaker",
];

/// Returns the audit's entries about `bad`: its failed runs at hook points, its tool's outcome, and the outcome of its process. The runs of
/// `good` succeeded, or were lost with a shared process, or were no longer needed.
fn audited(world: &World) -> BTreeSet<String> {
    let all = ["audit", "list", "--json", "-n", "10000"];
    let mut found = BTreeSet::new();
    for record in world.cli(&all).ok().lines() {
        let text = |key: &str| record[key].as_str().unwrap_or_default();
        let (kind, decision) = (text("kind"), text("decision"));
        let errored = record["errored"] == true;
        match (text("pluginId"), kind) {
            ("bad", "hook")
                if errored || decision == "block" || text("policyCheckResult") != "passed" =>
            {
                let late = if record["timeout"] == true {
                    " late"
                } else {
                    ""
                };
                found.insert(format!("hook {decision}{late}"));
            }
            // Late, or lost with a process that was ended for it.
            ("bad", "tool_outcome") if matches!(decision, "tool.timeout" | "tool.failed") => {
                found.insert("act failed".to_owned());
            }
            ("bad", "tool_outcome") if decision != "completed" => {
                found.insert(format!("act {decision}"));
            }
            ("bad", "life_cycle") if !ORDINARY.iter().any(|it| decision.starts_with(it)) => {
                found.insert(format!("life {decision}"));
            }
            ("good", "hook") => {
                let other = ["bad", "process"]
                    .iter()
                    .any(|it| text("detail").contains(it));
                let well = !errored || other;
                assert!(well, "{record}");
            }
            _ => {}
        }
    }
    found
}

fn line(fault: &str, place: &str) -> String {
    let world = world(fault, place);
    // A title request would run in parallel, and hit the fault at any time.
    let mut command = world.command(&["run", "--title", "a title", "hi"]);
    if fault == "wrong_version" {
        // The sandbox lets a process execute its runtime, but not this stand-in.
        command.env("OUTRIGGER_SANDBOX", "off");
        command.env(
            "OUTRIGGER_BUN",
            liar(&world.root(), &world.path("lie"), &bun().unwrap()),
        );
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
    // The two tools run in parallel, and a plugin that shares the process loses its call with it.
    let lost = run
        .stderr
        .contains("plugin good: lost at tool.execute.after");
    assert_eq!(
        results
            .iter()
            .any(|result| result.contains("(no output) (good, too)")),
        ran && !lost,
        "{what}: {results:?}"
    );
    let gone = wait_until(WAIT_TIMEOUT, || !runs(&world));
    assert!(gone, "{what}: a process is left");
    world.verify();
    let tool = if ran { "" } else { ", the tool was refused" };
    let mut audited = audited(&world);
    world.cli(&["audit", "verify"]).ok();
    let mut whom = named(&run.stderr, fault);
    // The two tools run in parallel: the fault of one may end the process in which `bad` is asked about the other.
    if audited.contains("life restart") {
        match place {
            "tool.execute.before" => audited.retain(|it| it != "act failed"),
            "tool" => audited.retain(|it| !it.starts_with("hook failed_open")),
            _ => {}
        }
    }
    if RACES.contains(&fault) {
        assert_ne!(whom, "nobody", "{what}");
        whom = "bad or its process";
        audited = audited
            .iter()
            .map(|it| it.trim_end_matches(" late").to_owned())
            .filter(|it| !matches!(it.as_str(), "life quarantine" | "life off"))
            .collect();
    }
    // While it loads, the flood may end before the plugin's first call.
    if HARMLESS.contains(&fault) || (fault == "stdout" && place == "load") {
        let may = [
            "hook failed_open",
            "hook failed_open late",
            "act failed",
            "life restart",
            "life quarantine",
        ];
        assert!(
            audited.iter().all(|it| may.contains(&it.as_str())),
            "{what}: {audited:?}"
        );
        whom = "by chance";
        audited = ["at most a restart".to_owned()].into();
    }
    let audited = if audited.is_empty() {
        "nothing".to_owned()
    } else {
        audited.into_iter().collect::<Vec<_>>().join(", ")
    };
    let said = run.stderr.chars().take(3000).collect::<String>();
    eprintln!("{fault} at {place}: {took:?} {whom} {audited} {said}");
    format!("finished{tool}; named: {whom}; audit: {audited}")
}

/// Returns a row for each fault with its hook, and the places named with it.
fn table(faults: &[&str]) -> String {
    let mut out = String::new();
    for (number, fault) in faults.iter().enumerate() {
        let (fault, more) = fault.split_once(' ').unwrap_or((fault, ""));
        let hook = HOOKS[number % HOOKS.len()];
        for place in std::iter::once(hook).chain(more.split_whitespace()) {
            let _ = writeln!(out, "{fault} at {}: {}", short(place), line(fault, place));
        }
    }
    out
}

#[test]
fn hangs() {
    let report = table(&["never tool load", "spin_in_timer", "second"]);
    insta::assert_snapshot!(report, @r"
    never at system: finished; named: bad; audit: hook failed_open late, life quarantine, life restart
    never at tool: finished; named: bad; audit: act failed
    never at load: finished; named: bad; audit: life failed
    spin_in_timer at params: finished; named: bad or its process; audit: hook failed_open, life restart
    second at before: finished; named: bad; audit: hook failed_open late, life quarantine, life restart
    ");
}

#[test]
fn holds_up_the_channel_and_others() {
    let report = table(&["reads_nothing", "spin_later"]);
    insta::assert_snapshot!(report, @r"
    reads_nothing at system: finished; named: bad; audit: hook failed_open late, life quarantine, life restart
    spin_later at params: finished; named: by chance; audit: at most a restart
    ");
}

#[test]
fn ends() {
    let report = table(&["exit_in_timer", "exit1 tool load", "forks_and_exits"]);
    insta::assert_snapshot!(report, @r"
    exit_in_timer at system: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    exit1 at params: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    exit1 at tool: finished; named: bad; audit: act failed, life quarantine, life restart
    exit1 at load: finished; named: bad; audit: life failed
    forks_and_exits at before: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    ");
}

#[test]
fn ends_without_an_end() {
    let report = table(&["closes", "dispose_never", "dispose_spins"]);
    insta::assert_snapshot!(report, @r"
    closes at system: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    dispose_never at params: finished; named: bad; audit: nothing
    dispose_spins at before: finished; named: bad; audit: nothing
    ");
}

#[test]
fn throws_and_values() {
    let report = table(&[
        "nan",
        "throw_error tool load",
        "throw_undefined",
        "throw_in_timer",
        "cycle tool",
        "unhandled",
        "types load",
        "surrogate tool",
        "deletes",
        "later",
        "nulls",
        "input",
        "getter",
        "freezes",
    ]);
    insta::assert_snapshot!(report, @r"
    nan at system: finished; named: nobody; audit: hook patch
    throw_error at params: finished; named: bad; audit: hook failed_open
    throw_error at tool: finished; named: nobody; audit: act failed
    throw_error at load: finished; named: bad; audit: life failed
    throw_undefined at before: finished, the tool was refused; named: bad; audit: act tool.blocked, hook block
    throw_in_timer at system: finished; named: its process; audit: nothing
    cycle at params: finished; named: bad; audit: hook failed_open
    cycle at tool: finished; named: nobody; audit: act failed
    unhandled at before: finished; named: its process; audit: nothing
    types at system: finished; named: bad; audit: hook refused
    types at load: finished; named: nobody; audit: nothing
    surrogate at params: finished; named: nobody; audit: nothing
    surrogate at tool: finished; named: nobody; audit: nothing
    deletes at before: finished; named: bad; audit: hook refused
    later at system: finished; named: nobody; audit: nothing
    nulls at params: finished; named: bad; audit: hook refused
    input at before: finished; named: nobody; audit: nothing
    getter at system: finished; named: bad; audit: hook failed_open
    freezes at params: finished; named: nobody; audit: nothing
    ");
}

#[test]
fn floods() {
    let report = table(&["stdout", "stderr tool", "files", "huge", "large tool"]);
    insta::assert_snapshot!(report, @r"
    stdout at system: finished; named: its process; audit: nothing
    stderr at params: finished; named: its process; audit: nothing
    stderr at tool: finished; named: its process; audit: nothing
    files at before: finished; named: by chance; audit: at most a restart
    huge at system: finished; named: bad; audit: hook failed_open
    large at params: finished; named: nobody; audit: nothing
    large at tool: finished; named: nobody; audit: nothing
    ");
}

#[test]
fn takes_all_there_is() {
    let report = table(&["requests tool", "allocates tool"]);
    insta::assert_snapshot!(report, @r"
    requests at system: finished; named: nobody; audit: nothing
    requests at tool: finished; named: nobody; audit: nothing
    allocates at params: finished; named: bad or its process; audit: hook failed_open, life restart
    allocates at tool: finished; named: bad or its process; audit: act failed, life restart
    ");
}

#[test]
fn lies() {
    let report = table(&[
        "protocol_lines",
        "answers_another",
        "answers_for_another",
        "answers_twice",
        "answers_again",
        "answers_early",
        "hello_again",
    ]);
    insta::assert_snapshot!(report, @r"
    protocol_lines at system: finished; named: its process; audit: nothing
    answers_another at params: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    answers_for_another at before: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    answers_twice at system: finished; named: by chance; audit: at most a restart
    answers_again at params: finished; named: nobody; audit: nothing
    answers_early at before: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    hello_again at system: finished; named: nobody; audit: nothing
    ");
}

/// Its hook, its tool or its start prompts a session, whose turn reaches the same place: the first deadline ends them all.
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
        // Which of the many calls is late is random, and so is whether its turn is the one shown.
        let report = line("recursive", place);
        let report = report.split("; audit").next().unwrap();
        let _ = writeln!(out, "{place}: {report}");
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
        wrong_version at system: finished; named: bad or its process; audit: hook failed_open, life restart
        wrong_version at tool: finished; named: bad or its process; audit: act failed, life restart
        ");
    }
}

/// A terminal sends Ctrl-C to every foreground process. The plugin's process handles it and stays, at each place.
#[test]
fn ctrl_c_while_the_plugin_takes_signals_for_itself() {
    for place in HOOKS.iter().copied().chain(["tool", "load"]) {
        let world = world("signals", place);
        let patient = "[deadlines]\nnormal_ms = 60000\nload_ms = 60000\n";
        granting(&world, &(tool_limit(1500) + patient));
        let running = world.start(world.command(&["run", "hi"]));
        let pid = || world.read("pid.txt").trim().parse::<u32>().ok();
        assert!(
            wait_until(WAIT_TIMEOUT, || pid().is_some()),
            "{place}: {}",
            running.stderr()
        );
        let plugin = pid().unwrap();
        for process in members(plugin) {
            let number = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
            kill_process(number, Signal::INT).unwrap();
        }
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
            wait_until(WAIT_TIMEOUT, || !alive(plugin) && !runs(&world)),
            "{place}"
        );
        world.verify();
    }
}
