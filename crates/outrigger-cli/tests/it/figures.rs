//! Cost and activity of plugins, shown by `plugin perf`, `trace` and `top` (A1, A2).

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

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
fn every_call_of_a_session_is_reported_in_order_and_what_hooks_cost() {
    let world = world();
    world.run(&["hi"]).ok();
    let trace = world.cli(&["plugin", "trace"]).ok().stdout;
    let shape: Vec<String> = trace
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<&str>>())
        .filter(|words| words[0].parse::<usize>().is_ok())
        .map(|words| {
            // Number, time since the turn's beginning, "ms", hook, plugin, outcome, time, unit, the rest.
            [&words[3..6], &words[8..]].concat().join(" ")
        })
        // The one for the title's request comes at any time.
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
        trace.contains("\n       /parts/0/text: \"hi\" -> \"hi seen\"\n"),
        "{trace}"
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

/// As clients are shown a turn, it stands in the log.
#[test]
fn what_hooks_changed_is_kept_with_its_values_and_without_secrets() {
    let world = World::new([done()]);
    let plugin = "export const P = async () => ({
        'chat.message': async (_, o) => { o.parts[0].text += ' with sk-abcdefghijklmnop' },
        'chat.params': async (_, o) => {
          o.temperature = 0.2
          o.options = { note: 'n'.repeat(5000) }
        },
      })";
    world.plugin("rules", plugin);
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({ "title": "T" })).json(200)["id"].clone();
    let session = session.as_str().unwrap();
    let parts = json!([{ "type": "text", "text": "hi" }]);
    let path = format!("/session/{session}/message");
    server.post(&path, &json!({ "parts": parts })).json(200);
    let base = format!("/outrigger/v1/conversation/{session}/turn");
    let turn = server.get(&base).json(200)[0]["id"].clone();
    let trace = server
        .get(&format!("{base}/{}", turn.as_str().unwrap()))
        .json(200);
    drop(server);
    let spans = trace["spans"].as_array().unwrap().iter();
    let hooks: Vec<&Value> = spans.filter(|it| it["kind"] == "hook").collect();
    let shown = |hook: &str| {
        let found = hooks.iter().find(|it| it["facts"]["hook"] == hook);
        found.unwrap()["values"].clone()
    };
    let whole = |value: Value| json!({ "kind": "whole", "value": value });
    assert_eq!(
        shown("chat.message"),
        json!([{ "at": "/parts/0/text", "before": whole(json!("hi")), "after": whole(json!("hi with [removed]")) }])
    );
    let params = shown("chat.params");
    let after = |at: &str| {
        let mut places = params.as_array().unwrap().iter();
        let place = places.find(|it| it["at"] == at);
        place.unwrap_or_else(|| panic!("{at}: {params}"))["after"].clone()
    };
    assert_eq!(after("/temperature"), whole(json!(0.2)));
    let note = after("/options/note");
    assert_eq!(
        (&note["kind"], &note["bytes"]),
        (&json!("excerpt"), &json!(5000))
    );
    assert!(note["text"].as_str().unwrap().len() <= 2048);
    let records = world.cli(&["plugin", "trace", "--json", session]).ok();
    let text = &records.stdout;
    assert!(!text.contains("sk-abcdefgh"), "{text}");
    let stored = records.json();
    let of_turn = stored
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["turn"] == trace["turn"]["id"]);
    let stored: Vec<Value> = of_turn
        .filter_map(|it| Some(it["values"].get("places")?.clone()))
        .collect();
    let shown = hooks.iter().filter_map(|it| it.get("values").cloned());
    assert_eq!(shown.collect::<Vec<_>>(), stored);
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
    let answer: Value = server.get("/outrigger/plugin").json(200);
    assert_eq!(answer["plugins"][0]["id"], "rules");
    assert_eq!(answer["perf"][0]["hook"], "chat.params");
    let screen = world
        .cli(&["plugin", "top", &server.url(), "--once"])
        .ok()
        .stdout;
    for word in ["rules", "active", "chat.params"] {
        assert!(screen.contains(word), "{screen}");
    }
}

/// Removes figures, process numbers and times.
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
    // A busy machine takes seconds instead of milliseconds.
    let lines: Vec<String> = out
        .lines()
        .filter(|line| !line.contains("each start waits"))
        .map(|line| line.replace("N s ", "N ms "))
        .collect();
    lines.join("\n")
}

#[test]
fn the_doctor_says_what_plugins_cost_and_how_the_flags_stand() {
    let world = world();
    world.plugin(
        "slow",
        "export const P = async () => ({ 'chat.message': () => new Promise(() => {}) })",
    );
    granting(
        &world,
        "[plugins.slow]\ntimeout_ms = 300\n[flags]\nplugin_seq_hooks = false\n",
    );
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
        "note flag         plugin_seq_hooks off (HOME/.config/outrigger/outrigger.toml:N:N)",
        "ok   flag         plugin_timeout_self_heal on (default)",
        "note flag         plugin_circuit_breaker off (environment OUTRIGGER_FLAGS_PLUGIN_CIRCUIT_BREAKER)",
    ] {
        assert!(flags.lines().any(|shown| shown == line), "{line}\n{flags}");
    }
    insta::assert_snapshot!(part("cost "), @r#"
    note cost         slow: N ms of a turn at pN, N ms at pN, over N turn; most of it in chat.message
                      N ms to load; its process holds N MiB and used N ms of CPU to start
                      of N call: N timeout, N restart
                      was given a process of its own: slow (chat.message) did not answer within N ms
                      last restart: slow (chat.message) did not answer within N ms
                      hint: chat.message missed its deadline once: give it more time ([plugins."slow"] timeout_ms) if it is only slow, else disable it (disabled = true) and tell its author
    ok   cost         rules: N ms of a turn at pN, N ms at pN, over N turn; most of it in chat.params
                      N ms to load; its process holds N MiB and used N ms of CPU to start
                      of N calls: N error
                      its process was shared and was ended for the faults of others: N restart by slow
    "#);
    let mut command = world.command(&["--print-logs", "plugin", "list"]);
    command.env("OUTRIGGER_FLAGS_PLUGIN_CIRCUIT_BREAKER", "off");
    let log = world.start(command).end().ok().stderr;
    let line = log
        .lines()
        .find(|line| line.contains("[plugin-perf] flags"))
        .unwrap_or_default();
    assert!(
        line.contains(
            "plugin_circuit_breaker=off (environment OUTRIGGER_FLAGS_PLUGIN_CIRCUIT_BREAKER)"
        ) && line.contains("plugin_timeout_self_heal=on"),
        "{log}"
    );
}

/// Writing them needs no log level for everything else (A12).
#[test]
fn the_lines_of_the_plugin_log_can_be_written_alone() {
    let bash = || {
        turn([call(
            "bash",
            json!({ "command": "date", "description": "x" }),
        )])
    };
    let world = World::new([bash(), done(), bash(), done()]);
    world.plugin("rules", PLUGIN);
    world.plugin(
        "late",
        "export const P = async () => ({ 'message.completed': () => new Promise((done) => setTimeout(done, 100)) })",
    );
    let only = [("OUTRIGGER_LOG", "plugin::perf=debug,plugin::seq=debug")];
    let said = world.run_with(&only, &["hi"]).ok().stderr;
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim_start)
        .filter(|line| {
            ["DEBUG", "INFO", "WARN"]
                .iter()
                .any(|level| line.starts_with(level))
        })
        .collect();
    assert!(
        lines.iter().all(|line| line.contains(" [plugin-")),
        "{said}"
    );
    let seq = lines
        .iter()
        .find(|line| line.contains("[plugin-seq] turn=trn_"));
    assert!(
        seq.is_some_and(|line| line.contains("chat.message(rules)")),
        "{said}"
    );
    // The line is written once plugins have been notified of the whole turn, and an equal turn has an equal line (A2).
    let sequence = |said: &str| {
        let line = said.lines().find(|line| line.contains("[plugin-seq]"));
        let (_, rest) = line.unwrap().split_once(" sequence=").unwrap();
        let (asked, notified) = rest.split_once(" notified=").unwrap();
        (asked.to_owned(), notified.to_owned())
    };
    let (asked, notified) = sequence(&said);
    assert_eq!(
        notified.matches("message.completed(late").count(),
        1,
        "{notified}"
    );
    assert!(
        notified.contains("message.completed(late,late)"),
        "{notified}"
    );
    let equal = world.run_with(&only, &["hi"]).ok().stderr;
    assert_eq!(sequence(&equal), (asked, notified));
    let perf = lines
        .iter()
        .find(|line| line.contains("event=chat.message "))
        .copied()
        .unwrap_or_default();
    let bytes = |key: &str| {
        let value = perf
            .split_whitespace()
            .find_map(|word| word.strip_prefix(key));
        value.and_then(|value| value.parse::<u64>().ok())
    };
    assert!(
        perf.contains(" plugin=rules ")
            && perf.contains(" way=inline ")
            && perf.ends_with(" outcome=ok"),
        "{said}"
    );
    assert!(
        bytes("sent_bytes=") > Some(0) && bytes("sent_bytes=") == bytes("payload_bytes="),
        "{perf}"
    );
    // By the name of both, with the warnings.
    let both = [("OUTRIGGER_LOG", "warn,plugin=debug")];
    let said = world.run_with(&both, &["-c", "again"]).ok().stderr;
    assert!(
        said.contains("[plugin-perf]") && said.contains("[plugin-seq]"),
        "{said}"
    );
    // A changed flag is reported once at the level that everyone sees, and is in the audit.
    let off = [("OUTRIGGER_FLAGS_PLUGIN_SEQ_HOOKS", "false")];
    let said = [(), ()].map(|()| world.run_with(&off, &["-c", "more"]).ok().stderr);
    let line = "[flags] plugin_seq_hooks is off since this start (environment OUTRIGGER_FLAGS_PLUGIN_SEQ_HOOKS)";
    assert!(
        said[0].contains(line) && !said[1].contains(line),
        "{said:?}"
    );
    let listed = world
        .cli(&[
            "audit",
            "list",
            "--kind",
            "life_cycle",
            "--json",
            "-n",
            "1000",
        ])
        .ok()
        .stdout;
    assert_eq!(
        listed.matches("flag plugin_seq_hooks").count(),
        1,
        "{listed}"
    );
}

/// A plugin's CPU time is shown as its own, even long after its process has ended, and plugins of the same process are
/// not blamed.
#[test]
fn the_doctor_tells_whose_cpu_time_and_restarts_were() {
    let world = World::new([done()]);
    world.plugin(
        "spins",
        "export const S = async () => ({ 'chat.message': () => { for (;;) {} } })",
    );
    world.plugin("works", "export const W = async () => ({ 'chat.params': () => { const begin = process.cpuUsage().user; while (process.cpuUsage().user < begin + 400_000) {} } })");
    world.plugin(
        "good",
        "export const G = async () => ({ 'chat.headers': async () => {} })",
    );
    granting(&world, "[deadlines]\nnormal_ms = 3000\n");
    world.run(&["hi"]).ok();
    let said = world.cli(&["doctor"]).ok().stdout;
    let of = |name: &str| {
        let start = said
            .find(&format!("cost         {name}: "))
            .unwrap_or_else(|| panic!("{said}"));
        let rest = &said[start + 4..];
        let end = rest.find("cost         ").unwrap_or(rest.len());
        rest[..end].to_owned()
    };
    for (name, own) in [("spins", true), ("works", true), ("good", false)] {
        assert_eq!(of(name).contains("its own code used"), own, "{said}");
        let others = "for the faults of others: 1 restart by spins";
        assert_eq!(of(name).contains(others), name != "spins", "{said}");
    }
    assert!(of("spins").contains("1 timeout, 1 restart"), "{said}");
    let records = world.cli(&["plugin", "trace", "--json"]).ok().json();
    let spent = |plugin: &str| {
        records
            .as_array()
            .unwrap()
            .iter()
            .filter(|record| record["plugin"] == plugin)
            .filter_map(|record| record["cpu_ms"].as_f64())
            .sum::<f64>()
    };
    assert!(
        spent("spins") > 100.0 && spent("works") > 200.0,
        "{records}"
    );
    assert!(spent("good") < 200.0, "{records}");
}

/// One process, and both show 99 %: the output names the plugins inside it, and says that the figures are not one
/// plugin's.
#[test]
fn who_holds_a_shared_process_is_seen_while_it_does() {
    let world = World::new([done()]);
    world.plugin(
        "spins",
        "export const S = async () => ({ 'chat.message': () => { for (;;) {} } })",
    );
    world.plugin(
        "good",
        "export const G = async () => ({ 'chat.headers': async () => {} })",
    );
    granting(&world, "[deadlines]\nnormal_ms = 30000\n");
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200);
    let id = session["id"].as_str().unwrap();
    let prompt = json!({ "parts": [{ "type": "text", "text": "hi" }] });
    server.post(&format!("/session/{id}/prompt_async"), &prompt);
    let top = ["plugin", "top", &server.url(), "--once"];
    let row = |screen: &str, name: &str| {
        screen
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_default()
            .to_owned()
    };
    let mut screen = String::new();
    let seen = wait_until(WAIT_TIMEOUT, || {
        screen = world.cli(&top).ok().stdout;
        row(&screen, "spins").contains("in chat.message now")
            && row(&screen, "spins").contains(" s ")
    });
    assert!(seen, "{screen}");
    assert!(!row(&screen, "good").contains(" now"), "{screen}");
    assert!(row(&screen, "good").contains(" 0.00 ms "), "{screen}");
    for name in ["spins", "good"] {
        assert!(row(&screen, name).contains("MiB*"), "{screen}");
    }
    assert!(
        screen.contains("\n* of a process that several plugins share"),
        "{screen}"
    );
}
