//! What a prompt has the host read or start: resources and prompts of MCP servers, skills with servers, files. A plugin gets by a
//! prompt of its own what it may do itself, and a rule holds for every sender.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp::RICH;
use crate::support::*;
use crate::user_grants::granting;

/// What the server `notes`, the file and the skill have to tell.
const NOTE: &str = "text of note://a";
const GREETING: &str = "Say hello to";
const SECRET: &str = "secret of the file";

/// Sets up a world with the server `notes`, a file that the rules deny but for the agent `ops`, and the skill `count` of the
/// user's, whose server writes a file when it starts.
fn world(turns: impl IntoIterator<Item = Value>, permission: Value) -> World {
    let world = World::new(turns);
    let notes = json!({ "type": "local", "command": ["node", RICH], "timeout": 20_000 });
    let ops = json!({ "mode": "primary", "permission": { "read": { "secret/*": "allow" }, "*": "allow" } });
    world.config(
        json!({ "mcp": { "notes": notes }, "permission": permission, "agent": { "ops": ops } }),
    );
    world.file("secret/k.txt", SECRET);
    world.file(
        ".opencode/command/tell.md",
        "---\nagent: ops\n---\nSee @secret/k.txt",
    );
    let dir = world.home().join(".claude/skills/count");
    std::fs::create_dir_all(&dir).unwrap();
    let started = world.path("started.txt");
    let server = json!({ "c": { "command": "sh", "args": ["-c", format!("echo on > {}", started.display())] } });
    let skill = format!("---\nname: count\ndescription: d\nmcp: {server}\n---\nCount with it.\n");
    std::fs::write(dir.join("SKILL.md"), skill).unwrap();
    world
}

/// Rules that deny the file.
fn rules() -> Value {
    json!({ "read": { "*": "allow", "secret/*": "deny" } })
}

fn note() -> Value {
    json!({ "type": "file", "mime": "text/plain", "filename": "note", "url": "note://a", "source": {
        "type": "resource", "clientName": "notes", "uri": "note://a", "text": { "value": "", "start": 0, "end": 0 } } })
}

fn file(world: &World) -> Value {
    let url = format!("file://{}", world.path("secret/k.txt").display());
    json!({ "type": "file", "mime": "text/plain", "filename": "k", "url": url })
}

/// Returns a plugin that sends this to a session of its own at the user's prompt, and keeps what it gets to see there.
fn sends(world: &World, route: &str, body: &Value) -> std::path::PathBuf {
    world.plugin(
        "sends",
        &format!(
            "import fs from 'node:fs'
export const P = async ({{ serverUrl, directory }}) => ({{ 'chat.message': async () => {{
  if (globalThis.asked) return
  globalThis.asked = true
  const ask = async (method, path, body) => (await fetch(new URL(path, serverUrl), {{ method, headers: {{ 'content-type': 'application/json' }}, body: body && JSON.stringify(body) }})).text()
  const id = JSON.parse(await ask('POST', '/session', {{}})).id
  const sent = await ask('POST', `/session/${{id}}/{route}`, {body})
  fs.writeFileSync(directory + '/answers.txt', sent + await ask('GET', `/session/${{id}}/message`))
}} }})\n"
        ),
    )
}

fn may_prompt(world: &World, plugin: &Path) {
    granting(world, &format!("[plugins.{plugin:?}]\nprompt = true\n"));
}

/// Returns the subjects of the permission records with this decision.
fn decided(world: &World, decision: &str) -> Vec<String> {
    let list = [
        "audit",
        "list",
        "--json",
        "-n",
        "1000",
        "--kind",
        "permission",
    ];
    world
        .cli(&list)
        .ok()
        .lines()
        .iter()
        .filter(|it| it["decision"] == decision)
        .filter_map(|it| it["subject"].as_str().map(str::to_owned))
        .collect()
}

/// What a plugin sends, and what it must not get to see of it.
type Sent = fn(&World) -> (&'static str, Value);

const SENT: [(&str, &str, Sent, &str); 6] = [
    (
        "a resource",
        "read: mcp:notes:note://a",
        |_| ("message", json!({ "noReply": true, "parts": [note()] })),
        NOTE,
    ),
    (
        "a resource beside a command",
        "read: mcp:notes:note://a",
        |_| {
            (
                "command",
                json!({ "command": "init", "arguments": "", "parts": [note()] }),
            )
        },
        NOTE,
    ),
    (
        "a server's prompt",
        "notes_greet_me: *",
        |_| {
            (
                "command",
                json!({ "command": "notes:greet_me", "arguments": "you" }),
            )
        },
        GREETING,
    ),
    (
        "a file by another agent",
        "read: secret/k.txt",
        |world| {
            (
                "message",
                json!({ "noReply": true, "agent": "ops", "parts": [file(world)] }),
            )
        },
        SECRET,
    ),
    (
        "a file that a command of that agent names",
        "read: secret/k.txt",
        |_| ("command", json!({ "command": "tell", "arguments": "" })),
        SECRET,
    ),
    (
        "a skill with servers",
        "skill: count",
        |_| ("command", json!({ "command": "count", "arguments": "" })),
        "<skill_mcp_servers>",
    ),
];

/// Nobody is there to be asked, so it is refused, and written down.
#[test]
fn a_plugins_prompt_has_nothing_read_or_started_unasked() {
    for (case, subject, sent, secret) in SENT {
        for granted in [false, true] {
            let world = world([done(), done(), done()], rules());
            let (route, body) = sent(&world);
            let plugin = sends(&world, route, &body);
            if granted {
                may_prompt(&world, &plugin);
            }
            world.run(&["hello"]).ok();
            let answers = world.read("answers.txt");
            assert!(!answers.is_empty(), "{case}");
            let is_seen = answers.contains(secret);
            assert_eq!(is_seen, granted, "{case}, granted {granted}: {answers}");
            let decision = if granted { "allow" } else { "deny" };
            // What a rule allows may be in a count of records.
            let written = decided(&world, decision);
            assert!(
                granted || written.iter().any(|it| it == subject),
                "{case}: {written:?}"
            );
            let has_started = world.path("started.txt").exists();
            assert_eq!(
                has_started,
                granted && case.contains("skill"),
                "{case}: {answers}"
            );
            if !granted {
                assert!(answers.contains("prompt = true"), "{case}: {answers}");
            }
        }
    }
}

/// A rule that denies holds for plugins with the grant as well as for a person.
#[test]
fn a_rule_holds_for_what_a_prompt_names() {
    let denied =
        json!({ "read": { "*": "allow", "mcp:*": "deny" }, "notes_*": "deny", "skill": "deny" });
    for (case, _, sent, secret) in SENT {
        if case.contains("file") {
            continue;
        }
        let one = world([done(), done(), done()], denied.clone());
        let (route, body) = sent(&one);
        let plugin = sends(&one, route, &body);
        may_prompt(&one, &plugin);
        one.run(&["hello"]).ok();
        let answers = one.read("answers.txt");
        assert!(
            !answers.contains(secret) && answers.contains("denies"),
            "{case}: {answers}"
        );

        for (rules, is_seen) in [(denied.clone(), false), (json!({}), true)] {
            let world = world([done(), done()], rules);
            let server = world.serve(&["--no-auth"]);
            let id = server.post("/session", &json!({})).json(200)["id"].clone();
            let path = format!("/session/{}/{route}", id.as_str().unwrap());
            let answer = server.post(&path, &body).text();
            let messages = server.get(&format!("/session/{}/message", id.as_str().unwrap()));
            let answers = answer + &messages.text();
            assert_eq!(answers.contains(secret), is_seen, "{case}: {answers}");
            if !is_seen {
                assert!(answers.contains("denies"), "{case}: {answers}");
                assert!(!world.path("started.txt").exists(), "{case}");
            }
        }
    }
}

/// The model that a plugin's prompt asks does not read for it, either, what the rules keep from the plugin.
#[test]
fn an_agent_that_a_plugin_names_reads_nothing_for_it_that_rules_keep_from_plugins() {
    for (tool, arguments, mark) in [
        ("read", json!({ "filePath": "secret/k.txt" }), SECRET),
        ("grep", json!({ "pattern": "secret of" }), SECRET),
        ("glob", json!({ "pattern": "secret/*" }), "k.txt"),
        ("skill", json!({ "name": "count" }), "Count with it."),
    ] {
        for granted in [false, true] {
            let calls = turn([call(tool, arguments.clone())]);
            let world = world([calls, done(), done(), done()], rules());
            let body = json!({ "agent": "ops", "parts": [{ "type": "text", "text": "tell me" }] });
            let plugin = sends(&world, "message", &body);
            if granted {
                may_prompt(&world, &plugin);
            }
            world.run(&["hello"]).ok();
            let answers = world.read("answers.txt");
            let is_seen = answers.contains(mark);
            assert_eq!(is_seen, granted, "{tool}, granted {granted}: {answers}");
            assert_eq!(
                world.path("started.txt").exists(),
                granted && tool == "skill",
                "{tool}"
            );
        }
    }
}

/// Whatever the link leads to at whichever moment, one file is decided about and read.
#[test]
fn a_link_that_a_plugin_exchanges_shows_it_nothing_that_rules_keep_from_it() {
    let world = world([done(), done()], rules());
    world.file("a.txt", "open to plugins");
    let (link, next) = (world.path("link.txt"), world.path("next.txt"));
    std::os::unix::fs::symlink("a.txt", &link).unwrap();
    let url = format!("file://{}", link.display());
    let part = json!({ "type": "file", "mime": "text/plain", "filename": "link.txt", "url": url });
    let body = json!({ "noReply": true, "agent": "ops", "parts": vec![part; 200] });
    sends(&world, "message", &body);
    let is_over = AtomicBool::new(false);
    let swaps = std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            let mut swaps = 0;
            while !is_over.load(Ordering::SeqCst) {
                for target in ["secret/k.txt", "a.txt"] {
                    std::os::unix::fs::symlink(target, &next).unwrap();
                    std::fs::rename(&next, &link).unwrap();
                    swaps += 1;
                    std::thread::sleep(Duration::from_micros(50 * (swaps % 7)));
                }
            }
            swaps
        });
        let run = world.run(&["hello"]);
        is_over.store(true, Ordering::SeqCst);
        run.ok();
        swapping.join().unwrap()
    });
    assert!(swaps > 50, "it was exchanged {swaps} times");
    let answers = world.read("answers.txt");
    assert!(!answers.contains(SECRET), "{answers}");
    assert!(answers.contains("open to plugins"), "{answers}");
}

/// A list of resources or prompts is a request to the user's server as well: a plugin causes none, and a client has its list.
#[test]
fn a_plugin_has_no_server_of_the_user_list_anything() {
    let world = world([done()], json!({}));
    world.plugin(
        "lists",
        "import fs from 'node:fs'
export const P = async ({ serverUrl, directory }) => ({ 'chat.message': async () => {
  const got = async (path) => (await fetch(new URL(path, serverUrl))).text()
  fs.writeFileSync(directory + '/answers.txt', await got('/experimental/resource') + await got('/command'))
} })\n",
    );
    world.run(&["hi"]).ok();
    let listed = world.read("answers.txt");
    assert!(listed.starts_with("{}["), "{listed}");
    assert!(listed.contains("\"tell\""), "{listed}");
    assert!(!listed.contains("notes:"), "{listed}");
    let server = world.serve(&["--no-auth"]);
    let lists = || {
        ["/experimental/resource", "/command"]
            .map(|path| server.get(path).json(200))
            .map(|it| it.to_string())
    };
    let is_listed = || lists().iter().all(|it| it.contains("notes:"));
    assert!(wait_until(WAIT_TIMEOUT, is_listed), "{:?}", lists());
}
