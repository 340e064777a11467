//! Problems that no call deadline detects, and that are not a plugin's fault: a process that holds events up, a start that
//! fails once, the same hook of two sessions at a time.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use outrigger_config::settings::Isolation;
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::{Notice, PipelineContext, Plugins, Stage};
use outrigger_protocol::event::BusEvent;
use outrigger_protocol::turn::HookPayload;
use serde_json::json;

use crate::support::*;

const EAR: &str = r#"
    const heard = []
    export default async () => ({
        event: async ({ event }) => void heard.push(event.id),
        "experimental.chat.system.transform": async (_, output) => void output.system.push(...heard.splice(0)) })"#;

fn idle(n: usize) -> BusEvent {
    let event = json!({"id": format!("e{n}"), "type": "session.idle", "properties": {"sessionID": "ses_1"}});
    serde_json::from_value(event).unwrap()
}

fn apart(project: &Project) -> Vec<String> {
    let notices = project.notices.lock().unwrap();
    notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Quarantine { plugin, cause } => Some(format!("{plugin}: {cause}")),
            _ => None,
        })
        .collect()
}

/// Nobody calls a hook of these two, so there is no deadline to miss; and a process that sleeps uses no CPU.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_hook_that_blocks_is_found_without_a_call() {
    let mut project = Project::new();
    project.settings.deadlines.normal = Duration::from_millis(500);
    project.hook_deadline("ear", PLENTY);
    let sleeper = r#"export default async () => ({ event: async ({ event }) => {
        if (event.id === "e1") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) } })"#;
    let specs = vec![
        project.plugin("sleeper", sleeper),
        project.plugin("ear", EAR),
    ];
    let plugins = project.load(specs).await;
    plugins.events(&[idle(1)]);
    plugins.events(&[idle(2)]);
    wait_for("the sleeper has a process of its own", || {
        !apart(&project).is_empty()
    })
    .await;
    assert_eq!(
        apart(&project),
        ["sleeper: sleeper (event) did not release the thread for 500 ms, while events waited"]
    );
    plugins.events(&[idle(3)]);
    let heard = system(&plugins).await;
    assert_eq!(heard.records[0].outcome.name(), "ok");
    let heard = heard.outputs[0]["system"].to_string();
    assert!(heard.contains("e3"), "{heard}");
}

/// Bun that says nothing at all as long as there is a file.
fn unlucky_bun(project: &mut Project) -> Option<std::path::PathBuf> {
    let bun = project.runtimes.bun.clone()?;
    let (script, flag) = (project.path("bun"), project.path("mute"));
    let text = format!(
        "#!/bin/sh\n[ -e {flag} ] && rm {flag} && exec sleep 60\nexec {bun} \"$@\"\n",
        flag = flag.display(),
        bun = bun.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    project.runtimes.bun = Some(script);
    // The script starts another program, which the sandbox would refuse.
    project.settings.sandbox = false;
    Some(flag)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_once_is_tried_again() {
    let mut project = Project::new();
    project.settings.deadlines.load = 2 * HANGS;
    let Some(mute) = unlucky_bun(&mut project) else {
        return skip("Bun");
    };
    let plugins = project
        .load(vec![project.plugin("good", &appender("good"))])
        .await;
    assert_eq!(status(&plugins, "good").stage, Stage::Active);
    std::fs::write(&mute, "").unwrap();
    let pid = status(&plugins, "good").pid.unwrap().to_string();
    let spec = outrigger_sandbox::Spec::new("/bin/kill").args(["-9", pid.as_str()]);
    let spawner = outrigger_sandbox::Spawner::new().unwrap();
    spawner.spawn(spec).await.unwrap().wait().await.unwrap();
    wait_for("it was started in vain", || !mute.exists()).await;
    wait_for("it is there again", || {
        let status = status(&plugins, "good");
        status.stage == Stage::Active && status.generation >= 3
    })
    .await;
    assert_eq!(system(&plugins).await.records[0].outcome.name(), "ok");
    let notices = project.notices.lock().unwrap();
    let said = notices.iter().any(|notice| {
        matches!(notice, Notice::Restart { cause, .. } if cause.contains("said nothing within"))
    });
    assert!(said, "{notices:?}");
}

async fn slow(plugins: &Plugins, session: &str, context: PipelineContext) -> String {
    let item = HookPayload::new(json!({ "session": session }), json!({"system": []}));
    let result = plugins
        .pipeline()
        .run(HookPoint::LlmBeforeSystem, vec![item], context)
        .await;
    result.records[0].outcome.to_string()
}

/// A is cancelled while B waits in the same hook of the same plugin, for longer than a cancelled call is given: B's call is
/// not taken for A's.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_does_not_cost_the_same_hook_of_another_session() {
    let mut project = Project::new();
    project.settings.deadlines.normal = Duration::from_secs(60);
    let plugin = r#"export default async () => ({ "experimental.chat.system.transform": ({ session }) =>
        new Promise((done) => { writeFileSync(session, ""); setTimeout(done, session === "A" ? 3000 : 8000) }) })"#;
    let plugin = &format!("import {{ writeFileSync }} from 'node:fs'\n{plugin}");
    let plugins = project.load(vec![project.plugin("slow", plugin)]).await;
    let (cancel, flag) = tokio::sync::watch::channel(false);
    let context = PipelineContext {
        cancel: Some(flag),
        ..PipelineContext::default()
    };
    let a = tokio::spawn({
        let plugins = plugins.clone();
        async move { slow(&plugins, "A", context).await }
    });
    let b = tokio::spawn({
        let plugins = plugins.clone();
        async move { slow(&plugins, "B", PipelineContext::default()).await }
    });
    wait_for("both wait", || {
        ["A", "B"]
            .iter()
            .all(|it| project.path("project").join(it).exists())
    })
    .await;
    cancel.send_replace(true);
    assert_eq!(a.await.unwrap(), "skipped");
    assert_eq!(b.await.unwrap(), "ok");
    assert_eq!(status(&plugins, "slow").generation, 1);
}

/// Nobody's fault, so that all would part; but the second one may not leave.
#[tokio::test(flavor = "multi_thread")]
async fn where_the_others_stay_together_the_first_one_leaves() {
    let mut project = Project::new();
    let timed = r#"export default async () => ({ "experimental.chat.system.transform": () =>
        new Promise((done) => { setTimeout(() => process.kill(process.pid, "SIGKILL"), 20); setTimeout(done, 5000) }) })"#;
    let specs = vec![project.plugin("timed", timed), project.plugin("b", EAR)];
    project.rules(
        "b",
        outrigger_plugins::PluginRules {
            isolation: Isolation::Shared,
            ..outrigger_plugins::PluginRules::default()
        },
    );
    let plugins = project.load(specs).await;
    assert_eq!(system(&plugins).await.records[0].outcome.name(), "lost");
    wait_for("it was split", || !apart(&project).is_empty()).await;
    let apart = apart(&project);
    assert!(apart[0].starts_with("timed: "), "{apart:?}");
    assert_eq!(status(&plugins, "b").stage, Stage::Active);
}
