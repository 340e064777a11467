//! Behaviour contracts (C14), layer browser-cdp: the real program, real plugins, a real Chromium, a scripted model. docs/contracts.md has
//! the mapping.

use serde_json::{Value, json};

use crate::browser::{has_chromium, site};
use crate::support::*;
use crate::user_grants::granting;

const PAGE: &str = "<title>Shop</title><body onkeydown=\"document.body.append('paid ' + event.key)\"><button>Pay</button>";
/// What an action fires, in order.
const POINTS: [&str; 5] = [
    "tool.execute.before",
    "cdp.before_action",
    "cdp.after_action",
    "cdp.after_verify",
    "tool.execute.after",
];

/// Notes each point of the browser, and each call of the tool that acts; `more` runs there, too.
fn noting(name: &str, more: &str) -> String {
    let hooks: String = POINTS
        .iter()
        .map(|point| {
            format!(
                "    \"{point}\": async (input) => {{ if (input.tool === 'browser_action' || input.action === 'press') {{ note(\"{point}\"); {more} }} }},\n"
            )
        })
        .collect();
    format!(
        "import fs from \"node:fs\"\nexport const P = async ({{ directory }}) => {{\n  \
         const note = (point) => fs.appendFileSync(directory + \"/{name}.txt\", point + \"\\n\")\n  return {{\n{hooks}  }}\n}}"
    )
}

/// A turn that opens the page, presses a key and expects what comes of it.
fn shop(turns: usize) -> (World, String) {
    let at = site(PAGE);
    let press = json!({ "action": "press", "text": "x", "expect": [{ "text": "paid x" }] });
    let one = || {
        [
            turn([call("browser_open", json!({ "url": at }))]),
            turn([call("browser_action", press.clone())]),
            done(),
        ]
    };
    let world = World::new((0..turns).flat_map(|_| one()));
    world.config(json!({ "small_model": "mock/none", "permission": { "webfetch": { format!("{at}/*"): "allow" } } }));
    granting(&world, "[browser]\nenabled = true\n");
    (world, at)
}

fn hooks(world: &World, args: &[&str]) -> Vec<Value> {
    let all = ["audit", "list", "--json", "-n", "10000", "--kind", "hook"];
    world
        .cli(&[&all, args].concat())
        .ok()
        .lines()
        .into_iter()
        .filter(|run| {
            run["hookName"]
                .as_str()
                .is_some_and(|name| name.starts_with("cdp."))
        })
        .collect()
}

/// `BHV-AGENT-HOOK-LIFECYCLE`: the points of an action fire in their order, of each plugin alike, in between those of the tool; each run is in
/// the audit once, and all belong to the same turn.
#[test]
fn bhv_agent_hook_lifecycle() {
    if !has_chromium() {
        return;
    }
    let (world, _) = shop(1);
    for name in ["a", "b"] {
        world.plugin(name, &noting(name, ""));
    }
    world.run(&["--auto", "--title", "fixed", "buy it"]).ok();
    let acted = &world.parts("tool")[1];
    assert_eq!(
        acted["state"]["metadata"]["verify"], "verified",
        "{acted:#}"
    );
    for name in ["a", "b"] {
        assert_eq!(world.lines(&format!("{name}.txt")), POINTS, "{name}");
        // Of the page that was opened, and of the key that was pressed.
        let runs = hooks(&world, &["--plugin", name]);
        let names: Vec<&str> = runs
            .iter()
            .filter_map(|run| run["hookName"].as_str())
            .collect();
        assert_eq!(
            names,
            [
                "cdp.before_action",
                "cdp.after_action",
                "cdp.before_action",
                "cdp.after_action",
                "cdp.after_verify"
            ],
            "{name}"
        );
        let turns: std::collections::BTreeSet<&str> = runs
            .iter()
            .filter_map(|run| run["traceId"].as_str())
            .collect();
        assert_eq!(turns.len(), 1, "{turns:?}");
    }
    let order = hooks(&world, &[]);
    let order: Vec<&str> = order
        .iter()
        .filter_map(|run| run["pluginId"].as_str())
        .collect();
    assert!(order.chunks(2).all(|pair| pair == ["a", "b"]), "{order:?}");
}

/// `BHV-PLUGIN-FAILURE-ISOLATION`: a plugin that throws at every point of the browser, and one that ends its process there, cost their own
/// changes: the action is done once and verified, and the plugin beside them sees all of it.
#[test]
fn bhv_plugin_failure_isolation() {
    if !has_chromium() {
        return;
    }
    let (world, _) = shop(1);
    world.plugin(
        "bad",
        &noting("bad", "if (input.action) throw new Error('no')"),
    );
    world.plugin(
        "dies",
        "export const D = async () => ({ \"cdp.before_action\": async (input) => { if (input.action === 'press') process.exit(3) } })",
    );
    world.plugin("good", &noting("good", ""));
    world.run(&["--auto", "--title", "fixed", "buy it"]).ok();
    let parts = world.parts("tool");
    let state = &parts[1]["state"];
    assert_eq!(state["metadata"]["verify"], "verified", "{state:#}");
    let output = state["output"].as_str().unwrap_or_default();
    assert_eq!(output.matches("paid x").count(), 1, "{output}");
    assert_eq!(world.lines("good.txt"), POINTS);
    let failed: Vec<Value> = hooks(&world, &["--errored"]);
    assert!(
        failed
            .iter()
            .all(|run| run["decision"] == "failed_open" && run["pluginId"] != "good"),
        "{failed:?}"
    );
    for plugin in ["bad", "dies"] {
        assert!(
            failed.iter().any(|run| run["pluginId"] == plugin),
            "{plugin}: {failed:?}"
        );
    }
    world.cli(&["audit", "verify"]).ok();
}

/// `BHV-CAPABILITY-PROVIDER-ROUTING`: the browser's contracts are bound to this machine's Chromium where no rule says otherwise. One that a
/// rule binds to somebody else is not done here, and the other one still is.
#[test]
fn bhv_capability_provider_routing() {
    if !has_chromium() {
        return;
    }
    let (world, _) = shop(2);
    world.plugin(
        "routes",
        "import fs from 'node:fs'
        export const P = async ({ directory }) => ({
          'runtime.route.after_select': async (i) =>
            fs.appendFileSync(directory + '/routes.log', `${i.tool} ${i.contract} ${i.provider} ${i.rule ?? '-'}\\n`),
        })",
    );
    world.run(&["--auto", "buy it"]).ok();
    let here = world.parts("tool");
    assert_eq!(
        here[1]["state"]["metadata"]["verify"], "verified",
        "{here:#?}"
    );

    let there = World::new([]);
    let (bridge, url) = crate::bridge::bridge(&there, &[]);
    granting(
        &world,
        &format!(
            "[browser]\nenabled = true\n[connectors.box]\nurl = \"{url}\"\ntoken_env = \"BOX_TOKEN\"\n[[routes]]\ncontract = \"browser.write\"\nprovider = \"box\"\n"
        ),
    );
    world
        .run_with(
            &[("BOX_TOKEN", crate::bridge::TOKEN)],
            &["--auto", "buy it"],
        )
        .ok();
    let elsewhere = world.parts("tool");
    for part in &elsewhere {
        assert_eq!(part["state"]["status"], "error", "{part:#}");
    }
    let listed = [
        "audit", "list", "--json", "-n", "10000", "--kind", "browser",
    ];
    let actions = world.cli(&listed).ok().lines();
    assert_eq!(actions.len(), 1, "{actions:#?}");
    assert_eq!(
        world.lines("routes.log"),
        [
            "browser_open browser.write cdp -",
            "browser_action browser.write cdp -",
            "browser_open browser.write box 1",
            "browser_action browser.write box 1",
        ]
    );
    drop(bridge);
}
