//! A plugin that hosts another one (C8), through the whole program.

use serde_json::json;

use crate::support::*;

const MANIFEST: &str = r#"
id = "acme"
version = "1.0.0"
kind = "toolset"
entry = "main.js"
[provides]
tools = ["outer", "inner"]
[permissions.files]
write = ["out"]
[[subplugins]]
id = "inner"
entry = "inner.js"
tools = ["inner"]
hooks = ["chat.message"]
[subplugins.permissions.files]
write = ["out", "src"]
"#;

const TOOL: &str = r#"
import fs from "node:fs"
export const Tools = async ({ directory }) => ({
  "chat.message": async () => {},
  tool: { NAME: { description: "Writes.", args: {}, async execute() {
    fs.writeFileSync(directory + "/out/NAME.txt", "x")
    try { fs.writeFileSync(directory + "/src/NAME.txt", "x") } catch (error) { return error.code }
    return "both"
  } } },
})
"#;

#[test]
fn a_hosted_plugin_works_within_its_host_and_is_known_by_both_names() {
    let world = World::new([
        turn([call("inner", json!({})), call("outer", json!({}))]),
        done(),
    ]);
    world.packages();
    for file in ["out/.keep", "src/.keep"] {
        world.file(file, "");
    }
    world.file("tools/acme/outrigger.plugin.toml", MANIFEST);
    world.file(
        "tools/acme/package.json",
        r#"{"name":"acme","type":"module","main":"main.js"}"#,
    );
    world.file("tools/acme/main.js", &TOOL.replace("NAME", "outer"));
    world.file("tools/acme/inner.js", &TOOL.replace("NAME", "inner"));
    world.config(json!({ "plugin": ["./tools/acme"] }));
    world.run(&["hi"]).ok();
    let landlock = outrigger_sandbox::Spawner::new().unwrap().landlock_abi() > 0;
    let wrote = if landlock { "EACCES" } else { "both" };
    let outputs: Vec<String> = world
        .parts("tool")
        .iter()
        .map(|part| {
            part["state"]["output"]
                .to_string()
                .replace("EROFS", "EACCES")
        })
        .collect();
    assert_eq!(outputs, [format!("\"{wrote}\""), format!("\"{wrote}\"")]);
    assert_eq!(world.read("out/inner.txt"), "x");
    let entries = |args: &[&str]| {
        let mut all = vec!["audit", "list", "--json", "--plugin", "acme"];
        all.extend(args);
        let mut kinds: Vec<String> = world
            .cli(&all)
            .ok()
            .lines()
            .iter()
            .map(|it| {
                format!(
                    "{} {}",
                    it["kind"].as_str().unwrap(),
                    it["subPluginId"].as_str().unwrap_or("-")
                )
            })
            .collect();
        kinds.sort();
        kinds.dedup();
        kinds
    };
    let all = entries(&["-n", "1000"]);
    for kind in [
        "hook inner",
        "hook -",
        "life_cycle inner",
        "tool_intent inner",
        "tool_intent -",
        "tool_outcome inner",
    ] {
        assert!(all.contains(&kind.to_owned()), "{kind}: {all:?}");
    }
    assert!(!all.iter().any(|it| it.contains('>')), "{all:?}");
    let of_inner = ["audit", "list", "--json", "--sub-plugin", "inner"];
    let of_inner = world.cli(&of_inner).ok().lines();
    assert!(!of_inner.is_empty());
    assert!(of_inner.iter().all(|it| it["topPluginId"] == "acme"));
    let list = world.cli(&["plugin", "list"]).ok().stdout;
    let lines: Vec<&str> = list
        .lines()
        .filter(|line| line.starts_with("active"))
        .collect();
    assert!(lines[0].starts_with("active       acme "), "{list}");
    assert!(lines[1].starts_with("active       acme>inner "), "{list}");
    assert!(list.contains("host   acme\n"), "{list}");
    let shown = world.cli(&["plugin", "show", "acme>inner"]).ok().stdout;
    assert!(
        shown.contains("not given  to write src: its host acme does not have it"),
        "{shown}"
    );
    // Switched off, its host takes it along.
    let path = world.path("tools/acme");
    crate::user_grants::granting(
        &world,
        &format!("[plugins.\"{}\"]\ndisabled = true\n", path.display()),
    );
    let list = world.cli(&["plugin", "list"]).ok().stdout;
    assert!(list.contains("skipped      acme>inner"), "{list}");
    world.verify();
}
