//! Functions of `oh-my-opencode` beyond those that requirement B7 names: each of its commands and agents once, tools that models
//! call rarely, and hooks for single calls. Each test uses one server for all its cases, since the plugin takes seconds to start.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::omo::{MAY_REWRITE, omo};
use crate::omo_lists::{AGENTS, COMMANDS};
use crate::omo_server::{command, serve, session};
use crate::support::*;
use crate::user_grants::granting;

const LEADER: &str = "Sisyphus - ultraworker";

/// Prompts an agent in a new session, which answers with these calls. Returns the session's messages.
fn ask(world: &World, server: &Server, agent: &str, said: &str, calls: &[Value]) -> Value {
    if !calls.is_empty() {
        world.mock.when(said, turn(calls.to_vec()));
    }
    let body = json!({
        "agent": agent, "model": { "providerID": "mock", "modelID": "m1" }, "parts": [{ "type": "text", "text": said }],
    });
    tell(server, &body)
}

fn tell(server: &Server, body: &Value) -> Value {
    let path = format!("/session/{}/message", session(server));
    server.post(&path, body).json(200);
    server.get(&path).json(200)
}

/// Returns the outcome of each tool call, in order.
fn results(messages: &Value) -> Vec<String> {
    let parts = messages
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["parts"].as_array().unwrap());
    let states = parts
        .filter(|part| part["type"] == "tool")
        .map(|part| &part["state"]);
    let said = |state: &Value| {
        state["output"]
            .as_str()
            .or(state["error"].as_str())
            .map(str::to_owned)
    };
    states.filter_map(said).collect()
}

/// Returns the longest line of a template that is the same for all arguments.
fn fixed_line(template: &str) -> &str {
    template
        .lines()
        .filter(|it| !it.contains(['$', '`', '!', '@']))
        .max_by_key(|it| it.len())
        .unwrap_or_default()
        .trim()
}

/// Its text, followed by the user's.
#[test]
fn each_of_its_commands_reaches_the_model() {
    let Some(world) = omo([text("Understood.")]) else {
        return;
    };
    let server = serve(&world);
    let listed = server.get("/command").json(200);
    for name in COMMANDS {
        let mut all = listed.as_array().unwrap().iter();
        let found = all.find(|it| it["name"] == name).unwrap();
        let line = fixed_line(found["template"].as_str().unwrap());
        assert!(line.len() > 40, "{name}: {line}");
        let argument = format!("argument-of-{name}");
        command(&server, &session(&server), name, &argument);
        let requests = world.mock.requests();
        let reached = requests.iter().any(|it| {
            let said = it.texts("user").join("\n");
            said.contains(line) && said.contains(&argument)
        });
        assert!(reached, "{name}: {line}");
    }
}

/// The user prompts leaders; the others are prompted through `task`.
#[test]
fn each_of_its_agents_answers() {
    let Some(world) = omo([text("Two whales swim.")]) else {
        return;
    };
    // One of them is for one kind of model, and requests one of OpenAI's if none is named.
    let gpt =
        json!({ "name": "G", "tool_call": true, "limit": { "context": 100_000, "output": 4000 } });
    world.config(json!({ "provider": { "mock": { "models": { "gpt-5": gpt } } } }));
    world.file("AGENTS.md", "Whales are counted at dawn.\n");
    let server = serve(&world);
    let mut seen = Vec::new();
    for (name, mode) in AGENTS {
        let said = format!("ask {name} for whales");
        if mode == "primary" {
            let model = if name.starts_with("Hephaestus") {
                "gpt-5"
            } else {
                "m1"
            };
            let model = json!({ "providerID": "mock", "modelID": model });
            let parts = json!([{ "type": "text", "text": said }]);
            let messages = tell(
                &server,
                &json!({ "agent": name, "model": model, "parts": parts }),
            );
            let answer = messages.as_array().unwrap().last().unwrap();
            let text = answer["parts"].to_string();
            seen.push((
                name,
                answer["info"]["agent"] == name && text.contains("Two whales swim."),
                text,
            ));
            continue;
        }
        let task = json!({
            "description": "whales", "prompt": "Look for whales", "subagent_type": name, "run_in_background": false,
            "load_skills": [],
        });
        let messages = ask(&world, &server, LEADER, &said, &[call("task", task)]);
        let result = results(&messages).pop().unwrap_or_default();
        let parent = messages[0]["info"]["sessionID"].as_str().unwrap();
        let children = server.get(&format!("/session/{parent}/children")).json(200);
        seen.push((
            name,
            children[0]["agent"] == name && result.contains("Two whales swim."),
            result,
        ));
    }
    let silent: Vec<&str> = seen.iter().filter(|it| !it.1).map(|it| it.0).collect();
    // Only that one gets the project's notes before the user's text.
    let noted = world.mock.requests().into_iter();
    let noted: Vec<String> = noted
        .flat_map(|request| request.texts("user"))
        .filter(|said| said.contains("[Directory Context: "))
        .collect();
    let [said] = &noted[..] else {
        panic!("{noted:#?}")
    };
    assert!(
        said.contains("/AGENTS.md]\nWhales are counted at dawn.\n\n\n---\n\nask Hephaestus"),
        "{said}"
    );
    // It keeps the program's own builder from its tasks, and sends the other one work by a category.
    assert_eq!(silent, ["Sisyphus-Junior", "build"], "{seen:#?}");
    let task = json!({
        "description": "whales", "prompt": "Look for whales", "category": "quick", "run_in_background": false, "load_skills": [],
    });
    let messages = ask(
        &world,
        &server,
        LEADER,
        "ask by a category",
        &[call("task", task)],
    );
    let found = results(&messages);
    assert!(found[0].contains("Two whales swim."), "{found:#?}");
    let parent = messages[0]["info"]["sessionID"].as_str().unwrap();
    let children = server.get(&format!("/session/{parent}/children")).json(200);
    assert_eq!(children[0]["agent"], "Sisyphus-Junior");
}

/// An image of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PDF: &str = "%PDF-1.4\n%%EOF\n";
const SAYS: &str = "export default { description: 'says', args: { says: { type: 'string' } }, execute: async (args) => args.says }\n";

#[test]
fn its_rarer_tools_and_its_guards_of_single_calls_work() {
    let Some(world) = omo([text("Noted.")]) else {
        return;
    };
    granting(&world, &format!("{MAY_REWRITE}unix_sockets = true\n"));
    let input = ["text", "image", "pdf"];
    let sees = json!({ "modalities": { "input": input, "output": ["text"] }, "attachment": true });
    let gpt =
        json!({ "name": "G", "tool_call": true, "limit": { "context": 100_000, "output": 4000 } });
    world.config(json!({ "provider": { "mock": { "models": { "m1": sees, "gpt-4o": gpt } } } }));
    let base64 = base64::engine::general_purpose::STANDARD;
    std::fs::write(world.path("one.png"), base64.decode(PNG).unwrap()).unwrap();
    world.file("one.pdf", PDF);
    world.file(".opencode/tools/says.js", SAYS);
    let server = serve(&world);

    let look = |file: &str| {
        call(
            "look_at",
            json!({ "file_path": file, "goal": "what is it" }),
        )
    };
    let write =
        |file: &str, text: &str| call("write", json!({ "filePath": file, "content": text }));
    let calls = [
        look("one.png"),
        look("one.pdf"),
        call("lsp_status", json!({})),
        call("glob", json!({ "pattern": "**/*.pdf" })),
        call("says", json!({ "says": "Error: invalid JSON in line 1" })),
        write(".omo/notepads/p/learnings.md", "x"),
        write(".omo/plans/bad.md", "# P\n\n## TODOs\n\n- [ ] T1. Paint\n"),
    ];
    let messages = ask(&world, &server, LEADER, "tools please", &calls);
    let found = results(&messages);
    let [picture, document, lsp, glob, json_error, notepad, plan] = &found[..] else {
        panic!("{found:#?}")
    };
    // The script answers a request without tools with a title.
    assert_eq!([picture.as_str(), document], ["A title"; 2]);
    // Both files were sent, complete, to the model that was asked about them.
    let requests = world.mock.all_requests();
    for file in [PNG.to_owned(), base64.encode(PDF)] {
        assert!(
            requests
                .iter()
                .any(|it| it.body.to_string().contains(&file)),
            "{file}"
        );
    }
    assert!(lsp.starts_with("Configured LSP servers: "), "{lsp}");
    assert!(
        glob.starts_with("Found 1 file(s)") && glob.contains("one.pdf"),
        "{glob}"
    );
    assert!(
        json_error.contains("[JSON PARSE ERROR - IMMEDIATE ACTION REQUIRED]"),
        "{json_error}"
    );
    assert!(
        notepad.starts_with("Refused: Write to .omo/notepads/p/learnings.md"),
        "{notepad}"
    );
    assert!(plan.contains("<plan-format-warning>"), "{plan}");
    let offered = world.mock.requests()[0].body["tools"].to_string();
    let todos = "Use this tool to create and manage a structured task list for tracking progress on multi-step work.";
    assert!(offered.contains(todos), "{offered}");

    // Its planner writes plans only.
    let planner = "Prometheus - Plan Builder";
    let calls = [
        write("code.rs", "x"),
        write(".omo/plans/ok.md", "# P\n\n## TODOs\n\n- [ ] 1. Paint\n"),
    ];
    let found = results(&ask(&world, &server, planner, "plan please", &calls));
    assert!(found[0].starts_with("[prometheus-md-only]"), "{found:#?}");
    assert!(!world.path("code.rs").exists());
    assert!(
        found[1].starts_with("Wrote file successfully."),
        "{found:#?}"
    );

    // Its executor's tasks contain the location of notes, and how they are continued.
    let task = json!({
        "description": "whales", "prompt": "Look for whales", "subagent_type": "explore", "run_in_background": false,
        "load_skills": [],
    });
    let executor = "Atlas - Plan Executor";
    let found = results(&ask(
        &world,
        &server,
        executor,
        "delegate please",
        &[call("task", task)],
    ));
    let goes_on = "to continue: task(task_id=";
    assert!(found[0].contains(goes_on), "{found:#?}");
    let notes = "NOTEPAD PATH: .omo/notepads/";
    let requests = world.mock.requests();
    assert!(
        requests
            .iter()
            .any(|it| it.texts("user").concat().contains(notes))
    );

    // Covers words that ask for more thought, and a model its leader is not made for.
    let messages = ask(&world, &server, LEADER, "ultrathink please", &[]);
    assert_eq!(
        messages[0]["info"]["variant"], "high",
        "{}",
        messages[0]["info"]
    );
    let body = json!({
        "agent": LEADER, "model": { "providerID": "mock", "modelID": "gpt-4o" }, "parts": [{ "type": "text", "text": "gpt please" }],
    });
    let messages = tell(&server, &body);
    assert_eq!(messages[0]["info"]["agent"], "Hephaestus - Deep Agent");
}
