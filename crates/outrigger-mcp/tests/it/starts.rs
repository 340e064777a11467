//! Starts of servers: which succeed, which fail, and why.

use outrigger_mcp::{State, tool_name};
use outrigger_test_support::process::alive;
use serde_json::json;

use crate::support::{Room, entries, node, sh, until};

#[tokio::test]
async fn all_pages_of_tools_are_listed_in_the_order_of_the_configuration() {
    let room = Room::new(json!({"b": node(&[]), "a.x": node(&["garbage"])})).await;
    let names: Vec<String> = room
        .servers
        .tools()
        .iter()
        .map(|tool| tool_name(&tool.server, &tool.name))
        .collect();
    assert_eq!(names.len(), 26);
    assert_eq!(names[..2], ["b_say", "b_env"]);
    assert_eq!(
        (names[12].as_str(), names[13].as_str()),
        ("b_grow", "a_x_say")
    );
    let say = room.tool("say");
    assert_eq!(say.description, "does say");
    assert_eq!(say.input_schema["properties"]["text"]["type"], "string");
    let status = room.status("b");
    assert_eq!((status.state, status.restarts), (State::Connected, 0));
    assert_eq!(status.server.as_deref(), Some("tester 1.2"));
    assert!(status.pid.is_some() && status.start_ms.is_some() && status.error.is_none());
}

#[tokio::test]
async fn a_server_that_does_not_come_up_is_listed_with_its_cause_and_costs_nothing_else() {
    let room = Room::new(json!({
        "hangs": sh("echo starting >&2; exec sleep 600", 4000),
        "deaf": sh("exec 0<&-; exec sleep 600", 20_000),
        "leaves": sh("head -c 1 >/dev/null; exec 0<&-; exec sleep 600", 20_000),
        "exits": sh("echo no licence >&2; exit 3", 20_000),
        "garbage": sh("echo hello; echo '{\"a\":1}'; exec sleep 600", 4000),
        "missing": {"type": "local", "command": ["/no/such/server"]},
        "unnamed": {"type": "local", "command": []},
        "wrong": sh("read x; echo '{\"id\":0,\"result\":{}}'; exec sleep 600", 20_000),
        "refuses": sh("read x; echo '{\"id\":0,\"error\":{\"code\":-1,\"message\":\"go away\"}}'; exec sleep 600", 20_000),
        "floods": sh("cat /dev/zero | tr '\\0' x", 60_000),
        "babbles": sh("exec yes this is not a message at all and takes a while to read", 4000),
        "loops": node(&["loop"]),
        "off": {"type": "local", "command": ["/no/such/server"], "enabled": false},
        "override": {"enabled": false},
        "typeless": {},
        "good": node(&[]),
    }))
    .await;
    let list: Vec<String> = room
        .servers
        .status()
        .iter()
        .map(|status| format!("{} {}", status.name, room.cause(&status.name)))
        .collect();
    insta::with_settings!({filters => vec![(r"printed \d+ lines", "printed N lines"), (r"searched: [^)]*", "searched: ROOM")]}, {
        insta::assert_snapshot!(list.join("\n"), @r#"
        hangs Failed mcp.start_timeout: MCP server hangs was not ready within 4000 ms; its last words: starting
        deaf Failed mcp.closed: MCP server deaf closed its input and was ended
        leaves Failed mcp.closed: MCP server leaves closed its input and was ended
        exits Failed mcp.closed: MCP server exits ended (exit code 3); its last words: no licence
        garbage Failed mcp.start_timeout: MCP server garbage was not ready within 4000 ms; it printed N lines that are not MCP messages, first: hello
        missing Failed mcp.start: MCP server missing could not be started: program /no/such/server not found (searched: ROOM)
        unnamed Failed mcp.config: MCP server unnamed: `command` must be a list of texts that begins with a program
        wrong Failed mcp.answer: MCP server wrong gave an answer that cannot be used: initialize names no protocolVersion
        refuses Failed mcp.refused: MCP server refuses: go away (-1)
        floods Failed mcp.closed: MCP server floods was ended: it printed a line of more than 32 MiB
        babbles Failed mcp.start_timeout: MCP server babbles was not ready within 4000 ms; it printed N lines that are not MCP messages, first: this is not a message at all and takes a while to read
        loops Failed mcp.answer: MCP server loops gave an answer that cannot be used: tools/list gives the cursor a twice
        off Disabled : 
        override Disabled : 
        good Connected : 
        "#);
    });
    assert_eq!(room.text("say", json!({"text": "hi"})).await, "said hi");
    assert!(
        room.status("hangs")
            .hint
            .unwrap()
            .contains("mcp.hangs.timeout")
    );
}

/// The end of its output may be seen before its standard error.
#[tokio::test]
async fn the_last_words_of_one_that_ends_are_heard_whatever_is_seen_first() {
    for script in [
        "echo no licence >&2; exit 3",
        "exec >&-; echo no licence >&2; exit 3",
        "exec 0<&-; echo no licence >&2; exit 3",
        "read x; exec >&-; sleep 0.05; echo no licence >&2; exit 3",
    ] {
        let room = Room::one(sh(script, 20_000)).await;
        assert_eq!(
            room.cause("m"),
            "Failed mcp.closed: MCP server m ended (exit code 3); its last words: no licence",
            "{script}"
        );
    }
}

#[tokio::test]
async fn a_server_without_tools_is_connected_and_has_none() {
    let room = Room::one(node(&["bare"])).await;
    assert_eq!(room.status("m").state, State::Connected);
    assert_eq!(room.servers.tools().len(), 0);
}

#[tokio::test]
async fn only_what_is_new_or_has_changed_is_started_again() {
    let room = Room::new(json!({"same": node(&[]), "changed": node(&[]), "gone": node(&[])})).await;
    let before = ["same", "changed", "gone"].map(|name| room.status(name).pid.unwrap());
    room.servers.configure(&entries(
        json!({"new": node(&[]), "changed": node(&["garbage"]), "same": node(&[])}),
    ));
    room.servers.ready().await;
    let names: Vec<String> = room
        .servers
        .status()
        .into_iter()
        .map(|status| status.name)
        .collect();
    assert_eq!(names, ["new", "changed", "same"]);
    assert_eq!(room.status("same").pid, Some(before[0]));
    assert_ne!(room.status("changed").pid.unwrap(), before[1]);
    until("what was replaced has ended", || {
        !before[1..].iter().any(|pid| alive(*pid))
    })
    .await;
}

#[tokio::test]
async fn one_that_is_late_comes_up_later_and_that_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.mjs");
    let wait = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; exec node {script}",
        gate.display()
    );
    // No timeout: the session begins after five seconds, the start continues.
    let mut entry = sh(&wait, 1);
    entry.as_object_mut().unwrap().remove("timeout");
    let room = Room::one(entry).await;
    assert_eq!(
        (room.status("m").state, room.servers.tools().len()),
        (State::Starting, 0)
    );
    let mut changes = room.servers.changes();
    std::fs::write(&gate, "").unwrap();
    tokio::time::timeout(crate::support::LONG, changes.changed())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(room.text("say", json!({"text": "late"})).await, "said late");
}
