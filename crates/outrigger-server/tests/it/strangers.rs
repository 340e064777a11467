//! Unauthenticated connections are closed; a client's connections stay.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use futures_util::StreamExt as _;
use outrigger_bridge::{Acceptor, ConnectionHandle};
use outrigger_server::{Guard, Login};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const STRANGER_TIMEOUT: Duration = Duration::from_millis(300);
const PLENTY: Duration = Duration::from_secs(120);

async fn said(address: &str, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Reads until the text has arrived.
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
            tokio::time::sleep(4 * STRANGER_TIMEOUT).await;
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
        has_pages: false,
        page: None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let acceptor = Acceptor::with_bounds(listener, 4, STRANGER_TIMEOUT);
    let router = guard.around(router);
    tokio::spawn(async move {
        axum::serve(
            acceptor,
            router.into_make_service_with_connect_info::<ConnectionHandle>(),
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
    // Longer than an unauthenticated connection may take.
    kept.write_all(plain.as_bytes()).await.unwrap();
    until(&mut kept, "\r\n\r\nplain").await;
    until(&mut events, "second").await;
}

/// Starts the server of these tests with these limits, and returns its address.
async fn served(strangers: usize, handshake_timeout: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    served_at(
        |listener| Acceptor::with_bounds(listener, strangers, handshake_timeout),
        listener,
    )
}

/// Starts the server of these tests with a acceptor over a listener, and returns its address.
fn served_at(acceptor: impl FnOnce(TcpListener) -> Acceptor, listener: TcpListener) -> String {
    let guard = Guard {
        login: Some(Login {
            username: "opencode".into(),
            password: "secret".into(),
        }),
        hostname: "127.0.0.1".into(),
        hosts: Vec::new(),
        cors: Vec::new(),
        has_pages: false,
        page: None,
    };
    let address = listener.local_addr().unwrap().to_string();
    let acceptor = acceptor(listener);
    let router = guard.around(Router::new().route("/plain", get(|| async { "plain" })));
    let visited = router.into_make_service_with_connect_info::<ConnectionHandle>();
    tokio::spawn(async move { axum::serve(acceptor, visited).await });
    address
}

/// 1,000 unauthenticated connections reconnect as soon as they are closed: each sends nothing, half a head, a byte at a
/// time, a body that never comes, or does not read the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_does_not_wait_behind_slow_strangers() {
    outrigger_sandbox::open_files::raise_limit();
    let address = served(Acceptor::MAX_PENDING, Acceptor::HANDSHAKE_TIMEOUT).await;
    let strangers = (0..1000).map(|n| {
        let address = address.clone();
        tokio::spawn(async move {
            loop {
                let Ok(mut stream) = TcpStream::connect(&address).await else {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let head =
                    format!("POST /plain HTTP/1.1\r\nhost: {address}\r\ncontent-length: 9\r\n");
                let said = match n % 5 {
                    0 => String::new(),
                    1 => head,
                    2 => head.repeat(2) + "\r\n",
                    3 => "G".into(),
                    _ => format!("GET /plain HTTP/1.1\r\nhost: {address}\r\n\r\n").repeat(100),
                };
                let _ = stream.write_all(said.as_bytes()).await;
                if n % 5 == 4 {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                }
                while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
                // No more than a thousand connections per second.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        })
    });
    let strangers: Vec<_> = strangers.collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..10 {
        let began = std::time::Instant::now();
        let request = format!(
            "GET /plain HTTP/1.1\r\nhost: {address}\r\nauthorization: Basic b3BlbmNvZGU6c2VjcmV0\r\n\r\n"
        );
        // On this machine they share the client's address, so the client may count as one of them until its first bytes
        // are read, and be disconnected. It retries, as any client does.
        while !answered(&address, &request).await {}
        let took = began.elapsed();
        println!("a client was answered after {took:?}");
        // Those ahead of it could delay it for minutes.
        assert!(took < Duration::from_secs(3), "{took:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for stranger in strangers {
        stranger.abort();
    }
}

/// A known client opens 500 connections, and authenticates on each once all are open.
#[tokio::test]
async fn a_known_client_comes_with_many_connections_at_once() {
    outrigger_sandbox::open_files::raise_limit();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = served_at(Acceptor::new, listener);
    let plain = format!(
        "GET /plain HTTP/1.1\r\nhost: {address}\r\nauthorization: Basic b3BlbmNvZGU6c2VjcmV0\r\n\r\n"
    );
    assert!(answered(&address, &plain).await);
    let mut streams = Vec::new();
    for _ in 0..500 {
        streams.push(TcpStream::connect(&address).await.unwrap());
    }
    for stream in &mut streams {
        stream.write_all(plain.as_bytes()).await.unwrap();
    }
    for stream in &mut streams {
        until(stream, "\r\n\r\nplain").await;
    }
}

/// Checks whether a request was answered before its connection was closed.
async fn answered(address: &str, request: &str) -> bool {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("\r\n\r\nplain") {
            if stream.read_buf(&mut seen).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok::<_, std::io::Error>(())
    };
    tokio::time::timeout(PLENTY, exchange)
        .await
        .unwrap()
        .is_ok()
}

#[tokio::test]
async fn a_stranger_sends_no_more_than_a_head() {
    let address = served(8, PLENTY).await;
    for said in [
        format!("GET /{} HTTP/1.1\r\n", "x".repeat(200_000)),
        format!(
            "GET / HTTP/1.1\r\nhost: {address}\r\nx: {}\r\n",
            "x".repeat(200_000)
        ),
        format!(
            "POST / HTTP/1.1\r\nhost: {address}\r\ncontent-length: 900000\r\n\r\n{}",
            "x".repeat(900_000)
        ),
    ] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        // It may be closed before everything is sent.
        let _ = stream.write_all(said.as_bytes()).await;
        let mut seen = Vec::new();
        let ended =
            tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(&mut seen)).await;
        assert!(ended.is_ok(), "still there");
    }
}
