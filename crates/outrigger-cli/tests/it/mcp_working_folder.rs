//! Servers of the user's that load code by names from where they are started: a command or a plugin that puts such a file into a
//! trusted project, between the look before a start and the moment in which it is loaded, has it run in a sandbox or not at all.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::helper_sandbox::{STEAL, kept, keyed};
use crate::mcp::RICH;
use crate::support::*;

/// Waits until a file is planted, so that every look has been taken before.
const LATE: &str = "touch $HOME/looked; until [ -e $HOME/planted ]; do sleep 0.05; done; ";

fn server(command: Value, environment: Value) -> Value {
    json!({ "mcp": { "s": {
        "type": "local", "command": command, "timeout": 20000, "environment": environment,
    } } })
}

/// A server's command, the files that are planted, and whether the server works without them.
type Case<'a> = (Value, &'a [(&'a str, &'a str)], bool);

/// Lists the servers, and plants the files once the server has been started.
fn list_and_plant(world: &World, files: &[(&str, &str)]) -> String {
    let mut command = world.command(&["mcp", "list"]);
    command.env("OUTRIGGER_TRUST_PROJECT", "1");
    let running = world.start(command);
    while !running.is_over() {
        let planted = world.home().join("planted");
        if world.home().join("looked").exists() && !planted.exists() {
            for (name, text) in files {
                let path = world.file(name, text);
                fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                    .unwrap();
            }
            fs::write(planted, "").unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    running.end().ok().stdout
}

#[test]
fn what_comes_into_the_project_after_the_look_is_not_loaded_as_the_user() {
    let python = format!("import os\nos.system('''{STEAL}''')\n");
    let node = format!("require('child_process').execSync({})", json!(STEAL));
    let bun = bun().map_or("bun".to_owned(), |it| it.display().to_string());
    let late = |line: &str| json!(["sh", "-c", format!("{LATE}exec {line}")]);
    let cases: [Case; 6] = [
        (late("python3 -m usrv"), &[("json.py", &python)], true),
        (late("python3 -m usrv"), &[("usrv.py", &python)], true),
        (json!(["HOME/starter"]), &[("json.py", &python)], true),
        (
            late("node -e \"require('some-server')\""),
            &[("node_modules/some-server/index.js", &node)],
            true,
        ),
        (
            late(&format!("{bun} {RICH}")),
            &[
                ("bunfig.toml", "preload = [\"./pre.js\"]"),
                ("pre.js", &node),
            ],
            true,
        ),
        (
            late("npx --offline -y some-server"),
            &[
                ("package.json", "{}"),
                ("node_modules/.bin/some-server", STEAL),
            ],
            false,
        ),
    ];
    for (mut command, files, works) in cases {
        let world = keyed([done()], &[]);
        let library = world.home().join("library");
        for (name, text) in [
            (
                "usrv.py",
                format!("import json, os\nos.execvp('node', ['node', '{RICH}'])\n"),
            ),
            ("some-server/index.js", format!("import('{RICH}')\n")),
            ("../starter", format!("#!/bin/sh\n{LATE}python3 -m usrv\n")),
        ] {
            let path = library.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
        }
        if command[0] == "HOME/starter" {
            command = json!([world.home().join("starter")]);
        }
        let variables = json!({ "PYTHONPATH": library, "NODE_PATH": library });
        world.config(server(command.clone(), variables));
        world.trusts_nothing();
        let listed = list_and_plant(&world, files);
        assert!(world.home().join("planted").exists(), "{command}: {listed}");
        assert_eq!(
            listed.contains("connected    s"),
            works,
            "{command}: {listed}"
        );
        kept(&world, &format!("{command}"));
    }
}

/// The user's word: an entry that names the project as its folder starts there, in the sandbox of commands.
#[test]
fn a_server_that_needs_the_project_as_its_folder_is_in_the_sandbox_of_commands() {
    let python = format!("import os\nos.system('''{STEAL}''')\n");
    for full in [false, true] {
        let world = keyed([done()], &[]);
        let library = world.home().join("library");
        fs::create_dir_all(&library).unwrap();
        let module = format!("import json, os\nos.execvp('node', ['node', '{RICH}'])\n");
        fs::write(library.join("usrv.py"), module).unwrap();
        // A look finds nothing: the file comes with the start.
        let late = "cp $PLANT json.py; exec python3 -m usrv";
        let plant = world.home().join("plant.py");
        fs::write(&plant, &python).unwrap();
        let mut entry = server(
            json!(["sh", "-c", late]),
            json!({ "PYTHONPATH": library, "PLANT": plant }),
        );
        entry["mcp"]["s"]["cwd"] = json!(".");
        world.config(entry);
        world.trusts_nothing();
        if full {
            let folder = world.home().join(".config/outrigger");
            fs::create_dir_all(&folder).unwrap();
            fs::write(
                folder.join("outrigger.toml"),
                "[mcp.s]\nsandbox = \"full\"\n",
            )
            .unwrap();
        }
        let mut command = world.command(&["mcp", "list"]);
        command.env("OUTRIGGER_TRUST_PROJECT", "1");
        let listed = world.start(command).end().ok().stdout;
        assert!(listed.contains("connected    s"), "{listed}");
        assert!(world.path("leak.txt").exists(), "it did not run: {listed}");
        assert_eq!(world.home().join("escaped").exists(), full, "{listed}");
        let says = if full {
            "as you, in "
        } else {
            "loads code by name from a folder that commands can change"
        };
        assert!(listed.contains(says), "{listed}");
        if !full {
            kept(&world, "in the project");
        }
    }
}
