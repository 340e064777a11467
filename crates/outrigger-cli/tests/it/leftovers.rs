//! Nothing outlives the server, however it ends: plugins, MCP servers, language servers, shells.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::support::*;

/// Keeps itself busy, and has two children: a plain one, and one that has left its group and session and lost its parent.
fn plugin(daemon: &str) -> String {
    format!(
        "
import {{ spawn }} from 'node:child_process'
export const P = async () => {{
  setInterval(() => {{}}, 1)
  spawn('sleep', ['324'])
  spawn('sh', ['-c', 'setsid {daemon} & sleep 0.2'], {{ detached: true, stdio: 'ignore' }})
  return {{}}
}}"
    )
}

/// Returns all processes that run this. Orphans are below no other process.
fn running(line: &str) -> BTreeMap<u32, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let runs = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let runs = String::from_utf8_lossy(&runs).replace('\0', " ");
        if runs.trim() == line && alive(pid) {
            found.insert(pid, runs);
        }
    }
    found
}

/// Returns the processes below this one, with their command lines.
fn below(root: u32) -> BTreeMap<u32, String> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| {
            let mut fields = rest.split_whitespace().skip(1);
            fields.next()?.parse::<u32>().ok()
        });
        parents.insert(pid, parent.unwrap_or_default());
    }
    let is_below = |mut pid: u32| {
        for _ in 0..64 {
            match parents.get(&pid) {
                Some(parent) if *parent == root => return true,
                Some(parent) if *parent > 1 => pid = *parent,
                _ => return false,
            }
        }
        false
    };
    let runs = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    let pids: Vec<u32> = parents.keys().copied().collect();
    pids.into_iter()
        .filter(|pid| is_below(*pid))
        .map(|pid| (pid, runs(pid)))
        .collect()
}

fn left(pids: &BTreeMap<u32, String>) -> Vec<&String> {
    pids.iter()
        .filter(|(pid, _)| alive(**pid))
        .map(|(_, runs)| runs)
        .collect()
}

#[test]
fn a_server_that_ends_leaves_no_process() {
    let language = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../outrigger-lsp/tests/it/server.py"
    );
    let rich = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../outrigger-mcp/tests/it/rich.mjs"
    );
    for signal in [Signal::TERM, Signal::KILL] {
        let write = call("write", json!({ "filePath": "a.txt", "content": "x" }));
        let wait = call(
            "bash",
            json!({ "command": "sleep 323 & sleep 325; wait", "description": "d" }),
        );
        let world = World::new([turn([write]), turn([wait]), done()]);
        let log = world.path("lsp.log");
        world.config(json!({
            "mcp": { "notes": { "type": "local", "command": ["node", rich] } },
            "lsp": { "scripted": { "command": ["python3", language, "push", log], "extensions": [".txt"] } },
        }));
        // Unique to this test and this run.
        let daemon = format!("sleep 326.{}", std::process::id());
        world.plugin("busy", &plugin(&daemon));
        let server = world.serve(&["--no-auth"]);
        let session = server.post("/session", &json!({})).json(200);
        let path = format!("/session/{}/prompt_async", session["id"].as_str().unwrap());
        let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
        assert_eq!(server.post(&path, &prompt).status, 204);
        let kinds = [
            "host.mjs",
            "rich.mjs",
            "server.py",
            "sleep 323",
            "sleep 324",
            "sleep 325",
        ];
        let mut seen = BTreeMap::new();
        let there = wait_until(WAIT_TIMEOUT, || {
            seen = below(server.running.pid());
            kinds
                .iter()
                .all(|kind| seen.values().any(|runs| runs.contains(kind)))
        });
        assert!(there, "{seen:?}");
        assert!(wait_until(WAIT_TIMEOUT, || !running(&daemon).is_empty()));
        seen.extend(running(&daemon));
        server.running.signal(signal);
        server.running.end();
        // After SIGKILL the kernel ends what we started; the next start finds what that had started in the ledger.
        let ours = |runs: &str| {
            ["host.mjs", "rich.mjs", "server.py"]
                .iter()
                .any(|k| runs.contains(k))
        };
        if signal == Signal::KILL {
            let mut first = seen.clone();
            first.retain(|_, runs| ours(runs));
            assert!(
                wait_until(WAIT_TIMEOUT, || left(&first).is_empty()),
                "{:?}",
                left(&first)
            );
            world.cli(&["run", "--pure", "next"]).ok();
        }
        assert!(
            wait_until(WAIT_TIMEOUT, || left(&seen).is_empty()),
            "{signal:?}: {:?}",
            left(&seen)
        );
    }
}
