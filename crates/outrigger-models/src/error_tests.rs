use super::*;

/// A local server that is not running is given up sooner than an overloaded provider.
#[test]
fn a_refused_connection_to_this_machine_is_retried_twice() {
    let policy = RetryPolicy::default();
    let error = |url: &str, message: &str| ModelError::Connect {
        provider: "local".to_owned(),
        url: url.to_owned(),
        message: message.to_owned(),
        lookup: None,
    };
    let refused = "tcp connect error: Connection refused (os error 111)";
    for (url, message, retries) in [
        ("http://127.0.0.1:11434/v1", refused, 2),
        ("http://localhost:11434/v1", refused, 2),
        ("http://[::1]:11434/v1", refused, 2),
        (
            "http://127.0.0.1:11434/v1",
            "connection reset",
            policy.max_retries,
        ),
        ("https://example.com/v1", refused, policy.max_retries),
    ] {
        assert_eq!(error(url, message).max_retries(&policy), retries, "{url}");
    }
    let hint = error("http://127.0.0.1:11434/v1", refused).hint();
    assert!(hint.is_some_and(|it| it.contains("`provider.local.options.baseURL`")));
}
