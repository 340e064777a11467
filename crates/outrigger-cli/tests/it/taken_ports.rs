//! A command of one session listens where a service of this machine is expected that the user's settings name, such as the end of a
//! tunnel that is down: it is sent no key.

use std::fs;

use serde_json::json;

use crate::support::*;
use crate::user_grants::granting;

/// Writes down what it is sent.
const LISTENS: &str = "
import socket
service = socket.create_server(('127.0.0.1', PORT))
open('ready', 'w').close()
while True:
    client, _ = service.accept()
    open('heard', 'ab').write(client.recv(65536))
    client.close()
";

#[test]
fn a_command_in_the_place_of_a_service_is_sent_no_key() {
    let port = free_port();
    let listens =
        json!({ "command": "exec python3 listen.py", "description": "x", "timeout": 600_000 });
    let other = World::new([turn([call("bash", listens)]), done()]);
    other.file("listen.py", &LISTENS.replace("PORT", &port));
    let command = other.command(&["run", "do it"]);
    let session = other.start(command);
    assert!(wait_until(WAIT_TIMEOUT, || other.path("ready").exists()));

    let reads = || turn([call("read", json!({ "filePath": "hello.txt" }))]);
    let world = World::new([reads(), done(), reads(), done()]);
    let headers = json!({ "Authorization": "Bearer SECRET" });
    let model =
        json!({ "name": "M", "tool_call": true, "limit": { "context": 100_000, "output": 4000 } });
    world.config(json!({
        "mcp": { "far": { "type": "remote", "url": format!("http://localhost:{port}/mcp"), "headers": headers } },
        "provider": { "taken": {
            "npm": "@ai-sdk/openai-compatible", "name": "Taken",
            "options": { "baseURL": format!("http://127.0.0.1:{port}/v1"), "apiKey": "SECRET" }, "models": { "m": model },
        } },
    }));
    granting(
        &world,
        &format!(
            "[connectors.box]\nurl = \"ws://127.0.0.1:{port}\"\ntoken_env = \"BOX_TOKEN\"\n\
             [[routes]]\ncontract = \"read\"\nprovider = \"box\"\n"
        ),
    );
    let run = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("BOX_TOKEN", "SECRET");
        world.start(command).end()
    };
    run(&["run", "hi"]).ok();
    let answer = world.mock.last().texts("tool").remove(0);
    let says = "a command that Outrigger runs listens";
    assert!(answer.contains(says), "{answer}");
    let listed = run(&["mcp", "list"]).stdout;
    assert!(listed.contains(says), "{listed}");
    let asked = run(&["run", "-m", "taken/m", "hi"]).stderr;
    assert!(asked.contains(says), "{asked}");
    let heard = fs::read_to_string(other.path("heard")).unwrap_or_default();
    assert!(!heard.contains("SECRET"), "{heard}");
    drop(session);
}
