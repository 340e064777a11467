//! Behaviour contracts (C14), end to end: the real program, real plugins, a scripted model. For the mapping, see
//! docs/contracts.md.

use serde_json::{Value, json};

use crate::support::*;

/// Returns a plugin that notes each of its hooks.
fn noting(name: &str, more: &str) -> String {
    let hooks: String = [
        "chat.message",
        "experimental.chat.messages.transform",
        "experimental.chat.system.transform",
        "chat.params",
        "chat.headers",
        "tool.execute.before",
        "tool.execute.after",
        "experimental.text.complete",
    ]
    .iter()
    .map(|hook| format!("    \"{hook}\": async () => {{ note(\"{hook}\"); {more} }},\n"))
    .collect();
    format!(
        "import fs from \"node:fs\"\nexport const P = async ({{ directory }}) => {{\n  \
         const note = (hook) => fs.appendFileSync(directory + \"/{name}.txt\", hook + \"\\n\")\n  return {{\n{hooks}  }}\n}}"
    )
}

fn audited(world: &World, args: &[&str]) -> Vec<Value> {
    let all = ["audit", "list", "--json", "-n", "10000", "--kind", "hook"];
    world.cli(&[&all, args].concat()).ok().lines()
}

fn world() -> World {
    World::new([
        turn([call(
            "bash",
            json!({ "command": "echo one", "description": "x" }),
        )]),
        done(),
    ])
}

/// The hooks of a step with a tool and a step without, except for titles.
const STEPS: &str = "chat.message\nexperimental.chat.messages.transform\nexperimental.chat.system.transform\nchat.params\n\
                     chat.headers\ntool.execute.before\ntool.execute.after\nexperimental.chat.messages.transform\n\
                     experimental.chat.system.transform\nchat.params\nchat.headers\nexperimental.text.complete\n";

/// `BHV-AGENT-HOOK-LIFECYCLE`: the hooks of a turn fire in OpenCode's order, in the same way for each plugin, and the audit
/// has each run once, with turn and step.
#[test]
fn bhv_agent_hook_lifecycle() {
    let world = world();
    world.config(json!({ "small_model": "mock/none" }));
    for name in ["a", "b"] {
        world.plugin(name, &noting(name, ""));
    }
    world.run(&["--title", "fixed", "do it"]).ok();
    for name in ["a", "b"] {
        assert_eq!(world.read(&format!("{name}.txt")), STEPS, "{name}");
        let runs = audited(&world, &["--plugin", name]);
        assert_eq!(runs.len(), STEPS.lines().count(), "{name}");
        let turns: std::collections::BTreeSet<&str> = runs
            .iter()
            .map(|run| run["traceId"].as_str().unwrap())
            .collect();
        assert_eq!(turns.len(), 1, "{turns:?}");
    }
    let order: Vec<String> = audited(&world, &[])
        .iter()
        .map(|run| run["pluginId"].as_str().unwrap().to_owned())
        .collect();
    assert!(order.chunks(2).all(|pair| pair == ["a", "b"]), "{order:?}");
}

/// `BHV-PLUGIN-FAILURE-ISOLATION`: a plugin that throws in every hook, and one that ends its process, lose only their own
/// changes. The turn ends as without them, the plugin next to them sees everything, and the audit has the failures.
#[test]
fn bhv_plugin_failure_isolation() {
    let world = world();
    world.plugin(
        "bad",
        &noting("bad", "throw new Error('no')").replace("tool.execute.", "tool.executed."),
    );
    world.plugin(
        "dies",
        "export const D = async () => ({ \"chat.params\": async () => process.exit(3) })",
    );
    world.plugin("good", &noting("good", ""));
    let done = world.run(&["--title", "fixed", "do it"]).ok();
    assert_eq!(done.stdout, "All done.\n");
    assert_eq!(world.read("good.txt"), STEPS);
    let failed = audited(&world, &["--errored"]);
    assert!(
        failed.iter().all(|run| run["decision"] == "failed_open"),
        "{failed:?}"
    );
    for plugin in ["bad", "dies"] {
        assert!(
            failed.iter().any(|run| run["pluginId"] == plugin),
            "{plugin}"
        );
    }
    assert!(
        failed.iter().all(|run| run["pluginId"] != "good"),
        "{failed:?}"
    );
    world.cli(&["audit", "verify"]).ok();
}

/// `BHV-CAPABILITY-PROVIDER-ROUTING`: the same turn runs here or through a bridge in another folder, as the user's routes
/// define. The model gets the same result, and nothing else about the turn changes.
#[test]
fn bhv_capability_provider_routing() {
    let calls = || {
        turn([call(
            "write",
            json!({"filePath": "a.txt", "content": "one\n"}),
        )])
    };
    let more = || {
        turn([call(
            "edit",
            json!({"filePath": "a.txt", "oldString": "one", "newString": "two"}),
        )])
    };
    let last = || {
        turn([
            call("read", json!({"filePath": "a.txt"})),
            call("bash", json!({"command": "cat a.txt", "description": "x"})),
        ])
    };
    let turns = || [calls(), more(), last(), done()];
    let here = World::new(turns().into_iter().chain(turns()));
    here.config(json!({"permission": {"bash": "allow", "edit": "allow"}}));
    here.plugin(
        "routes",
        "import fs from 'node:fs'
        export const P = async ({ directory }) => ({
          'runtime.route.after_select': async (i) =>
            fs.appendFileSync(directory + '/routes.log', `${i.tool} ${i.contract} ${i.provider} ${i.rule ?? '-'}\\n`),
        })",
    );
    let said = |world: &World| -> Vec<String> {
        let parts = world.parts("tool");
        let text = |part: &Value| {
            let state = &part["state"];
            let text = state["output"]
                .as_str()
                .or(state["error"].as_str())
                .unwrap_or_default();
            format!(
                "{} {} {text}",
                part["tool"].as_str().unwrap(),
                state["status"]
            )
        };
        parts.iter().map(text).collect()
    };
    here.run(&["hi"]).ok();
    let local = said(&here);
    assert_eq!(here.read("a.txt"), "two\n", "{local:#?}");
    std::fs::remove_file(here.path("a.txt")).unwrap();

    let there = World::new([]);
    let (bridge, url) = crate::bridge::bridge(&there, &["--command", "cat **"]);
    crate::user_grants::granting(
        &here,
        &format!(
            "[connectors.box]\nurl = \"{url}\"\ntoken_env = \"BOX_TOKEN\"\n[[routes]]\nagent = \"plan\"\nprovider = \"local\"\n[[routes]]\nprovider = \"box\"\n"
        ),
    );
    here.run_with(&[("BOX_TOKEN", crate::bridge::TOKEN)], &["hi"])
        .ok();
    assert_eq!(there.read("a.txt"), "two\n");
    assert!(!here.path("a.txt").exists());
    let elsewhere: Vec<String> = said(&here)
        .iter()
        .map(|text| {
            text.replace(
                &there.project().display().to_string(),
                &here.project().display().to_string(),
            )
        })
        .collect();
    assert_eq!(elsewhere, local);
    let routes = here.lines("routes.log");
    let count = |line: &str| routes.iter().filter(|it| *it == line).count();
    for (tool, contract) in [
        ("write", "write"),
        ("edit", "edit"),
        ("read", "read"),
        ("bash", "exec"),
    ] {
        assert_eq!(
            count(&format!("{tool} {contract} local -")),
            1,
            "{routes:?}"
        );
        assert_eq!(count(&format!("{tool} {contract} box 2")), 1, "{routes:?}");
    }
    here.verify();
    drop(bridge);
}
