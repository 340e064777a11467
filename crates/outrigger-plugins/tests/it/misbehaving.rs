//! The misbehaving plugin (misbehaving.mjs): every fault at three hooks, in a tool and while it is loaded, beside a plugin
//! that does nothing wrong. A line says what became of the calls of both; below it, who was blamed for what, how the culprit
//! is after it, and what was logged. No call takes longer than five times its deadline and a restart, and no process is left.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use outrigger_plugins::{Notice, Plugins, Stage};
use outrigger_protocol::Object;
use serde_json::{Value, json};

use crate::support::*;

const HOOKS: [&str; 3] = [
    "experimental.chat.system.transform",
    "chat.params",
    "tool.execute.before",
];
/// A hook's deadline here.
const DEADLINE: Duration = Duration::from_millis(700);
/// In which the next call after a timeout works (A7).
const RESTART: Duration = Duration::from_secs(2);

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

fn project(fault: &str, place: &str) -> (Project, Vec<outrigger_config::PluginSpec>) {
    let mut project = Project::new();
    project.settings.deadlines.normal = DEADLINE;
    project.settings.deadlines.load = Duration::from_secs(2);
    project.settings.deadlines.tool = Duration::from_secs(2);
    let mut bad = project.plugin("bad", include_str!("misbehaving.mjs"));
    bad.options = Some(json!({ "fault": fault, "where": place }));
    let good = r#"export default async () => ({
        "experimental.chat.system.transform": (_, output) => void output.system.push("good"),
        "chat.params": (_, output) => { output.temperature = 1 },
        "tool.execute.before": (_, output) => { output.args.good = true } })"#;
    let specs = vec![bad, project.plugin("good", good)];
    (project, specs)
}

/// The tool's answer or error, cut.
async fn tool(plugins: &Plugins) -> String {
    let context =
        json!({"sessionID": "ses_1", "messageID": "msg_1", "callID": "call_1", "agent": "build"});
    let context: Object = context.as_object().unwrap().clone();
    let Some(tool) = plugins.tools().into_iter().next() else {
        return "no tool".to_owned();
    };
    match tool.runner.run(json!({}), context, None, |_| {}).await {
        Ok(output) if output.output.len() > 40 => format!("{} bytes", output.output.len()),
        Ok(output) => output.output,
        Err(error) => error.code().to_owned(),
    }
}

/// How long a call may take: its deadline and the start of the process behind it (A7), five times.
fn limit(project: &Project) -> Duration {
    (project
        .settings
        .deadlines
        .tool
        .max(project.settings.deadlines.normal)
        + RESTART)
        * 5
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
    assert!(good && began.elapsed() < (DEADLINE + RESTART) * 5);
}

/// Two calls where the fault is.
async fn calls(plugins: &Plugins, fault: &str, place: &str, limit: Duration) -> String {
    let mut out = String::new();
    let behind = (fault == "reads_nothing" && place != "load").then(|| fills_the_channel(plugins));
    if let Some(behind) = behind {
        let first = Box::pin(calls(plugins, "spin", place, limit));
        let (first, ()) = tokio::join!(first, behind);
        // A call that waits when another one's deadline ends the process is lost, and which of them that is, is chance.
        let first = first.replace("bad lost", "bad timeout");
        return first.replace("tool_lost", "tool_timeout");
    }
    for _ in 0..2 {
        let began = Instant::now();
        match place {
            "load" => {}
            "tool" => {
                let _ = write!(out, "{} | ", tool(plugins).await);
            }
            hook => {
                let (input, output) = payload(hook);
                let result = run(plugins, hook, input, output).await;
                let runs: Vec<String> = result
                    .records
                    .iter()
                    .map(|r| format!("{} {}", r.plugin, r.outcome))
                    .collect();
                let block = result.block.map_or("", |_| " blocked");
                let _ = write!(out, "{}{block} | ", runs.join(" "));
            }
        }
        let took = began.elapsed();
        assert!(took < limit, "{place}: a call took {took:?}");
    }
    out.trim_end_matches([' ', '|']).to_owned()
}

/// Who was blamed for what, in the words of the first notice, and what the process said.
fn told(fault: &str, project: &Project, plugins: &Plugins) -> String {
    let notices = project.told.lock().unwrap();
    let apart = notices.iter().find_map(|notice| match notice {
        Notice::Quarantine { cause, .. } if cause.contains("cannot be told whose") => {
            Some(format!("\n          split: {cause}"))
        }
        Notice::Quarantine { plugin, cause } => {
            Some(format!("\n          {plugin} apart: {cause}"))
        }
        _ => None,
    });
    let mut out = apart.unwrap_or_default();
    let bad = status(plugins, "bad");
    if fault.starts_with("allocates") {
        // Who is faster, the kernel or the watch that looks once a second, is chance; whose it was is told by the first only.
        let (limit, told) = (
            "limits.plugin_memory_mb",
            out.contains("limits.plugin_memory_mb"),
        );
        let failed = bad.stage == Stage::Failed;
        assert!(told || failed, "{out}");
        return if failed {
            format!("\n          {} {}", bad.stage, bad.cause.unwrap().code)
        } else {
            format!("\n          {limit}")
        };
    }
    if fault == "answers_early" && bad.stage != Stage::Failed {
        // Whose call it meets, and how often, depends on who asks first.
        return String::new();
    }
    if bad.stage == Stage::Failed || bad.stage == Stage::Off {
        let cause = bad.cause.unwrap();
        let message = cause.message.lines().next().unwrap_or_default().to_owned();
        let _ = write!(out, "\n          {} {}: {message}", bad.stage, cause.code);
    }
    let mut logged = project.handler.logged.lock().unwrap().clone();
    logged.dedup();
    for line in logged.iter().take(2) {
        let _ = write!(out, "\n          log: {line}");
    }
    if fault == "closes" {
        // Its channel ends before it does.
        out = out.replace(" (exit code 0)", "");
    }
    out
}

/// One line of the table, and what was told of it below.
async fn line(fault: &str, place: &str) -> String {
    let (mut project, specs) = project(fault, place);
    if fault.starts_with("allocates") {
        project.settings.limits.memory = 700 << 20;
        project.settings.deadlines.normal = Duration::from_secs(30);
        project.settings.deadlines.load = Duration::from_secs(30);
        project.settings.deadlines.tool = Duration::from_secs(30);
    }
    if matches!(fault, "stdout" | "stderr" | "huge" | "large" | "requests") {
        // Work, and no hang: how long it takes is not what is asked here.
        project.settings.deadlines.normal = Duration::from_secs(30);
        project.settings.deadlines.load = Duration::from_secs(30);
        project.settings.deadlines.tool = Duration::from_secs(30);
    }
    let began = Instant::now();
    let plugins = project.load(specs).await;
    let mut out = calls(&plugins, fault, place, limit(&project)).await;
    // Whatever happened: the other one answers, in time.
    let after = Instant::now();
    let (input, output) = payload(HOOKS[0]);
    let result = run(&plugins, HOOKS[0], input, output).await;
    let good = result.records.iter().find(|r| r.plugin.as_str() == "good");
    assert_eq!(
        good.map(|r| r.outcome.as_str()),
        Some("ok"),
        "{fault} at {place}: {:?}",
        result.records
    );
    assert!(
        after.elapsed() < RESTART * 5,
        "{fault} at {place}: {:?}",
        after.elapsed()
    );
    out += &told(fault, &project, &plugins);
    plugins.dispose(Duration::from_secs(2)).await;
    // Nothing takes longer than its deadlines, however often they apply.
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{fault} at {place}: {:?}",
        began.elapsed()
    );
    let home = project.root.path().to_string_lossy().into_owned();
    wait_for("no process is left", || !runs(&home)).await;
    out.replace(&home, "ROOT")
}

/// Whether a process runs whose environment names this folder.
fn runs(folder: &str) -> bool {
    let me = std::process::id().to_string();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy() != me)
        .filter_map(|entry| std::fs::read(entry.path().join("environ")).ok())
        .any(|environ| String::from_utf8_lossy(&environ).contains(folder))
}

async fn table(faults: &[&str]) -> String {
    let mut out = String::new();
    for fault in faults {
        let _ = writeln!(out, "{fault}");
        for place in HOOKS.iter().copied().chain(["tool", "load"]) {
            let short = place.rsplit('.').next().unwrap();
            let short = if place == HOOKS[0] { "system" } else { short };
            let _ = writeln!(out, "  {short:7} {}", line(fault, place).await);
        }
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn hangs() {
    insta::assert_snapshot!(table(&["never", "spin", "second", "spin_in_timer"]).await, @r"
    never
      system  bad timeout good ok | bad timeout good ok
              bad apart: bad (experimental.chat.system.transform) did not answer within 700 ms
      params  bad timeout good ok | bad timeout good ok
              bad apart: bad (chat.params) did not answer within 700 ms
      before  bad timeout good ok | bad timeout good ok
              bad apart: bad (tool.execute.before) did not answer within 700 ms
      tool    plugin.tool_timeout | plugin.tool_timeout
              bad apart: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
      load    
              failed plugin.hung: plugin bad did not finish its server within 2000 ms
    spin
      system  bad timeout good ok | bad timeout good ok
              bad apart: bad (experimental.chat.system.transform) did not answer within 700 ms
      params  bad timeout good ok | bad timeout good ok
              bad apart: bad (chat.params) did not answer within 700 ms
      before  bad timeout good ok | bad timeout good ok
              bad apart: bad (tool.execute.before) did not answer within 700 ms
      tool    plugin.tool_timeout | plugin.tool_timeout
              bad apart: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
      load    
              failed plugin.hung: plugin bad did not finish its server within 2000 ms
    second
      system  bad ok good ok | bad timeout good ok
              bad apart: bad (experimental.chat.system.transform) did not answer within 700 ms
      params  bad ok good ok | bad timeout good ok
              bad apart: bad (chat.params) did not answer within 700 ms
      before  bad ok good ok | bad timeout good ok
              bad apart: bad (tool.execute.before) did not answer within 700 ms
      tool    done | plugin.tool_timeout
              bad apart: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
      load    
    spin_in_timer
      system  bad lost good ok | bad timeout good ok
              split: code that no call entered (a timer, say) did not answer within 700 ms (it cannot be told whose it was)
      params  bad lost good ok | bad timeout good ok
              split: code that no call entered (a timer, say) did not answer within 700 ms (it cannot be told whose it was)
      before  bad lost good ok | bad timeout good ok
              split: code that no call entered (a timer, say) did not answer within 700 ms (it cannot be told whose it was)
      tool    plugin.tool_timeout | plugin.tool_timeout
              split: code that no call entered (a timer, say): tool.run was not answered within 2000 ms, in plugin bad (tool:act) (it cannot be told whose it was)
      load    
              failed plugin.hung: plugin bad did not finish its server within 2000 ms
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn ends() {
    insta::assert_snapshot!(table(&["exit0", "exit1", "kill", "abort", "exit_in_timer", "forks_and_exits"]).await, @r"
    exit0
      system  bad lost good ok | bad lost good ok
              bad apart: bad (experimental.chat.system.transform): the plugin process shared is gone (exit code 0)
      params  bad lost good ok | bad lost good ok
              bad apart: bad (chat.params): the plugin process shared is gone (exit code 0)
      before  bad lost good ok | bad lost good ok
              bad apart: bad (tool.execute.before): the plugin process shared is gone (exit code 0)
      tool    plugin.tool_lost | plugin.tool_lost
              bad apart: tool act of bad: the plugin process shared is gone (exit code 0)
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone (exit code 0)
    exit1
      system  bad lost good ok | bad lost good ok
              bad apart: bad (experimental.chat.system.transform): the plugin process shared is gone (exit code 1)
      params  bad lost good ok | bad lost good ok
              bad apart: bad (chat.params): the plugin process shared is gone (exit code 1)
      before  bad lost good ok | bad lost good ok
              bad apart: bad (tool.execute.before): the plugin process shared is gone (exit code 1)
      tool    plugin.tool_lost | plugin.tool_lost
              bad apart: tool act of bad: the plugin process shared is gone (exit code 1)
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone (exit code 1)
    kill
      system  bad lost good ok | bad lost good ok
              bad apart: bad (experimental.chat.system.transform): the plugin process shared is gone (signal 9)
      params  bad lost good ok | bad lost good ok
              bad apart: bad (chat.params): the plugin process shared is gone (signal 9)
      before  bad lost good ok | bad lost good ok
              bad apart: bad (tool.execute.before): the plugin process shared is gone (signal 9)
      tool    plugin.tool_lost | plugin.tool_lost
              bad apart: tool act of bad: the plugin process shared is gone (signal 9)
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone (signal 9)
    abort
      system  bad lost good ok | bad lost good ok
              bad apart: bad (experimental.chat.system.transform): the plugin process shared is gone (signal 6)
      params  bad lost good ok | bad lost good ok
              bad apart: bad (chat.params): the plugin process shared is gone (signal 6)
      before  bad lost good ok | bad lost good ok
              bad apart: bad (tool.execute.before): the plugin process shared is gone (signal 6)
      tool    plugin.tool_lost | plugin.tool_lost
              bad apart: tool act of bad: the plugin process shared is gone (signal 6)
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone (signal 6)
    exit_in_timer
      system  bad lost good ok | bad lost good ok
              split: the plugin process shared is gone (exit code 5) (it cannot be told whose it was)
      params  bad lost good ok | bad lost good ok
              split: the plugin process shared is gone (exit code 5) (it cannot be told whose it was)
      before  bad lost good ok | bad lost good ok
              split: the plugin process shared is gone (exit code 5) (it cannot be told whose it was)
      tool    plugin.tool_lost | plugin.tool_lost
              split: tool act of bad: the plugin process shared is gone (exit code 5) (it cannot be told whose it was)
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone (exit code 5)
    forks_and_exits
      system  bad lost good ok | bad lost good ok
              bad apart: bad (experimental.chat.system.transform): the plugin process shared is gone (exit code 0)
      params  bad lost good ok | bad lost good ok
              bad apart: bad (chat.params): the plugin process shared is gone (exit code 0)
      before  bad lost good ok | bad lost good ok
              bad apart: bad (tool.execute.before): the plugin process shared is gone (exit code 0)
      tool    plugin.tool_lost | plugin.tool_lost
              bad apart: tool act of bad: the plugin process shared is gone (exit code 0)
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone (exit code 0)
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn throws() {
    let told = table(&[
        "throw_text",
        "throw_error",
        "throw_undefined",
        "throw_cycle",
        "reject_late",
        "unhandled",
        "throw_in_timer",
    ])
    .await;
    insta::assert_snapshot!(told, @r"
    throw_text
      system  bad error good ok | bad error good ok
      params  bad error good ok | bad error good ok
      before  bad error blocked | bad error blocked
      tool    plugin.tool | plugin.tool
      load    
              failed plugin.server: plugin bad failed at server: export `default`: a text
    throw_error
      system  bad error good ok | bad error good ok
      params  bad error good ok | bad error good ok
      before  bad error blocked | bad error blocked
      tool    plugin.tool | plugin.tool
      load    
              failed plugin.server: plugin bad failed at server: export `default`: an error
    throw_undefined
      system  bad error good ok | bad error good ok
      params  bad error good ok | bad error good ok
      before  bad error blocked | bad error blocked
      tool    plugin.tool | plugin.tool
      load    
              failed plugin.server: plugin bad failed at server: export `default`: undefined
    throw_cycle
      system  bad error good ok | bad error good ok
      params  bad error good ok | bad error good ok
      before  bad error blocked | bad error blocked
      tool    plugin.tool | plugin.tool
      load    
              failed plugin.server: plugin bad failed at server: export `default`: [object Object]
    reject_late
      system  bad error good ok | bad error good ok
      params  bad error good ok | bad error good ok
      before  bad error blocked | bad error blocked
      tool    plugin.tool | plugin.tool
      load    
              failed plugin.server: plugin bad failed at server: export `default`: late
    unhandled
      system  bad ok good ok | bad ok good ok
              log: unhandled rejection: nobody catches it
      params  bad ok good ok | bad ok good ok
              log: unhandled rejection: nobody catches it
      before  bad ok good ok | bad ok good ok
              log: unhandled rejection: nobody catches it
      tool    done | done
              log: unhandled rejection: nobody catches it
      load    
              log: unhandled rejection: nobody catches it
    throw_in_timer
      system  bad ok good ok | bad ok good ok
              log: uncaught exception: in a timer
      params  bad ok good ok | bad ok good ok
              log: uncaught exception: in a timer
      before  bad ok good ok | bad ok good ok
              log: uncaught exception: in a timer
      tool    done | done
              log: uncaught exception: in a timer
      load    
              log: uncaught exception: in a timer
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn floods() {
    insta::assert_snapshot!(table(&["stdout", "stderr", "files", "huge", "large", "deep", "requests"]).await, @r"
    stdout
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load    
    stderr
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load    
    files
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load    
    huge
      system  bad error good ok | bad error good ok
      params  bad error good ok | bad error good ok
      before  bad error blocked | bad error blocked
      tool    plugin.tool | plugin.tool
      load    
    large
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    16777216 bytes | 16777216 bytes
      load    
    deep
      system  bad error good ok | bad error good ok
      params  bad error good ok | bad error good ok
      before  bad error blocked | bad error blocked
      tool    plugin.tool | plugin.tool
      load    
    requests
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_read() {
    insta::assert_snapshot!(table(&["reads_nothing"]).await, @r"
    reads_nothing
      system  bad timeout good ok | bad timeout good ok
              bad apart: bad (experimental.chat.system.transform) did not answer within 700 ms
      params  bad timeout good ok | bad timeout good ok
              bad apart: bad (chat.params) did not answer within 700 ms
      before  bad timeout good ok | bad timeout good ok
              bad apart: bad (tool.execute.before) did not answer within 700 ms
      tool    plugin.tool_timeout | plugin.tool_timeout
              bad apart: bad (tool:act) did not answer within 700 ms
      load    
              failed plugin.hung: plugin bad did not finish its server within 2000 ms
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_all_memory() {
    insta::assert_snapshot!(table(&["allocates", "allocates_objects"]).await, @r"
    allocates
      system  bad lost good ok | bad lost good ok
              limits.plugin_memory_mb
      params  bad lost good ok | bad lost good ok
              limits.plugin_memory_mb
      before  bad lost good ok | bad lost good ok
              limits.plugin_memory_mb
      tool    plugin.tool_lost | plugin.tool_lost
              limits.plugin_memory_mb
      load    
              failed plugin.crashed
    allocates_objects
      system  bad lost good ok | bad lost good ok
              limits.plugin_memory_mb
      params  bad lost good ok | bad lost good ok
              limits.plugin_memory_mb
      before  bad lost good ok | bad lost good ok
              limits.plugin_memory_mb
      tool    plugin.tool_lost | plugin.tool_lost
              limits.plugin_memory_mb
      load    
              failed plugin.crashed
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn lies() {
    let told = table(&[
        "protocol_lines",
        "answers_another",
        "answers_early",
        "results_twice",
        "not_json",
        "not_utf8",
        "closes",
        "too_large",
        "half_a_frame",
        "hello_again",
    ])
    .await;
    insta::assert_snapshot!(told, @r"
    protocol_lines
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load    
    answers_another
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load    
    answers_early
      system  bad lost good ok | bad lost good ok
      params  bad lost good ok | bad lost good ok
      before  bad lost good ok | bad lost good ok
      tool    plugin.tool | plugin.tool
      load    
              failed plugin.crashed: plugin bad ended its process during server: the answer to initialize cannot be read: missing field `plugins`
    results_twice
      system  bad lost good ok | bad lost good ok
              bad apart: bad (experimental.chat.system.transform): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
      params  bad lost good ok | bad lost good ok
              bad apart: bad (chat.params): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
      before  bad lost good ok | bad lost good ok
              bad apart: bad (tool.execute.before): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
      tool    plugin.tool_lost | plugin.tool_lost
              bad apart: tool act of bad: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
    not_json
      system  bad lost good ok | bad lost good ok
              bad apart: bad (experimental.chat.system.transform): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
      params  bad lost good ok | bad lost good ok
              bad apart: bad (chat.params): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
      before  bad lost good ok | bad lost good ok
              bad apart: bad (tool.execute.before): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
      tool    plugin.tool_lost | plugin.tool_lost
              bad apart: tool act of bad: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
    not_utf8
      system  bad lost good ok | bad lost good ok
              bad apart: bad (experimental.chat.system.transform): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
      params  bad lost good ok | bad lost good ok
              bad apart: bad (chat.params): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
      before  bad lost good ok | bad lost good ok
              bad apart: bad (tool.execute.before): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
      tool    plugin.tool_lost | plugin.tool_lost
              bad apart: tool act of bad: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
    closes
      system  bad lost good ok | bad lost good ok
              bad apart: bad (experimental.chat.system.transform): the plugin process shared is gone
      params  bad lost good ok | bad lost good ok
              bad apart: bad (chat.params): the plugin process shared is gone
      before  bad lost good ok | bad lost good ok
              bad apart: bad (tool.execute.before): the plugin process shared is gone
      tool    plugin.tool_lost | plugin.tool_lost
              bad apart: tool act of bad: the plugin process shared is gone
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone
    too_large
      system  bad lost good ok | bad lost good ok
              bad apart: bad (experimental.chat.system.transform): the plugin process shared is gone: a frame of 2147483647 bytes is over the limit of 67108864
      params  bad lost good ok | bad lost good ok
              bad apart: bad (chat.params): the plugin process shared is gone: a frame of 2147483647 bytes is over the limit of 67108864
      before  bad lost good ok | bad lost good ok
              bad apart: bad (tool.execute.before): the plugin process shared is gone: a frame of 2147483647 bytes is over the limit of 67108864
      tool    plugin.tool_lost | plugin.tool_lost
              bad apart: tool act of bad: the plugin process shared is gone: a frame of 2147483647 bytes is over the limit of 67108864
      load    
              failed plugin.crashed: plugin bad ended its process during server: the plugin process shared is gone: a frame of 2147483647 bytes is over the limit of 67108864
    half_a_frame
      system  bad timeout good ok | bad timeout good ok
              bad apart: bad (experimental.chat.system.transform) did not answer within 700 ms
      params  bad timeout good ok | bad timeout good ok
              bad apart: bad (chat.params) did not answer within 700 ms
      before  bad timeout good ok | bad timeout good ok
              bad apart: bad (tool.execute.before) did not answer within 700 ms
      tool    plugin.tool_timeout | plugin.tool_timeout
              bad apart: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
      load    
              failed plugin.hung: plugin bad did not finish its server within 2000 ms
    hello_again
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn values() {
    let told = table(&[
        "cycle",
        "bigint",
        "nan",
        "surrogate",
        "deletes",
        "types",
        "nulls",
        "input",
        "later",
        "freezes",
        "getter",
    ])
    .await;
    insta::assert_snapshot!(told, @r"
    cycle
      system  bad error good ok | bad error good ok
      params  bad error good ok | bad error good ok
      before  bad error blocked | bad error blocked
      tool    plugin.tool | plugin.tool
      load    
    bigint
      system  bad error good ok | bad error good ok
      params  bad error good ok | bad error good ok
      before  bad error blocked | bad error blocked
      tool    plugin.tool | plugin.tool
      load    
    nan
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    plugin.tool | plugin.tool
      load    
    surrogate
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    � | �
      load    
    deletes
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load    
    types
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    plugin.tool | plugin.tool
      load    
    nulls
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    plugin.tool | plugin.tool
      load    
    input
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load    
    later
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load    
    freezes
      system  bad ok good ok | bad ok good ok
      params  bad ok good ok | bad ok good ok
      before  bad ok good ok | bad ok good ok
      tool    done | done
      load    
    getter
      system  bad error good ok | bad error good ok
      params  bad error good ok | bad error good ok
      before  bad error blocked | bad error blocked
      tool    done | done
      load
    ");
}
