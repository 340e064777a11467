//! Subagents of subagents, which never have more permissions than their caller.

use outrigger_test_support::model::{Mock, call, done, text, turn};
use serde_json::{Value, json};

use crate::harness::Harness;

fn task(agent: &str) -> Value {
    let args = json!({ "description": "job", "prompt": format!("Job of {agent}"), "subagent_type": agent });
    turn([call("task", args)])
}

#[tokio::test(flavor = "multi_thread")]
async fn they_go_as_deep_as_the_configuration_says() {
    let refused = "A subagent at depth 1 may not start another one: the limit is 1.";
    for (depth, published) in [(None, refused), (Some(2), "inner says done")] {
        let mut turns = vec![task("lead"), task("general")];
        turns.extend(depth.map(|_| text("inner says done")));
        turns.extend([text("outer says done"), done()]);
        let lead = json!({ "mode": "subagent", "description": "leads", "permission": { "task": "allow" } });
        let mut config = json!({ "agent": { "lead": lead } });
        if let Some(depth) = depth {
            config["subagent_depth"] = json!(depth);
        }
        let harness = Harness::new(turns, config).await;
        harness.prompt(&harness.session().await, "delegate").await;
        let answers: Vec<String> = harness
            .mock
            .requests()
            .iter()
            .filter_map(|request| request.texts("tool").pop())
            .collect();
        assert!(answers[0].contains(published), "{depth:?}: {answers:#?}");
        assert!(answers[1].contains("outer says done"), "{answers:#?}");
    }
}

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

/// Returns the answers that the model read.
fn results(h: &Harness) -> String {
    let requests = h.mock.requests();
    requests
        .iter()
        .flat_map(|request| request.texts("tool"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Runs a turn of this agent.
async fn prompt_as(h: &Harness, session: &str, agent: &str, text: &str) {
    let body = json!({ "agent": agent, "parts": [{ "type": "text", "text": text }] });
    let path = format!("/session/{session}/message");
    h.ok("POST", &path, body).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_has_no_more_than_the_agent_that_calls_it() {
    let ran = async |permission: Value, step: Value| {
        let config = json!({ "agent": { "ro": { "mode": "primary", "permission": permission } } });
        let mock = Mock::new([task("general"), step, text("done"), done()]);
        let h = Harness::unattended(mock, config, |project| {
            std::fs::create_dir(project.join("keys")).unwrap();
            std::fs::write(project.join("keys/k"), "KEYS_SECRET").unwrap();
        })
        .await;
        prompt_as(&h, &h.session().await, "ro", "go").await;
        h
    };
    let write = || {
        turn([call(
            "write",
            json!({ "filePath": "ran.txt", "content": "x" }),
        )])
    };
    for permission in [
        json!({ "bash": "deny" }),
        json!({ "bash": "ask" }),
        json!({ "bash": { "*": "allow", "echo *": "deny" } }),
        json!({ "*": "deny", "task": "allow", "read": "allow" }),
        json!({ "*": "ask", "task": "allow" }),
    ] {
        let h = ran(permission.clone(), bash("echo x > ran.txt")).await;
        assert!(!h.path("ran.txt").exists(), "{permission}");
    }
    for permission in [
        json!({ "edit": "ask" }),
        json!({ "edit": { "*": "allow", "ran.txt": "deny" } }),
        json!({ "*": "deny", "task": "allow" }),
    ] {
        let h = ran(permission.clone(), write()).await;
        assert!(!h.path("ran.txt").exists(), "{permission}");
    }
    let keys = json!({ "read": { "*": "allow", "keys/*": "deny" } });
    for step in [
        call("read", json!({ "filePath": "keys/k" })),
        call("grep", json!({ "pattern": "SECRET" })),
        call(
            "bash",
            json!({ "command": "cat keys/k", "description": "d" }),
        ),
    ] {
        let h = ran(keys.clone(), turn([step])).await;
        assert!(!results(&h).contains("KEYS_SECRET"));
    }
    // What the caller may do it may do, too.
    let allowed = json!({ "bash": { "*": "deny", "echo *": "allow" } });
    let h = ran(allowed, bash("echo x > ran.txt")).await;
    assert!(h.path("ran.txt").exists(), "{}", results(&h));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_another_agent_goes_on_with_has_that_ones_limits() {
    let config =
        json!({ "agent": { "ro": { "mode": "primary", "permission": { "bash": "deny" } } } });
    let mock = Mock::new([task("general"), text("begun"), done()]);
    let h = Harness::unattended(mock, config, |_| {}).await;
    let session = h.session().await;
    h.prompt(&session, "begin").await;
    let begun = results(&h);
    let id = begun.split('"').find(|it| it.starts_with("ses_")).unwrap();
    let args = json!({ "description": "job", "prompt": "more", "subagent_type": "general", "task_id": id });
    h.mock.when("go on", turn([call("task", args)]));
    h.mock.when("more", bash("echo x > ran.txt"));
    prompt_as(&h, &session, "ro", "go on").await;
    let results = results(&h);
    assert!(results.contains("unavailable tool 'bash'"), "{results}");
    assert!(!h.path("ran.txt").exists());
}
