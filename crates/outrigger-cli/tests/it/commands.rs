//! The commands other than `run`.

use serde_json::json;

use crate::support::*;

/// Replaces identifiers, times and counts.
fn filters() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\b(ses|msg|prt|trn)_[0-9A-Za-z]+", "${1}_ID");
    settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d", "DATE");
    settings.add_filter(r"  \d+ ms", "  N ms");
    settings.add_filter(r"\d+ records", "N records");
    settings.add_filter(r"\d+ steps", "N steps");
    settings
}

fn worked() -> World {
    let world = World::new([
        turn([
            call("read", json!({ "filePath": "hello.txt" })),
            call(
                "bash",
                json!({ "command": "echo out; echo err >&2; exit 3", "description": "x" }),
            ),
        ]),
        turn([call(
            "edit",
            json!({ "filePath": "hello.txt", "oldString": "there", "newString": "you" }),
        )]),
        text("It is done."),
    ]);
    world.run(&["--title", "Work", "do", "it"]).ok();
    world
}

#[test]
fn sessions_are_listed_shown_exported_and_deleted() {
    let world = worked();
    let _filters = filters().bind_to_scope();
    insta::assert_snapshot!(world.cli(&["session", "list"]).ok().stdout, @"ses_ID  DATE  Work");
    insta::assert_snapshot!(world.plain(&world.cli(&["session", "show"]).ok().stdout), @r"
    ses_ID  Work
    PROJECT

    > do it

    → Read hello.txt  N ms
    $ echo out; echo err >&2; exit 3  exit 3  N ms
    │ out
    │ err

    ← Updated hello.txt  N ms
    │ @@ -1 +1 @@
    │ -hi there
    │ +hi you

    │ It is done.
    ");
    insta::assert_snapshot!(world.verify(), @"1 turns, N steps replay to the recorded effects; N records, hash chain intact");
    let exported = world.export();
    assert_eq!(exported["info"]["title"], "Work");
    assert_eq!(exported["messages"].as_array().unwrap().len(), 4);
    let id = exported["info"]["id"].as_str().unwrap();
    assert_eq!(world.cli(&["session", "export", id]).ok().json(), exported);
    insta::assert_snapshot!(world.cli(&["session", "delete", id]).ok().stdout, @"deleted ses_ID");
    assert_eq!(world.cli(&["session", "list"]).ok().stdout, "");
    insta::assert_snapshot!(world.cli(&["session", "show", id]).exited(1).stderr, @r"
    error: there is no session `ses_ID` [agent.no_session]
      hint: `outrigger session list` shows the sessions of this project
    ");
    insta::assert_snapshot!(world.plain(&world.cli(&["session", "show"]).exited(1).stderr), @"error: there is no session in PROJECT yet [agent.no_session]");
    let verified = world.verify();
    assert!(
        verified.contains("hash chain intact"),
        "a deleted session stays in the log: {verified}"
    );
}

#[test]
fn sessions_of_other_folders() {
    let world = worked();
    std::fs::create_dir(world.root().join("other")).unwrap();
    let of = |args: &[&str]| {
        let mut command = world.command(args);
        command.current_dir(world.root().join("other"));
        world.start(command).end().ok().stdout
    };
    assert_eq!(of(&["session", "list"]), "");
    assert!(of(&["session", "list", "--all"]).contains("Work"));
}

#[test]
fn without_a_store() {
    let world = World::new([done()]);
    insta::assert_snapshot!(world.plain(&world.cli(&["session", "show"]).exited(1).stderr), @r"
    error: there is no store at HOME/.local/share/outrigger/outrigger.db yet [store.none]
      hint: the first `outrigger run` makes it
    ");
}

const TWO: &str = "
export const One = async () => ({ 'chat.message': async () => {}, event: async () => {} })
export const Two = async () => ({ tool: { sum: { description: 'adds', args: {}, execute: async () => '3' } } })";

#[test]
fn plugins_are_listed_with_what_they_bring() {
    let world = World::new([done()]);
    insta::assert_snapshot!(world.cli(&["plugin", "list"]).ok().stdout, @"no plugins (see `plugin` in opencode.json, or .opencode/plugin/)");
    world.plugin("two", TWO);
    world.config(json!({ "plugin": ["./missing.js"] }));
    let _filters = filters().bind_to_scope();
    insta::assert_snapshot!(world.plain(&world.cli(&["plugin", "list"]).ok().stdout), @r"
    failed       missing
                 from   file://PROJECT/missing.js in PROJECT/opencode.json
                 cause  plugin file://PROJECT/missing.js: there is nothing at PROJECT/missing.js (while found) [plugin.not_found]
                 hint   check the path; a relative one starts at the folder of the configuration file that names it
    active       two  N ms
                 from   file://PROJECT/.opencode/plugin/two.js in PROJECT/.opencode
                 hooks  chat.message, event
                 tools  sum
    ");
    let list = world.cli(&["plugin", "list", "--json"]).ok().json();
    let field = |n: usize, key: &str| list[n][key].clone();
    assert_eq!(
        (field(0, "stage"), field(1, "stage")),
        (json!("failed"), json!("active"))
    );
    assert_eq!(field(0, "cause")["code"], "plugin.not_found");
    assert_eq!(field(1, "tools"), json!(["sum"]));
}

#[test]
fn every_value_of_the_configuration_has_an_origin() {
    let world = World::new([done()]);
    world.settings("[models]\nidle_ms = 4321\n");
    let user = world.home().join(".config/opencode");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(
        user.join("opencode.json"),
        "{ \"username\": \"ann\", \"model\": \"mock/old\" }",
    )
    .unwrap();
    let mut command = world.command(&["config", "show"]);
    command.env("OUTRIGGER_DEADLINES_SLOW_MS", "99000");
    command.env_remove("OUTRIGGER_DEADLINES_FAST_MS");
    let shown = world.plain(&world.start(command).end().ok().stdout);
    let lines: Vec<&str> = [
        "/model ",
        "model ",
        "username ",
        "models.idle_ms",
        "deadlines.slow_ms",
        "deadlines.fast_ms",
    ]
    .iter()
    .flat_map(|key| shown.lines().filter(move |line| line.starts_with(key)))
    .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    /model = "mock/m1"  (PROJECT/opencode.json:1:10)
    models.idle_ms = 4321  (PROJECT/outrigger.toml:2:11)
    deadlines.slow_ms = 99000  (environment OUTRIGGER_DEADLINES_SLOW_MS)
    deadlines.fast_ms = 500  (default)
    "#);
    let whole = world.cli(&["config", "show", "--json"]).ok().json();
    assert!(whole.to_string().contains("\"ann\""), "{whole}");
}

#[test]
fn doctor_says_what_is_wrong() {
    let world = World::new([done()]);
    let well = world.cli(&["doctor"]).ok();
    for line in ["ok   config", "ok   model", "note store"] {
        assert!(
            well.stdout.contains(line),
            "{line} is not in:\n{}",
            well.stdout
        );
    }
    // The line for the system's enforcement must not be confused with `full`, the sandbox setting that
    // restricts nothing.
    let sandbox = well
        .stdout
        .lines()
        .find(|line| line.contains(" sandbox "))
        .unwrap_or_default();
    assert!(
        if sandbox.starts_with("ok ") {
            sandbox.contains(" enforced (Landlock ABI")
        } else {
            sandbox.contains(" partial (") || sandbox.contains(" none (")
        },
        "{}",
        well.stdout
    );
    world.config(json!({ "plugin": ["./missing.js"] }));
    let ill = world.cli(&["doctor"]).exited(1);
    assert!(ill.stdout.contains("bad  plugin"), "{}", ill.stdout);
    world.file("opencode.json", "{");
    let ill = world.cli(&["doctor"]).exited(1);
    assert!(
        ill.stdout.contains("bad  config") && ill.stdout.contains("opencode.json:1:1"),
        "{}",
        ill.stdout
    );
}

/// Writes one page to standard output, or one file for each command that `--help` lists.
#[test]
fn man_pages_of_every_command() {
    let world = World::new([]);
    let page = world.cli(&["man", "session", "show"]).ok().stdout;
    assert!(page.contains(".TH OUTRIGGER-SESSION-SHOW 1"), "{page}");
    world.cli(&["man", "--out", "pages/all"]).ok();
    let page =
        |name: &str| std::fs::read_to_string(world.path(&format!("pages/all/{name}.1"))).unwrap();
    for command in ["outrigger", "outrigger-run", "outrigger-plugin-bisect"] {
        assert!(page(command).contains(".SH SYNOPSIS"), "{command}");
    }
    let unknown = world.cli(&["man", "sessions"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("no command `sessions`"));
    world.file("taken", "");
    let taken = world.cli(&["man", "--out", "taken"]);
    assert!(taken.stderr.contains("cannot write "), "{}", taken.stderr);
}

#[test]
fn completions_for_every_shell() {
    let world = World::new([]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world.cli(&["completions", shell]).ok().stdout;
        assert!(
            script.contains("outrigger") && script.contains("salvage"),
            "{shell}"
        );
    }
    let bash = world.cli(&["completions", "bash"]).ok().stdout;
    world.file("completions.sh", &bash);
    world
        .start(world.script("bash", &["-n", "completions.sh"]))
        .end()
        .ok();
}
