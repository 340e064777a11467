//! The typed view: permissions, agents, commands, what hooks wrote, skills.

use serde_json::json;

use crate::world::World;

#[test]
fn permissions() {
    let rules = |files: &[(&str, &str)], env: Option<&str>| {
        let mut world = World::new(files);
        if let Some(text) = env {
            world = world.env("OPENCODE_PERMISSION", text);
        }
        let loaded = world.load().unwrap();
        let shown: Vec<String> = loaded
            .config
            .permission
            .iter()
            .map(|r| {
                world
                    .text(format!("{} {} {:?}", r.permission, r.pattern, r.action))
                    .to_lowercase()
            })
            .collect();
        (shown.join("; "), loaded.problems.len())
    };
    let project = |text: &'static str| [("work/opencode.json", text)];
    for (files, env, expected, problems) in [
        (project(r#"{"permission": "ask"}"#), None, "* * ask", 0),
        (
            project(r#"{"permission": {"bash": {"git *": "allow", "*": "ask"}, "edit": "deny"}}"#),
            None,
            "bash git * allow; bash * ask; edit * deny",
            1,
        ),
        (
            project(
                r#"{"tools": {"webfetch": false, "write": false}, "permission": {"bash": "ask", "edit": "allow"}}"#,
            ),
            None,
            "webfetch * deny; edit * allow; bash * ask",
            0,
        ),
        (
            project(r#"{"permission": {"read": {"~/x/*": "deny"}}}"#),
            None,
            "read /home/x/* deny",
            0,
        ),
        (
            project(r#"{"permission": {"bash": "ask"}}"#),
            Some(r#"{"bash": "deny", "edit": "ask"}"#),
            "bash * deny; edit * ask",
            0,
        ),
        (
            project(r#"{"permission": {"bash": "ask"}}"#),
            Some("allow"),
            "bash * ask",
            1,
        ),
        (
            project(r#"{"permission": {"bash": "ask"}}"#),
            Some("\"allow\""),
            "bash * ask; * * allow",
            0,
        ),
    ] {
        assert_eq!(
            rules(&files, env),
            (expected.to_owned(), problems),
            "{files:?}"
        );
    }
}

#[test]
fn agents_and_commands() {
    let world = World::new(&[
        (
            "work/opencode.json",
            r#"{"agent": {"build": {"model": "p/m", "mode": "primary", "tools": {"write": false, "mine": true},
                "permission": {"bash": {"rm *": "deny"}}, "maxSteps": 7, "reasoningEffort": "high", "order": 2,
                "temperature": 0.2, "top_p": 0.9, "variant": "v", "color": "blue", "hidden": true, "disable": true},
              "one": {"description": "from json", "prompt": "json"}},
              "command": {"c": {"template": "t $1", "subtask": true, "model": "p/m", "agent": "build", "description": "d"}}}"#,
        ),
        (
            "work/.opencode/agents/one.md",
            "---\nmode: subagent\n---\nfrom file\n",
        ),
    ]);
    let config = world.load().unwrap().config;
    insta::assert_snapshot!(format!("{:#?}\n{:#?}", config.agent, config.command), @r#"
    [
        AgentEntry {
            name: "build",
            model: Some(
                "p/m",
            ),
            variant: Some(
                "v",
            ),
            prompt: None,
            description: None,
            temperature: Some(
                0.2,
            ),
            top_p: Some(
                0.9,
            ),
            mode: Some(
                Primary,
            ),
            hidden: Some(
                true,
            ),
            disable: true,
            tools: {
                "mine": true,
                "write": false,
            },
            permission: [
                Rule {
                    permission: "edit",
                    pattern: "*",
                    action: Deny,
                },
                Rule {
                    permission: "mine",
                    pattern: "*",
                    action: Allow,
                },
                Rule {
                    permission: "bash",
                    pattern: "rm *",
                    action: Deny,
                },
            ],
            steps: Some(
                7,
            ),
            options: {
                "reasoningEffort": String("high"),
            },
            color: Some(
                "blue",
            ),
            order: Some(
                2.0,
            ),
        },
        AgentEntry {
            name: "one",
            model: None,
            variant: None,
            prompt: Some(
                "from file",
            ),
            description: Some(
                "from json",
            ),
            temperature: None,
            top_p: None,
            mode: Some(
                Subagent,
            ),
            hidden: None,
            disable: false,
            tools: {},
            permission: [],
            steps: None,
            options: {},
            color: None,
            order: None,
        },
    ]
    [
        CommandEntry {
            name: "c",
            template: "t $1",
            description: Some(
                "d",
            ),
            agent: Some(
                "build",
            ),
            model: Some(
                "p/m",
            ),
            variant: None,
            subtask: Some(
                true,
            ),
        },
    ]
    "#);
    assert!(
        config.agent("one").is_some()
            && config.command("c").is_some()
            && config.command("d").is_none()
    );
}

#[test]
fn what_config_hooks_wrote_is_read_with_patience() {
    let world = World::new(&[("work/opencode.json", r#"{"model": "p/m"}"#)]);
    let loaded = world.load().unwrap();
    let mut value = loaded.value.clone();
    value["agent"] = json!({
        "Display - name": {"mode": "primary", "prompt": "p", "permission": {"question": "deny"}, "tools": {"bash": false},
            "order": 1, "maxSteps": 3, "skills": ["x"]},
        "bad": {"mode": "main", "temperature": "hot", "prompt": "kept"}
    });
    value["command"] = json!({"no-template": {"description": "d"}, "ok": {"template": "t"}});
    value["instructions"] = json!(["a", 1, "b", 2]);
    value["default_agent"] = json!("Display - name");
    value["tools"] = json!({"grep_app_*": false});
    let (config, problems) = loaded.reread(value);
    assert_eq!(config.instructions, ["a", "b"]);
    assert_eq!(config.default_agent.as_deref(), Some("Display - name"));
    assert_eq!(config.command.len(), 1);
    let agent = config.agent("Display - name").unwrap();
    assert_eq!(
        (agent.steps, agent.order, agent.permission.len()),
        (Some(3), Some(1.0), 2)
    );
    assert!(agent.options.is_empty());
    assert_eq!(config.agent("bad").unwrap().prompt.as_deref(), Some("kept"));
    assert_eq!(config.permission.len(), 1);
    let seen: Vec<String> = problems.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(seen.join("\n"), @r#"
    config hook: /agent/bad/mode: expected "subagent", "primary" or "all", found "main"; skipped
    config hook: /agent/bad/temperature: expected a number, found "hot"; skipped
    config hook: /command/no-template: expected an object with `template`, found one without `template`; skipped
    config hook: /instructions/1: expected text, found 1; skipped
    config hook: /instructions/3: expected text, found 2; skipped
    "#);
}

#[test]
fn other_switches() {
    let world = World::new(&[(
        "work/opencode.json",
        r#"{"autoshare": true, "compaction": {"auto": true, "reserved": 5}}"#,
    )])
    .env("OPENCODE_DISABLE_AUTOCOMPACT", "1")
    .env("OPENCODE_DISABLE_PRUNE", "1");
    let loaded = world.load().unwrap();
    assert_eq!(loaded.value["share"], "auto");
    assert_eq!(
        loaded.value["compaction"],
        json!({"auto": false, "prune": false, "reserved": 5})
    );
    assert_eq!(loaded.config.compaction.reserved, Some(5));
}

#[test]
fn skills_are_looked_for_where_opencode_looks() {
    let skill = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nbody\n");
    let (a, b, c, d) = (skill("a"), skill("b"), skill("c"), skill("d"));
    let files = [
        ("home/.claude/skills/a/SKILL.md", a.as_str()),
        ("work/.agents/skills/b/SKILL.md", b.as_str()),
        ("work/.opencode/skill/c/SKILL.md", c.as_str()),
        ("work/sub/more/x/SKILL.md", d.as_str()),
        (
            "work/opencode.json",
            r#"{"skills": {"paths": ["more", "~/none"], "urls": ["http://x/"]}}"#,
        ),
    ];
    for (switch, expected) in [
        ("NONE", &["a", "b", "c", "d"][..]),
        ("OPENCODE_DISABLE_CLAUDE_CODE_SKILLS", &["b", "c", "d"]),
        ("OPENCODE_DISABLE_EXTERNAL_SKILLS", &["c", "d"]),
    ] {
        let world = World::new(&files).env(switch, "1");
        let loaded = world.load().unwrap();
        let (skills, problems) =
            outrigger_config::skills::discover(&loaded.skill_search(&loaded.config));
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!(names, expected, "{switch}");
        assert!(problems.is_empty());
        assert_eq!(loaded.config.skill_urls, ["http://x/"]);
    }
}

/// The author of the project could have a link show what our process may read (docs/bypass.md).
#[test]
fn links_out_of_the_project_are_no_agents_commands_or_skills() {
    let named = "---\nname: key\ndescription: d\n---\nsecret\n";
    let world = World::new(&[("home/.ssh/key", named), ("work/docs/key.md", named)]);
    let links = [
        ("agent/out.md", "home/.ssh/key"),
        ("agent/in.md", "work/docs/key.md"),
        ("command/out.md", "home/.ssh/key"),
        ("skill/out/SKILL.md", "home/.ssh/key"),
    ];
    for (link, to) in links {
        let link = world.path("work/.opencode").join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(world.path(to), link).unwrap();
    }
    let claude = world.path("work/.claude/commands/out.md");
    std::fs::create_dir_all(claude.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(world.path("home/.ssh/key"), claude).unwrap();

    let loaded = world.load().unwrap();
    assert_eq!(loaded.value["agent"]["key"]["prompt"], "secret");
    assert_eq!(loaded.value["command"], json!({}));
    let (skills, of_skills) =
        outrigger_config::skills::discover(&loaded.skill_search(&loaded.config));
    assert_eq!(skills, []);
    let (commands, of_commands) = loaded.claude_commands();
    assert_eq!(commands, []);
    let problems: Vec<String> = loaded
        .problems
        .iter()
        .chain(&of_skills)
        .chain(&of_commands)
        .map(|problem| world.text(problem))
        .collect();
    insta::assert_snapshot!(problems.join("\n"), @"
    /work/.opencode/command/out.md: a link that leads out of the project, or to what is not text or takes asking; skipped
    /work/.opencode/agent/out.md: a link that leads out of the project, or to what is not text or takes asking; skipped
    /work/.opencode/skill/out/SKILL.md: a link that leads out of the project, or to what is not text or takes asking; the skill is skipped
    /work/.claude/commands/out.md: a link that leads out of the project, or to what is not text or takes asking; the command is skipped
    ");
}

/// Nor may what they say be a text of the project that rules keep from being read.
#[test]
fn links_to_what_rules_keep_are_no_agents_and_commands() {
    let user = r#"{"permission": {"read": {"*": "allow", "kept/*": "deny", "asked/*": "ask"}}}"#;
    let world = World::new(&[
        ("home/.config/opencode/opencode.json", user),
        (
            "work/opencode.json",
            r#"{"permission": {"read": {"kept/*": "allow"}}}"#,
        ),
        ("work/kept/a.md", "secret"),
        ("work/asked/a.md", "secret"),
        ("work/open/a.md", "fine"),
    ]);
    for (link, to) in [
        ("agent/kept.md", "work/kept/a.md"),
        ("agent/asked.md", "work/asked/a.md"),
        ("command/kept.md", "work/kept/a.md"),
        ("command/open.md", "work/open/a.md"),
    ] {
        let link = world.path("work/.opencode").join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(world.path(to), link).unwrap();
    }
    let value = world.load().unwrap().value;
    assert!(!value.to_string().contains("secret"), "{value}");
    assert!(value.to_string().contains("fine"), "{value}");
}
