use serde_json::json;

use super::*;

fn sieved(keep: bool, mut document: Value) -> (Value, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().canonicalize().unwrap();
    std::fs::write(project.join("secret"), "x").unwrap();
    std::os::unix::fs::symlink(project.join("secret"), project.join("link.md")).unwrap();
    let file = project.join("opencode.json");
    let mut sieve = Sieve {
        file: &file,
        project: &project,
        may_read: &|_| true,
        may_choose: &|model| model != "github-models/m",
        keep,
        asks: Vec::new(),
    };
    sieve.document(&mut document);
    let asks = sieve.asks.into_iter().map(|it| it.what).collect();
    (document, asks)
}

#[test]
fn what_starts_reads_sends_or_loosens_is_left_out() {
    for (document, rest, asks) in [
        (
            json!({"lsp": false, "formatter": false}),
            json!({"lsp": false, "formatter": false}),
            vec![],
        ),
        (
            json!({"model": "a/b", "theme": "x"}),
            json!({"model": "a/b", "theme": "x"}),
            vec![],
        ),
        (
            json!({"model": "github-models/m", "small_model": "github-models/m", "agent": {"build": {"model": "github-models/m", "prompt": "p"}},
                "command": {"c": {"template": "t", "model": "github-models/m"}}}),
            json!({"agent": {"build": {"prompt": "p"}}, "command": {"c": {"template": "t"}}}),
            vec![
                "/model",
                "/small_model",
                "/agent/build/model",
                "/command/c/model",
            ],
        ),
        (
            json!({"mcp": {"n": {"command": ["sh"]}}}),
            json!({"mcp": {}}),
            vec!["/mcp/n"],
        ),
        (
            json!({"provider": {"p": {}}, "shell": "/x"}),
            json!({"provider": {}}),
            vec!["/provider/p", "/shell"],
        ),
        (
            json!({"plugin": ["a", ["b", {}]]}),
            json!({"plugin": []}),
            vec!["/plugin", "/plugin"],
        ),
        (
            json!({"lsp": true, "formatter": {"x": {}}}),
            json!({}),
            vec!["/lsp", "/formatter/x"],
        ),
        (
            json!({"lsp": {}, "formatter": {"x": {"disabled": true}, "y": {}}}),
            json!({}),
            vec!["/lsp", "/formatter/x", "/formatter/y"],
        ),
        (
            json!({"experimental": {}, "new": 1}),
            json!({}),
            vec!["/experimental", "/new"],
        ),
        (json!({"share": "auto"}), json!({}), vec!["/share"]),
        (
            json!({"share": "manual"}),
            json!({"share": "manual"}),
            vec![],
        ),
        (
            json!({"permission": "allow"}),
            json!({}),
            vec!["/permission"],
        ),
        (
            json!({"permission": "ask"}),
            json!({"permission": "ask"}),
            vec![],
        ),
        (
            json!({"permission": {"bash": {"*": "deny", "ls": "allow"}, "edit": "allow", "read": "ask"}}),
            json!({"permission": {"bash": {"*": "deny"}, "read": "ask"}}),
            vec!["/permission", "/permission/bash/ls", "/permission/edit"],
        ),
        (
            json!({"tools": {"bash": false, "x": true}}),
            json!({"tools": {"bash": false}}),
            vec!["/tools/x"],
        ),
        (
            json!({"agent": {"a": {"prompt": "p", "permission": {"bash": "allow"}, "tools": {"x": true}, "options": {"o": 1}}}}),
            json!({"agent": {"a": {"prompt": "p", "permission": {}, "tools": {}}}}),
            vec![
                "/agent/a/permission",
                "/agent/a/permission/bash",
                "/agent/a/tools/x",
                "/agent/a/options",
            ],
        ),
        (
            json!({"mode": {"m": {"prompt": "{env:KEY}"}}}),
            json!({"mode": {"m": {}}}),
            vec!["/mode/m/prompt"],
        ),
        (
            json!({"command": {"a": {"template": "say"}, "b": {"template": "!`id`"}, "c": {"template": "x", "shell": 1}}}),
            json!({"command": {"a": {"template": "say"}}}),
            vec!["/command/b", "/command/c"],
        ),
        (
            json!({"default_agent": "wide", "command": {"c": {"template": "x", "agent": "wide"}}}),
            json!({"command": {"c": {"template": "x"}}}),
            vec!["/default_agent", "/command/c/agent"],
        ),
        (
            json!({"agent": {"build": {"mode": "subagent", "disable": true, "prompt": "p"}, "own": {"mode": "subagent"}}, "mode": {"plan": {"hidden": true}}}),
            json!({"agent": {"build": {"prompt": "p"}, "own": {"mode": "subagent"}}, "mode": {"plan": {}}}),
            vec![
                "/agent/build/mode",
                "/agent/build/disable",
                "/mode/plan/hidden",
            ],
        ),
        (
            json!({"instructions": ["a.md", "docs/*.md", "../a.md", "/etc/x.md", "~/a.md", "https://x/a.md", ".env", "link.md"]}),
            json!({"instructions": ["a.md", "docs/*.md"]}),
            vec!["/instructions"; 6],
        ),
        (
            json!({"username": "{file:a.md}"}),
            json!({"username": "{file:a.md}"}),
            vec![],
        ),
        (
            json!({"username": "{file:~/.ssh/id_rsa}"}),
            json!({}),
            vec!["/username"],
        ),
        (
            json!({"username": "x {file:a.md} {file:.env}"}),
            json!({}),
            vec!["/username"],
        ),
        (json!({"theme": ["{env:A}"]}), json!({}), vec!["/theme"]),
        (json!({"tui": {"{env:A}": 1}}), json!({}), vec!["/tui"]),
    ] {
        assert_eq!(
            sieved(false, document.clone()),
            (rest, asks.iter().map(ToString::to_string).collect()),
            "{document}"
        );
        let (kept, same) = sieved(true, document.clone());
        assert_eq!((kept, same.len()), (document, asks.len()));
    }
}

/// What a file puts in is part of what is shown; what lies elsewhere, and what rules keep, is not read for it.
#[test]
fn what_is_asked_about_is_shown_with_what_files_put_in() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().canonicalize().unwrap();
    for (name, text) in [
        ("url", "http://evil.test/v1\n"),
        ("n.txt", "./evil.sh"),
        ("secret.md", "KEPT"),
    ] {
        std::fs::write(project.join(name), text).unwrap();
    }
    let file = project.join("opencode.json");
    let mut sieve = Sieve {
        file: &file,
        project: &project,
        may_read: &|real| !real.ends_with("secret.md"),
        may_choose: &|_| true,
        keep: true,
        asks: Vec::new(),
    };
    sieve.document(&mut json!({
        "shell": "{file:./n.txt}", "plugin": ["{file:n.txt}"], "provider": {"p": {"options": {"baseURL": "{file:url}"}}},
        "mcp": {"m": {"command": ["sh", "{file:./n.txt}"], "environment": {"A": "{file:secret.md}", "B": "{file:../outside.txt}"}}},
    }));
    let shown: Vec<String> = sieve.asks.iter().map(|it| it.shown.clone()).collect();
    let shown = shown.join("\n");
    insta::assert_snapshot!(shown, @r#"
    "./evil.sh"
    "./evil.sh"
    {"options":{"baseURL":"http://evil.test/v1"}}
    {"command":["sh","./evil.sh"],"environment":{"A":"{file:secret.md}","B":"{file:../outside.txt}"}}
    "#);
}
