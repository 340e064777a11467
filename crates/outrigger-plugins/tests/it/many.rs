//! Many concurrent calls: no answer is lost or duplicated, and each reaches its caller.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_hook_calls_at_once_get_each_its_own_answer() {
    let mut project = Project::new();
    // Work, and no hang.
    project.settings.deadlines.normal = Duration::from_secs(60);
    let echoes = |name: &str| {
        format!(
            r#"export default async () => ({{ "experimental.chat.system.transform": async (input, output) => {{
                if (input.n % 3 === 0) await new Promise((done) => setTimeout(done, input.n % 7))
                output.system.push("{name}" + input.n) }} }})"#
        )
    };
    let specs = vec![
        project.plugin("a", &echoes("a")),
        project.plugin("b", &echoes("b")),
    ];
    let plugins = project.load(specs).await;
    let calls = (0..1000).map(|n| {
        let plugins = plugins.clone();
        async move {
            let input = json!({ "n": n });
            run(&plugins, "llm.before_system", input, json!({"system": []})).await
        }
    });
    for (n, result) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!(summary(&result), format!("a{n} b{n} | a ok, b ok"));
    }
    assert_eq!(status(&plugins, "a").generation, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_requests_of_a_plugin_at_once_get_each_one_answer() {
    let mut project = Project::new();
    project.settings.deadlines.normal = Duration::from_secs(120);
    // The host answers with the path. Half are made by one hook and half by another, while a third is called.
    let asks = r#"export default async ({ serverUrl }) => {
        const ask = async (input, output) => {
            const paths = Array.from({ length: 5000 }, (_, n) => "/" + input.name + "/" + n)
            let answers = 0, wrong = 0
            await Promise.all(paths.map(async (path) => {
                const text = await (await fetch(new URL(path, serverUrl))).text()
                answers++
                if (text !== path) wrong++
            }))
            output.options = { answers, wrong }
        }
        return { "chat.params": ask, "chat.headers": async (input, output) => {
            const params = { options: {} }
            await ask(input, params)
            output.headers = { ...params.options }
        } } }"#;
    let specs = vec![
        project.plugin("asks", asks),
        project.plugin("good", &appender("good")),
    ];
    let plugins = project.load(specs).await;
    let (params, headers, good) = tokio::join!(
        run(
            &plugins,
            "chat.params",
            json!({"name": "p"}),
            json!({"options": {}})
        ),
        run(
            &plugins,
            "chat.headers",
            json!({"name": "h"}),
            json!({"headers": {}})
        ),
        async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            system(&plugins).await
        },
    );
    assert_eq!(
        params.records[0].outcome.name(),
        "ok",
        "{:?}",
        params.records
    );
    assert_eq!(
        params.outputs[0]["options"],
        json!({"answers": 5000, "wrong": 0})
    );
    assert_eq!(
        headers.outputs[0]["headers"],
        json!({"answers": 5000, "wrong": 0})
    );
    assert_eq!(summary(&good), "good1 | good ok");
    // The host was asked for each once.
    let seen = project.handler.paths.lock().unwrap();
    let different: BTreeSet<&String> = seen.iter().collect();
    assert_eq!((seen.len(), different.len()), (10_000, 10_000));
}

/// The next call after a timeout works within 2 s (A7), for the culprit and for plugins that shared its process.
#[tokio::test(flavor = "multi_thread")]
async fn the_call_after_a_timeout_works_within_two_seconds() {
    let mut project = Project::new();
    project.hook_deadline("hangs", Duration::from_millis(400));
    // It is to be called every time.
    project.settings.breaker.timeouts = 1000;
    let hangs = r#"export default async () => ({ "experimental.chat.system.transform": (input, output) => {
        if (input.fault) for (;;) {}
        output.system.push("hangs") } })"#;
    let specs = vec![
        project.plugin("hangs", hangs),
        project.plugin("good", &appender("good")),
    ];
    let plugins = project.load(specs).await;
    for round in 0..5 {
        let input = json!({"fault": true});
        run(&plugins, "llm.before_system", input, json!({"system": []})).await;
        let began = std::time::Instant::now();
        let next = system(&plugins).await;
        let took = began.elapsed();
        assert!(
            next.records
                .iter()
                .all(|record| record.outcome.name() == "ok"),
            "{round}: {:?}",
            next.records
        );
        // The requirement, times five for a busy machine.
        assert!(took < Duration::from_secs(10), "{round}: {took:?}");
    }
}
