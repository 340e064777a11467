//! Who has not been let in does not stay; a client's connections do.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use futures_util::StreamExt as _;
use outrigger_bridge::{Door, Visitor};
use outrigger_server::{Guard, Login};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_millis(300);
const PLENTY: Duration = Duration::from_secs(60);

async fn said(address: &str, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Reads up to where the text has come.
async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut seen = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&seen).contains(end) {
            assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0, "ended");
        }
    };
    tokio::time::timeout(PLENTY, read).await.unwrap();
    String::from_utf8_lossy(&seen).into_owned()
}

#[tokio::test]
async fn a_stranger_does_not_stay_and_a_client_does() {
    let events = || async {
        let pause = || async {
            tokio::time::sleep(4 * PATIENCE).await;
            Ok::<_, Infallible>(Bytes::from("data: second\n\n"))
        };
        let first = futures_util::stream::iter([Ok(Bytes::from("data: first\n\n"))]);
        Body::from_stream(first.chain(futures_util::stream::once(pause())))
    };
    let router = Router::new()
        .route("/plain", get(|| async { "plain" }))
        .route("/events", get(events));
    let guard = Guard {
        login: Some(Login {
            username: "opencode".into(),
            password: "secret".into(),
        }),
        hostname: "127.0.0.1".into(),
        hosts: Vec::new(),
        cors: Vec::new(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let door = Door::with_bounds(listener, 4, PATIENCE);
    let router = guard.around(router);
    tokio::spawn(async move {
        axum::serve(
            door,
            router.into_make_service_with_connect_info::<Visitor>(),
        )
        .await
    });
    let head = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n");
    // opencode:secret
    let login = "authorization: Basic b3BlbmNvZGU6c2VjcmV0\r\n\r\n";
    let plain = head("/plain") + login;

    let mut events = said(&address, &(head("/events") + login)).await;
    let mut kept = said(&address, &plain).await;
    until(&mut events, "first").await;
    until(&mut kept, "\r\n\r\nplain").await;

    for (stranger, answer) in [
        (String::new(), ""),
        (head("/plain"), ""),
        (head("/plain") + "\r\n", "HTTP/1.1 401"),
    ] {
        let mut stream = said(&address, &stranger).await;
        let mut seen = Vec::new();
        let ended = tokio::time::timeout(PLENTY, stream.read_to_end(&mut seen)).await;
        assert!(ended.is_ok(), "still there: {stranger:?}");
        let seen = String::from_utf8_lossy(&seen);
        assert!(seen.starts_with(answer), "{stranger:?}: {seen}");
    }
    // Longer than a stranger's time has passed.
    kept.write_all(plain.as_bytes()).await.unwrap();
    until(&mut kept, "\r\n\r\nplain").await;
    until(&mut events, "second").await;
}
