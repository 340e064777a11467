//! Declarations of MCP tools, and the user's limits on them.

use serde_json::{Value, json};

use crate::support::*;

/// A server whose tools answer with what their names say. `late` appears in the second list, which is announced when
/// `grow` is called.
const SHAPES: &str = r#"
import { writeFileSync } from 'node:fs'
import readline from 'node:readline'
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
const outputSchema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } }
const tool = (name, more) => ({ name, inputSchema: { type: 'object' }, ...more })
const tools = [tool('right', { outputSchema }), tool('wrong', { outputSchema }), tool('missing', { outputSchema }),
  tool('odd', { outputSchema: { type: 5 } }), tool('free'), tool('grow')]
const text = [{ type: 'text', text: 'told' }]
const answers = { right: { content: text, structuredContent: { n: 1 } }, wrong: { content: text, structuredContent: { n: 'x' } } }
readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  if (method === 'initialize') return send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'shapes' } } })
  if (method === 'tools/list') {
    send({ id, result: { tools } })
    if (tools.some((tool) => tool.name === 'late')) writeFileSync('listed', '')
    return
  }
  if (params.name === 'grow') { tools.push(tool('late')); send({ method: 'notifications/tools/list_changed' }) }
  if (params.name === 'late') await new Promise((go) => setTimeout(go, 5000))
  send({ id, result: answers[params.name] ?? { content: text } })
})
"#;

fn with_shapes(turns: impl IntoIterator<Item = Value>) -> World {
    let world = World::new(turns);
    let server = world.file("shapes.mjs", SHAPES);
    let entry = json!({"type": "local", "command": ["node", server], "timeout": 20_000});
    world.config(json!({ "mcp": { "m": entry } }));
    world
}

#[test]
fn structured_answers_satisfy_the_schema_of_their_tool() {
    let names = ["right", "wrong", "missing", "odd", "free"];
    let calls = names.map(|name| call(&format!("m_{name}"), json!({})));
    let world = with_shapes([turn(calls), done()]);
    let ran = world.run(&["go"]).ok();
    let parts = world.parts("tool");
    let said = |at: usize| {
        let state = &parts[at]["state"];
        let text = state["output"].as_str().or(state["error"].as_str());
        text.unwrap_or_default().to_owned()
    };
    assert_eq!([said(0), said(3), said(4)], ["told", "told", "told"]);
    let wrong = "The answer of the m_wrong tool does not satisfy its own output schema";
    assert!(said(1).starts_with(wrong), "{}", said(1));
    assert!(
        said(2).contains("it has no structured content"),
        "{}",
        said(2)
    );
    assert!(
        ran.stderr.contains("its answers are not checked"),
        "{}",
        ran.stderr
    );
    let shown = world.cli(&["tool", "show", "m_right"]).ok().stdout;
    assert!(shown.contains("\"required\":[\"n\"]"), "{shown}");
}

/// The user's limits apply to a tool that a server adds later.
#[test]
fn limits_hold_for_a_tool_that_comes_later() {
    let wait = call(
        "bash",
        json!({"command": "until [ -e listed ]; do sleep 0.05; done; sleep 1", "description": "x"}),
    );
    let world = with_shapes([
        turn([call("m_grow", json!({}))]),
        turn([wait]),
        turn([call("m_late", json!({}))]),
        done(),
    ]);
    let own = world.home().join(".config/outrigger");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(
        own.join("outrigger.toml"),
        "[tool_limits.m_late]\ntimeout_ms = 200\n",
    )
    .unwrap();
    world.run(&["go"]).ok();
    let error = world.parts("tool")[2]["state"]["error"].clone();
    let error = error.as_str().unwrap_or_default();
    assert!(error.contains("200 ms"), "{error}");
}
