//! Every point of the table fires at its place, in the runs of one project (C1).

use std::collections::BTreeSet;

use outrigger_kernel::hooks::{ALIASES, HookPoint};
use serde_json::{Value, json};

use crate::bridge::{Controller, bridge};
use crate::support::*;

/// Points that need a browser: covered by `browser::points_fire_and_no_hook_makes_a_success`.
const BROWSER_ONLY: [&str; 4] = [
    "cdp.before_action",
    "cdp.after_action",
    "cdp.after_verify",
    "cdp.on_error",
];

/// Returns a plugin that notes each call under its key, and changes nothing.
fn noting(names: &[(&str, &str)]) -> String {
    format!(
        "import fs from 'node:fs'\n\
         export const P = async ({{ directory }}) => {{\n\
           const hooks = {{}}\n\
           for (const [key, name] of {}) hooks[key] = async () => {{ fs.appendFileSync(directory + '/points.log', name + '\\n') }}\n\
           return hooks\n\
         }}",
        json!(names)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn every_point_fires_from_its_place() {
    let full = |mut turn: Value| {
        turn["usage"] = json!([97_000, 10]);
        turn
    };
    let bash = || call("bash", json!({"command": "echo x", "description": "x"}));
    let world = World::new([
        // A command, a question, a failing tool, a successful one, and one without its connector.
        turn([
            bash(),
            call("read", json!({"filePath": "missing"})),
            call("write", json!({"filePath": "elsewhere/x", "content": ""})),
        ]),
        // After this one the history is full, and is summarised.
        full(turn([bash()])),
        done(),
        // A copy of the session, whose request fails.
        json!({ "status": 400, "error": "no" }),
        done(),
    ]);
    world.config(json!({
        "permission": { "bash": "ask" },
        "command": { "greet": { "template": "hi $ARGUMENTS" } },
    }));
    // All names on one object: none is skipped.
    let points = HookPoint::ALL.iter().map(|it| (it.hook(), it.name()));
    let aliases = ALIASES.iter().map(|(alias, _)| (*alias, *alias));
    let names: Vec<_> = points.chain(aliases).collect();
    world.plugin("all", &noting(&names));
    world.plugin(
        "throws",
        "export const T = async () => ({ 'chat.headers': async () => { throw new Error('as asked') } })",
    );
    crate::user_grants::granting(
        &world,
        "[connectors.box]\nurl = \"ws://127.0.0.1:1\"\ntoken_env = \"HOME\"\n[[routes]]\npath = \"elsewhere\"\nprovider = \"box\"\n",
    );
    world.run(&["--auto", "--command", "greet", "you"]).ok();
    world.run(&["-c", "--fork", "--auto", "again"]);
    let (running, url) = bridge(&world, &[]);
    let mut controller = Controller::new(&url).await;
    for path in ["points.log", "missing"] {
        controller.ask("read", json!({ "filePath": path })).await;
    }
    running.signal(rustix::process::Signal::TERM);
    running.end();

    let seen: BTreeSet<String> = world.lines("points.log").into_iter().collect();
    let all = HookPoint::ALL
        .iter()
        .map(|point| point.name())
        .chain(ALIASES.iter().map(|(alias, _)| *alias));
    let missing: Vec<&str> = all
        .filter(|name| !BROWSER_ONLY.contains(name) && !seen.contains(*name))
        .collect();
    assert_eq!(missing, [""; 0], "fired: {seen:?}");
}
