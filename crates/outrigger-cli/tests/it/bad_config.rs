//! Configuration that is wrong: the message says where and what to do, and nothing is begun.

use serde_json::json;

use crate::support::*;

/// A run that fails before the model is asked.
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
    world.file("opencode.json", "{\n  \"model\": \"mock/m1\",\n  \"plugin\": [\"a\" \"b\"]\n}\n");
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @"");
    world.file("opencode.json", "{\n  \"agent\": \"build\"\n}\n");
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @"");
}

#[test]
fn unknown_models_are_answered_with_near_ones() {
    let world = World::new([done()]);
    insta::assert_snapshot!(refused(&world, &["-m", "mock/m2", "hi"], 1), @"");
    insta::assert_snapshot!(refused(&world, &["-m", "mok/m1", "hi"], 1), @"");
    insta::assert_snapshot!(refused(&world, &["-m", "m1", "hi"], 2), @"");
    world.config(json!({ "model": "mock/m3" }));
    insta::assert_snapshot!(refused(&world, &["hi"], 1), @"");
    let sessions = world.cli(&["session", "list"]).ok().stdout;
    assert_eq!(sessions, "", "a model that is not there leaves no session behind");
}

#[test]
fn unknown_settings_are_answered_with_a_suggestion() {
    let world = World::new([done()]);
    world.settings("[deadlines]\nload_msec = 100\n");
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @"");
    world.settings("[deadlines]\nload_ms = \"soon\"\n");
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @"");
    world.settings("[deadlines\n");
    insta::assert_snapshot!(refused(&world, &["hi"], 2), @"");
    world.settings("");
    let done = world.run_with(&[("OUTRIGGER_DEADLINES_LOAD_MS", "0")], &["hi"]).exited(2);
    insta::assert_snapshot!(done.stderr, @"");
}

#[test]
fn folders_and_sessions_that_are_not_there() {
    let world = World::new([done()]);
    insta::assert_snapshot!(refused(&world, &["--dir", "nowhere", "hi"], 2), @"");
    insta::assert_snapshot!(refused(&world, &["-s", "ses_nope", "hi"], 1), @"");
    insta::assert_snapshot!(refused(&world, &["-c"], 2), @"");
    insta::assert_snapshot!(refused(&world, &["--fork", "hi"], 2), @"");
    insta::assert_snapshot!(refused(&world, &["--no-such-option", "hi"], 2), @"");
}
