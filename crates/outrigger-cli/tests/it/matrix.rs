//! Published plugins, unmodified, each in a separate project: every one loads, and its declarations and names match
//! `docs/plugin-matrix.csv` (requirement B11). `cargo xtask matrix` regenerates that file.

use std::fs;
use std::path::Path;

use crate::npm::{installed, reaching_npm, world};
use crate::support::*;

/// The plugins of the compatibility promise, with the tested versions. `@zenobius/opencode-background` is missing
/// because npm cannot install it, for OpenCode as little as for us.
const PLUGINS: &[&str] = &[
    "@sureshsankaran/opencode-destructive-check@1.0.5",
    "@tarquinen/opencode-dcp@3.1.14",
    "context-mode@1.0.169",
    "oh-my-opencode-slim@2.2.24",
    "oh-my-opencode@4.19.4",
    "opencode-antigravity-auth@1.6.0",
    "opencode-beads@0.3.2",
    "opencode-gemini-auth@1.3.8",
    "opencode-lmstudio@0.3.0",
    "opencode-openai-codex-auth@4.4.0",
    "opencode-orchestrator@1.7.22",
    "opencode-prompt-recorder@1.9.9",
    "opencode-pty@0.1.3",
    "opencode-skills@0.1.7",
    "opencode-supermemory@2.0.10",
    "opencode-swarm@5.1.0",
    "opencode-wakatime@1.3.9",
];

#[test]
fn every_published_plugin_loads_and_the_committed_matrix_is_true() {
    let mut matrix = String::new();
    for plugin in PLUGINS {
        let world = world(plugin, []);
        if installed(&world, |_| ()).is_none() {
            return;
        }
        let mut command = world.command(&["plugin", "matrix", "--declared", "--csv"]);
        reaching_npm(&mut command);
        let csv = world.start(command).end().ok().stdout;
        let (head, rows) = csv.split_once('\n').unwrap();
        if matrix.is_empty() {
            matrix = format!("{head}\n");
        }
        assert!(!rows.is_empty(), "{plugin} uses nothing");
        matrix.push_str(rows);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plugin-matrix.csv");
    if std::env::var_os("OUTRIGGER_WRITE_MATRIX").is_some() {
        fs::write(&path, &matrix).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    if committed != matrix {
        let differs = differences(&committed, &matrix);
        panic!("docs/plugin-matrix.csv is stale (`cargo xtask matrix` writes it anew):\n{differs}");
    }
}

#[test]
fn the_matrix_tells_declarations_sources_and_use_apart() {
    let world = world(
        "./idle.js",
        [
            turn([call(
                "bash",
                serde_json::json!({ "command": "echo hi", "description": "x" }),
            )]),
            done(),
        ],
    );
    world.file(
        "idle.js",
        "export const Idle = async () => ({ 'chat.params': async () => {},
           auth: { provider: 'acme', methods: [] }, provider: { id: 'acme', models: async () => ({}) } })",
    );
    world.plugin(
        "busy",
        "export const Busy = async ({ client }) => ({
  event: async ({ event }) => { if (event.type === 'session.idle') await client.session.get({ path: { id: event.properties.sessionID } }) },
  'tool.execute.before': async () => { await client.app.log({ body: { service: 's', level: 'debug', message: 'm' } }) },
  'shell.env': async () => {},
  'command.execute.before': async () => {},
})",
    );
    if installed(&world, |_| ()).is_none() {
        return;
    }
    world.run(&["hi"]).ok();
    let table = world
        .start(world.command(&["plugin", "matrix"]))
        .end()
        .ok()
        .stdout;
    insta::assert_snapshot!(table, @r"
      1  idle
      2  busy

    D declared, S named in its sources, U used here

    hook                     1   2
    chat.params             DU   .
    command.execute.before   .   D
    event                    .   D
    shell.env                .  DU
    tool.execute.before      .  DU

    event                    1   2
    session.idle             .   S

    client                   1   2
    app.log                  .  SU
    session.get              .  SU

    auth                     1   2
    acme                     D   .

    provider                 1   2
    acme                     D   .
    ");
    let csv = world
        .start(world.command(&["plugin", "matrix", "--csv", "--declared"]))
        .end()
        .ok()
        .stdout;
    assert!(csv.contains("busy,,client,app.log,false,true\n"), "{csv}");
    let json = world
        .start(world.command(&["plugin", "matrix", "--json"]))
        .end()
        .ok()
        .json();
    let log = json
        .as_array()
        .unwrap()
        .iter()
        .find(|cell| cell["name"] == "app.log")
        .unwrap();
    assert_eq!(
        (&log["used"], &log["declared"]),
        (&serde_json::json!(1), &serde_json::json!(false))
    );
}

/// Returns the lines that only one of the two has.
fn differences(old: &str, new: &str) -> String {
    let only = |a: &str, b: &str, sign: char| -> String {
        let known: Vec<&str> = b.lines().collect();
        a.lines()
            .filter(|line| !known.contains(line))
            .map(|line| format!("{sign} {line}\n"))
            .collect()
    };
    only(old, new, '-') + &only(new, old, '+')
}
