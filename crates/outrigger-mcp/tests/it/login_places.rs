//! Where the secrets of a login are sent: to the authorization server of that login, whatever the MCP server says later.

use outrigger_mcp::{LoginSettings, McpError, McpServers, State};
use serde_json::{Value, json};

use crate::logins::{Locked, call, get};
use crate::support::{entries, options};

/// An MCP server makes us ask for the metadata as often as it likes, so it can have the identity provider refuse us.
#[tokio::test]
async fn a_provider_that_does_not_answer_has_no_secret_sent_elsewhere() {
    let secrets = json!({"clientId": "cid", "clientSecret": "client-secret"});
    let locked = Locked::new(&["apart"], secrets).await;
    let servers = locked.start().await;
    assert_eq!(locked.log_in(&servers).await, Ok(State::Connected));
    let provider = get(&format!("{}/provider", locked.base)).await;
    let mut list = Vec::new();
    for status in [400, 403, 404, 405, 410, 429, 500] {
        locked.fail("login", status).await;
        get(&format!("{}/expire", locked.base)).await;
        let error = call(&servers).await.unwrap_err().to_string();
        list.push(format!(
            "{status}: {}",
            error.replace(&provider, "PROVIDER")
        ));
    }
    insta::assert_snapshot!(list.join("\n"), @"
    400: MCP server m: the login failed: PROVIDER/.well-known/oauth-authorization-server/login answered HTTP 400 Bad Request
    403: MCP server m: the login failed: PROVIDER/.well-known/oauth-authorization-server/login answered HTTP 403 Forbidden
    404: MCP server m: the login failed: its authorization server PROVIDER/login has no metadata, which name where it logs in
    405: MCP server m: the login failed: its authorization server PROVIDER/login has no metadata, which name where it logs in
    410: MCP server m: the login failed: its authorization server PROVIDER/login has no metadata, which name where it logs in
    429: MCP server m: the login failed: PROVIDER/.well-known/oauth-authorization-server/login answered HTTP 429 Too Many Requests
    500: MCP server m: the login failed: PROVIDER/.well-known/oauth-authorization-server/login answered HTTP 500 Internal Server Error
    ");
    let seen = locked.seen().await;
    assert!(!seen.contains("stolen"), "{seen}");
    assert!(!seen.contains("refresh_token"), "{seen}");
    // The login is not lost.
    locked.fail("login", 0).await;
    assert_eq!(call(&servers).await, Ok(json!("let in")));
}

/// One that is older than the metadata (RFC 9728 and 8414) is its own authorization server, with the usual names.
#[tokio::test]
async fn a_server_without_metadata_has_the_usual_names() {
    for (resource, login) in [(404, 404), (401, 404), (405, 410), (404, 0)] {
        let locked = Locked::new(&[], json!({})).await;
        let servers = locked.start().await;
        locked.fail("resource", resource).await;
        locked.fail("login", login).await;
        let got = locked.log_in(&servers).await;
        assert_eq!(got, Ok(State::Connected), "{resource} {login}");
        get(&format!("{}/expire", locked.base)).await;
        assert_eq!(call(&servers).await, Ok(json!("let in")));
    }
}

#[tokio::test]
async fn metadata_that_cannot_be_read_are_named() {
    let mut list = Vec::new();
    for what in ["resource", "login"] {
        for status in [429, 403, 500] {
            let locked = Locked::new(&[], json!({})).await;
            let servers = locked.start().await;
            locked.fail(what, status).await;
            let error = locked.log_in(&servers).await.unwrap_err().to_string();
            list.push(error.replace(&locked.base, "BASE"));
            assert_eq!(locked.seen().await, "[]");
        }
    }
    insta::assert_snapshot!(list.join("\n"), @"
    MCP server m: the login failed: BASE/.well-known/oauth-protected-resource/mcp answered HTTP 429 Too Many Requests
    MCP server m: the login failed: BASE/.well-known/oauth-protected-resource/mcp answered HTTP 403 Forbidden
    MCP server m: the login failed: BASE/.well-known/oauth-protected-resource/mcp answered HTTP 500 Internal Server Error
    MCP server m: the login failed: BASE/.well-known/oauth-authorization-server/login answered HTTP 429 Too Many Requests
    MCP server m: the login failed: BASE/.well-known/oauth-authorization-server/login answered HTTP 403 Forbidden
    MCP server m: the login failed: BASE/.well-known/oauth-authorization-server/login answered HTTP 500 Internal Server Error
    ");
}

/// The metadata of an issuer that the user accepts are where the MCP server says, so the endpoint is compared as well.
#[tokio::test]
async fn a_login_is_renewed_where_it_was_made() {
    let locked = Locked::new(&["mixed"], json!({})).await;
    let mut options = options(locked.dir.path());
    let accepted = LoginSettings {
        issuer: Some("https://bank.test".to_owned()),
        ..LoginSettings::default()
    };
    options.logins = [("m".to_owned(), accepted)].into();
    let servers = McpServers::start(&entries(json!({"m": locked.entry})), options);
    servers.ready().await;
    assert_eq!(locked.log_in(&servers).await, Ok(State::Connected));
    get(&format!("{}/endpoint?at=/elsewhere/token", locked.base)).await;
    get(&format!("{}/expire", locked.base)).await;
    let error = call(&servers).await.unwrap_err();
    assert!(matches!(error, McpError::NeedsAuth { .. }), "{error}");
    let seen = locked.seen().await;
    assert!(!seen.contains("elsewhere"), "{seen}");
    // A login by the user goes there, with a client of its own.
    assert_eq!(locked.log_in(&servers).await, Ok(State::Connected));
    let seen = locked.seen().await;
    assert_eq!(seen.matches("register").count(), 2, "{seen}");
}

#[tokio::test]
async fn tokens_that_do_not_say_where_they_are_renewed_need_a_login() {
    let locked = Locked::new(&[], json!({})).await;
    let servers = locked.start().await;
    locked.log_in(&servers).await.unwrap();
    for key in ["tokenEndpoint", "issuer"] {
        let path = locked.dir.path().join("mcp-auth.json");
        let mut kept: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let tokens = kept["m"]["tokens"].as_object_mut().unwrap();
        assert!(tokens.remove(key).is_some());
        std::fs::write(&path, kept.to_string()).unwrap();
        get(&format!("{}/expire", locked.base)).await;
        let error = call(&servers).await.unwrap_err();
        assert!(matches!(error, McpError::NeedsAuth { .. }), "{error}");
        assert!(!locked.seen().await.contains("refresh_token"));
        assert_eq!(locked.log_in(&servers).await, Ok(State::Connected));
    }
}

/// A client that logs in itself does so where it did the first time; nobody looks where its secret goes.
#[tokio::test]
async fn a_client_that_logs_in_itself_stays_with_its_provider() {
    let secrets = json!({"clientId": "cid", "clientSecret": "client-secret"});
    let locked = Locked::new(&["apart"], secrets).await;
    let mut options = options(locked.dir.path());
    let machine = LoginSettings {
        url: locked.entry["url"].as_str().map(str::to_owned),
        client_credentials: true,
        ..LoginSettings::default()
    };
    options.logins = [("m".to_owned(), machine)].into();
    let servers = McpServers::start(&entries(json!({"m": locked.entry})), options);
    servers.ready().await;
    assert_eq!(call(&servers).await, Ok(json!("let in")));
    // The MCP server calls itself the authorization server from now on.
    locked.fail("resource", 404).await;
    locked.fail("login", 404).await;
    get(&format!("{}/expire", locked.base)).await;
    let error = call(&servers).await.unwrap_err().to_string();
    insta::assert_snapshot!(error.replace(&locked.base, "BASE"), @"MCP server m: the login failed: its authorization server is another one than at the login: BASE/ (`outrigger mcp logout m` accepts it)");
    let seen = locked.seen().await;
    assert!(!seen.contains("stolen"), "{seen}");
}
