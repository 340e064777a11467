//! `outrigger audit` after real runs: it has every hook run, tool call, decision, process and request, contains no
//! secret, and detects edits (C13).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::{granting, rewrites};

const KEY: &str = "hunter2hunter2hunter2";

const BUSY: &str = r#"
export const Busy = async ({ serverUrl }) => ({
  "tool.execute.before": async (input, output) => {
    if (output.args.command === "echo one") output.args.command = "sleep 0.2; echo two"
  },
  "tool.execute.after": async (input, output) => { output.title = "seen" },
  "chat.params": async (input, output) => { output.model = "other" },
  "chat.headers": async () => { throw new Error("no headers from me") },
  "hook.on_error": async (input) => {
    const fs = await import("node:fs")
    fs.appendFileSync("errors.txt", `${input.hook} ${input.outcome}\n`)
  },
  "experimental.text.complete": async ({ sessionID }) => {
    const url = new URL("/session/" + sessionID, serverUrl)
    const body = JSON.stringify({ title: "mine" })
    await fetch(url, { method: "PATCH", headers: { "content-type": "application/json" }, body })
    await fetch(url)
  },
})"#;

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

fn records(world: &World, args: &[&str]) -> Vec<Value> {
    let all = ["audit", "list", "--json", "-n", "10000"];
    world.cli(&[&all, args].concat()).ok().lines()
}

fn world() -> World {
    let world = World::new([
        bash("echo one"),
        bash(&format!("echo --password {KEY} denied")),
        done(),
    ]);
    let plugin = world.plugin("busy", BUSY);
    granting(&world, &rewrites(&plugin));
    world.config(json!({ "permission": { "bash": { "*": "allow", "*denied": "deny" } } }));
    world
}

#[test]
fn a_run_is_written_down() {
    let world = world();
    world.run_with(&[("MY_API_KEY", KEY)], &["do it"]).ok();
    let all = records(&world, &[]);
    let kinds: BTreeSet<&str> = all.iter().map(|r| r["kind"].as_str().unwrap()).collect();
    for kind in [
        "hook",
        "tool_intent",
        "tool_outcome",
        "permission",
        "life_cycle",
        "process",
        "client",
    ] {
        assert!(kinds.contains(kind), "{kind} in {kinds:?}");
    }
    for record in &all {
        assert!(!record.to_string().contains(KEY), "{record}");
        assert!(
            record["traceId"] != "" && !record["decision"].is_null(),
            "{record}"
        );
    }

    // The intent precedes the outcome and has the arguments as the hooks left them: what was approved is what ran.
    let of_tool: Vec<&Value> = all
        .iter()
        .filter(|r| r["kind"].as_str().unwrap().starts_with("tool_"))
        .collect();
    let steps: Vec<(&str, &str)> = of_tool
        .iter()
        .map(|r| (r["kind"].as_str().unwrap(), r["decision"].as_str().unwrap()))
        .collect();
    assert_eq!(
        steps,
        [
            ("tool_intent", "run"),
            ("tool_outcome", "completed"),
            ("tool_outcome", "tool.denied")
        ]
    );
    assert_eq!(of_tool[0]["inputHash"], of_tool[1]["inputHash"]);
    assert_eq!(of_tool[0]["traceId"], of_tool[1]["traceId"]);
    let at = |record: &Value| record["at"].as_u64().unwrap();
    assert!(
        at(of_tool[1]) >= at(of_tool[0]) + 200,
        "the outcome is as old as the effect: {of_tool:?}"
    );
    assert_eq!(of_tool[0]["stepId"], "1");
    // A refused call never has an intent, and names the rule.
    assert_eq!(of_tool[2]["policyCheckResult"], "refused: tool.denied");
    let decided: Vec<&str> = all
        .iter()
        .filter(|r| r["kind"] == "permission")
        .map(|r| r["decision"].as_str().unwrap())
        .collect();
    assert_eq!(decided, ["allow", "deny"]);

    let hook = |name: &str| {
        let mut found = records(&world, &["--kind", "hook", "--hook", name]);
        found.remove(0)
    };
    let before = hook("tool.execute.before");
    assert_eq!(before["decision"], "patch");
    assert_eq!(before["pluginId"], "busy");
    for field in ["inputHash", "outputHash"] {
        assert_eq!(before[field].as_str().unwrap().len(), 64, "{before}");
    }
    assert_eq!(before["stepId"], "1");
    let refused = hook("chat.params");
    assert_eq!(
        (&refused["decision"], &refused["policyCheckResult"]),
        (&json!("refused"), &json!("refused: rights"))
    );
    let threw = hook("chat.headers");
    assert_eq!(
        (&threw["decision"], &threw["errored"]),
        (&json!("failed_open"), &json!(true))
    );
    // A refused answer is an error of its plugin: it is reported as one and stands in the plugin's trace.
    let written = world.read("errors.txt");
    assert!(
        written.contains("chat.params refused") && written.contains("chat.headers error"),
        "{written}"
    );
    let trace = world.cli(&["plugin", "trace"]).ok().stdout;
    assert!(
        trace.contains("/model may not be changed at llm.before_params"),
        "{trace}"
    );

    // Only requests that change something are recorded.
    let asked: BTreeSet<String> = records(&world, &["--kind", "client"])
        .iter()
        .map(|r| {
            r["subject"]
                .as_str()
                .unwrap()
                .split("/ses_")
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(asked, BTreeSet::from(["PATCH /session".to_owned()]));
    let started = records(&world, &["--kind", "process", "--subject", "bash"]);
    assert!(
        started
            .iter()
            .all(|r| r["detail"].as_str().unwrap().contains("box:")),
        "{started:?}"
    );
    let stages: Vec<Value> = records(&world, &["--kind", "life_cycle", "--plugin", "busy"])
        .into_iter()
        .map(|r| r["decision"].clone())
        .collect();
    assert!(stages.contains(&json!("active")), "{stages:?}");

    let report = world.cli(&["audit", "verify"]).ok().stdout;
    assert!(report.contains("no tampering found"), "{report}");
    assert!(!report.contains("behind the last seal"), "{report}");
    world.verify();
}

#[test]
fn records_are_shown_filtered_and_exported() {
    let world = world();
    world.run(&["do it"]).ok();
    let all = records(&world, &[]);
    let shown = world.cli(&["audit", "show", "2"]).ok().json();
    assert_eq!(shown, all[1]);
    let lines = world.cli(&["audit", "list", "-n", "3"]).ok().stdout;
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let exported = world.cli(&["audit", "export"]).ok().lines();
    assert!(exported.len() >= all.len());
    assert_eq!(exported[..all.len()], all[..]);
    let denied = world
        .cli(&["audit", "export", "--policy", "refused", "--format", "otlp"])
        .ok()
        .lines();
    let spans = denied[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap()
        .clone();
    assert!(
        spans.iter().any(|s| s["name"] == "hook llm.before_params"),
        "{spans:?}"
    );
    assert_eq!(records(&world, &["--since", "1h"]).len(), all.len());
    assert_eq!(records(&world, &["--until", "1h"]).len(), 0);

    for (args, code, message) in [
        (vec!["audit", "show", "99999"], 1, "no record 99999"),
        (
            vec!["audit", "list", "--kind", "nonsense"],
            2,
            "no kind of audit record",
        ),
        (
            vec!["audit", "list", "--since", "yesterday"],
            2,
            "invalid time",
        ),
        (
            vec!["audit", "verify", "--key", "abc"],
            2,
            "64 hexadecimal digits",
        ),
    ] {
        let done = world.cli(&args).exited(code);
        assert!(done.stderr.contains(message), "{args:?}: {}", done.stderr);
    }
}

/// Edits of the audit file are detected, whether made with the program or by another one.
#[test]
fn who_edits_the_file_is_found_out() {
    let world = world();
    world.run(&["do it"]).ok();
    let seq = records(&world, &["--decision", "tool.denied"])[0]["seq"]
        .as_i64()
        .unwrap();
    let report = world.cli(&["audit", "verify"]).ok().stdout;
    let key = report
        .lines()
        .find_map(|line| line.strip_prefix("key "))
        .unwrap()
        .to_owned();
    world.cli(&["audit", "verify", "--key", &key]).ok();
    world
        .cli(&["audit", "verify", "--key", &"0".repeat(64)])
        .exited(1);

    let store = world.store();
    let mut bytes = std::fs::read(&store).unwrap();
    let word = b"\"decision\":\"tool.denied\"";
    let places: Vec<usize> = bytes
        .windows(word.len())
        .enumerate()
        .filter(|(_, w)| *w == word)
        .map(|(i, _)| i)
        .collect();
    assert_eq!(places.len(), 1, "the session log has another form");
    bytes[places[0]..places[0] + word.len()].copy_from_slice(b"\"decision\":\"completed!!\"");
    std::fs::write(&store, bytes).unwrap();
    let done = world.cli(&["audit", "verify"]).exited(1);
    assert!(
        done.stdout.contains(&format!("record {seq} was changed")),
        "{}",
        done.stdout
    );
    assert!(
        done.stderr.contains("audit.tampered") || done.stderr.contains("log was modified"),
        "{}",
        done.stderr
    );
}
