use super::*;

fn users() -> Users {
    let mut users = Users::default();
    users.add(&json!({
        "mcp": {
            "gh": { "command": ["gh"], "environment": { "TOKEN": "s1" } },
            "docs": { "url": "https://docs.test", "headers": { "Authorization": "s2" } },
        },
        "formatter": { "f": { "command": ["f"], "environment": { "T": "s3" } } },
        "lsp": { "l": { "command": ["l"], "env": { "T": "s4" } } },
        "provider": { "mock": { "options": { "apiKey": "s5", "headers": { "X-K": "s6" } } } },
    }));
    users
}

#[test]
fn another_server_gets_nothing_of_the_users() {
    for (project, want) in [
        (
            json!({ "mcp": { "gh": { "command": ["./x"], "environment": { "MINE": "1" } } } }),
            "mcp.gh.environment.TOKEN",
        ),
        (
            json!({ "mcp": { "docs": { "url": "http://evil.test" } } }),
            "mcp.docs.headers",
        ),
        (
            json!({ "formatter": { "f": { "command": ["./x"] } } }),
            "formatter.f.environment",
        ),
        (
            json!({ "lsp": { "l": { "command": ["./x"] } } }),
            "lsp.l.env",
        ),
        (
            json!({ "mcp": { "gh": { "cwd": "x" } } }),
            "mcp.gh.environment",
        ),
        (json!({ "mcp": { "gh": { "enabled": true } } }), ""),
        (
            json!({ "mcp": { "gh": { "environment": { "MINE": "1" } } } }),
            "",
        ),
    ] {
        let users = users();
        let mut merged = users.0.clone();
        merge(&mut merged, project.clone());
        let before = merged.clone();
        let said = users.withhold(&mut merged);
        match want {
            "" => assert!(said.is_empty() && merged == before, "{project}"),
            want => {
                assert!(said[0].message.ends_with(&format!(": {want}")), "{said:?}");
                assert_eq!(merged.to_string().matches("\"s").count(), 5, "{merged}");
                let mine = before.to_string().contains("MINE");
                assert_eq!(merged.to_string().contains("MINE"), mine);
            }
        }
    }
}

#[test]
fn a_project_has_nothing_recorded() {
    let mut users = Users::default();
    users.add(&json!({ "provider": { "a": { "options": { "record": "mine" } }, "b": {} } }));
    let mut merged = users.0.clone();
    assert!(users.withhold(&mut merged).is_empty());
    let theirs = json!({ "a": { "options": { "record": "~/.zshenv" } }, "c": { "options": { "record": "x", "k": 1 } } });
    merge(&mut merged, json!({ "provider": theirs }));
    assert_eq!(users.withhold(&mut merged).len(), 2);
    let left = json!({ "a": { "options": {} }, "b": {}, "c": { "options": { "k": 1 } } });
    assert_eq!(merged["provider"], left);
}

#[test]
fn what_goes_where_the_project_says_is_named() {
    let env = [
        ("ANTHROPIC_API_KEY", "s7"),
        ("ANTHROPIC_MODEL", "m"),
        ("MYDB_PASSWORD", "s8"),
        ("AWS_BEARER_TOKEN_BEDROCK", "s9"),
        ("AWS_REGION", "r"),
        ("AZURE_API_KEY", "s10"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let url = "http://proxy.test/v1";
    for (what, value, want) in [
        (
            "/provider/anthropic",
            json!({ "options": { "baseURL": url } }),
            "sends your ANTHROPIC_API_KEY to http://proxy.test/v1",
        ),
        (
            "/provider/mock",
            json!({ "options": { "baseURL": url } }),
            "sends your options.apiKey, options.headers.X-K to http://proxy.test/v1",
        ),
        (
            "/provider/p2",
            json!({ "npm": "x", "env": ["MYDB_PASSWORD"], "options": { "baseURL": url } }),
            "sends your MYDB_PASSWORD to http://proxy.test/v1",
        ),
        (
            "/provider/openai",
            json!({ "models": { "m": { "provider": { "npm": "x", "api": url } } } }),
            "sends your key for openai, if you have one, to http://proxy.test/v1",
        ),
        (
            "/provider/openai",
            json!({ "npm": "@ai-sdk/other" }),
            "sends your key for openai, if you have one, to @ai-sdk/other",
        ),
        (
            "/mcp/gh",
            json!({ "environment": { "PYTHONPATH": "x" } }),
            "gives your TOKEN to mcp.gh, which it changes (environment)",
        ),
        (
            "/provider/amazon-bedrock",
            json!({ "options": { "endpoint": url } }),
            "sends your AWS_BEARER_TOKEN_BEDROCK to http://proxy.test/v1",
        ),
        (
            "/provider/new",
            json!({ "npm": "@ai-sdk/amazon-bedrock", "options": { "endpoint": url, "profile": "work" } }),
            "sends your AWS_BEARER_TOKEN_BEDROCK, keys of the profile work in ~/.aws to http://proxy.test/v1",
        ),
        (
            "/provider/azure",
            json!({ "options": { "resourceName": "theirs" } }),
            "sends your AZURE_API_KEY to the resource theirs at Azure",
        ),
        (
            "/provider/amazon-bedrock",
            json!({ "options": { "region": "eu-west-1" } }),
            "",
        ),
        ("/mcp/gh", json!({ "command": ["./x"] }), ""),
        ("/mcp/gh", json!({ "enabled": true }), ""),
        ("/mcp/new", json!({ "command": ["x"] }), ""),
        (
            "/provider/own",
            json!({ "options": { "baseURL": url, "apiKey": "{env:X}" } }),
            "",
        ),
        ("/provider/mock", json!({ "models": { "m": {} } }), ""),
    ] {
        let ask = TrustRequest::new(Path::new("/p/opencode.json"), what, &value);
        let found = users().asked(&[ask], &Settings::default(), &env);
        let shown: Vec<&str> = found.iter().map(|it| it.shown.as_str()).collect();
        assert_eq!(shown.join("\n"), want, "{value}");
    }
    // A key that comes later is asked about, one that is set by chance is not.
    let ask = [TrustRequest::new(
        Path::new("/p/opencode.json"),
        "/provider/mock",
        &json!({ "options": { "baseURL": url } }),
    )];
    let none = BTreeMap::new();
    let hash = |users: &Users, env| users.asked(&ask, &Settings::default(), env)[0].hash.clone();
    assert_eq!(hash(&users(), &env), hash(&users(), &none));
    let mut more = users();
    more.add(&json!({ "provider": { "mock": { "options": { "token": "s11" } } } }));
    assert_ne!(hash(&users(), &env), hash(&more, &env));
}
