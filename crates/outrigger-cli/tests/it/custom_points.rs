//! Points and events that plugins declare (B8), through the whole program, with the example of `examples/plugin-points`.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::*;

/// Copies the example into the project. `rules` is loaded first, since a subscriber need not be loaded after the declaring
/// plugin.
fn example(world: &World) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugin-points");
    for name in ["deploy", "rules"] {
        for entry in fs::read_dir(from.join(name)).unwrap() {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            world.file(
                &format!("tools/{name}/{}", entry.file_name().to_string_lossy()),
                &text,
            );
        }
    }
    world.packages();
    world.config(json!({ "plugin": ["./tools/rules", "./tools/deploy"] }));
}

#[test]
fn a_plugin_asks_others_at_its_own_point_and_tells_its_own_event() {
    let release = |target: &str| call("release", json!({ "target": target }));
    let world = World::new([
        turn([release("staging")]),
        turn([release("production")]),
        done(),
    ]);
    example(&world);
    world.run(&["release it"]).ok();
    let results: Vec<String> = world
        .parts("tool")
        .iter()
        .map(|part| {
            let state = &part["state"];
            let text = state["output"].as_str().or(state["error"].as_str());
            format!("{}: {}", state["status"].as_str().unwrap(), text.unwrap())
        })
        .collect();
    assert_eq!(
        results,
        [
            "completed: released to staging: test, build, upload",
            "error: nothing is released to production on a Friday",
        ]
    );
    assert_eq!(world.lines("releases.log"), ["staging 3"]);
    // The trace and the audit have the subscriber, its effect and its session, as at any other point.
    let audit = world
        .cli(&["audit", "list", "--hook", "deploy/release.before", "--json"])
        .ok();
    let records: Vec<(String, String)> = audit
        .lines()
        .iter()
        .map(|it| (it["pluginId"].to_string(), it["decision"].to_string()))
        .collect();
    assert_eq!(records.len(), 2, "{}", audit.stdout);
    assert!(
        records
            .iter()
            .all(|it| it.0 == "\"outrigger-example-rules\""),
        "{records:?}"
    );
    assert!(
        audit.stdout.contains("\"sessionId\":\"ses_"),
        "{}",
        audit.stdout
    );
    world.verify();
}

#[test]
fn points_are_listed_with_who_declares_and_who_subscribes() {
    let world = World::new([]);
    example(&world);
    let shown = world.cli(&["plugin", "points"]).ok().stdout;
    let line = |start: &str| {
        let line = shown.lines().find(|line| line.starts_with(start));
        line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .unwrap_or_default()
    };
    assert_eq!(
        line("deploy/release.before"),
        "deploy/release.before observe, patch, block outrigger-example-rules (of deploy)"
    );
    assert_eq!(
        line("tool.before_call"),
        "tool.before_call observe, patch, block -"
    );
    assert_eq!(
        line("deploy/release.done"),
        "deploy/release.done A release was made. (of deploy)"
    );
    assert!(!shown.contains("Nothing tests"), "{shown}");
    let all = world.cli(&["plugin", "points", "--json"]).ok().json();
    assert_eq!(
        all["events"][0]["examples"][0]["properties"]["target"],
        "staging"
    );
    let own = all["points"].as_array().unwrap().last().unwrap();
    assert_eq!(own["declared_by"], "deploy");
    assert_eq!(own["output"]["required"], json!(["steps"]));
    assert_eq!(
        all["events"][0]["schema"]["required"],
        json!(["target", "steps"])
    );
    let tested = world.cli(&["plugin", "test", "deploy"]).ok().stdout;
    assert_eq!(
        tested,
        "ok      deploy/release.before: 1 of 1 examples fit\nok      deploy/release.done: 1 of 1 examples fit\n"
    );
    let hooks = world.cli(&["plugin", "list"]).ok().stdout;
    assert!(
        hooks.contains("hooks  deploy/release.before, event"),
        "{hooks}"
    );
}

/// The example's types match those generated from its manifest.
#[test]
fn types_are_made_from_the_schemas() {
    let world = World::new([]);
    example(&world);
    let made = world.cli(&["plugin", "points", "--types", "deploy"]).ok();
    assert_eq!(made.stdout, world.read("tools/deploy/types.d.ts"));
    let all = world.cli(&["plugin", "points", "--types"]).ok().stdout;
    assert!(all.contains("\"deploy/release.before\": { input:"), "{all}");
    let nobody = world.cli(&["plugin", "points", "--types", "rules"]);
    assert!(
        nobody.stderr.contains("declares no points"),
        "{}",
        nobody.stderr
    );
    assert_eq!(nobody.code, 1);
}

/// Returns a plugin that emits the event `tells` when its `event` hook receives `hears`.
fn answering(world: &World, id: &str, hears: &str, tells: &str) {
    let dir = format!("tools/{id}");
    let manifest = format!(
        "id = \"{id}\"\nversion = \"1.0.0\"\nkind = \"capability\"\nentry = \"main.mjs\"\n[[events]]\nname = \"{tells}\"\ndescription = \"Told.\"\n"
    );
    let source = format!(
        "export default {{ id: '{id}', server: async ({{ outrigger }}) => ({{
           'chat.message': async () => {{ if ('{id}' === 'a') await outrigger.emit('{tells}') }},
           event: async ({{ event }}) => {{
             if (event.type !== '{hears}') return
             await new Promise((done) => setTimeout(done, 5))
             await outrigger.emit('{tells}')
           }},
         }}) }}"
    );
    world.file(&format!("{dir}/outrigger.plugin.toml"), &manifest);
    world.file(&format!("{dir}/main.mjs"), &source);
    world.file(
        &format!("{dir}/package.json"),
        r#"{"type":"module","main":"main.mjs"}"#,
    );
}

/// A record has the step at which the turn reached the point, not the one at which the handler answered. Covers a
/// notification-only point, and a point that its handler reaches (C13).
#[test]
fn a_slow_handler_is_recorded_at_the_step_that_reached_it() {
    let wait = "touch second; for n in $(seq 400); do [ -e answered ] && break; sleep 0.05; done";
    let world = World::new([
        turn([call("read", json!({ "filePath": "hello.txt" }))]),
        turn([call(
            "bash",
            json!({ "command": wait, "description": "waits" }),
        )]),
        done(),
    ]);
    world.file(
        "tools/late/outrigger.plugin.toml",
        "id = \"late\"\nversion = \"1.0.0\"\nkind = \"capability\"\nentry = \"main.mjs\"\n[permissions.files]\nwrite = [\"${project}\"]\n[[points]]\nname = \"late/check.made\"\ndescription = \"A check was made.\"\n",
    );
    world.file(
        "tools/late/main.mjs",
        "import fs from 'node:fs'
         export default { id: 'late', server: async ({ outrigger, directory }) => ({
           'llm.after_response': async () => {
             if (fs.existsSync(directory + '/answered')) return
             while (!fs.existsSync(directory + '/second')) await new Promise((done) => setTimeout(done, 20))
             await outrigger.call('late/check.made', {}, {})
             fs.writeFileSync(directory + '/answered', '')
           },
         }) }",
    );
    world.file(
        "tools/late/package.json",
        r#"{"type":"module","main":"main.mjs"}"#,
    );
    world.plugin(
        "witness",
        "export const P = async () => ({ 'late/check.made': async () => {} })",
    );
    world.config(json!({ "plugin": ["./tools/late"], "permission": "allow" }));
    world.run(&["--title", "x", "hi"]).ok();
    let steps = |hook: &str| -> Vec<String> {
        let listed = world.cli(&["audit", "list", "--hook", hook, "--json"]);
        listed
            .ok()
            .lines()
            .iter()
            .map(|it| it["stepId"].to_string())
            .collect()
    };
    assert_eq!(steps("late/check.made"), ["\"1\""]);
    assert_eq!(steps("llm.after_response"), ["\"1\"", "\"2\"", "\"3\""]);
    // A declaration that nothing tests fails.
    let tested = world.cli(&["plugin", "test", "late"]).exited(1).stdout;
    assert_eq!(tested, "failed  late/check.made: it has no example\n");
    world.verify();
}

/// An event that triggers itself stops at the call limit, through one plugin and through two.
#[test]
fn events_that_lead_to_themselves_end() {
    for (plugins, round) in [
        (
            &[("a", "a/ball.ping", "a/ball.ping")][..],
            ["a/ball.ping"; 2],
        ),
        (
            &[
                ("a", "b/ball.pong", "a/ball.ping"),
                ("b", "a/ball.ping", "b/ball.pong"),
            ],
            ["a/ball.ping", "b/ball.pong"],
        ),
    ] {
        // The turn waits until it has ended.
        let wait = "for n in $(seq 200); do grep -q refused rounds && break; sleep 0.05; done";
        let world = World::new([
            turn([call(
                "bash",
                json!({ "command": wait, "description": "waits" }),
            )]),
            done(),
        ]);
        for (id, hears, tells) in plugins {
            answering(&world, id, hears, tells);
        }
        world.plugin(
            "witness",
            "import fs from 'node:fs'
             export const P = async ({ directory }) => {
               const say = (line) => fs.appendFileSync(directory + '/rounds', line + '\\n')
               return {
                 event: async ({ event }) => { if (event.type.includes('/')) say(event.type) },
                 'hook.on_error': async (input) => { if (input.outcome === 'refused') say('refused ' + input.plugin) },
               }
             }",
        );
        let places: Vec<String> = plugins
            .iter()
            .map(|it| format!("./tools/{}", it.0))
            .collect();
        world.config(json!({ "plugin": places, "permission": "allow" }));
        world.run(&["hi"]).ok();
        let mut seen = world.lines("rounds");
        assert_eq!(seen.pop().as_deref(), Some("refused a"), "{seen:?}");
        assert_eq!(seen, round.repeat(4));
        let refused = world
            .cli(&["audit", "list", "--policy", "refused", "--json"])
            .ok()
            .lines();
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert_eq!(refused[0]["policyCheckResult"], "refused: cycle");
        world.verify();
    }
}
