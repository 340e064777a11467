//! Model answers for MCP servers: only the user can approve them, each time.

use serde_json::{Value, json};

use crate::support::*;

/// A server whose tool requests answers of the client's model, as many as the call says, and returns them.
const SERVER: &str = r#"
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
let call, left, got
const ask = () => send({ id: 's' + left, method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text: 'What is it?' } }], maxTokens: 50 } })
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's' } } })
  else if (method === 'tools/list') send({ id, result: { tools: [{ name: 'think', inputSchema: { type: 'object' } }] } })
  else if (method === 'tools/call') { call = id; left = params.arguments.times ?? 1; got = []; ask() }
  else if (id === 's' + left) {
    got.push(JSON.stringify(result ?? error))
    if (--left) ask()
    else send({ id: call, result: { content: [{ type: 'text', text: got.join('\n') }] } })
  }
})
"#;

fn with_server(times: u32) -> World {
    let turns = [turn([call("m_think", json!({ "times": times }))]), done()];
    let world = World::with(Mock::new(turns).by_results());
    let file = world.file("thinker.cjs", SERVER);
    let entry = json!({"type": "local", "command": ["node", file], "timeout": 20_000});
    // No rule replaces the user's approval.
    world.config(json!({"mcp": {"m": entry}, "permission": {"mcp_sampling": "allow"}}));
    world
}

fn answered(world: &World) -> String {
    world.mock.last().texts("tool").concat()
}

#[test]
fn a_server_gets_an_answer_of_the_model_from_a_person_alone() {
    let world = with_server(1);
    for args in [&["go"][..], &["--auto", "go"]] {
        world.run(args).ok();
        let answer = answered(&world);
        assert!(
            answer.contains("the user refused, or nobody can be asked"),
            "{answer}"
        );
    }
    let asked_before = world.mock.all_requests().len();
    let server = world.serve(&["--no-auth"]);
    ask(&server);
    let open = asked(&server, "");
    assert_eq!(open["permission"], "mcp_sampling", "{open}");
    assert_eq!(open["metadata"]["server"], "m", "{open}");
    assert!(open.to_string().contains("What is it?"), "{open}");
    reply(&server, &open, "once");
    // The scripted model takes a request without tools for a title request.
    let is_answered = wait_until(WAIT_TIMEOUT, || answered(&world).contains("A title"));
    assert!(is_answered, "{}", answered(&world));
    assert!(world.mock.all_requests().len() > asked_before);
}

/// Neither "always" nor a no stands for the next one.
#[test]
fn each_answer_is_for_one_request() {
    let world = with_server(3);
    let server = world.serve(&["--no-auth"]);
    ask(&server);
    let mut before = String::new();
    for answer in ["always", "reject", "once"] {
        let open = asked(&server, &before);
        assert_eq!(open["permission"], "mcp_sampling", "{open}");
        open["id"].as_str().unwrap().clone_into(&mut before);
        reply(&server, &open, answer);
    }
    let is_over = wait_until(WAIT_TIMEOUT, || answered(&world).lines().count() == 3);
    let got = answered(&world);
    assert!(is_over, "{got}");
    let is_answer = |line: &str| line.contains("A title");
    let answers: Vec<bool> = got.lines().map(is_answer).collect();
    assert_eq!(answers, [true, false, true], "{got}");
}

/// Begins a turn in a session of its own.
fn ask(server: &Server) {
    let session = server.post("/session", &json!({ "title": "x" })).json(200);
    let id = session["id"].as_str().unwrap();
    let prompt = json!({"parts": [{"type": "text", "text": "go"}]});
    server.post(&format!("/session/{id}/prompt_async"), &prompt);
}

/// The question that is open and is not this one.
fn asked(server: &Server, not: &str) -> Value {
    let mut open = Value::Null;
    let is_asked = wait_until(WAIT_TIMEOUT, || {
        let mut all = server.get("/permission").json(200);
        open = all.get_mut(0).map(Value::take).unwrap_or_default();
        open["id"].as_str().is_some_and(|id| id != not)
    });
    assert!(is_asked, "{open}");
    open
}

fn reply(server: &Server, question: &Value, reply: &str) {
    let id = question["id"].as_str().unwrap();
    let path = format!("/permission/{id}/reply");
    server.post(&path, &json!({ "reply": reply })).json(200);
}
