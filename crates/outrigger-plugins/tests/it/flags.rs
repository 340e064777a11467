//! Effects of switching feature flags off (A12). Those of self-healing and the breaker are in `faults.rs` and
//! `breaker.rs`.

use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::PipelineContext;
use outrigger_protocol::history::HistoryMessage;
use outrigger_protocol::hook::CarriedBy;
use outrigger_protocol::turn::HookPayload;
use serde_json::json;

use crate::support::*;

/// Returns a plugin that reports when its handlers start and end, to everyone in the process, and returns all reports
/// in the system prompt.
fn speaker(name: &str) -> String {
    format!(
        r#"const said = (globalThis.said ??= [])
        const slow = async () => {{ said.push("{name} in"); await new Promise((go) => setTimeout(go, 100)); said.push("{name} out") }}
        export default async () => ({{
            "message.completed": slow,
            "chat.params": slow,
            "experimental.chat.system.transform": (input, output) => {{ output.system.push(...said.splice(0)) }} }})"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn without_plugin_seq_hooks_observers_run_at_once_and_others_never() {
    for (seq, point, expected) in [
        (true, "message.completed", "a in a out b in b out"),
        (false, "message.completed", "a in b in a out b out"),
        (true, "chat.params", "a in a out b in b out"),
        (false, "chat.params", "a in a out b in b out"),
    ] {
        let mut project = Project::new();
        project.settings.seq_hooks = seq;
        let specs = ["a", "b"].map(|name| project.plugin(name, &speaker(name)));
        let plugins = project.load(specs.to_vec()).await;
        let output = json!({"kept": 1});
        let result = run(&plugins, point, json!({}), output.clone()).await;
        assert_eq!(result.outputs, [output], "{point}");
        let records: Vec<String> = result
            .records
            .iter()
            .map(|record| format!("{} {}", record.plugin, record.outcome))
            .collect();
        assert_eq!(records, ["a ok", "b ok"], "{point}");
        assert_eq!(
            summary(&system(&plugins).await),
            format!("{expected} | a ok, b ok"),
            "seq {seq} at {point}"
        );
    }
}

/// The transfer of a large conversation, the second time with one message more.
#[tokio::test(flavor = "multi_thread")]
async fn large_payloads_travel_as_the_flags_say() {
    use CarriedBy::{File, Inline, Mirror};
    let source = r#"export default async () => ({ "experimental.chat.messages.transform": async () => {} })"#;
    for (files, mirror, ways) in [
        (true, true, [Mirror, Mirror]),
        (true, false, [File, File]),
        (false, true, [Mirror, Mirror]),
        (false, false, [Inline, Inline]),
    ] {
        let mut project = Project::new();
        project.settings.file_ipc = files;
        project.settings.mirror = mirror;
        let plugins = project.load(vec![project.plugin("a", source)]).await;
        let mut taken: Vec<CarriedBy> = Vec::new();
        for count in [3, 4] {
            let message = |n: usize| json!({ "info": { "id": format!("msg_{n}") }, "parts": [{ "text": "x".repeat(100_000) }] });
            let history = (0..count)
                .map(|n| HistoryMessage::from(message(n)))
                .collect();
            let item = HookPayload::with_history(json!({}), history);
            let context = PipelineContext {
                session: Some("ses_1".into()),
                ..PipelineContext::default()
            };
            let point = HookPoint::LlmBeforeMessages;
            let result = plugins.pipeline().run(point, vec![item], context).await;
            taken.push(result.records[0].carried.unwrap().way);
        }
        assert_eq!(taken, ways, "files {files}, mirror {mirror}");
    }
}
