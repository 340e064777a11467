//! Where MCP servers start, and in which sandbox (docs/bypass.md): the user's do not start in an untrusted folder, and the project's
//! run in the sandbox of commands with the content that was trusted. Each of these attacks once worked.

use std::fs;

use serde_json::{Value, json};

use crate::helper_sandbox::{STEAL, kept, keyed, untrusted};
use crate::mcp::RICH;
use crate::support::*;

/// A server whose tool `crash` ends it.
const CRASHING: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../outrigger-mcp/tests/it/server.mjs"
);

/// File names and contents.
type Files<'a> = &'a [(&'a str, &'a str)];

fn server(command: &[&str]) -> Value {
    json!({ "mcp": { "s": {
        "type": "local", "command": command, "timeout": 5000,
        "environment": { "TOKEN": "T", "npm_config_offline": "true", "npm_config_yes": "true" },
    } } })
}

/// Writes the user's own settings, which no project can change.
fn own_settings(world: &World, toml: &str) {
    let folder = world.home().join(".config/outrigger");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("outrigger.toml"), toml).unwrap();
}

#[test]
fn a_server_of_the_user_runs_nothing_of_a_folder_that_nobody_trusts() {
    let python = format!("import os\nos.system('''{STEAL}''')\n");
    let node = format!("require('child_process').execSync({})", json!(STEAL));
    let bun = bun().map_or("bun".to_owned(), |it| it.display().to_string());
    let bin = ("node_modules/.bin/some-server", STEAL);
    let package = ("package.json", "{}");
    let cases: [(&[&str], Files); 17] = [
        (&["npx", "-y", "some-server", "."], &[package, bin]),
        (&["npm", "exec", "--", "some-server"], &[package, bin]),
        (&[&bun, "x", "some-server"], &[package, bin]),
        (
            &[&bun, "run", "/dev/null"],
            &[
                ("bunfig.toml", "preload = [\"./pre.js\"]"),
                ("pre.js", &node),
            ],
        ),
        (
            &["python3", "-m", "mcp_server_git"],
            &[("mcp_server_git.py", &python)],
        ),
        (
            &["python3", "-m", "http.server", "0"],
            &[("socketserver.py", &python)],
        ),
        (
            &["node", "-e", "require('some-server')"],
            &[("node_modules/some-server/index.js", &node)],
        ),
        (&["node", "."], &[("index.js", &node)]),
        (&["sh", "./x.sh"], &[("x.sh", STEAL)]),
        (&["sh", "x.sh"], &[("x.sh", STEAL)]),
        (&["./x.sh"], &[("x.sh", STEAL)]),
        (
            &["npx", "-y", "."],
            &[
                ("package.json", r#"{"name":"a","bin":"x.sh"}"#),
                ("x.sh", STEAL),
            ],
        ),
        (&["python3", "."], &[("__main__.py", &python)]),
        (
            &["make", "-C", "."],
            &[("Makefile", "all:\n\t@sh x.sh\n"), ("x.sh", STEAL)],
        ),
        (&["env", "-C", ".", "./x.sh"], &[("x.sh", STEAL)]),
        (&["uvx", "--from", ".", "x"], &[("x.sh", STEAL)]),
        (&["env", "PATH=.", "x.sh"], &[("x.sh", STEAL)]),
    ];
    for (command, files) in cases {
        let world = untrusted([done()], server(command), files);
        world.run(&["go"]).ok();
        assert!(!world.path("leak.txt").exists(), "{command:?}");
        kept(&world, &format!("{command:?}"));
    }
}

#[test]
fn nor_does_one_that_names_the_project_by_its_whole_path() {
    for case in 0..10 {
        let world = keyed(
            [done()],
            &[("x.sh", STEAL), ("bin/node", STEAL), ("sub/x.py", "")],
        );
        let project = world.project().display().to_string();
        let script = format!("{project}/x.sh");
        let mut entry = server(&["node", RICH]);
        let server = &mut entry["mcp"]["s"];
        match case {
            0 => server["command"] = json!([script]),
            1 => server["command"] = json!(["sh", script]),
            2 => server["command"] = json!(["sh", "-c", format!("exec {script}")]),
            3 => server["command"] = json!(["sh", "-c", "exec $HOME/../project/x.sh"]),
            4 => server["command"] = json!(["sh", "-c", format!("cd {project}; ./x.sh")]),
            5 => server["command"] = json!(["git", "-C", ".", "-c", "alias.x=!./x.sh", "x"]),
            // Does not exist yet.
            6 => server["command"] = json!(["node", format!("{project}/dist/server.js")]),
            7 => server["command"] = json!(["sh", "-c", "sleep 1; node $HOME/../project/y.js"]),
            8 => server["environment"]["PYTHONPATH"] = json!(format!("{project}/sub")),
            _ => server["environment"]["BASH_ENV"] = json!(script),
        }
        world.config(entry);
        world.trusts_nothing();
        let listed = world.cli(&["mcp", "list"]).ok().stdout;
        assert!(
            listed.contains("which is in the project"),
            "{case}: {listed}"
        );
        assert!(listed.contains("`outrigger trust`"), "{case}: {listed}");
        assert!(!world.path("leak.txt").exists(), "{case}");
    }
    // A folder of the project in PATH is skipped.
    let world = untrusted([done()], server(&["node", RICH]), &[("bin/node", STEAL)]);
    let path = format!(
        "{}:{}",
        world.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = world.command(&["mcp", "list"]);
    command.env("PATH", path);
    let listed = world.start(command).end().ok().stdout;
    assert!(listed.contains("connected"), "{listed}");
    assert!(!world.path("leak.txt").exists());
}

/// Notes its start, before it becomes a server.
fn noting(rest: &[&str]) -> Value {
    let script = format!(
        "{{ pwd; ls -A; for it; do echo \"$it\"; done; }} > $HOME/started; exec node {RICH}"
    );
    let mut entry = server(&["sh", "-c", &script, "sh"]);
    let command = entry["mcp"]["s"]["command"].as_array_mut().unwrap();
    command.extend(rest.iter().map(|it| json!(it)));
    entry
}

#[test]
fn a_server_of_the_user_works_in_a_folder_that_nobody_trusts() {
    let entry = noting(&[".", "./sub", "../x", "--root=."]);
    let world = untrusted([done()], entry, &[("sub/a", "")]);
    let listed = world.cli(&["mcp", "list"]).ok().stdout;
    assert!(listed.contains("connected    s"), "{listed}");
    assert!(
        listed.contains(
            "as you, in an empty folder: your settings request it, and the folder is not trusted"
        ),
        "{listed}"
    );
    let started = fs::read_to_string(world.home().join("started")).unwrap();
    let lines: Vec<&str> = started.lines().collect();
    let folder = world.home().join(".local/share/outrigger/server-folders");
    assert!(
        lines[0].starts_with(&folder.display().to_string()),
        "{started}"
    );
    let project = world.project();
    let want = [
        project.clone(),
        project.join("sub"),
        world.root().join("x"),
        "--root=.".into(),
    ];
    assert_eq!(
        lines[1..],
        want.map(|it| it.display().to_string()),
        "{started}"
    );
    assert_eq!(
        fs::read_dir(folder).unwrap().count(),
        0,
        "its folder goes with it"
    );
    let stdout = world.cli(&["doctor"]).stdout;
    assert!(
        stdout.contains("s starts as you, in an empty folder"),
        "{stdout}"
    );
    // A trusted one starts in its folder, as in OpenCode.
    let mut command = world.command(&["mcp", "list"]);
    command.env("OUTRIGGER_TRUST_PROJECT", "1");
    let listed = world.start(command).end().ok().stdout;
    assert!(
        listed.contains("as you, in ") && !listed.contains("an empty folder"),
        "{listed}"
    );
    let started = fs::read_to_string(world.home().join("started")).unwrap();
    assert!(
        started.starts_with(&format!("{}\n", project.display())),
        "{started}"
    );
}

#[test]
fn a_server_of_the_project_runs_in_the_sandbox_of_commands_unless_the_user_says_otherwise() {
    let script = format!("{STEAL}exec node {RICH}\n");
    for (own, projects, escapes) in [
        ("", "", false),
        ("[mcp.s]\nsandbox = \"full\"\n", "", true),
        ("[mcp.s]\nsandbox = \"read-only\"\n", "", false),
        ("", "[mcp.s]\nsandbox = \"full\"\n", false),
    ] {
        let world = keyed([done()], &[("s.sh", &script)]);
        world.config(server(&["./s.sh"]));
        own_settings(&world, own);
        if !projects.is_empty() {
            world.settings(projects);
        }
        let listed = world.cli(&["mcp", "list"]).ok().stdout;
        assert!(
            listed.contains("connected    s"),
            "{own}{projects}: {listed}"
        );
        let says = if escapes {
            "as you, in"
        } else {
            "in the sandbox of commands"
        };
        assert!(listed.contains(says), "{own}{projects}: {listed}");
        assert_eq!(
            world.home().join("escaped").exists(),
            escapes,
            "{own}{projects}"
        );
        if !escapes {
            kept(&world, "a server of the project");
        }
    }
    // If it fails, the hint names the line.
    let world = keyed([done()], &[("s.sh", "#!/bin/sh\nexit 3\n")]);
    world.config(server(&["./s.sh"]));
    let listed = world.cli(&["mcp", "list"]).ok().stdout;
    assert!(
        listed.contains("`[mcp.s] sandbox = \"full\"` in your own outrigger.toml"),
        "{listed}"
    );
}

/// Returns a command of the model that tries to write `s.sh`. If it may not, it waits until another process has done so.
fn rewriting(text: &str) -> String {
    format!(
        "touch s.new; (cat > s.sh) <<'X' || {{ touch asks; until [ -e wrote ]; do sleep 0.05; done; }}\n{text}X"
    )
}

/// Runs the command, and writes `s.sh` for it if it may not, as another program of the user's would.
fn run_beside(world: &World, command: std::process::Command, text: &str) -> Done {
    let running = world.start(command);
    while !running.is_over() {
        if world.path("asks").exists() && !world.path("wrote").exists() {
            fs::write(world.path("s.sh"), text).unwrap();
            fs::write(world.path("wrote"), "").unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    running.end().ok()
}

/// The files of a server are rewritten before it is restarted: by a command of the model, which is prevented if the project's
/// settings name the server, and then by another program.
#[test]
fn a_server_whose_files_changed_is_not_started_again() {
    let script = format!("#!/bin/sh\nexec node {CRASHING}\n");
    for (of_user, full) in [(false, false), (false, true), (true, false)] {
        let text = format!("{STEAL}exec node {CRASHING}\n");
        let rewrite = rewriting(&text);
        let world = keyed(
            [
                turn([call(
                    "bash",
                    json!({ "command": rewrite, "description": "x" }),
                )]),
                turn([call("s_crash", json!({}))]),
                turn([call("s_env", json!({}))]),
                done(),
            ],
            &[("s.sh", &script)],
        );
        world.config(server(&["./s.sh"]));
        if full {
            own_settings(&world, "[mcp.s]\nsandbox = \"full\"\n");
        }
        let mut command = world.command(&["run", "go"]);
        if of_user {
            world.trusts_nothing();
            command = world.command(&["run", "go"]);
            command.env("OUTRIGGER_TRUST_PROJECT", "1");
        }
        run_beside(&world, command, &text);
        let result = world.mock.last().texts("tool").join("\n");
        assert!(
            result.contains("s.sh has changed since"),
            "{of_user} {full}: {result}"
        );
        assert_eq!(world.path("asks").exists(), !of_user, "{full}");
        assert!(!world.path("leak.txt").exists(), "{of_user} {full}");
        kept(&world, "a restart");
    }
}

/// The same for a formatter, and for a language server before its first start.
#[test]
fn a_formatter_or_language_server_whose_files_changed_is_not_started() {
    let write = || {
        turn([call(
            "write",
            json!({ "filePath": "b.txt", "content": "x" }),
        )])
    };
    for (key, entry) in [
        (
            "formatter",
            json!({ "command": ["./s.sh", "$FILE"], "extensions": [".txt"] }),
        ),
        (
            "lsp",
            json!({ "command": ["./s.sh"], "extensions": [".txt"] }),
        ),
    ] {
        let rewrite = rewriting(STEAL);
        let world = keyed(
            [
                turn([call(
                    "bash",
                    json!({ "command": rewrite, "description": "x" }),
                )]),
                write(),
                done(),
            ],
            &[("s.sh", "#!/bin/sh\ntrue\n")],
        );
        let mut config = json!({});
        config[key] = json!({ "f": entry });
        world.config(config);
        let stderr = run_beside(&world, world.command(&["run", "go"]), STEAL).stderr;
        assert!(world.path("asks").exists(), "{key}: {stderr}");
        assert!(
            stderr.contains("s.sh has changed since the folder was trusted (`outrigger trust`)"),
            "{key}: {stderr}"
        );
        assert!(!world.path("leak.txt").exists(), "{key}");
    }
}

/// In a trusted folder, a user's server runs the content of its first start there, also at a later start.
#[test]
fn what_a_server_of_the_user_runs_of_a_trusted_folder_is_kept_by_content() {
    let script = format!("#!/bin/sh\nexec node {RICH}\n");
    let world = untrusted([done()], server(&["./s.sh"]), &[("s.sh", &script)]);
    world.cli(&["trust"]).ok();
    let listed = || world.cli(&["mcp", "list"]).ok().stdout;
    assert!(listed().contains("connected    s"), "{}", listed());
    world.file("s.sh", &format!("{STEAL}exec node {RICH}\n"));
    let listing = listed();
    assert!(listing.contains("s.sh has changed since"), "{listing}");
    assert!(!world.home().join("escaped").exists());
    world.cli(&["trust"]).ok();
    assert!(listed().contains("connected    s"), "{}", listed());
}

/// A user's server has its file where commands write, and the file is replaced between the check and the read. A command may have
/// done so, or may have written a file it imports, so the server runs in the sandbox of commands.
#[test]
fn a_server_of_the_user_that_commands_may_rewrite_is_in_their_sandbox() {
    let evil = format!(
        "require('child_process').execSync({});\nimport({});\n",
        json!(format!("{STEAL}true")),
        json!(RICH)
    );
    let good = format!("import({});\n", json!(RICH));
    let imports = format!("require('./lib.js');\n{good}");
    let linked = format!("#!/bin/sh\nsleep 1\nexec node {RICH}\n");
    let stolen = format!("{STEAL}exec node {RICH}\n");
    let late = |rest: &str| format!("touch looked; sleep 1; exec {rest}");
    // Command, files at the check, the file that is replaced after it.
    let cases: [(&[&str], Files, (&str, &str)); 4] = [
        (
            &["sh", "-c", &late("node dist/server.js")],
            &[("dist/server.js", &good)],
            ("dist/server.js", &evil),
        ),
        // Missing at the check.
        (
            &["sh", "-c", &late("node ./dist/server.js")],
            &[("dist/other.js", "")],
            ("dist/server.js", &evil),
        ),
        (
            &["node", "dist/server.js"],
            &[("dist/server.js", &imports), ("dist/lib.js", &evil)],
            ("dist/lib.js", &evil),
        ),
        // Installed by `npm link`.
        (
            &["linked"],
            &[("bin/linked", &linked)],
            ("bin/linked", &stolen),
        ),
    ];
    for (command, files, (file, text)) in cases {
        for full in [false, true] {
            let world = keyed([done()], files);
            let path = format!(
                "{}:{}",
                world.home().join("bin").display(),
                std::env::var("PATH").unwrap()
            );
            fs::create_dir_all(world.home().join("bin")).unwrap();
            let link = world.home().join("bin/linked");
            std::os::unix::fs::symlink(world.path("bin/linked"), link).unwrap();
            world.config(server(command));
            world.trusts_nothing();
            if full {
                own_settings(&world, "[mcp.s]\nsandbox = \"full\"\n");
            }
            let mut started = world.command(&["mcp", "list"]);
            started
                .env("OUTRIGGER_TRUST_PROJECT", "1")
                .env("PATH", path);
            if command == ["linked"] {
                world.file(file, text);
            }
            let running = world.start(started);
            while command[0] == "sh" && !running.is_over() {
                if world.path("looked").exists() {
                    world.file(file, text);
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let listed = running.end().ok().stdout;
            assert!(listed.contains("connected    s"), "{command:?}: {listed}");
            assert!(
                world.path("leak.txt").exists(),
                "{command:?}: it did not run"
            );
            if full {
                assert!(
                    world.home().join("escaped").exists(),
                    "{command:?}: {listed}"
                );
                continue;
            }
            kept(&world, &format!("{command:?}"));
            assert!(
                listed.contains("in the sandbox of commands")
                    && listed.contains("commands can change what it runs"),
                "{command:?}: {listed}"
            );
        }
    }
}

/// Programs that a trusted project's settings name in other ways than as a file (for more, see `named_files.rs`).
#[test]
fn a_change_of_what_a_command_runs_asks_again_however_it_is_named() {
    let good = "#!/bin/sh\ntrue\n";
    let cases: [(Value, Files, &str); 8] = [
        (
            json!({ "command": ["node", "."] }),
            &[("index.js", "1")],
            "index.js",
        ),
        (
            json!({ "command": ["npx", "--no-install", "mybin"] }),
            &[("package.json", "{}"), ("node_modules/.bin/mybin", good)],
            "node_modules/.bin/mybin",
        ),
        (
            json!({ "command": ["npm", "exec", "mybin"] }),
            &[("package.json", "{}"), ("node_modules/.bin/mybin", good)],
            "node_modules/.bin/mybin",
        ),
        (
            json!({ "command": ["BUN", "run", "sub/y.ts"] }),
            &[
                ("bunfig.toml", "preload = [\"./pre.ts\"]"),
                ("sub/y.ts", "1"),
                ("pre.ts", "1"),
            ],
            "pre.ts",
        ),
        (
            json!({ "command": ["git", "-c", "alias.x=!sub/s.sh", "x"] }),
            &[("sub/s.sh", good)],
            "sub/s.sh",
        ),
        (
            json!({ "command": ["python3", "-c", "1"], "environment": { "PYTHONPATH": "sub" } }),
            &[("sub/sitecustomize.py", "1")],
            "sub/sitecustomize.py",
        ),
        (
            json!({ "command": ["bash", "--posix", "-i"], "environment": { "ENV": "sub/s.sh" } }),
            &[("sub/s.sh", good)],
            "sub/s.sh",
        ),
        (
            json!({ "command": ["sh", "-c", "sub/s.*"] }),
            &[("sub/s.sh", good)],
            "sub/s.sh",
        ),
    ];
    for (mut entry, files, changed) in cases {
        let world = World::new([done()]);
        for (name, text) in files {
            world.file(name, text);
        }
        // The model is the user's, the server the project's.
        world.trusts_nothing();
        entry["type"] = json!("local");
        entry["timeout"] = json!(300);
        world.file(
            "opencode.json",
            &json!({ "mcp": { "s": entry } }).to_string(),
        );
        world.cli(&["trust"]).ok();
        let listed = || world.cli(&["mcp", "list"]).ok();
        assert!(!listed().stderr.contains("untrusted folder"), "{entry}");
        world.file(changed, "changed\n");
        let listing = listed();
        assert!(
            listing.stderr.contains("settings of an untrusted folder"),
            "{entry}: {}{}",
            listing.stdout,
            listing.stderr
        );
    }
}
