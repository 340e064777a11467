//! A hook that keeps timing out is skipped, retried and restored (A8, A13).

use std::time::Duration;

use outrigger_kernel::breaker::Rules;
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::{BreakerState, Notice, PipelineContext, PluginRules, Restarts, Stage};
use outrigger_protocol::hook::Decision;
use outrigger_protocol::turn::HookPayload;
use serde_json::json;

use crate::support::*;

const PAUSE: u64 = 2500;

/// Hangs if the input says so, at each of its hooks.
const SLOW: &str = r#"
    const hook = (input, output) => input.fault ? new Promise(() => {}) : void output.system?.push?.("slow")
    export default async () => ({ "experimental.chat.system.transform": hook, "chat.params": hook, "chat.headers": hook })"#;

fn project() -> Project {
    let mut project = Project::new();
    project.hook_deadline("slow", Duration::from_millis(600));
    project.settings.breaker = Rules {
        pause: PAUSE,
        ..Rules::default()
    };
    project
}

/// Returns the notices about breakers.
fn breakers(project: &Project) -> String {
    let notices = project.notices.lock().unwrap();
    notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Breaker { plugin, state, .. } => Some(format!("{plugin} {state}")),
            _ => None,
        })
        .collect::<Vec<_>>()
        .join(", ")
}

async fn call(plugins: &outrigger_plugins::Plugins, fault: bool) -> String {
    summary(
        &run(
            plugins,
            "llm.before_system",
            json!({ "fault": fault }),
            json!({"system": []}),
        )
        .await,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn it_trips_at_the_third_timeout_tries_once_and_closes() {
    let mut project = project();
    // A kill at a deadline does not count towards the restart limit: the breaker handles it.
    project.settings.restarts = Restarts {
        most: 1,
        within: Duration::from_secs(300),
    };
    let specs = vec![
        project.plugin("slow", SLOW),
        project.plugin("good", &appender("good")),
    ];
    let plugins = project.load(specs).await;
    for round in 1..=3 {
        assert_eq!(
            call(&plugins, true).await,
            format!("good{round} | slow timeout, good ok")
        );
    }
    // Open: skipped at once, and listed.
    assert_eq!(call(&plugins, true).await, "good4 | slow skipped, good ok");
    wait_for("it is started again", || {
        status(&plugins, "slow").stage == Stage::Active
    })
    .await;
    let slow = status(&plugins, "slow");
    let [breaker] = slow.breakers.as_slice() else {
        panic!("{:?}", slow.breakers)
    };
    assert_eq!(
        (breaker.hook.as_str(), breaker.state),
        ("experimental.chat.system.transform", BreakerState::Open)
    );
    // Another hook of the same plugin is called as before.
    let other = run(
        &plugins,
        "llm.before_params",
        json!({}),
        json!({"options": {}}),
    )
    .await;
    assert_eq!(other.records[0].outcome.name(), "ok");
    // The trial times out, and the breaker opens again.
    tokio::time::sleep(Duration::from_millis(PAUSE + 100)).await;
    assert_eq!(call(&plugins, true).await, "good5 | slow timeout, good ok");
    assert_eq!(call(&plugins, false).await, "good6 | slow skipped, good ok");
    // The trial succeeds, and the breaker closes.
    tokio::time::sleep(Duration::from_millis(PAUSE + 100)).await;
    assert_eq!(call(&plugins, false).await, "slow good7 | slow ok, good ok");
    assert!(status(&plugins, "slow").breakers.is_empty());
    assert_eq!(
        breakers(&project),
        "slow open, slow half open, slow open, slow half open, slow closed"
    );
    // It has its own process since its first timeout, so the other one was not restarted afterwards.
    assert_eq!(status(&plugins, "good").generation, 2);
}

/// Clients are notified of the handler that a session waits for, not of the others in its process.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_takes_long_is_reported_while_it_runs() {
    let mut project = project();
    project.hook_deadline("slow", Duration::from_secs(3));
    let specs = vec![
        project.plugin("good", &appender("good")),
        project.plugin("slow", SLOW),
    ];
    let plugins = project.load(specs).await;
    let result = plugins
        .pipeline()
        .run(
            HookPoint::parse("llm.before_system").unwrap(),
            vec![HookPayload::new(
                json!({ "fault": true }),
                json!({ "system": [] }),
            )],
            PipelineContext {
                session: Some("ses_1".into()),
                ..PipelineContext::default()
            },
        )
        .await;
    assert_eq!(summary(&result), "good1 | good ok, slow timeout");
    let notices = project.notices.lock().unwrap().clone();
    let waiting: Vec<_> = notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Waiting {
                plugin,
                hook,
                session_id,
                over,
                ..
            } => Some((plugin.as_str(), hook.as_str(), session_id.as_str(), *over)),
            _ => None,
        })
        .collect();
    let hook = "experimental.chat.system.transform";
    assert_eq!(
        waiting,
        [
            ("slow", hook, "ses_1", false),
            ("slow", hook, "ses_1", true)
        ]
    );
}

/// A8: a program that runs for one prompt does not pay the deadline of a hanging hook each time, and a plugin that held up the
/// shared process has its own from the start, until its files change.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_found_out_holds_at_the_next_starts() {
    let mut project = project();
    project.settings.breaker = Rules::default();
    project.settings.trust.changes = outrigger_config::settings::TrustChanges::Allow;
    let spec = project.plugin("slow", SLOW);
    let specs = vec![spec.clone(), project.plugin("good", &appender("good"))];
    let start = async |project: &Project| {
        let plugins = project.load(specs.clone()).await;
        let isolated = status(&plugins, "slow").pid != status(&plugins, "good").pid;
        let said = call(&plugins, true).await;
        plugins.dispose(Duration::from_secs(5)).await;
        (isolated, said)
    };
    let (mut isolated, mut said) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (apart, answer) = start(&project).await;
        isolated.push(apart);
        said.push(answer);
    }
    assert_eq!(isolated, [false, true, true, true, true]);
    let timeout = "good1 | slow timeout, good ok";
    let skipped = "good1 | slow skipped, good ok";
    assert_eq!(said, [timeout, timeout, timeout, skipped, skipped]);
    // Another project has its own records.
    std::fs::create_dir(project.path("other")).unwrap();
    project.directory = "other";
    assert_eq!(start(&project).await, (false, timeout.to_owned()));
    project.directory = "project";
    assert_eq!(start(&project).await, (true, skipped.to_owned()));
    // Another version starts over.
    project.plugin("slow", &format!("{SLOW}\n// mended"));
    assert_eq!(start(&project).await, (false, timeout.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_trial_is_under_way_other_calls_are_skipped() {
    let project = project();
    let plugins = project.load(vec![project.plugin("slow", SLOW)]).await;
    for _ in 0..3 {
        call(&plugins, true).await;
    }
    tokio::time::sleep(Duration::from_millis(PAUSE + 100)).await;
    let calls = (0..5).map(|_| call(&plugins, true));
    let mut answers = futures_util::future::join_all(calls).await;
    answers.sort();
    assert_eq!(answers[..4], [" | slow skipped"; 4].map(str::to_owned));
    assert_eq!(answers[4], " | slow timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_breaker_of_a_security_critical_hook_refuses() {
    let mut project = project();
    project.rules(
        "guard",
        PluginRules {
            fail_closed: vec!["tool.execute.before".into()],
            hook_deadline: Some(Duration::from_millis(600)),
            ..PluginRules::default()
        },
    );
    let guard =
        "export default async () => ({ 'tool.execute.before': () => new Promise(() => {}) })";
    let plugins = project.load(vec![project.plugin("guard", guard)]).await;
    for outcome in ["timeout", "timeout", "timeout", "skipped"] {
        let result = run(
            &plugins,
            "tool.before_call",
            json!({"tool": "bash"}),
            json!({"args": {}}),
        )
        .await;
        assert_eq!(result.records[0].outcome.name(), outcome);
        assert_eq!(result.records[0].decision, Decision::FailedClosed);
        assert_eq!(
            result.block.unwrap().code,
            "hook.failed_closed",
            "{outcome}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_timed_out_at_two_points_sits_out_the_turn() {
    let project = project();
    let plugins = project.load(vec![project.plugin("slow", SLOW)]).await;
    let call = async |turn: &str, point: &str, fault: bool| {
        let item = HookPayload::new(json!({ "fault": fault }), json!({}));
        let context = PipelineContext {
            turn: Some(turn.into()),
            ..PipelineContext::default()
        };
        let result = plugins
            .pipeline()
            .run(HookPoint::parse(point).unwrap(), vec![item], context)
            .await;
        let record = &result.records[0];
        match &record.message {
            Some(message) => format!("{}: {message}", record.outcome),
            None => record.outcome.to_string(),
        }
    };
    let mut seen = Vec::new();
    for (turn, point, fault) in [
        ("trn_1", "chat.params", true),
        ("trn_1", "chat.params", false),
        ("trn_1", "chat.headers", true),
        ("trn_1", "experimental.chat.system.transform", false),
        ("trn_2", "experimental.chat.system.transform", false),
    ] {
        seen.push(format!("{turn} {point} {}", call(turn, point, fault).await));
    }
    assert_eq!(
        seen.join("\n"),
        "trn_1 chat.params timeout: no answer within 600 ms\n\
         trn_1 chat.params ok\n\
         trn_1 chat.headers timeout: no answer within 600 ms\n\
         trn_1 experimental.chat.system.transform skipped: it timed out at chat.params and chat.headers in this turn and sits out the rest of it\n\
         trn_2 experimental.chat.system.transform ok"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_a_call_counts_for_the_breaker_and_for_the_limit() {
    let mut project = project();
    project.settings.restarts = Restarts {
        most: 10,
        within: Duration::from_secs(300),
    };
    let crash = "export default async () => ({ 'experimental.chat.system.transform': () => process.exit(7) })";
    let plugins = project.load(vec![project.plugin("crash", crash)]).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(summary(&system(&plugins).await));
    }
    assert_eq!(
        seen.join(";"),
        " | crash lost; | crash lost; | crash lost; | crash skipped"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_flag_off_every_call_is_made_and_the_limit_counts_timeouts() {
    let mut project = project();
    project.settings.circuit_breaker = false;
    project.settings.restarts = Restarts {
        most: 3,
        within: Duration::from_secs(300),
    };
    let plugins = project.load(vec![project.plugin("slow", SLOW)]).await;
    for _ in 0..4 {
        assert_eq!(call(&plugins, true).await, " | slow timeout");
    }
    // Reported after the switch.
    wait_for("that it is off", || {
        project.notices.lock().unwrap().iter().any(
            |notice| matches!(notice, Notice::Off { plugin, cause } if plugin == "slow" && cause.contains("3 restarts")),
        )
    })
    .await;
    assert_eq!(status(&plugins, "slow").stage, Stage::Off);
}

/// A client that disconnects in the middle of the trial must not leave the hook off forever.
#[tokio::test(flavor = "multi_thread")]
async fn a_trial_that_is_dropped_is_made_again() {
    let project = project();
    let plugins = project.load(vec![project.plugin("slow", SLOW)]).await;
    for _ in 0..3 {
        call(&plugins, true).await;
    }
    tokio::time::sleep(Duration::from_millis(PAUSE + 100)).await;
    let dropped = tokio::time::timeout(Duration::from_millis(100), call(&plugins, true)).await;
    assert!(dropped.is_err());
    assert_eq!(call(&plugins, false).await, "slow | slow ok");
    // A failed trial is reported too.
    assert_eq!(
        breakers(&project),
        "slow open, slow half open, slow open, slow half open, slow closed"
    );
}
