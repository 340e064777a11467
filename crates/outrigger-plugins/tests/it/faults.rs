use std::time::Duration;

use outrigger_config::settings::Isolation;
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::{PluginRules, Restarts, Stage};
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::hook::Decision;
use serde_json::json;

use crate::support::*;

/// Returns a plugin that does `fault` if the input says `fault: true`, else appends its name.
fn faulty(fault: &str) -> String {
    format!(
        r#"export default async () => ({{
          "experimental.chat.system.transform": async (input, output) => {{
            if (input.fault) {{ output.system.push("half"); {fault} }}
            output.system.push("faulty")
          }} }})"#
    )
}

const SPIN: &str = "for (;;) {}";
const NEVER: &str = "await new Promise(() => {})";
const EXIT: &str = "process.exit(3)";

/// Returns the deadline for a call that is to end this way. Its other calls have it too.
fn hook_deadline(outcome: &str) -> Duration {
    if outcome == "timeout" { HANGS } else { PLENTY }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hang_or_crash_costs_one_call_and_the_chain_goes_on_behind_it() {
    for (fault, outcome, says) in [
        (SPIN, "timeout", "no answer within 3000 ms"),
        (NEVER, "timeout", "no answer within 3000 ms"),
        (EXIT, "lost", "exit code 3"),
    ] {
        let mut project = Project::new();
        project.hook_deadline("faulty", hook_deadline(outcome));
        let specs = vec![
            project.plugin("before", &appender("before")),
            project.plugin("faulty", &faulty(fault)),
            project.plugin("after", &appender("after")),
        ];
        let plugins = project.load(specs).await;
        let first = status(&plugins, "faulty");
        let result = run(
            &plugins,
            "llm.before_system",
            json!({"fault": true}),
            json!({"system": []}),
        )
        .await;
        assert_eq!(
            summary(&result),
            format!("before1 after1 | before ok, faulty {outcome}, after ok"),
            "{fault}"
        );
        let record = &result.records[1];
        assert_eq!(record.decision, Decision::FailedOpen);
        assert!(
            record.message.as_deref().unwrap().contains(says),
            "{record:?}"
        );

        // The next call works, in a process of the next generation with all plugins in it.
        assert_eq!(
            summary(&system(&plugins).await),
            "before1 faulty after2 | before ok, faulty ok, after ok",
            "{fault}"
        );
        let second = status(&plugins, "faulty");
        assert_eq!(
            (first.generation, second.generation, second.stage),
            (1, 2, Stage::Active),
            "{fault}"
        );
        assert_ne!(first.pid, second.pid);
        plugins.dispose(Duration::from_secs(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_chains_see_one_restart_and_the_right_one_is_blamed() {
    let mut project = Project::new();
    project.hook_deadline("hang", HANGS);
    let hang = r#"export default async () => ({
        "tool.execute.before": async (input) => { if (input.tool === "hang") { writeFileSync("spins", ""); for (;;) {} } } })"#;
    let hang = format!("import {{ writeFileSync }} from 'node:fs'\n{hang}");
    let specs = vec![
        project.plugin("hang", &hang),
        project.plugin("other", &appender("other")),
    ];
    let plugins = project.load(specs).await;
    let culprit = {
        let plugins = plugins.clone();
        tokio::spawn(async move {
            run(
                &plugins,
                "tool.before_call",
                json!({"tool": "hang"}),
                json!({"args": {}}),
            )
            .await
        })
    };
    // The process spins before these are sent, so their handlers are not entered.
    wait_for("it spins", || project.path("project/spins").exists()).await;
    let bystanders: Vec<_> = (0..8)
        .map(|_| {
            let plugins = plugins.clone();
            tokio::spawn(async move { system(&plugins).await })
        })
        .collect();
    let culprit = culprit.await.unwrap();
    assert_eq!(
        (
            culprit.records[0].plugin.as_str(),
            culprit.records[0].outcome.name()
        ),
        ("hang", "timeout")
    );
    assert_eq!(culprit.block, None);
    let mut answers = Vec::new();
    for bystander in bystanders {
        answers.push(summary(&bystander.await.unwrap()));
    }
    answers.sort();
    let expected: Vec<String> = (1..=8).map(|n| format!("other{n} | other ok")).collect();
    assert_eq!(answers, expected);
    assert_eq!(status(&plugins, "other").generation, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_that_hang_together_cause_one_restart() {
    let mut project = Project::new();
    project.hook_deadline("faulty", HANGS);
    let specs = vec![
        project.plugin("faulty", &faulty(NEVER)),
        project.plugin("after", &appender("after")),
    ];
    let plugins = project.load(specs).await;
    let chains: Vec<_> = (0..6)
        .map(|_| {
            let plugins = plugins.clone();
            tokio::spawn(async move {
                run(
                    &plugins,
                    "llm.before_system",
                    json!({"fault": true}),
                    json!({"system": []}),
                )
                .await
            })
        })
        .collect();
    for chain in chains {
        let result = chain.await.unwrap();
        assert_eq!(
            result.records[0].outcome.name(),
            "timeout",
            "{:?}",
            result.records[0]
        );
        assert_eq!(
            (result.records.len(), result.records[1].outcome.name()),
            (2, "ok")
        );
    }
    assert_eq!(status(&plugins, "faulty").generation, 2);
    // Each of them is a timeout, so that the breaker is open now (A8).
    let breakers = status(&plugins, "faulty").breakers;
    assert_eq!(
        breakers[0].state,
        outrigger_plugins::BreakerState::Open,
        "{breakers:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_hook_that_spins_is_blamed_for_the_call_it_holds_up() {
    let mut project = Project::new();
    project.settings.deadlines.normal = HANGS;
    let ear = "export default async () => ({ event: () => { for (;;) {} } })";
    let plugins = project
        .load(vec![
            project.plugin("ear", ear),
            project.plugin("a", &appender("a")),
        ])
        .await;
    let idle = BusEvent {
        id: "evt_1".into(),
        event: Event::SessionIdle {
            session_id: "ses_1".into(),
        },
    };
    plugins.events(&[idle]);
    assert_eq!(summary(&system(&plugins).await), "a1 | a ok");
    assert_eq!(status(&plugins, "a").generation, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_keeps_failing_is_off_with_the_cause_and_others_run() {
    let mut project = Project::new();
    project.settings.restarts = Restarts {
        most: 2,
        within: Duration::from_secs(300),
    };
    project.rules(
        "good",
        PluginRules {
            isolation: Isolation::Own,
            ..PluginRules::default()
        },
    );
    let specs = vec![
        project.plugin("faulty", &faulty(EXIT)),
        project.plugin("good", &appender("good")),
    ];
    let plugins = project.load(specs).await;
    for round in 1..=4 {
        let result = run(
            &plugins,
            "llm.before_system",
            json!({"fault": true}),
            json!({"system": []}),
        )
        .await;
        let faulty = if round <= 3 { "faulty lost, " } else { "" };
        assert_eq!(summary(&result), format!("good{round} | {faulty}good ok"));
        if round == 3 {
            // The restart that is refused is tried after the chain.
            wait_for("it is off", || {
                status(&plugins, "faulty").stage == Stage::Off
            })
            .await;
        }
    }
    let off = status(&plugins, "faulty");
    assert_eq!(
        (off.cause.as_ref().unwrap().code.as_str(), off.pid),
        ("plugin.off", None)
    );
    let text = off.cause.unwrap().message;
    assert!(
        text.contains("after 2 restarts")
            && text.contains("faulty (experimental.chat.system.transform)"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_security_critical_plugin_that_hangs_refuses() {
    let mut project = Project::new();
    project.rules(
        "guard",
        PluginRules {
            fail_closed: vec!["tool.execute.before".into()],
            hook_deadline: Some(HANGS),
            ..PluginRules::default()
        },
    );
    let guard = "export default async () => ({ 'tool.execute.before': async () => { await new Promise(() => {}) } })";
    let plugins = project.load(vec![project.plugin("guard", guard)]).await;
    let result = run(
        &plugins,
        "tool.before_call",
        json!({"tool": "bash"}),
        json!({"args": {}}),
    )
    .await;
    assert_eq!(result.block.unwrap().code, "hook.failed_closed");
    assert_eq!(result.records[0].decision, Decision::FailedClosed);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_self_healing_off_a_timeout_leaves_the_process_alone() {
    let mut project = Project::new();
    project.settings.self_heal = false;
    project.hook_deadline("faulty", HANGS);
    let plugins = project
        .load(vec![project.plugin("faulty", &faulty(NEVER))])
        .await;
    let result = run(
        &plugins,
        "llm.before_system",
        json!({"fault": true}),
        json!({"system": []}),
    )
    .await;
    assert_eq!(summary(&result), " | faulty timeout");
    assert_eq!(summary(&system(&plugins).await), "faulty | faulty ok");
    assert_eq!(status(&plugins, "faulty").generation, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_hook_that_keeps_spinning_ends_up_off() {
    let mut project = Project::new();
    project.settings.deadlines.normal = HANGS;
    let ear = r#"export default async () => ({ event: () => { for (;;) {} },
        "experimental.chat.system.transform": (_, output) => void output.system.push("ear") })"#;
    let plugins = project
        .load(vec![
            project.plugin("ear", ear),
            project.plugin("a", &appender("a")),
        ])
        .await;
    let mut rounds = 0;
    while status(&plugins, "ear").stage != Stage::Off {
        rounds += 1;
        assert!(rounds < 8, "{:?}", status(&plugins, "ear"));
        let idle = BusEvent {
            id: "evt_1".into(),
            event: Event::SessionIdle {
                session_id: "ses_1".into(),
            },
        };
        plugins.events(&[idle]);
        let result = system(&plugins).await;
        let a = result.records.iter().find(|r| r.plugin.as_str() == "a");
        assert_eq!(a.unwrap().outcome.name(), "ok");
    }
    assert_eq!(
        summary(&system(&plugins).await),
        "a1 | a ok".replace('1', &(rounds + 1).to_string())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_after_it_was_cancelled_costs_its_process() {
    let project = Project::new();
    let begins = faulty(&format!("writeFileSync('begun', ''); {NEVER}"));
    let begins = format!("import {{ writeFileSync }} from 'node:fs'\n{begins}");
    let plugins = project.load(vec![project.plugin("faulty", &begins)]).await;
    let (sender, flag) = tokio::sync::watch::channel(false);
    let item =
        outrigger_protocol::turn::HookPayload::new(json!({"fault": true}), json!({"system": []}));
    let context = outrigger_plugins::PipelineContext {
        cancel: Some(flag),
        ..Default::default()
    };
    let chain = {
        let pipeline = plugins.pipeline();
        tokio::spawn(async move {
            pipeline
                .run(HookPoint::LlmBeforeSystem, vec![item], context)
                .await
        })
    };
    wait_for("it has begun", || project.path("project/begun").exists()).await;
    sender.send_replace(true);
    assert_eq!(summary(&chain.await.unwrap()), " | faulty skipped");
    assert_eq!(status(&plugins, "faulty").generation, 1);
    wait_for("its process is another", || {
        status(&plugins, "faulty").generation == 2
    })
    .await;
}
