//! Order of the layers, merging, provenance, errors.

use outrigger_config::ProjectConfig;
use outrigger_protocol::diagnose::Diagnose;
use serde_json::json;

use crate::world::World;

#[test]
fn nothing_there_gives_opencodes_keys_and_makes_nothing() {
    let world = World::new(&[]);
    let before = world.listing();
    let loaded = world.load().unwrap();
    assert_eq!(
        loaded.value,
        json!({"$schema": "https://opencode.ai/config.json", "agent": {}, "mode": {}, "command": {}, "plugin": [],
            "username": "tester"})
    );
    assert!(loaded.plugins.is_empty() && loaded.problems.is_empty() && loaded.files.is_empty());
    assert_eq!(world.listing(), before);
}

#[test]
fn keys_of_the_config_hook_are_those_of_the_recording() {
    let world = World::new(&[(
        "work/opencode.json",
        r#"{"model": "mock/m1", "small_model": "mock/m1", "plugin": ["file:///rec.ts"], "autoupdate": false, "share": "disabled",
            "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "options": {"apiKey": "x"}}}}"#,
    )]);
    let loaded = world.load().unwrap();
    let mut keys: Vec<&String> = loaded.value.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(
        keys,
        [
            "$schema",
            "agent",
            "autoupdate",
            "command",
            "mode",
            "model",
            "plugin",
            "plugin_origins",
            "provider",
            "share",
            "small_model",
            "username"
        ]
    );
    let source = world.path("work/opencode.json");
    assert_eq!(
        loaded.value["plugin_origins"],
        json!([{"spec": "file:///rec.ts", "source": source, "scope": "local"}])
    );
}

/// Each place sets `model` to its own name; taking away the strongest one by one shows the order.
#[test]
fn precedence() {
    let model = |name: &str| format!("{{\"model\": \"{name}\"}}");
    let places = [
        "home/.config/opencode/config.json",
        "home/.config/opencode/opencode.json",
        "home/.config/opencode/opencode.jsonc",
        "custom.json",
        "work/opencode.json",
        "work/opencode.jsonc",
        "work/sub/opencode.json",
        "work/sub/opencode.jsonc",
        "work/sub/.opencode/opencode.json",
        "work/sub/.opencode/opencode.jsonc",
        "work/.opencode/opencode.json",
        "work/.opencode/opencode.jsonc",
        "home/.opencode/opencode.json",
        "home/.opencode/opencode.jsonc",
        "named/opencode.json",
        "named/opencode.jsonc",
        "OPENCODE_CONFIG_CONTENT",
        "managed/opencode.json",
        "managed/opencode.jsonc",
    ];
    for count in (1..=places.len()).rev() {
        let texts: Vec<(&str, String)> = places[..count]
            .iter()
            .map(|place| (*place, model(place)))
            .collect();
        let files: Vec<(&str, &str)> = texts
            .iter()
            .filter(|(place, _)| place.contains('/') || place.contains('.'))
            .map(|(p, t)| (*p, t.as_str()))
            .collect();
        let mut world = World::new(&files)
            .env("OPENCODE_CONFIG", "ROOT/custom.json")
            .env("OPENCODE_CONFIG_DIR", "ROOT/named");
        if let Some((name, text)) = texts
            .iter()
            .find(|(place, _)| *place == "OPENCODE_CONFIG_CONTENT")
        {
            world = world.env(name, text);
        }
        let loaded = world.load().unwrap();
        assert_eq!(
            loaded.config.model.as_deref(),
            Some(places[count - 1]),
            "{count} places"
        );
    }
    let text = model("x");
    let world = World::new(&[
        ("work/opencode.json", &text),
        ("work/.opencode/opencode.json", &text),
    ])
    .env("OPENCODE_DISABLE_PROJECT_CONFIG", "1");
    assert_eq!(world.load().unwrap().config.model, None);
}

#[test]
fn lists() {
    let world = World::new(&[
        (
            "home/.config/opencode/config.json",
            r#"{"instructions": ["lost"], "watcher": {"ignore": ["a"]}}"#,
        ),
        (
            "home/.config/opencode/opencode.json",
            r#"{"instructions": ["global"]}"#,
        ),
        (
            "work/opencode.json",
            r#"{"instructions": ["A", "global"], "watcher": {"ignore": ["b"]}}"#,
        ),
        (
            "work/.opencode/opencode.json",
            r#"{"instructions": ["B", "A"]}"#,
        ),
    ]);
    let loaded = world.load().unwrap();
    assert_eq!(loaded.config.instructions, ["global", "A", "B"]);
    assert_eq!(loaded.value["watcher"], json!({"ignore": ["b"]}));
}

#[test]
fn provenance() {
    let world = World::new(&[
        (
            "home/.config/opencode/opencode.json",
            "{\n  \"model\": \"p/m\",\n  \"share\": \"manual\",\n  \"provider\": {\"p\": {\"options\": {\"apiKey\": \"{env:KEY}\", \"baseURL\": \"http://x\"}}}\n}\n",
        ),
        (
            "work/opencode.jsonc",
            "{\n  // ours\n  \"model\": \"p/other\",\n  \"instructions\": [\"A.md\"],\n  \"plugin\": [\"x@1\"],\n  \"tools\": {\"write\": false, \"bash\": true},\n  \"permission\": {\"bash\": {\"git *\": \"allow\"}},\n  \"agent\": {\n    \"build\": {\"maxSteps\": 4, \"zork\": 1},\n  },\n}\n",
        ),
        ("work/.opencode/agent/deep/one.md", "---\ndescription: d\nmode: subagent\ntools:\n  bash: false\n---\nBody\n"),
        ("work/.opencode/mode/m.md", "---\ntemperature: 0.5\n---\nMode body\n"),
        ("work/.opencode/command/a/b.md", "---\nagent: build\n---\nDo $ARGUMENTS\n"),
        ("work/.opencode/plugin/local.ts", ""),
    ])
    .env("KEY", "very secret")
    .env("OPENCODE_PERMISSION", r#"{"edit": "ask"}"#)
    .env("OPENCODE_CONFIG_CONTENT", r#"{"share": "disabled", "mode": {"old": {"prompt": "p"}}}"#)
    .env("OPENCODE_DISABLE_AUTOCOMPACT", "true");
    let loaded = world.load().unwrap();
    assert_eq!(
        loaded.value["provider"]["p"]["options"]["apiKey"],
        "very secret"
    );
    let seen: Vec<String> = loaded
        .show()
        .iter()
        .map(|shown| {
            world.text(format!(
                "{} = {}  # {}",
                shown.name, shown.value, shown.origin
            ))
        })
        .collect();
    insta::assert_snapshot!(seen.join("\n"), @r#"
    /model = "p/other"  # /work/opencode.jsonc:3:12
    /share = "disabled"  # environment OPENCODE_CONFIG_CONTENT
    /provider/p/options/apiKey = "(redacted)"  # /home/.config/opencode/opencode.json:4:44
    /provider/p/options/baseURL = "http://x"  # /home/.config/opencode/opencode.json:4:68
    /instructions/0 = "A.md"  # /work/opencode.jsonc:4:20
    /tools/write = false  # /work/opencode.jsonc:6:22
    /tools/bash = true  # /work/opencode.jsonc:6:37
    /permission/edit = "ask"  # environment OPENCODE_PERMISSION
    /permission/bash/git * = "allow"  # /work/opencode.jsonc:7:36
    /agent/build/maxSteps = 4  # /work/opencode.jsonc:9:27
    /agent/build/zork = 1  # /work/opencode.jsonc:9:38
    /agent/build/steps = 4  # /work/opencode.jsonc:9:27
    /agent/build/options/zork = 1  # /work/opencode.jsonc:9:38
    /agent/build/permission = {}  # /work/opencode.jsonc:9:14
    /agent/deep~1one/name = "deep/one"  # /work/.opencode/agent/deep/one.md:1:1
    /agent/deep~1one/description = "d"  # /work/.opencode/agent/deep/one.md:2:1
    /agent/deep~1one/mode = "subagent"  # /work/.opencode/agent/deep/one.md:3:1
    /agent/deep~1one/tools/bash = false  # /work/.opencode/agent/deep/one.md:4:1
    /agent/deep~1one/prompt = "Body"  # /work/.opencode/agent/deep/one.md:1:1
    /agent/deep~1one/options = {}  # /work/.opencode/agent/deep/one.md:1:1
    /agent/deep~1one/permission/bash = "deny"  # /work/.opencode/agent/deep/one.md:4:1
    /agent/m/name = "m"  # /work/.opencode/mode/m.md:1:1
    /agent/m/temperature = 0.5  # /work/.opencode/mode/m.md:2:1
    /agent/m/prompt = "Mode body"  # /work/.opencode/mode/m.md:1:1
    /agent/m/mode = "primary"  # /work/.opencode/mode/m.md:1:1
    /agent/m/options = {}  # /work/.opencode/mode/m.md:1:1
    /agent/m/permission = {}  # /work/.opencode/mode/m.md:1:1
    /agent/old/prompt = "p"  # environment OPENCODE_CONFIG_CONTENT
    /agent/old/options = {}  # environment OPENCODE_CONFIG_CONTENT
    /agent/old/permission = {}  # environment OPENCODE_CONFIG_CONTENT
    /agent/old/mode = "primary"  # environment OPENCODE_CONFIG_CONTENT
    /command/a~1b/agent = "build"  # /work/.opencode/command/a/b.md:2:1
    /command/a~1b/template = "Do $ARGUMENTS"  # /work/.opencode/command/a/b.md:1:1
    /mode/old/prompt = "p"  # environment OPENCODE_CONFIG_CONTENT
    /mode/old/options = {}  # environment OPENCODE_CONFIG_CONTENT
    /mode/old/permission = {}  # environment OPENCODE_CONFIG_CONTENT
    /$schema = "https://opencode.ai/config.json"  # default
    /plugin/0 = "x@1"  # /work/opencode.jsonc
    /plugin/1 = "file:///work/.opencode/plugin/local.ts"  # /work/.opencode
    /compaction/auto = false  # environment OPENCODE_DISABLE_AUTOCOMPACT
    /username = "tester"  # default
    "#);
}

#[test]
fn secrets_in_addresses_and_arguments_are_not_shown() {
    let world = World::new(&[(
        "home/.config/opencode/opencode.json",
        r#"{"mcp": {
            "r": {"type": "remote", "url": "https://x.example/mcp?api_key=hunter2hunter2"},
            "l": {"type": "local", "command": ["server", "--token", "hunter2hunter2"]}
        }}"#,
    )]);
    let shown = serde_json::to_string(&world.load().unwrap().show()).unwrap();
    assert!(
        shown.contains("x.example") && shown.contains("--token"),
        "{shown}"
    );
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn errors_say_where_and_what_to_do() {
    let mut seen = String::new();
    for (path, text) in [
        (
            "work/opencode.json",
            "{\n  \"model\": \"a/b\"\n  \"share\": \"auto\"\n}\n",
        ),
        ("work/opencode.json", "{\n  \"share\": \"everyone\"\n}\n"),
        (
            "work/sub/opencode.jsonc",
            "{\"agent\": {\n  \"build\": {\"tools\": [\"bash\"]}}}",
        ),
        (
            "home/.config/opencode/opencode.json",
            "{\"provider\": {\"p\": {\"options\": {\"apiKey\": \"{file:~/key}\"}}}}",
        ),
        (
            "work/.opencode/agent/x.md",
            "---\ndescription: d\nmode: main\n---\n",
        ),
        ("work/opencode.json", "[]"),
        ("work/outrigger.toml", "[js]\nruntme = \"bun\"\n"),
    ] {
        let world = World::new(&[(path, text)]);
        let error = world.load().unwrap_err();
        seen += &world.text(format!(
            "{}: {error}\n  {}\n",
            error.code(),
            error.hint().unwrap()
        ));
    }
    let world = World::new(&[]).env("OPENCODE_CONFIG_CONTENT", "{\"model\": 3}");
    let error = world.load().unwrap_err();
    seen += &format!("{}: {error}\n", error.code());
    let world = World::new(&[]);
    std::fs::write(world.path("work/opencode.json"), b"{\"model\": \"\xff\"}").unwrap();
    let error = world.load().unwrap_err();
    seen += &world.text(format!(
        "{}: {error}\n  {}\n",
        error.code(),
        error.hint().unwrap()
    ));
    insta::assert_snapshot!(seen, @r#"
    config.syntax: /work/opencode.json:2:17: not valid JSON: expected comma
      put a comma between this entry and the one before it
    config.type: /work/opencode.json:2:12: /share: expected "manual", "auto" or "disabled", found "everyone"
      change `/share` to "manual", "auto" or "disabled", or remove it
    config.type: /work/sub/opencode.jsonc:2:22: /agent/build/tools: expected an object, found a list of 1
      change `/agent/build/tools` to an object, or remove it
    config.file_reference: /home/.config/opencode/opencode.json:1:43: /provider/p/options/apiKey: cannot read {file:~/key}: /home/key: no such file
      create the file or correct the path; a relative path starts at the folder of /home/.config/opencode/opencode.json
    config.type: /work/.opencode/agent/x.md:3:1: /agent/x/mode: expected "subagent", "primary" or "all", found "main"
      change `/agent/x/mode` to "subagent", "primary" or "all", or remove it
    config.type: /work/opencode.json:1:1: the document: expected an object, found a list of 0
      put the keys and their values into braces: `{ ... }`
    config.unknown_setting: /work/outrigger.toml:2:1: unknown setting `js.runtme`
      did you mean `runtime`?
    config.type: OPENCODE_CONFIG_CONTENT:1:11: /model: expected text, found 3
    config.read: cannot read /work/opencode.json: it is not UTF-8 text
      check that the file can be read by you and is UTF-8 text
    "#);
}

#[test]
fn a_config_file_that_is_not_there_is_reported() {
    let world = World::new(&[]).env("OPENCODE_CONFIG", "ROOT/none.json");
    let problems: Vec<String> = world
        .load()
        .unwrap()
        .problems
        .iter()
        .map(|p| world.text(p))
        .collect();
    assert_eq!(problems, ["OPENCODE_CONFIG: /none.json does not exist"]);
}

#[test]
fn unknown_keys_are_kept() {
    let world = World::new(&[(
        "work/opencode.json",
        r#"{"zork": {"deep": [1, null]}, "theme": "x", "provider": {"p": {"odd": 1}}}"#,
    )]);
    let loaded = world.load().unwrap();
    assert_eq!(loaded.value["zork"], json!({"deep": [1, null]}));
    assert_eq!(loaded.config.extra["zork"], json!({"deep": [1, null]}));
    assert_eq!(loaded.config.provider["p"]["odd"], 1);
    assert!(loaded.value.get("theme").is_none(), "belongs to tui.json");
}

/// By whichever of its paths: the one that the policy names, a link to it, the one that a link in the policy leads to.
#[test]
fn a_forbidden_file_is_not_put_in() {
    for (path, refused) in [
        ("keys/a", true),
        ("real/a", true),
        ("led", true),
        ("other", false),
    ] {
        let mut world = World::new(&[("real/a", "secret"), ("other", "plain")]);
        for (target, link) in [("real", "keys"), ("keys/a", "led")] {
            std::os::unix::fs::symlink(target, world.path(link)).unwrap();
        }
        let write = |name: &str, text: &str| {
            std::fs::write(world.path(name), text.replace("ROOT", &world.root())).unwrap();
        };
        write("policy.toml", "[forbid]\nfiles = [\"ROOT/keys/*\"]\n");
        write(
            "work/opencode.json",
            &format!(r#"{{"username": "{{file:ROOT/{path}}}"}}"#),
        );
        world.options.policy = world.path("policy.toml");
        let loaded = world.load().map(|it| it.value["username"].to_string());
        let result = loaded.unwrap_or_else(|error| error.to_string());
        assert_eq!(
            result.contains("the policy of this machine forbids it"),
            refused,
            "{path}: {result}"
        );
        assert_eq!(result.contains("plain"), !refused, "{path}: {result}");
    }
}

/// What an untrusted project says under the names of the user's own agents and commands is not in their place.
#[test]
fn an_untrusted_project_replaces_no_agent_and_no_command() {
    let own = r#"{"agent": {"careful": {"prompt": "mine"}}, "command": {"deploy": {"template": "mine"}}}"#;
    let theirs = r#"{"agent": {"careful": {"prompt": "theirs", "permission": {"bash": "deny"}}, "new": {"prompt": "theirs"}},
        "command": {"deploy": {"template": "theirs"}, "other": {"template": "theirs"}}}"#;
    let skill = "---\nname: s\ndescription: x\n---\n";
    let mut world = World::new(&[
        ("home/.config/opencode/opencode.json", own),
        (
            "home/.config/opencode/skill/s/SKILL.md",
            &format!("{skill}mine\n"),
        ),
        ("work/opencode.json", theirs),
        (
            "work/.opencode/skill/s/SKILL.md",
            &format!("{skill}theirs\n"),
        ),
    ]);
    for (project, want) in [
        (ProjectConfig::Trusted(None), "mine"),
        (ProjectConfig::All, "theirs"),
    ] {
        world.options.project = project;
        let loaded = world.load().unwrap();
        let config = &loaded.config;
        let agent = config.agent.iter().find(|it| it.name == "careful").unwrap();
        assert_eq!(agent.prompt.as_deref(), Some(want));
        assert!(agent.permission.iter().any(|it| it.permission == "bash"));
        let template = |name: &str| {
            config
                .command
                .iter()
                .find(|it| it.name == name)
                .unwrap()
                .template
                .clone()
        };
        assert_eq!(
            (template("deploy"), template("other")),
            (want.into(), "theirs".into())
        );
        assert!(config.agent.iter().any(|it| it.name == "new"));
        let (skills, _) = outrigger_config::skills::discover(&loaded.skill_search(config));
        assert_eq!(skills[0].content.trim(), want);
    }
}

/// A list of providers of a project, trusted or not, is no wider than the user's.
#[test]
fn a_project_switches_no_provider_on() {
    let own = r#"{"disabled_providers": ["off"], "enabled_providers": ["on", "off"]}"#;
    let theirs = r#"{"disabled_providers": ["on"], "enabled_providers": ["off", "other"]}"#;
    let mut world = World::new(&[
        ("home/.config/opencode/opencode.json", own),
        ("work/opencode.json", theirs),
    ]);
    for project in [ProjectConfig::Trusted(None), ProjectConfig::All] {
        world.options.project = project;
        let config = world.load().unwrap().config;
        assert_eq!(config.disabled_providers, ["on", "off"]);
        assert_eq!(config.enabled_providers, Some(vec!["off".to_owned()]));
    }
}

/// What the configuration takes from variables with a secret's name, and from files of one word, is secret under any key.
#[test]
fn what_texts_take_from_elsewhere_is_secret() {
    let settings = r#"{"mcp": {"m": {"type": "local", "command": ["x", "{env:MY_SECRET}", "{env:PLAIN}"]}},
        "provider": {"p": {"options": {"note": "{file:key.txt}", "text": "{file:notes.txt}"}}}}"#;
    let world = World::new(&[
        ("home/.config/opencode/opencode.json", settings),
        ("home/.config/opencode/key.txt", "in-a-file\n"),
        ("home/.config/opencode/notes.txt", "several words"),
    ])
    .env("MY_SECRET", "in-a-variable")
    .env("PLAIN", "plain-value");
    let loaded = world.load().unwrap();
    assert_eq!(loaded.secrets(), ["in-a-variable", "in-a-file"]);
    let mut shown = loaded.redacted();
    let text = shown.to_string();
    assert!(!text.contains("in-a-"), "{text}");
    assert!(
        text.contains("plain-value") && text.contains("several words"),
        "{text}"
    );
    assert!(loaded.restore(&mut shown).is_empty());
    assert_eq!(shown, loaded.value);
}

/// What a value is once the texts that it takes from files are in it decides, and the rules of the user decide which texts those may be.
#[test]
fn what_an_untrusted_project_takes_from_files_runs_and_opens_nothing() {
    let rules = r#"{"permission": {"read": {"secret.md": "deny", "asked": "ask"}}}"#;
    let mut world = World::new(&[
        ("home/.config/opencode/opencode.json", rules),
        ("work/asked/a.md", "SECRET"),
    ]);
    let write = |world: &World, file: &str, text: &str| {
        std::fs::write(world.path("work").join(file), text).unwrap();
    };
    for (file, text) in [
        ("t.txt", "!`touch EVIL`"),
        ("u.txt", "`touch EVIL`"),
        ("bang.txt", "!"),
        ("plain.txt", "do it"),
        ("auto.txt", "auto"),
        ("list.txt", "https://evil.test/x"),
        ("secret.md", "SECRET"),
    ] {
        write(&world, file, text);
    }
    for (document, asks) in [
        (
            json!({ "command": { "x": { "template": "{file:./t.txt}" } } }),
            "/command/x",
        ),
        (
            json!({ "command": { "x": { "template": "Do: {file:t.txt}" } } }),
            "/command/x",
        ),
        (
            json!({ "command": { "x": { "template": "!{file:u.txt}" } } }),
            "/command/x",
        ),
        (
            json!({ "command": { "x": { "template": "{file:bang.txt}`id`" } } }),
            "/command/x",
        ),
        (
            json!({ "command": { "x": { "template": "{file:plain.txt}" } } }),
            "",
        ),
        (json!({ "share": "{file:auto.txt}" }), "/share"),
        (
            json!({ "instructions": ["{file:./list.txt}.md"] }),
            "/instructions",
        ),
        (
            json!({ "agent": { "build": { "prompt": "{file:./secret.md}" } } }),
            "/agent/build/prompt",
        ),
        (
            json!({ "agent": { "build": { "prompt": "{file:./asked/a.md}" } } }),
            "/agent/build/prompt",
        ),
        (
            json!({ "agent": { "build": { "prompt": "{file:./plain.txt}" } } }),
            "",
        ),
    ] {
        write(&world, "opencode.json", &document.to_string());
        world.options.project = ProjectConfig::Trusted(None);
        let loaded = world.load().unwrap();
        let found: Vec<&str> = loaded.asks.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(found.join(" "), asks, "{document}");
        let left = loaded.value.to_string();
        assert!(
            !left.contains("EVIL") && !left.contains("SECRET"),
            "{document}: {left}"
        );
    }
    // Trusted, it is asked about again where the text changes, and what the user denies stays denied.
    let command = json!({ "command": { "x": { "template": "{file:t.txt}" } } });
    write(&world, "opencode.json", &command.to_string());
    world.options.project = ProjectConfig::Trusted(None);
    let known = world.load().unwrap().asks;
    assert!(known[0].shown.contains("touch EVIL"), "{}", known[0].shown);
    world.options.project = ProjectConfig::Trusted(Some(known));
    assert!(world.load().unwrap().is_trusted);
    write(&world, "t.txt", "!`touch OTHER`");
    assert!(!world.load().unwrap().is_trusted);
    let prompt = json!({ "agent": { "build": { "prompt": "{file:./secret.md}" } } });
    write(&world, "opencode.json", &prompt.to_string());
    world.options.project = ProjectConfig::All;
    let error = world.load().unwrap_err().to_string();
    assert!(error.ends_with("your rules deny reading it"), "{error}");
}
