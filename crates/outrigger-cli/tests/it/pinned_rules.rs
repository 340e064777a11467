//! The user's rules hold if a project or a plugin has more precise rules, reorders them, changes a file that their text comes from, or
//! has another agent answer.

use std::fs;

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

fn touch() -> Value {
    let input = json!({ "command": "touch ran.txt", "description": "x" });
    turn([call("bash", input)])
}

/// Writes the user's settings; the untrusted project has no settings yet.
fn users(settings: Value) -> World {
    let world = World::with(Mock::new([touch(), done()]).by_results());
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

/// A trusted project may allow what its settings list, and no more.
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

/// Trusted settings keep their meaning: the order of rules, narrowing rules, and the contents of `{file:…}` are part of it.
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
        // A key that the user has, too, keeps its place at the front.
        assert_eq!(has_run(&world), name != "order", "{name}, trusted again");
    }
}

/// The same for plugins, which cannot do this whatever is trusted.
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

/// A user's guard that takes a moment, as guards do, and refuses by throwing; it is not `fail_closed`.
const GUARD: &str = r"
import fs from 'node:fs/promises'
export const G = async () => ({ 'tool.execute.before': async () => {
  await fs.readFile('/etc/hostname')
  await new Promise((done) => setTimeout(done, 50))
  throw new Error('not that')
} })";

#[test]
fn no_setting_of_a_project_keeps_the_users_own_guard_from_running() {
    let of_guard = |table: &str, line: &str| format!("[plugins.{table}]\n{line}\n");
    let paths = ["outrigger.toml", ".outrigger/outrigger.toml"];
    let hooks = json!({ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "sleep 0.05; exit 2" }] }] } });
    for trusted in [true, false] {
        for (place, settings) in [
            (paths[0], "[deadlines]\nnormal_ms = 1\nfast_ms = 1\n".to_owned()),
            (paths[1], "[deadlines]\nload_ms = 1\n".to_owned()),
            (paths[0], of_guard("guard", "timeout_ms = 1")),
            (paths[0], of_guard("\"GUARD\"", "timeout_ms = 1")),
            (paths[0], of_guard("\"claude:user\"", "timeout_ms = 1")),
            (paths[0], "[limits]\nplugin_memory_mb = 64\nplugin_processes = 1\nplugin_open_files = 64\n".to_owned()),
            (paths[0], "[flags]\nplugin_circuit_breaker = true\nplugin_seq_hooks = false\n[js]\nruntime = \"node\"\n".to_owned()),
        ] {
            for by_hook in [true, false] {
                let world = users(json!({}));
                let own = if by_hook { world.home().join(".claude/settings.json") } else { world.home().join(".config/opencode/plugin/guard.js") };
                fs::create_dir_all(own.parent().unwrap()).unwrap();
                let text = if by_hook { hooks.to_string() } else { GUARD.to_owned() };
                fs::write(&own, text).unwrap();
                world.file(place, &settings.replace("GUARD", &own.display().to_string()));
                if trusted {
                    world.cli(&["trust"]).ok();
                }
                assert!(!has_run(&world), "{settings} {by_hook} {trusted}");
            }
        }
    }
}

#[test]
fn a_project_does_not_replace_the_list_of_the_users_plugins_of_claude_code() {
    for project in [
        "[claude]\nplugins = []\n",
        "[claude]\nplugins = [\"./none\"]\n",
    ] {
        let world = users(json!({}));
        let plugin = world.home().join("cp");
        let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "exit 2" }] }] } });
        fs::create_dir_all(plugin.join("hooks")).unwrap();
        fs::write(plugin.join("hooks/hooks.json"), hooks.to_string()).unwrap();
        granting(&world, &format!("[claude]\nplugins = [{plugin:?}]\n"));
        world.cli(&["plugin", "allow-hooks"]).ok();
        assert!(!has_run(&world), "it guards");
        world.file("outrigger.toml", project);
        assert!(!has_run(&world), "{project}");
    }
}

#[test]
fn an_untrusted_project_switches_the_user_into_no_other_agent() {
    let wide = |mode: &str| json!({ "agent": { "wide": { "mode": mode, "description": "d", "permission": { "bash": "allow" } } }, "permission": { "bash": "ask" } });
    let command = json!({ "command": { "c": { "template": "hi", "agent": "wide" } } });
    let off = json!({ "agent": { "build": { "disable": true }, "plan": { "mode": "subagent" } } });
    let primary = json!({ "agent": { "wide": { "mode": "primary" } }, "default_agent": "wide" });
    for (mode, project, args) in [
        (
            "primary",
            json!({ "default_agent": "wide" }),
            &["do it"][..],
        ),
        ("primary", command, &["--command", "c"][..]),
        ("primary", off, &["do it"][..]),
        ("subagent", primary, &["do it"][..]),
    ] {
        let world = users(wide(mode));
        world.file("opencode.json", &project.to_string());
        let ran = world.run(args);
        assert!(!world.path("ran.txt").exists(), "{project}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("settings of an untrusted folder"),
            "{project}: {}",
            ran.stderr
        );
    }
    // A command file may name the agent, too.
    let world = users(wide("primary"));
    world.file(".opencode/command/c.md", "---\nagent: wide\n---\nhi\n");
    world.run(&["--command", "c"]);
    assert!(!world.path("ran.txt").exists());
    // One that the user trusts may.
    let world = users(wide("primary"));
    world.file(
        "opencode.json",
        &json!({ "default_agent": "wide" }).to_string(),
    );
    world.cli(&["trust"]).ok();
    assert!(has_run(&world));
}

/// `plan` changes no files: a project's `ask` rule does not replace that deny.
#[test]
fn an_untrusted_projects_question_lifts_no_deny_of_a_built_in_agent() {
    let write = call("write", json!({ "filePath": "ran.txt", "content": "x" }));
    for project in [
        json!({ "permission": { "edit": { "*": "ask" } } }),
        json!({ "agent": { "plan": { "permission": { "*": "ask" } } } }),
    ] {
        let world = World::new([turn([write.clone()]), done()]);
        world.config(json!({}));
        world.trusts_nothing();
        world.file("opencode.json", &project.to_string());
        world.run(&["--agent", "plan", "--auto", "do it"]).ok();
        assert!(!world.path("ran.txt").exists(), "{project}");
        let answer = world.mock.last().texts("tool").remove(0);
        assert!(answer.contains("denies edit"), "{project}: {answer}");
    }
}
