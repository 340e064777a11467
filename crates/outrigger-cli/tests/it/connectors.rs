//! Plugins that contribute neither a hook nor a tool: executors (C6) and skills (D9).

use serde_json::json;

use crate::support::*;
use crate::user_grants::granting;

/// Fulfils contracts, and reports each request.
pub(crate) const BOX: &str = r#"
export default async () => ({ tool: { box: {
  description: "executes elsewhere", args: {},
  async execute({ contract, input }, context) {
    if (contract === "write") throw new Error("the box is full")
    return `${contract} in the box: ${input.command} (${context.agent})`
  },
} } })
"#;

/// Installs the connector in the user's configuration.
pub(crate) fn manifest(world: &World, provides: &str) {
    users_manifest(world, "connector", provides);
}

fn users_manifest(world: &World, kind: &str, provides: &str) {
    manifest_of(world, kind, provides);
    world.config(json!({ "plugin": [] }));
    users_plugins(world, &json!([world.path("tools/acme")]));
}

fn users_plugins(world: &World, plugins: &serde_json::Value) {
    let folder = world.home().join(".config/opencode");
    std::fs::create_dir_all(&folder).unwrap();
    let config = json!({ "plugin": plugins }).to_string();
    std::fs::write(folder.join("opencode.json"), config).unwrap();
}

fn manifest_of(world: &World, kind: &str, provides: &str) {
    let text = format!(
        "id = \"acme\"\nversion = \"1.0.0\"\nkind = \"{kind}\"\nentry = \"main.js\"\n[provides]\n{provides}\n"
    );
    world.file("tools/acme/outrigger.plugin.toml", &text);
    world.config(json!({ "plugin": ["./tools/acme"] }));
}

pub(crate) fn write() -> serde_json::Value {
    call("write", json!({ "filePath": "a.txt", "content": "x" }))
}

#[test]
fn a_plugin_may_execute_what_the_user_routes_to_it() {
    let run = || {
        turn([
            call(
                "bash",
                json!({ "command": "echo here", "description": "d" }),
            ),
            write(),
        ])
    };
    let world = World::new((0..10).map(|n| if n % 2 == 0 { run() } else { done() }));
    world.file("tools/acme/main.js", BOX);
    granting(
        &world,
        "[connectors.box]\nplugin = \"acme\"\n[[routes]]\nprovider = \"box\"\n",
    );
    let run = || {
        let mut run = world.command(&["run", "hi"]);
        run.env("OUTRIGGER_TRUST_CHANGES", "allow");
        world.start(run).end().ok();
        assert!(
            !world.path("a.txt").exists(),
            "nothing is done here instead"
        );
        world.mock.last().texts("tool")
    };
    manifest(&world, "connectors = [\"box\"]\ntools = []");
    // C1: `bridge.*` also runs on the requesting side.
    world.plugin(
        "listens",
        "import fs from 'node:fs'
         export const P = async ({ directory }) => {
           const say = (name) => async (input, output) => fs.appendFileSync(directory + '/bridge.log',
             [name, input.side, input.connector, input.tool, input.path ?? '-', output.bytes ?? input.code ?? '-', input.sessionID.slice(0, 4)].join(' ') + '\\n')
           return { 'bridge.before_invoke': say('before'), 'bridge.after_invoke': say('after'), 'bridge.on_error': say('error') }
         }",
    );
    assert_eq!(
        run(),
        ["exec in the box: echo here (build)", "the box is full"]
    );
    assert!(!world.mock.last().tools().contains(&"box".to_owned()));
    world.verify();
    let mut heard = world.lines("bridge.log");
    heard.sort();
    assert_eq!(
        heard,
        [
            "after asks box exec - 34 ses_",
            "before asks box exec - - ses_",
            "before asks box write a.txt - ses_",
            "error asks box write a.txt tool.failed ses_",
        ]
    );
    // C13: with the session.
    let listed = world.cli(&["audit", "list", "--hook", "bridge.before_invoke", "--json"]);
    for record in listed.ok().lines() {
        assert!(record["sessionId"].is_string(), "{record}");
    }

    // C6: a plugin of another kind cannot be an executor.
    users_manifest(&world, "toolset", "connectors = [\"box\"]");
    let errors = run();
    assert!(
        errors[0].contains("says that it is a \"toolset\""),
        "{errors:?}"
    );

    manifest(&world, "connectors = [\"other\"]");
    let errors = run();
    assert!(errors[0].contains("`box` cannot be used"), "{errors:?}");
    assert!(errors[0].contains("provides.connectors"), "{errors:?}");

    users_plugins(&world, &json!([]));
    let errors = run();
    assert!(errors[0].contains("there is no plugin acme"), "{errors:?}");

    // The project's plugin of that name is not the one that the user means, and its tool is one as any other.
    manifest(&world, "connectors = [\"box\"]");
    users_plugins(&world, &json!([]));
    world.config(json!({ "plugin": ["./tools/acme"] }));
    let errors = run();
    assert!(
        errors[0].contains("the plugin acme is the project's"),
        "{errors:?}"
    );
    assert!(world.mock.last().tools().contains(&"box".to_owned()));
}

#[test]
fn a_connector_is_a_bridge_or_a_plugin() {
    let world = World::new([]);
    for text in ["", "url = \"ws://127.0.0.1:1\"\nplugin = \"acme\""] {
        granting(&world, &format!("[connectors.box]\n{text}\n"));
        let stderr = world.cli(&["tool", "list"]).exited(2).stderr;
        assert!(
            stderr.contains("either the url of a bridge or the plugin"),
            "{stderr}"
        );
    }
}

#[test]
fn skills_of_a_plugin_are_those_in_its_package() {
    let world = World::new([done()]);
    let skill =
        |name: &str, text: &str| format!("---\nname: {name}\ndescription: {text}\n---\nDo it.\n");
    world.file(
        "tools/acme/main.js",
        "export default async () => ({ 'chat.message': async () => {} })",
    );
    world.file("tools/acme/skills/foo/SKILL.md", &skill("foo", "of acme"));
    world.file("tools/acme/skills/bar/SKILL.md", &skill("bar", "of acme"));
    world.file("elsewhere/evil/SKILL.md", &skill("evil", "of nobody"));
    // The user's own skill wins.
    world.file(".opencode/skill/bar/SKILL.md", &skill("bar", "of the user"));
    std::os::unix::fs::symlink(world.path("elsewhere"), world.path("tools/acme/linked")).unwrap();
    manifest_of(
        &world,
        "skill-source",
        "skill_sources = [\"skills\", \"../../elsewhere\", \"linked\", \"none\"]",
    );
    let stderr = world.run(&["hi"]).ok().stderr;
    for out in ["../../elsewhere", "linked", "none"] {
        let line = format!("in {out} are skipped");
        assert!(stderr.contains(&line), "{out}: {stderr}");
    }
    let system = world.mock.last().texts("system").join("\n");
    for (text, there) in [
        ("of acme", true),
        ("of the user", true),
        ("of nobody", false),
    ] {
        assert_eq!(system.contains(text), there, "{text}: {system}");
    }
    // `bar` is the user's.
    assert_eq!(system.matches("of acme").count(), 1, "{system}");
}
