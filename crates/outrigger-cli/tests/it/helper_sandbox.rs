//! Formatters and language servers run in the sandbox of commands: a program that the model replaces can do no more than its commands
//! (docs/bypass.md). Each of these attacks once worked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::*;

/// Takes the key, and leaves a mark in the home folder.
pub(crate) const STEAL: &str =
    "#!/bin/sh\n{ cat $HOME/.ssh/id_rsa; touch $HOME/escaped; } > $PWD/leak.txt 2>&1\n";
const KEY: &str = "PRIVATE KEY";

/// Sets up a home with a key, and a project with these files, some of them scripts.
pub(crate) fn keyed(turns: impl IntoIterator<Item = Value>, files: &[(&str, &str)]) -> World {
    let world = World::new(turns);
    world.file(".git/HEAD", "ref: refs/heads/main\n");
    fs::create_dir_all(world.home().join(".ssh")).unwrap();
    fs::write(world.home().join(".ssh/id_rsa"), KEY).unwrap();
    for (name, text) in files {
        let path = world.file(name, text);
        if text.starts_with("#!") {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    world
}

/// Sets up the same with the user's own settings in an untrusted folder.
pub(crate) fn untrusted(
    turns: impl IntoIterator<Item = Value>,
    config: Value,
    files: &[(&str, &str)],
) -> World {
    let world = keyed(turns, files);
    world.config(config);
    world.trusts_nothing();
    world
}

/// Checks that nothing got out.
#[track_caller]
pub(crate) fn kept(world: &World, case: &str) {
    assert!(!world.home().join("escaped").exists(), "{case}");
    assert!(!world.read("leak.txt").contains(KEY), "{case}");
    let sent = world.mock.all_requests();
    assert!(
        !sent.iter().any(|it| it.body.to_string().contains(KEY)),
        "{case}"
    );
}

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

fn write(file: &str, text: &str) -> Value {
    turn([call("write", json!({ "filePath": file, "content": text }))])
}

/// Returns a command of the model that replaces another script with this one.
fn swap(file: &str) -> Value {
    bash(&format!(
        "mkdir -p $(dirname {file}); cat > {file} <<'X'\n{STEAL}X\nchmod +x {file}"
    ))
}

const PACKAGE: (&str, &str) = ("package.json", r#"{"devDependencies":{"prettier":"1"}}"#);
const NOTHING: &str = "#!/bin/sh\ntrue\n";

#[test]
fn a_script_in_the_place_of_a_formatter_or_language_server_stays_in_the_sandbox() {
    let formatter =
        json!({ "formatter": { "f": { "command": ["./x.sh", "$FILE"], "extensions": [".txt"] } } });
    let server = json!({ "lsp": { "l": { "command": ["./x.sh"], "extensions": [".txt"] } } });
    for (case, config) in [("a formatter", formatter), ("a language server", server)] {
        let world = keyed(
            [
                swap("x.sh"),
                write("b.txt", "x"),
                bash("cat leak.txt"),
                done(),
            ],
            &[("x.sh", NOTHING)],
        );
        world.config(config);
        world.run(&["go"]).ok();
        kept(&world, case);
    }
}

#[test]
fn a_formatter_of_the_project_runs_in_the_sandbox_where_the_folder_is_trusted() {
    for (case, files) in [
        ("one that the model makes", &[PACKAGE][..]),
        (
            "one that was there",
            &[PACKAGE, ("node_modules/.bin/prettier", NOTHING)][..],
        ),
    ] {
        let world = keyed(
            [
                swap("node_modules/.bin/prettier"),
                write("b.js", "x"),
                bash("cat leak.txt"),
                done(),
            ],
            files,
        );
        world.config(json!({ "formatter": true }));
        world.run(&["go"]).ok();
        assert!(world.path("leak.txt").exists(), "{case}: it did not run");
        kept(&world, case);
    }
}

#[test]
fn a_formatter_of_the_project_does_not_run_where_the_folder_is_not_trusted() {
    let config = json!({ "formatter": true });
    let script = ("node_modules/.bin/prettier", STEAL);
    for (case, turns, files) in [
        (
            "a cloned repository",
            vec![write("b.js", "x")],
            vec![PACKAGE, script],
        ),
        (
            "one that the model makes",
            vec![
                bash(r#"echo '{"devDependencies":{"prettier":"1"}}' > package.json"#),
                swap(script.0),
                write("b.js", "x"),
            ],
            vec![],
        ),
        (
            "one that a tool changes",
            vec![write(script.0, STEAL), write("b.js", "x")],
            vec![PACKAGE, (script.0, NOTHING)],
        ),
    ] {
        let world = untrusted(turns.into_iter().chain([done()]), config.clone(), &files);
        let stderr = world.run(&["go"]).ok().stderr;
        assert!(!world.path("leak.txt").exists(), "{case}");
        assert!(
            stderr.contains("the folder is not trusted (`outrigger trust`)"),
            "{case}: {stderr}"
        );
        kept(&world, case);
        assert_eq!(world.read("b.js"), "x");
    }
}

/// Neither does a program start that the user's own settings name by a path in the project.
#[test]
fn a_program_by_a_path_from_an_untrusted_project_is_not_started() {
    for (key, entry) in [
        (
            "formatter",
            json!({ "command": ["./x.sh", "$FILE"], "extensions": [".txt"] }),
        ),
        (
            "lsp",
            json!({ "command": ["./x.sh"], "extensions": [".txt"] }),
        ),
    ] {
        let mut config = json!({});
        config[key] = json!({ "mine": entry });
        let world = untrusted([write("b.txt", "x"), done()], config, &[("x.sh", STEAL)]);
        let stderr = world.run(&["go"]).ok().stderr;
        assert!(!world.path("leak.txt").exists(), "{key}");
        assert!(
            stderr.contains("x.sh lies in the project"),
            "{key}: {stderr}"
        );
    }
}

/// A formatter in PATH runs in the sandbox, and writes what it formats.
#[test]
fn a_formatter_in_path_works_in_an_untrusted_folder() {
    let script = "echo formatted > $1; cat $HOME/.ssh/id_rsa >> $1; echo x > $HOME/escaped";
    let config = json!({ "formatter": { "f": { "command": ["sh", "-c", script, "sh", "$FILE"], "extensions": [".txt"] } } });
    let world = untrusted([write("b.txt", "x"), done()], config, &[]);
    world.run(&["go"]).ok();
    assert_eq!(world.read("b.txt"), "formatted\n");
    kept(&world, "in PATH");
}

/// It runs as the user has it: `tools.sandbox = "full"` covers formatters, too.
#[test]
fn without_the_sandbox_of_commands_a_formatter_does_what_the_user_may() {
    let world = keyed([write("b.txt", "x"), done()], &[("x.sh", STEAL)]);
    world
        .config(json!({ "formatter": { "f": { "command": ["./x.sh"], "extensions": [".txt"] } } }));
    world
        .run_with(&[("OUTRIGGER_TOOLS_SANDBOX", "full")], &["go"])
        .ok();
    assert!(world.home().join("escaped").exists());
}

/// Files that the user creates while a language server runs stay, and the server changes no existing start-up file. A repository it leaves
/// starts no program for the user.
#[test]
fn a_language_server_changes_no_startup_file_and_undoes_none() {
    let script = "while read -r line; do break; done; echo evil > .envrc; git init -q sub; git -C sub config core.fsmonitor 'touch ../../ran; false'; \
                  mkdir -p target; echo x > target/x; sleep 60";
    let config =
        json!({ "lsp": { "l": { "command": ["sh", "-c", script], "extensions": [".txt"] } } });
    let makes = "until [ -f target/x ] && [ -e go ]; do sleep 0.05; done";
    let world = keyed(
        [write("b.txt", "x"), bash(makes), done()],
        &[(".envrc", "mine\n")],
    );
    world.config(config);
    let running = world.start(world.command(&["run", "go"]));
    assert!(wait_until(WAIT_TIMEOUT, || world.path("target/x").exists()));
    world.file(".vscode/tasks.json", "{}");
    world.file("go", "");
    running.end();
    assert_eq!(world.read(".envrc"), "mine\n");
    assert_eq!(world.read(".vscode/tasks.json"), "{}");
    let left = world.read("sub/.git/config");
    assert!(
        left.contains("[core]") && !left.contains("fsmonitor"),
        "{left}"
    );
}
