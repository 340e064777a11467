//! Blame for what a process does: never the plugin whose call only waits.

use std::time::Duration;

use outrigger_plugins::{Notice, Plugins};
use outrigger_protocol::diagnose::Diagnose;
use serde_json::json;

use crate::support::*;

/// Its `chat.params` starts a timer that does it a moment later, when that hook has long returned.
fn timed(fault: &str) -> String {
    format!(
        r#"export default async () => ({{
            "chat.params": (input) => {{ if (input.fault) setTimeout(() => {{ {fault} }}, 150) }},
            "experimental.chat.system.transform": (_, output) => void output.system.push("timed") }})"#
    )
}

/// Its `chat.headers` yields the thread and waits longer than its deadline would allow a spin.
const WAITS: &str = r#"export default async () => ({
    "chat.headers": (input) => new Promise((done) => setTimeout(done, input.fault ? 600 : 1)),
    "experimental.chat.system.transform": (_, output) => void output.system.push("waits") })"#;

/// Returns the causes of restarts, and the plugins that got their own process.
fn notices_of(project: &Project) -> (Vec<String>, String) {
    let notices = project.notices.lock().unwrap();
    let causes = notices.iter().filter_map(|notice| match notice {
        Notice::Restart { cause, .. } => Some(cause.clone()),
        _ => None,
    });
    let apart = notices.iter().filter_map(|notice| match notice {
        Notice::Quarantine { plugin, .. } => Some(plugin.as_str()),
        _ => None,
    });
    (causes.collect(), apart.collect::<Vec<_>>().join(" "))
}

async fn headers(plugins: &Plugins, fault: bool) -> String {
    let result = run(
        plugins,
        "chat.headers",
        json!({ "fault": fault }),
        json!({"headers": {}}),
    )
    .await;
    let record = &result.records[0];
    format!("{} {}", record.plugin, record.outcome)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_does_not_pay_for_another_plugins_timer() {
    for (fault, says, apart) in [
        // No plugin's code: both get their own process.
        (
            "for (;;) {}",
            "code that no call entered (a timer, say) did not answer",
            "waits",
        ),
        (
            "process.kill(process.pid, 'SIGKILL')",
            "is gone (signal 9)",
            "waits",
        ),
        // The stack names the culprit.
        ("process.exit(5)", "timed (process.exit): ", "timed"),
        ("process.abort()", "timed (process.abort): ", "timed"),
    ] {
        let mut project = Project::new();
        // Missed if the thread spins; otherwise only the end of the process may end the call.
        if fault.starts_with("for") {
            project.hook_deadline("waits", HANGS);
        }
        let specs = vec![
            project.plugin("timed", &timed(fault)),
            project.plugin("waits", WAITS),
        ];
        let plugins = project.load(specs).await;
        let input = json!({"fault": true});
        run(&plugins, "chat.params", input, json!({"options": {}})).await;
        assert_eq!(headers(&plugins, true).await, "waits lost", "{fault}");
        wait_for("both are there", || {
            ["timed", "waits"].map(|id| status(&plugins, id).pid.is_some()) == [true; 2]
        })
        .await;
        let (causes, quarantined) = notices_of(&project);
        assert!(causes[0].contains(says), "{fault}: {causes:?}");
        assert_eq!(quarantined, apart, "{fault}");
        assert!(status(&plugins, "waits").breakers.is_empty(), "{fault}");
        assert_ne!(
            status(&plugins, "timed").pid,
            status(&plugins, "waits").pid,
            "{fault}"
        );
        // The innocent one is available for the next call, whatever the other does.
        let input = json!({"fault": true});
        run(&plugins, "chat.params", input, json!({"options": {}})).await;
        assert_eq!(headers(&plugins, true).await, "waits ok", "{fault}");
        plugins.dispose(Duration::from_secs(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spin_behind_an_await_is_split_and_then_plain() {
    let mut project = Project::new();
    project.hook_deadline("spins", Duration::from_millis(700));
    let spins = r#"export default async () => ({ "experimental.chat.system.transform": async (input) => {
        await new Promise((done) => setTimeout(done, 50)); for (;;) {} } })"#;
    let specs = vec![
        project.plugin("spins", spins),
        project.plugin("good", &appender("good")),
    ];
    let plugins = project.load(specs).await;
    assert_eq!(
        summary(&system(&plugins).await),
        "good1 | spins lost, good ok"
    );
    let (causes, apart) = notices_of(&project);
    assert!(
        causes[0].contains("code that no call entered"),
        "{causes:?}"
    );
    assert_eq!(apart, "good");
    assert!(status(&plugins, "spins").breakers.is_empty());
    // It is alone now, so it is blamed.
    assert_eq!(
        summary(&system(&plugins).await),
        "good2 | spins timeout, good ok"
    );
    assert_eq!(status(&plugins, "spins").breakers[0].timeouts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_waits_does_not_pay_either() {
    let mut project = Project::new();
    project.settings.deadlines.tool = HANGS;
    let waits = r#"export default async () => ({ tool: { wait: { description: "waits", args: {},
        execute: () => new Promise((done) => setTimeout(() => done("done"), 700)) } } })"#;
    let specs = vec![
        project.plugin("timed", &timed("for (;;) {}")),
        project.plugin("waits", waits),
    ];
    let plugins = project.load(specs).await;
    let input = json!({"fault": true});
    run(&plugins, "chat.params", input, json!({"options": {}})).await;
    let tool = plugins.tools().remove(0).runner;
    let context = json!({"sessionID": "ses_1", "messageID": "msg_1", "callID": "call_1"});
    let context = context.as_object().unwrap().clone();
    let lost = tool
        .run(json!({}), context.clone(), None, |_| {})
        .await
        .unwrap_err();
    assert_eq!(lost.code(), "plugin.tool_timeout");
    wait_for("it is given up", || !notices_of(&project).1.is_empty()).await;
    let (causes, apart) = notices_of(&project);
    assert!(
        causes[0].contains("code that no call entered"),
        "{causes:?}"
    );
    assert_eq!(apart, "waits");
    let done = tool.run(json!({}), context, None, |_| {}).await.unwrap();
    assert_eq!(done.output, "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_being_started_does_not_pay_for_one_that_was_ready() {
    for (fault, failed) in [
        ("for (;;) {}", None),
        ("process.exit(5)", Some("timed failed plugin.crashed")),
    ] {
        let mut project = Project::new();
        project.settings.deadlines.load = if failed.is_none() { HANGS } else { PLENTY };
        // Only while the other one is started beside it.
        let timed = format!(
            r#"globalThis.here = (globalThis.here ?? 0) + 1
            export default async () => {{
                setTimeout(() => {{ if (globalThis.here > 1) {{ {fault} }} }}, 100)
                return {{ "experimental.chat.system.transform": (_, output) => void output.system.push("timed") }} }}"#
        );
        let waits = r#"globalThis.here = (globalThis.here ?? 0) + 1
            export default async () => {
                await new Promise((done) => setTimeout(done, 700))
                return { "experimental.chat.system.transform": (_, output) => void output.system.push("waits") } }"#;
        let specs = vec![
            project.plugin("timed", &timed),
            project.plugin("waits", waits),
        ];
        let plugins = project.load(specs).await;
        match failed {
            None => {
                wait_for("both are there", || {
                    listed(&plugins) == "timed active\nwaits active"
                })
                .await;
                assert_eq!(
                    summary(&system(&plugins).await),
                    "timed waits | timed ok, waits ok"
                );
            }
            Some(failed) => {
                assert_eq!(listed(&plugins), format!("{failed}\nwaits active"));
                assert_eq!(summary(&system(&plugins).await), "waits | waits ok");
            }
        }
        plugins.dispose(Duration::from_secs(5)).await;
    }
}
