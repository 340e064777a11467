//! However the channel breaks, one call is lost and the next one works (A7): a peer that only watches its reads hangs when
//! it writes, and one that only watches its deadlines is stuck with a process that sends invalid data.

use std::time::{Duration, Instant};

use outrigger_plugins::Stage;
use serde_json::json;

use crate::support::*;

/// A frame that says it has five bytes, and has them.
const NONSENSE: &str = "fs.writeSync(3, Buffer.from([0, 0, 0, 5, 0x7b, 0x7b, 0x7b, 0x7b, 0x7b]));";
/// The beginning of a frame that is larger than any.
const TOO_LARGE: &str = "fs.writeSync(3, Buffer.from([0xff, 0xff, 0xff, 0xff]));";
const NEITHER: &str = "fs.writeSync(3, '\\0\\0\\0\\x11{\"jsonrpc\":\"2.0\"}');";

fn breaking(how: &str) -> String {
    format!(
        r#"import fs from "node:fs"
        export default async () => {{
          const wait = () => new Promise(() => {{ setInterval(() => {{}}, 1000) }})
          return {{
          "experimental.chat.system.transform": async (input, output) => {{
            if (input.fault) {{ {how}; await wait() }}
            output.system.push("broken " + (input.text?.length ?? 0))
          }} }} }}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_breaks_the_channel_costs_one_call() {
    for (how, outcome, says) in [
        // The process reads nothing more, and what is sent does not fit into the socket: the write hangs.
        ("for (;;) {}", "timeout", "no answer within 3000 ms"),
        // It continues to read and never answers.
        ("", "timeout", "no answer within 3000 ms"),
        // End of file, while the process lives on.
        ("fs.closeSync(3)", "lost", ""),
        (NONSENSE, "lost", "not a JSON-RPC message"),
        (TOO_LARGE, "lost", "limit"),
        (NEITHER, "lost", "neither a method nor an id"),
        ("process.exit(3)", "lost", "exit code 3"),
        ("process.kill(process.pid, 'SIGSEGV')", "lost", "signal"),
    ] {
        let mut project = Project::new();
        // Otherwise only the end of the channel may end it, however late a busy machine notices that.
        if outcome == "timeout" {
            project.hook_deadline("broken", HANGS);
        }
        let specs = vec![
            project.plugin("broken", &breaking(how)),
            project.plugin("after", &appender("after")),
        ];
        let plugins = project.load(specs).await;
        let first = status(&plugins, "broken");
        let large = "x".repeat(8 << 20);
        let (call, behind) = tokio::join!(
            run(
                &plugins,
                "llm.before_system",
                json!({"fault": true}),
                json!({"system": []}),
            ),
            async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                run(
                    &plugins,
                    "llm.before_system",
                    json!({"text": large}),
                    json!({"system": []}),
                )
                .await
            },
        );
        let record = &call.records[0];
        assert_eq!(record.outcome.name(), outcome, "{how}: {record:?}");
        let message = record.message.as_deref().unwrap_or_default();
        assert!(message.contains(says), "{how}: {message}");
        let after = call.outputs[0]["system"].as_array().unwrap();
        assert_eq!(
            after.len(),
            1,
            "{how}: the chain goes on behind it: {after:?}"
        );
        // A call in progress with it is lost or was made after it; it never hangs.
        assert!(behind.records.len() == 2, "{how}: {:?}", behind.records);

        // Within 2 s (A7), five times that on a machine that has other things to do.
        let end = Instant::now() + WAIT_TIMEOUT;
        let next = loop {
            let next = system(&plugins).await;
            if next.records[0].outcome.name() == "ok" || Instant::now() > end {
                break next;
            }
        };
        assert_eq!(next.records[0].outcome.name(), "ok", "{how}: {next:?}");
        wait_for("it is there again", || {
            let now = status(&plugins, "broken");
            now.generation > first.generation && now.stage == Stage::Active
        })
        .await;
        plugins.dispose(Duration::from_secs(5)).await;
    }
}

/// A plugin that is frozen for a command outside the sandbox, and one that is to be started meanwhile, are neither late nor slow.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_plugin_is_not_blamed() {
    let mut project = Project::new();
    if !project.spawner.has_filters() {
        return println!("skipped: the kernel filters no system calls");
    }
    project.hook_deadline("quick", HANGS);
    let plugins = project
        .load(vec![project.plugin("quick", &appender("quick"))])
        .await;
    let (before, longer) = (status(&plugins, "quick").generation, HANGS + HANGS / 2);
    let call = || {
        run(
            &plugins,
            "llm.before_system",
            json!({}),
            json!({"system": []}),
        )
    };

    let begun = Instant::now();
    let freeze = project.spawner.freeze().await.unwrap();
    let mut calls = Box::pin(async { tokio::join!(call(), call()) });
    let frozen = Instant::now();
    assert!(tokio::time::timeout(longer, &mut calls).await.is_err());
    let frozen = frozen.elapsed();
    drop(freeze);
    let (first, second) = calls.await;
    let ran = (begun.elapsed() - frozen).as_secs_f64() * 1000.0;
    for record in [&first.records[0], &second.records[0]] {
        assert_eq!(record.outcome.name(), "ok", "{record:?}");
        assert!(record.duration_ms <= ran, "{record:?}: {ran}");
    }
    assert_eq!(status(&plugins, "quick").generation, before);
}
