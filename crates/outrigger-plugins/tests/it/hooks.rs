use std::time::Duration;

use outrigger_config::settings::Isolation;
use outrigger_kernel::hooks::{HookPoint, PointSpec};
use outrigger_plugins::{PipelineContext, PluginRules, Plugins};
use outrigger_protocol::event::{BusEvent, CustomEvent, Event};
use outrigger_protocol::hook::Decision;
use outrigger_protocol::turn::HookPayload;
use serde_json::json;
use tokio::sync::watch;

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn plugins_compose_in_load_order_and_by_priority() {
    let mut project = Project::new();
    let specs = ["a", "b", "c"].map(|name| project.plugin(name, &appender(name)));
    let plugins = project.load(specs.to_vec()).await;
    let result = system(&plugins).await;
    assert_eq!(summary(&result), "a1 b1 c1 | a ok, b ok, c ok");
    assert_eq!(
        project.stages("a"),
        "found installed starting initialised active"
    );
    let pids: Vec<_> = plugins
        .list()
        .into_iter()
        .map(|status| status.pid)
        .collect();
    assert!(
        pids.iter().all(|pid| pid.is_some() && *pid == pids[0]),
        "{pids:?}"
    );

    let record = &result.records[1];
    assert_eq!(
        (record.point.as_str(), record.hook.as_str()),
        ("llm.before_system", "experimental.chat.system.transform")
    );
    assert_eq!(
        (record.decision, record.at, record.changed.clone()),
        (
            Decision::Patch,
            1_700_000_000_000,
            vec!["/system".to_owned()]
        )
    );
    assert!(record.payload_bytes > 0);
    plugins.dispose(Duration::from_secs(5)).await;

    project.rules(
        "c",
        PluginRules {
            priority: 7,
            ..PluginRules::default()
        },
    );
    project.rules(
        "b",
        PluginRules {
            isolation: Isolation::Own,
            ..PluginRules::default()
        },
    );
    let plugins = project.load(specs.to_vec()).await;
    assert_eq!(
        summary(&system(&plugins).await),
        "c1 a1 b1 | c ok, a ok, b ok"
    );
    assert_eq!(status(&plugins, "a").pid, status(&plugins, "c").pid);
    assert_ne!(status(&plugins, "a").pid, status(&plugins, "b").pid);
    plugins.dispose(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spellings_without_experimental_are_called_once_and_in_order() {
    let project = Project::new();
    let alias = r#"export default async () => ({
        "chat.system.transform": async (_, output) => { output.system.push("alias") } })"#;
    let both = r#"export default async () => ({
        "chat.system.transform": async (_, output) => { output.system.push("never") },
        "experimental.chat.system.transform": async (_, output) => { output.system.push("both") } })"#;
    let specs = vec![
        project.plugin("first", &appender("first")),
        project.plugin("alias", alias),
        project.plugin("both", both),
    ];
    let plugins = project.load(specs).await;
    assert_eq!(
        summary(&system(&plugins).await),
        "first1 alias both | first ok, alias ok, both ok"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_handlers_nothing_is_started_and_outputs_come_back_as_they_went() {
    let plugins = Plugins::none();
    assert!(!plugins.pipeline().has(HookPoint::LlmBeforeParams));
    let item = |n: i32| HookPayload::new(json!({}), json!({ "n": n }));
    let result = plugins
        .pipeline()
        .run(
            HookPoint::LlmToolDefinition,
            vec![item(1), item(2)],
            PipelineContext::default(),
        )
        .await;
    assert_eq!(
        (result.outputs, result.records.len()),
        (vec![json!({"n": 1}), json!({"n": 2})], 0)
    );
    let nobodys = PointSpec {
        name: "acme/deploy.before",
        ..*HookPoint::LlmToolDefinition.spec()
    };
    let nobodys = HookPoint::Declared(Box::leak(Box::new(nobodys)));
    let result = plugins
        .pipeline()
        .run(nobodys, vec![item(3)], PipelineContext::default())
        .await;
    assert_eq!(result.outputs, [json!({"n": 3})]);
    assert!(plugins.list().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throw_refuses_a_tool_and_nobody_behind_it_is_called() {
    let project = Project::new();
    let rewrite = r#"export default async () => ({
        "tool.execute.before": async (_, output) => { output.args.command = "ls" } })"#;
    let guard = r#"export default async () => ({
        "tool.execute.before": async (_, output) => { if (output.args.command === "ls") throw new Error("no ls here") } })"#;
    let behind = r#"import { writeFileSync } from "node:fs"
        export default async () => ({ "tool.execute.before": async () => { writeFileSync("called", "") } })"#;
    let specs = vec![
        project.plugin("rewrite", rewrite),
        project.plugin("guard", guard),
        project.plugin("behind", behind),
    ];
    let plugins = project.load(specs).await;
    let input = json!({"tool": "bash", "sessionID": "ses_1", "callID": "call_1"});
    let result = run(
        &plugins,
        "tool.before_call",
        input,
        json!({"args": {"command": "rm"}}),
    )
    .await;
    let block = result.block.unwrap();
    assert_eq!(
        (block.code.as_str(), block.message.as_str()),
        ("hook.threw", "no ls here")
    );
    let decisions: Vec<_> = result
        .records
        .iter()
        .map(|r| (r.plugin.as_str(), r.decision))
        .collect();
    assert_eq!(
        decisions,
        [("rewrite", Decision::Patch), ("guard", Decision::Block)]
    );
    assert!(!project.path("project/called").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_items_is_one_request_and_a_throw_elsewhere_is_passed_over() {
    let project = Project::new();
    let name = r#"export default async () => ({
        "tool.definition": async (input, output) => { output.description += " of " + input.toolID } })"#;
    let broken = r#"export default async () => ({
        "tool.definition": async (_, output) => { output.description = "gone"; throw new Error("late") } })"#;
    let plugins = project
        .load(vec![
            project.plugin("broken", broken),
            project.plugin("name", name),
        ])
        .await;
    let item = |id: &str| {
        HookPayload::new(
            json!({"toolID": id}),
            json!({"description": "tool", "parameters": {}}),
        )
    };
    let items = vec![item("bash"), item("read")];
    let result = plugins
        .pipeline()
        .run(
            HookPoint::LlmToolDefinition,
            items,
            PipelineContext::default(),
        )
        .await;
    let texts: Vec<_> = result
        .outputs
        .iter()
        .map(|o| o["description"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["tool of bash", "tool of read"]);
    let decisions: Vec<_> = result.records.iter().map(|r| r.decision).collect();
    assert_eq!(decisions, [Decision::FailedOpen, Decision::Patch]);
    assert_eq!(result.records[0].message.as_deref(), Some("late"));
}

#[tokio::test(flavor = "multi_thread")]
async fn config_is_changed_by_one_plugin_after_another_and_a_throw_is_no_harm() {
    let project = Project::new();
    let add = r#"export default async (_, options) => ({
        config: async (config) => { config.agent = { ...config.agent, [options.name]: {} } } })"#;
    let throws = "export default async () => ({ config: async () => { throw new Error('x') } })";
    let mut first = project.plugin("one", add);
    first.options = Some(json!({"name": "one"}));
    let mut second = project.plugin("two", add);
    second.options = Some(json!({"name": "two"}));
    let plugins = project
        .load(vec![first, project.plugin("throws", throws), second])
        .await;
    let (config, _) = plugins.configure(json!({"model": "x/y"})).await;
    assert_eq!(
        config,
        json!({"model": "x/y", "agent": {"one": {}, "two": {}}})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_order_and_before_any_later_call() {
    let project = Project::new();
    let source = r#"export default async () => {
        const seen = []
        return {
          event: async ({ event }) => { seen.push(event.properties.n) },
          "experimental.chat.system.transform": async (_, output) => { output.system.push(seen.join(",")) },
        } }"#;
    let plugins = project.load(vec![project.plugin("ear", source)]).await;
    let event = |n: u64| BusEvent {
        id: format!("evt_{n}").into(),
        event: Event::Custom(CustomEvent {
            depth: 0,
            kind: "acme.tick".into(),
            properties: [("n".to_owned(), json!(n))].into_iter().collect(),
        }),
    };
    for n in 0..200 {
        plugins.events(&[event(2 * n), event(2 * n + 1)]);
    }
    let expected: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    assert_eq!(
        summary(&system(&plugins).await),
        format!("{} | ear ok", expected.join(","))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_chain_ends_at_once_and_the_process_stays() {
    let mut project = Project::new();
    project.settings.deadlines.normal = Duration::from_secs(60);
    let slow = r#"import { writeFileSync } from "node:fs"
        export default async () => {
        let first = true
        return { "experimental.chat.system.transform": async () => {
            if (first) { first = false; writeFileSync("begun", ""); await new Promise(() => {}) } } } }"#;
    let plugins = project
        .load(vec![
            project.plugin("slow", slow),
            project.plugin("next", &appender("next")),
        ])
        .await;
    let (sender, cancel) = watch::channel(false);
    let context = PipelineContext {
        cancel: Some(cancel),
        ..PipelineContext::default()
    };
    let item = HookPayload::new(json!({}), json!({"system": []}));
    let pipeline = plugins.pipeline();
    let chain = tokio::spawn(async move {
        pipeline
            .run(HookPoint::LlmBeforeSystem, vec![item], context)
            .await
    });
    wait_for("it hangs", || project.path("project/begun").exists()).await;
    sender.send(true).unwrap();
    assert_eq!(
        summary(&chain.await.unwrap()),
        " | slow skipped, next skipped"
    );
    assert_eq!(summary(&system(&plugins).await), "next1 | slow ok, next ok");
    assert_eq!(status(&plugins, "slow").generation, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn dispose_is_awaited_and_ends_the_process() {
    let project = Project::new();
    let source = r#"import { writeFileSync } from "node:fs"
        export default async () => ({ dispose: async () => { await new Promise((r) => setTimeout(r, 50)); writeFileSync("disposed", "") } })"#;
    let plugins = project.load(vec![project.plugin("last", source)]).await;
    let pid = status(&plugins, "last").pid.unwrap();
    plugins.dispose(PLENTY).await;
    assert!(project.path("project/disposed").exists());
    // It is reaped a moment after it has ended.
    wait_for("it is reaped", || {
        outrigger_sandbox::start_time(pid).is_none()
    })
    .await;
    let result = system(&plugins).await;
    assert!(result.records.is_empty());
}

/// C2: what a handler returns is an answer, as a throw and a changed output are; what is not allowed has no effect and is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_be_returned() {
    let project = Project::new();
    let source = r#"export default async () => ({
        "chat.params": async () => ({ action: "patch", patch: { options: { set: 1 }, temperature: null } }),
        "chat.headers": async () => ({ action: "block", code: "rules.no", message: "not here" }),
        "llm.before_request": () => ({ action: "block", code: "rules.no", message: "not this one", details: { rule: 7 } }),
        "experimental.text.complete": async () => ({ action: "continue" }),
        "experimental.chat.system.transform": async () => ({ action: "patch", patch: 7 }),
    })"#;
    let plugins = project.load(vec![project.plugin("says", source)]).await;
    let said = async |point: &str, output: serde_json::Value| {
        let result = run(&plugins, point, json!({}), output).await;
        let record = &result.records[0];
        let block = result
            .block
            .map(|it| json!([it.code, it.message, it.details]));
        json!([
            record.outcome.name(),
            record.audit.refused,
            block,
            result.outputs[0]
        ])
    };
    let params = json!({ "temperature": 1, "options": {} });
    assert_eq!(
        said("llm.before_params", params).await,
        json!(["ok", null, null, { "options": { "set": 1 } }])
    );
    let blocked = said(
        "llm.before_request",
        json!({ "messages": [], "tools": [], "params": {} }),
    )
    .await;
    assert_eq!(
        blocked[2],
        json!(["rules.no", "not this one", { "rule": 7 }])
    );
    // Nothing is refused at this point: the answer has no effect, and is recorded.
    let refused = said("llm.before_headers", json!({ "headers": {} })).await;
    assert_eq!(
        (&refused[2], &refused[3]),
        (&json!(null), &json!({ "headers": {} }))
    );
    assert_ne!(refused[1], json!(null), "{refused}");
    let nothing = said("llm.after_text", json!({ "text": "x" })).await;
    assert_eq!(nothing, json!(["ok", null, null, { "text": "x" }]));
    let wrong = said("llm.before_system", json!({ "system": [] })).await;
    assert_eq!(
        (&wrong[0], &wrong[3]),
        (&json!("error"), &json!({ "system": [] }))
    );
}
