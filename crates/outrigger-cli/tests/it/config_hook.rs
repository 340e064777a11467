//! Changes made by a `config` hook take effect for every key: one row for each.

use serde_json::{Value, json};

use crate::support::*;

/// A row: the key, the hook's change, and its result.
struct Row {
    key: &'static str,
    hook: String,
    /// The model's turns.
    turns: Vec<Value>,
    /// Arguments of `run`.
    args: &'static [&'static str],
    /// Reads the result afterwards.
    look: fn(&World, &Done) -> String,
}

fn row(key: &'static str, hook: &str, look: fn(&World, &Done) -> String) -> Row {
    Row {
        key,
        hook: hook.to_owned(),
        turns: vec![done()],
        args: &["go"],
        look,
    }
}

fn offered(world: &World, name: &str) -> String {
    let tools = world.mock.requests()[0].tools();
    format!("{name} offered: {}", tools.iter().any(|tool| tool == name))
}

fn in_system(world: &World, words: &str) -> String {
    let system = world.mock.last().texts("system").concat();
    format!("system prompt has {words:?}: {}", system.contains(words))
}

fn model(world: &World) -> String {
    world.mock.last().body["model"].to_string()
}

fn rows() -> Vec<Row> {
    // Inside the project, because what a plugin adds can read only what the plugin can.
    let (rich, lsp) = ("servers/rich.mjs", "servers/server.py");
    let edit = || {
        let change = json!({ "filePath": "hello.txt", "oldString": "there", "newString": "error" });
        vec![turn([call("edit", change)]), done()]
    };
    vec![
        Row {
            args: &["--agent", "extra", "go"],
            ..row(
                "agent",
                "c.agent = { ...c.agent, extra: { mode: 'primary', prompt: 'SPEAK UP', tools: { bash: false } } }",
                |world, _| format!("{}, {}", in_system(world, "SPEAK UP"), offered(world, "bash")),
            )
        },
        Row {
            args: &["--command", "greet", "you"],
            ..row("command", "(c.command ??= {}).greet = { template: 'Greet $1 twice', description: 'd' }", |world, _| {
                world.mock.last().texts("user").concat()
            })
        },
        row(
            "mcp",
            &format!("(c.mcp ??= {{}}).notes = {{ type: 'local', command: ['node', '{rich}'], timeout: 20000 }}"),
            |world, _| offered(world, "notes_say"),
        ),
        row("permission", "c.permission = { ...c.permission, bash: 'deny' }", |world, _| offered(world, "bash")),
        row("tools", "c.tools = { ...c.tools, webfetch: false }", |world, _| offered(world, "webfetch")),
        row("default_agent", "c.default_agent = 'plan'", |_, done| done.stderr.trim().to_owned()),
        row(
            "skills.urls",
            "const s = http.createServer((q, a) => a.end(q.url === '/index.json' ? JSON.stringify({ skills: [{ name: 'far', files: ['SKILL.md'] }] }) : '---\\nname: far\\ndescription: FAR AWAY\\n---\\n'))
             await new Promise((done) => s.listen(0, '127.0.0.1', done)); s.unref()
             c.skills = { ...c.skills, urls: [`http://127.0.0.1:${s.address().port}`] }",
            |world, _| in_system(world, "FAR AWAY"),
        ),
        row("skills.paths", "c.skills = { ...c.skills, paths: ['more'] }", |world, _| in_system(world, "CLOSE BY")),
        Row {
            args: &["-m", "second/m9", "go"],
            ..row(
                "provider",
                "c.provider.second = { ...c.provider.mock, name: 'Second', options: { baseURL: c.provider.mock.options.baseURL, apiKey: 'y' }, models: { m9: { name: 'M9' } } }",
                |world, _| model(world),
            )
        },
        Row {
            turns: edit(),
            ..row(
                "formatter",
                "c.formatter = { mine: { command: ['sh', '-c', 'echo formatted >> $0', '$FILE'], extensions: ['.txt'] } }",
                |world, _| world.read("hello.txt"),
            )
        },
        Row {
            turns: edit(),
            ..row(
                "lsp",
                &format!("c.lsp = {{ mine: {{ command: ['python3', '{lsp}', 'push', '/dev/null'], extensions: ['.txt'] }} }}"),
                |world, _| {
                    let result = world.mock.last().texts("tool").concat();
                    format!("errors shown: {}", result.contains("LSP errors"))
                },
            )
        },
        // A slow server: the setting ends the wait for it.
        Row {
            turns: vec![turn([call("slow_hang", json!({}))]), done()],
            ..row(
                "experimental",
                &format!(
                    "c.experimental = {{ ...c.experimental, mcp_timeout: 50 }}
                     c.mcp = {{ slow: {{ type: 'local', command: ['node', '{}'] }} }}",
                    rich.replace("rich.mjs", "server.mjs")
                ),
                |world, _| world.mock.last().texts("tool").concat(),
            )
        },
        row("instructions", "c.instructions = [...(c.instructions ?? []), 'RULES.md']", |world, _| in_system(world, "NEVER ON SUNDAYS")),
        row("model", "c.model = 'mock/m2'", |world, _| model(world)),
        row("small_model", "c.small_model = 'mock/m2'", |world, _| {
            let requests = world.mock.all_requests();
            requests.iter().find(|request| request.is_title).map_or_else(String::new, |request| request.body["model"].to_string())
        }),
    ]
}

#[test]
fn every_key_that_the_hook_changes_counts() {
    let mut seen = String::new();
    for row in rows() {
        let world = World::new(row.turns);
        world.config(json!({ "provider": { "mock": { "models": { "m2": { "name": "M2" } } } } }));
        world.file(
            "more/near/SKILL.md",
            "---\nname: near\ndescription: CLOSE BY\n---\n",
        );
        world.file("RULES.md", "NEVER ON SUNDAYS");
        for server in [
            "mcp/tests/it/rich.mjs",
            "mcp/tests/it/server.mjs",
            "lsp/tests/it/server.py",
        ] {
            let from = format!("{}/../outrigger-{server}", env!("CARGO_MANIFEST_DIR"));
            let name = server.rsplit('/').next().unwrap();
            world.file(
                &format!("servers/{name}"),
                &std::fs::read_to_string(from).unwrap(),
            );
        }
        let hook = format!(
            "import http from 'node:http'\nexport const P = async () => ({{ config: async (c) => {{ {} }} }})",
            row.hook
        );
        world.plugin("p", &hook);
        let done = world.run(row.args).ok();
        assert!(
            !done.stderr.contains("WARN"),
            "{}: {}",
            row.key,
            done.stderr
        );
        seen += &format!("{}: {}\n", row.key, (row.look)(&world, &done).trim_end());
    }
    insta::assert_snapshot!(seen, @r#"
    agent: system prompt has "SPEAK UP": true, bash offered: false
    command: Greet you twice
    mcp: notes_say offered: true
    permission: bash offered: false
    tools: webfetch offered: false
    default_agent: > plan · m1
    skills.urls: system prompt has "FAR AWAY": true
    skills.paths: system prompt has "CLOSE BY": true
    provider: "m9"
    formatter: hi error
    formatted
    lsp: errors shown: true
    experimental: The slow_hang tool did not finish within 50 ms and was stopped.
    instructions: system prompt has "NEVER ON SUNDAYS": true
    model: "m2"
    small_model: "m2"
    "#);
}

/// A hook may also delete keys, and a value of the wrong type affects only its own key.
#[test]
fn what_the_hook_takes_away_or_spoils_costs_that_alone() {
    let rows = [
        ("command", "delete c.command"),
        ("agent", "c.agent = 7"),
        ("permission", "c.permission = ['x']"),
        ("mcp", "c.mcp = { notes: 3 }"),
        ("instructions", "c.instructions = 'RULES.md'"),
        ("provider", "c.provider.mock.models.m1.limit = 'much'"),
        (
            "all",
            "for (const key of Object.keys(c)) if (key !== 'provider' && key !== 'model') delete c[key]",
        ),
    ];
    let mut seen = String::new();
    for (key, hook) in rows {
        let world = World::new([done()]);
        world.config(json!({ "command": { "mine": { "template": "t" } } }));
        world.plugin(
            "p",
            &format!("export const P = async () => ({{ config: async (c) => {{ {hook} }} }})"),
        );
        let run = world.run(&["go"]).ok();
        let warned: Vec<&str> = run
            .stderr
            .lines()
            .filter(|line| line.contains("config"))
            .collect();
        seen += &format!("{key}: {}\n{}", run.stdout, world.plain(&warned.join("\n")));
        if !warned.is_empty() {
            seen.push('\n');
        }
    }
    insta::assert_snapshot!(seen, @r#"
    command: All done.

    agent: All done.

     WARN [config] config hook: /agent: expected an object, found 7; skipped
    permission: All done.

     WARN [config] config hook: /permission: expected "allow", "ask" or "deny", or an object of permissions with their rules, found a list of 1; skipped
    mcp: All done.

     WARN [config] config hook: /mcp/notes: expected an object, found 3; skipped
    instructions: All done.

     WARN [config] config hook: /instructions: expected a list of texts, found "RULES.md"; skipped
    provider: All done.

     WARN [config] config hook: /provider/mock/models/m1/limit: expected an object, found "much"; skipped
    all: All done.
    "#);
}

/// A hook throws half way: its changes are undone, and the next one's apply.
#[test]
fn a_config_hook_that_throws_is_undone() {
    for throw in [
        "throw new Error('half way')",
        "throw 'half way'",
        "throw undefined",
    ] {
        let world = World::new([done()]);
        world.plugin("a", &format!("export const A = async () => ({{ config: async (c) => {{ c.default_agent = 'plan'; {throw} }} }})"));
        world.plugin("b", "export const B = async () => ({ config: (c) => { (c.agent ??= {}).build = { prompt: 'SPEAK UP' } } })");
        let done = world.run(&["go"]).ok();
        assert!(done.stderr.contains("> build"), "{throw}: {}", done.stderr);
        assert_eq!(
            in_system(&world, "SPEAK UP"),
            "system prompt has \"SPEAK UP\": true"
        );
    }
}
