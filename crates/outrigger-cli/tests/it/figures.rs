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
