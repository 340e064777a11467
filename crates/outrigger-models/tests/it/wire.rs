//! Requests, answers, failures.

use std::time::Duration;

use futures_util::StreamExt;
use outrigger_models::Deadlines;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::model::ModelParams;
use serde_json::json;

use crate::server::{Reply, Then, chunks, hello, serve, sse, status};
use crate::{KEY, collect, mock, models, options, request, resolve, user};

#[tokio::test]
async fn a_request_is_that_of_opencode() {
    let server = serve(vec![hello()]).await;
    let mut req = request(vec![user("\"say hi\"")], &["bash"]);
    req.params = ModelParams {
        temperature: Some(0.25),
        top_p: Some(0.5),
        max_output_tokens: Some(4000),
        options: json!({"extra_thing": "yes"}).as_object().cloned().unwrap(),
        ..ModelParams::default()
    };
    req.headers = vec![("x-recorder".into(), "42".into())];
    let resolved = resolve(&models(mock(&server.url), &[]), "mock/m1");
    let (lines, error) = collect(resolved.stream(&req, &options(0))).await;
    assert!(error.is_none(), "{error:?}");
    insta::assert_snapshot!(lines.join("\n"), @r#"
    started
    text 0 [
    text 0 "Hi"
    text 0 ]
    finished stop 0/0
    "#);
    let sent = server.requests.lock().unwrap()[0].clone();
    assert!(
        sent.head.starts_with("POST /v1/chat/completions HTTP/1.1"),
        "{}",
        sent.head
    );
    for (name, want) in [
        ("authorization", format!("Bearer {KEY}")),
        ("content-type", "application/json".into()),
        ("x-session-affinity", "ses_1".into()),
        ("x-session-id", "ses_1".into()),
        ("x-recorder", "42".into()),
        (
            "user-agent",
            format!("outrigger/{}", env!("CARGO_PKG_VERSION")),
        ),
    ] {
        assert_eq!(sent.header(name), Some(want), "{name}");
    }
    insta::assert_snapshot!(sent.body, @r#"{"model":"m1","max_tokens":4000,"temperature":0.25,"top_p":0.5,"extra_thing":"yes","messages":[{"role":"user","content":"\"say hi\""}],"tools":[{"type":"function","function":{"name":"bash","description":"d","parameters":{"type":"object","properties":{}}}}],"tool_choice":"auto","stream":true,"stream_options":{"include_usage":true}}"#);
}

#[tokio::test]
async fn headers_of_the_request_win_over_the_configured_ones() {
    let server = serve(vec![hello()]).await;
    let mut config = mock(&server.url);
    config["mock"]["options"]["headers"] =
        json!({"x-a": "provider", "x-b": "provider", "x-c": "provider", "user-agent": "mine"});
    config["mock"]["models"]["m1"]["headers"] = json!({"x-b": "model", "x-c": "model"});
    let mut req = request(vec![user("hi")], &[]);
    req.headers = vec![("X-C".into(), "hook".into())];
    let resolved = resolve(&models(config, &[]), "mock/m1");
    assert!(
        collect(resolved.stream(&req, &options(0)))
            .await
            .1
            .is_none()
    );
    let sent = server.requests.lock().unwrap()[0].clone();
    let got = ["x-a", "x-b", "x-c", "user-agent"].map(|n| sent.header(n).unwrap());
    assert_eq!(got, ["provider", "model", "hook", "mine"]);
    req.headers = vec![("x-d".into(), "a\nb".into())];
    let error = collect(resolved.stream(&req, &options(0))).await.1.unwrap();
    insta::assert_snapshot!(error, @"provider `mock`: header `x-d` cannot be sent: its name or value has characters that are not allowed");
}

#[tokio::test]
async fn a_stream_in_single_bytes_is_the_same_stream() {
    let server = serve(vec![hello().in_pieces(1)]).await;
    let resolved = resolve(&models(mock(&server.url), &[]), "mock/m1");
    let (lines, error) =
        collect(resolved.stream(&request(vec![user("hi")], &[]), &options(0))).await;
    assert!(error.is_none());
    assert_eq!(
        lines,
        [
            "started",
            "text 0 [",
            "text 0 \"Hi\"",
            "text 0 ]",
            "finished stop 0/0"
        ]
    );
}

/// Answers of the server, what the stream yields, and the number of requests.
#[tokio::test]
async fn failures_before_content_are_retried_and_others_are_not() {
    let part = chunks(&[r#"{"choices":[{"delta":{"content":"par"}}]}"#]);
    let error_500 = || status("500 Oops", "", r#"{"error":{"message":"boom"}}"#);
    let broken_chunk = Reply {
        bytes: format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{part}\r\n", part.len()).into_bytes(),
        piece: usize::MAX,
        then: Then::Close,
    };
    let table: Vec<(&str, Vec<Reply>, &str, usize)> = vec![
        (
            "429 then ok",
            vec![status("429 Slow", "retry-after-ms: 1\r\n", "{}"), hello()],
            "retry 1 model.rate_limited|started",
            2,
        ),
        (
            "429 with seconds",
            vec![status("429 Slow", "retry-after: 0\r\n", "{}"), hello()],
            "retry 1 model.rate_limited|started",
            2,
        ),
        (
            "a wait that is too long",
            vec![status(
                "429 Slow",
                "retry-after: 9999\r\n",
                r#"{"error":"quota"}"#,
            )],
            "!model.rate_limited",
            1,
        ),
        (
            "500 thrice, then ok",
            vec![error_500(), error_500(), error_500(), hello()],
            "retry 1 model.api|retry 2 model.api|retry 3 model.api|started",
            4,
        ),
        (
            "500 for ever",
            vec![error_500()],
            "retry 1 model.api|retry 2 model.api|retry 3 model.api|!model.api",
            4,
        ),
        (
            "closed before anything",
            vec![sse(""), hello()],
            "retry 1 model.stream_interrupted|started",
            2,
        ),
        (
            "closed before the answer's head",
            vec![
                Reply {
                    bytes: b"HT".to_vec(),
                    piece: 9,
                    then: Then::Close,
                },
                hello(),
            ],
            "retry 1 model.connect|started",
            2,
        ),
        (
            "closed after an empty chunk",
            vec![
                sse(&chunks(&[
                    r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
                ])),
                hello(),
            ],
            "retry 1 model.stream_interrupted|started",
            2,
        ),
        (
            "overloaded in the stream",
            vec![
                sse(&chunks(&[r#"{"error":{"code":503,"message":"busy"}}"#])),
                hello(),
            ],
            "retry 1 model.api|started",
            2,
        ),
        (
            "closed after content",
            vec![sse(&part)],
            "started|text 0 [|text 0 \"par\"|!model.stream_interrupted",
            1,
        ),
        (
            "cut off after content",
            vec![broken_chunk],
            "started|text 0 [|text 0 \"par\"|!model.stream_interrupted",
            1,
        ),
        (
            "400",
            vec![status("400 Bad", "", r#"{"error":{"message":"no"}}"#)],
            "!model.api",
            1,
        ),
        (
            "404",
            vec![status(
                "404 None",
                "",
                r#"{"error":{"message":"no such model"}}"#,
            )],
            "!model.not_found",
            1,
        ),
        (
            "too long",
            vec![status(
                "400 Bad",
                "",
                r#"{"error":{"message":"This model's maximum context length is 10","code":"context_length_exceeded"}}"#,
            )],
            "!model.context_overflow",
            1,
        ),
        (
            "redirect",
            vec![status(
                "302 Found",
                "location: https://elsewhere.test/\r\n",
                "",
            )],
            "!model.api",
            1,
        ),
        (
            "not a stream",
            vec![sse("data: <oops>\n\n")],
            "!model.bad_stream",
            1,
        ),
        (
            "a page",
            vec![Reply {
                bytes:
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 3\r\n\r\n<p>"
                        .to_vec(),
                piece: 99,
                then: Then::Close,
            }],
            "!model.bad_stream",
            1,
        ),
        (
            "an answer in one piece",
            vec![status(
                "200 OK",
                "",
                r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#,
            )],
            "started|text 0 [|text 0 \"Hi\"|text 0 ]|finished stop 0/0",
            1,
        ),
    ];
    for (name, script, want, sent) in table {
        let server = serve(script).await;
        let resolved = resolve(&models(mock(&server.url), &[]), "mock/m1");
        let (mut lines, error) =
            collect(resolved.stream(&request(vec![user("hi")], &[]), &options(3))).await;
        if let Some(error) = error {
            lines.push(format!("!{}", error.code()));
        }
        let got = lines.join("|");
        assert!(got.starts_with(want), "{name}: {got}");
        assert_eq!(server.requests.lock().unwrap().len(), sent, "{name}");
    }
}

#[tokio::test]
async fn deadlines_are_typed() {
    let part = chunks(&[r#"{"choices":[{"delta":{"content":"par"}}]}"#]);
    let short = Some(Duration::from_millis(30));
    let none = Deadlines {
        first_byte: None,
        idle: None,
        total: None,
    };
    for (name, reply, deadlines, want) in [
        (
            "no answer",
            Reply {
                bytes: vec![b'H'],
                piece: 1,
                then: Then::Stall,
            },
            Deadlines {
                first_byte: short,
                ..none
            },
            "model.timeout_first_byte",
        ),
        (
            "no first byte",
            sse("").then(Then::Stall),
            Deadlines {
                first_byte: short,
                ..none
            },
            "model.timeout_first_byte",
        ),
        (
            "stall",
            sse(&part).then(Then::Stall),
            Deadlines {
                idle: short,
                ..none
            },
            "model.timeout_idle",
        ),
        (
            "total",
            sse(&part).then(Then::Stall),
            Deadlines {
                total: short,
                ..none
            },
            "model.timeout_total",
        ),
    ] {
        let server = serve(vec![reply]).await;
        let resolved = resolve(&models(mock(&server.url), &[]), "mock/m1");
        let mut options = options(0);
        options.deadlines = Some(deadlines);
        let (_, error) = collect(resolved.stream(&request(vec![user("hi")], &[]), &options)).await;
        assert_eq!(error.map(|e| e.code()), Some(want), "{name}");
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let part = chunks(&[r#"{"choices":[{"delta":{"content":"par"}}]}"#]);
    let mut server = serve(vec![sse(&part).then(Then::Stall)]).await;
    let resolved = resolve(&models(mock(&server.url), &[]), "mock/m1");
    let mut stream = resolved.stream(&request(vec![user("hi")], &[]), &options(0));
    assert!(stream.next().await.is_some());
    drop(stream);
    let gone = tokio::time::timeout(Duration::from_secs(10), server.gone.recv()).await;
    assert_eq!(gone, Ok(Some(())));
}

#[tokio::test]
async fn a_refused_key_is_named_and_not_shown() {
    let body =
        format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}. See docs"}}}}"#);
    let script = vec![status("401 Unauthorized", "", &body)];
    let server = serve(script).await;
    let mut config = mock(&server.url);
    config["mock"]["options"]
        .as_object_mut()
        .unwrap()
        .remove("apiKey");
    config["mock"]["env"] = json!(["MOCK_KEY"]);
    let all = models(config, &[("MOCK_KEY", KEY)]);
    let resolved = resolve(&all, "mock/m1");
    let error = collect(resolved.stream(&request(vec![user("hi")], &[]), &options(3)))
        .await
        .1
        .unwrap();
    insta::assert_snapshot!(format!("{}\n{error}\n{}", error.code(), error.hint().unwrap()), @r#"
    model.auth
    provider `mock` refused the API key from the environment variable MOCK_KEY (status 401): Incorrect API key provided: [key removed]. See docs
    check the environment variable MOCK_KEY: the key may be mistyped, revoked, or have no access to this model
    "#);
    let named = error.to_named();
    assert_eq!(named.name, "ProviderAuthError");
    // As in OpenCode, a client learns that the same request would be refused again.
    assert_eq!(named.data["isRetryable"], false);
    for text in [
        format!("{error:?}"),
        format!("{resolved:?}"),
        format!("{all:?}"),
        format!("{:?}", error.to_named()),
    ] {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[tokio::test]
async fn a_refusal_is_handed_on_without_keys() {
    let body = format!(r#"{{"error":{{"message":"refused {KEY}"}}}}"#);
    let headers = format!("x-request-id: r1\r\nset-cookie: a=b\r\nx-key: {KEY}\r\n");
    for (line, name, status_code) in [
        ("400 Bad Request", "APIError", 400),
        ("404 Not Found", "APIError", 404),
        ("429 Too Many Requests", "APIError", 429),
        ("403 Forbidden", "ProviderAuthError", 403),
    ] {
        let server = serve(vec![status(line, &headers, &body)]).await;
        let mut config = mock(&server.url);
        config["mock"]["options"]["apiKey"] = json!(KEY);
        let resolved = resolve(&models(config, &[]), "mock/m1");
        let error = collect(resolved.stream(&request(vec![user("hi")], &[]), &options(0))).await;
        let named = error.1.unwrap().to_named();
        assert_eq!(
            (named.name.as_str(), &named.data["statusCode"]),
            (name, &json!(status_code))
        );
        assert_eq!(
            named.data["responseBody"],
            r#"{"error":{"message":"refused [key removed]"}}"#
        );
        let headers = &named.data["responseHeaders"];
        assert_eq!(
            (
                &headers["x-request-id"],
                &headers["x-key"],
                headers.get("set-cookie")
            ),
            (&json!("r1"), &json!("[key removed]"), None)
        );
        let url = format!("{}/chat/completions", server.url);
        assert_eq!(named.data["metadata"], json!({ "url": url }));
    }
}

#[tokio::test]
async fn no_server_is_an_error_that_names_the_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let resolved = resolve(&models(mock(&url), &[]), "mock/m1");
    let (lines, error) =
        collect(resolved.stream(&request(vec![user("hi")], &[]), &options(1))).await;
    assert_eq!(lines, ["retry 1 model.connect"]);
    let error = error.unwrap();
    assert_eq!(error.code(), "model.connect");
    assert!(error.to_string().contains(&url), "{error}");
    assert!(error.is_retryable());
    // An invalid label is not even looked up.
    let nowhere = format!("http://{}.invalid/v1", "x".repeat(70));
    let resolved = resolve(&models(mock(&nowhere), &[]), "mock/m1");
    let (lines, error) =
        collect(resolved.stream(&request(vec![user("hi")], &[]), &options(5))).await;
    let error = error.unwrap();
    assert_eq!((lines.len(), error.code()), (0, "model.connect"), "{error}");
    assert!(error.to_string().contains("no host"), "{error}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn anthropic_speaks_its_own_protocol() {
    let events = [
        r#"{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let overloaded = status(
        "529 Overloaded",
        "",
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    );
    let server = serve(vec![overloaded, sse(&chunks(&events)).in_pieces(7)]).await;
    let config = json!({"anthropic": {"options": {"baseURL": server.url}}});
    let resolved = resolve(
        &models(config, &[("ANTHROPIC_API_KEY", KEY)]),
        "anthropic/claude-haiku-4-5",
    );
    let (lines, error) =
        collect(resolved.stream(&request(vec![user("hi")], &["ls"]), &options(1))).await;
    assert!(error.is_none(), "{error:?}");
    insta::assert_snapshot!(lines.join("\n"), @r#"
    retry 1 model.api
    started
    text 0 [
    text 0 "Hi"
    text 0 ]
    finished stop 7/2
    "#);
    let sent = server.requests.lock().unwrap()[1].clone();
    assert!(sent.head.starts_with("POST /v1/messages "));
    assert_eq!(sent.header("x-api-key").as_deref(), Some(KEY));
    assert_eq!(
        sent.header("anthropic-version").as_deref(),
        Some("2023-06-01")
    );
    assert_eq!(sent.header("authorization"), None);
    insta::assert_snapshot!(sent.body, @r#"{"model":"claude-haiku-4-5","max_tokens":64000,"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"tools":[{"name":"ls","description":"d","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"auto"},"stream":true}"#);
}
