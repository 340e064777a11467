//! `apply_patch`: which models are offered it. For the outcome of a call, see `patch.rs` of
//! outrigger-cli.

use outrigger_test_support::model::{call, done, turn};
use serde_json::{Value, json};

use crate::harness::Harness;

/// Sets the name under which the provider knows the project's model.
fn named(api: &str) -> Value {
    json!({ "provider": { "mock": { "models": { "m1": { "id": api } } } } })
}

/// Runs a whole turn, and returns the tools offered to the model.
async fn offered(harness: &Harness) -> Vec<String> {
    harness.prompt(&harness.session().await, "hi").await;
    harness.mock.last().tools()
}

#[tokio::test(flavor = "multi_thread")]
async fn models_that_are_trained_on_patches_get_it_in_place_of_edit_and_write() {
    for (api, patches) in [
        ("m1", false),
        ("gpt-5.1-codex", true),
        ("openai/gpt-5", true),
        ("gpt-4o", false),
        ("gpt-oss-120b", false),
        ("claude-sonnet-4-5", false),
    ] {
        let tools = offered(&Harness::new([done()], named(api)).await).await;
        for (tool, there) in [
            ("apply_patch", patches),
            ("edit", !patches),
            ("write", !patches),
            ("read", true),
            ("lsp", false),
        ] {
            assert_eq!(tools.contains(&tool.to_owned()), there, "{api}: {tool}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_against_editing_takes_it_away() {
    let text = "*** Begin Patch\n*** Delete File: hello.txt\n*** End Patch";
    let patch = turn([call("apply_patch", json!({ "patchText": text }))]);
    let mut config = named("gpt-5");
    config["permission"] = json!({ "edit": "deny" });
    let harness = Harness::new([patch, done()], config).await;
    assert!(!offered(&harness).await.contains(&"apply_patch".to_owned()));
    assert_eq!(harness.read("hello.txt"), "hi there\n");
}
