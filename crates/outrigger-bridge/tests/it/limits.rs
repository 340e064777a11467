//! What no controller can get past, and what ends with it.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use outrigger_bridge::{CommandRule, Commands};
use serde_json::{Value, json};

use crate::support::*;

/// Attempts at one connection: each is answered with its code, and the connection goes on.
#[tokio::test]
async fn what_is_refused_is_named_and_costs_nothing_else() {
    let world = World::new(|options| {
        let rules = ["echo **", "hang"].map(|rule| CommandRule::read(rule).unwrap());
        options.commands = Commands::new(rules.into(), false);
    })
    .await;
    std::os::unix::fs::symlink("/etc", world.root().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", world.root().join("file")).unwrap();
    std::fs::write(world.root().join("a.txt"), "a").unwrap();
    let mut controller = world.controller().await;
    std::fs::create_dir(world.root().join(".git")).unwrap();
    std::fs::write(world.root().join(".git/config"), "").unwrap();
    std::os::unix::fs::symlink(".git", world.root().join("alias")).unwrap();
    let path = |path: &str| json!({ "filePath": path });
    let write = |path: &str| json!({ "filePath": path, "content": "x" });
    for (tool, params, code) in [
        ("read", path("a.txt"), "ok"),
        ("read", path("new/deep.txt"), "ok"),
        ("read", path("../x"), "bridge.path"),
        ("read", path("/etc/passwd"), "bridge.path"),
        ("read", path("a/../../x"), "bridge.path"),
        ("read", path("link/passwd"), "bridge.path"),
        ("read", path("file"), "bridge.path"),
        ("read", path("/proc/self/root/etc/passwd"), "bridge.path"),
        ("read", path("a\u{0}b"), "bridge.path"),
        (
            "write",
            json!({"filePath": "link/x", "content": ""}),
            "bridge.path",
        ),
        (
            "edit",
            json!({"filePath": "../x", "oldString": "", "newString": ""}),
            "bridge.path",
        ),
        // These name programs for others to start.
        (
            "write",
            json!({"filePath": ".opencode/opencode.json", "content": ""}),
            "bridge.path",
        ),
        (
            "write",
            json!({"filePath": "sub/OpenCode.JSONC", "content": ""}),
            "bridge.path",
        ),
        (
            "edit",
            json!({"filePath": ".claude/settings.json", "oldString": "", "newString": "x"}),
            "bridge.path",
        ),
        (
            "write",
            json!({"filePath": ".mcp.json", "content": ""}),
            "bridge.path",
        ),
        ("exec", json!({"command": "echo x"}), "ok"),
        ("bash", json!({"command": "echo x"}), "ok"),
        (
            "exec",
            json!({"command": "echo x", "workdir": ".."}),
            "bridge.path",
        ),
        (
            "exec",
            json!({"command": "echo x", "workdir": "link"}),
            "bridge.path",
        ),
        ("exec", json!({"command": "id"}), "bridge.command"),
        ("exec", json!({"command": "echo x; id"}), "bridge.command"),
        ("exec", json!({"command": "echo $(id)"}), "bridge.command"),
        ("exec", json!({"command": "/bin/echo x"}), "bridge.command"),
        (
            "exec",
            json!({"command": "PATH=. echo x"}),
            "bridge.command",
        ),
        ("exec", json!({"command": ""}), "bridge.command"),
        ("eval", json!({}), "bridge.contract"),
        (
            "webfetch",
            json!({"url": "http://127.0.0.1"}),
            "bridge.contract",
        ),
        ("read", json!({}), "bridge.params"),
        ("read", json!([]), "bridge.params"),
        ("read", json!(["a.txt"]), "bridge.params"),
        ("exec", json!(["echo hi", null]), "bridge.params"),
        // What git reads is written by nobody, by whatever name; reading it is another thing.
        ("write", write(".git/config"), "bridge.path"),
        ("write", write(".git"), "bridge.path"),
        ("write", write(".GIT/hooks/x"), "bridge.path"),
        ("write", write("sub/.git/config"), "bridge.path"),
        ("write", write("new/../.git/config"), "bridge.path"),
        ("write", write("alias/config"), "bridge.path"),
        ("write", write(".gitignore"), "ok"),
        (
            "edit",
            json!({"filePath": ".git/config", "oldString": "a", "newString": "b"}),
            "bridge.path",
        ),
        ("read", path(".git/config"), "ok"),
        ("read", json!({"filePath": 5}), "bridge.params"),
        (
            "read",
            json!({"filePath": "a.txt", "follow": true}),
            "bridge.params",
        ),
        (
            "read",
            json!({"filePath": "a.txt", "offset": -1}),
            "bridge.params",
        ),
        ("write", json!({"filePath": "a.txt"}), "bridge.params"),
        (
            "exec",
            json!({"command": "echo x", "shell": true}),
            "bridge.params",
        ),
        ("exec", json!({"command": ["echo", "x"]}), "bridge.params"),
    ] {
        controller.invoke("1", tool, params.clone()).await;
        let answer = controller.next().await;
        let got = answer["code"].as_str().unwrap_or("ok");
        assert_eq!(
            (got, &answer["id"]),
            (code, &json!("1")),
            "{tool} {params}: {answer}"
        );
    }
    for (frame, id) in [
        (json!([]), Value::Null),
        (json!({"type": "invoke", "id": "7"}), json!("7")),
        (json!({"type": "admit", "id": "7"}), json!("7")),
        (
            json!({"type": "invoke", "id": "7", "tool": "read", "params": path("a.txt"), "approved": true}),
            json!("7"),
        ),
        (json!({"type": "cancel"}), Value::Null),
    ] {
        controller.send(frame.clone()).await;
        let answer = controller.next().await;
        assert_eq!(
            (&answer["code"], &answer["id"]),
            (&json!("bridge.frame"), &id),
            "{frame}"
        );
    }
    // Each was recorded, the refused ones as such; the points are notified after the limits only.
    let lines = world.executor.lines();
    let has = |text: &str| lines.iter().any(|line| line.contains(text));
    for noted in [
        "audit connection 1 connect passed",
        "audit read 1 completed passed",
        "audit read 1 bridge.path refused: bridge.path",
        "audit exec 1 bridge.command refused: bridge.command",
        "audit eval 1 bridge.contract refused: bridge.contract",
        "bridge.before_invoke {\"callID\":\"1\",\"side\":\"executes\",\"connection\":1,\"sessionID\":null,\"tool\":\"exec\",\"path\":\".\"}",
        "bridge.after_invoke",
        "bridge.on_error",
        "audit frame 7 of connection 1 bridge.frame refused: bridge.frame",
        "audit frame of connection 1 bridge.frame refused: bridge.frame",
    ] {
        assert!(has(noted), "{noted}: {lines:#?}");
    }
    assert!(
        !lines
            .iter()
            .any(|line| line.starts_with("bridge.") && line.contains("eval"))
    );
}

#[tokio::test]
async fn the_101st_call_is_refused_and_the_place_of_one_that_ends_is_free() {
    let world = World::new(|_| {}).await;
    let (mut one, mut two) = (world.controller().await, world.controller().await);
    for n in 0..100 {
        // The limit is that of the bridge, not of a connection.
        let controller = if n % 2 == 0 { &mut one } else { &mut two };
        controller
            .invoke(&n.to_string(), "exec", json!({"command": "hang"}))
            .await;
    }
    world.wait_until_running(100).await;
    one.invoke("101", "exec", json!({"command": "hang"})).await;
    let answer = one.next().await;
    assert_eq!(
        (&answer["code"], &answer["id"]),
        (&json!("bridge.busy"), &json!("101"))
    );
    // An id that runs is not taken a second time.
    one.invoke("0", "read", json!({"filePath": "a"})).await;
    assert_eq!(one.next().await["code"], "bridge.id");
    one.send(json!({"type": "cancel", "id": "0"})).await;
    let answer = one.next().await;
    assert_eq!(
        (&answer["code"], &answer["id"]),
        (&json!("bridge.cancelled"), &json!("0"))
    );
    one.invoke("102", "read", json!({"filePath": "a"})).await;
    assert_eq!(one.next().await["type"], "result");
    // When a controller disconnects, its running calls end, and nothing else. They are recorded as ended.
    drop(two);
    world.wait_until_running(49).await;
    let gone = || {
        let gone = "bridge.gone passed";
        let lines = world.executor.lines();
        let audited = lines.iter().filter(|line| line.contains(gone)).count();
        let losses = lines.iter().filter(|line| {
            line.starts_with("bridge.on_error") && line.contains("\"code\":\"bridge.gone\"")
        });
        (audited, losses.count())
    };
    assert_eq!(gone(), (50, 50));
    drop(one);
    world.wait_until_running(0).await;
    assert_eq!(gone(), (99, 99));
    let lines = world.executor.lines();
    let twice = "audit frame 0 of connection 1 bridge.id refused: bridge.id";
    assert!(lines.iter().any(|line| line == twice), "{lines:#?}");
}

#[tokio::test]
async fn what_hangs_fails_or_panics_costs_its_own_call() {
    let world = World::new(|options| options.deadline = Duration::from_millis(50)).await;
    let mut controller = world.controller().await;
    for (id, command, code) in [
        ("1", "hang", json!("bridge.timeout")),
        ("2", "fail", json!("tool.failed")),
        ("3", "panic", json!("bridge.failed")),
        ("4", "x", Value::Null),
    ] {
        controller
            .invoke(id, "exec", json!({"command": command}))
            .await;
        let answer = controller.next().await;
        assert_eq!(
            (&answer["id"], &answer["code"]),
            (&json!(id), &code),
            "{answer}"
        );
    }
    world.wait_until_running(0).await;
    // A command that hits the call's deadline has no exit code; its output until then is returned. The command's own
    // limit is another thing.
    controller
        .invoke("6", "exec", json!({"command": "slow"}))
        .await;
    let answer = controller.next().await;
    assert_eq!(
        (&answer["code"], &answer["output"]),
        (&json!("bridge.timeout"), &json!("so far")),
        "{answer}"
    );
    let lines = world.executor.lines();
    let notices = lines
        .iter()
        .filter(|line| line.contains("\"callID\":\"6\""));
    let points: Vec<_> = notices.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(points, ["bridge.before_invoke", "bridge.on_error"]);
    let timeout = "audit exec 6 bridge.timeout passed";
    assert!(lines.iter().any(|line| line == timeout), "{lines:#?}");
    controller
        .invoke("7", "exec", json!({"command": "slow", "timeout": 10}))
        .await;
    assert_eq!(controller.next().await["type"], "result");
    // No command runs longer than the deadline, whatever the controller requests.
    controller
        .invoke(
            "5",
            "exec",
            json!({"command": "x", "timeout": 99_999_999_u64}),
        )
        .await;
    let answer = controller.next().await;
    let asked = answer["output"]["output"].as_str().unwrap();
    assert!(asked.contains("\"timeout\":50"), "{asked}");
}

#[tokio::test]
async fn a_huge_frame_and_half_a_frame_end_the_connection() {
    let world = World::new(|options| {
        options.frame_bytes = 64 * 1024;
        options.idle = Duration::from_millis(300);
    })
    .await;
    let mut controller = world.controller().await;
    let huge = "x".repeat(100 * 1024);
    controller
        .invoke("1", "write", json!({"filePath": "a", "content": huge}))
        .await;
    let end = controller.next().await;
    assert!(end["code"] == 1009 || end["type"] == "end", "{end}");
    // The head of a frame that never comes.
    let mut controller = world.controller().await;
    tokio::io::AsyncWriteExt::write_all(controller.0.get_mut(), &[0x81, 0xfe])
        .await
        .unwrap();
    let end = controller.next().await;
    assert!(end["code"] == 1008 || end["type"] == "end", "{end}");
    let mut other = world.controller().await;
    other.invoke("1", "read", json!({"filePath": "a"})).await;
    assert_eq!(other.next().await["type"], "result");
}

/// Nothing, half a head, and a wrong token on a connection that is to be kept: none of them stays, and none takes a
/// controller's place.
#[tokio::test]
async fn who_is_not_let_in_does_not_stay() {
    const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(300);
    let world = World::new(|options| {
        options.pending_connections = 4;
        options.handshake_timeout = HANDSHAKE_TIMEOUT;
    })
    .await;
    let mut before = world.controller().await;
    let half = format!("GET / HTTP/1.1\r\nhost: {}\r\n", world.address);
    let wrong = format!("{half}authorization: Bearer wrong\r\n\r\n");
    let mut strangers = tokio::task::JoinSet::new();
    for said in ["", half.as_str(), wrong.as_str()].repeat(4) {
        let mut stream = tokio::net::TcpStream::connect(&world.address)
            .await
            .unwrap();
        let said = said.to_owned();
        strangers.spawn(async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            // One that was sent away for another may not get that far.
            let _ = stream.write_all(said.as_bytes()).await;
            let mut answer = Vec::new();
            let ended = stream.read_to_end(&mut answer);
            // Ended or reset: both are gone.
            let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
            assert!(ended.is_ok(), "still there: {said:?}");
        });
    }
    let mut behind = world.controller().await;
    while let Some(ended) = strangers.join_next().await {
        ended.unwrap();
    }
    tokio::time::sleep(2 * HANDSHAKE_TIMEOUT).await;
    for controller in [&mut before, &mut behind] {
        controller
            .invoke("1", "read", json!({"filePath": "a"}))
            .await;
        assert_eq!(controller.next().await["type"], "result");
    }
}

/// What the door says, as bytes: a browser's page sees no more.
#[tokio::test]
async fn who_does_not_bring_what_is_asked_for_does_not_get_in() {
    let world = World::new(|options| options.connections = 1).await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let rows = [
        (
            format!("Origin: https://evil.example\r\n{bearer}\r\n{upgrade}"),
            "403",
            "bridge.origin",
        ),
        (
            format!("Origin: null\r\n{bearer}\r\n{upgrade}"),
            "403",
            "bridge.origin",
        ),
        (
            format!("Origin: https://app.example\r\n{upgrade}"),
            "401",
            "bridge.unauthorized",
        ),
        (
            format!("Authorization: Bearer wrong\r\n{upgrade}"),
            "401",
            "bridge.unauthorized",
        ),
        // The token is not part of the address.
        (upgrade.to_owned(), "401", "bridge.unauthorized"),
        (bearer.clone(), "4", ""),
        (
            format!(
                "Origin: https://app.example\r\nSec-WebSocket-Protocol: outrigger.bridge.v1, bearer.{TOKEN}\r\n{upgrade}"
            ),
            "101",
            "",
        ),
    ];
    for (headers, status, code) in rows {
        let address = world.address.clone();
        let answer = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(&address).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            let request =
                format!("GET /?token={TOKEN} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut bytes = vec![0; 2048];
            let n = stream.read(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..n]).into_owned()
        });
        let answer = answer.await.unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
        assert!(answer.contains(code), "{answer}");
        assert!(
            !answer.contains(TOKEN),
            "the token is not sent back: {answer}"
        );
    }
    assert!(
        world
            .executor
            .lines()
            .iter()
            .any(|it| it.contains("refused: bridge.origin"))
    );
}

/// A controller that accepts no answers costs the bridge no more than the answers that may wait.
#[tokio::test]
async fn who_takes_no_answers_begins_no_more_calls() {
    const CALLS: usize = 1500;
    let world = World::new(|_| {}).await;
    let mut controller = world.controller().await;
    let sending = tokio::spawn(async move {
        // The answer says the command.
        let command = "x".repeat(64 * 1024);
        for n in 0..CALLS {
            controller
                .invoke(&n.to_string(), "exec", json!({ "command": command }))
                .await;
        }
        controller
    });
    let begun = || {
        world
            .executor
            .lines()
            .iter()
            .filter(|line| line.starts_with("audit "))
            .count()
    };
    let mut before = 0;
    while before == 0 || before != begun() {
        before = begun();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    // What the system holds of answers under way comes to that.
    assert!((1..CALLS / 2).contains(&before), "{before}");
    sending.abort();
}
