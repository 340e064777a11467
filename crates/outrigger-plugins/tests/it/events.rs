//! Events on their way to plugins: in order, and none lost silently.

use outrigger_plugins::Plugins;
use outrigger_protocol::event::BusEvent;
use serde_json::json;

use crate::support::*;

/// Records what it hears, and returns it in its hook.
const EAR: &str = r#"
    import { writeFileSync } from "node:fs"
    const heard = []
    export default async () => ({
        event: async ({ event }) => {
            if (event.type === "outrigger.events.dropped") heard.push("dropped " + event.properties.count)
            else if (event.type === "message.part.delta") heard.push(event.properties.partID + "+" + event.properties.delta.length)
            else heard.push(event.id)
        },
        "experimental.chat.system.transform": async (input, output) => {
            if (input.fault === "exit") process.exit(3)
            if (input.fault === "spin") { writeFileSync("spins", ""); for (;;) {} }
            output.system.push(...heard.splice(0)) } })"#;

fn idle(n: usize) -> BusEvent {
    let event = json!({"id": format!("e{n}"), "type": "session.idle", "properties": {"sessionID": "ses_1"}});
    serde_json::from_value(event).unwrap()
}

fn delta(part: &str, text: &str) -> BusEvent {
    let event = json!({"id": "d", "type": "message.part.delta", "properties": {
        "sessionID": "ses_1", "messageID": "msg_1", "partID": part, "field": "text", "delta": text}});
    serde_json::from_value(event).unwrap()
}

async fn fault(plugins: &Plugins, fault: &str) -> String {
    let input = json!({ "fault": fault });
    let result = run(plugins, "llm.before_system", input, json!({"system": []})).await;
    result.records[0].outcome.to_string()
}

async fn heard(plugins: &Plugins) -> String {
    let result = system(plugins).await;
    assert_eq!(
        result.records[0].outcome.name(),
        "ok",
        "{:?}",
        result.records
    );
    system_texts(&result)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_while_a_process_is_started_again_waits_in_order() {
    let project = Project::new();
    let plugins = project.load(vec![project.plugin("ear", EAR)]).await;
    plugins.events(&[idle(1)]);
    assert_eq!(heard(&plugins).await, "e1");
    assert_eq!(fault(&plugins, "exit").await, "lost");
    // It is restarting.
    plugins.events(&[idle(2), idle(3)]);
    plugins.events(&[idle(4)]);
    assert_eq!(heard(&plugins).await, "e2 e3 e4");
    assert_eq!(status(&plugins, "ear").events_missed, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_had_not_heard_when_it_was_ended_is_counted_and_reported() {
    let mut project = Project::new();
    project.hook_deadline("ear", HANGS);
    let plugins = project.load(vec![project.plugin("ear", EAR)]).await;
    let spins = {
        let plugins = plugins.clone();
        tokio::spawn(async move { fault(&plugins, "spin").await })
    };
    wait_for("it spins", || project.path("project/spins").exists()).await;
    // In the socket of a process that will not read them.
    plugins.events(&[idle(1), idle(2)]);
    plugins.events(&[idle(3)]);
    assert_eq!(spins.await.unwrap(), "timeout");
    // The report of lost events comes with the next event, not separately.
    assert_eq!(heard(&plugins).await, "");
    plugins.events(&[idle(4)]);
    assert_eq!(heard(&plugins).await, "dropped 3 e4");
    assert_eq!(status(&plugins, "ear").events_missed, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_queue_is_put_together_and_bounded_and_its_plugins_are_notified() {
    let project = Project::new();
    // Its start is slow.
    let slow = EAR.replace(
        "async () => ({\n        event:",
        "async () => (await new Promise((done) => setTimeout(done, 2500)), {\n        event:",
    );
    assert_ne!(slow, EAR);
    let plugins = project.load(vec![project.plugin("ear", &slow)]).await;
    assert_eq!(fault(&plugins, "exit").await, "lost");
    for n in 0..1500 {
        plugins.events(&[idle(n)]);
    }
    for _ in 0..2_000 {
        plugins.events(&[delta("prt_a", "xy"), delta("prt_b", "z")]);
    }
    wait_for("it is there", || status(&plugins, "ear").pid.is_some()).await;
    let received = heard(&plugins).await;
    let (whole, deltas) = received.split_at(received.find("prt_").unwrap_or(received.len()));
    assert_eq!(whole.split_whitespace().count(), 1500);
    assert_eq!(deltas, "prt_a+4000 prt_b+2000");

    assert_eq!(fault(&plugins, "exit").await, "lost");
    for n in 0..10_005 {
        plugins.events(&[idle(n)]);
    }
    wait_for("it is there", || status(&plugins, "ear").pid.is_some()).await;
    let received = heard(&plugins).await;
    assert!(
        received.starts_with("dropped 5 e5 e6 "),
        "{}",
        &received[..60]
    );
    assert!(received.ends_with(" e10004"));
    assert_eq!(status(&plugins, "ear").events_missed, 5);
}
