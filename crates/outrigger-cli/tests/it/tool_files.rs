//! Tools from `.opencode/tool` (B5): in a turn, next to those of the program and of plugins.

use serde_json::json;

use crate::support::*;

fn tool(text: &str) -> String {
    format!(
        "{{ description: 'says {text}', args: {{ name: {{ type: 'string' }} }}, execute: async (args, ctx) => '{text} ' + args.name + ' in ' + ctx.sessionID.slice(0, 4) }}"
    )
}

/// Built-ins, tool files, plugin tools: a later one replaces an earlier one with its name.
#[test]
fn a_model_calls_them_and_names_are_taken_in_order() {
    let world = World::new([
        turn([
            call("greet", json!({ "name": "Ann" })),
            call("greet_loudly", json!({ "name": "Bob" })),
            call("glob", json!({ "name": "Eve" })),
            call("both", json!({ "name": "Zoe" })),
        ]),
        done(),
    ]);
    world.file(
        ".opencode/tool/greet.js",
        &format!(
            "export default {}\nexport const loudly = {}\n",
            tool("hi"),
            tool("HI")
        ),
    );
    world.file(
        ".opencode/tools/glob.js",
        &format!("export default {}\n", tool("file")),
    );
    world.file(
        ".opencode/tools/both.js",
        &format!("export default {}\n", tool("file")),
    );
    world.file(".opencode/tools/broken.js", "export default {");
    world.plugin(
        "kit",
        &format!(
            "export const Kit = async () => ({{ tool: {{ both: {} }} }})",
            tool("plugin")
        ),
    );
    let run = world.run(&["hi"]).ok();
    assert_eq!(run.stdout, "All done.\n");
    assert!(
        run.stderr.contains("plugin tool:broken failed"),
        "{}",
        run.stderr
    );
    assert_eq!(
        world.mock.last().texts("tool"),
        [
            "hi Ann in ses_",
            "HI Bob in ses_",
            "file Eve in ses_",
            "plugin Zoe in ses_"
        ]
    );
    let list = world.cli(&["plugin", "list", "--json"]).ok().json();
    let of = |id: &str| {
        let entries = list.as_array().unwrap();
        entries.iter().find(|p| p["id"] == id).unwrap().clone()
    };
    assert_eq!(of("tool:greet")["tools"], json!(["greet", "greet_loudly"]));
    assert_eq!(of("tool:greet")["kind"], "tool");
    assert_eq!(of("tool:broken")["cause"]["code"], "plugin.import");

    let pure = world
        .cli(&["--pure", "plugin", "list", "--json"])
        .ok()
        .json();
    let pure = pure.as_array().unwrap();
    assert!(
        pure.len() == 5 && pure.iter().all(|p| p["cause"]["code"] == "plugin.pure"),
        "{pure:?}"
    );
}

/// The same for a subagent, under the same rules as every other tool.
#[test]
fn a_tool_that_is_denied_is_not_offered() {
    let world = World::new([done()]);
    world.file(
        ".opencode/tool/greet.js",
        &format!("export default {}\n", tool("hi")),
    );
    world.config(json!({ "permission": { "greet": "deny" } }));
    world.plugin("none", "export const None = async () => ({})");
    world.run(&["hi"]).ok();
    let offered = world.mock.last().tools();
    assert!(
        offered.contains(&"read".to_owned()) && !offered.contains(&"greet".to_owned()),
        "{offered:?}"
    );
}
