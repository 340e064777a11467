//! Invalid configuration: the message names the place and the remedy, and nothing is started.

use serde_json::json;

use crate::support::*;

/// Runs and expects a failure before the model is asked.
#[track_caller]
fn refused(world: &World, args: &[&str], code: i32) -> String {
    let done = world.run(args).exited(code);
    assert_eq!(done.stdout, "");
    assert_eq!(world.mock.all_requests().len(), 0);
    world.plain(&done.stderr)
}

#[test]
fn malformed_opencode_json_is_named_with_line_and_column() {
    let world = World::new([done()]);
    world.file(
        "opencode.json",
        "{\n  \"model\": \"mock/m1\",\n  \"plugin\": [\"a\" \"b\"]\n}\n",
    );
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @r"
    error: PROJECT/opencode.json:3:17: not valid JSON: expected comma [config.syntax]
      hint: put a comma between this entry and the one before it
    ");
    world.file("opencode.json", "{\n  \"agent\": \"build\"\n}\n");
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @r#"
    error: PROJECT/opencode.json:2:12: /agent: expected an object, found "build" [config.type]
      hint: change `/agent` to an object, or remove it
    "#);
}

/// A broken file of command hooks prevents the start if one of its hooks may be a guard.
#[test]
fn broken_command_hooks_are_named_where_they_may_guard() {
    let world = World::new([done()]);
    let file = world.home().join(".claude/settings.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "{\n  \"hooks\": { \"PreToolUse\": [] ]\n}\n").unwrap();
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @r"
    error: HOME/.claude/settings.json: not valid JSON: expected `,` or `}` at line 2 column 31; its hooks may guard, so nothing is started without them [config.hooks]
      hint: correct the file; `claude.hooks = false` in your outrigger.toml does without all command hooks
    ");
    std::fs::write(&file, "{\n  \"hooks\": { \"Stop\": [] ]\n}\n").unwrap();
    world.run(&["hi"]).ok();
}

#[test]
fn unknown_models_are_answered_with_near_ones() {
    let world = World::new([done()]);
    world.config(
        json!({ "provider": { "mock": { "models": { "mini-large": {}, "mini-small": {} } } } }),
    );
    insta::assert_snapshot!(refused(&world, &["-m", "mock/mini-larg", "hi"], 1), @r#"
    error: provider `mock` has no model `mini-larg`; near: `mini-large`, `mini-small` [model.unknown_model]
      hint: check the name, or add it under `provider.mock.models["mini-larg"]` in opencode.json
    "#);
    insta::assert_snapshot!(refused(&world, &["-m", "mok/m1", "hi"], 1), @r"
    error: unknown provider `mok`; near: `mock` [model.unknown_provider]
      hint: check the part before the first slash, or describe it under `provider.mok` in opencode.json (npm, options.baseURL, models)
    ");
    insta::assert_snapshot!(refused(&world, &["-m", "m1", "hi"], 2), @r"
    error: `m1` does not name a model [cli.usage]
      hint: write it as provider/model
    ");
    world.config(json!({ "model": "mock/mini" }));
    insta::assert_snapshot!(refused(&world, &["hi"], 1), @r#"
    error: provider `mock` has no model `mini`; near: `mini-large`, `mini-small` [model.unknown_model]
      hint: check the name, or add it under `provider.mock.models["mini"]` in opencode.json
    "#);
    let sessions = world.cli(&["session", "list"]).ok().stdout;
    assert_eq!(
        sessions, "",
        "a model that is not there leaves no session behind"
    );
}

#[test]
fn unknown_settings_are_answered_with_a_suggestion() {
    let world = World::new([done()]);
    world.settings("[deadlines]\nload_msec = 100\n");
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @r"
    error: PROJECT/outrigger.toml:2:1: unknown setting `deadlines.load_msec` [config.unknown_setting]
      hint: did you mean `load_ms`?
    ");
    world.settings("[deadlines]\nload_ms = \"soon\"\n");
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @r#"
    error: PROJECT/outrigger.toml:2:11: setting `deadlines.load_ms`: expected a whole number from 1, found "soon" [config.setting]
      hint: set `deadlines.load_ms` to a whole number from 1, or remove it
    "#);
    world.settings("[deadlines\n");
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @r"
    error: PROJECT/outrigger.toml:1:11: not valid TOML: unclosed table, expected `]` [config.syntax]
      hint: correct the text at this place; text values stand in double quotes
    ");
    world.settings("");
    let done = world
        .run_with(&[("OUTRIGGER_DEADLINES_LOAD_MS", "0")], &["hi"])
        .exited(2);
    insta::assert_snapshot!(done.stderr, @r#"
    error: OUTRIGGER_DEADLINES_LOAD_MS: setting `deadlines.load_ms`: expected a whole number from 1, found "0" [config.setting]
      hint: set `deadlines.load_ms` to a whole number from 1, or remove it
    "#);
}

#[test]
fn folders_and_sessions_that_are_not_there() {
    let world = World::new([done()]);
    insta::assert_snapshot!(refused(&world, &["--dir", "nowhere", "hi"], 2), @"error: cannot work in nowhere: No such file or directory (os error 2) [cli.usage]");
    insta::assert_snapshot!(refused(&world, &["-s", "ses_nope", "hi"], 1), @r"
    error: there is no session `ses_nope` [agent.no_session]
      hint: `outrigger session list` shows the sessions of this project
    ");
    insta::assert_snapshot!(refused(&world, &["-c"], 2), @"error: there is nothing to say, and no interrupted turn to go on with [cli.usage]");
    insta::assert_snapshot!(refused(&world, &["--fork", "hi"], 2), @r"
    error: --fork needs a session to copy [cli.usage]
      hint: add -c or -s ID
    ");
    insta::assert_snapshot!(refused(&world, &["--no-such-option", "hi"], 2), @r"
    error: unexpected argument '--no-such-option' found

      tip: to pass '--no-such-option' as a value, use '-- --no-such-option'

    Usage: outrigger run [OPTIONS] [MESSAGE]...

    For more information, try '--help'.
    ");
}
