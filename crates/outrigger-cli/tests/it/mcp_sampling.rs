//! Model answers for MCP servers: only the user can approve them, each time.

use serde_json::{Value, json};

use crate::support::*;

/// A server whose tool requests an answer of the client's model, and returns it.
const SERVER: &str = r#"
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
let call
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's' } } })
  else if (method === 'tools/list') send({ id, result: { tools: [{ name: 'think', inputSchema: { type: 'object' } }] } })
  else if (method === 'tools/call') { call = id; send({ id: 's1', method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text: 'What is it?' } }], maxTokens: 50 } }) }
  else if (id === 's1') send({ id: call, result: { content: [{ type: 'text', text: JSON.stringify(result ?? error) }] } })
})
"#;

fn with_server() -> World {
    let turns = [turn([call("m_think", json!({}))]), done()];
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
    let world = with_server();
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
    let session = server.post("/session", &json!({})).json(200);
    let id = session["id"].as_str().unwrap();
    let prompt = json!({"parts": [{"type": "text", "text": "go"}]});
    server.post(&format!("/session/{id}/prompt_async"), &prompt);
    let mut open = Value::Null;
    let is_asked = wait_until(WAIT_TIMEOUT, || {
        open = server.get("/permission").json(200);
        open[0].is_object()
    });
    assert!(is_asked, "{open}");
    assert_eq!(open[0]["permission"], "mcp_sampling", "{open}");
    assert_eq!(open[0]["metadata"]["server"], "m", "{open}");
    assert!(open.to_string().contains("What is it?"), "{open}");
    let reply = format!("/permission/{}/reply", open[0]["id"].as_str().unwrap());
    server.post(&reply, &json!({"reply": "once"})).json(200);
    // The scripted model takes a request without tools for a title request.
    let is_answered = wait_until(WAIT_TIMEOUT, || answered(&world).contains("A title"));
    assert!(is_answered, "{}", answered(&world));
    assert!(world.mock.all_requests().len() > asked_before);
}
