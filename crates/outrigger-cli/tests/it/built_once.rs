//! Costly objects are built once, not at every step: the tools of plugins and MCP servers, and the files they come
//! from.

use serde_json::json;

use crate::support::*;

/// An MCP server that writes down each request.
const SERVER: &str = "
import fs from 'node:fs'
import readline from 'node:readline'
const log = process.argv[2]
const answers = {
  initialize: (p) => ({ protocolVersion: p.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'once', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'say', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'said' }] }),
}
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  fs.appendFileSync(log, method + '\\n')
  const result = answers[method]?.(params)
  console.log(JSON.stringify(result ? { jsonrpc: '2.0', id, result } : { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }))
})
";

const PLUGIN: &str = "
import fs from 'node:fs'
const note = (line) => fs.appendFileSync('made.txt', line + '\\n')
note('imported')
export const P = async () => { note('started'); return { get tool() { note('tools'); return { mine: { description: 'd', args: {}, execute: async () => 'x' } } } } }
";

#[test]
fn tools_are_listed_once_for_a_turn_of_many_steps() {
    let say = || turn([call("once_say", json!({}))]);
    let mine = || turn([call("mine", json!({}))]);
    let world = World::new([say(), mine(), say(), mine(), say(), done()]);
    let log = world.path("asked.txt");
    let server = world.file("server.mjs", SERVER);
    world.config(json!({ "mcp": { "once": {
        "type": "local", "command": ["node", server, log],
    } } }));
    world.plugin("p", PLUGIN);
    world.run(&["hi"]).ok();
    assert_eq!(world.mock.requests().len(), 6);
    let asked = std::fs::read_to_string(log).unwrap();
    for (method, times) in [("initialize", 1), ("tools/list", 1), ("tools/call", 3)] {
        assert_eq!(
            asked.lines().filter(|line| *line == method).count(),
            times,
            "{method}: {asked}"
        );
    }
    let made = world.lines("made.txt");
    for (what, times) in [("imported", 1), ("started", 1)] {
        assert_eq!(
            made.iter().filter(|line| *line == what).count(),
            times,
            "{made:?}"
        );
    }
    // How often the object is inspected while it is converted does not depend on the number of steps.
    let looks = made.iter().filter(|line| *line == "tools").count();
    assert!(looks < 6, "{made:?}");
}
