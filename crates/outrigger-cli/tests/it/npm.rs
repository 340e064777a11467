//! Published plugins, unmodified, from npm: the binary installs them, they work in a turn, and work again with no registry.
//!
//! Packages and npm's downloads are kept in `.work/plugin-cache`, so only the first run of these tests uses the network. If the packages
//! are neither there nor fetched, each test says so and ends: see `outrigger_test_support::skip`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::*;

const RECORDER: &str = "opencode-prompt-recorder@1.9.9";
const CHECK: &str = "@sureshsankaran/opencode-destructive-check@1.0.5";
const SKILLS: &str = "opencode-skills@0.1.7";

/// An address where nothing answers.
const NO_REGISTRY: &str = "http://127.0.0.1:9/";

/// Returns the folder for files kept between test runs.
pub(crate) fn kept(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let folder = root.join(".work/plugin-cache").join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Sets the user's own access to the registry, and the kept folders.
pub(crate) fn reaching_npm(command: &mut Command) {
    for name in [
        "NODE_EXTRA_CA_CERTS",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
        "https_proxy",
        "http_proxy",
        "no_proxy",
    ] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    for (name, value) in std::env::vars_os().filter(|(name, _)| {
        name.to_string_lossy()
            .to_lowercase()
            .starts_with("npm_config_")
    }) {
        command.env(name, value);
    }
    if let Some(home) = std::env::var_os("HOME") {
        command.env("npm_config_userconfig", Path::new(&home).join(".npmrc"));
    }
    command
        .env("npm_config_cache", kept("npm"))
        .env("BUN_INSTALL_CACHE_DIR", kept("bun"))
        .env("XDG_CACHE_HOME", kept("xdg"));
}

pub(crate) fn without_npm(command: &mut Command) {
    command
        .env("npm_config_registry", NO_REGISTRY)
        .env("BUN_CONFIG_REGISTRY", NO_REGISTRY)
        .env("XDG_CACHE_HOME", kept("xdg"));
    command
        .env("npm_config_cache", "/nowhere")
        .env("BUN_INSTALL_CACHE_DIR", "/nowhere");
}

/// Sets up a project with this plugin, and a model with these turns. Uses the kept SDK for plugins.
pub(crate) fn world(plugin: &str, turns: impl IntoIterator<Item = Value>) -> World {
    let world = World::new(turns);
    world.config(json!({ "plugin": [plugin] }));
    let data = world.home().join(".local/share/outrigger");
    fs::create_dir_all(&data).unwrap();
    std::os::unix::fs::symlink(kept("modules"), data.join("modules")).unwrap();
    world
}

/// Checks whether this package and the SDK for plugins are kept from an earlier run.
pub(crate) fn is_kept(name: &str, version: &str) -> bool {
    let package = format!("outrigger/plugins/{name}@{version}/node_modules/{name}/package.json");
    let mut modules = fs::read_dir(kept("modules")).unwrap().flatten();
    kept("xdg").join(package).is_file() && modules.any(|it| it.path().join("node_modules").is_dir())
}

/// Returns the plugin as `plugin list` has it after the installation, or prints a note and returns `None` if it cannot be installed here.
pub(crate) fn installed(world: &World, prepare: impl Fn(&mut Command)) -> Option<Value> {
    let mut list = world.command(&["plugin", "list", "--json"]);
    reaching_npm(&mut list);
    prepare(&mut list);
    let done = world.start(list).end().ok();
    let plugin = done.json()[0].clone();
    if plugin["stage"] == "active" {
        return Some(plugin);
    }
    let why = match registry(world) {
        Ok(()) => panic!("npm answers, and yet: {plugin}\n{}", done.stderr),
        Err(why) => why,
    };
    skip_npm(&format!(
        "{} is not in .work/plugin-cache and cannot be fetched: {why}",
        plugin["spec"]
    ));
    None
}

/// Checks whether npm is installed and reaches its registry.
#[expect(clippy::disallowed_methods, reason = "a test asks npm itself")]
pub(crate) fn registry(world: &World) -> Result<(), String> {
    let mut npm = Command::new("npm");
    reaching_npm(&mut npm);
    npm.args([
        "view",
        RECORDER,
        "version",
        "--prefer-online",
        "--fetch-retries=0",
        "--fetch-timeout=20000",
    ])
    .current_dir(world.root());
    let output = npm
        .output()
        .map_err(|error| format!("npm cannot be run ({error})"))?;
    let last = String::from_utf8_lossy(&output.stderr);
    let code = last
        .lines()
        .find(|line| line.contains("npm error code"))
        .unwrap_or("npm view failed")
        .to_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(code)
    }
}

/// Runs `outrigger run` with the installed packages and no reachable registry.
#[track_caller]
pub(crate) fn run_offline(world: &World, args: &[&str]) -> Done {
    let mut run = world.command(&[&["run"], args].concat());
    without_npm(&mut run);
    let done = world.start(run).end();
    assert!(!done.stderr.contains("installing"), "{}", done.stderr);
    done
}

pub(crate) fn names(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

/// Returns the files below a folder of the project, with their text.
fn texts(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(texts(&path));
        } else {
            found.push((path.clone(), fs::read_to_string(&path).unwrap_or_default()));
        }
    }
    found
}

#[test]
fn the_prompt_recorder_writes_prompts_and_answers_into_the_project() {
    // The plugin writes a prompt and its answer separately into one file: an answer within milliseconds interferes.
    let think = || {
        turn([call(
            "bash",
            json!({ "command": "sleep 1", "description": "Thinks" }),
        )])
    };
    let world = world(
        RECORDER,
        [
            think(),
            text("The milk is noted."),
            think(),
            text("The bread too."),
        ],
    );
    let Some(plugin) = installed(&world, |_| ()) else {
        return;
    };
    assert_eq!(
        (plugin["version"].as_str(), names(&plugin["hooks"])),
        (Some("1.9.9"), vec!["event"])
    );
    for (args, name) in [
        (&["Remember the milk"][..], "milk"),
        (&["-c", "And the bread"], "bread"),
    ] {
        run_offline(&world, args).ok();
        let texts = texts(&world.path(".prompts"));
        assert!(
            texts
                .iter()
                .any(|(_, text)| text.contains(&format!("the {name}"))),
            "{texts:#?}"
        );
    }
    let session = world.export()["info"]["id"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let texts = texts(&world.path(".prompts"));
    // One file for the session, named by day and title, contains both prompts.
    assert!(
        texts.iter().any(|(path, text)| {
            path.extension().is_some_and(|extension| extension == "txt")
                && text.contains(&format!("SessionID: {session}"))
        }),
        "{session}: {texts:#?}"
    );
    assert!(texts.iter().any(|(_, text)| text.contains("Model: mock/m1") && text.contains("The milk is noted.")), "{texts:#?}");
}

#[test]
fn the_destructive_check_sees_the_command_before_it_is_allowed_and_tells_the_model() {
    let reset = || {
        call(
            "bash",
            json!({ "command": "git reset --hard", "description": "Throws changes away" }),
        )
    };
    let status = call("destructive-check-status", json!({}));
    let world = world(CHECK, [turn([reset()]), turn([status]), done()]);
    world.config(json!({ "permission": { "bash": "ask" } }));
    // TypeScript in `node_modules`: only Bun runs it. With Node and npm but no Bun, Bun is fetched.
    let Some(plugin) = installed(&world, |_| ()) else {
        return;
    };
    assert_eq!(names(&plugin["tools"]), ["destructive-check-status"]);
    assert_eq!(
        names(&plugin["hooks"]),
        [
            "tool.execute.before",
            "permission.ask",
            "tool.execute.after"
        ]
    );

    let run = run_offline(&world, &["--auto", "start over"]).ok();
    assert!(
        run.stderr
            .contains("[destructive-check] PERMISSION REQUIRED: HIGH destructive command detected"),
        "{}",
        run.stderr
    );
    let results = world.mock.last().texts("tool");
    let report: Value = serde_json::from_str(results.last().unwrap()).unwrap();
    assert_eq!(report["session"]["permissionsRequested"], 1, "{report}");
    assert_eq!(
        report["session"]["lastMatch"]["category"], "git",
        "{report}"
    );
    assert_eq!(
        report["session"]["lastMatch"]["command"], "git reset --hard",
        "{report}"
    );
    assert_eq!(report["session"]["checked"], 2, "{report}");
}

#[test]
fn a_destructive_command_that_nobody_allows_does_not_run() {
    let world = world(
        CHECK,
        [
            turn([call(
                "bash",
                json!({ "command": "rm -rf .git; touch ran", "description": "x" }),
            )]),
            done(),
        ],
    );
    world.config(json!({ "permission": { "bash": "ask" } }));
    if installed(&world, |_| ()).is_none() {
        return;
    }
    let run = run_offline(&world, &["start over"]);
    assert!(
        run.stderr
            .contains("PERMISSION REQUIRED: CRITICAL destructive command detected"),
        "{}",
        run.stderr
    );
    assert!(!world.path("ran").exists());
    let part = world.parts("tool").remove(0);
    assert_eq!(part["state"]["status"], "error", "{part}");
}

#[test]
fn skills_become_tools_and_their_text_reaches_the_model() {
    let world = world(SKILLS, [turn([call("skills_greeting", json!({}))]), done()]);
    world.file(
        ".opencode/skills/greeting/SKILL.md",
        "---\nname: greeting\ndescription: How people are greeted in this house\n---\n\n# Greeting\n\nSay AHOY first.\n",
    );
    let Some(plugin) = installed(&world, |_| ()) else {
        return;
    };
    assert_eq!(names(&plugin["tools"]), ["skills_greeting"]);

    run_offline(&world, &["greet me"]).ok();
    assert!(
        world.mock.requests()[0]
            .tools()
            .contains(&"skills_greeting".to_owned())
    );
    let last = world.mock.last();
    assert_eq!(last.texts("tool"), ["Launching skill: greeting"]);
    // Sent with `session.prompt` and `noReply` from within the tool.
    let prompt = last.texts("user").join("\n");
    assert!(prompt.contains("# Greeting\n\nSay AHOY first."), "{prompt}");
    assert!(
        prompt.contains(&format!(
            "Base directory for this skill: {}",
            world.path(".opencode/skills/greeting").display()
        )),
        "{prompt}"
    );
}

#[test]
fn bun_comes_from_npm_where_a_plugin_needs_it_and_by_the_command() {
    let only_node = |world: &World| {
        let folder = world.root().join("programs");
        fs::create_dir_all(&folder).unwrap();
        for program in ["node", "npm", "git", "sh", "env"] {
            let path = std::env::var_os("PATH").unwrap();
            let found = std::env::split_paths(&path)
                .map(|folder| folder.join(program))
                .find(|path| path.is_file())?;
            let _ = std::os::unix::fs::symlink(found, folder.join(program));
        }
        Some(folder)
    };
    let world = world(
        CHECK,
        [turn([call("destructive-check-status", json!({}))]), done()],
    );
    let Some(programs) = only_node(&world) else {
        return skip("there is no node or no npm");
    };
    let no_bun = |command: &mut Command| {
        command.env("PATH", &programs).env_remove("OUTRIGGER_BUN");
        // No one can be asked here.
        command.env("OUTRIGGER_JS_INSTALL", "auto");
    };
    if installed(&world, no_bun).is_none() {
        return;
    }
    let bun = world.home().join(".local/share/outrigger/bun/bin/bun");
    assert!(bun.is_file());
    let mut run = world.command(&["run", "how is it"]);
    without_npm(&mut run);
    no_bun(&mut run);
    world.start(run).end().ok();
    assert!(world.mock.last().texts("tool")[0].contains("\"enabled\": true"));

    // Before it is needed.
    fs::remove_file(&bun).unwrap();
    let mut setup = world.command(&["plugin", "setup"]);
    reaching_npm(&mut setup);
    no_bun(&mut setup);
    let said = world.plain(&world.start(setup).end().ok().stdout);
    assert!(
        said.contains("Bun at HOME/.local/share/outrigger/bun/bin/bun"),
        "{said}"
    );
    assert!(bun.is_file());
}
