//! The one question about a folder: everything of a project that executes something, reads or sends data elsewhere or
//! loosens a rule is asked about at once, by content, and again when any of it changes.

use std::fs;

use serde_json::{Value, json};

use crate::question::{Person, UNDER, path_without_bun};
use crate::support::*;

const ASKS: &str = "? trust this folder";

/// The user has a model; the project has no settings yet.
fn users() -> World {
    let world = World::new([done()]);
    world.trusts_nothing();
    world
}

/// Returns the questions of any kind that waited for an answer.
fn questions(person: &Person) -> Vec<String> {
    let screen = person.screen();
    screen
        .lines()
        .filter(|line| line.starts_with("? "))
        .map(str::to_owned)
        .collect()
}

fn plugin(mark: &str) -> String {
    format!(
        "import fs from 'node:fs'\nexport const P = async () => {{ fs.writeFileSync('{mark}.txt', ''); return {{}} }}\n"
    )
}

fn runs(mark: &str) -> Value {
    json!(["sh", "-c", format!("touch {mark}.txt")])
}

fn hooks(line: &str) -> String {
    let hook = json!([{ "hooks": [{ "type": "command", "command": line }] }]);
    json!({ "hooks": { "UserPromptSubmit": hook } }).to_string()
}

/// Sets up a project as OpenCode and Claude Code know it, with something of everything.
fn project(world: &World) {
    world.file("one.js", &plugin("one"));
    let settings = json!({
        "plugin": ["./one.js"],
        "mcp": { "m": { "type": "local", "command": runs("m") } },
        "agent": { "build": { "permission": { "bash": "allow" } } },
    });
    world.file("opencode.json", &settings.to_string());
    let server =
        json!({ "mcpServers": { "n": { "command": "sh", "args": ["-c", "touch n.txt"] } } });
    world.file(".mcp.json", &server.to_string());
    world.file(".claude/settings.json", &hooks("sh hooks/a.sh"));
    world.file("hooks/a.sh", "touch hook.txt\n");
    world.file(".opencode/command/x.md", "Say !`id`");
}

const MARKS: [&str; 4] = ["one.txt", "m.txt", "n.txt", "hook.txt"];

fn ran(world: &World) -> Vec<&'static str> {
    let mut ran = Vec::new();
    for mark in MARKS {
        if fs::remove_file(world.path(mark)).is_ok() {
            ran.push(mark);
        }
    }
    ran
}

#[test]
fn a_project_is_one_question_and_each_change_one_more() {
    let world = users();
    project(&world);
    let answered = |answers: &[&str]| {
        let mut person = Person::at(&world, &["do it"]);
        for (number, answer) in answers.iter().enumerate() {
            let asked = || person.screen().matches(ASKS).count() > number;
            assert!(wait_until(WAIT_TIMEOUT, asked), "{}", person.screen());
            person.types(answer);
        }
        person.ends(0);
        assert_eq!(
            questions(&person).len(),
            answers.len(),
            "{}",
            person.screen()
        );
        (world.plain(&person.screen()), ran(&world))
    };
    let (screen, done) = answered(&["n\n"]);
    assert_eq!(done, [""; 0], "{screen}");
    let (screen, done) = answered(&["d\n", "y\n"]);
    assert_eq!(done, MARKS, "{screen}");
    let question = screen.split(ASKS).next().unwrap();
    insta::assert_snapshot!(question.trim_end(), @"
    The settings of this folder need your trust, as long as this stays as it is:
       files │ one.js, hooks/a.sh
       rules │ build/permission (opencode.json), build/permission/bash (opencode.j
             ┊ son)
    commands │ .opencode/command/x.md
       hooks │ UserPromptSubmit (.claude/settings.json)
     plugins │ ./one.js
     servers │ m (opencode.json), n (.mcp.json)
    ");
    let prompt = "? trust this folder: 2 files, 2 rules, 1 command, 1 hook, 1 plugin, 2 servers? ";
    assert!(
        screen.contains(prompt) || screen.contains("? trust this folder? y/N/d: "),
        "{screen}"
    );
    assert!(
        screen.contains("servers │ .mcp.json /mcpServers/n:\n         │   {\"command\":\"sh\""),
        "{screen}"
    );
    assert_eq!(answered(&[]).1, MARKS, "it is known");

    // A script that a hook names.
    world.file("hooks/a.sh", "touch hook.txt # more\n");
    let (screen, done) = answered(&["y\n"]);
    assert!(screen.contains("files │ changed: hooks/a.sh\n"), "{screen}");
    assert_eq!(done, MARKS, "{screen}");
    // A plugin's code, which is also trusted by its hash.
    world.file("one.js", &format!("{}// more\n", plugin("one")));
    let (screen, done) = answered(&["y\n"]);
    assert!(screen.contains("changed: one.js"), "{screen}");
    assert_eq!(done, MARKS, "{screen}");
    // A plugin added later.
    world.file("two.js", &plugin("two"));
    let settings = world.read("opencode.json");
    world.file(
        "opencode.json",
        &settings.replace("\"./one.js\"", "\"./one.js\",\"./two.js\""),
    );
    let (screen, _) = answered(&["y\n"]);
    assert!(screen.contains("new: ./two.js"), "{screen}");
    assert!(world.path("two.txt").exists(), "{screen}");
    assert_eq!(answered(&[]).1, MARKS);
}

/// Something only Bun can run, of the project's and from npm, on a machine without Bun: no second question.
#[test]
fn what_plugins_need_is_part_of_the_one_question() {
    let world = users();
    let Some(path) = path_without_bun(&world) else {
        return;
    };
    world.file("typed.tsx", UNDER);
    let settings = json!({ "plugin": ["./typed.tsx", "acme@1.0.0"] });
    world.file("opencode.json", &settings.to_string());
    for (answer, want) in [("n\n", "hi"), ("y\n", "hi under bun under bun")] {
        let mut person = Person::prepared(&world, &["hi"], |command| {
            command.env("PATH", &path).env_remove("OUTRIGGER_BUN");
        });
        person.sees(ASKS);
        person.types(answer);
        person.ends(0);
        let screen = world.plain(&person.screen());
        assert_eq!(questions(&person).len(), 1, "{screen}");
        let line = "downloads │ bun@1.4.5 from npm (40 MB), if a plugin needs it\n";
        assert!(screen.contains(line), "{screen}");
        assert_eq!(world.mock.last().texts("user"), [want], "{screen}");
    }
}

/// Without a terminal, one line says what is skipped, and how to enable it.
#[test]
fn without_a_terminal_one_line_says_what_is_left_out() {
    let world = users();
    project(&world);
    let run = |args: &[&str]| world.cli(args).ok();
    let done = run(&["run", "do it"]);
    let lines: Vec<&str> = done
        .stderr
        .lines()
        .filter(|line| line.contains("outrigger "))
        .collect();
    assert_eq!(lines.len(), 1, "{}", done.stderr);
    let left_out = "ignoring settings of an untrusted folder: plugin, mcp, agent, command and 2 more; review and trust them with `outrigger trust`";
    assert!(lines[0].ends_with(left_out), "{lines:?}");
    assert_eq!(ran(&world), [""; 0], "{}", done.stderr);
    let done = run(&["run", "--trust", "do it"]);
    assert_eq!(ran(&world), MARKS, "{}", done.stderr);
    let done = world.run_with(&[("OUTRIGGER_TRUST_PROJECT", "1")], &["do it"]);
    assert_eq!(ran(&world), MARKS, "{}", done.stderr);
    run(&["trust"]);
    let done = run(&["run", "do it"]);
    assert_eq!(ran(&world), MARKS, "{}", done.stderr);
    assert!(!done.stderr.contains("untrusted folder"), "{}", done.stderr);
}

/// What runs is part of what is trusted, wherever it is written; texts are not.
#[test]
fn a_change_of_anything_that_runs_asks_again() {
    let world = users();
    let skill =
        |front: &str, text: &str| format!("---\nname: s\ndescription: x\n{front}---\n{text}\n");
    let server = "mcp:\n  k:\n    command: sh\n    args: [skill.sh]\n";
    let settings = json!({
        "mcp": { "m": { "type": "local", "command": ["sh", "tools/mcp.sh"], "enabled": false } },
        "lsp": { "l": { "command": ["./tools/lsp"], "extensions": [".zz"] } },
        "formatter": { "f": { "command": ["npm", "run", "format"], "extensions": [".zz"] } },
        "agent": { "a": { "mode": "subagent", "description": "x", "prompt": "y" } },
    });
    let settings = settings.to_string();
    let claude = hooks("\"$CLAUDE_PROJECT_DIR\"/hooks/a.sh");
    let mcp =
        json!({ "mcpServers": { "n": { "command": "python3", "args": ["-m", "tools.server"] } } })
            .to_string();
    let package = |line: &str, dependency: &str| {
        json!({ "scripts": { "format": line }, "dependencies": { "d": dependency } }).to_string()
    };
    let files = [
        ("opencode.json", settings.clone()),
        (".mcp.json", mcp.clone()),
        (".claude/settings.json", claude.clone()),
        (".claude/settings.local.json", hooks("true")),
        (".claude/commands/c.md", "!`id`".to_owned()),
        (".claude/commands/t.md", "text".to_owned()),
        (".claude/skills/s/SKILL.md", skill(server, "text")),
        (
            ".opencode/command/c.md",
            "!`sh tools/command.sh`".to_owned(),
        ),
        (".opencode/command/t.md", "text".to_owned()),
        (
            ".opencode/agent/b.md",
            "---\nmode: subagent\ndescription: x\npermission:\n  bash: allow\n---\ntext".to_owned(),
        ),
        (".opencode/plugin/p.js", plugin("p")),
        (
            ".opencode/tool/t.js",
            "export default { description: 'x', args: {}, execute: async () => 'x' }\n".to_owned(),
        ),
        ("tools/mcp.sh", "exit\n".to_owned()),
        ("tools/lsp", "exit\n".to_owned()),
        ("tools/format.js", "1\n".to_owned()),
        ("tools/server.py", "1\n".to_owned()),
        ("tools/command.sh", "exit\n".to_owned()),
        ("hooks/a.sh", "#!/bin/sh\n".to_owned()),
        ("package.json", package("node tools/format.js", "1")),
        ("AGENTS.md", "text".to_owned()),
    ];
    for (file, text) in &files {
        world.file(file, text);
    }
    world.cli(&["trust"]).ok();
    let is_trusted = || {
        let done = world.cli(&["run", "hi"]);
        !done.stderr.contains("untrusted folder")
    };
    assert!(is_trusted());
    for (file, text) in [
        ("AGENTS.md", "other".to_owned()),
        (".opencode/command/t.md", "other".to_owned()),
        (".claude/commands/t.md", "other".to_owned()),
        (
            ".opencode/agent/c.md",
            "---\nmode: subagent\ndescription: x\n---\nother".to_owned(),
        ),
        ("package.json", package("node tools/format.js", "2")),
        (".claude/skills/s/SKILL.md", skill(server, "other")),
        (
            "opencode.json",
            settings.replace("\"prompt\":\"y\"", "\"prompt\":\"z\""),
        ),
        ("tools/unnamed.sh", "exit\n".to_owned()),
    ] {
        world.file(file, &text);
        assert!(is_trusted(), "{file} is text");
    }
    for (file, text) in [
        (".mcp.json", mcp.replace("-m", "-I")),
        (".claude/settings.json", claude.replace("a.sh", "a.sh x")),
        (".claude/settings.local.json", hooks("false")),
        (".claude/commands/c.md", "!`true`".to_owned()),
        (".claude/commands/t.md", "!`true`".to_owned()),
        (
            ".claude/skills/s/SKILL.md",
            skill(&server.replace("sh\n", "bash\n"), "text"),
        ),
        (".claude/skills/s/SKILL.md", skill("", "!`true`")),
        (".claude/skills/s/.mcp.json", mcp.clone()),
        (".agents/skills/s/SKILL.md", skill(server, "text")),
        (".opencode/command/c.md", "!`true`".to_owned()),
        (
            ".opencode/agent/b.md",
            "---\nmode: subagent\ndescription: x\npermission:\n  '*': allow\n---\ntext".to_owned(),
        ),
        (".opencode/plugin/p.js", plugin("q")),
        (
            ".opencode/tool/t.js",
            "export default { description: 'y', args: {}, execute: async () => 'x' }\n".to_owned(),
        ),
        ("tools/mcp.sh", "true\n".to_owned()),
        ("tools/lsp", "true\n".to_owned()),
        ("tools/format.js", "2\n".to_owned()),
        ("tools/server.py", "2\n".to_owned()),
        ("tools/command.sh", "true\n".to_owned()),
        ("hooks/a.sh", "#!/bin/bash\n".to_owned()),
        ("package.json", package("node tools/format.js --x", "1")),
    ] {
        let before = fs::read(world.path(file)).ok();
        world.file(file, &text);
        assert!(!is_trusted(), "{file}: {text}");
        match before {
            Some(before) => fs::write(world.path(file), before).unwrap(),
            None => fs::remove_file(world.path(file)).unwrap(),
        }
    }
    // Replacements of a script: a pipe, another file behind a link, nothing.
    let script = world.path("hooks/a.sh");
    let text = fs::read(&script).unwrap();
    for place in ["pipe", "link", "nothing"] {
        fs::remove_file(&script).unwrap();
        match place {
            "pipe" => rustix::fs::mknodat(
                rustix::fs::CWD,
                &script,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RWXU,
                0,
            )
            .unwrap(),
            "link" => std::os::unix::fs::symlink("/bin/true", &script).unwrap(),
            _ => {}
        }
        // Nothing there needs less approval.
        assert_eq!(is_trusted(), place == "nothing", "{place}");
        let _ = fs::remove_file(&script);
        fs::write(&script, &text).unwrap();
    }
    assert!(is_trusted());
}

/// A single server or one file's hooks that were allowed on their own are allowed with the scripts they name.
#[test]
fn what_was_allowed_alone_is_allowed_with_its_scripts() {
    let world = users();
    let server = json!({ "mcpServers": { "n": { "command": "sh", "args": ["n.sh"] } } });
    world.file(".mcp.json", &server.to_string());
    world.file("n.sh", "touch n.txt\n");
    world.file(".claude/settings.json", &hooks("sh hooks/a.sh"));
    world.file("hooks/a.sh", "touch hook.txt\n");
    let run = |args: &[&str]| world.cli(args).ok();
    run(&["mcp", "allow", "n"]);
    run(&["plugin", "allow-hooks"]);
    run(&["run", "hi"]);
    assert_eq!(ran(&world), ["n.txt", "hook.txt"]);
    world.file("n.sh", "touch n.txt # more\n");
    world.file("hooks/a.sh", "touch hook.txt # more\n");
    run(&["run", "hi"]);
    assert_eq!(ran(&world), [""; 0]);
}
