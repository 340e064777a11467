//! Plugins share a process until one of them hangs or crashes it.

use std::time::Duration;

use outrigger_config::settings::Isolation;
use outrigger_plugins::{Notice, PluginRules, Plugins};
use serde_json::json;

use crate::support::*;

fn faulty(fault: &str) -> String {
    format!(
        r#"export default async () => ({{ "experimental.chat.system.transform": async (input, output) => {{
            if (input.fault) {{ {fault} }}
            output.system.push("faulty") }} }})"#
    )
}

async fn call(plugins: &Plugins, fault: bool) -> String {
    let input = json!({ "fault": fault });
    let output = json!({"system": []});
    summary(&run(plugins, "llm.before_system", input, output).await)
}

/// Which plugins live together: `a+b c`, and the generation of each process.
fn processes(plugins: &Plugins) -> String {
    let mut by_pid: Vec<(u32, Vec<String>, u64)> = Vec::new();
    for status in plugins.list() {
        let Some(pid) = status.pid else { continue };
        match by_pid.iter_mut().find(|(other, ..)| *other == pid) {
            Some((_, names, _)) => names.push(status.id),
            None => by_pid.push((pid, vec![status.id], status.generation)),
        }
    }
    by_pid
        .iter()
        .map(|(_, names, generation)| format!("{}:{generation}", names.join("+")))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quarantined(project: &Project) -> String {
    let notices = project.notices.lock().unwrap();
    notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Quarantine { plugin, .. } => Some(plugin.as_str()),
            _ => None,
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_culprit_gets_a_process_of_its_own_and_the_others_come_back() {
    for (fault, outcome) in [
        ("for (;;) {}", "timeout"),
        ("await new Promise(() => {})", "timeout"),
        ("process.exit(3)", "lost"),
        ("process.kill(process.pid, 'SIGKILL')", "lost"),
    ] {
        let mut project = Project::new();
        if outcome == "timeout" {
            project.hook_deadline("faulty", HANGS);
        }
        let specs = vec![
            project.plugin("before", &appender("before")),
            project.plugin("faulty", &faulty(fault)),
            project.plugin("after", &appender("after")),
        ];
        let plugins = project.load(specs).await;
        assert_eq!(processes(&plugins), "before+faulty+after:1");
        assert_eq!(
            call(&plugins, true).await,
            format!("before1 after1 | before ok, faulty {outcome}, after ok"),
            "{fault}"
        );
        wait_for("the culprit is there again", || {
            processes(&plugins) == "before+after:2 faulty:2"
        })
        .await;
        let why = status(&plugins, "faulty").quarantine.unwrap();
        assert!(
            why.starts_with("faulty (experimental.chat.system.transform)"),
            "{why}"
        );
        assert_eq!(quarantined(&project), "faulty");
        // From now on it takes nobody with it.
        assert_eq!(
            call(&plugins, true).await,
            format!("before1 after2 | before ok, faulty {outcome}, after ok"),
            "{fault}"
        );
        wait_for("the culprit is there again", || {
            processes(&plugins) == "before+after:2 faulty:3"
        })
        .await;
        plugins.dispose(Duration::from_secs(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_outside_any_call_splits_the_process() {
    let mut project = Project::new();
    project.rules(
        "stays",
        PluginRules {
            isolation: Isolation::Shared,
            ..PluginRules::default()
        },
    );
    let timer = r#"export default async () => ({ "experimental.chat.system.transform": (input, output) => {
        if (input.fault) setTimeout(() => process.kill(process.pid, 'SIGKILL'), 20)
        output.system.push("timer") } })"#;
    let specs = vec![
        project.plugin("first", &appender("first")),
        project.plugin("timer", timer),
        project.plugin("stays", &appender("stays")),
    ];
    let plugins = project.load(specs).await;
    assert_eq!(
        call(&plugins, true).await,
        "first1 timer stays1 | first ok, timer ok, stays ok"
    );
    wait_for("the process has ended", || processes(&plugins).is_empty()).await;
    // Nothing of theirs was running: no call fails.
    assert_eq!(
        call(&plugins, false).await,
        "first1 timer stays1 | first ok, timer ok, stays ok"
    );
    assert_eq!(processes(&plugins), "first+stays:2 timer:2");
    assert_eq!(quarantined(&project), "timer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_to_share_shares_whatever_it_does() {
    let mut project = Project::new();
    project.rules(
        "faulty",
        PluginRules {
            isolation: Isolation::Shared,
            ..PluginRules::default()
        },
    );
    let specs = vec![
        project.plugin("faulty", &faulty("process.exit(1)")),
        project.plugin("other", &appender("other")),
    ];
    let plugins = project.load(specs).await;
    call(&plugins, true).await;
    assert_eq!(
        call(&plugins, false).await,
        "faulty other2 | faulty ok, other ok"
    );
    assert_eq!(processes(&plugins), "faulty+other:2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spin_with_several_calls_open_blames_nobody_alone() {
    let mut project = Project::new();
    project.settings.deadlines.normal = HANGS;
    // `waits` has a call open and has done nothing wrong; `spins` blocks the thread from a timer while it has one open too.
    let waits = r#"export default async () => ({ "chat.params": () => new Promise((done) => setTimeout(done, 1000)) })"#;
    let spins = r#"export default async () => ({ "chat.headers": async () => {
        await new Promise((done) => setTimeout(done, 100)); for (;;) {} } })"#;
    let specs = vec![
        project.plugin("waits", waits),
        project.plugin("spins", spins),
    ];
    let plugins = project.load(specs).await;
    let (params, headers) = tokio::join!(
        run(&plugins, "chat.params", json!({}), json!({"options": {}})),
        run(&plugins, "chat.headers", json!({}), json!({"headers": {}})),
    );
    let outcomes = [&params.records[0].outcome, &headers.records[0].outcome];
    for outcome in outcomes {
        assert!(matches!(outcome.name(), "timeout" | "lost"), "{outcome}");
    }
    wait_for("both are there", || {
        processes(&plugins) == "waits:2 spins:2"
    })
    .await;
    // Each for itself, and now it is plain.
    let params = run(&plugins, "chat.params", json!({}), json!({"options": {}}));
    let headers = run(&plugins, "chat.headers", json!({}), json!({"headers": {}}));
    let (params, headers) = tokio::join!(params, headers);
    assert_eq!(params.records[0].outcome.name(), "ok");
    assert_eq!(headers.records[0].outcome.name(), "timeout");
}
