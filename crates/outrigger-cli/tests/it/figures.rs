//! What plugins cost and did, told by `plugin perf`, `trace` and `top` (A1, A2).

use serde_json::{Value, json};

use crate::support::*;

const PLUGIN: &str = "export const P = async () => ({
    'chat.message': async (_, o) => { o.parts[0].text += ' seen' },
    'tool.execute.before': async (i) => { if (i.tool === 'bash') throw new Error('house rule') },
    'chat.params': async () => { await new Promise((done) => setTimeout(done, 30)) },
  })";

fn world() -> World {
    let bash = call("bash", json!({ "command": "date", "description": "x" }));
    let world = World::new([turn([bash]), done()]);
    world.plugin("rules", PLUGIN);
    world
}

#[test]
fn every_call_of_a_session_is_told_in_order_and_what_hooks_cost() {
    let world = world();
    world.run(&["hi"]).ok();
    let trace = world.cli(&["plugin", "trace"]).ok().stdout;
    let shape: Vec<String> = trace
        .lines()
        .filter(|line| line.starts_with(' '))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            // Number, since the turn's beginning, "ms", hook, plugin, outcome, time, unit, the rest.
            [&words[3..6], &words[8..]].concat().join(" ")
        })
        // That of the title's request comes at any time.
        .filter(|line| !line.starts_with("chat.params"))
        .collect();
    assert_eq!(
        shape,
        [
            "chat.message rules ok patch /parts/0/text",
            "tool.execute.before rules error block house rule",
        ]
    );
    assert!(
        trace.contains("\ntrn_") || trace.starts_with("trn_"),
        "{trace}"
    );
    let records = world.cli(&["plugin", "trace", "--json"]).ok().json();
    assert_eq!(records.as_array().unwrap().len(), 5);

    let rows = world.cli(&["plugin", "perf", "--json"]).ok().json();
    let first = &rows[0];
    assert_eq!(
        (&first["plugin"], &first["hook"], &first["calls"]),
        (&json!("rules"), &json!("chat.params"), &json!(3))
    );
    assert!(first["p50_ms"].as_f64().unwrap() >= 29.0, "{first}");
    assert!(
        first["p99_ms"].as_f64() <= first["max_ms"].as_f64(),
        "{first}"
    );
    let table = world.cli(&["plugin", "perf"]).ok().stdout;
    assert!(
        table.lines().any(|line| line.ends_with("  1 error")),
        "{table}"
    );

    let error = world.cli(&["plugin", "perf", "-s", "ses_none"]).exited(1);
    assert!(error.stderr.contains("ses_none"), "{}", error.stderr);
}

#[test]
fn a_running_server_tells_what_its_plugins_use() {
    let world = world();
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200);
    let id = session["id"].as_str().unwrap();
    server
        .post(
            &format!("/session/{id}/message"),
            &json!({ "parts": [{ "type": "text", "text": "hi" }] }),
        )
        .json(200);
    let told: Value = server.get("/outrigger/plugin").json(200);
    assert_eq!(told["plugins"][0]["id"], "rules");
    assert_eq!(told["perf"][0]["hook"], "chat.params");
    let screen = world
        .cli(&["plugin", "top", &server.url(), "--once"])
        .ok()
        .stdout;
    for word in ["rules", "active", "chat.params"] {
        assert!(screen.contains(word), "{screen}");
    }
}

/// Figures, process numbers and times removed.
fn figures_removed(text: &str) -> String {
    let mut out = String::new();
    let mut digits = false;
    for c in text.chars() {
        let part = c.is_ascii_digit() || (digits && c == '.');
        if part && !digits {
            out.push('N');
        }
        digits = part;
        if !part {
            out.push(c);
        }
    }
    // A busy machine takes seconds where another takes milliseconds.
    let lines = out
        .lines()
        .filter(|line| !line.contains("each start waits"));
    let lines: Vec<String> = lines.map(|line| line.replace("N s ", "N ms ")).collect();
    lines.join("\n")
}

#[test]
fn the_doctor_says_what_plugins_cost_and_how_the_flags_stand() {
    let world = world();
    world.plugin(
        "slow",
        "export const P = async () => ({ 'chat.message': () => new Promise(() => {}) })",
    );
    world.settings("[plugins.slow]\ntimeout_ms = 300\n[flags]\nplugin_seq_hooks = false\n");
    world.run(&["hi"]).ok();
    let mut command = world.command(&["doctor"]);
    command.env("OUTRIGGER_FLAGS_PLUGIN_CIRCUIT_BREAKER", "off");
    let said = world.start(command).end().ok().stdout;
    let part = |word: &str| {
        let mut lines: Vec<&str> = Vec::new();
        for line in said.lines() {
            let continued = line.starts_with("     ") && !lines.is_empty();
            if line.get(5..).is_some_and(|rest| rest.starts_with(word)) || continued {
                lines.push(line);
            } else if !lines.is_empty() {
                break;
            }
        }
        figures_removed(&world.plain(&lines.join("\n")))
    };
    let flags = part("flag ");
    for line in [
        "note flag         plugin_seq_hooks off (PROJECT/outrigger.toml:N:N)",
        "ok   flag         plugin_timeout_self_heal on (default)",
        "note flag         plugin_circuit_breaker off (environment OUTRIGGER_FLAGS_PLUGIN_CIRCUIT_BREAKER)",
    ] {
        assert!(flags.lines().any(|told| told == line), "{line}\n{flags}");
    }
    insta::assert_snapshot!(part("cost "), @r#"
    note cost         slow: N ms of a turn at pN, N ms at pN, over N turn; most of it in chat.message
                      N ms to load; its process holds N MiB and used N ms of CPU to start, shared with rules
                      of N call: N timeout, N restart
                      was given a process of its own: slow (chat.message) did not answer within N ms
                      last restart: slow (chat.message) did not answer within N ms
                      to do: chat.message missed its deadline once: give it more time ([plugins."slow"] timeout_ms) if it is only slow, else disable it (disabled = true) and tell its author
    ok   cost         rules: N ms of a turn at pN, N ms at pN, over N turn; most of it in chat.params
                      N ms to load; its process holds N MiB and used N ms of CPU to start, shared with slow
                      of N calls: N error, N restart
                      last restart: slow (chat.message) did not answer within N ms
    "#);
    let mut command = world.command(&["--print-logs", "plugin", "list"]);
    command.env("OUTRIGGER_FLAGS_PLUGIN_CIRCUIT_BREAKER", "off");
    let log = world.start(command).end().ok().stderr;
    let line = log
        .lines()
        .find(|line| line.contains("[plugin-perf] flags"));
    let line = line.unwrap_or_default();
    assert!(
        line.contains(
            "plugin_circuit_breaker=off (environment OUTRIGGER_FLAGS_PLUGIN_CIRCUIT_BREAKER)"
        ) && line.contains("plugin_timeout_self_heal=on"),
        "{log}"
    );
}
