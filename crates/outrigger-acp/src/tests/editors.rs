//! What Zed and the JetBrains IDEs need of an agent, by their own sources: Zed's `crates/agent_servers/src/acp.rs` and
//! `crates/acp_thread/src/acp_thread.rs` (0038d2e2, 00293ca7), and `agentclientprotocol/kotlin-sdk` (6ddbfee0), the library of the
//! JetBrains IDEs.

use std::collections::HashSet;
use std::sync::Arc;

use outrigger_jsonrpc::{Outbox, Peer, Service as _};

use super::agents::{answering, now, session};
use super::opening::OneAgent;
use super::*;
use crate::server::Server;
use crate::session::OpenSession;
use crate::session::options::{Chosen, Offer};
use crate::turn::Turn;
use crate::updates::calls;

/// A running command that has printed something.
fn runs(printed: &str) -> Event {
    let input = json!({ "command": "make" });
    let state = json!({ "status": "running", "input": input, "metadata": { "output": printed }, "time": { "start": 1 } });
    tool("prt_5", "bash", state)
}

fn at(event: Event, at: u64) -> Event {
    let mut event = serde_json::to_value(event).unwrap();
    event["properties"]["time"] = json!(at);
    serde_json::from_value(event).unwrap()
}

fn ran(output: &str) -> Event {
    let input = json!({ "command": "make" });
    let state = json!({ "status": "completed", "input": input, "output": output, "title": "make",
        "metadata": { "exit": 2, "output": output }, "time": { "start": 1, "end": 2 } });
    tool("prt_5", "bash", state)
}

/// Zed creates a terminal from the metadata of a `tool_call` only, looks a terminal block up in those it has created, and writes what
/// updates send to it.
#[test]
fn a_command_is_shown_in_a_terminal_of_zed() {
    let mut shows = updates().with_terminals(true);
    let events = [
        tool(
            "prt_5",
            "bash",
            json!({ "status": "pending", "input": {}, "raw": "" }),
        ),
        at(runs(""), 1000),
        at(runs("\u{1b}[31mone\u{1b}[0m\n\u{1b}[3"), 2000),
        // Nothing new, and the next too soon.
        at(runs("\u{1b}[31mone\u{1b}[0m\n\u{1b}[32m"), 3000),
        at(runs("\u{1b}[31mone\u{1b}[0m\n\u{1b}[32mtwo\n"), 3100),
        at(runs("\u{1b}[31mone\u{1b}[0m\n\u{1b}[32mtwo\n"), 4000),
        // Of a long output only the end is known.
        at(runs("...\n\nthe clipboard \u{1b}]52;c;aGk=\u{7}\n"), 5000),
        ran("...\n\nthe clipboard \u{1b}]52;c;aGk=\u{7}\ndone"),
    ];
    let sent: Vec<Value> = events.iter().flat_map(|it| shows.on(it)).collect();
    insta::assert_snapshot!(transcript(&sent));
    // A stored call is one that has ended: its terminal is created first, too.
    let stored: Vec<Value> = updates().with_terminals(true).on(&ran("done"));
    insta::assert_snapshot!("a_stored_command", transcript(&stored));
    // What went wrong stands below what it printed.
    let failed = json!({ "status": "error", "input": {}, "error": "the user said no", "time": { "start": 1, "end": 2 } });
    let failed = shows.on(&tool("prt_6", "bash", failed));
    assert_eq!(
        failed[0]["content"][1]["content"]["text"],
        "```\nthe user said no\n```"
    );
}

/// Zed adds a failed call, "Tool call not found", for an update of a call that it does not know.
#[test]
fn no_update_is_of_an_unknown_call() {
    for shows_terminals in [false, true] {
        let mut updates = updates().with_terminals(shows_terminals);
        let mut known = HashSet::new();
        for update in a_turn().iter().flat_map(|it| updates.on(it)) {
            let id = update["toolCallId"].as_str().map(str::to_owned);
            match update["sessionUpdate"].as_str().unwrap() {
                "tool_call" => assert!(known.insert(id.unwrap()), "{update}"),
                "tool_call_update" => assert!(known.contains(&id.unwrap()), "{update}"),
                _ => {}
            }
        }
        assert_eq!(known.len(), 5);
    }
}

/// Zed takes a question back when the state of its call arrives: the answer would be "cancelled".
#[test]
fn a_call_that_waits_for_an_answer_sends_no_state() {
    let mut live = updates();
    let running =
        json!({ "status": "running", "input": { "command": "make" }, "time": { "start": 1 } });
    let running = tool("prt_5", "bash", running);
    assert_eq!(live.on(&running).len(), 1);
    assert_eq!(live.on(&at(running, 60_000)), Vec::<Value>::new());
}

/// Zed reads titles as Markdown, but those of commands and changes.
#[test]
fn titles_are_the_same_text_in_markdown() {
    let title = |tool: &str, input: Value| calls::title(tool, &input, None, Path::new("/p"));
    for (tool, input, want) in [
        (
            "read",
            json!({ "filePath": "/p/src/a.rs" }),
            "Read src/a.rs",
        ),
        (
            "read",
            json!({ "filePath": "/p/src/__init__.py" }),
            "Read `src/__init__.py`",
        ),
        ("glob", json!({ "pattern": "**/*.rs" }), "Find `**/*.rs`"),
        (
            "grep",
            json!({ "pattern": "`a``b`" }),
            "Search for ``` `a``b` ```",
        ),
        (
            "task",
            json!({ "description": "see [this](https://evil.test)" }),
            "`see [this](https://evil.test)`",
        ),
        ("bash", json!({ "command": "ls *" }), "ls *"),
        ("edit", json!({ "filePath": "/p/a_b_.rs" }), "Edit a_b_.rs"),
        ("mine_tool", json!({}), "mine_tool"),
        ("_tool", json!({}), "`_tool`"),
    ] {
        assert_eq!(title(tool, input), want);
    }
    let long = title("grep", json!({ "pattern": "*".repeat(400) }));
    assert!(
        long.starts_with("Search for `*") && long.ends_with("…`"),
        "{long}"
    );
}

/// Returns an open session of an agent without routes, and what its editor is sent.
async fn turn() -> (Turn, Outbox) {
    let agent = answering(|_, _, _| now(json!([]))).await;
    let (id, folder) = ("ses_1".into(), "/p".into());
    let open = OpenSession::new(id, folder, agent, Offer::default(), Chosen::default());
    let (peer, outbox) = Peer::new(None);
    let turn = Turn::new(Arc::new(open), peer, Client::default(), None);
    (turn, outbox)
}

async fn sent(outbox: &mut Outbox) -> Value {
    let line = outbox.next().await.unwrap();
    let message: Value = serde_json::from_str(&line).unwrap();
    match message["method"].as_str().unwrap() {
        "session/update" => {
            is::<protocol::SessionUpdate>(&message["params"]["update"]);
            message["params"]["update"].clone()
        }
        _ => message["params"]["toolCall"].clone(),
    }
}

/// In Zed the call of a question runs from the answer on until its end arrives; the JetBrains IDEs know calls from `tool_call`.
#[tokio::test]
async fn a_call_of_a_subagent_has_a_beginning_and_an_end() {
    let (mut turn, mut outbox) = turn().await;
    let of_subagent = |mut event: Event| {
        if let Event::PartUpdated {
            session_id, part, ..
        } = &mut event
        {
            *session_id = "ses_2".into();
            part.session_id = "ses_2".into();
        }
        event
    };
    let mut info = session("ses_2", "/p");
    info["parentID"] = json!("ses_1");
    let begins =
        json!({ "type": "session.created", "properties": { "sessionID": "ses_2", "info": info } });
    turn.event(&serde_json::from_value(begins).unwrap()).await;
    let mut asked = permission("bash", "bash", json!({ "command": "rm -rf a" }), json!({}));
    asked.tool.as_mut().unwrap().call_id = "call_prt_5".into();
    turn.event(&Event::PermissionAsked(asked)).await;
    let begun = sent(&mut outbox).await;
    assert_eq!(
        (&begun["sessionUpdate"], &begun["status"]),
        (&json!("tool_call"), &json!("pending"))
    );
    assert_eq!(begun["title"], "rm -rf a");
    assert_eq!(sent(&mut outbox).await["toolCallId"], "call_prt_5");
    // Its output is the subagent's, its end is not.
    for event in [runs("one\n"), ran("one\n"), ran("one\n")] {
        turn.event(&of_subagent(event)).await;
    }
    let ended = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call_prt_5", "status": "completed" });
    assert_eq!(sent(&mut outbox).await, ended);

    // A question that belongs to no call ends with its answer.
    let mut asked = permission("mine", "mine", json!({}), json!({}));
    asked.tool = None;
    turn.event(&Event::PermissionAsked(asked)).await;
    assert_eq!(sent(&mut outbox).await["sessionUpdate"], "tool_call");
    assert_eq!(sent(&mut outbox).await["toolCallId"], "per_1");
    let reply = json!({ "requestID": "per_1", "reply": "reject" });
    turn.event(&event("permission.replied", reply)).await;
    let ended =
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "per_1", "status": "failed" });
    assert_eq!(sent(&mut outbox).await, ended);
}

/// Zed and other editors append the arguments of a login in a terminal to those of the agent: `outrigger acp --login`.
#[test]
fn a_login_is_an_option_of_the_agents_own_command() {
    let login = |capabilities: Value| {
        let client = Client::read(&json!({ "clientCapabilities": capabilities }));
        hello(client)["authMethods"][0].clone()
    };
    let terminal = login(json!({ "auth": { "terminal": true } }));
    assert_eq!(
        (&terminal["type"], &terminal["args"]),
        (&json!("terminal"), &json!(["--login"]))
    );
    // The JetBrains IDEs say nothing of terminals there: they show the description.
    let plain = login(json!({ "auth": {} }));
    assert_eq!(plain.get("type"), None);
    assert!(
        plain["description"]
            .as_str()
            .unwrap()
            .contains("outrigger auth login")
    );
}

/// Asserts that the Kotlin library takes an update: it drops one with an unknown word or without a field that it requires.
fn kotlin(update: &Value) {
    const KINDS: [&str; 10] = [
        "read",
        "edit",
        "delete",
        "move",
        "search",
        "execute",
        "think",
        "fetch",
        "switch_mode",
        "other",
    ];
    const STATES: [&str; 4] = ["pending", "in_progress", "completed", "failed"];
    let is_one_of = |key: &str, words: &[&str]| {
        update[key].is_null() || words.contains(&update[key].as_str().unwrap())
    };
    let required: &[&str] = match update["sessionUpdate"].as_str().unwrap() {
        "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => &["content"],
        "tool_call" => &["toolCallId", "title"],
        "tool_call_update" => &["toolCallId"],
        "plan" => &["entries"],
        "usage_update" => &["used", "size"],
        other => panic!("{other}"),
    };
    for key in required {
        assert!(!update[key].is_null(), "{key}: {update}");
    }
    assert!(
        is_one_of("kind", &KINDS) && is_one_of("status", &STATES),
        "{update}"
    );
    for location in update["locations"].as_array().into_iter().flatten() {
        assert!(location["path"].is_string());
        let line = &location["line"];
        assert!(line.is_null() || u32::try_from(line.as_u64().unwrap()).is_ok());
    }
    for block in update["content"].as_array().into_iter().flatten() {
        let required: &[&str] = match block["type"].as_str().unwrap() {
            "content" => &["content"],
            "diff" => &["path", "newText"],
            "terminal" => &["terminalId"],
            other => panic!("{other}"),
        };
        assert!(required.iter().all(|key| !block[key].is_null()), "{block}");
    }
}

#[test]
fn the_library_of_the_jetbrains_ides_takes_every_update() {
    let mut live = updates();
    for update in a_turn().iter().flat_map(|it| live.on(it)) {
        kotlin(&update);
    }
    for tool in [
        "read",
        "skill",
        "edit",
        "write",
        "apply_patch",
        "bash",
        "python",
        "glob",
        "grep",
        "list",
        "lsp",
        "codesearch",
        "table",
        "webfetch",
        "websearch",
        "task",
        "todowrite",
        "plan_enter",
        "plan_exit",
        "question",
        "a_plugins",
    ] {
        kotlin(
            &json!({ "sessionUpdate": "tool_call_update", "toolCallId": "x", "kind": calls::kind(tool) }),
        );
    }
}

/// A JetBrains IDE shows a question by what the question itself has, and not by what it was sent of the call before.
#[test]
fn a_question_needs_nothing_but_itself() {
    let diff = "Index: /p/a\n===\n--- /p/a\n+++ /p/a\n@@ -1,1 +1,1 @@\n-hi\n+bye\n";
    let write = json!({ "filePath": "/p/a", "content": "bye\n" });
    let write = permission("edit", "write", write, json!({ "diff": diff }));
    let run = permission("bash", "bash", json!({ "command": "rm -rf a" }), json!({}));
    for (request, title) in [(write, "Write a"), (run, "rm -rf a")] {
        let question = permissions::question("ses_1", &request, Path::new("/p"));
        let call = &question["toolCall"];
        let mut update = call.clone();
        update["sessionUpdate"] = json!("tool_call");
        kotlin(&update);
        assert_eq!(call["title"], title);
        assert!(call["rawInput"].is_object());
        match title {
            "Write a" => assert_eq!(
                (
                    &call["locations"][0]["path"],
                    &call["content"][0]["newText"]
                ),
                (&json!("/p/a"), &json!("bye\n"))
            ),
            _ => assert!(
                call["content"][0]["content"]["text"]
                    .as_str()
                    .unwrap()
                    .contains(title)
            ),
        }
        for option in question["options"].as_array().unwrap() {
            let kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];
            assert!(kinds.contains(&option["kind"].as_str().unwrap()));
        }
    }
}

/// An agent with two models, an editor that has said who it is, and what it is sent.
async fn opened(info: Value) -> (Server, Value, Outbox) {
    let agent = answering(|_, path, _| {
        now(match path {
            "/session" => session("ses_1", "/"),
            "/config/providers" => json!({ "default": {}, "providers": [{ "id": "p", "name": "P", "models": {
                "a": { "name": "A" }, "b": { "name": "B" } } }] }),
            "/agent" => json!([{ "name": "build", "mode": "primary" }, { "name": "plan", "mode": "primary" }]),
            "/command" => json!([]),
            _ => json!({}),
        })
    })
    .await;
    let (peer, mut outbox) = Peer::new(None);
    let server = Server::new(Arc::new(OneAgent(agent)), peer);
    server
        .request("initialize", json!({ "clientInfo": info }))
        .await
        .unwrap();
    let answer = server
        .request("session/new", json!({ "cwd": "/", "mcpServers": [] }))
        .await
        .unwrap();
    // A JetBrains IDE is stuck if the commands of a session arrive before the session.
    let early = tokio::time::timeout(std::time::Duration::ZERO, outbox.next()).await;
    assert!(early.is_err(), "{early:?}");
    let (value, after) = (answer.value, answer.after.unwrap());
    after.await;
    assert_eq!(
        sent(&mut outbox).await["sessionUpdate"],
        "available_commands_update"
    );
    (server, value, outbox)
}

#[tokio::test]
async fn the_commands_of_a_session_come_after_it() {
    let (_, new, _) = opened(json!({ "name": "zed", "version": "1.0.0" })).await;
    is::<protocol::NewSessionResponse>(&new);
    // Both forms: an editor reads the one that it knows.
    assert_eq!(new["modes"]["currentModeId"], "build");
    assert_eq!(new["configOptions"][0]["id"], "model");
    assert_eq!(new.get("models"), None);
}

/// The options of a session do not work in JetBrains IDEs 2026.1 (LLM-28118, by `src/JBUtils.ts` of `agentclientprotocol/codex-acp`).
#[tokio::test]
async fn a_jetbrains_ide_2026_1_has_the_older_forms() {
    for info in [
        json!({ "name": "JetBrains.IntelliJ IDEA", "version": "2026.1.2" }),
        json!({ "name": "x", "version": "2026.1", "_meta": { "platform": "intellij" } }),
    ] {
        let (server, new, mut outbox) = opened(info).await;
        assert_eq!(new.get("configOptions"), None);
        assert_eq!(new["modes"]["currentModeId"], "build");
        assert_eq!(new["models"]["currentModelId"], "p/a");
        let of = |key: &str, value: &str| json!({ "sessionId": "ses_1", key: value });
        server
            .request("session/set_model", of("modelId", "p/b"))
            .await
            .unwrap();
        assert!(
            server
                .request("session/set_model", of("modelId", "p/c"))
                .await
                .is_err()
        );
        server
            .request("session/set_mode", of("modeId", "plan"))
            .await
            .unwrap();
        let again = json!({ "sessionId": "ses_1", "cwd": "/", "mcpServers": [] });
        let _ = server.request("session/resume", again).await;
        drop(server);
        assert_eq!(outbox.next().await, None, "no update of options");
    }
    let newer = Client::read(
        &json!({ "clientInfo": { "name": "JetBrains.WebStorm", "version": "2026.2" } }),
    );
    assert!(!newer.lacks_options);
}
