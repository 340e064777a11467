//! One row: a fault at a place, and its observed effects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use outrigger_config::PluginSpec;
use outrigger_config::settings::Isolation;
use outrigger_plugins::{Notice, PluginRules, Plugins, Stage};
use outrigger_protocol::Object;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::hook::HookRecord;
use outrigger_test_support::misbehaving::{HOOKS, SOURCE, is_hang, liar, short, works};
use outrigger_test_support::process::runs_with;
use serde_json::{Value, json};

use super::log::Captured;
use crate::support::*;

/// A hook's deadline here.
const DEADLINE: Duration = Duration::from_millis(700);
/// A tool's, and that of a step of loading.
const LONGER: Duration = Duration::from_secs(2);
/// Of work that is not a hang.
const WORK: Duration = Duration::from_secs(10);
/// Where a call has to be answered before another one misses the same deadline.
const FIRST: Duration = Duration::from_secs(3);
/// In which the next call after a timeout works (A7), and in which plugins have to dispose of what they hold.
const RESTART: Duration = Duration::from_secs(2);
/// How many times a limit a test allows.
const TIMES: u32 = 5;
/// How calls end in whole turns, too (`turns.rs` of outrigger-cli): where one ends otherwise, a turn with it is missing there.
const IN_TURNS: [&str; 8] = [
    "ok",
    "error",
    "timeout",
    "lost",
    "skipped",
    "plugin.tool",
    "plugin.tool_lost",
    "plugin.tool_timeout",
];

fn payload(place: &str) -> (Value, Value) {
    match place {
        "experimental.chat.system.transform" => (json!({"model": {}}), json!({"system": []})),
        "chat.params" => (
            json!({"agent": "build"}),
            json!({"temperature": 0, "options": {}}),
        ),
        _ => (
            json!({"tool": "bash"}),
            json!({"args": {"command": "true"}}),
        ),
    }
}

const GOOD: &str = r#"export default async () => ({
    "experimental.chat.system.transform": (_, output) => void output.system.push("good"),
    "chat.params": (_, output) => { output.temperature = 1 },
    "tool.execute.before": (_, output) => { output.args.good = true },
    "chat.headers": (input) => new Promise((done) => setTimeout(done, input.wait ?? 0)) })"#;

/// What the calls of a hook and of a tool are held to.
fn held_to(fault: &str) -> (Duration, Duration) {
    if works(fault) {
        (WORK, WORK)
    } else {
        (DEADLINE, LONGER)
    }
}

/// A deadline is there for what hangs. Nothing else is to miss one, however busy the machine.
fn deadlines(project: &mut Project, fault: &str, place: &str) {
    let deadlines = &mut project.settings.deadlines;
    deadlines.tool = if is_hang(fault) { LONGER } else { PLENTY };
    if !is_hang(fault) {
        return;
    }
    deadlines.normal = if matches!(fault, "second" | "spin_later") {
        FIRST
    } else {
        DEADLINE
    };
    if place == "load" {
        deadlines.load = FIRST;
    }
    // Its own call is the one that is held up.
    if fault != "spin_later" {
        project.hook_deadline("good", PLENTY);
    }
}

fn project(fault: &str, place: &str) -> (Project, Vec<PluginSpec>) {
    let mut project = Project::new();
    deadlines(&mut project, fault, place);
    if fault.starts_with("allocates") {
        project.settings.limits.memory = 700 << 20;
    }
    let mut bad = project.plugin("bad", SOURCE);
    bad.options = Some(json!({ "fault": fault, "where": place }));
    if fault == "wrong_version" {
        lie(&mut project, place);
    }
    let specs = vec![bad, project.plugin("good", GOOD)];
    (project, specs)
}

/// A runtime that tells a wrong version of the protocol the next time that it is started for `bad` once there is a file `lie`.
fn lie(project: &mut Project, place: &str) {
    let mark = project.path("project/lie");
    let real = project.runtimes.bun.clone().unwrap();
    let runtime = liar(project.root.path(), &mark, &real);
    project.runtimes.bun = Some(runtime);
    // The sandbox lets a process execute its runtime, and not what that stands for.
    project.settings.sandbox = false;
    if place == "load" {
        std::fs::write(mark, "").unwrap();
        // What its process tells while it starts costs all that share it.
        let rules = PluginRules {
            isolation: Isolation::Own,
            ..PluginRules::default()
        };
        project.rules("bad", rules);
    }
}

/// What is seen of one row.
#[derive(Default)]
struct Row {
    calls: String,
    /// By whom, in which ways he is named.
    blame: BTreeMap<String, BTreeSet<String>>,
    log: BTreeSet<String>,
    /// What the calls were held to.
    limit: Duration,
}

impl Row {
    fn blames(&mut self, whom: &str, how: impl Into<String>) {
        self.blame
            .entry(whom.to_owned())
            .or_default()
            .insert(how.into());
    }

    /// A call that took so long, and what it had to keep: five times its deadline, and a restart where there was one (A7).
    fn took(&mut self, place: &str, took: Duration, deadline: Duration, restarted: bool) {
        let restart = if restarted { RESTART } else { Duration::ZERO };
        let limit = (deadline + restart) * TIMES;
        assert!(took < limit, "{place}: a call took {took:?}, not {limit:?}");
        self.limit = self.limit.max(limit);
    }

    fn records(&mut self, records: &[HookRecord]) {
        for record in records {
            if matches!(record.outcome.name(), "error" | "timeout") && record.message.is_some() {
                self.blames(record.plugin.as_str(), "record");
            }
        }
    }
}

/// The tool's answer or error, cut, and whom the error names.
async fn tool(plugins: &Plugins, row: &mut Row) -> String {
    let context =
        json!({"sessionID": "ses_1", "messageID": "msg_1", "callID": "call_1", "agent": "build"});
    let context: Object = context.as_object().unwrap().clone();
    let Some(tool) = plugins.tools().into_iter().next() else {
        return "no tool".to_owned();
    };
    match tool.runner.run(json!({}), context, None, |_| {}).await {
        Ok(output) if output.output.len() > 40 => format!("{} bytes", output.output.len()),
        Ok(output) => output.output,
        Err(error) => {
            if error.code() != "plugin.tool_lost" {
                row.blames("bad", "its tool");
            }
            error.code().to_owned()
        }
    }
}

/// More than a socket holds, to a process that does not read: the host has to write while it waits for the answer.
async fn fills_the_channel(plugins: &Plugins) {
    tokio::time::sleep(Duration::from_millis(200)).await;
    let text = "x".repeat(1 << 20);
    let began = Instant::now();
    let result = run(
        plugins,
        HOOKS[0],
        json!({ "text": text }),
        json!({"system": []}),
    )
    .await;
    let good = result.records.iter().any(|r| r.plugin.as_str() == "good");
    assert!(good && began.elapsed() < (DEADLINE + RESTART) * TIMES);
}

/// Two calls where the fault is; after a load, of a hook of both.
async fn calls(plugins: &Plugins, fault: &str, place: &str, row: &mut Row) {
    let (of_hook, of_tool) = held_to(fault);
    let mut restarted = false;
    for _ in 0..2 {
        let began = Instant::now();
        let (outcome, deadline) = if place == "tool" {
            (tool(plugins, row).await, of_tool)
        } else {
            let hook = if place == "load" { HOOKS[0] } else { place };
            let (input, output) = payload(hook);
            let result = run(plugins, hook, input, output).await;
            row.records(&result.records);
            let runs: Vec<String> = result
                .records
                .iter()
                .map(|r| format!("{} {}", r.plugin, r.outcome))
                .collect();
            let block = result.block.map_or("", |_| " blocked");
            (format!("{}{block}", runs.join(" ")), of_hook)
        };
        // What a tool answers is a text like any other.
        let answered = place == "tool" && !outcome.starts_with("plugin.");
        let ended = outcome.split(' ').filter(|_| !answered);
        for how in ended.filter(|it| !["bad", "good", "blocked"].contains(it)) {
            assert!(IN_TURNS.contains(&how), "{place}: {outcome}");
        }
        restarted |= outcome.contains("lost") || outcome.contains("timeout");
        row.took(place, began.elapsed(), deadline, restarted);
        let _ = write!(row.calls, "{outcome} | ");
    }
    row.calls
        .truncate(row.calls.trim_end_matches([' ', '|']).len());
}

/// A call of the good plugin is open when a timer of the bad one does not yield the thread.
async fn open_meanwhile(plugins: &Plugins, row: &mut Row) {
    let began = Instant::now();
    let input = json!({ "wait": 600 });
    let result = run(plugins, "chat.headers", input, json!({"headers": {}})).await;
    let record = &result.records[0];
    let _ = write!(row.calls, "; open: {} {}", record.plugin, record.outcome);
    row.took("open", began.elapsed(), DEADLINE, true);
}

/// Whom notices, states and the log blame.
fn blamed(project: &Project, plugins: &Plugins, row: &mut Row) {
    for notice in &*project.notices.lock().unwrap() {
        match notice {
            Notice::Quarantine { cause, .. }
                if cause.contains("which plugin caused it is unknown") =>
            {
                row.blames("nobody", "all apart");
            }
            Notice::Quarantine { plugin, .. } => row.blames(plugin, "apart"),
            Notice::Restart { culprit, .. } => {
                row.blames(culprit.as_deref().unwrap_or("nobody"), "restart");
            }
            Notice::Limit { plugins, .. } => row.blames(&plugins.join(" or "), "limit"),
            _ => {}
        }
    }
    let bad = status(plugins, "bad");
    if let Some(cause) = bad
        .cause
        .filter(|_| matches!(bad.stage, Stage::Failed | Stage::Off))
    {
        row.blames("bad", format!("{} {}", bad.stage, cause.code));
    }
    for warning in bad.warnings {
        row.blames("bad", "list");
        row.log.insert(format!("(plugin list) {warning}"));
    }
}

/// Lines with what differs from place to place and run to run replaced.
fn plain(project: &Project, place: &str, text: &str) -> String {
    let root = project.root.path().to_string_lossy().into_owned();
    let mut line = text
        .lines()
        .next()
        .unwrap_or_default()
        .replace(&root, "ROOT");
    if text.lines().skip(1).any(|line| line.contains("bad.mjs")) {
        line += " (its stack names bad.mjs)";
    }
    if HOOKS.contains(&place) {
        line = line.replace(place, "PLACE");
    }
    // Who sees the end of its own process first, its call or the watch, is chance.
    let call = if place == "tool" {
        "tool act of bad"
    } else {
        "bad (PLACE)"
    };
    let ended = [
        (
            "is started again: it ended by itself",
            format!("is started again: {call}: the plugin process bad is gone"),
        ),
        (
            "lost at PLACE: it ended by itself",
            "lost at PLACE: the plugin process bad is gone".to_owned(),
        ),
    ];
    for (seen, same) in ended {
        line = line.replace(seen, &same);
    }
    let digits = |c: char| c.is_ascii_digit();
    if let Some((count, rest)) = line.split_once(" lines left out") {
        let start = count.trim_end_matches(digits);
        line = format!("{start}N lines left out{rest}");
    }
    for end in [" MiB of memory", " files open"] {
        if let Some((count, rest)) = line.split_once(end) {
            let start = count.trim_end_matches(digits);
            line = format!("{start}N{end}{rest}");
        }
    }
    // What is left of 2 s when it is asked.
    if let Some((start, rest)) = line.split_once("within 19") {
        line = format!(
            "{start}within 2 s{}",
            rest.trim_start_matches(digits).trim_start_matches(" ms")
        );
    }
    if line.chars().count() > 240 {
        line = line.chars().take(100).collect::<String>() + "...";
    }
    line
}

async fn observed(fault: &str, place: &str, captured: &Captured) -> Row {
    let (project, specs) = project(fault, place);
    let mut row = Row::default();
    let began = Instant::now();
    let plugins = project.load(specs).await;
    let load = held_to(fault).1 * 2 + RESTART;
    assert!(
        began.elapsed() < load * TIMES,
        "loading: {:?}",
        began.elapsed()
    );
    if fault == "reads_nothing" && place != "load" {
        let first = calls(&plugins, fault, place, &mut row);
        tokio::join!(first, fills_the_channel(&plugins));
        // A call that waits when another one's deadline ends the process is lost, and which of them that is, is chance.
        row.calls = row.calls.replace("bad lost", "bad timeout");
        row.calls = row.calls.replace("tool_lost", "tool_timeout");
    } else if fault == "spin_later" {
        calls(&plugins, fault, place, &mut row).await;
        open_meanwhile(&plugins, &mut row).await;
    } else {
        calls(&plugins, fault, place, &mut row).await;
    }
    // Whatever happened: the other one answers, in time.
    let after = Instant::now();
    let result = run(&plugins, "chat.headers", json!({}), json!({"headers": {}})).await;
    let answers: Vec<&str> = result.records.iter().map(|r| r.outcome.name()).collect();
    assert_eq!(answers, ["ok"], "{fault} at {place}: {:?}", plugins.list());
    assert!(
        after.elapsed() < RESTART * TIMES,
        "{fault} at {place}: the next call took {:?}",
        after.elapsed()
    );
    if fault == "files" {
        // The watch looks once a second.
        wait_for("the limit is reported", || {
            let notices = project.notices.lock().unwrap();
            notices
                .iter()
                .any(|notice| matches!(notice, Notice::Limit { .. }))
        })
        .await;
    }
    if fault == "second" && place == "load" {
        wait_for("its second load is over", || {
            status(&plugins, "bad").stage == Stage::Failed
        })
        .await;
    }
    blamed(&project, &plugins, &mut row);
    let dispose = Instant::now();
    // What does not hang is to have disposed of what it holds, however late.
    let is_bounded = is_hang(fault) || fault.starts_with("dispose_");
    plugins
        .dispose(if is_bounded { RESTART } else { PLENTY })
        .await;
    assert!(
        dispose.elapsed() < RESTART * TIMES,
        "{fault} at {place}: {:?} to dispose",
        dispose.elapsed()
    );
    let home = project.root.path().to_string_lossy().into_owned();
    wait_for("no process is left", || !runs_with(&home)).await;
    let notices = std::mem::take(&mut row.log)
        .into_iter()
        .chain(captured.lines());
    for line in notices {
        let line = plain(&project, place, &line);
        if line.contains("plugin bad") || line.contains("bad.mjs") {
            row.blames("bad", "log");
        } else if line.contains("[plugin:shared]") || line.contains("[plugin:bad]") {
            row.blames("its process", "log");
        }
        row.log.insert(line);
    }
    if fault.starts_with("allocates") {
        alike(&mut row);
    }
    if fault == "answers_twice" {
        // Whose call it meets, and how often, depends on who asks first.
        row.log = row
            .log
            .iter()
            .filter_map(|line| what_was_sent(line))
            .collect();
        row.blame
            .values_mut()
            .for_each(|how| how.retain(|how| how != "log"));
        if place == "tool" {
            row.log.clear();
            row.blame.remove("nobody");
        }
    }
    if fault == "reads_nothing" {
        // Two calls meet it, and which of them is late first is chance.
        let chance = [
            "at PLACE",
            "at experimental",
            "PLACE keeps",
            "(generation 2)",
            "(generation 3)",
        ];
        row.log
            .retain(|line| !chance.iter().any(|word| line.contains(word)));
        row.blame
            .values_mut()
            .for_each(|how| how.retain(|how| !matches!(how.as_str(), "record" | "its tool")));
    }
    if fault == "closes" {
        // Its channel ends before it does, or the other way round.
        row.log = row
            .log
            .iter()
            .map(|line| line.replace(" (exit code 0)", ""))
            .collect();
    }
    row
}

/// The end of a line about a message that broke the protocol.
fn what_was_sent(line: &str) -> Option<String> {
    let at = line.find("the plugin process sent")?;
    Some(format!("... {}", &line[at..]))
}

/// Who is faster, the system or the watch that looks once a second, is chance, and who takes it in a shared process is known
/// to the one and not to the other. Both name the limit, and nobody but the culprit is blamed once it is alone.
fn alike(row: &mut Row) {
    const LIMIT: &str = "limits.plugin_memory_mb";
    assert!(
        row.log.iter().any(|line| line.contains(LIMIT)),
        "{:?}",
        row.log
    );
    assert!(row.blame.contains_key("bad"), "{:?}", row.blame);
    let others = row
        .blame
        .keys()
        .find(|whom| !["bad", "nobody"].contains(&whom.as_str()));
    assert_eq!(others, None);
    row.blame.retain(|whom, _| whom == "bad");
    row.blame
        .values_mut()
        .for_each(|how| how.retain(|how| !matches!(how.as_str(), "apart" | "log")));
    row.log = BTreeSet::from([format!("(a line that names {LIMIT})")]);
}

fn shown(row: &Row) -> String {
    let mut out = format!("{}  [a call in {:?}]", row.calls, row.limit);
    let blame: Vec<String> = row
        .blame
        .iter()
        .map(|(whom, how)| {
            let how: Vec<&str> = how.iter().map(String::as_str).collect();
            format!("{whom} ({})", how.join(", "))
        })
        .collect();
    let blame = if blame.is_empty() {
        "nobody".to_owned()
    } else {
        blame.join("; ")
    };
    let _ = write!(out, "\n      blame  {blame}");
    for line in &row.log {
        let _ = write!(out, "\n      log    {line}");
    }
    out
}

/// The faults at all places; places where the same was seen stand together.
pub(super) fn table(faults: &[&str]) -> String {
    let mut out = String::new();
    for fault in faults {
        let _ = writeln!(out, "{fault}");
        let mut rows: Vec<(Vec<&str>, String)> = Vec::new();
        for place in HOOKS.iter().copied().chain(["tool", "load"]) {
            let began = Instant::now();
            let captured = Captured::default();
            let row = captured.run(observed(fault, place, &captured));
            eprintln!("{fault} at {place}: {:?}", began.elapsed());
            let name = short(place);
            let line = shown(&row);
            match rows.iter_mut().find(|(_, same)| *same == line) {
                Some((places, _)) => places.push(name),
                None => rows.push((vec![name], line)),
            }
        }
        for (places, line) in rows {
            let _ = writeln!(out, "  {}: {line}", places.join(" "));
        }
    }
    out
}
