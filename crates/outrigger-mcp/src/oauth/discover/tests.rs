use super::*;

#[test]
fn a_challenge_is_read() {
    let read = |text: &str| {
        let challenge = Challenge::read(text);
        (challenge.resource_metadata, challenge.scope)
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        read(r#"Bearer resource_metadata="https://a/b", scope="x y""#),
        (some("https://a/b"), some("x y"))
    );
    assert_eq!(
        read("Bearer scope=x, resource_metadata=https://a"),
        (some("https://a"), some("x"))
    );
    assert_eq!(read("Basic realm=\"x\""), (None, None));
}

#[test]
fn metadata_are_those_of_the_server_that_was_asked() {
    let url = |text: &str| Url::parse(text).unwrap();
    for (named, place, is_taken) in [
        ("https://a.test/t1/mcp", "https://cdn.test/meta.json", true),
        (
            "https://a.test/t1/mcp/",
            "https://a.test/t1/meta.json",
            true,
        ),
        (
            "https://a.test",
            "https://a.test/.well-known/oauth-protected-resource",
            true,
        ),
        (
            "https://a.test/t1",
            "https://a.test/.well-known/oauth-protected-resource/t1/mcp",
            true,
        ),
        // For the whole host, from a user who owns a folder there.
        ("https://a.test", "https://a.test/t1/meta.json", false),
        (
            "https://a.test",
            "https://evil.test/.well-known/oauth-protected-resource",
            false,
        ),
        (
            "https://a.test/t2/mcp",
            "https://a.test/.well-known/oauth-protected-resource",
            false,
        ),
        (
            "https://b.test/t1/mcp",
            "https://a.test/.well-known/oauth-protected-resource",
            false,
        ),
        (
            "nothing",
            "https://a.test/.well-known/oauth-protected-resource",
            false,
        ),
    ] {
        let meta = serde_json::json!({ "resource": named });
        let checked = check_resource(&meta, &url(place), &url("https://a.test/t1/mcp"));
        assert_eq!(checked.is_ok(), is_taken, "{named} at {place}: {checked:?}");
    }
    let none = check_resource(
        &Value::Null,
        &url("https://a.test/"),
        &url("https://a.test/"),
    );
    assert!(none.is_err());
}

#[test]
fn an_authorization_server_says_its_own_name() {
    let tenant = Url::parse("https://auth.test/tenant").unwrap();
    for (named, accepted, is_taken) in [
        (Some("https://auth.test/tenant"), None, true),
        (Some("https://auth.test/tenant/"), None, true),
        (Some("https://auth.test"), None, true),
        (None, None, true),
        (Some("https://auth.test/other"), None, false),
        (Some("https://bank.test"), None, false),
        (Some("http://auth.test/tenant"), None, false),
        (Some("https://auth.test:444/tenant"), None, false),
        (Some("https://auth.test.evil.test/tenant"), None, false),
        (Some("text"), None, false),
        (Some("https://bank.test/"), Some("https://bank.test"), true),
        (
            Some("https://auth.test/tenant"),
            Some("https://bank.test"),
            false,
        ),
        (None, Some("https://auth.test/tenant/"), true),
        // The name that the user accepts is not given to one that says none.
        (None, Some("https://bank.test"), false),
    ] {
        let checked = checked_issuer(&tenant, named, accepted);
        assert_eq!(checked.is_ok(), is_taken, "{named:?}: {checked:?}");
    }
}

/// A server on the internet cannot have addresses of this machine or its network requested, by name
/// or by a redirect.
#[tokio::test]
async fn a_server_elsewhere_names_nothing_of_this_machine() {
    let far = Near(false);
    for place in [
        "http://127.0.0.1:9901/admin/delete?x=1",
        "http://localhost/x",
        "https://169.254.169.254/latest/",
        "https://10.0.0.1/",
        "https://[::1]/",
    ] {
        assert!(far.acceptable(place).is_err(), "{place}");
    }
    assert!(far.acceptable("https://auth.test/").is_ok());
    let near = Near::of(&Url::parse("http://127.0.0.1:1/mcp").unwrap()).await;
    assert!(near.acceptable("http://127.0.0.1:2/login").is_ok());
    assert!(
        !Near::of(&Url::parse("https://8.8.8.8/mcp").unwrap())
            .await
            .0
    );
    // By a name that resolves to this machine.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let named = Url::parse(&format!("http://{}:{port}/x", name.trim())).unwrap();
    if outrigger_net::leads_to_local(name.trim()).await {
        let way = LoginWay {
            way: None,
            near: far,
        };
        let got = json(&named, &way).await;
        let says = "an address of this machine or its network";
        assert!(
            got.as_ref().is_err_and(|it| it.reason.contains(says)),
            "{got:?}"
        );
        let sent = post(&named, &way, "text/plain", None, String::new()).await;
        assert!(sent.is_err_and(|it| it.contains(says)));
    }
    let redirect = |text: &str| Redirects::Public.check(&Url::parse(text).unwrap());
    assert!(redirect("http://169.254.169.254/latest/").is_err());
    assert!(redirect("http://localhost:1/").is_err());
    assert!(redirect("https://auth.test/").is_ok());
}

#[test]
fn only_safe_addresses_are_taken() {
    for good in [
        "https://a/b",
        "http://localhost:1/",
        "http://127.0.0.1/",
        "http://[::1]:3/",
    ] {
        assert!(acceptable(good).is_ok(), "{good}");
    }
    for bad in [
        "http://a/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "nothing",
    ] {
        assert!(acceptable(bad).is_err(), "{bad}");
    }
    assert!(within("/mcp", "/mcp") && within("/", "/x") && within("/mcp", "/mcp/a"));
    assert!(!within("/mcp", "/mcpx") && !within("/mcp/a", "/mcp"));
}
