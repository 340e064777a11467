//! Every fault of the misbehaving plugin in a real turn (issue 4, item 11): a prompt, a request with a tool of ours and the
//! plugin's own, another request; beside it a plugin that does nothing wrong. A line says how the turn ended and whom
//! standard error and the log of the session name. What holds for every line is asserted: the turn finished, the good
//! plugin's effects are there, the log replays, and no process is left. What each fault looks like at all places, and what is
//! logged of it, is in `misbehaving.rs` of outrigger-plugins.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use outrigger_test_support::misbehaving::{HOOKS, SOURCE, liar, short, works};
use outrigger_test_support::process::runs_with;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::granted::granting;
use crate::support::*;

const GOOD: &str = "
export const Good = async () => ({
  'chat.message': async (_, o) => { o.parts[0].text += ' (good)' },
  'tool.execute.after': async (_, o) => { o.output += ' (good, too)' },
})";
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
    std::fs::write(&bad, SOURCE).unwrap();
    let url = format!("file://{}", bad.display());
    world.config(json!({ "plugin": [[url, { "fault": fault, "where": place }]] }));
    world.plugin("good", GOOD);
    // The user's own: a project does not limit tools, and gives nobody more time.
    let limit = if works(fault) { 10_000 } else { 1500 };
    granting(&world, &(tool_limit(limit) + settings(fault)));
    world
}

fn tool_limit(milliseconds: u64) -> String {
    format!("[tool_limits.act]\ntimeout_ms = {milliseconds}\n")
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

/// Whether a process of this world runs.
fn runs(world: &World) -> bool {
    runs_with(&world.root().display().to_string())
}

/// Faults of which it is chance who is faster: the system or the watch that looks once a second, and whose call a timer meets. Standard error
/// names the plugin or its process; the audit has what it cost, and not whether the deadline or the end of the process came first.
const RACES: [&str; 4] = [
    "spin_in_timer",
    "allocates",
    "allocates_objects",
    "wrong_version",
];
/// Faults that meet no call at all, or one, as it happens: at most the process is started again.
const HARMLESS: [&str; 3] = ["files", "answers_again", "answers_twice"];

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

/// What the life of every plugin that runs comes by, and what depends on how many requests the turn makes (the title's is made
/// beside the others).
const ORDINARY: [&str; 6] = [
    "found",
    "installed",
    "starting",
    "initialised",
    "active",
    "breaker",
];

/// What the audit says of `bad`: its runs at hook points that were not well, what became of its tool, and what its process and
/// its life came to. Those of `good` were well, or were lost with a shared process, or were not wanted any more.
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
    let mut command = world.command(&["run", "hi"]);
    if fault == "wrong_version" {
        // The box lets a process execute its runtime, and not what that stands for.
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
    // The two tools run side by side, and whoever shares a process is lost with it where it was just being asked.
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
    let gone = wait_until(PATIENCE, || !runs(&world));
    assert!(gone, "{what}: a process is left");
    world.verify();
    let tool = if ran { "" } else { ", the tool was refused" };
    let mut audited = audited(&world);
    world.cli(&["audit", "verify"]).ok();
    let mut whom = named(&run.stderr);
    // Side by side: a tool of `bad` may be in the process that its hook before the other tool ends.
    if place == "tool.execute.before" && audited.contains("life restart") {
        audited.retain(|it| it != "act failed");
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
    // While it loads, the flood may be over before its plugin is asked anything.
    if HARMLESS.contains(&fault) || (fault == "stdout" && place == "load") {
        let may = [
            "hook failed_open",
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
    let audited = match audited.is_empty() {
        true => "nothing".to_owned(),
        false => audited.into_iter().collect::<Vec<_>>().join(", "),
    };
    let said = run.stderr.chars().take(3000).collect::<String>();
    eprintln!("{fault} at {place}: {took:?} {whom} {audited} {said}");
    format!("finished{tool}; named: {whom}; audit: {audited}")
}

/// A hook for each fault in turn, and the places that are named with it.
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
    let told = table(&["never tool load", "spin tool load", "second"]);
    insta::assert_snapshot!(told, @r"
    never at system: finished; named: bad; audit: hook failed_open late, life quarantine, life restart
    never at tool: finished; named: bad; audit: act failed
    never at load: finished; named: bad; audit: life failed
    spin at params: finished; named: bad; audit: hook failed_open late, life quarantine, life restart
    spin at tool: finished; named: bad; audit: act failed, life quarantine, life restart
    spin at load: finished; named: bad; audit: life failed
    second at before: finished; named: bad; audit: hook failed_open late, life quarantine, life restart
    ");
}

#[test]
fn hangs_outside_of_a_call_and_in_the_channel() {
    let told = table(&[
        "spin_in_timer tool",
        "spin_later",
        "reads_nothing",
        "half_a_frame tool load",
    ]);
    insta::assert_snapshot!(told, @r"
    spin_in_timer at system: finished; named: bad or its process; audit: hook failed_open, life restart
    spin_in_timer at tool: finished; named: bad or its process; audit: act failed, life restart
    spin_later at params: finished; named: nobody; audit: nothing
    reads_nothing at before: finished; named: bad; audit: hook failed_open late, life quarantine, life restart
    half_a_frame at system: finished; named: bad; audit: hook failed_open late, life quarantine, life restart
    half_a_frame at tool: finished; named: bad; audit: act failed, life quarantine, life restart
    half_a_frame at load: finished; named: bad; audit: life failed
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
    ]);
    insta::assert_snapshot!(told, @r"
    exit0 at system: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    exit1 at params: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    exit1 at tool: finished; named: bad; audit: act failed, life quarantine, life restart
    exit1 at load: finished; named: bad; audit: life failed
    kill at before: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    kill at tool: finished; named: bad; audit: act failed, life quarantine, life restart
    kill at load: finished; named: bad; audit: life failed
    abort at system: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    exit_in_timer at params: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    exit_in_timer at tool: finished; named: bad; audit: act failed, life quarantine, life restart
    exit_in_timer at load: finished; named: bad; audit: life failed
    forks_and_exits at before: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    forks_and_exits at tool: finished; named: bad; audit: act failed, life quarantine, life restart
    ");
}

#[test]
fn ends_without_an_end() {
    let told = table(&["closes tool", "dispose_never tool", "dispose_spins load"]);
    insta::assert_snapshot!(told, @r"
    closes at system: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    closes at tool: finished; named: bad; audit: act failed, life quarantine, life restart
    dispose_never at params: finished; named: bad; audit: nothing
    dispose_never at tool: finished; named: bad; audit: nothing
    dispose_spins at before: finished; named: bad; audit: nothing
    dispose_spins at load: finished; named: bad; audit: nothing
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
    throw_text at system: finished; named: bad; audit: hook failed_open
    throw_error at params: finished; named: bad; audit: hook failed_open
    throw_error at tool: finished; named: nobody; audit: act failed
    throw_error at load: finished; named: bad; audit: life failed
    throw_undefined at before: finished, the tool was refused; named: nobody; audit: act tool.blocked, hook block
    throw_undefined at tool: finished; named: nobody; audit: act failed
    throw_cycle at system: finished; named: bad; audit: hook failed_open
    reject_late at params: finished; named: bad; audit: hook failed_open
    unhandled at before: finished; named: its process; audit: nothing
    unhandled at tool: finished; named: its process; audit: nothing
    throw_in_timer at system: finished; named: its process; audit: nothing
    cycle at params: finished; named: bad; audit: hook failed_open
    cycle at tool: finished; named: nobody; audit: act failed
    bigint at before: finished, the tool was refused; named: nobody; audit: act tool.blocked, hook block
    nan at system: finished; named: nobody; audit: hook patch
    surrogate at params: finished; named: nobody; audit: nothing
    surrogate at tool: finished; named: nobody; audit: nothing
    deletes at before: finished; named: bad; audit: hook refused
    deletes at load: finished; named: nobody; audit: nothing
    types at system: finished; named: bad; audit: hook refused
    types at load: finished; named: nobody; audit: nothing
    nulls at params: finished; named: bad; audit: hook refused
    nulls at load: finished; named: nobody; audit: nothing
    input at before: finished; named: nobody; audit: nothing
    later at system: finished; named: nobody; audit: nothing
    freezes at params: finished; named: nobody; audit: nothing
    getter at before: finished, the tool was refused; named: nobody; audit: act tool.blocked, hook block
    getter at load: finished; named: bad; audit: life failed
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
    ]);
    insta::assert_snapshot!(told, @r"
    stdout at system: finished; named: its process; audit: nothing
    stdout at load: finished; named: by chance; audit: at most a restart
    stderr at params: finished; named: its process; audit: nothing
    stderr at tool: finished; named: its process; audit: nothing
    files at before: finished; named: by chance; audit: at most a restart
    huge at system: finished; named: bad; audit: hook failed_open
    large at params: finished; named: nobody; audit: nothing
    large at tool: finished; named: nobody; audit: nothing
    deep at before: finished, the tool was refused; named: nobody; audit: act tool.blocked, hook block
    ");
}

#[test]
fn takes_all_there_is() {
    let told = table(&["requests tool", "allocates", "allocates_objects tool"]);
    insta::assert_snapshot!(told, @r"
    requests at system: finished; named: nobody; audit: nothing
    requests at tool: finished; named: nobody; audit: nothing
    allocates at params: finished; named: bad or its process; audit: hook failed_open, life restart
    allocates_objects at before: finished; named: bad or its process; audit: hook failed_open, life restart
    allocates_objects at tool: finished; named: bad or its process; audit: act failed, life restart
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
    protocol_lines at system: finished; named: its process; audit: nothing
    answers_another at params: finished; named: nobody; audit: nothing
    answers_early at before: finished; named: bad; audit: hook failed_open, life restart
    answers_twice at system: finished; named: by chance; audit: at most a restart
    answers_again at params: finished; named: by chance; audit: at most a restart
    answers_again at tool: finished; named: by chance; audit: at most a restart
    answers_for_another at before: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    answers_for_another at tool: finished; named: bad; audit: act failed, life quarantine, life restart
    not_json at system: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    not_json at tool: finished; named: bad; audit: act failed, life quarantine, life restart
    not_json at load: finished; named: bad; audit: life failed
    not_utf8 at params: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    too_large at before: finished; named: bad; audit: hook failed_open, life quarantine, life restart
    hello_again at system: finished; named: nobody; audit: nothing
    hello_again at load: finished; named: nobody; audit: nothing
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
        let told = line("recursive", place);
        let told = told.split("; audit").next().unwrap();
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
        wrong_version at system: finished; named: bad or its process; audit: act failed, hook failed_open, life restart
        wrong_version at tool: finished; named: bad or its process; audit: act failed, life restart
        ");
    }
}

/// A terminal sends Ctrl-C to every process of the foreground. The plugin's process takes it and stays, wherever it is.
#[test]
fn ctrl_c_while_the_plugin_takes_signals_for_itself() {
    for place in HOOKS.iter().copied().chain(["tool", "load"]) {
        let world = world("signals", place);
        let patient = "[deadlines]\nnormal_ms = 60000\nload_ms = 60000\n";
        granting(&world, &(tool_limit(1500) + patient));
        let running = world.start(world.command(&["run", "hi"]));
        let pid = || world.read("pid.txt").trim().parse::<u32>().ok();
        assert!(
            wait_until(PATIENCE, || pid().is_some()),
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
            wait_until(PATIENCE, || !alive(plugin) && !runs(&world)),
            "{place}"
        );
        world.verify();
    }
}
