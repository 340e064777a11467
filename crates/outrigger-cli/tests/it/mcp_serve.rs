//! `outrigger mcp serve`: another agent's way in.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::*;

/// Another agent, over standard input and output.
struct Other {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: u64,
}

impl Other {
    fn new(world: &World) -> Self {
        let mut command = world.command(&["mcp", "serve"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut other = Self {
            to: child.stdin.take().unwrap(),
            from: BufReader::new(child.stdout.take().unwrap()),
            child,
            next: 0,
        };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}});
        let about = other.asks("initialize", hello);
        assert_eq!(about["serverInfo"]["name"], "outrigger", "{about}");
        writeln!(
            other.to,
            r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#
        )
        .unwrap();
        other
    }

    #[track_caller]
    fn asks(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        writeln!(self.to, "{request}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.next, "{line}");
        match answer["error"].is_null() {
            true => answer["result"].take(),
            false => answer,
        }
    }

    /// The text of a tool's answer, and whether it is an error.
    #[track_caller]
    fn calls(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.asks("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = answer["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}"));
        (text.to_owned(), answer["isError"] == true)
    }

    fn leaves(self) {
        let Self { mut child, to, .. } = self;
        drop(to);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn another_agent_prompts_reads_and_calls_tools_under_our_rules() {
    let world = World::new([text("Done by us.")]);
    world.config(json!({"permission": {
        "bash": {"*": "ask", "echo *": "allow"},
        "read": {"*": "allow", "secret.txt": "deny"},
    }}));
    world.file("secret.txt", "the secret");
    let mut other = Other::new(&world);
    let tools = other.asks("tools/list", json!({}));
    let names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    for name in [
        "session_start",
        "session_prompt",
        "session_read",
        "read",
        "bash",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(
        !names.contains(&"task") && !names.contains(&"question"),
        "{names:?}"
    );

    let (started, _) = other.calls("session_start", json!({"title": "For another"}));
    let started: Value = serde_json::from_str(&started).unwrap();
    let session = started["session_id"].as_str().unwrap();
    let prompt = json!({"session_id": session, "prompt": "do it"});
    assert_eq!(
        other.calls("session_prompt", prompt),
        ("Done by us.".to_owned(), false)
    );
    let (read, _) = other.calls("session_read", json!({"session_id": session}));
    assert!(
        read.contains("do it") && read.contains("Done by us."),
        "{read}"
    );
    let (listed, _) = other.calls("session_list", json!({}));
    assert!(listed.contains("For another"), "{listed}");
    let nobody = json!({"session_id": "ses_none", "prompt": "x"});
    assert!(other.calls("session_prompt", nobody).1);

    let (hello, is_error) = other.calls("read", json!({"filePath": world.path("hello.txt")}));
    assert!(hello.contains("hi there") && !is_error, "{hello}");
    for (tool, arguments) in [
        ("read", json!({"filePath": world.path("secret.txt")})),
        (
            "bash",
            json!({"command": "cat hello.txt", "description": "d"}),
        ),
    ] {
        let (text, is_error) = other.calls(tool, arguments);
        assert!(is_error && !text.contains("the secret"), "{tool}: {text}");
    }
    // A search goes by the same rules as reading.
    let (found, _) = other.calls("grep", json!({"pattern": "the secret"}));
    assert!(!found.contains("secret.txt"), "{found}");
    let (said, is_error) = other.calls(
        "bash",
        json!({"command": "echo from-outside", "description": "d"}),
    );
    assert!(said.contains("from-outside") && !is_error, "{said}");
    let unknown = other.asks("tools/call", json!({"name": "task"}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    other.leaves();

    let audit = world.cli(&["audit", "list", "--json"]).ok().stdout;
    assert!(audit.contains("mcp client tester"), "{audit}");
}

#[test]
fn over_http_a_password_is_needed_and_pages_stay_out() {
    let world = World::new([done()]);
    let port = free_port();
    let mut command = world.command(&["mcp", "serve", "--port", &port]);
    command.env("OPENCODE_SERVER_PASSWORD", "word");
    let running = world.start(command);
    wait_until(std::time::Duration::from_secs(60), || {
        running.stdout().contains("listening") || running.is_over()
    });
    let mut server = Server {
        running,
        address: format!("127.0.0.1:{port}"),
        auth: None,
    };
    let hello =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).to_string();
    let post = |server: &Server, headers: &[(&str, &str)]| {
        server.send("POST", "/mcp", headers, Some(&hello)).status
    };
    assert_eq!(post(&server, &[]), 401);
    server.auth = Some(basic("opencode:word"));
    assert_eq!(post(&server, &[("origin", "https://evil.test")]), 403);
    assert_eq!(post(&server, &[("host", "evil.test")]), 403);
    assert_eq!(post(&server, &[]), 200);
    assert_eq!(
        server
            .send("POST", "/mcp", &[("mcp-session-id", "none")], Some(&hello))
            .status,
        404
    );
}
