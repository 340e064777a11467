//! The real SDK and the real zod, as plugins use them: kept between runs as in `npm.rs`.

use std::fs;

use serde_json::json;

use crate::npm::{kept, reaching_npm, registry};
use crate::support::*;

/// Returns a world with the kept modules. If they are missing and cannot be fetched, prints a note and
/// returns `None`.
fn with_modules(turns: impl IntoIterator<Item = serde_json::Value>) -> Option<World> {
    let world = World::new(turns);
    let data = world.home().join(".local/share/outrigger");
    fs::create_dir_all(&data).unwrap();
    std::os::unix::fs::symlink(kept("modules"), data.join("modules")).unwrap();
    let mut setup = world.command(&["plugin", "setup"]);
    reaching_npm(&mut setup);
    let done = world.start(setup).end();
    if done.code == 0 {
        return Some(world);
    }
    match registry(&world) {
        Ok(()) => panic!("npm answers, and yet: {}", done.stderr),
        Err(why) => {
            skip_npm(&format!(
                "the SDK is not in .work/plugin-cache and cannot be fetched: {why}"
            ));
            None
        }
    }
}

const LISTENER: &str = "
import fs from 'node:fs'
export const P = async ({ client, directory }) => {
  const follow = async (subscribe, name, kind) => {
    const { stream } = await subscribe()
    const kinds = []
    for await (const event of stream) {
      kinds.push(kind(event))
      if (kinds.at(-1) === 'session.idle') break
    }
    fs.writeFileSync(directory + '/' + name, kinds.join('\\n') + '\\n')
  }
  let following
  return {
    'chat.message': async () => { following = Promise.all([
      follow(() => client.event.subscribe(), 'event.txt', (event) => event.type),
      follow(() => client.global.event(), 'global.txt', (event) => event.payload.type),
    ]) },
    dispose: () => following,
  }
}";

#[test]
fn event_subscribe_and_global_event_of_the_sdk_are_streams() {
    let Some(world) = with_modules([done()]) else {
        return;
    };
    world.plugin("listener", LISTENER);
    world.run(&["hi"]).ok();
    for name in ["event.txt", "global.txt"] {
        let kinds = world.lines(name);
        assert_eq!(kinds[0], "server.connected", "{name}");
        for kind in ["message.part.delta", "message.updated", "session.idle"] {
            assert!(kinds.iter().any(|seen| seen == kind), "{name}: {kinds:?}");
        }
    }
}

const ZOD: &str = r#"
import { tool } from "@opencode-ai/plugin"
const z = tool.schema
export const P = async () => ({ tool: { shapes: tool({ description: "every shape", args: {
  union: z.union([z.string(), z.number()]).describe("text or number"),
  record: z.record(z.string(), z.number().int()),
  literal: z.literal("only"),
  either: z.discriminatedUnion("kind", [z.object({ kind: z.literal("a"), n: z.number() }), z.object({ kind: z.literal("b") })]),
  choice: z.enum(["x", "y"]).describe("one of two"),
  text: z.string().min(2).max(5).regex(/^[a-z]+$/),
  number: z.number().int().min(1).max(9),
  list: z.array(z.string()).min(1).max(3),
  nested: z.object({ deep: z.object({ inner: z.boolean().describe("deep down") }) }),
  maybe: z.string().optional().describe("can be left out"),
  usual: z.number().default(3),
  none: z.string().nullable(),
}, execute: async (args) => JSON.stringify(args) }) } })"#;

#[test]
fn zod_arguments_lose_nothing_on_the_way_to_the_model() {
    let args = json!({
        "union": 1, "record": { "a": 2 }, "literal": "only", "either": { "kind": "b" }, "choice": "y", "text": "abc",
        "number": 4, "list": ["one"], "nested": { "deep": { "inner": true } }, "none": null,
    });
    let mut wrong = args.clone();
    wrong["text"] = json!("TOO LONG");
    wrong["record"] = json!({ "a": "b" });
    let Some(world) = with_modules([
        turn([call("shapes", args)]),
        turn([call("shapes", wrong)]),
        done(),
    ]) else {
        return;
    };
    world.plugin("shapes", ZOD);
    world.run(&["hi"]).ok();
    let request = &world.mock.requests()[0];
    let offered = request.body["tools"].as_array().unwrap().clone();
    let shapes = offered
        .iter()
        .find(|tool| tool["function"]["name"] == "shapes")
        .unwrap();
    let parameters = &shapes["function"]["parameters"];
    let kind = |name: &str| json!({ "type": "string", "const": name });
    let widest = 9_007_199_254_740_991_i64;
    for (name, want) in [
        (
            "union",
            json!({ "description": "text or number", "anyOf": [{ "type": "string" }, { "type": "number" }] }),
        ),
        (
            "record",
            json!({ "type": "object", "propertyNames": { "type": "string" },
            "additionalProperties": { "type": "integer", "minimum": -widest, "maximum": widest } }),
        ),
        ("literal", kind("only")),
        (
            "either",
            json!({ "anyOf": [
            { "type": "object", "properties": { "kind": kind("a"), "n": { "type": "number" } }, "required": ["kind", "n"] },
            { "type": "object", "properties": { "kind": kind("b") }, "required": ["kind"] },
        ] }),
        ),
        (
            "choice",
            json!({ "description": "one of two", "type": "string", "enum": ["x", "y"] }),
        ),
        (
            "text",
            json!({ "type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$" }),
        ),
        (
            "number",
            json!({ "type": "integer", "minimum": 1, "maximum": 9 }),
        ),
        (
            "list",
            json!({ "type": "array", "minItems": 1, "maxItems": 3, "items": { "type": "string" } }),
        ),
        (
            "nested",
            json!({ "type": "object", "required": ["deep"], "properties": { "deep": {
            "type": "object", "required": ["inner"], "properties": { "inner": { "description": "deep down", "type": "boolean" } },
        } } }),
        ),
        (
            "maybe",
            json!({ "description": "can be left out", "type": "string" }),
        ),
        ("usual", json!({ "default": 3, "type": "number" })),
        (
            "none",
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
        ),
    ] {
        assert_eq!(parameters["properties"][name], want, "{name}");
    }
    let required = [
        "union", "record", "literal", "either", "choice", "text", "number", "list", "nested",
        "none",
    ];
    assert_eq!(parameters["required"], json!(required));
    // Invalid arguments are reported to the model, and the tool does not run.
    let results = world.mock.last().texts("tool");
    insta::assert_snapshot!(results.join("\n---\n"), @r#"
    {"union":1,"record":{"a":2},"literal":"only","either":{"kind":"b"},"choice":"y","text":"abc","number":4,"list":["one"],"nested":{"deep":{"inner":true}},"none":null}
    ---
    The shapes tool was called with invalid arguments: SchemaError(Expected integer, got "b"
      at ["record"]["a"]
    "TOO LONG" is longer than 5 characters
      at ["text"]
    "TOO LONG" does not match "^[a-z]+$"
      at ["text"]).
    Please rewrite the input so it satisfies the expected schema.
    "#);
}
