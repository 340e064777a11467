//! Rules of the user's hold where a project or a plugin is more precise, puts them in another order, changes a file that they take a text
//! from, or has another agent answer.

use std::fs;

use serde_json::{Value, json};

use crate::granted::granting;
use crate::support::*;

fn touch() -> Value {
    let input = json!({ "command": "touch ran.txt", "description": "x" });
    turn([call("bash", input)])
}

/// The user's settings; the project, which nobody trusts, says nothing yet.
fn users(settings: Value) -> World {
    let world = World::new([touch(), done()]);
    world.config(settings);
    world.trusts_nothing();
    world
}

fn has_run(world: &World) -> bool {
    world.run(&["do it"]);
    let ran = world.path("ran.txt").exists();
    let _ = fs::remove_file(world.path("ran.txt"));
    ran
}

#[test]
fn an_untrusted_project_is_not_more_precise_than_the_user() {
    let ask = json!({ "permission": { "bash": "ask" } });
    let of_agent =
        json!({ "agent": { "build": { "permission": { "bash": { "touch *": "deny" } } } } });
    let plain = json!({ "agent": { "build": { "permission": { "bash": "ask" } } } });
    let primary =
        json!({ "default_agent": "q", "agent": { "q": { "mode": "primary", "prompt": "p" } } });
    for (name, user, file, project) in [
        (
            "no rule",
            &ask,
            "opencode.json",
            json!({ "permission": { "bash": {} } }),
        ),
        (
            "another rule",
            &ask,
            "opencode.json",
            json!({ "permission": { "bash": { "zzz *": "deny" } } }),
        ),
        (
            "in .opencode",
            &ask,
            ".opencode/opencode.json",
            json!({ "permission": { "bash": {} } }),
        ),
        (
            "of an agent",
            &ask,
            "opencode.json",
            json!({ "agent": { "build": { "permission": { "bash": { "zzz *": "ask" } } } } }),
        ),
        (
            "of the user's agent",
            &plain,
            "opencode.json",
            json!({ "agent": { "build": { "permission": { "bash": {} } } } }),
        ),
        ("another agent", &of_agent, "opencode.json", primary),
        (
            "the agent is switched off",
            &of_agent,
            "opencode.json",
            json!({ "agent": { "build": { "disable": true } } }),
        ),
        (
            "the agent serves others",
            &of_agent,
            "opencode.json",
            json!({ "agent": { "build": { "mode": "subagent" } } }),
        ),
    ] {
        let world = users(user.clone());
        world.file(file, &project.to_string());
        assert!(!has_run(&world), "{name}");
        assert_eq!(world.parts("tool")[0]["tool"], "bash", "{name}");
    }
}

/// A trusted project may allow what it says, and no more than that.
#[test]
fn a_trusted_project_adds_to_the_users_rules() {
    let world = users(json!({ "permission": { "bash": "ask" } }));
    world.file(
        "opencode.json",
        &json!({ "permission": { "bash": { "ls *": "allow" } } }).to_string(),
    );
    world.trust(&world.project());
    assert!(!has_run(&world));
    let world = users(json!({ "permission": { "bash": "ask" } }));
    world.file(
        "opencode.json",
        &json!({ "permission": { "bash": { "touch *": "allow" } } }).to_string(),
    );
    world.trust(&world.project());
    assert!(has_run(&world));
}

/// What was trusted means what it meant: the order of rules, the rules that narrow, and what `{file:…}` says are part of it.
#[test]
fn a_change_of_what_trusted_settings_mean_is_not_trusted() {
    let rules = |text: &str| format!(r#"{{ "permission": {{ "bash": {text} }} }}"#);
    let by_file = r#"{ "permission": { "bash": "{file:./rule.txt}" } }"#;
    for (name, before, after, rule) in [
        (
            "order",
            rules(r#"{"*":"allow","touch *":"deny"}"#),
            rules(r#"{"touch *":"deny","*":"allow"}"#),
            "",
        ),
        (
            "a deny less",
            rules(r#"{"*":"allow","touch *":"deny"}"#),
            rules(r#"{"*":"allow"}"#),
            "",
        ),
        ("a file", by_file.to_owned(), by_file.to_owned(), "allow"),
    ] {
        let world = users(json!({ "permission": { "bash": "ask" } }));
        world.file("opencode.json", &before);
        world.file("rule.txt", "ask");
        world.trust(&world.project());
        assert!(!has_run(&world), "{name}, before");
        world.file("opencode.json", &after);
        world.file("rule.txt", if rule.is_empty() { "ask" } else { rule });
        assert!(!has_run(&world), "{name}");
        world.trust(&world.project());
        world.mock.when("do it", touch());
        assert!(has_run(&world), "{name}, trusted again");
    }
}

/// The same of plugins, which have no say in it whatever is trusted.
#[test]
fn a_plugin_takes_no_agent_away_that_has_rules() {
    for (name, hook) in [
        ("deleted", "delete c.agent.build"),
        ("all deleted", "delete c.agent"),
        ("switched off", "c.agent.build.disable = true"),
        ("serves others", "c.agent.build.mode = 'subagent'"),
        (
            "another by default",
            "c.agent.q = { mode: 'primary', prompt: 'p' }; c.default_agent = 'q'",
        ),
        (
            "another of the program's by default",
            "c.agent.build = { disable: true }",
        ),
    ] {
        let world = World::new([touch(), done()]);
        world.config(
            json!({ "agent": { "build": { "permission": { "bash": { "touch *": "deny" } } } } }),
        );
        let source =
            format!("export const P = async () => ({{ config: async (c) => {{ {hook} }} }})\n");
        let plugin = world.plugin("takes", &source);
        granting(&world, &format!("[plugins.{plugin:?}]\nrewrite = true\n"));
        assert!(!has_run(&world), "{name}");
        assert_eq!(world.parts("tool")[0]["tool"], "bash", "{name}");
    }
}
