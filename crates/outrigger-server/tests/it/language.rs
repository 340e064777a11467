//! `/lsp`, `/formatter`, `/find/symbol`.

use serde_json::{Value, json};

use crate::harness::Harness;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_on_by_default() {
    let harness = Harness::new([], json!({})).await;
    for path in ["/lsp", "/formatter", "/find/symbol?query=x"] {
        assert_eq!(
            harness.call("GET", path, Value::Null).await,
            (200, json!([])),
            "{path}"
        );
    }
    assert_eq!(
        harness.call("GET", "/find/symbol", Value::Null).await.0,
        400
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn formatters_and_which_would_run() {
    let config = json!({ "lsp": true, "formatter": {
        "acme": { "command": ["acme", "$FILE"], "extensions": [".acme"] },
        "rustfmt": { "disabled": true },
    } });
    let harness = Harness::new([], config).await;
    assert_eq!(
        harness.call("GET", "/lsp", Value::Null).await,
        (200, json!([]))
    );
    let (status, list) = harness.call("GET", "/formatter", Value::Null).await;
    let list = list.as_array().unwrap();
    let of = |name: &str| list.iter().find(|f| f["name"] == name).cloned();
    assert_eq!(status, 200);
    assert_eq!(
        of("acme"),
        Some(json!({"name": "acme", "extensions": [".acme"], "enabled": true}))
    );
    assert_eq!(
        (of("rustfmt"), of("prettier").unwrap()["enabled"].clone()),
        (None, json!(false))
    );
}
