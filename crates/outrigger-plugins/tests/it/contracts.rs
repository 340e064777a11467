//! Behaviour contracts (C14), layer integration: real plugin processes. docs/contracts.md has the mapping.

use std::time::Duration;

use outrigger_plugins::PluginRules;
use outrigger_protocol::hook::Decision;

use crate::support::*;

/// `BHV-AGENT-HOOK-LIFECYCLE`: by priority, then by registration, each once, each with the output of the previous one;
/// every run is recorded with its input and outcome, and a second chain starts over.
#[tokio::test(flavor = "multi_thread")]
async fn bhv_agent_hook_lifecycle() {
    let mut project = Project::new();
    let specs = ["a", "b", "c"].map(|name| project.plugin(name, &appender(name)));
    let first = PluginRules {
        priority: 1,
        ..PluginRules::default()
    };
    project.rules("c", first);
    let plugins = project.load(specs.to_vec()).await;
    let result = system(&plugins).await;
    assert_eq!(summary(&result), "c1 a1 b1 | c ok, a ok, b ok");
    let inputs: Vec<_> = result
        .records
        .iter()
        .map(|r| r.audit.input_hash.clone().unwrap())
        .collect();
    let outputs: Vec<_> = result
        .records
        .iter()
        .map(|r| r.audit.output_hash.clone().unwrap())
        .collect();
    for (n, record) in result.records.iter().enumerate() {
        assert_eq!(record.decision, Decision::Patch);
        // Three plugins in one process: the process claims which of them it was.
        assert!(record.audit.claimed);
        assert!(
            !inputs[n + 1..].contains(&inputs[n]),
            "each was given something else"
        );
        assert!(!outputs[n + 1..].contains(&outputs[n]));
    }
    let again = system(&plugins).await;
    assert_eq!(
        again.records[0].audit.input_hash.as_ref(),
        Some(&inputs[0]),
        "the same was given"
    );
    plugins.dispose(Duration::from_secs(5)).await;
}

/// `BHV-PLUGIN-FAILURE-ISOLATION`: one that throws, one that violates the rules, and one whose process exits: the others'
/// changes stand, and the next chain works.
#[tokio::test(flavor = "multi_thread")]
async fn bhv_plugin_failure_isolation() {
    let project = Project::new();
    let hook = |body: &str| {
        format!(
            "export default async () => ({{ \"experimental.chat.system.transform\": async (_, output) => {{ {body} }} }})"
        )
    };
    let specs = vec![
        project.plugin("a", &appender("a")),
        project.plugin(
            "throws",
            &hook("output.system.push('lost'); throw new Error('no')"),
        ),
        project.plugin("breaks", &hook("output.system = 'no list'")),
        project.plugin("dies", &hook("process.exit(3)")),
        project.plugin("z", &appender("z")),
    ];
    let plugins = project.load(specs).await;
    let result = system(&plugins).await;
    let what: Vec<(&str, Decision)> = result
        .records
        .iter()
        .map(|r| (r.plugin.as_str(), r.decision))
        .collect();
    assert_eq!(
        what,
        [
            ("a", Decision::Patch),
            ("throws", Decision::FailedOpen),
            ("breaks", Decision::Refused),
            ("dies", Decision::FailedOpen),
            ("z", Decision::Patch),
        ]
    );
    let system = result.outputs[0]["system"].to_string();
    assert!(
        system.contains("a1") && system.contains("z1") && !system.contains("lost"),
        "{system}"
    );
    assert_eq!(result.records[2].audit.refused, Some("shape"));
    assert_eq!(result.block, None);
    plugins.dispose(Duration::from_secs(5)).await;
}
