//! Models in clouds, against local imitations: requests, credentials, answers.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_models::{Credentials, LoginServers, Models, ModelsOptions};
use outrigger_protocol::diagnose::Diagnose;
use serde_json::{Value, json};

use crate::server::{Reply, Server, chunks, serve, sse, status};
use crate::{collect, models, options, request, resolve, user};

fn lines(name: &str) -> Value {
    json!({ "models": { name: { "limit": { "context": 1000, "output": 100 } } } })
}

fn provider(id: &str, npm: &str, model: &str, options: Value) -> Value {
    let mut entry = lines(model);
    entry["npm"] = json!(npm);
    entry["options"] = options;
    json!({ id: entry })
}

/// Returns the request and its result.
async fn asked(config: Value, env: &[(&str, &str)], name: &str) -> (Vec<String>, Option<String>) {
    let models = models(config, env);
    let stream = resolve(&models, name).stream(&request(vec![user("hi")], &[]), &options(0));
    let (lines, error) = collect(stream).await;
    (
        lines,
        error.map(|error| format!("{} {error}", error.code())),
    )
}

fn first(server: &Server) -> crate::server::Request {
    let requests = Arc::clone(&server.requests);
    let requests = requests.lock().unwrap();
    requests.first().cloned().unwrap()
}

/// Returns a frame of `application/vnd.amazon.eventstream`.
fn frame(name: &str, payload: &str) -> Vec<u8> {
    let crc = |bytes: &[u8]| {
        let mut crc = u32::MAX;
        for &byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 {
                    (crc >> 1) ^ 0xedb8_8320
                } else {
                    crc >> 1
                };
            }
        }
        (!crc).to_be_bytes()
    };
    let mut headers = vec![11];
    headers.extend_from_slice(b":event-type");
    headers.push(7);
    headers.extend_from_slice(&u16::try_from(name.len()).unwrap().to_be_bytes());
    headers.extend_from_slice(name.as_bytes());
    let size = |n: usize| u32::try_from(n).unwrap().to_be_bytes();
    let mut out = size(16 + headers.len() + payload.len()).to_vec();
    out.extend_from_slice(&size(headers.len()));
    out.extend_from_slice(&crc(&out));
    out.extend_from_slice(&headers);
    out.extend_from_slice(payload.as_bytes());
    out.extend_from_slice(&crc(&out));
    out
}

fn converse() -> Reply {
    let frames = [
        frame("messageStart", r#"{"role":"assistant"}"#),
        frame(
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"text":"Hi"}}"#,
        ),
        frame("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        frame("messageStop", r#"{"stopReason":"end_turn"}"#),
        frame(
            "metadata",
            r#"{"usage":{"inputTokens":3,"outputTokens":1}}"#,
        ),
    ];
    let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\nconnection: close\r\n\r\n".to_vec();
    bytes.extend(frames.concat());
    Reply { bytes, ..sse("") }
}

const SAID: [&str; 5] = [
    "started",
    "text 0 [",
    "text 0 \"Hi\"",
    "text 0 ]",
    "finished stop 3/1",
];

#[tokio::test]
async fn bedrock_is_asked_with_a_signature_or_a_token() {
    for (env, want) in [
        (
            vec![("AWS_BEARER_TOKEN_BEDROCK", "bearer-1")],
            "Bearer bearer-1",
        ),
        (
            vec![
                ("AWS_ACCESS_KEY_ID", "AKID"),
                ("AWS_SECRET_ACCESS_KEY", "secret-1"),
                ("AWS_REGION", "eu-west-1"),
            ],
            "AWS4-HMAC-SHA256 Credential=AKID/",
        ),
    ] {
        let server = serve(vec![converse().in_pieces(5)]).await;
        let config = provider(
            "amazon-bedrock",
            "@ai-sdk/amazon-bedrock",
            "a.claude-v1:0",
            json!({ "endpoint": server.url }),
        );
        let (said, error) = asked(config, &env, "amazon-bedrock/a.claude-v1:0").await;
        assert_eq!(
            (said.iter().map(String::as_str).collect::<Vec<_>>(), error),
            (SAID.to_vec(), None)
        );
        let request = first(&server);
        let authorization = request.header("authorization").unwrap();
        assert!(authorization.starts_with(want), "{authorization}");
        assert!(!format!("{request:?}").contains("secret-1"));
        assert_eq!(request.body["messages"][0]["content"][0]["text"], "hi");
        assert!(
            request.head.contains("a.claude-v1%3A0/converse-stream "),
            "{}",
            request.head
        );
    }
}

#[tokio::test]
async fn without_keys_nothing_is_asked_and_what_to_do_is_said() {
    let server = serve(vec![converse()]).await;
    let config = provider(
        "amazon-bedrock",
        "@ai-sdk/amazon-bedrock",
        "m",
        json!({ "endpoint": server.url, "profile": "nobody" }),
    );
    let (_, error) = asked(config, &[], "amazon-bedrock/m").await;
    let error = error.unwrap();
    assert!(
        error.starts_with("model.config") && error.contains("export-credentials --profile nobody"),
        "{error}"
    );
    assert!(server.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn azure_takes_its_key_in_a_header_of_its_own() {
    let completed = r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":1}}}"#;
    for (options, reply, want) in [
        (
            json!({}),
            sse(&chunks(&[completed])),
            "POST /v1/v1/responses?api-version=v1 ",
        ),
        (
            json!({ "useCompletionUrls": true }),
            crate::server::hello(),
            "POST /v1/v1/chat/completions?api-version=v1 ",
        ),
    ] {
        let server = serve(vec![reply]).await;
        let mut options = options;
        options["baseURL"] = json!(server.url);
        let config = provider("azure", "@ai-sdk/azure", "gpt", options);
        let env = [
            ("AZURE_RESOURCE_NAME", "resource"),
            ("AZURE_API_KEY", "azure-key-1"),
        ];
        let (said, error) = asked(config, &env, "azure/gpt").await;
        assert_eq!(error, None, "{said:?}");
        let request = first(&server);
        assert!(request.head.starts_with(want), "{}", request.head);
        assert_eq!(request.header("api-key").as_deref(), Some("azure-key-1"));
        assert_eq!(request.header("authorization"), None);
    }
}

#[tokio::test]
async fn copilot_is_asked_with_the_login_that_opencode_stored() {
    let completed = r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":1}}}"#;
    for (model, reply, want) in [
        (
            "claude-x",
            crate::server::hello(),
            "POST /chat/completions ",
        ),
        (
            "gpt-5-mini",
            crate::server::hello(),
            "POST /chat/completions ",
        ),
        ("gpt-6-sol", sse(&chunks(&[completed])), "POST /responses "),
    ] {
        let server = serve(vec![reply]).await;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("opencode.json");
        let stored = json!({ "github-copilot": { "type": "oauth", "refresh": "gho_token-1", "access": "gho_token-1", "expires": 0 } });
        std::fs::write(&file, stored.to_string()).unwrap();
        let config = provider(
            "github-copilot",
            "@ai-sdk/openai-compatible",
            model,
            json!({}),
        );
        let models = Models::new(ModelsOptions {
            providers: config.as_object().cloned().unwrap(),
            login_servers: LoginServers::stand_in(&server.url).unwrap(),
            env: [("GITHUB_TOKEN".to_owned(), "of-something-else".to_owned())].into(),
            credentials: Credentials::new(dir.path().join("own.json"), Some(file), None),
            ..ModelsOptions::default()
        });
        let model = resolve(&models, &format!("github-copilot/{model}"));
        let (said, error) =
            collect(model.stream(&request(vec![user("hi")], &[]), &options(0))).await;
        assert!(error.is_none(), "{error:?} {said:?}");
        let request = first(&server);
        assert!(request.head.starts_with(want), "{}", request.head);
        assert_eq!(
            request.header("authorization").as_deref(),
            Some("Bearer gho_token-1")
        );
        assert_eq!(request.header("x-initiator").as_deref(), Some("user"));
    }
}

/// A key created for tests (`openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048`).
const KEY: &str = include_str!("service_account_key.pem");

#[tokio::test]
async fn vertex_is_asked_with_a_token_that_the_account_signs_for_and_that_is_kept() {
    let token = status(
        "200 OK",
        "",
        r#"{"access_token":"google-token-1","expires_in":3600}"#,
    );
    let tokens = serve(vec![token]).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("account.json");
    let account = json!({ "type": "service_account", "client_email": "me@p.test", "private_key": KEY, "token_uri": tokens.url });
    std::fs::write(&file, account.to_string()).unwrap();
    let env = [
        ("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap()),
        ("GOOGLE_CLOUD_PROJECT", "p"),
    ];
    let gemini = r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1}}"#;
    let server = serve(vec![sse(&chunks(&[gemini]))]).await;
    let config = provider(
        "google-vertex",
        "@ai-sdk/google-vertex",
        "gemini-x",
        json!({ "baseURL": server.url }),
    );
    let models = models(config, &env);
    for _ in 0..2 {
        let model = resolve(&models, "google-vertex/gemini-x");
        let (lines, error) =
            collect(model.stream(&request(vec![user("hi")], &[]), &options(0))).await;
        assert!(error.is_none(), "{error:?} {lines:?}");
    }
    let asked = first(&server);
    assert_eq!(
        asked.header("authorization").as_deref(),
        Some("Bearer google-token-1")
    );
    assert!(
        asked
            .head
            .starts_with("POST /v1/models/gemini-x:streamGenerateContent?alt=sse "),
        "{}",
        asked.head
    );
    assert_eq!(
        tokens.requests.lock().unwrap().len(),
        1,
        "a token that holds is kept"
    );
}

#[tokio::test]
async fn claude_at_vertex_is_named_by_the_address() {
    let tokens = serve(vec![status("200 OK", "", r#"{"access_token":"t-123456"}"#)]).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("user.json");
    let account = json!({ "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r&1", "token_uri": tokens.url });
    std::fs::write(&file, account.to_string()).unwrap();
    let env = [
        ("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap()),
        ("GOOGLE_CLOUD_PROJECT", "p"),
    ];
    let server = serve(vec![sse(&chunks(&[r#"{"type":"message_stop"}"#]))]).await;
    let config = provider(
        "google-vertex-anthropic",
        "@ai-sdk/google-vertex/anthropic",
        "claude@1",
        json!({ "baseURL": server.url }),
    );
    asked(config, &env, "google-vertex-anthropic/claude@1").await;
    let request = first(&server);
    assert!(
        request
            .head
            .starts_with("POST /v1/claude@1:streamRawPredict "),
        "{}",
        request.head
    );
    assert_eq!(request.body["anthropic_version"], "vertex-2023-10-16");
    assert!(request.body.get("model").is_none());
    // A refused account is not retried, and is not shown.
    let refusing = serve(vec![status("401 No", "", r#"{"error":"invalid_grant"}"#)]).await;
    let account = json!({ "type": "authorized_user", "client_id": "c", "client_secret": "hidden-1", "refresh_token": "hidden-2", "token_uri": refusing.url });
    std::fs::write(&file, account.to_string()).unwrap();
    let config = provider(
        "google-vertex-anthropic",
        "@ai-sdk/google-vertex/anthropic",
        "m",
        json!({ "baseURL": server.url }),
    );
    let (lines, error) = asked(config, &env, "google-vertex-anthropic/m").await;
    let error = error.unwrap();
    assert!(
        error.contains("invalid_grant") && !error.contains("hidden") && lines.is_empty(),
        "{error}"
    );
}

#[test]
fn the_key_of_the_tests_is_one() {
    let body: String = KEY.lines().filter(|line| !line.starts_with('-')).collect();
    assert!(STANDARD.decode(body).is_ok());
}
