//! What the feature flags switch off (A12). Those of self-healing and the breaker are in `faults.rs` and `breaker.rs`.

use serde_json::json;

use crate::support::*;

/// Says when its handlers begin and end, to everyone in the process, and tells all of it in the system prompt.
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
