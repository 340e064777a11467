//! `webfetch` against a server on loopback.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::Room;

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
