//! `webfetch` and `websearch` against a server on loopback.

use outrigger_tools::ToolRuntime;
use outrigger_tools::builtin::{Options, SearchService, register_all};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::Room;

/// Returns a search service with a key.
pub(crate) fn service(url: &str) -> SearchService {
    SearchService {
        url: url.to_owned(),
        key: Some("exa-secret-key-1".to_owned()),
    }
}

// Answers by path; `/slow` never does.
async fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = vec![0; 8192];
                let n = stream.read(&mut request).await.unwrap_or(0);
                let path = String::from_utf8_lossy(&request[..n])
                    .split(' ')
                    .nth(1)
                    .unwrap_or("")
                    .to_owned();
                let page =
                    "<html><body><h1>Head</h1><p>Para <b>bold</b></p></body></html>".to_owned();
                let (status, kind, body) = match path.as_str() {
                    "/a.html" => ("200 OK", "content-type: text/html; charset=utf-8", page),
                    "/plain" => (
                        "200 OK",
                        "content-type: text/plain",
                        "plain <b>text</b>\n".to_owned(),
                    ),
                    "/png" => ("200 OK", "content-type: image/png", "png".to_owned()),
                    "/big" => (
                        "200 OK",
                        "content-type: text/plain",
                        "a".repeat(6 * 1024 * 1024),
                    ),
                    "/none" => ("200 OK", "x-nothing: 1", "<p>x</p>".to_owned()),
                    "/redir" => ("302 Found", "location: /plain", String::new()),
                    "/circle" => ("302 Found", "location: /circle", String::new()),
                    "/slow" => return std::future::pending().await,
                    _ => (
                        "404 Not Found",
                        "content-type: text/plain",
                        "nope".to_owned(),
                    ),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\n{kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            });
        }
    });
    base
}

#[tokio::test]
async fn pages_in_every_form() {
    let room = Room::new();
    let base = serve().await;
    for (path, format, title, output) in [
        (
            "/a.html",
            Value::Null,
            "text/html; charset=utf-8",
            "# Head\n\nPara **bold**",
        ),
        (
            "/a.html",
            json!("text"),
            "text/html; charset=utf-8",
            "Head\nPara bold",
        ),
        (
            "/a.html",
            json!("html"),
            "text/html; charset=utf-8",
            "<html><body><h1>Head</h1><p>Para <b>bold</b></p></body></html>",
        ),
        ("/plain", Value::Null, "text/plain", "plain <b>text</b>\n"),
        ("/redir", Value::Null, "text/plain", "plain <b>text</b>\n"),
        ("/none", Value::Null, "", "<p>x</p>"),
        (
            "/png",
            Value::Null,
            "image/png",
            "Image fetched successfully",
        ),
    ] {
        let url = format!("{base}{path}");
        let mut input = json!({"url": url});
        if !format.is_null() {
            input["format"] = format;
        }
        let got = room.output("webfetch", input).await;
        assert_eq!(
            (got.title, got.output.as_str()),
            (format!("{url} ({title})"), output)
        );
        assert_eq!(got.attachments.is_some(), path == "/png");
        assert_eq!(
            room.asked(),
            [format!("webfetch [\"{url}\"] [\"{base}/*\"]")]
        );
    }
}

#[tokio::test]
async fn what_cannot_be_fetched() {
    let room = Room::new();
    let base = serve().await;
    for (input, text) in [
        (
            json!({"url": "ftp://x/y"}),
            "URL must start with http:// or https://".to_owned(),
        ),
        (
            json!({"url": "file:///etc/passwd"}),
            "URL must start with http:// or https://".to_owned(),
        ),
        (
            json!({"url": format!("{base}/404")}),
            format!("StatusCode: non 2xx status code (404 GET {base}/404)"),
        ),
        (
            json!({"url": format!("{base}/big")}),
            "Response too large (exceeds 5MB limit)".to_owned(),
        ),
        (
            json!({"url": format!("{base}/slow"), "timeout": 0.2}),
            "Request timed out".to_owned(),
        ),
        (
            json!({"url": format!("{base}/circle")}),
            format!("Transport error (GET {base}/circle): too many redirects"),
        ),
        (
            json!({"url": "http://"}),
            "Transport error (GET http://)".to_owned(),
        ),
        (
            json!({"url": "http://x", "format": "pdf"}),
            "The webfetch tool was called with invalid arguments".to_owned(),
        ),
    ] {
        let (_, message) = room.failure("webfetch", input).await;
        assert!(message.starts_with(&text), "{message}");
    }
}

/// Answers each request according to its body, and remembers it.
async fn search() -> (String, std::sync::Arc<std::sync::Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let requests = std::sync::Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = String::new();
            let mut bytes = vec![0; 8192];
            // The body comes last, and ends with the call.
            while !request.ends_with("}}}") {
                let n = stream.read(&mut bytes).await.unwrap_or(0);
                request += &String::from_utf8_lossy(&bytes[..n]);
            }
            let answer = |body: &str| {
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                )
            };
            let reply = match () {
                () if request.contains("\"broken\"") => "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
                () if request.contains("\"away\"") => "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
                () if request.contains("\"wrong\"") => answer("{\"error\":{\"message\":\"no such tool\"}}"),
                () if request.contains("\"nothing\"") => answer("data: {\"result\":{\"content\":[]}}\n\n"),
                () => answer("event: message\ndata: {\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"Title: A\"}]}}\n\n"),
            };
            requests.lock().unwrap().push(request);
            let _ = stream.write_all(reply.as_bytes()).await;
        }
    });
    (base, seen)
}

fn searching(url: &str) -> Room {
    let runtime = ToolRuntime::new();
    let options = Options {
        search: Some(service(url)),
        ..Options::default()
    };
    register_all(&runtime, &options).unwrap();
    let mut room = Room::new();
    room.runtime = runtime;
    room
}

#[tokio::test]
async fn the_web_is_searched_by_the_service_that_the_user_chose() {
    let names = |room: &Room| {
        room.runtime
            .specs()
            .into_iter()
            .map(|spec| spec.name)
            .collect::<Vec<String>>()
    };
    assert!(!names(&Room::new()).contains(&"websearch".to_owned()));
    let (url, seen) = search().await;
    let room = searching(&url);
    let got = room
        .output(
            "websearch",
            json!({ "query": "outrigger", "numResults": 3.0, "contextMaxCharacters": 500 }),
        )
        .await;
    assert_eq!(
        (got.title.as_str(), got.output.as_str()),
        ("Web search: outrigger", "Title: A")
    );
    assert_eq!(room.asked(), [r#"websearch ["outrigger"] ["*"]"#]);
    let request = seen.lock().unwrap().remove(0);
    assert!(
        request.starts_with("POST /mcp?exaApiKey=exa-secret-key-1 "),
        "{request}"
    );
    let body: Value = serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(
        body["params"],
        json!({ "name": "web_search_exa", "arguments": { "query": "outrigger", "type": "auto", "numResults": 3, "livecrawl": "fallback", "contextMaxCharacters": 500 } })
    );
    let got = room
        .output("websearch", json!({ "query": "nothing" }))
        .await;
    assert!(
        got.output.starts_with("No search results found."),
        "{}",
        got.output
    );
}

#[tokio::test]
async fn a_search_that_fails_says_why_and_shows_no_key() {
    let (url, seen) = search().await;
    let room = searching(&url);
    for (query, says) in [
        ("broken", "status 401"),
        // Only the service is sent the query.
        ("away", "status 302"),
        ("wrong", "Web search failed: no such tool"),
    ] {
        let (_, message) = room.failure("websearch", json!({ "query": query })).await;
        assert!(
            message.contains(says) && !message.contains("exa-secret"),
            "{message}"
        );
    }
    assert_eq!(seen.lock().unwrap().len(), 3);
    let (_, message) = searching("http://127.0.0.1:1/")
        .failure("websearch", json!({ "query": "x" }))
        .await;
    assert!(
        message.contains("cannot be asked") && !message.contains("exa-secret"),
        "{message}"
    );
    *room.host.refuse.lock().unwrap() = Some("websearch");
    room.failure("websearch", json!({ "query": "refused" }))
        .await;
    assert_eq!(seen.lock().unwrap().len(), 3);
}
