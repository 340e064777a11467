//! Subagents of subagents.

use outrigger_test_support::model::{call, done, text, turn};
use serde_json::{Value, json};

use crate::harness::Harness;

fn task(agent: &str) -> Value {
    let args = json!({ "description": "job", "prompt": format!("Job of {agent}"), "subagent_type": agent });
    turn([call("task", args)])
}

#[tokio::test(flavor = "multi_thread")]
async fn they_go_as_deep_as_the_configuration_says() {
    let refused = "A subagent at depth 1 may not start another one: the limit is 1.";
    for (depth, published) in [(None, refused), (Some(2), "inner says done")] {
        let mut turns = vec![task("lead"), task("general")];
        turns.extend(depth.map(|_| text("inner says done")));
        turns.extend([text("outer says done"), done()]);
        let lead = json!({ "mode": "subagent", "description": "leads", "permission": { "task": "allow" } });
        let mut config = json!({ "agent": { "lead": lead } });
        if let Some(depth) = depth {
            config["subagent_depth"] = json!(depth);
        }
        let harness = Harness::new(turns, config).await;
        harness.prompt(&harness.session().await, "delegate").await;
        let answers: Vec<String> = harness
            .mock
            .requests()
            .iter()
            .filter_map(|request| request.texts("tool").pop())
            .collect();
        assert!(answers[0].contains(published), "{depth:?}: {answers:#?}");
        assert!(answers[1].contains("outer says done"), "{answers:#?}");
    }
}
