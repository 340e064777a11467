//! Resource limits of a plugin process, and that the limit names itself.

use std::time::Duration;

use outrigger_plugins::{Notice, ProcessLimits};
use serde_json::json;

use crate::support::*;

/// Restarts with their causes.
fn restarts(project: &Project) -> Vec<String> {
    let notices = project.notices.lock().unwrap();
    notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Restart { cause, .. } => Some(cause.clone()),
            _ => None,
        })
        .collect()
}

/// Limits that were reported and did not end the process.
async fn notices_of(project: &Project, what: &str) -> String {
    let near = || {
        let notices = project.notices.lock().unwrap();
        notices.iter().find_map(|notice| match notice {
            Notice::Limit { plugins, cause } => Some(format!("{}: {cause}", plugins.join(" "))),
            _ => None,
        })
    };
    wait_for(what, || near().is_some()).await;
    near().unwrap()
}

/// Whether a process whose command line has this word is there.
fn runs(word: &str) -> bool {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(word))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_takes_too_much_is_stopped_and_started_again() {
    let grows = r#"globalThis.kept = []
        const more = () => { globalThis.kept.push(Buffer.alloc(32 << 20, 1)); setTimeout(more, 100) }; more()"#;
    let spins = "setTimeout(() => { for (;;) {} }, 50)";
    let forks = r#"const { spawn } = await import("node:child_process")
        for (let n = 0; n < 12; n++) spawn("sleep", ["98761"], { stdio: "ignore" })"#;
    for (what, code, names) in [
        ("memory", grows, "limits.plugin_memory_mb"),
        ("a spin in a timer", spins, "of a core for"),
        ("children", forks, "limits.plugin_processes"),
    ] {
        let mut project = Project::new();
        project.settings.limits = ProcessLimits {
            memory: 600 << 20,
            processes: 8,
            // A busy machine gives it little of a core; the others use some, too, and are to meet their own limit.
            busy_percent: if code == spins { 3 } else { 100 },
            busy_slow: Duration::from_secs(2),
            busy_stop: Duration::from_secs(4),
            ..ProcessLimits::default()
        };
        let source = format!(
            r#"export default async () => ({{ "experimental.chat.system.transform": async (input, output) => {{
                output.system.push("ok"); if (input.fault) {{ {code} }} }} }})"#
        );
        let plugins = project.load(vec![project.plugin("greedy", &source)]).await;
        let input = json!({"fault": true});
        let first = run(&plugins, "llm.before_system", input, json!({"system": []})).await;
        assert_eq!(summary(&first), "ok | greedy ok", "{what}");
        wait_for(what, || !restarts(&project).is_empty()).await;
        let causes = restarts(&project);
        assert!(causes[0].contains(names), "{what}: {causes:?}");
        assert_eq!(summary(&system(&plugins).await), "ok | greedy ok", "{what}");
        wait_for("what it started is gone", || !runs("98761")).await;
        plugins.dispose(Duration::from_secs(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn open_files_are_limited_and_the_plugin_sees_it() {
    let mut project = Project::new();
    project.settings.limits.files = 128;
    let leaks = r#"import { openSync } from "node:fs"
        export default async () => ({ "experimental.chat.system.transform": (input, output) => {
            try { for (let n = 0; n < 1000; n++) openSync("/dev/null") } catch (error) { output.system.push(error.code) } } })"#;
    let plugins = project.load(vec![project.plugin("leaks", leaks)]).await;
    assert_eq!(summary(&system(&plugins).await), "EMFILE | leaks ok");
    // The channel was there before, so it answers still.
    assert_eq!(summary(&system(&plugins).await), "EMFILE | leaks ok");
    let limit = notices_of(&project, "the limit is reported").await;
    assert!(
        limit.starts_with("leaks: it has 12")
            && limit.ends_with(" files open of the 128 of limits.plugin_open_files"),
        "{limit}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_uses_is_in_the_list() {
    let project = Project::new();
    let plugins = project
        .load(vec![project.plugin("a", &appender("a"))])
        .await;
    wait_for("a reading", || status(&plugins, "a").usage.is_some()).await;
    let usage = status(&plugins, "a").usage.unwrap();
    assert!(
        usage.rss > 1 << 20 && usage.processes == 1 && usage.cpu_ms > 0,
        "{usage:?}"
    );
}

/// `nice` of a process.
fn nice(pid: u32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields
        .split_whitespace()
        .nth(16)
        .map_or(0, |n| n.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_burns_cpu_for_nobody_is_put_behind_others_before_it_is_stopped() {
    let mut project = Project::new();
    project.settings.limits = ProcessLimits {
        // A busy machine gives it little.
        busy_percent: 3,
        busy_slow: Duration::from_secs(2),
        busy_stop: Duration::from_secs(60),
        ..ProcessLimits::default()
    };
    // In slices, so that it answers still.
    let burns = r#"const burn = () => { const end = Date.now() + 50; while (Date.now() < end); setTimeout(burn, 1) }
        export default async () => ({ "experimental.chat.system.transform": (input, output) => {
            if (input.fault) burn(); output.system.push("ok") } })"#;
    let plugins = project.load(vec![project.plugin("burns", burns)]).await;
    let pid = status(&plugins, "burns").pid.unwrap();
    assert!(nice(pid) < 10);
    let fault = json!({"fault": true});
    run(&plugins, "llm.before_system", fault, json!({"system": []})).await;
    wait_for("it is put behind others", || nice(pid) == 10).await;
    let limit = notices_of(&project, "it is reported").await;
    assert!(limit.starts_with("burns: it has used "), "{limit}");
    assert_eq!(summary(&system(&plugins).await), "ok | burns ok");
    assert_eq!(restarts(&project), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_grows_faster_than_the_watch_is_held_by_the_control_group() {
    if outrigger_sandbox::cgroup::Cgroup::new(1 << 30).is_none() {
        eprintln!("no control group can be made here");
        return;
    }
    let mut project = Project::new();
    project.settings.limits.memory = 300 << 20;
    // All at once, and it does not come back before.
    let grows = r#"export default async () => ({ "experimental.chat.system.transform": (input, output) => {
        if (input.fault) { const all = []; for (let n = 0; n < 40; n++) all.push(Buffer.alloc(16 << 20, 1)) }
        output.system.push("ok") } })"#;
    let plugins = project.load(vec![project.plugin("grows", grows)]).await;
    let fault = json!({"fault": true});
    run(&plugins, "llm.before_system", fault, json!({"system": []})).await;
    wait_for("a restart", || !restarts(&project).is_empty()).await;
    let causes = restarts(&project);
    assert!(causes[0].contains("limits.plugin_memory_mb"), "{causes:?}");
    assert_eq!(summary(&system(&plugins).await), "ok | grows ok");
    plugins.dispose(Duration::from_secs(5)).await;
}
