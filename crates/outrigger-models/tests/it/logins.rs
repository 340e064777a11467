//! Built-in logins against a server that plays the login servers and the services behind them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outrigger_models::{Credentials, LoginServers, Models, ModelsOptions, login_methods};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::message::ModelRef;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::server::{Reply, Request, Server, chunks, hello, serve_with, sse, status};
use crate::{collect, options, request, resolve, user};

const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":1}}}"#;

fn ok(body: &Value) -> Reply {
    status("200 OK", "", &body.to_string())
}

fn bad(body: &Value) -> Reply {
    status("400 Bad Request", "", &body.to_string())
}

fn path(request: &Request) -> &str {
    request.head.split(' ').nth(1).unwrap_or_default()
}

fn field(request: &Request, name: &str) -> String {
    let form = format!("http://form/?{}", request.text);
    let form = reqwest::Url::parse(&form).unwrap();
    let mut pairs = form.query_pairs();
    pairs
        .find_map(|(key, value)| (key == name).then(|| value.into_owned()))
        .unwrap_or_default()
}

fn requests(server: &Server, at: &str) -> Vec<Request> {
    let all = server.requests.lock().unwrap();
    all.iter().filter(|it| path(it) == at).cloned().collect()
}

/// Returns a token that names its account.
fn token(name: &str, claims: &Value) -> String {
    format!("{name}.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

struct World {
    dir: tempfile::TempDir,
    server: Server,
}

impl World {
    async fn new(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            server: serve_with(script).await,
        }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("auth.json")
    }

    fn stored(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.file()).unwrap()).unwrap()
    }

    fn models(&self, providers: Value) -> Models {
        let own = Credentials::new(self.file(), Some(self.dir.path().join("theirs.json")), None);
        Models::new(ModelsOptions {
            providers: providers.as_object().cloned().unwrap(),
            login_servers: LoginServers::stand_in(&self.server.url).unwrap(),
            credentials: own,
            ..ModelsOptions::default()
        })
    }

    /// Returns models with this stored login.
    fn with(&self, provider: &str, credential: &Value, providers: Value) -> Models {
        std::fs::write(self.file(), json!({ provider: credential }).to_string()).unwrap();
        self.models(providers)
    }
}

fn oauth(access: &str, expires: u64) -> Value {
    json!({ "type": "oauth", "refresh": "refresh-secret-1", "access": access, "expires": expires })
}

const NEVER: u64 = 9_000_000_000_000;

/// Logs in with a method, and returns what is stored or the error.
async fn logged_in(
    models: &Models,
    (provider, method): (&str, usize),
    answers: &[(&str, &str)],
) -> Result<Value, String> {
    let answers = answers
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    let login = models
        .begin_login(provider, method, &answers.collect())
        .await?;
    let credential = login.unwrap().finish().await?;
    Ok(json!(credential))
}

#[tokio::test]
async fn a_login_on_another_device_waits_until_the_user_has_decided() {
    for (code, asked, want) in [
        ("good", 1, "gho-token-1"),
        ("later", 2, "gho-token-1"),
        ("slow", 1, "the code was not entered in time"),
        ("denied", 1, "the login was refused"),
        ("expired", 1, "the code was not entered in time"),
        ("odd", 1, "answers 200 OK: device_flow_disabled"),
    ] {
        let count = AtomicUsize::new(0);
        let world = World::new(move |request| match path(request) {
            "/login/device/code" => ok(&json!({
                "device_code": code, "user_code": "ABCD-1234", "verification_uri": "https://github.test/login/device",
                "expires_in": 4, "interval": 1,
            })),
            "/login/oauth/access_token" => {
                let first = count.fetch_add(1, Ordering::Relaxed) == 0;
                let error = |error: &str| ok(&json!({ "error": error }));
                match code {
                    "later" if first => error("authorization_pending"),
                    "slow" => error("slow_down"),
                    "denied" => error("access_denied"),
                    "expired" => error("expired_token"),
                    "odd" => error("device_flow_disabled"),
                    _ => ok(&json!({ "access_token": "gho-token-1", "token_type": "bearer" })),
                }
            }
            _ => bad(&json!({})),
        })
        .await;
        let models = world.models(json!({}));
        let login = models
            .begin_login("github-copilot", 0, &[].into())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(login.begun.url, "https://github.test/login/device");
        assert_eq!(login.begun.instructions, "Enter code: ABCD-1234");
        let stored = login.finish().await;
        let polls = requests(&world.server, "/login/oauth/access_token");
        assert_eq!(polls.len(), asked, "{code}");
        assert_eq!(field(&polls[0], "device_code"), code);
        match stored {
            Ok(credential) => assert_eq!(
                json!(credential),
                json!({ "type": "oauth", "refresh": want, "access": want, "expires": 0 }),
                "{code}"
            ),
            Err(why) => assert!(why.contains(want), "{code}: {why}"),
        }
    }
}

#[tokio::test]
async fn a_companys_own_github_stands_in_the_credential() {
    let world = World::new(|request| match path(request) {
        "/login/device/code" => ok(
            &json!({ "device_code": "d", "user_code": "u", "verification_uri": "https://x.test" }),
        ),
        _ => ok(&json!({ "access_token": "ghe-token-1" })),
    })
    .await;
    let models = world.models(json!({}));
    let answers = |url| [("deploymentType", "enterprise"), ("enterpriseUrl", url)];
    let stored = logged_in(
        &models,
        ("github-copilot", 0),
        &answers("https://company.ghe.com/"),
    )
    .await;
    assert_eq!(stored.unwrap()["enterpriseUrl"], "company.ghe.com");
    let refused = logged_in(&models, ("github-copilot", 0), &answers("http://a/b")).await;
    assert!(refused.unwrap_err().contains("an address such as"));
}

async fn get(url: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", url.port().unwrap()))
        .await
        .unwrap();
    let target = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Both services that have it.
#[tokio::test]
async fn a_login_in_the_browser_is_the_one_that_was_begun() {
    let account = json!({ "https://api.openai.com/auth": { "chatgpt_account_id": "account-1" } });
    let id_token = token("id", &account);
    for (provider, authorize, exchange, account) in [
        (
            "openai",
            "/oauth/authorize",
            "/oauth/token",
            Some("account-1"),
        ),
        ("xai", "/oauth2/authorize", "/oauth2/token", None),
    ] {
        let mut answer = json!({ "access_token": "access-secret-1", "refresh_token": "refresh-secret-1", "expires_in": 3600 });
        if account.is_some() {
            answer["id_token"] = json!(id_token);
        }
        let world = World::new(move |request| match field(request, "code").as_str() {
            "good" => ok(&answer),
            _ => bad(&json!({ "error": "invalid_grant" })),
        })
        .await;
        let models = world.models(json!({}));
        let begin = async || {
            let login = models
                .begin_login(provider, 0, &[].into())
                .await
                .unwrap()
                .unwrap();
            let url = reqwest::Url::parse(&login.begun.url).unwrap();
            let value = |name: &str| {
                let mut pairs = url.query_pairs();
                pairs
                    .find_map(|(key, value)| (key == name).then(|| value.into_owned()))
                    .unwrap()
            };
            assert_eq!(
                (url.path(), value("code_challenge_method").as_str()),
                (authorize, "S256")
            );
            (
                login,
                value("redirect_uri"),
                value("state"),
                value("code_challenge"),
            )
        };
        let (login, redirect, state, challenge) = begin().await;
        let status = get(&format!("{redirect}?code=good&state=guessed")).await;
        assert!(status.contains(" 400 "), "{status}");
        let status = get(&format!("{redirect}?code=good&state={state}")).await;
        assert!(status.contains(" 200 "), "{status}");
        let stored = json!(login.finish().await.unwrap());
        assert_eq!(stored["access"], "access-secret-1");
        assert_eq!(stored.get("accountId").and_then(Value::as_str), account);
        assert!(stored["expires"].as_u64().unwrap() > 1_700_000_000_000);
        let sent = requests(&world.server, exchange).remove(0);
        let verifier = field(&sent, "code_verifier");
        assert_eq!(
            URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())),
            challenge
        );
        assert_eq!(field(&sent, "redirect_uri"), redirect);
        assert!(
            login
                .finish()
                .await
                .unwrap_err()
                .contains("has ended already")
        );

        // The user declines; the server refuses.
        for (query, want) in [
            (
                "error=access_denied&error_description=not%20today",
                "not today",
            ),
            ("code=bad", "invalid_grant"),
        ] {
            let (login, redirect, state, _) = begin().await;
            get(&format!("{redirect}?{query}&state={state}")).await;
            let why = login.finish().await.unwrap_err();
            assert!(why.contains(want), "{why}");
        }
        // An abandoned login leaves no port open.
        let (login, redirect, _, _) = begin().await;
        drop(login);
        let port = reqwest::Url::parse(&redirect).unwrap().port().unwrap();
        let mut closed = false;
        for _ in 0..100 {
            closed = tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .is_err();
            if closed {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(closed, "{redirect}");
    }
}

#[tokio::test]
async fn openai_and_xai_have_a_code_for_another_device() {
    let count = AtomicUsize::new(0);
    let world = World::new(move |request| match path(request) {
        "/api/accounts/deviceauth/usercode" => ok(&json!({ "device_auth_id": "d-1", "user_code": "U-1", "interval": "1" })),
        "/api/accounts/deviceauth/token" if count.fetch_add(1, Ordering::Relaxed) == 0 => status("403 Forbidden", "", "{}"),
        "/api/accounts/deviceauth/token" => ok(&json!({ "authorization_code": "c-1", "code_verifier": "v-1" })),
        "/oauth2/device/code" => ok(&json!({
            "device_code": "d-2", "user_code": "U-2", "verification_uri": "https://x.test/device", "verification_uri_complete": "https://x.test/device?c=U-2",
        })),
        _ => ok(&json!({ "access_token": "access-secret-1", "refresh_token": "refresh-secret-1" })),
    })
    .await;
    let models = world.models(json!({}));
    let stored = logged_in(&models, ("openai", 1), &[]).await.unwrap();
    assert_eq!(stored["refresh"], "refresh-secret-1");
    let polls = requests(&world.server, "/api/accounts/deviceauth/token");
    assert_eq!(polls.len(), 2);
    assert_eq!(
        polls[0].body,
        json!({ "device_auth_id": "d-1", "user_code": "U-1" })
    );
    let exchange = requests(&world.server, "/oauth/token").remove(0);
    assert_eq!(
        (field(&exchange, "code"), field(&exchange, "code_verifier")),
        ("c-1".into(), "v-1".into())
    );

    let login = models
        .begin_login("xai", 1, &[].into())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(login.begun.url, "https://x.test/device?c=U-2");
    login.finish().await.unwrap();
    // Methods without a beginning, and unknown ones.
    for (provider, method) in [("openai", 2), ("xai", 7), ("anthropic", 0)] {
        let begun = models.begin_login(provider, method, &[].into()).await;
        assert!(begun.unwrap().is_none(), "{provider} {method}");
    }
    let all: Vec<String> = login_methods().into_keys().collect();
    assert_eq!(all, ["github-copilot", "openai", "poe", "xai"]);
}

/// Returns the service of a ChatGPT plan, and a token endpoint that accepts each refresh token once.
fn chatgpt() -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    let renewed = AtomicUsize::new(0);
    move |request| match path(request) {
        "/oauth/token" => match renewed.fetch_add(1, Ordering::Relaxed) {
            0 => ok(
                &json!({ "access_token": "access-secret-2", "refresh_token": "refresh-secret-2", "expires_in": 3600 }),
            ),
            _ => bad(
                &json!({ "error": "invalid_grant", "error_description": "used: refresh-secret-1" }),
            ),
        },
        "/backend-api/codex/responses" => sse(&chunks(&[COMPLETED])),
        _ => bad(&json!({})),
    }
}

#[tokio::test]
async fn a_token_that_has_ended_is_renewed_once_for_turns_at_the_same_time() {
    let world = World::new(chatgpt()).await;
    let credential = json!({ "type": "oauth", "refresh": "refresh-secret-1", "access": "access-secret-1", "expires": 5, "accountId": "account-1" });
    let models = world.with("openai", &credential, json!({}));
    let other = world.models(json!({}));
    let ask = async |models: &Models| {
        let model = resolve(models, "openai/gpt-5.5");
        collect(model.stream(&request(vec![user("hi")], &[]), &options(0))).await
    };
    // Two turns of one program, and one of another.
    let (one, two, three) = tokio::join!(ask(&models), ask(&models), ask(&other));
    for (said, error) in [one, two, three, ask(&models).await] {
        assert!(error.is_none(), "{error:?} {said:?}");
    }
    let renewals = requests(&world.server, "/oauth/token");
    assert_eq!(renewals.len(), 1);
    assert_eq!(field(&renewals[0], "refresh_token"), "refresh-secret-1");
    let asked = requests(&world.server, "/backend-api/codex/responses");
    assert_eq!(asked.len(), 4);
    for request in &asked {
        let header = |name: &str| request.header(name).unwrap_or_default();
        assert_eq!(header("authorization"), "Bearer access-secret-2");
        assert_eq!(header("chatgpt-account-id"), "account-1");
        assert_eq!(header("originator"), "outrigger");
        assert_eq!(header("session-id"), "ses_1");
        assert!(request.body["instructions"].is_string(), "{}", request.body);
    }
    let stored = world.stored()["openai"].clone();
    let expires = stored["expires"].as_u64().unwrap();
    assert!(expires > 1_700_000_000_000, "{stored}");
    assert_eq!(
        stored,
        json!({ "type": "oauth", "refresh": "refresh-secret-2", "access": "access-secret-2", "expires": expires, "accountId": "account-1" })
    );
}

#[tokio::test]
async fn a_renewal_that_nobody_waits_for_any_more_is_kept() {
    let (begun, mut waits) = tokio::sync::mpsc::unbounded_channel();
    let answer = chatgpt();
    let world = World::new(move |request| {
        let reply = answer(request);
        let _ = begun.send(());
        reply.in_pieces(8)
    })
    .await;
    let models = world.with("openai", &oauth("access-secret-1", 5), json!({}));
    let model = resolve(&models, "openai/gpt-5.5");
    let stream = model.stream(&request(vec![user("hi")], &[]), &options(0));
    tokio::select! {
        biased;
        _ = waits.recv() => {}
        _ = collect(stream) => panic!("it was to be cancelled"),
    }
    for _ in 0..200 {
        if world.stored()["openai"]["access"] == "access-secret-2" {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{}", world.stored());
}

#[tokio::test]
async fn a_login_that_cannot_be_renewed_says_so_and_shows_no_token() {
    let world = World::new(|request| match field(request, "refresh_token").as_str() {
        "refresh-secret-1" => bad(
            &json!({ "error": "invalid_grant", "error_description": "refresh-secret-1 is over" }),
        ),
        "refresh-secret-3" => status("503 Service Unavailable", "", "{}"),
        _ => status("429 Too Many Requests", "", "{}"),
    })
    .await;
    for (refresh, code, says) in [
        ("refresh-secret-1", "model.login", "cannot be renewed: "),
        ("refresh-secret-3", "model.connect", "503"),
        ("refresh-secret-4", "model.connect", "429"),
    ] {
        let credential = json!({ "type": "oauth", "refresh": refresh, "access": "access-secret-1", "expires": 5 });
        let models = world.with("xai", &credential, json!({}));
        let model = resolve(&models, "xai/grok-4.5");
        let (_, error) = collect(model.stream(&request(vec![user("hi")], &[]), &options(0))).await;
        let error = error.unwrap();
        let text = format!("{error} {error:?}");
        assert_eq!(error.code(), code, "{text}");
        assert!(text.contains(says), "{text}");
        assert!(!text.contains("-secret-"), "{text}");
        // It still exists: OpenCode may have another one, and nothing was issued.
        assert_eq!(world.stored()["xai"], credential);
    }
    // OpenCode's own login is used until it expires, and never renewed here.
    for (expires, want) in [(5, Some("model.login")), (NEVER, None)] {
        let world = World::new(|request| match path(request) {
            "/v1/chat/completions" => hello(),
            _ => bad(&json!({})),
        })
        .await;
        let theirs = json!({ "xai": oauth("access-secret-1", expires) });
        std::fs::write(world.dir.path().join("theirs.json"), theirs.to_string()).unwrap();
        let model = resolve(&world.models(json!({})), "xai/grok-4.5");
        let (_, error) = collect(model.stream(&request(vec![user("hi")], &[]), &options(0))).await;
        assert_eq!(error.map(|error| error.code()), want);
        assert!(requests(&world.server, "/oauth2/token").is_empty());
        assert!(!world.file().exists());
    }
}

/// A trusted project's settings set a provider's address for keys. A login's token goes to its service only.
#[tokio::test]
async fn no_address_of_the_configuration_gets_the_token_of_a_login() {
    let elsewhere = serve_with(|_| hello()).await;
    for (provider, name) in [
        ("openai", "gpt-5.5"),
        ("github-copilot", "claude-haiku-4.5"),
        ("xai", "grok-4.5"),
    ] {
        let options_of = json!({ "baseURL": elsewhere.url, "headers": { "x-app": "a" } });
        for entry in [
            json!({ "options": options_of }),
            json!({ "api": elsewhere.url }),
            json!({ "models": { name: { "provider": { "api": elsewhere.url } } } }),
        ] {
            let world = World::new(|_| bad(&json!({}))).await;
            let models = world.with(
                provider,
                &oauth("access-secret-1", NEVER),
                json!({ provider: entry }),
            );
            let model = models
                .resolve(&ModelRef::parse(&format!("{provider}/{name}")).unwrap())
                .unwrap();
            let (_, error) =
                collect(model.stream(&request(vec![user("hi")], &[]), &options(0))).await;
            let error = error.unwrap();
            assert_eq!(error.code(), "model.login", "{provider} {entry}: {error}");
            assert!(!error.to_string().contains("-secret-"), "{error}");
        }
    }
    assert!(elsewhere.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_service_that_repeats_the_token_is_not_quoted() {
    let world = World::new(|request| {
        let sent = request.header("authorization").unwrap_or_default();
        status(
            "401 Unauthorized",
            "",
            &json!({ "error": { "message": format!("no: {sent}") } }).to_string(),
        )
    })
    .await;
    let models = world.with("xai", &oauth("access-secret-1", NEVER), json!({}));
    let model = resolve(&models, "xai/grok-4.5");
    // Another program has renewed it meanwhile.
    std::fs::write(
        world.file(),
        json!({ "xai": oauth("access-secret-7", NEVER) }).to_string(),
    )
    .unwrap();
    let (_, error) = collect(model.stream(&request(vec![user("hi")], &[]), &options(0))).await;
    let error = error.unwrap();
    assert_eq!(error.code(), "model.auth");
    let text = format!("{error} {error:?} {}", json!(error.to_named()));
    assert!(
        text.contains("the login at xAI") && !text.contains("-secret-"),
        "{text}"
    );
}

#[tokio::test]
async fn who_counts_where_there_is_a_login() {
    let world = World::new(|_| hello()).await;
    // A configured key goes before it, a variable does not, and a login that a plugin stored belongs to the plugin.
    let login = oauth("access-secret-1", NEVER);
    let mut of_plugin = login.clone();
    of_plugin["outriggerPlugin"] = json!("p");
    let configured = json!({ "xai": { "options": { "apiKey": "configured-key-1", "baseURL": world.server.url } } });
    for (credential, providers, want) in [
        (&login, configured, Some("Bearer configured-key-1")),
        (&login, json!({}), Some("Bearer access-secret-1")),
        (&of_plugin, json!({}), None),
    ] {
        let models = world.with("xai", credential, providers);
        let Ok(model) = models.resolve(&ModelRef::parse("xai/grok-4.5").unwrap()) else {
            assert_eq!(want, None);
            continue;
        };
        let (_, error) = collect(model.stream(&request(vec![user("hi")], &[]), &options(0))).await;
        assert!(error.is_none(), "{error:?}");
        let sent = world
            .server
            .requests
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap();
        assert_eq!(sent.header("authorization").as_deref(), want);
    }
    // The models of a plan have no price, and none of them shows a token to hooks.
    let models = world.with("openai", &login, json!({}));
    let provider = models.provider_for_hooks("openai", true).unwrap();
    let names: Vec<&String> = provider.models.keys().collect();
    assert!(
        names.contains(&&"gpt-5.5".to_owned()) && !names.contains(&&"gpt-5".to_owned()),
        "{names:?}"
    );
    assert_eq!(provider.models["gpt-5.5"]["cost"]["input"], 0.0);
    assert!(!json!(provider).to_string().contains("-secret-"));
    assert!(models.providers().iter().any(|it| it.id == "openai"));
}

/// A key that is made in the browser: it goes to Poe and is not renewed.
#[tokio::test]
async fn a_login_at_poe_gives_a_key_that_ends_when_poe_says() {
    for (lifetime, status) in [(json!(null), true), (json!(3600), true), (json!(0), false)] {
        let answer = json!({ "api_key": "poe-key-1", "api_key_expires_in": lifetime });
        let world = World::new(move |request| match path(request) {
            "/token" => ok(&answer),
            "/v1/chat/completions" => hello(),
            _ => bad(&json!({})),
        })
        .await;
        let provider = json!({ "poe": {
            "npm": "@ai-sdk/openai-compatible", "api": "https://api.poe.com/v1", "models": { "m": {} },
        } });
        let models = world.models(provider.clone());
        let login = models
            .begin_login("poe", 0, &[].into())
            .await
            .unwrap()
            .unwrap();
        let url = reqwest::Url::parse(&login.begun.url).unwrap();
        let value = |name: &str| {
            let mut pairs = url.query_pairs();
            pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
        };
        assert_eq!(url.path(), "/oauth/authorize");
        assert_eq!(value("scope").as_deref(), Some("apikey:create"));
        let (redirect, state) = (value("redirect_uri").unwrap(), value("state").unwrap());
        assert!(redirect.starts_with("http://127.0.0.1:") && redirect.ends_with("/callback"));
        get(&format!("{redirect}?code=c&state={state}")).await;
        let stored = json!(login.finish().await.unwrap());
        assert_eq!(
            (&stored["access"], &stored["refresh"]),
            (&json!("poe-key-1"), &json!("poe-key-1"))
        );
        let has_no_end = stored["expires"] == json!((1_u64 << 53) - 1);
        assert_eq!(has_no_end, lifetime.is_null(), "{stored}");
        let models = world.with("poe", &stored, provider);
        let model = resolve(&models, "poe/m");
        let (_, error) = collect(model.stream(&request(vec![user("hi")], &[]), &options(0))).await;
        let asked = requests(&world.server, "/v1/chat/completions");
        if status {
            assert!(error.is_none(), "{error:?}");
            let key = asked[0].header("authorization").unwrap();
            assert_eq!(key, "Bearer poe-key-1");
        } else {
            let why = format!("{error:?}");
            assert!(why.contains("outrigger auth login poe"), "{why}");
            assert!(asked.is_empty());
        }
        assert_eq!(requests(&world.server, "/token").len(), 1);
    }
}
