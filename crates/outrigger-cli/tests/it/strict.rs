//! `--strict-plugins`: a plugin that does not load prevents the start, with a separate exit code.

use serde_json::json;

use crate::support::*;
use crate::user_grants::granting;

const GOOD: &str = "export const P = async () => ({ 'chat.params': async () => {} })";
const THROWS: &str = "export const P = async () => { throw new Error('no database') }";

fn world() -> World {
    let world = World::new([done()]);
    world.plugin("good", GOOD);
    world.plugin("throws", THROWS);
    world
}

#[test]
fn a_plugin_that_fails_is_an_error_by_flag_setting_and_variable() {
    let world = world();
    let by_flag = world.run(&["--strict-plugins", "hi"]).exited(3);
    insta::assert_snapshot!(world.plain(&by_flag.stderr), @r"
    ! plugin throws failed: plugin throws failed at server: export `P`: no database (while starting)
    error: 1 of the plugins did not load, and strict_plugins makes that an error: throws is failed (while starting): plugin throws failed at server: export `P`: no database [plugin.strict]
      hint: `outrigger plugin list` shows why; fix or disable them, or omit --strict-plugins (setting strict_plugins)
    ");
    assert_eq!(by_flag.stdout, "");
    let by_variable = world.run_with(&[("OUTRIGGER_STRICT_PLUGINS", "on")], &["hi"]);
    assert!(by_variable.exited(3).stderr.contains("[plugin.strict]"));
    granting(&world, "strict_plugins = true\n");
    let by_setting = world.run(&["--format", "json", "hi"]).exited(3);
    assert_eq!(
        by_setting.lines()[0]["error"]["data"]["code"],
        "plugin.strict"
    );
    assert!(world.mock.requests().is_empty());
    // A plugin switched off on purpose is not a failure, and without the culprit the rest runs.
    granting(
        &world,
        "strict_plugins = true\n[plugins.throws]\ndisabled = true\n",
    );
    world.run(&["hi"]).ok();
}

#[test]
fn commands_that_say_what_is_wrong_still_do() {
    let world = world();
    granting(&world, "strict_plugins = true\n");
    let listed = world.cli(&["plugin", "list"]).ok().stdout;
    assert!(listed.contains("[plugin.server]"), "{listed}");
    let listed = world.cli(&["plugin", "list", "--strict-plugins"]).exited(3);
    assert!(
        listed.stdout.contains("active       good"),
        "{}",
        listed.stdout
    );
    let said = world.cli(&["doctor"]).exited(1).stdout;
    assert!(said.contains("throws failed"), "{said}");
}

#[test]
fn a_server_ends_before_it_says_where_it_listens() {
    let world = world();
    let done = world
        .cli(&["serve", "--port", "0", "--no-auth", "--strict-plugins"])
        .exited(3);
    assert_eq!(done.stdout, "");
    assert!(
        done.stderr.contains("throws is failed (while starting)"),
        "{}",
        done.stderr
    );
    granting(
        &world,
        "strict_plugins = true\n[plugins.throws]\ndisabled = true\n",
    );
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200);
    assert!(session["id"].is_string());
}

#[test]
fn every_stage_is_in_the_log_of_a_server_and_in_its_list() {
    let world = world();
    let server = world.serve(&["--no-auth", "--print-logs"]);
    let answer = server.get("/outrigger/plugin").json(200);
    assert_eq!(
        answer["flags"]["plugin_seq_hooks"],
        json!({"on": true, "from": "default"})
    );
    let stages: Vec<_> = answer["plugins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| {
            format!(
                "{} {} {}",
                plugin["id"].as_str().unwrap(),
                plugin["stage"].as_str().unwrap(),
                plugin["cause"]["at"]
            )
        })
        .collect();
    assert_eq!(stages, ["good active null", "throws failed \"starting\""]);
    let log = server.running.stderr();
    let logged: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once("[plugin:good] ").map(|(_, stage)| stage))
        .collect();
    assert_eq!(
        logged,
        ["found", "installed", "starting", "initialised", "active"],
        "{log}"
    );
    assert!(log.contains("plugin throws: failed: "), "{log}");
}

/// A plugin that could not be loaded is reported to clients as an error without a session.
#[test]
fn clients_see_which_plugin_could_not_be_loaded() {
    let world = world();
    let server = world.serve(&["--no-auth"]);
    let mut all = server.events("/global/event");
    // The first request that needs the folder's agent loads its plugins.
    server.post("/session", &json!({})).json(200);
    let failure = all.until("session.error");
    let properties = &failure["payload"]["properties"];
    assert!(properties.get("sessionID").is_none(), "{failure}");
    assert_eq!(properties["error"]["name"], "UnknownError");
    let message = properties["error"]["data"]["message"].as_str().unwrap();
    assert!(message.starts_with("Plugin "), "{message}");
    assert!(
        message.contains("throws") && message.contains("could not be loaded: "),
        "{message}"
    );
}
