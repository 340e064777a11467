//! Credentials added while the agent runs.

use serde_json::json;

use crate::harness::Harness;

/// Does not look like a key: only a reader who knows it can remove it.
const KEY: &str = "a horse that nobody else has";

#[tokio::test]
async fn the_audit_does_not_hold_one_that_was_stored_since() {
    let h = Harness::new([], json!({})).await;
    let cleaned = || {
        let mut text = format!("it said: {KEY}");
        h.agent.store().redactor().clean(&mut text);
        text
    };
    assert!(cleaned().contains(KEY));
    let credential = json!({ "type": "api", "key": KEY });
    h.ok("PUT", "/auth/mock", credential).await;
    assert!(!cleaned().contains(KEY));
}
