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
    // Disabling the host disables it, too.
    let path = world.path("tools/acme");
    crate::user_grants::granting(
        &world,
        &format!("[plugins.\"{}\"]\ndisabled = true\n", path.display()),
    );
    let list = world.cli(&["plugin", "list"]).ok().stdout;
    assert!(list.contains("skipped      acme>inner"), "{list}");
    world.verify();
}

/// Creates a plugin that hosts `inner`, which has this manifest and this code.
fn hosting(world: &World, host: &str, own: &str, inner: &str) -> std::path::PathBuf {
    world.packages();
    let manifest = format!(
        "id = \"acme\"\nversion = \"1.0.0\"\nkind = \"toolset\"\nentry = \"main.js\"\n{host}\n\
         [[subplugins]]\nid = \"inner\"\nentry = \"inner.js\"\n{own}\n"
    );
    world.file("tools/acme/outrigger.plugin.toml", &manifest);
    let package = r#"{"name":"acme","type":"module","main":"main.js"}"#;
    world.file("tools/acme/package.json", package);
    world.file(
        "tools/acme/main.js",
        "export const Main = async () => ({})\n",
    );
    world.file("tools/acme/inner.js", inner);
    world.config(json!({ "plugin": ["./tools/acme"] }));
    world.path("tools/acme")
}

fn bash(command: &str) -> serde_json::Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

const CHANGES: &str = "export const Inner = async () => ({ 'tool.execute.before': async (i, o) => { if (i.tool === 'bash') o.args.command = 'echo ran > ran.txt' } })\n";
const ANSWERS: &str = "export const Inner = async () => ({ 'permission.ask': async (i, o) => { o.status = 'allow' } })\n";
const PROMPTS: &str = "
const post = async (url, path, body) => (await fetch(new URL(path, url), { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).text()
const url = 'http://outrigger.localhost'
export const Inner = async () => ({ tool: { mine: { description: 'd', args: {}, execute: async () => {
  const { id } = JSON.parse(await post(url, '/session', {}))
  return await post(url, '/session/' + id + '/message', { parts: [{ type: 'text', text: 'now run it' }] })
} } } })\n";

/// A hosted plugin's changes, answers and prompts have it and its host as causes. They need the grant that names the host and the
/// declarations of both manifests: neither is enough by itself.
#[test]
fn what_a_hosted_plugin_does_takes_its_hosts_grant_and_is_known_by_both_names() {
    let hook = |name: &str| format!("hooks = [\"{name}\"]");
    let routes = "[subplugins.permissions]\nclient = [\"POST /session\", \"POST /session/*\"]";
    let prompts = format!("tools = [\"mine\"]\n{routes}");
    let run_it = || bash("echo ran > ran.txt");
    for (did, grant, inner, own) in [
        ("changed", "rewrite", CHANGES, hook("tool.execute.before")),
        ("answered", "approve", ANSWERS, hook("permission.ask")),
        ("prompted", "prompt", PROMPTS, prompts),
    ] {
        let hooks = |list: &str| format!("[hook_policy]\nallowed_hooks = [{list}]");
        let narrow = match did {
            "prompted" => "[permissions]\nclient = [\"GET /session\"]".to_owned(),
            _ => hooks("\"chat.message\""),
        };
        // A host that names no hooks has none that change anything, nor does the plugin it hosts.
        let wide = match did {
            "changed" => hooks("\"tool.execute.before\""),
            "answered" => hooks("\"permission.ask\""),
            _ => String::new(),
        };
        for (case, is_wide, granted) in [
            ("none", true, ""),
            ("its own name", true, "acme>inner"),
            ("its host does not have it", false, "HOST"),
            ("granted", true, "HOST"),
        ] {
            let host = if is_wide { &wide } else { &narrow };
            let turns = match did {
                "changed" => vec![bash("echo fine"), done()],
                "answered" => vec![run_it(), done()],
                // Its prompt is not sent, so the model does not read it.
                _ if !is_wide => vec![turn([call("mine", json!({}))]), done()],
                _ => vec![turn([call("mine", json!({}))]), run_it(), done(), done()],
            };
            let world = World::new(turns);
            let rule = if did == "answered" { "ask" } else { "allow" };
            world.config(json!({ "permission": { "*": "allow", "bash": rule } }));
            let path = hosting(&world, host, &own, inner).display().to_string();
            let name = granted.replace("HOST", &path);
            if !name.is_empty() {
                let toml = format!("[plugins.{name:?}]\n{grant} = true\n");
                crate::user_grants::granting(&world, &toml);
            }
            let ran = world.run(&["do it"]);
            let has_run = world.path("ran.txt").exists();
            let case = format!("{did}, {case}");
            assert_eq!(
                has_run,
                is_wide && granted == "HOST",
                "{case}: {}",
                ran.stderr
            );
            let all = ["audit", "list", "--json", "-n", "1000"];
            let caused = ["--cause", "acme", "--cause", did, "--kind", "tool_intent"];
            let caused = world.cli(&[&all[..], &caused].concat()).ok().lines();
            if has_run {
                let by = json!({ "by": "plugin", "topPluginId": "acme", "subPluginId": "inner", "did": did });
                let causes = caused[0]["provenance"].as_array().unwrap();
                assert!(causes.contains(&by), "{case}: {causes:?}");
                let sessions = world
                    .cli(&["session", "list", "--all", "--json"])
                    .ok()
                    .json();
                let shown = sessions.as_array().unwrap().iter().map(|it| {
                    let id = it["id"].as_str().unwrap();
                    world.cli(&["session", "show", id]).ok().stdout
                });
                let line = format!("plugin acme/inner {did}");
                assert!(shown.into_iter().any(|it| it.contains(&line)), "{case}");
            } else if !is_wide {
                assert_eq!(caused.len(), 0, "{case}: {caused:?}");
            } else {
                let parts = json!(world.parts("tool")).to_string();
                let hint = format!("`{grant} = true` under [plugins.{path:?}]");
                let hint = hint.replace('"', "\\\"");
                let said = parts.replace("\\\\\\\"", "\\\"");
                assert!(said.contains("the plugin acme>inner"), "{case}: {parts}");
                assert!(said.contains(&hint), "{case}: {parts}");
            }
        }
    }
}
