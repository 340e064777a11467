//! `outrigger mcp serve`: access for another agent.

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
        Self::with(world, &[])
    }

    fn with(world: &World, args: &[&str]) -> Self {
        let mut command = world.command(&[&["mcp", "serve"], args].concat());
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

    fn sends(&mut self, method: &str, params: Value) {
        self.next += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        writeln!(self.to, "{request}").unwrap();
    }

    fn hears(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    #[track_caller]
    fn asks(&mut self, method: &str, params: Value) -> Value {
        self.sends(method, params);
        let mut answer = self.hears();
        assert_eq!(answer["id"], self.next, "{answer}");
        if answer["error"].is_null() {
            answer["result"].take()
        } else {
            answer
        }
    }

    /// Returns the text of a tool's answer, and whether it is an error.
    #[track_caller]
    fn calls(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.asks("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = answer["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"));
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
    let uri = format!("outrigger://session/{session}");
    let listed = other.asks("resources/list", json!({}));
    assert_eq!(listed["resources"][0]["uri"], uri, "{listed}");
    let said = other.asks("resources/read", json!({"uri": uri}));
    let said = said["contents"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(said, "User:\ndo it\n\nOutrigger:\nDone by us.\n");
    let begins =
        json!({"ref": {"type": "ref/resource"}, "argument": {"name": "id", "value": "ses_"}});
    let begins = other.asks("completion/complete", begins);
    assert_eq!(begins["completion"]["values"], json!([session]), "{begins}");
    for uri in ["outrigger://session/ses_none", "file:///etc/passwd"] {
        let error = other.asks("resources/read", json!({"uri": uri}));
        assert_eq!(error["error"]["code"], -32002, "{error}");
    }
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
    // A search follows the same rules as reading.
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

/// A tool that is called directly has the rules of the agent that the command line permits, not those of the usual one.
#[test]
fn a_direct_call_has_the_rules_of_the_permitted_agent() {
    let world = World::new([]);
    world.config(json!({
        "agent": {"careful": {"mode": "primary", "permission": {"edit": "deny", "bash": "deny"}}},
    }));
    let calls = [
        ("write", json!({"filePath": "made", "content": "x"})),
        ("bash", json!({"command": "touch made", "description": "d"})),
    ];
    for (agents, is_made) in [(&["--agent", "careful"][..], false), (&[], true)] {
        for (tool, arguments) in &calls {
            let mut other = Other::with(&world, agents);
            let (text, is_error) = other.calls(tool, arguments.clone());
            other.leaves();
            let found = std::fs::remove_file(world.path("made")).is_ok();
            assert_eq!(
                (found, is_error),
                (is_made, !is_made),
                "{agents:?} {tool}: {text}"
            );
        }
    }
}

/// The agents that answer are the user's choice, on the command line.
#[test]
fn another_agent_names_no_agent_but_those_of_the_command_line() {
    let bash = |file: &str| {
        let command = format!("touch {file}");
        turn([call(
            "bash",
            json!({"command": command, "description": "d"}),
        )])
    };
    let answers = [
        bash("mine"),
        done(),
        bash("theirs"),
        done(),
        bash("own"),
        done(),
    ];
    let world = World::new(answers);
    world.config(json!({
        "permission": {"bash": "ask"},
        "agent": {"yolo": {"mode": "primary", "permission": {"bash": "allow"}}},
    }));
    world.run(&["--agent", "yolo", "mine"]).ok();
    let agent_of =
        |id: &str| world.cli(&["session", "export", id]).ok().json()["info"]["agent"].clone();
    let mut other = Other::new(&world);
    let (listed, _) = other.calls("session_list", json!({}));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let users = listed["sessions"][0]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let start = |other: &mut Other, arguments: Value| {
        let (started, _) = other.calls("session_start", arguments);
        let started: Result<Value, _> = serde_json::from_str(&started);
        started.map(|it| it["session_id"].as_str().unwrap().to_owned())
    };
    for name in ["yolo", "explore"] {
        assert!(start(&mut other, json!({"agent": name})).is_err(), "{name}");
    }
    let own = start(&mut other, json!({})).unwrap();
    let prompt = |id: &str, agent: Option<&str>| json!({"session_id": id, "prompt": "do it", "agent": agent});
    for (id, agent, says) in [
        (&own, Some("yolo"), "--agent yolo"),
        (&own, Some("explore"), "--agent explore"),
        (&users, Some("yolo"), "--agent yolo"),
        (&users, Some("build"), "keeps its agent yolo"),
        (&users, None, "--agent yolo"),
    ] {
        let (text, is_error) = other.calls("session_prompt", prompt(id, agent));
        assert!(is_error && text.contains(says), "{agent:?}: {text}");
    }
    other.leaves();
    assert_eq!(agent_of(&users), "yolo");
    assert_eq!(
        world.mock.requests().len(),
        2,
        "nothing was asked of the model"
    );

    let mut other = Other::with(&world, &["--agent", "yolo", "--agent", "build"]);
    let (text, is_error) = other.calls("session_prompt", prompt(&users, None));
    assert!(!is_error, "{text}");
    let own = start(&mut other, json!({})).unwrap();
    let (text, is_error) = other.calls("session_prompt", prompt(&own, Some("yolo")));
    assert!(!is_error, "{text}");
    other.leaves();
    for file in ["mine", "theirs", "own"] {
        assert!(world.path(file).exists(), "{file}");
    }
    let unknown = world.cli(&["mcp", "serve", "--agent", "nobody"]);
    assert!(unknown.stderr.contains("agent.no_agent"), "{unknown:?}");
}

/// A subscribed client is notified of each call that ends, and of a session it watches.
#[test]
fn another_agent_follows_what_is_done() {
    let read = call("read", json!({"filePath": "hello.txt"}));
    let world = World::new([turn([read]), done()]);
    let mut other = Other::new(&world);
    let (started, _) = other.calls("session_start", json!({}));
    let started: Value = serde_json::from_str(&started).unwrap();
    let uri = format!(
        "outrigger://session/{}",
        started["session_id"].as_str().unwrap()
    );
    other.asks("resources/subscribe", json!({"uri": uri}));
    other.sends(
        "tools/call",
        json!({
            "name": "session_prompt", "_meta": {"progressToken": "p"},
            "arguments": {"session_id": started["session_id"], "prompt": "do it"},
        }),
    );
    let (mut progress, mut changed, mut answered) = (0, false, false);
    while !(changed && answered) {
        let message = other.hears();
        match message["method"].as_str() {
            Some("notifications/progress") => {
                let params = &message["params"];
                assert_eq!(
                    (&params["progressToken"], &params["progress"]),
                    (&json!("p"), &json!(1))
                );
                assert_eq!(params["message"], "read: hello.txt");
                assert!(!answered, "{message}");
                progress += 1;
            }
            Some("notifications/resources/updated") => {
                assert_eq!(message["params"]["uri"], uri);
                changed = true;
            }
            _ => {
                assert!(message["result"].is_object(), "{message}");
                answered = true;
            }
        }
    }
    assert_eq!(progress, 1);
    other.leaves();
}

#[test]
fn over_http_a_password_is_needed_and_pages_stay_out() {
    let world = World::new([done()]);
    let port = free_port();
    let mut command = world.command(&["mcp", "serve", "--port", &port]);
    command.env("OPENCODE_SERVER_PASSWORD", "word");
    let running = world.start(command);
    wait_until(WAIT_TIMEOUT, || {
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
