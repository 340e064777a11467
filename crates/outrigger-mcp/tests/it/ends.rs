//! No process outlives its session.

use std::path::Path;
use std::time::Duration;

use outrigger_mcp::McpServers;
use outrigger_test_support::process::alive;
use serde_json::{Value, json};

use crate::support::{Room, entries, node, options, pid_in, sh, until};

#[tokio::test]
async fn shutdown_ends_those_that_listen_and_those_that_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let child = dir.path().join("child");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.mjs");
    let parent = format!("sleep 600 & echo $! > {}; node {script}", child.display());
    let room = Room::new(json!({
        "polite": node(&[]),
        "stubborn": node(&["stubborn"]),
        "parent": sh(&parent, 20_000),
    }))
    .await;
    let say = room.tool("say");
    let mut pids: Vec<u32> = room
        .servers
        .status()
        .iter()
        .map(|status| status.pid.unwrap())
        .collect();
    pids.push(pid_in(&child).await);
    assert!(pids.iter().all(|pid| alive(*pid)));
    room.servers.shutdown(Duration::from_millis(300)).await;
    // A killed process is gone once the system has had time for it.
    until("they are gone", || !pids.iter().any(|pid| alive(*pid))).await;
    insta::assert_snapshot!(say.call(&json!({})).await.unwrap_err(), @"MCP server polite was stopped");
}

#[tokio::test]
async fn shutdown_ends_one_that_is_still_starting() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let entry = sh(
        &format!("echo $$ > {}; exec sleep 600", file.display()),
        60_000,
    );
    let servers = McpServers::start(&entries(json!({"m": entry})), options(dir.path()));
    let pid = pid_in(&file).await;
    servers.shutdown(Duration::from_secs(60)).await;
    until("it has ended", || !alive(pid)).await;
}

#[tokio::test]
async fn dropping_the_servers_ends_them() {
    let room = Room::new(json!({"a": node(&["stubborn"]), "b": sh("exec sleep 600", 300)})).await;
    let pid = room.status("a").pid.unwrap();
    drop(room);
    until("it has ended", || !alive(pid)).await;
}

const HOST: &str = "OUTRIGGER_MCP_TEST_HOST";

/// Not a test by itself: the host that the next test kills.
#[tokio::test]
async fn host_to_be_killed() {
    let Some(dir) = std::env::var_os(HOST) else {
        return;
    };
    let dir = Path::new(&dir);
    let marked = |name: &str, mut entry: Value| {
        entry["environment"] = json!({"MARK": dir.join(name)});
        entry
    };
    let servers = McpServers::start(
        &entries(
            json!({"polite": marked("polite", node(&[])), "stubborn": marked("stubborn", node(&["stubborn"]))}),
        ),
        options(dir),
    );
    servers.ready().await;
    std::fs::write(dir.join("up"), "1").unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "a host of its own, to be killed; the sandbox would kill its children too"
)]
async fn servers_die_with_a_host_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ends::host_to_be_killed"])
        .env(HOST, dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    pid_in(&dir.path().join("up")).await;
    let pids = [
        pid_in(&dir.path().join("polite")).await,
        pid_in(&dir.path().join("stubborn")).await,
    ];
    assert!(pids.iter().all(|pid| alive(*pid)));
    host.kill().unwrap();
    host.wait().unwrap();
    until("the servers have ended", || {
        !pids.iter().any(|pid| alive(*pid))
    })
    .await;
}
