use super::{is_secret, without};
use serde_json::{Value, json};

fn redact(value: &mut Value, _: &str) {
    *value = without(value, &[]);
}

fn restore(value: &mut Value, from: &Value) -> Vec<String> {
    super::restore(value, from, &[])
}

/// What texts took from elsewhere, and what addresses and arguments have in them; all of it comes back where nothing changed.
#[test]
fn secrets_inside_of_texts_are_hidden_and_come_back() {
    let known = ["in-env-secret".to_owned()];
    let original = json!({
        "provider": {"p": {"options": {
            "baseURL": "http://u:in-url@h/?key=in-query", "setting": "x in-env-secret y",
            "credentials": {"private_key": "in-pem", "client_email": "mail"},
        }}},
        "mcp": {
            "g": {"command": ["x", "--api-key=in-arg1", "--token", "in-arg2", "-H", "Authorization: Bearer in-arg3", "--port", "80", "-e", "API_KEY=in-arg4"]},
            "s": {"command": ["sh", "-c", "TOKEN='in-arg5' curl -H 'X-Api-Key: in-arg6' https://h/p"]},
            "d": {"url": "https://h/mcp?api_key=in-url2"},
        },
        "command": {"c": {"template": "say in-env-secret"}},
    });
    let shown = without(&original, &known);
    let text = shown.to_string();
    assert!(!text.contains("in-"), "{text}");
    for stays in [
        "\"--port\",\"80\"",
        "http://u:",
        "https://h/p",
        "x (redacted) y",
    ] {
        assert!(text.contains(stays), "{stays}: {text}");
    }
    let mut back = shown.clone();
    assert_eq!(
        super::restore(&mut back, &original, &known),
        Vec::<String>::new()
    );
    assert_eq!(back, original);
    // Sent elsewhere, or started otherwise.
    let mut changed = shown.clone();
    changed["provider"]["p"]["options"]["npm"] = json!("evil");
    changed["mcp"]["g"]["command"][0] = json!("evil");
    let lost = super::restore(&mut changed, &original, &known);
    assert!(lost.len() >= 6, "{lost:?}");
    let text = changed.to_string();
    assert!(
        !text.contains("in-arg1") && !text.contains("in-url@") && !text.contains("in-pem"),
        "{text}"
    );
    assert!(
        text.contains("in-url2") && text.contains("say in-env-secret"),
        "{text}"
    );
}

/// Keys under names that are not those of the usual ones, and those that only look like it.
#[test]
fn odd_names_of_secrets_are_known_and_options_that_one_chooses_among_stay() {
    let original = json!({
        "provider": {"p": {
            "options": {"key": "IN", "accountKey": "IN", "cookie": "IN", "bearer": "IN", "pat": "IN", "sas": "IN", "signature": "IN",
                "connectionString": "AccountKey=IN", "passphrase": "IN", "odd": "hIN7-ws92kq", "list": ["qIN8-ws92kq"]},
            "models": {"m": {"options": {"odd": "hIN7-ws92kq"}, "variants": {"v": {"odd": "hIN7-ws92kq"}}}},
        }},
        "agent": {"a": {"options": {"odd": "hIN7-ws92kq"}}},
        "lsp": {"l": {"env": {"L": "IN"}, "initialization": {"licenceKey": "IN"}}},
        "formatter": {"f": {"environment": {"F": "IN"}}},
        "mcp": {"l": {"command": ["x", "--pat", "IN"]}},
    });
    let shown = without(&original, &[]);
    assert!(!shown.to_string().contains("IN"), "{shown}");
    let mut back = shown.clone();
    assert_eq!(restore(&mut back, &original), Vec::<String>::new());
    assert_eq!(back, original);
    let stays = json!({
        "provider": {"p": {
            "options": {"baseURL": "https://h.test/V1", "projectId": "my-project-1", "setCacheKey": true, "region": "eu-west-1"},
            "models": {"m": {"id": "Model-20250219", "options": {
                "reasoningEffort": "high", "textVerbosity": "medium", "include": ["reasoning.encrypted_content"],
                "thinking": {"type": "enabled", "budgetTokens": 8000}, "promptCacheKey": "x", "serviceTier": "priority",
            }}},
        }},
        "permission": {"bash": {"pass *": "ask", "keyring": "deny"}},
        "keybinds": {"leader": "ctrl+x"},
    });
    assert_eq!(without(&stays, &[]), stays);
}

#[test]
fn logins_in_addresses_and_flags_are_shown_to_nobody() {
    let original = json!({
        "provider": {"p": {"options": {
            "baseURL": "http://u:PASS@h.test/v1?x=1&key=KEY", "credentials": {"private_key": "PEM", "client_email": "me"},
        }}},
        "mcp": {"m": {"command": ["m", "--api-key=KEY", "--port=1"], "url": "https://h.test/mcp?api_key=KEY#x"}},
    });
    let mut shown = original.clone();
    redact(&mut shown, "");
    let text = shown.to_string();
    for secret in ["PASS", "KEY", "PEM"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(
        text.contains("@h.test/v1?x=1&key=") && text.contains("--port=1"),
        "{text}"
    );
    let mut again = shown.clone();
    redact(&mut again, "");
    assert_eq!(again, shown);
    assert!(restore(&mut shown, &original).is_empty());
    assert_eq!(shown, original);
}

#[test]
fn what_was_redacted_comes_back_unless_it_was_changed() {
    let provider =
        |url: &str, key: &str| json!({"npm": "n", "options": {"apiKey": key, "baseURL": url}});
    let original = json!({"provider": {"p": provider("u", "k1"), "q": provider("u", "k2"), "r": provider("u", "k3")},
        "plugin": [["a", {"apiKey": "ka"}], ["b", {"apiKey": "kb"}]]});
    let mut shown = original.clone();
    redact(&mut shown, "");
    assert!(!shown.to_string().contains("\"k"), "{shown}");
    shown["provider"]["q"]["options"]["apiKey"] = json!("new");
    // Sent elsewhere, copied, reordered.
    shown["provider"]["r"]["options"]["baseURL"] = json!("http://elsewhere");
    shown["provider"]["copy"] = shown["provider"]["p"].clone();
    shown["plugin"].as_array_mut().unwrap().reverse();
    let lost = restore(&mut shown, &original);
    let want = json!({"p": provider("u", "k1"), "q": provider("u", "new"),
        "r": {"npm": "n", "options": {"baseURL": "http://elsewhere"}}, "copy": {"npm": "n", "options": {"baseURL": "u"}}});
    assert_eq!(
        lost.iter().filter(|p| p.starts_with("/provider")).count(),
        2,
        "{lost:?}"
    );
    assert_eq!(shown["provider"], want);
    assert_eq!(
        shown["plugin"],
        json!([["b", {"apiKey": "kb"}], ["a", {"apiKey": "ka"}]])
    );
    assert!(!shown.to_string().contains("(redacted)"), "{shown}");
}

/// A plugin that changes anything of how a program runs, or where a provider is, gets none of its secrets.
#[test]
fn an_entry_that_runs_or_sends_otherwise_has_no_secrets() {
    let original = json!({
        "mcp": {"m": {"type": "local", "command": ["m"], "environment": {"API_TOKEN": "k1"}}},
        "formatter": {"f": {"command": ["f"], "environment": {"FMT_TOKEN": "k2"}, "extensions": [".x"]}},
        "lsp": {"l": {"command": ["l"], "env": {"LSP_TOKEN": "k3"}, "extensions": [".x"]}},
        "provider": {"p": {"options": {"apiKey": "k4", "baseURL": "u"}, "models": {"a": {}}}},
        "agent": {"a": {"model": "p/a", "prompt": "x", "options": {"apiKey": "k5"}}},
    });
    let mut shown = original.clone();
    redact(&mut shown, "");
    for (pointer, key, value, keeps) in [
        ("/mcp/m/environment", "PYTHONPATH", json!("/evil"), None),
        ("/mcp/m", "cwd", json!("/evil"), None),
        ("/mcp/m", "type", json!("remote"), None),
        ("/mcp/m", "enabled", json!(true), Some("k1")),
        ("/mcp/m", "timeout", json!(9), Some("k1")),
        (
            "/formatter/f/environment",
            "NODE_OPTIONS",
            json!("-r /evil"),
            None,
        ),
        ("/formatter/f", "extensions", json!([".y"]), None),
        ("/lsp/l/env", "LD_PRELOAD", json!("/evil.so"), None),
        ("/lsp/l", "initialization", json!({"path": "/evil"}), None),
        ("/lsp/l", "disabled", json!(false), Some("k3")),
        ("/provider/p/options", "baseURL", json!("v"), None),
        ("/provider/p/options", "resourceName", json!("evil"), None),
        ("/provider/p/options", "timeout", json!(9), Some("k4")),
        (
            "/provider/p/models",
            "b",
            json!({"name": "B", "limit": {"context": 9}}),
            Some("k4"),
        ),
        (
            "/provider/p/models",
            "b",
            json!({"provider": {"api": "v"}}),
            None,
        ),
        ("/provider/p", "npm", json!("evil"), None),
        ("/provider/p", "env", json!(["OTHER_KEY"]), None),
        ("/agent/a", "model", json!("evil/a"), None),
        ("/agent/a", "prompt", json!("y"), Some("k5")),
    ] {
        let mut changed = shown.clone();
        changed.pointer_mut(pointer).unwrap()[key] = value;
        let lost = restore(&mut changed, &original);
        let section = pointer.split('/').nth(1).unwrap();
        let text = changed[section].to_string();
        assert_eq!(
            lost.len(),
            usize::from(keeps.is_none()),
            "{pointer} {key}: {lost:?}"
        );
        assert_eq!(
            text.contains("\"k"),
            keeps.is_some(),
            "{pointer} {key}: {text}"
        );
        assert!(
            keeps.is_none_or(|it| text.contains(it)),
            "{pointer} {key}: {text}"
        );
    }
}

#[test]
fn secrets() {
    for (pointer, expected) in [
        ("/provider/p/options/apiKey", true),
        ("/provider/p/options/api_key", true),
        ("/mcp/m/headers/X-Any", true),
        ("/mcp/m/environment/FOO", true),
        ("/mcp/m/oauth/clientSecret", true),
        ("/provider/p/options/baseURL", false),
        ("/compaction/preserve_recent_tokens", false),
        ("/model", false),
    ] {
        assert_eq!(is_secret(pointer), expected, "{pointer}");
    }
}

/// The name of an option of one letter says nothing: its value does.
#[test]
fn what_follows_an_option_of_one_letter_is_hidden_where_it_looks_like_a_secret() {
    for (command, hidden) in [
        (json!(["m", "-p", "S3cretWord9"]), true),
        (json!(["m", "-k", "abc123def456", "-v"]), true),
        (json!(["sh", "-c", "m -t S3cretWord9"]), true),
        (json!(["m", "-p", "8080"]), false),
        (json!(["m", "-p", "./Some/Folder1"]), false),
        (
            json!(["npx", "-p", "@acme/Server1", "-y", "acme-server"]),
            false,
        ),
        (json!(["npx", "-p", "server@12.34.56"]), false),
        (json!(["python", "-m", "acme_server.main"]), false),
        (
            json!(["docker", "-v", "/Data1:/data", "-e", "MODE=Full1234"]),
            false,
        ),
        (json!(["sh", "-c", "RunServer1"]), false),
    ] {
        let original = json!({"mcp": {"m": {"command": command}}});
        let mut shown = original.clone();
        redact(&mut shown, "");
        assert_eq!(shown != original, hidden, "{shown}");
        assert!(restore(&mut shown, &original).is_empty());
        assert_eq!(shown, original);
    }
}
