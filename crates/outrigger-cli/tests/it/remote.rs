//! Clients of a server: `attach`, `run --attach`, passwords, two servers on one data folder.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::support::*;

/// Starts a server with a password, in the plain way.
fn secured(world: &World) -> (Server, String) {
    let mut server = world.serve(&[]);
    let noticed = wait_until(WAIT_TIMEOUT, || {
        server
            .running
            .stderr()
            .contains("OPENCODE_SERVER_PASSWORD=")
    });
    let stderr = server.running.stderr();
    assert!(noticed, "{stderr}");
    let password = stderr
        .split("OPENCODE_SERVER_PASSWORD=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .unwrap()
        .to_owned();
    server.auth = Some(basic(&format!("opencode:{password}")));
    (server, password)
}

#[test]
fn a_server_is_never_open_unless_configured_to_be() {
    let world = World::new([done()]);
    let (server, password) = secured(&world);
    let answer = server.send("GET", "/session", &[("authorization", "Basic eDp5")], None);
    assert_eq!(answer.status, 401);
    assert_eq!(
        answer.header("www-authenticate"),
        Some("Basic realm=\"Secure Area\"")
    );
    for path in ["/global/health", "/event", "/nothing"] {
        let answer = server.send("GET", path, &[("authorization", "")], None);
        assert_eq!(answer.status, 401, "{path}");
    }
    server.get("/session").json(200);
    let token = format!(
        "/session?auth_token={}",
        server.auth.clone().unwrap()[6..].replace('=', "%3D")
    );
    assert_eq!(
        server
            .send("GET", &token, &[("authorization", "")], None)
            .status,
        200
    );
    let stranger = [("host", "evil.example")];
    assert_eq!(server.send("GET", "/session", &stranger, None).status, 403);
    let page = [("origin", "http://evil.example")];
    assert_eq!(server.send("GET", "/session", &page, None).status, 403);
    // A ticket alone starts no agent anywhere.
    let ticket = "/pty/pty_1/connect?ticket=x&directory=/";
    assert_eq!(
        server
            .send("GET", ticket, &[("authorization", "")], None)
            .status,
        401
    );
    // The next server has the same password, unless the environment sets one.
    assert_eq!(secured(&world).1, password);
    let mut command = world.command(&["serve", "--port", &free_port()]);
    command
        .env("OPENCODE_SERVER_PASSWORD", "mine")
        .env("OPENCODE_SERVER_USERNAME", "me");
    let mut named = world.serve_with(command);
    named.auth = Some(basic("me:mine"));
    named.get("/session").json(200);
    named.auth = Some(basic("opencode:mine"));
    assert_eq!(named.get("/session").status, 401);
    assert!(!named.running.stderr().contains("mine"));
    // Without a password, access from other machines is refused.
    let refused = world
        .cli(&["serve", "--no-auth", "--hostname", "0.0.0.0"])
        .exited(2);
    assert!(
        refused.stderr.contains("would let everyone in"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_port_that_is_taken_is_named() {
    let world = World::new([done()]);
    let server = world.serve(&["--no-auth"]);
    let port = server.address.rsplit(':').next().unwrap();
    let refused = world.cli(&["serve", "--port", port]).exited(1);
    assert!(
        refused.stderr.contains(&format!("port {port}")),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_prompt_runs_on_a_server() {
    let world = World::new([
        turn([call("read", json!({ "filePath": "hello.txt" }))]),
        done(),
    ]);
    let (server, password) = secured(&world);
    let url = server.url();
    // On this machine the stored password is found.
    let done = world.run(&["--attach", &url, "--title", "T", "look"]).ok();
    assert_eq!(done.stdout, "All done.\n", "{}", done.stderr);
    assert!(done.stderr.contains("hello.txt"), "{}", done.stderr);
    let again = world.run_with(
        &[("OPENCODE_SERVER_PASSWORD", &password)],
        &["--attach", &url, "-c", "--format", "json", "again"],
    );
    let lines = again.ok().lines();
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    assert_eq!(kinds, ["step_start", "text", "step_finish"]);
    let messages = world.export()["messages"].as_array().unwrap().len();
    assert_eq!(messages, 5, "two prompts in one session");
    for (args, code, text) in [
        (vec!["--password", "no", "x"], 1, "[attach.password]"),
        (vec!["-s", "ses_none", "x"], 1, "ses_none"),
        (vec!["-m", "mock/none", "x"], 1, "none"),
    ] {
        let refused = world
            .run(&[&["--attach", &url], args.as_slice()].concat())
            .exited(code);
        assert!(refused.stderr.contains(text), "{}", refused.stderr);
    }
    server.stop();
    let gone = world.run(&["--attach", &url, "x"]).exited(1);
    assert!(
        gone.stderr.contains("[attach.unreachable]"),
        "{}",
        gone.stderr
    );
    world.run(&["--attach", "nowhere", "x"]).exited(2);
}

#[test]
fn nobody_at_the_terminal_is_a_refusal_and_auto_a_yes() {
    let write = turn([call(
        "bash",
        json!({ "command": "echo hi > made.txt", "description": "d" }),
    )]);
    let world = World::new([write.clone(), write, done()]);
    world.config(json!({ "permission": { "bash": "ask" } }));
    let (server, _) = secured(&world);
    let url = server.url();
    world.run(&["--attach", &url, "write"]);
    assert_eq!(world.read("made.txt"), "");
    world.run(&["--attach", &url, "--auto", "write"]).ok();
    assert_eq!(world.read("made.txt"), "hi\n");
}

#[test]
fn a_conversation_line_by_line() {
    let world = World::new([
        turn([call(
            "bash",
            json!({ "command": "echo hi > made.txt", "description": "d" }),
        )]),
        done(),
        text("second answer"),
    ]);
    world.config(json!({ "permission": { "bash": "ask" } }));
    let (server, _) = secured(&world);
    let mut command = world.command(&["attach", &server.url()]);
    command.stdin(Stdio::piped());
    let mut client = world.start(command);
    let mut input = client.stdin();
    let mut say = |line: &str| writeln!(input, "{line}").unwrap();
    say("/agent");
    say("write it");
    assert!(
        wait_until(WAIT_TIMEOUT, || client.stderr().contains("run a command")),
        "{}",
        client.stderr()
    );
    say("y");
    assert!(
        wait_until(WAIT_TIMEOUT, || client.stdout().contains("All done.")),
        "{}",
        client.stderr()
    );
    assert_eq!(world.read("made.txt"), "hi\n");
    say("and now?");
    assert!(
        wait_until(WAIT_TIMEOUT, || client.stdout().contains("second answer")),
        "{}",
        client.stderr()
    );
    say("/sessions");
    say("/nonsense");
    drop(input);
    let done = client.end();
    assert!(done.stdout.contains("build"), "{}", done.stdout);
    assert!(done.stdout.contains("* ses_"), "{}", done.stdout);
    assert!(done.stderr.contains("nonsense"), "{}", done.stderr);
}

#[test]
fn what_one_client_does_another_one_sees() {
    let world = World::new([done()]);
    let (server, _) = secured(&world);
    let mut events = server.events("/event");
    world.run(&["--attach", &server.url(), "look"]).ok();
    assert_eq!(
        events.until("message.part.delta")["properties"]["field"],
        "text"
    );
    events.until("session.idle");
}

#[test]
fn two_servers_share_a_data_folder() {
    let stalled = json!({ "text": "I begin", "stall": 2 });
    let world = World::new([stalled]);
    let (one, two) = (world.serve(&["--no-auth"]), world.serve(&["--no-auth"]));
    let session = one
        .post("/session", &json!({ "title": "shared" }))
        .json(200);
    let id = session["id"].as_str().unwrap();
    assert_eq!(two.get("/session").json(200)[0]["title"], "shared");
    let mut events = one.events("/event");
    let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
    assert_eq!(
        one.post(&format!("/session/{id}/prompt_async"), &prompt)
            .status,
        204
    );
    events.until("message.part.delta");
    // A session in use by one server is not available to the other.
    let busy = two
        .post(&format!("/session/{id}/message"), &prompt)
        .json(409);
    assert_eq!(busy["name"], "SessionBusyError", "{busy}");
    assert_eq!(
        one.post(&format!("/session/{id}/abort"), &json!({}))
            .json(200),
        true
    );
    events.until("session.idle");
    let messages = two.get(&format!("/session/{id}/message")).json(200);
    assert_eq!(messages[1]["info"]["error"]["name"], "MessageAbortedError");
    one.stop();
    two.get("/session").json(200);
    two.stop();
    world.verify();
}

#[test]
fn a_client_that_leaves_leaves_the_turn() {
    let world = World::new([
        turn([call(
            "bash",
            json!({ "command": "sleep 0.5", "description": "d" }),
        )]),
        done(),
    ]);
    let server = world.serve(&["--no-auth"]);
    let mut events = server.events("/event");
    let session = server.post("/session", &json!({})).json(200);
    let path = format!("/session/{}/message", session["id"].as_str().unwrap());
    let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
    server.leave("POST", &path, &prompt.to_string(), || {
        events.until("message.part.updated");
    });
    events.until("session.idle");
    let messages = server.get(&path).json(200);
    assert_eq!(messages.as_array().unwrap().len(), 3, "{messages}");
    assert_eq!(messages[2]["info"].get("error"), None, "{messages}");
}
