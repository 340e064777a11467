//! Logins at servers that require one.

use outrigger_mcp::{AuthState, LoginSettings, McpError, McpServers, State};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_sandbox::Child;
use serde_json::{Value, json};

use crate::remote::serve;
use crate::support::{entries, options};

pub(crate) struct Locked {
    _server: Child,
    pub(crate) base: String,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) entry: Value,
}

impl Locked {
    pub(crate) async fn new(modes: &[&str], oauth: Value) -> Self {
        let (server, base) = serve("oauth.mjs", modes).await;
        let mut oauth = oauth;
        if oauth.is_object() {
            // Each test has a separate port for the browser.
            oauth["callbackPort"] = json!(outrigger_test_support::free_port());
        }
        let entry = json!({"type": "remote", "url": format!("{base}/mcp"), "oauth": oauth, "timeout": 20_000});
        Self {
            _server: server,
            base,
            dir: tempfile::tempdir().unwrap(),
            entry,
        }
    }

    pub(crate) async fn start(&self) -> McpServers {
        let servers =
            McpServers::start(&entries(json!({"m": self.entry})), options(self.dir.path()));
        servers.ready().await;
        servers
    }

    /// Logs in as a user with a browser would.
    pub(crate) async fn log_in(&self, servers: &McpServers) -> Result<State, McpError> {
        let status = servers
            .authenticate("m", async |url: &str| {
                let url = url.to_owned();
                tokio::spawn(async move { get(&url).await });
            })
            .await?;
        Ok(status.state)
    }

    pub(crate) async fn seen(&self) -> String {
        get(&format!("{}/seen", self.base)).await
    }

    /// Has the metadata of the server (`resource`) or of its authorization server (`login`) answer with a status; 0 ends that.
    pub(crate) async fn fail(&self, what: &str, status: u16) {
        get(&format!("{}/fail?what={what}&status={status}", self.base)).await;
    }
}

pub(crate) async fn get(url: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(url).send().await.unwrap().text().await.unwrap()
}

pub(crate) async fn call(servers: &McpServers) -> Result<Value, McpError> {
    let tools = servers.tools();
    let answer = tools.first().unwrap().call(&json!({})).await?;
    Ok(answer["content"][0]["text"].clone())
}

#[tokio::test]
async fn a_login_is_found_registered_and_kept() {
    let locked = Locked::new(&[], json!({})).await;
    let servers = locked.start().await;
    let status = servers.status().remove(0);
    assert_eq!(status.state, State::NeedsAuth, "{status:?}");
    insta::assert_snapshot!(status.hint.unwrap(), @"log in with `outrigger mcp auth m`, or put a token into `mcp.m.headers` in opencode.json");
    assert_eq!(servers.auth_state("m"), Some(AuthState::NotAuthenticated));
    assert_eq!(locked.log_in(&servers).await, Ok(State::Connected));
    assert_eq!(call(&servers).await, Ok(json!("let in")));
    assert_eq!(servers.auth_state("m"), Some(AuthState::Authenticated));
    insta::assert_snapshot!(locked.seen().await, @r#"[["register",1,"none"],["authorize","client-1","notes",true],["token","authorization_code","client-1"]]"#);
    // Another start needs no user.
    let again = locked.start().await;
    assert_eq!(again.status()[0].state, State::Connected);
    again.remove_auth("m").unwrap();
    assert_eq!(again.auth_state("m"), Some(AuthState::NotAuthenticated));
    let kept = std::fs::read_to_string(locked.dir.path().join("mcp-auth.json")).unwrap();
    assert_eq!(kept, "{}");
}

#[tokio::test]
async fn a_token_that_is_refused_or_expired_is_renewed_once() {
    let locked = Locked::new(&["short"], json!({})).await;
    let servers = locked.start().await;
    locked.log_in(&servers).await.unwrap();
    // It expires within the slack, so each request renews it ahead of time.
    assert_eq!(call(&servers).await, Ok(json!("let in")));
    let locked = Locked::new(&[], json!({})).await;
    let servers = locked.start().await;
    locked.log_in(&servers).await.unwrap();
    get(&format!("{}/expire", locked.base)).await;
    assert_eq!(call(&servers).await, Ok(json!("let in")));
    let seen = locked.seen().await;
    assert_eq!(seen.matches("refresh_token").count(), 1, "{seen}");
    // If that is refused too, the user must log in, and the dead token is deleted.
    get(&format!("{}/expire?refresh=1", locked.base)).await;
    let error = call(&servers).await.unwrap_err();
    assert!(matches!(error, McpError::NeedsAuth { .. }), "{error}");
    assert_eq!(servers.auth_state("m"), Some(AuthState::NotAuthenticated));
}

/// A login for additional scopes requests the existing ones as well. A login that cannot help is not requested.
#[tokio::test]
async fn more_rights_take_another_login_and_only_one() {
    let locked = Locked::new(&["more"], json!({})).await;
    let servers = locked.start().await;
    locked.log_in(&servers).await.unwrap();
    let error = call(&servers).await.unwrap_err();
    assert_eq!(error.code(), "mcp.needs_scope");
    // Another process sees it.
    let servers = locked.start().await;
    assert_eq!(locked.log_in(&servers).await, Ok(State::Connected));
    assert_eq!(call(&servers).await, Ok(json!("let in")));
    let seen = locked.seen().await;
    assert!(seen.contains(r#""notes write",true]"#), "{seen}");
    let locked = Locked::new(&["never"], json!({"scope": "write"})).await;
    let servers = locked.start().await;
    locked.log_in(&servers).await.unwrap();
    let error = call(&servers).await.unwrap_err();
    insta::assert_snapshot!(error, @"MCP server m refuses this, although the login asked for write");
}

#[tokio::test]
async fn a_client_that_is_configured_is_not_registered() {
    let locked = Locked::new(&["closed"], json!({})).await;
    let servers = locked.start().await;
    assert_eq!(
        servers.status()[0].state,
        State::NeedsClientRegistration,
        "{:?}",
        servers.status()
    );
    let error = locked.log_in(&servers).await.unwrap_err();
    assert_eq!(error.code(), "mcp.needs_client_registration");
    let locked = Locked::new(&["closed"], json!({"clientId": "mine", "scope": "own"})).await;
    let servers = locked.start().await;
    assert_eq!(servers.status()[0].state, State::NeedsAuth);
    assert_eq!(locked.log_in(&servers).await, Ok(State::Connected));
    insta::assert_snapshot!(locked.seen().await, @r#"[["authorize","mine","own",true],["token","authorization_code","mine"]]"#);
}

#[tokio::test]
async fn what_is_in_the_way_of_a_login_is_named() {
    let mut list = Vec::new();
    for (mode, oauth) in [
        ("denied", json!({})),
        ("plain", json!({})),
        ("foreign", json!({})),
        ("mixed", json!({})),
        ("answers", json!({})),
        ("names", json!({})),
        ("off", json!(false)),
    ] {
        let locked = Locked::new(&[mode], oauth).await;
        let servers = locked.start().await;
        let error = locked.log_in(&servers).await.unwrap_err().to_string();
        list.push(error.replace(&locked.base, "BASE"));
        // A code is never forwarded.
        assert!(!locked.seen().await.contains("token"), "{mode}");
        if mode == "off" {
            assert_eq!(servers.auth_state("m"), None);
        }
        for (name, code) in [("other", "mcp.unknown"), ("m", "")] {
            let error = servers.finish_auth(name, "x", None).await.unwrap_err();
            assert!(error.code().starts_with(code), "{error}");
        }
    }
    insta::assert_snapshot!(list.join("\n"), @r#"
    MCP server m: the login failed: access_denied
    MCP server m: the login failed: its authorization server does not support PKCE with S256
    MCP server m: the login failed: its metadata are those of another server: https://example.com/mcp
    MCP server m: the login failed: its authorization server BASE/login says that it is another one: https://bank.test (if both are the same service, `issuer = "https://bank.test"` under [mcp.NAME] in your own outrigger.toml accepts it)
    MCP server m: the login failed: the answer came from https://bank.test, and not from BASE/login
    MCP server m: the login failed: the answer does not say who it came from, which BASE/login always does
    MCP server m does not support OAuth
    "#);
}

/// The same for a code that a client brings, and for the user's settings of an authorization server.
#[tokio::test]
async fn an_authorization_server_is_the_one_that_was_asked() {
    let locked = Locked::new(&["mixed"], json!({})).await;
    let mut options = options(locked.dir.path());
    let said = LoginSettings {
        issuer: Some("https://bank.test".to_owned()),
        ..LoginSettings::default()
    };
    options.logins = [("m".to_owned(), said)].into();
    let servers = McpServers::start(&entries(json!({"m": locked.entry})), options);
    servers.ready().await;
    servers.start_auth("m").await.unwrap();
    let error = servers
        .finish_auth("m", "x", Some("https://evil.test"))
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("came from https://evil.test"), "{error}");
    assert!(!locked.seen().await.contains("token"));
    assert_eq!(locked.log_in(&servers).await, Ok(State::Connected));
    // Another server named later does not receive the refresh token.
    let locked = Locked::new(&[], json!({})).await;
    let servers = locked.start().await;
    locked.log_in(&servers).await.unwrap();
    get(&format!("{}/move", locked.base)).await;
    get(&format!("{}/expire", locked.base)).await;
    let error = call(&servers).await.unwrap_err();
    assert!(matches!(error, McpError::NeedsAuth { .. }), "{error}");
    assert!(!locked.seen().await.contains("refresh_token"));
    assert_eq!(locked.log_in(&servers).await, Ok(State::Connected));
    assert_eq!(locked.seen().await.matches("register").count(), 2);
}

#[tokio::test]
async fn a_configured_header_goes_before_a_login() {
    let mut locked = Locked::new(&[], json!({})).await;
    locked.entry["headers"] = json!({"Authorization": "Bearer wrong"});
    let servers = locked.start().await;
    assert_eq!(servers.status()[0].state, State::NeedsAuth);
    assert_eq!(locked.seen().await, "[]");
}
