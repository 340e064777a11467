//! The other published plugins of the compatibility promise, unmodified from npm: each loads and does its main task in
//! a turn, with access to loopback only. The services and programs that they need are stand-ins.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::npm::{installed, reaching_npm, registry, without_npm, world as world_with};
use crate::npm_auth::{Services, got};
use crate::omo_server::{say, session, until_asked};
use crate::support::*;

const SLIM: &str = "oh-my-opencode-slim@2.2.24";
const DCP: &str = "@tarquinen/opencode-dcp@3.1.14";
const PTY: &str = "opencode-pty@0.1.3";
const ORCHESTRATOR: &str = "opencode-orchestrator@1.7.22";
const LMSTUDIO: &str = "opencode-lmstudio@0.3.0";
const BEADS: &str = "opencode-beads@0.3.2";
const WAKATIME: &str = "opencode-wakatime@1.3.9";
const CONTEXT_MODE: &str = "context-mode@1.0.169";
const SWARM: &str = "opencode-swarm@5.1.0";
const SUPERMEMORY: &str = "opencode-supermemory@2.0.10";
const ANTIGRAVITY: &str = "opencode-antigravity-auth@1.6.0";
const BACKGROUND: &str = "@zenobius/opencode-background@0.1.0-alpha.2";

/// Sets up a project with the plugin, and a model with these turns. Returns `None` if the package is not available.
fn world(plugin: &str, turns: impl IntoIterator<Item = Value>) -> Option<World> {
    let world = world_with(plugin, turns);
    world.config(json!({ "permission": { "*": "allow" } }));
    installed(&world, |_| ())?;
    Some(world)
}

/// Returns the binary with access to loopback only, because plugins look for newer versions of themselves.
fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(args);
    without_npm(&mut command);
    for name in ["HTTPS_PROXY", "https_proxy"] {
        command.env(name, "http://127.0.0.1:9");
    }
    command
}

#[track_caller]
fn run(world: &World, args: &[&str]) -> Done {
    world
        .start(command(world, &[&["run"], args].concat()))
        .end()
        .ok()
}

fn serve(world: &World) -> Server {
    world.serve_with(command(
        world,
        &["serve", "--port", &free_port(), "--no-auth"],
    ))
}

/// Puts a stand-in for a program, a shell script, into the project's `bin`, and that folder at the front of `PATH`.
fn with_program(world: &World, mut command: Command, name: &str, script: &str) -> Command {
    let path = world.file(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let rest = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{rest}", world.path("bin").display()));
    command
}

/// Returns the results that the model received last.
fn results(world: &World) -> Vec<String> {
    world.mock.last().texts("tool")
}

/// Asserts that a text contains all of these.
#[track_caller]
fn has(text: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(text.contains(wanted), "no {wanted:?} in:\n{text}");
    }
}

#[test]
fn slim_leads_the_turn_delegates_to_its_agents_and_searches_syntax_trees() {
    let look = call(
        "task",
        json!({ "description": "Look", "prompt": "Look for zebras", "subagent_type": "explorer" }),
    );
    let search = call(
        "ast_grep_search",
        json!({ "pattern": "greet($NAME)", "lang": "javascript", "paths": ["."] }),
    );
    let Some(world) = world(SLIM, [turn([look]), turn([search]), done()]) else {
        return;
    };
    world
        .mock
        .when("Look for zebras", text("Two zebras graze in b.js."));
    world.file(
        ".opencode/oh-my-opencode-slim.json",
        r#"{ "disabled_mcps": ["context7", "gh_grep", "websearch"], "autoUpdate": false }"#,
    );
    world.file("a.js", "greet('Ada');\nleave('Ada');\n");
    let run = run(&world, &["who is greeted"]);
    has(&run.stderr, &["> orchestrator"]);
    let system = world.mock.last().texts("system").join("\n");
    has(&system, &["You are a workflow manager for coding work."]);
    let results = results(&world);
    has(&results[0], &["Two zebras graze in b.js."]);
    has(
        &results[1],
        &["a.js:\n  1: greet('Ada')", "Found 1 matches in 1 files"],
    );
}

#[test]
fn dcp_numbers_the_messages_and_replaces_what_is_compressed() {
    let compress = call(
        "compress",
        json!({ "topic": "Old boats", "content": [{ "startId": "m0001", "endId": "m0002", "summary": "Boats were named." }] }),
    );
    let turns = [text("They are Ark and Beagle."), turn([compress]), done()];
    let Some(world) = world(DCP, turns) else {
        return;
    };
    run(&world, &["Name the old boats"]);
    run(&world, &["-c", "Now forget them"]);
    let requests = world.mock.requests();
    let said = |n: usize, role: &str| requests[n].texts(role).join("\n");
    has(&said(1, "system"), &["`compress`"]);
    has(
        &said(1, "user"),
        &["<dcp-message-id>m0001<", "<dcp-message-id>m0003<"],
    );
    has(
        &said(1, "assistant"),
        &["Ark and Beagle", "<dcp-message-id>m0002<"],
    );
    has(&said(2, "tool"), &["Compressed 2 messages into"]);
    let left = said(2, "user") + &said(2, "assistant");
    has(
        &left,
        &[
            "[Compressed conversation section]\nBoats were named.",
            "Now forget them",
        ],
    );
    assert!(
        !left.contains("Beagle") && !left.contains("old boats"),
        "{left}"
    );
}

#[test]
fn pty_keeps_a_terminal_between_turns_and_tells_when_its_program_ends() {
    let spawn = json!({ "command": "cat", "title": "Echo", "description": "Repeats lines", "notifyOnExit": true });
    let Some(world) = world(PTY, [turn([call("pty_spawn", spawn)]), done()]) else {
        return;
    };
    let server = serve(&world);
    let id = session(&server);
    let ask = |said: &str| {
        say(&server, &id, said);
        results(&world).pop().unwrap()
    };
    let answer = ask("start it");
    let pty = answer
        .lines()
        .find_map(|line| line.strip_prefix("ID: "))
        .unwrap_or_else(|| panic!("{answer}"));
    for (said, name, args) in [
        (
            "write it",
            "pty_write",
            json!({ "id": pty, "data": "ahoy\n" }),
        ),
        ("read it", "pty_read", json!({ "id": pty })),
        ("list it", "pty_list", json!({})),
        ("end it", "pty_write", json!({ "id": pty, "data": "\u{4}" })),
    ] {
        world.mock.when(said, turn([call(name, args)]));
    }
    has(&ask("write it"), &["Sent 5 bytes"]);
    // The typed line, and the output of `cat`.
    let echoed = || ask("read it").matches("| ahoy").count() == 2;
    assert!(wait_until(WAIT_TIMEOUT, echoed), "{:?}", results(&world));
    has(&ask("list it"), &[pty, "Echo", "Status: running"]);
    ask("end it");
    until_asked(&world, "<pty_exited>");
}

#[test]
fn orchestrator_lists_its_agents_runs_in_the_background_and_delegates() {
    let delegate = json!({ "agent": "Worker", "description": "Look", "prompt": "Look for zebras", "background": false });
    let turns = [
        turn([call("list_agents", json!({}))]),
        turn([call(
            "run_background",
            json!({ "command": "echo ahoy", "description": "Greets" }),
        )]),
        turn([call("list_background", json!({}))]),
        turn([call("delegate_task", delegate)]),
        done(),
    ];
    let Some(world) = world(ORCHESTRATOR, turns) else {
        return;
    };
    world
        .mock
        .when("Look for zebras", text("Two zebras graze in b.js."));
    let run = run(&world, &["--agent", "Commander", "who is there"]);
    has(&run.stderr, &["> Commander"]);
    let results = results(&world);
    has(
        &results[0],
        &["**Commander**", "**Planner**", "**Worker**", "**Reviewer**"],
    );
    has(&results[1], &["Background Task Started", "`echo ahoy`"]);
    has(&results[2], &["Background Tasks (1)", "echo ahoy"]);
    has(&results[3], &["Two zebras graze in b.js."]);
}

#[test]
fn lmstudio_finds_the_models_of_a_server_and_they_can_be_used() {
    let Some(world) = world(LMSTUDIO, [done()]) else {
        return;
    };
    let url = lm_studio(&world.mock.url());
    let provider = json!({ "npm": "@ai-sdk/openai-compatible", "name": "LM Studio (local)", "options": { "baseURL": url } });
    world.config(json!({ "provider": { "lmstudio": provider } }));
    let model = ["-m", "lmstudio/qwen_qwen3-4b"];
    let log = ["--print-logs", "--log-level", "INFO", "hello"];
    let run = run(&world, &[&model[..], &log].concat());
    has(&run.stderr, &["Loaded 2 models"]);
    has(&run.stdout, &["All done."]);
    assert_eq!(world.mock.last().body["model"], "qwen/qwen3-4b");
}

/// Starts a stand-in for LM Studio: it has the list of models and passes other requests to the scripted model.
fn lm_studio(mock: &str) -> String {
    let mock = mock.trim_start_matches("http://").trim_end_matches("/v1");
    let mock = mock.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mock = mock.clone();
            std::thread::spawn(move || drop(lm_studio_answers(stream, &mock)));
        }
    });
    format!("http://127.0.0.1:{port}/v1")
}

fn lm_studio_answers(mut client: TcpStream, mock: &str) -> std::io::Result<()> {
    // Nothing after the line may be read, since it is for the one who answers.
    let mut line = String::new();
    BufReader::with_capacity(1, client.try_clone()?).read_line(&mut line)?;
    if line.starts_with("GET /v1/models ") {
        let models =
            json!({ "data": [{ "id": "qwen/qwen3-4b" }, { "id": "text-embedding-nomic" }] })
                .to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        let length = models.len();
        client
            .write_all(format!("{head}\r\ncontent-length: {length}\r\n\r\n{models}").as_bytes())?;
        client.shutdown(Shutdown::Write)?;
        return client.read_to_end(&mut Vec::new()).map(drop);
    }
    let mut model = TcpStream::connect(mock)?;
    model.write_all(line.as_bytes())?;
    let (mut from, mut to) = (client.try_clone()?, model.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    std::io::copy(&mut model, &mut client)?;
    client.shutdown(Shutdown::Both)
}

#[test]
fn beads_brings_what_bd_says_once_per_session_and_its_commands() {
    let Some(world) = world(BEADS, [done()]) else {
        return;
    };
    let bd = "echo \"$@\" >> calls.txt; echo 'Two issues are ready.'";
    let run = |args: &[&str]| {
        let command = command(&world, &[&["run"], args].concat());
        world
            .start(with_program(&world, command, "bd", bd))
            .end()
            .ok()
    };
    run(&["hello"]);
    let said = world.mock.last().texts("user").join("\n");
    has(
        &said,
        &[
            "hello",
            "<beads-context>\nTwo issues are ready.\n</beads-context>",
            "`bd ready --json`",
        ],
    );
    let tools = world.mock.last().body["tools"].to_string();
    has(&tools, &["beads-task-agent"]);

    run(&["-c", "--command", "bd-ready"]);
    let said = world.mock.last().texts("user").pop().unwrap();
    has(&said, &["find tasks that are ready to work on"]);
    assert_eq!(world.lines("calls.txt"), ["prime"]);
}

#[test]
fn wakatime_tells_its_program_what_was_read_written_and_edited() {
    let write = call(
        "write",
        json!({ "filePath": "new.txt", "content": "a\nb\n" }),
    );
    let edit =
        json!({ "filePath": "hello.txt", "oldString": "hi there", "newString": "ho\nthere" });
    let turns = [
        turn([call("read", json!({ "filePath": "hello.txt" }))]),
        turn([write]),
        turn([call("edit", edit)]),
        done(),
    ];
    let Some(world) = world(WAKATIME, turns) else {
        return;
    };
    let calls = world.path("calls.txt");
    let cli = format!("{{ echo \"$@\"; cat; }} >> {}", calls.display());
    let server = command(&world, &["serve", "--port", &free_port(), "--no-auth"]);
    let server = world.serve_with(with_program(&world, server, "wakatime-cli", &cli));
    say(&server, &session(&server), "hello");
    // The first file at once, the others when the session is idle.
    let called = || {
        let calls = world.read("calls.txt");
        calls.contains("new.txt") && calls.matches("hello.txt").count() >= 2
    };
    assert!(
        wait_until(WAIT_TIMEOUT, called),
        "{}",
        world.read("calls.txt")
    );
    let calls = world.read("calls.txt");
    has(
        &calls,
        &[
            "--entity-type file --category ai coding",
            // The program's version, which the plugin asks for while it loads.
            concat!("opencode-cli/", env!("CARGO_PKG_VERSION")),
            "opencode-wakatime/1.3.9",
            "--write",
            "\"ai_line_changes\":1",
        ],
    );
}

#[test]
fn context_mode_indexes_and_finds_and_runs_programs_outside_of_the_sandbox() {
    let code = json!({ "language": "shell", "code": "echo $((6 * 7))" });
    let manual = "# Mooring\n\nTie the zebra line first.\n\n# Sailing\n\nHoist the sail.\n";
    let turns = [
        turn([call(
            "ctx_index",
            json!({ "content": manual, "source": "manual" }),
        )]),
        turn([call("ctx_search", json!({ "queries": ["zebra line"] }))]),
        text("Found."),
        turn([call("ctx_execute", code)]),
        done(),
    ];
    let Some(world) = world(CONTEXT_MODE, turns) else {
        return;
    };
    run(&world, &["hello"]);
    let found = results(&world);
    has(&found[0], &["Indexed 2 sections"]);
    has(&found[1], &["Tie the zebra line first."]);
    assert!(!found[1].contains("Hoist"), "{}", found[1]);

    // It ignores `TMPDIR` and uses a folder that the sandbox does not have; see docs/compatibility.md.
    let mut unconfined = command(&world, &["run", "compute"]);
    unconfined.env("OUTRIGGER_SANDBOX", "off");
    world.start(unconfined).end().ok();
    let computed = results(&world).pop().unwrap();
    assert!(computed.trim_end().ends_with("\n42"), "{computed}");
}

#[test]
fn swarm_detects_domains_saves_code_and_answers_its_command() {
    let domains = json!({ "text": "a python script for oracle" });
    let code = json!({ "content": "```python\ndef ahoy():\n    pass\n```\n", "output_dir": "out" });
    let turns = [
        turn([call("detect_domains", domains)]),
        turn([call("extract_code_blocks", code)]),
        done(),
    ];
    let Some(world) = world(SWARM, turns) else {
        return;
    };
    run(&world, &["--agent", "architect", "-m", "mock/m1", "hello"]);
    let system = world.mock.last().texts("system").join("\n");
    has(&system, &["test_engineer - Test generation AND execution"]);
    let results = results(&world);
    has(&results[0], &["Detected domains: python, oracle"]);
    has(&results[1], &["Extracted 1 file(s)", "out/ahoy.py"]);
    assert_eq!(world.read("out/ahoy.py"), "def ahoy():\n    pass");

    // Its `command.execute.before` replaces the template with the answer.
    run(&world, &["--command", "swarm", "agents"]);
    let said = world.mock.last().texts("user").join("\n");
    has(
        &said,
        &[
            "## Registered Agents (7 total)",
            "**architect**",
            "**critic**",
        ],
    );
}

#[test]
fn supermemory_brings_the_profile_and_keeps_what_is_to_be_remembered() {
    let add = json!({ "mode": "add", "content": "The mast is oak.", "scope": "project" });
    let search = json!({ "mode": "search", "query": "keel", "scope": "project" });
    let turns = [
        turn([call("supermemory", add)]),
        turn([call("supermemory", search)]),
        done(),
    ];
    let Some(world) = world(SUPERMEMORY, turns) else {
        return;
    };
    let Some(services) = Services::start(&world) else {
        return;
    };
    // Only a package of the user's own list gets its settings with the key.
    let of_user = world.home().join(".config/opencode");
    fs::create_dir_all(&of_user).unwrap();
    fs::write(
        of_user.join("supermemory.json"),
        r#"{ "apiKey": "sm-key-1" }"#,
    )
    .unwrap();
    let list = json!({ "plugin": [SUPERMEMORY] }).to_string();
    fs::write(of_user.join("opencode.json"), list).unwrap();
    world.config(json!({ "plugin": [] }));
    services.run(&world, &["run", "remember the mast"], "").ok();
    let said = world.mock.requests()[0].texts("user").join("\n");
    has(
        &said,
        &["[SUPERMEMORY]", "Ties bowlines.", "remember the mast"],
    );
    let results = results(&world);
    has(&results[0], &["\"success\":true", "doc-1"]);
    has(&results[1], &["The keel is red."]);
    let kept = got(&world, "api.supermemory.ai/v3/documents");
    let kept = kept
        .iter()
        .find(|r| r["body"]["content"].is_string())
        .unwrap();
    assert_eq!(kept["body"]["content"], "The mast is oak.", "{kept}");
    assert_eq!(kept["headers"]["authorization"], "Bearer sm-key-1");
}

#[test]
fn antigravity_auth_logs_in_speaks_to_its_service_and_searches_with_it() {
    let Some(world) = world(ANTIGRAVITY, []) else {
        return;
    };
    let Some(services) = Services::start(&world) else {
        return;
    };
    world.config(json!({ "model": "google/antigravity-gemini-3-pro", "small_model": "google/antigravity-gemini-3-flash",
        "provider": { "google": { "models": { "antigravity-gemini-3-pro": {}, "antigravity-gemini-3-flash": {} } } } }));
    let method = "OAuth with Google (Antigravity)";
    let login = ["auth", "login", "-p", "google", "-m", method];
    let login = services.run(&world, &login, "the-code\n").ok();
    has(
        &login.stderr,
        &["go to: https://accounts.google.com/o/oauth2/v2/auth?"],
    );
    assert_eq!(got(&world, "oauth2.googleapis.com/token").len(), 1);

    let command = services.command(&world, &["serve", "--port", &free_port(), "--no-auth"]);
    let server = world.serve_with(command);
    // With `inputs` it would ask questions on a terminal; a client that sends none must enter the code.
    let begun = server.post("/provider/google/oauth/authorize", &json!({ "method": 0 }));
    assert_eq!(begun.json(200)["method"], "code");
    let said = say(&server, &session(&server), "search the web for harbours");
    has(&said.to_string(), &["Gemini says hello."]);
    let tool = world.parts("tool").remove(0);
    has(
        &tool["state"]["output"].to_string(),
        &["Genoa has a harbour."],
    );
}

/// It requires a version of the SDK that npm no longer has, so it cannot be installed. OpenCode reports the same
/// (docs/compatibility.md).
#[test]
fn the_background_plugin_cannot_be_installed_and_the_list_says_why() {
    let world = world_with(BACKGROUND, []);
    let mut list = world.command(&["plugin", "list", "--json"]);
    reaching_npm(&mut list);
    let listed = world.start(list).end().ok().json()[0].clone();
    if let Err(why) = registry(&world) {
        return skip_npm(&format!("npm cannot be asked for {BACKGROUND}: {why}"));
    }
    assert_eq!(listed["stage"], "failed", "{listed}");
    // npm and Bun word it differently.
    assert_eq!(listed["cause"]["code"], "plugin.install", "{listed}");
    has(
        &listed["cause"]["message"].to_string(),
        &[BACKGROUND, "1.0.85", "@opencode-ai/plugin"],
    );
}
