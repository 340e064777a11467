//! Declarations of tools, through the whole program (D6, D7).

use serde_json::json;

use crate::mcp::RICH;
use crate::support::*;
use crate::user_grants::granting;

#[test]
fn tools_are_listed_with_what_they_declare() {
    let world = World::new([]);
    granting(
        &world,
        "[capabilities]\nnobody = []\n[tool_limits.fly]\ntimeout_ms = 5\n[tool_limits.write]\nallowed_write_roots = [\"out\"]\n",
    );
    let listed = world.cli(&["tool", "list"]).ok();
    for warning in [
        "[capabilities] nobody: there is no agent",
        "[tool_limits.fly] there is no tool `fly`",
    ] {
        assert!(listed.stderr.contains(warning), "{}", listed.stderr);
    }
    let listed = listed.stdout;
    // Whether they exist depends on the machine.
    let listed: String = listed
        .lines()
        .filter(|line| {
            !["table", "python"]
                .iter()
                .any(|name| line.starts_with(name))
        })
        .map(|line| format!("{line}\n"))
        .collect();
    insta::assert_snapshot!(listed, @r"
    invalid              1.0.0    -        host            builtin            nothing
    question             1.0.0    -        host            builtin            user.ask
    bash                 1.0.0    exec     workspace-write builtin            process.exec
    read                 1.0.0    read     host            builtin            fs.read
    glob                 1.0.0    -        host            builtin            fs.read
    grep                 1.0.0    -        host            builtin            fs.read
    edit                 1.0.0    edit     host            builtin            fs.read, fs.write
    write                1.0.0    write    host            builtin            fs.write
    task                 1.0.0    -        host            builtin            agent.spawn
    webfetch             1.0.0    -        host            builtin            net.connect
    todowrite            1.0.0    -        host            builtin            session.write
    skill                1.0.0    -        host            builtin            nothing
    apply_patch          1.0.0    -        host            builtin            fs.read, fs.write
    ");
    // The effect, and not the name of the setting.
    for (setting, said) in [
        ("full", "none: it runs in the host"),
        ("read-only", "writes to temporary folders only"),
    ] {
        let world = World::new([]);
        granting(&world, &format!("[tools]\nsandbox = {setting:?}\n"));
        let shown = world.cli(&["tool", "show", "bash"]).ok().stdout;
        assert!(shown.contains(said), "{setting}: {shown}");
    }
    let shown = world.cli(&["tool", "show", "write"]).ok().stdout;
    for want in [
        "needs           fs.write",
        "contract        write",
        "sandbox         none: it runs in the host",
        "writes          out",
    ] {
        assert!(shown.contains(want), "{want}: {shown}");
    }
    let json = world.cli(&["tool", "show", "bash", "--json"]).ok().json();
    assert_eq!(
        (&json["name"], &json["contract"], &json["capabilities"]),
        (&json!("bash"), &json!("exec"), &json!(["process.exec"]))
    );
    let all = world.cli(&["tool", "list", "--json"]).ok().json();
    assert_eq!(all[1]["name"], "question");
    let nobody = world.cli(&["tool", "show", "fly"]);
    assert!(
        nobody.stderr.contains("tool.not_found"),
        "{}",
        nobody.stderr
    );
}

#[test]
fn an_agent_without_a_capability_is_refused_and_learns_which() {
    let write = || call("write", json!({"filePath": "out/a.txt", "content": "x"}));
    let world = World::new([
        turn([write(), call("glob", json!({"pattern": "*.md"}))]),
        done(),
        turn([
            call("write", json!({"filePath": "b.txt", "content": "x"})),
            write(),
        ]),
        done(),
    ]);
    granting(&world, "[capabilities]\nbuild = [\"fs.read\"]\n");
    world.run(&["hi"]).ok();
    let parts = world.parts("tool");
    assert_eq!(
        parts[0]["state"]["error"],
        "The write tool needs fs.write, which the agent `build` has not been granted. Do without it, or ask the user to grant it."
    );
    assert_eq!(parts[1]["state"]["status"], "completed");
    assert!(!world.path("out/a.txt").exists());
    let audit = world
        .cli(&["audit", "list", "--decision", "tool.not_granted"])
        .ok();
    assert!(audit.stdout.contains("write"), "{}", audit.stdout);
    // Granted, and limited to a folder.
    granting(
        &world,
        "[tool_limits.write]\nallowed_write_roots = [\"out\"]\n",
    );
    world.run(&["hi"]).ok();
    let parts = world.parts("tool");
    let error = parts[0]["state"]["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("The write tool is held to "), "{error}");
    assert_eq!(world.read("out/a.txt"), "x");
    assert!(!world.path("b.txt").exists());
    // A project cannot set it.
    world.settings("[capabilities]\nbuild = []\n");
    let listing = world.cli(&["tool", "list"]);
    assert!(
        listing.stderr.contains("are ignored: a project"),
        "{}",
        listing.stderr
    );
}

/// Through a subagent, an agent has no more than its own grants; capabilities routed elsewhere stay routed for its
/// subagents.
#[test]
fn a_subagent_stays_within_the_grants_and_routes_of_its_caller() {
    let task = json!({ "description": "job", "prompt": "Job", "subagent_type": "general" });
    let work = [
        call(
            "bash",
            json!({ "command": "touch ran", "description": "x" }),
        ),
        call("write", json!({ "filePath": "ran", "content": "x" })),
    ];
    for (settings, says) in [
        (
            "[capabilities]\nbuild = [\"fs.read\", \"agent.spawn\"]\n",
            "which the agent `build` has not been granted",
        ),
        (
            "[connectors.box]\nurl = \"ws://127.0.0.1:1\"\ntoken_env = \"HOME\"\n[[routes]]\nagent = \"build\"\nprovider = \"box\"\n",
            "Cannot reach",
        ),
    ] {
        let world = World::new([
            turn([call("task", task.clone())]),
            turn(work.clone()),
            text("did"),
            done(),
        ]);
        granting(&world, settings);
        world.run(&["go"]).ok();
        let requests = world.mock.requests();
        let results: Vec<String> = requests.iter().flat_map(|it| it.texts("tool")).collect();
        let refused = results.iter().filter(|it| it.contains(says)).count();
        assert_eq!(refused, 2, "{results:?}");
        assert!(!world.path("ran").exists());
    }
}

const TOOLS: &str = r#"
let runs = 0, seen = 0
const tool = (outrigger, execute) => ({ description: "for tests", args: {}, execute, outrigger })
export const Tools = async () => ({ tool: {
  shaped: tool({ version: "1.2.0", output_schema: { type: "object", required: ["n"] } }, async () => "{}"),
  flaky: tool({ safe_to_repeat: true, constraints: { max_retries: 2, retry_backoff_ms: 5 } },
    async () => { if (++runs < 3) throw new Error("not now"); return `run ${runs}` }),
  once: tool({ constraints: { deterministic_hooks: true } },
    async () => { await new Promise((go) => setTimeout(go, 50)); return `seen ${++seen}` }),
  writes: tool({ capabilities: ["fs.write"] }, async () => "wrote"),
  wrong: tool({ constraints: { max_retries: 3 } }, async () => "never"),
  odd: tool({ colour: "red" }, async () => "never"),
} })
"#;

#[test]
fn what_a_plugins_tool_declares_holds_it() {
    if bun_or_skip().is_none() {
        return;
    }
    let calls = ["shaped", "flaky", "once", "once", "writes"];
    let world = World::new([turn(calls.map(|name| call(name, json!({})))), done()]);
    world.packages();
    world.file("tools/acme/main.js", TOOLS);
    world.file(
        "tools/acme/outrigger.plugin.toml",
        "id = \"acme\"\nversion = \"1.0.0\"\nkind = \"toolset\"\nentry = \"main.js\"\n[permissions.files]\nread = [\"${project}\"]\n",
    );
    world.config(json!({ "plugin": ["./tools/acme"] }));
    let done = world.run(&["hi"]).ok();
    for (tool, why) in [
        ("wrong", "only a tool that is safe to repeat"),
        ("odd", "colour"),
    ] {
        let warnings = done
            .stderr
            .lines()
            .any(|line| line.contains(tool) && line.contains(why));
        assert!(warnings, "{tool}: {}", done.stderr);
    }
    let audit = world
        .cli(&["audit", "list", "--decision", "tool left out", "--json"])
        .ok()
        .lines();
    assert_eq!(audit.len(), 2, "{audit:?}");
    assert!(
        audit
            .iter()
            .all(|it| it["pluginId"] == "acme" && it["policyCheckResult"] == "refused: descriptor")
    );
    let parts = world.parts("tool");
    let said = |at: usize| {
        let state = &parts[at]["state"];
        let text = if state["status"] == "error" {
            "error"
        } else {
            "output"
        };
        state[text].as_str().unwrap_or_default().to_owned()
    };
    assert!(
        said(0).starts_with("The answer of the shaped tool does not satisfy its own output schema"),
        "{}",
        said(0)
    );
    assert_eq!(said(1), "run 3");
    assert!(
        said(2).starts_with("seen ") && said(2) == said(3),
        "{} {}",
        said(2),
        said(3)
    );
    assert!(
        said(4).contains("needs fs.write, which the plugin `acme` has not been granted"),
        "{}",
        said(4)
    );
    // The audit has retried calls, and calls answered by another one.
    let outcomes = world
        .cli(&["audit", "list", "--kind", "tool_outcome", "--json"])
        .ok()
        .lines();
    let details: Vec<&str> = outcomes
        .iter()
        .filter_map(|it| it["detail"].as_str())
        .collect();
    assert_eq!(details.len(), 2, "{outcomes:#?}");
    assert!(details.contains(&"made again 2 times"), "{details:?}");
    assert!(
        details
            .iter()
            .any(|it| it.starts_with("not made: an equal call")),
        "{details:?}"
    );
    let shown = world.cli(&["tool", "show", "shaped"]).ok().stdout;
    for warnings in [
        "version         1.2.0",
        "sandbox         that of its plugin or server",
        "\"required\":[\"n\"]",
    ] {
        assert!(shown.contains(warnings), "{warnings}: {shown}");
    }
}

/// What is bound to another provider never runs here instead (C11).
#[test]
fn a_connector_that_cannot_be_used_fails_its_calls() {
    let write = || call("write", json!({"filePath": "a.txt", "content": "x"}));
    let rows = [
        (
            "token_env = \"NOT_SET\"",
            "ws://127.0.0.1:1",
            "the variable NOT_SET is not set",
        ),
        (
            "token_file = \"/nowhere\"",
            "ws://127.0.0.1:1",
            "cannot be read from /nowhere",
        ),
        ("", "ws://127.0.0.1:1", "neither token_env nor token_file"),
        ("token_env = \"HOME\"", "ws://192.0.2.1:1", "in the clear"),
        (
            "token_env = \"HOME\"",
            "http://127.0.0.1:1",
            "is not an address of a bridge",
        ),
        ("token_env = \"HOME\"", "ws://127.0.0.1:1", "Cannot reach"),
    ];
    let world = World::new(rows.iter().flat_map(|_| [turn([write()]), done()]));
    for (token, url, says) in rows {
        granting(
            &world,
            &format!(
                "[connectors.box]\nurl = \"{url}\"\n{token}\n[[routes]]\ncontract = \"write\"\nprovider = \"box\"\n"
            ),
        );
        world.run(&["hi"]).ok();
        let error = world.parts("tool")[0]["state"]["error"].clone();
        let error = error.as_str().unwrap_or_default();
        assert!(
            error.contains(says) && error.contains("box"),
            "{says}: {error}"
        );
        assert!(!world.path("a.txt").exists());
    }
    granting(&world, "[[routes]]\nprovider = \"nobody\"\n");
    let done = world.cli(&["tool", "list"]).exited(2);
    assert!(
        done.stderr.contains("no [connectors.nobody]"),
        "{}",
        done.stderr
    );
}

/// If a rule routes everything elsewhere, a tool that may do anything does not run here, unless a rule names it.
#[test]
fn what_does_not_say_what_it_needs_is_not_done_here() {
    let calls = || {
        let names = ["silent", "says", "notes_say"];
        turn(names.map(|name| call(name, json!({ "text": "hi" }))))
    };
    let world = World::new([calls(), done(), calls(), done()]);
    world.config(json!({ "mcp": { "notes": { "type": "local", "command": ["node", RICH] } } }));
    world.plugin(
        "silent",
        "export const P = async () => ({ tool: {
          silent: { description: 'd', args: {}, execute: async () => 'silent ran' },
          says: { description: 'd', args: {}, outrigger: { capabilities: ['net.connect'] }, execute: async () => 'says ran' },
        } })",
    );
    let everything = "[connectors.box]\nurl = \"ws://127.0.0.1:1\"\ntoken_env = \"HOME\"\n[[routes]]\nprovider = \"box\"\n";
    let but = "[[routes]]\ntool = \"silent\"\nprovider = \"local\"\n[[routes]]\ntool = \"notes_*\"\nprovider = \"local\"\n";
    for (rules, refused) in [
        (everything.to_owned(), true),
        (format!("{but}{everything}"), false),
    ] {
        granting(&world, &rules);
        world.run(&["go"]).ok();
        let results = world.mock.last().texts("tool");
        let is =
            |at: usize| results[at].contains("works on this machine, and `read` is done by box");
        assert_eq!(
            [is(0), is(1), is(2)],
            [refused, false, refused],
            "{results:?}"
        );
        assert!(results[1].contains("says ran"), "{results:?}");
        assert_eq!(results[0].contains("silent ran"), !refused, "{results:?}");
    }
}

/// A connector knows a shell command, not that it is a plugin's tool with no rule of the user's about it.
#[test]
fn no_connector_of_the_users_carries_out_a_plugins_tool() {
    let tools = [
        ("weather", "exec", "['process.exec']"),
        ("news", "read", "['fs.read']"),
        ("notes", "write", "['fs.write']"),
    ];
    let world = World::new([turn(tools.map(|(name, ..)| call(name, json!({})))), done()]);
    let sources = tools.map(|(name, contract, needs)| {
        format!(
            "{name}: {{ description: 'd', args: {{}}, outrigger: {{ contract: '{contract}', capabilities: {needs} }}, execute: async () => 'ran' }}"
        )
    });
    world.plugin(
        "p",
        &format!(
            "export const P = async () => ({{ tool: {{ {} }}, 'tool.execute.before': async (i, o) => \
               Object.assign(o.args, {{ command: 'id', filePath: 'a.txt', content: 'x', description: 'd' }}) }})",
            sources.join(", ")
        ),
    );
    granting(
        &world,
        "[connectors.box]\nurl = \"ws://127.0.0.1:1\"\ntoken_env = \"HOME\"\n[[routes]]\nprovider = \"box\"\n",
    );
    world.run(&["go"]).ok();
    let results = world.mock.last().texts("tool");
    for (result, (_, contract, _)) in results.iter().zip(tools) {
        let refused = format!("works on this machine, and `{contract}` is done by box");
        assert!(result.contains(&refused), "{results:?}");
    }
}
