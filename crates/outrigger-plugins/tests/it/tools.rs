use std::sync::{Arc, Mutex};

use outrigger_plugins::PluginToolEntry;
use outrigger_protocol::Object;
use outrigger_protocol::diagnose::Diagnose;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::*;

const TOOLS: &str = r#"import { writeFileSync } from "node:fs"
export default async () => {
  let calls = 0
  return { tool: {
    echo: { description: "says it again", args: { text: { type: "string" } },
      async execute(args, context) {
        calls++
        context.metadata({ title: "echoing", metadata: { calls } })
        await context.ask({ permission: args.permission ?? "echo", patterns: [args.text], always: ["*"], metadata: {} })
        return { title: context.sessionID, output: args.text, metadata: { calls } }
      } },
    throws: { description: "", args: {}, async execute() { throw new Error("tool says no") } },
    waits: { description: "", args: {}, execute: (_, { abort }) => new Promise((_, reject) => {
      abort.addEventListener("abort", () => reject(new Error("aborted")))
      writeFileSync("waits", "") }) },
    exits: { description: "", args: {}, async execute() { process.exit(5) } },
  } } }"#;

fn context() -> Object {
    let context = json!({"sessionID": "ses_1", "messageID": "msg_1", "callID": "call_1", "agent": "build", "directory": "/", "worktree": "/"});
    context.as_object().unwrap().clone()
}

async fn call(tools: &[PluginToolEntry], name: &str, args: Value) -> Result<String, String> {
    let tool = tools.iter().find(|tool| tool.spec.name == name).unwrap();
    match tool.runner.run(args, context(), None, |_| {}).await {
        Ok(output) => Ok(format!(
            "{} {} {}",
            output.title, output.output, output.metadata
        )),
        Err(error) => Err(format!("{}: {error}", error.code())),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_run_ask_report_fail_and_survive_a_restart() {
    let project = Project::new();
    let plugins = project.load(vec![project.plugin("kit", TOOLS)]).await;
    let tools = plugins.tools();
    let names: Vec<_> = tools
        .iter()
        .map(|t| (t.spec.name.as_str(), t.spec.source.as_str()))
        .collect();
    assert_eq!(
        names,
        ["echo", "throws", "waits", "exits"].map(|name| (name, "plugin:kit"))
    );
    assert_eq!(
        tools[0].spec.input_schema["properties"]["text"],
        json!({"type": "string"})
    );

    let number = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&number);
    let first = tools[0]
        .runner
        .run(json!({"text": "hi"}), context(), None, move |n| {
            *seen.lock().unwrap() = n
        })
        .await;
    let first = first.unwrap();
    assert_eq!(
        (first.title.as_str(), first.output.as_str()),
        ("ses_1", "hi")
    );
    let asked = project.handler.asked.lock().unwrap().remove(0);
    assert_eq!(
        (asked.call, asked.patterns),
        (*number.lock().unwrap(), vec!["hi".to_owned()])
    );
    assert_eq!(project.handler.reported.lock().unwrap()[0].call, asked.call);

    let refused = call(
        &tools,
        "echo",
        json!({"text": "x", "permission": "forbidden"}),
    )
    .await;
    assert!(
        refused
            .as_ref()
            .unwrap_err()
            .contains("refused by the test"),
        "{refused:?}"
    );
    assert_eq!(
        call(&tools, "throws", json!({})).await,
        Err("plugin.tool: tool says no".to_owned())
    );
    let lost = call(&tools, "exits", json!({})).await.unwrap_err();
    assert!(
        lost.starts_with("plugin.tool_lost") && lost.contains("exit code 5"),
        "{lost}"
    );
    // The same handle, the next process.
    assert_eq!(
        call(&tools, "echo", json!({"text": "again"})).await,
        Ok(r#"ses_1 again {"calls":1}"#.to_owned())
    );
    assert_eq!(status(&plugins, "kit").generation, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_tool_is_not_waited_for_and_one_past_its_deadline_costs_the_process() {
    let mut project = Project::new();
    project.settings.deadlines.tool = HANGS;
    let plugins = project.load(vec![project.plugin("kit", TOOLS)]).await;
    let tools = plugins.tools();
    let waits = tools.iter().find(|tool| tool.spec.name == "waits").unwrap();
    let (sender, cancel) = watch::channel(false);
    let runner = waits.runner.clone();
    let running =
        tokio::spawn(async move { runner.run(json!({}), context(), Some(cancel), |_| {}).await });
    wait_for("it waits", || project.path("project/waits").exists()).await;
    sender.send(true).unwrap();
    assert_eq!(
        running.await.unwrap().unwrap_err().code(),
        "plugin.tool_cancelled"
    );
    assert_eq!(status(&plugins, "kit").generation, 1);

    let error = waits
        .runner
        .run(json!({}), context(), None, |_| {})
        .await
        .unwrap_err();
    assert_eq!(error.code(), "plugin.tool_timeout");
    assert_eq!(
        call(&tools, "echo", json!({"text": "on"})).await,
        Ok(r#"ses_1 on {"calls":1}"#.to_owned())
    );
    assert_eq!(status(&plugins, "kit").generation, 2);
}
