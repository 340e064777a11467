//! Terminals with real shells, over a real port where a WebSocket is needed.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::World;

const PLENTY: Duration = Duration::from_secs(120);

type Socket = WebSocketStream<TcpStream>;

/// Serves the world's router on a separate port.
async fn serve(world: &World) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let router = outrigger_server::router(world.agent.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn connect(address: &str, path: &str, origin: Option<&str>) -> Result<Socket, u16> {
    let mut request = format!("ws://{address}{path}")
        .into_client_request()
        .unwrap();
    if let Some(origin) = origin {
        request
            .headers_mut()
            .insert("origin", origin.parse().unwrap());
    }
    let stream = TcpStream::connect(address).await.unwrap();
    match client_async(request, stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

/// Reads until `end` has arrived: texts unchanged, the binary frame in brackets, the close with its code.
async fn read_until(socket: &mut Socket, end: &str) -> String {
    let mut seen = String::new();
    let read = async {
        while !seen.contains(end) {
            match socket.next().await {
                Some(Ok(Message::Text(text))) => seen.push_str(&text),
                Some(Ok(Message::Binary(bytes))) => {
                    assert_eq!(bytes[0], 0);
                    seen.push_str(&format!("[{}]", String::from_utf8_lossy(&bytes[1..])));
                }
                Some(Ok(Message::Close(frame))) => {
                    seen.push_str(&format!("<{}>", frame.map_or(0, |f| f.code.into())));
                    break;
                }
                Some(Ok(_)) => {}
                _ => break,
            }
        }
    };
    let done = tokio::time::timeout(PLENTY, read).await;
    assert!(
        done.is_ok() && seen.contains(end),
        "{seen:?} has no {end:?}"
    );
    seen
}

fn plain_shell(extra: Value) -> Value {
    let mut body = json!({
        "command": "/bin/sh", "args": ["-c", "PS1=; export PS1; exec sh -i"], "title": "t", "env": {"MINE": "yes"},
    });
    body.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn a_terminal_is_opened_listed_changed_and_closed() {
    let world = World::plain().await;
    let mut events = world.agent.listen();
    let made = world
        .post("/pty", json!({"command": "/bin/sh", "args": ["-i"]}))
        .await
        .ok();
    let id = made["id"].as_str().unwrap();
    let pid = u32::try_from(made["pid"].as_u64().unwrap()).unwrap();
    assert_eq!(
        made,
        json!({
            "id": id, "title": format!("Terminal {}", &id[id.len() - 4..]), "command": "/bin/sh", "args": ["-i", "-l"],
            "cwd": world.project(), "status": "running", "pid": pid,
        })
    );
    assert_eq!(
        World::event(&mut events, "pty.created").await,
        json!({"info": made})
    );
    assert_eq!(world.get("/pty").await.ok(), json!([made]));
    let path = format!("/pty/{id}");
    let body = json!({"title": "T", "size": {"rows": 10, "cols": 20}}).to_string();
    let changed = world.send("PUT", &path, Some(&body)).await.ok();
    assert_eq!(changed["title"], "T");
    assert_eq!(
        World::event(&mut events, "pty.updated").await,
        json!({"info": changed})
    );
    assert_eq!(world.get(&path).await.ok(), changed);
    assert_eq!(world.send("DELETE", &path, None).await.ok(), json!(true));
    assert_eq!(
        World::event(&mut events, "pty.deleted").await,
        json!({"id": id})
    );
    assert_eq!(world.get("/pty").await.ok(), json!([]));
    let end = std::time::Instant::now() + PLENTY;
    while outrigger_sandbox::start_time(pid).is_some() {
        assert!(
            std::time::Instant::now() < end,
            "the shell {pid} still runs"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_is_typed_comes_back_and_late_clients_get_the_rest() {
    let world = World::plain().await;
    let address = serve(&world).await;
    let made = world.post("/pty", plain_shell(json!({}))).await.ok();
    let path = format!("/pty/{}/connect", made["id"].as_str().unwrap());
    let mut first = connect(&address, &path, None).await.unwrap();
    read_until(&mut first, "\"cursor\":").await;
    first
        .send(Message::text(
            "echo $MINE-$TERM; stty -echo; echo rea''dy\r",
        ))
        .await
        .unwrap();
    let seen = read_until(&mut first, "ready").await;
    assert!(seen.contains("yes-xterm-256color"), "{seen:?}");
    first
        .send(Message::binary(&b"echo b\xc3\xa9y\r"[..]))
        .await
        .unwrap();
    read_until(&mut first, "b\u{e9}y").await;

    let mut whole = connect(&address, &path, None).await.unwrap();
    let replay = read_until(&mut whole, "}]").await;
    let (text, cursor) = replay.split_once('[').unwrap();
    let cursor: Value = serde_json::from_str(cursor.trim_end_matches(']')).unwrap();
    assert_eq!(cursor["cursor"], text.encode_utf16().count());
    let last = text.encode_utf16().count() - 4;
    let mut rest = connect(&address, &format!("{path}?cursor={last}"), None)
        .await
        .unwrap();
    let tail: String = text.chars().skip(text.chars().count() - 4).collect();
    assert!(
        read_until(&mut rest, "}]")
            .await
            .starts_with(&format!("{tail}["))
    );
    let mut now = connect(&address, &format!("{path}?cursor=-1"), None)
        .await
        .unwrap();
    assert!(read_until(&mut now, "}]").await.starts_with('['));

    let mut events = world.agent.listen();
    now.send(Message::text("exit 3\r")).await.unwrap();
    for socket in [&mut first, &mut whole, &mut rest, &mut now] {
        read_until(socket, "<1000>").await;
    }
    let ended = World::event(&mut events, "pty.exited").await;
    assert_eq!(ended, json!({"id": made["id"], "exitCode": 3}));
    assert_eq!(connect(&address, &path, None).await.unwrap_err(), 404);
    let answer = world
        .get(&format!("/pty/{}", made["id"].as_str().unwrap()))
        .await;
    assert_eq!(answer.json()["_tag"], "PtyNotFoundError");
}

#[tokio::test]
async fn a_ticket_opens_one_terminal_once() {
    let world = World::plain().await;
    let address = serve(&world).await;
    let id = world.post("/pty", plain_shell(json!({}))).await.ok()["id"].clone();
    let other = world.post("/pty", plain_shell(json!({}))).await.ok()["id"].clone();
    let (id, other) = (id.as_str().unwrap(), other.as_str().unwrap());
    let plain = world
        .post(&format!("/pty/{id}/connect-token"), json!({}))
        .await;
    assert_eq!(
        (plain.status.as_u16(), &plain.json()["_tag"]),
        (403, &json!("PtyForbiddenError"))
    );
    let header = [("x-opencode-ticket", "1")];
    let path = format!("/pty/{id}/connect-token");
    let foreign = [header[0], ("origin", "http://evil.test")];
    assert_eq!(world.send_with("POST", &path, &foreign).await.status, 403);
    assert_eq!(
        world
            .send_with("POST", "/pty/pty_x/connect-token", &header)
            .await
            .status,
        404
    );
    let issued = world.send_with("POST", &path, &header).await.ok();
    assert_eq!(issued["expires_in"], 60);
    let ticket = issued["ticket"].as_str().unwrap();
    let way = |id: &str, ticket: &str| format!("/pty/{id}/connect?ticket={ticket}");
    let cases = [
        (way(id, "bad"), None, 403),
        (way(other, ticket), None, 403),
        (format!("/pty/{id}/connect"), Some("http://evil.test"), 403),
        (format!("/pty/{id}/connect"), Some("null"), 403),
        ("/pty/pty_x/connect".to_owned(), None, 404),
    ];
    for (path, origin, status) in cases {
        assert_eq!(
            connect(&address, &path, origin).await.unwrap_err(),
            status,
            "{path}"
        );
    }
    let mut socket = connect(&address, &way(id, ticket), Some("http://localhost:3000"))
        .await
        .unwrap();
    read_until(&mut socket, "\"cursor\":").await;
    assert_eq!(
        connect(&address, &way(id, ticket), None).await.unwrap_err(),
        403,
        "used up"
    );
    let no_socket = world.get(&format!("/pty/{id}/connect")).await;
    assert_eq!(no_socket.error(), (400, "BadRequest".to_owned()));
}

#[tokio::test]
async fn what_cannot_be_started_is_reported() {
    let world = World::plain().await;
    let cases = [
        json!({"command": "/no/such/program"}),
        json!({"command": "no-such-program-anywhere"}),
        json!({"cwd": "/no/such/folder"}),
        json!({"env": {"A": 1}}),
        json!({"args": "x"}),
    ];
    for body in cases {
        let answer = world.post("/pty", body.clone()).await;
        assert_eq!(answer.error(), (400, "BadRequest".to_owned()), "{body}");
    }
    assert_eq!(world.get("/pty").await.ok(), json!([]));
    for (method, path, body) in [
        ("GET", "/pty/pty_x", None),
        ("PUT", "/pty/pty_x", Some("{}")),
        ("DELETE", "/pty/pty_x", None),
    ] {
        let answer = world.send(method, path, body).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["ptyID"]),
            (404, &json!("pty_x")),
            "{method}"
        );
    }
    let shells = world.get("/pty/shells").await.ok();
    assert!(
        shells
            .as_array()
            .unwrap()
            .iter()
            .all(|s| s["path"].is_string() && s["acceptable"].is_boolean())
    );
}

#[tokio::test]
async fn terminals_end_with_the_agent_and_see_no_secrets() {
    let world = World::plain().await;
    let address = serve(&world).await;
    let made = world
        .post(
            "/pty",
            plain_shell(json!({"env": {"LD_PRELOAD": "/x.so", "OK": "1"}})),
        )
        .await
        .ok();
    let path = format!("/pty/{}/connect", made["id"].as_str().unwrap());
    let mut socket = connect(&address, &path, None).await.unwrap();
    socket
        .send(Message::text(
            "echo [$LD_PRELOAD$OPENCODE_SERVER_PASSWORD$OK]$OPENCODE_TERMINAL\r",
        ))
        .await
        .unwrap();
    read_until(&mut socket, "[1]1").await;
    world.agent.shutdown().await;
    read_until(&mut socket, "<1000>").await;
    assert_eq!(world.get("/pty").await.ok(), json!([]));
}
