//! A throw in any hook of requirement B3, in every way in which JavaScript can: the turn continues without that handler's changes,
//! except where the throw is the tool's error (`docs/compatibility.md`, "Different on purpose").

use serde_json::{Value, json};

use crate::support::*;

/// The ways in which a handler may fail.
const WAYS: [(&str, &str); 4] = [
    (
        "Sync",
        "(i, o) => { CHANGE; throw new Error('on purpose') }",
    ),
    (
        "Async",
        "async (i, o) => { CHANGE; await null; throw new Error('on purpose') }",
    ),
    ("Text", "async (i, o) => { CHANGE; throw 'on purpose' }"),
    ("Nothing", "(i, o) => { CHANGE; throw undefined }"),
];

/// Hooks whose throw loses that handler's change only, and a change that must not be seen.
const COSTS_NOTHING: [(&str, &str); 15] = [
    ("config", "i.username = 'MARK'"),
    // Handlers of one process share one event, as in OpenCode.
    ("event", ""),
    ("chat.message", "o.parts[0].text = 'MARK'"),
    ("chat.params", "o.options.spot = 'MARK'"),
    ("chat.headers", "o.headers.spot = 'MARK'"),
    ("permission.ask", "o.status = 'deny'; o.spot = 'MARK'"),
    (
        "command.execute.before",
        "o.parts.push({ type: 'text', text: 'MARK' })",
    ),
    (
        "experimental.chat.messages.transform",
        "o.messages[0].parts[0].text = 'MARK'; o.messages.length = 1",
    ),
    ("experimental.chat.system.transform", "o.system[0] = 'MARK'"),
    (
        "experimental.provider.small_model",
        "o.model = { id: 'MARK' }",
    ),
    (
        "experimental.session.compacting",
        "o.context.push('MARK'); o.prompt = 'MARK'",
    ),
    (
        "experimental.compaction.autocontinue",
        "o.enabled = false; o.spot = 'MARK'",
    ),
    ("experimental.text.complete", "o.text = 'MARK'"),
    (
        "tool.definition",
        "o.description = 'MARK'; o.parameters = {}",
    ),
    ("dispose", ""),
];

/// Sets up a slash command, a text, a tool call, a compaction and a title, so that every hook is reached.
fn everything() -> World {
    let bash = call(
        "bash",
        json!({ "command": "echo ran=$FROM_HOOK >> ran.txt; cat ran.txt", "description": "x" }),
    );
    let first = json!({ "text": "I will.", "tools": [bash], "usage": [97_000, 10] });
    let world = World::new([first, done()]);
    world.config(json!({ "command": { "mine": { "template": "Do $ARGUMENTS" } }, "permission": { "bash": "ask" } }));
    world
}

/// Returns four handlers that throw, and one after them that reports its input.
fn thrower(hook: &str, change: &str) -> String {
    let handlers = WAYS.map(|(name, way)| {
        let way = way.replace("CHANGE", change);
        format!("export const {name} = async () => ({{ '{hook}': {way} }})\n")
    });
    format!(
        "import fs from 'node:fs'
         {}
         export const Witness = async ({{ directory }}) => ({{ '{hook}': (i, o) => fs.appendFileSync(directory + '/witness.txt', JSON.stringify([i, o]).includes('MARK') + '\\n') }})",
        handlers.concat()
    )
}

fn run(world: &World) -> Done {
    world.run(&["--auto", "--command", "mine", "it"])
}

/// Replaces the kinds of events, which these tests are not about.
fn any_event(line: &str) -> String {
    match line.split_once(" (on ") {
        Some((before, _)) if line.contains("event hook failed") => before.to_owned(),
        _ => line.to_owned(),
    }
}

#[test]
fn a_throw_costs_the_change_of_its_handler_only() {
    let plain = everything();
    run(&plain).ok();
    let of = |world: &World| -> Vec<Value> {
        let requests = world.mock.all_requests();
        let mut bodies: Vec<Value> = requests.into_iter().map(|request| request.body).collect();
        // A title is requested in parallel with the turn.
        bodies.sort_by_key(|body| body["tools"].is_null());
        bodies
    };
    let shape = |bodies: &[Value]| -> Vec<usize> {
        bodies
            .iter()
            .map(|body| body["messages"].as_array().unwrap().len())
            .collect()
    };
    let expected = of(&plain);
    let mut seen = String::new();
    for (hook, change) in COSTS_NOTHING {
        let world = everything();
        world.plugin("p", &thrower(hook, change));
        let done = run(&world).ok();
        assert_eq!(
            done.stdout.lines().last(),
            Some("All done."),
            "{hook}: {}",
            done.stderr
        );
        assert_eq!(world.read("ran.txt"), "ran=\n", "{hook}");
        let bodies = of(&world);
        assert_eq!(shape(&bodies), shape(&expected), "{hook}");
        let sent = json!(bodies).to_string();
        assert!(!sent.contains("MARK"), "{hook}: {sent}");
        assert!(!world.export().to_string().contains("MARK"), "{hook}");
        let witness = world.lines("witness.txt");
        assert!(
            !witness.is_empty() && witness.iter().all(|line| line == "false"),
            "{hook}: {witness:?}"
        );
        world.verify();
        let about = |line: &&str| line.contains("on purpose") || line.contains("undefined");
        let mut lines: Vec<String> = done
            .stderr
            .lines()
            .filter(about)
            .map(any_event)
            .map(|line| without_session(&line))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        seen += &format!("# {hook}\n{}\n", world.plain(&lines.join("\n")));
    }
    insta::assert_snapshot!(seen, @r"
    # config
     WARN plugin p: error at config: on purpose
     WARN plugin p: error at config: undefined
    # event
     WARN plugin p: event hook failed: on purpose
     WARN plugin p: event hook failed: undefined
    # chat.message
     WARN plugin p: error at chat.message in session ID: on purpose
     WARN plugin p: error at chat.message in session ID: undefined
    # chat.params
     WARN plugin p: error at chat.params in session ID: on purpose
     WARN plugin p: error at chat.params in session ID: undefined
    # chat.headers
     WARN plugin p: error at chat.headers in session ID: on purpose
     WARN plugin p: error at chat.headers in session ID: undefined
    # permission.ask
     WARN plugin p: error at permission.ask in session ID: on purpose
     WARN plugin p: error at permission.ask in session ID: undefined
    # command.execute.before
     WARN plugin p: error at command.execute.before in session ID: on purpose
     WARN plugin p: error at command.execute.before in session ID: undefined
    # experimental.chat.messages.transform
     WARN plugin p: error at experimental.chat.messages.transform in session ID: on purpose
     WARN plugin p: error at experimental.chat.messages.transform in session ID: undefined
    # experimental.chat.system.transform
     WARN plugin p: error at experimental.chat.system.transform in session ID: on purpose
     WARN plugin p: error at experimental.chat.system.transform in session ID: undefined
    # experimental.provider.small_model
     WARN plugin p: error at experimental.provider.small_model in session ID: on purpose
     WARN plugin p: error at experimental.provider.small_model in session ID: undefined
    # experimental.session.compacting
     WARN plugin p: error at experimental.session.compacting in session ID: on purpose
     WARN plugin p: error at experimental.session.compacting in session ID: undefined
    # experimental.compaction.autocontinue
     WARN plugin p: error at experimental.compaction.autocontinue in session ID: on purpose
     WARN plugin p: error at experimental.compaction.autocontinue in session ID: undefined
    # experimental.text.complete
     WARN plugin p: error at experimental.text.complete in session ID: on purpose
     WARN plugin p: error at experimental.text.complete in session ID: undefined
    # tool.definition
     WARN plugin p: error at tool.definition in session ID: on purpose
     WARN plugin p: error at tool.definition in session ID: undefined
    # dispose
     WARN plugin p: dispose hook failed: on purpose
     WARN plugin p: dispose hook failed: undefined
    ");
}

/// At these three hooks a throw is the tool's error, which the model reads: the documented way to refuse a call.
#[test]
fn a_throw_around_a_tool_is_its_error() {
    let mut seen = String::new();
    for hook in ["tool.execute.before", "shell.env", "tool.execute.after"] {
        for (name, way) in WAYS {
            let world = everything();
            let way = way.replace("CHANGE", "");
            world.plugin(
                "p",
                &format!("export const {name} = async () => ({{ '{hook}': {way} }})"),
            );
            let done = run(&world).ok();
            assert_eq!(
                done.stdout.lines().last(),
                Some("All done."),
                "{hook} {name}"
            );
            let parts = world.parts("tool");
            let state = &parts[0]["state"];
            seen += &format!(
                "{hook} {name}: ran {}, {} {}\n",
                world.path("ran.txt").exists(),
                state["status"],
                state["error"]
            );
            world.verify();
        }
    }
    insta::assert_snapshot!(seen, @r#"
    tool.execute.before Sync: ran false, "error" "on purpose"
    tool.execute.before Async: ran false, "error" "on purpose"
    tool.execute.before Text: ran false, "error" "on purpose"
    tool.execute.before Nothing: ran false, "error" "undefined"
    shell.env Sync: ran false, "error" "on purpose"
    shell.env Async: ran false, "error" "on purpose"
    shell.env Text: ran false, "error" "on purpose"
    shell.env Nothing: ran false, "error" "undefined"
    tool.execute.after Sync: ran true, "error" "on purpose"
    tool.execute.after Async: ran true, "error" "on purpose"
    tool.execute.after Text: ran true, "error" "on purpose"
    tool.execute.after Nothing: ran true, "error" "undefined"
    "#);
}

#[test]
fn a_throw_in_a_tool_of_a_plugin_is_its_error() {
    let mut seen = String::new();
    for (name, way) in WAYS {
        let world = World::new([turn([call("mine", json!({}))]), done()]);
        let way = way.replace("CHANGE", "");
        world.plugin("p", &format!("export const P = async () => ({{ tool: {{ mine: {{ description: 'd', args: {{}}, execute: {way} }} }} }})"));
        assert_eq!(world.run(&["go"]).ok().stdout, "All done.\n", "{name}");
        seen += &format!("{name}: {}\n", world.mock.last().texts("tool").concat());
    }
    insta::assert_snapshot!(seen, @r"
    Sync: on purpose
    Async: on purpose
    Text: on purpose
    Nothing: undefined
    ");
}

/// B4: a failed turn is published as `session.error`, with its cause; a handler that throws at it affects no other (C15).
#[test]
fn a_failed_turn_is_a_session_error_for_every_event_hook() {
    let world = World::new([json!({ "status": 400, "error": "no such thing" })]);
    let throws = "export const T = async () => ({ event: async ({ event }) => {
         if (event.type === 'session.error') throw new Error('on purpose') } })";
    let hears = "import fs from 'node:fs'
         export const H = async ({ directory }) => ({ event: async ({ event }) => {
           if (event.type === 'session.error') fs.appendFileSync(directory + '/heard', JSON.stringify(event.properties) + '\\n') } })";
    world.plugin("a-throws", throws);
    world.plugin("b-hears", hears);
    world.run(&["hi"]).exited(1);
    let heard = world.lines("heard");
    assert_eq!(heard.len(), 1, "{heard:?}");
    let heard: Value = serde_json::from_str(&heard[0]).unwrap();
    assert!(
        heard["sessionID"].as_str().unwrap().starts_with("ses_"),
        "{heard}"
    );
    let message = heard["error"]["data"]["message"].as_str().unwrap();
    assert!(message.contains("no such thing"), "{heard}");
    let errored = world
        .cli(&["audit", "list", "--hook", "session.on_event", "--json"])
        .ok()
        .lines();
    let of = |it: &&Value| it["pluginId"] == "a-throws" && it["errored"] == true;
    assert_eq!(errored.iter().filter(of).count(), 1, "{errored:?}");
    world.verify();
}
