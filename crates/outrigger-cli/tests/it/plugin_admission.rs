//! Which plugins run: five sources, three layers, profiles, switches (D1 to D5), through the whole program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

/// The hooks of such a plugin, and of a guard.
const NAMED: &str = "allowed_hooks = [\"chat.message\", \"tool.execute.before\"]\n";

/// Creates a plugin in a folder, which adds its word to the user's message.
pub(crate) fn put(folder: &Path, id: &str, more: &str) {
    fs::create_dir_all(folder).unwrap();
    let word = format!(
        "export const P = async () => ({{ 'chat.message': async (i, o) => {{ o.parts[0].text += ' {id}' }} }})\n"
    );
    fs::write(folder.join("main.js"), word).unwrap();
    let entry = if more.contains("entry =") {
        ""
    } else {
        "entry = \"main.js\"\n"
    };
    let more = if more.contains("[hook_policy]") {
        more.replace("[hook_policy]", &format!("[hook_policy]\n{NAMED}"))
    } else {
        format!("{more}\n[hook_policy]\n{NAMED}")
    };
    let manifest = format!("id = \"{id}\"\nversion = \"1.0.0\"\nkind = \"hook\"\n{entry}{more}");
    fs::write(folder.join("outrigger.plugin.toml"), manifest).unwrap();
}

fn shown(world: &World, text: &str) -> String {
    let root = world.root().display().to_string();
    world.plain(text).replace(&root, "ROOT")
}

fn entry(snapshot: &Value, id: &str) -> Value {
    let mut entries = snapshot["entries"].as_array().unwrap().iter();
    entries.find(|it| it["id"] == id).unwrap().clone()
}

#[test]
fn each_source_is_found_and_runs() {
    let world = World::new([done()]);
    world.packages();
    world.plugin("listed", "export const P = async () => ({ 'chat.message': async (i, o) => { o.parts[0].text += ' listed' } })\n");
    put(&world.root().join("named/deep/er"), "named", "");
    put(&world.root().join("env/one"), "of-env", "");
    put(&world.path(".outrigger/plugins/w"), "of-workspace", "");
    put(
        &world.home().join(".config/outrigger/plugins/u"),
        "of-user",
        "",
    );
    granting(&world, "[discovery]\npaths = [\"../../../named\"]\n");
    let mut run = world.command(&["run", "hi"]);
    run.env("OUTRIGGER_PLUGIN_PATH", world.root().join("env"));
    let run = world.start(run).end().ok();
    // OpenCode's own first, then by precedence.
    assert_eq!(
        world.mock.last().texts("user"),
        ["hi listed named of-env of-workspace of-user"],
        "{}",
        run.stderr
    );
    // The same with none of them.
    let run = world
        .cli(&["--pure", "plugin", "snapshot", "--json"])
        .ok()
        .json();
    assert_eq!(entry(&run, "of-user")["reason"]["reason"], "LeftOut");
}

#[test]
fn every_reason_is_reported() {
    let world = World::new([]);
    let user = world.home().join(".config/outrigger/plugins");
    put(&user.join("acme"), "acme", "");
    put(&world.path(".outrigger/plugins/acme"), "acme", "");
    put(&user.join("reserved"), "builtin-tools", "");
    put(&user.join("denied"), "denied", "");
    put(&user.join("off"), "switched-off", "");
    put(
        &user.join("default"),
        "off-by-default",
        "enabled_by_default = false\n",
    );
    put(&user.join("open"), "open-to-all", "");
    fs::set_permissions(user.join("open"), fs::Permissions::from_mode(0o777)).unwrap();
    put(
        &user.join("effects"),
        "effects",
        "[provides]\nhas_side_effects = true\n",
    );
    put(
        &user.join("allowed"),
        "allowed",
        "[provides]\nhas_side_effects = true\n",
    );
    put(&user.join("native"), "native", "entry = \"lib.so\"\n");
    fs::write(user.join("native/lib.so"), "").unwrap();
    put(&user.join("gone"), "no-entry", "entry = \"gone.js\"\n");
    put(
        &user.join("env"),
        "needs-env",
        "[requirements]\nenv = [\"ACME_HOME\"]\n",
    );
    put(
        &user.join("any"),
        "needs-any",
        "[requirements]\nenv_any = [[\"A_ONE\", \"A_TWO\"]]\n",
    );
    put(
        &user.join("bin"),
        "needs-bin",
        "[requirements]\nexternal_bins = [\"no-such-program\"]\n",
    );
    put(
        &user.join("lonely"),
        "lonely",
        "depends_on = [\"nobody\"]\n",
    );
    put(
        &user.join("sad"),
        "needs-lonely",
        "depends_on = [\"lonely\"]\n",
    );
    put(&user.join("round"), "round", "depends_on = [\"trip\"]\n");
    put(&user.join("trip"), "trip", "depends_on = [\"round\"]\n");
    put(&user.join("fs"), "needs-fs", "depends_on = [\"core-fs\"]\n");
    put(&user.join("policy/evil"), "evil", "");
    fs::create_dir_all(user.join("broken")).unwrap();
    fs::write(user.join("broken/outrigger.plugin.toml"), "id = 5\n").unwrap();
    put(&world.root().join("elsewhere"), "linked", "");
    fs::create_dir_all(user.join("link")).unwrap();
    std::os::unix::fs::symlink(
        world.root().join("elsewhere/outrigger.plugin.toml"),
        user.join("link/outrigger.plugin.toml"),
    )
    .unwrap();
    fs::write(user.join("link/main.js"), "").unwrap();
    granting(
        &world,
        "[discovery]\nallow = [\"allowed\"]\ndeny = [\"denied\"]\npaths = [\"/no/such/folder\"]\n[plugins.switched-off]\nenabled = false\n[plugins.core-web]\ndisabled = true\n",
    );
    let policy = world.root().join("policy.toml");
    fs::write(&policy, "[plugins]\ndeny = [\"*/evil\"]\n").unwrap();
    world.config(json!({ "plugin": ["./gone.js", "from-npm"] }));
    let mut snapshot = world.command(&["plugin", "snapshot"]);
    snapshot.env("OUTRIGGER_POLICY", &policy);
    let stdout = world.start(snapshot).end().ok().stdout;
    let stdout: Vec<String> = shown(&world, &stdout)
        .lines()
        .map(|it| it.trim_end().to_owned())
        .collect();
    insta::assert_snapshot!(stdout.join("\n"), @r#"
    profile minimal
    STATE    ID                  SOURCE      LAYER        WHY
    enabled  acme                project     -            found; no rule excludes it
    disabled acme                user        identity     PROJECT/.outrigger/plugins/acme (project) has this id and goes before it
    enabled  allowed             user        -            found; no rule excludes it
    disabled broken              user        admission    it cannot be loaded: plugin file://HOME/.config/outrigger/plugins/broken is not started: its manifest cannot be used: HOME/.config/outrigger/plugins/broken/outrigger.plugin.toml:1:6: not valid TOML: invalid type: integer `5`, expected a string
    disabled builtin-tools       user        identity     its id is that of a bundled plugin that is required
    enabled  builtin-tools       bundled     -            required
    enabled  core-command        bundled     -            in the profile
    enabled  core-fs             bundled     -            in the profile
    optional core-python         bundled     -            in the profile; `python` is offered where a permission rule or an agent names it
    optional core-table          bundled     -            in the profile; `table` is offered where a permission rule or an agent names it
    disabled core-web            bundled     policy       switched off by `plugins.core-web.disabled` (HOME/.config/outrigger/outrigger.toml:8:12)
    disabled denied              user        policy       `discovery.deny` has "denied"
    disabled effects             user        admission    it changes things outside of the session, and `discovery.allow` does not name it
    disabled evil                user        policy       the policy of this machine (ROOT/policy.toml) does not allow it
    enabled  from-npm            settings    -            listed by OpenCode's configuration
    disabled gone                settings    admission    it cannot be loaded: plugin file://PROJECT/gone.js: there is nothing at PROJECT/gone.js
    disabled linked              user        admission    its manifest is really ROOT/elsewhere/outrigger.plugin.toml, outside of its root
    disabled lonely              user        dependencies no plugin nobody
    disabled mcp                 bundled     policy       not in profile minimal (full has it)
    disabled native              user        admission    it cannot be loaded: its entry HOME/.config/outrigger/plugins/native/lib.so is neither JavaScript nor TypeScript
    disabled needs-any           user        dependencies none of the variables A_ONE, A_TWO is set
    disabled needs-bin           user        dependencies the program no-such-program is not on PATH
    disabled needs-env           user        dependencies the variable ACME_HOME is not set
    enabled  needs-fs            user        -            found; no rule excludes it
    disabled needs-lonely        user        dependencies it needs lonely, which does not run
    disabled no-entry            user        admission    it cannot be loaded: plugin file://HOME/.config/outrigger/plugins/gone: its entry HOME/.config/outrigger/plugins/gone/gone.js does not exist
    disabled off-by-default      user        policy       its manifest leaves it off (`enabled_by_default`)
    disabled open-to-all         user        admission    everybody may change HOME/.config/outrigger/plugins/open
    disabled openrouter          bundled     dependencies the variable OPENROUTER_API_KEY is not set
    disabled round               user        dependencies plugins need each other in a circle: round -> trip -> round
    enabled  skill-source-local  bundled     -            required
    disabled switched-off        user        policy       switched off by `plugins.switched-off.enabled` (HOME/.config/outrigger/outrigger.toml:6:11)
    disabled telegram            bundled     policy       not in profile minimal (messaging has it)
    disabled trip                user        dependencies plugins need each other in a circle: round -> trip -> round
    note     /no/such/folder: no such folder
    "#);
    let stdout = world
        .cli(&["plugin", "snapshot", "--explain", "effects"])
        .ok();
    insta::assert_snapshot!(shown(&world, &stdout.stdout), @r"
    effects is disabled
      from    HOME/.config/outrigger/plugins/effects (user, precedence 3)
      version 1.0.0
      identity      yes
      policy        yes
      admission     no: it changes things outside of the session, and `discovery.allow` does not name it
      dependencies  not asked
      hint: look at it, then `outrigger plugin enable effects` (adds it to `discovery.allow` in your own outrigger.toml)
    ");
    world
        .cli(&["plugin", "snapshot", "--explain", "nobody"])
        .exited(2);
    // The list matches what is loaded: a plugin listed as on runs.
    world.config(json!({ "plugin": ["./gone.js"] }));
    let snapshot = world.cli(&["plugin", "snapshot", "--json"]).ok().json();
    world.packages();
    let listed = world.cli(&["plugin", "list", "--json"]).ok().json();
    for plugin in listed.as_array().unwrap() {
        let place = plugin["spec"].as_str().unwrap();
        let mut entries = snapshot["entries"].as_array().unwrap().iter().filter(|it| {
            it["place"] == place || format!("file://{}", it["place"].as_str().unwrap()) == place
        });
        let entry = entries.next().unwrap();
        assert_eq!(
            entry["enabled"],
            plugin["stage"] == "active",
            "{plugin} {entry}"
        );
    }
}

#[test]
fn a_bundled_plugin_that_is_off_takes_its_tools_with_it() {
    let world = World::new([done(), done()]);
    world.run(&["hi"]).ok();
    let all = world.mock.last().tools();
    assert!(all.contains(&"bash".to_owned()) && all.contains(&"read".to_owned()));
    granting(
        &world,
        "[plugins.core-command]\nenabled = false\n[plugins.builtin-tools]\nenabled = false\n",
    );
    world.run(&["hi"]).ok();
    let less = world.mock.last().tools();
    let gone: Vec<&String> = all.iter().filter(|it| !less.contains(it)).collect();
    // A required one stays.
    assert_eq!(gone, ["bash"]);
    let listed = world.cli(&["audit", "list", "--plugin", "core-command", "--json"]);
    assert!(
        listed.stdout.contains("switched off"),
        "{} {}",
        listed.stdout,
        listed.stderr
    );
}

#[test]
fn a_project_switches_nothing_on() {
    let world = World::new([]);
    put(
        &world.path(".outrigger/plugins/w"),
        "effects",
        "[provides]\nhas_side_effects = true\n",
    );
    put(
        &world.path(".outrigger/plugins/x"),
        "off",
        "enabled_by_default = false\n",
    );
    world.settings(
        "[discovery]\nallow = [\"effects\"]\nprofile = \"full\"\n[plugins.off]\nenabled = true\n",
    );
    let answer = world.cli(&["plugin", "snapshot", "--json"]).ok().json();
    assert_eq!(answer["profile"], "Minimal");
    assert_eq!(
        entry(&answer, "effects")["reason"]["reason"],
        "SideEffectsNotAllowed"
    );
    assert_eq!(entry(&answer, "off")["reason"]["reason"], "OffByDefault");
}

#[test]
fn servers_that_the_configuration_names_start_in_every_profile_and_not_without_mcp() {
    let world = World::new([]);
    let answer = world.cli(&["plugin", "snapshot", "--json"]).ok().json();
    assert_eq!(entry(&answer, "mcp")["reason"]["reason"], "NotInProfile");
    world.config(json!({ "mcp": { "s": { "type": "local", "command": ["no-such-server"] } } }));
    let answer = world.cli(&["plugin", "snapshot", "--json"]).ok().json();
    assert_eq!(entry(&answer, "mcp")["enabled"], true);
    // Also for a provider whose key is not in its variable.
    assert_eq!(
        entry(&answer, "openrouter")["reason"]["reason"],
        "MissingEnv"
    );
    let provider = json!({ "openrouter": { "options": { "apiKey": "k" } } });
    world.config(json!({ "provider": provider }));
    let answer = world.cli(&["plugin", "snapshot", "--json"]).ok().json();
    assert_eq!(entry(&answer, "openrouter")["enabled"], true);
    granting(&world, "[plugins.mcp]\nenabled = false\n");
    let answer = world.cli(&["plugin", "snapshot", "--json"]).ok().json();
    assert_eq!(entry(&answer, "mcp")["reason"]["reason"], "SwitchedOff");
    let world = World::new([done(), done()]);
    world.config(json!({ "mcp": { "s": { "type": "local", "command": ["no-such-server"] } } }));
    let run = world.run_with(&[("OUTRIGGER_LOG", "info")], &["hi"]).ok();
    assert!(run.stderr.contains("no-such-server"), "{}", run.stderr);
    granting(&world, "[plugins.mcp]\nenabled = false\n");
    let run = world.run_with(&[("OUTRIGGER_LOG", "info")], &["hi"]).ok();
    assert!(!run.stderr.contains("no-such-server"), "{}", run.stderr);
}

/// D2: a capability in use is not shown as disabled, whatever provides it: a plugin that depends on `mcp`, a skill, a `config`
/// hook.
#[test]
fn mcp_is_enabled_where_a_skill_or_a_plugin_brings_servers() {
    let mcp = |world: &World| {
        let answer = world.cli(&["plugin", "snapshot", "--json"]).ok().json();
        (entry(&answer, "mcp"), answer)
    };
    let world = World::new([]);
    let skill = "---\nname: helper\ndescription: d\n---\nx\n";
    world.file(".opencode/skill/helper/SKILL.md", skill);
    assert_eq!(mcp(&world).0["enabled"], false);
    let servers = json!({ "mcpServers": { "s": { "command": "no-such-server" } } });
    let file = ".opencode/skill/helper/mcp.json";
    world.file(file, &servers.to_string());
    assert_eq!(mcp(&world).0["why"], "switched on by the skill helper");
    fs::remove_file(world.path(file)).unwrap();
    let user = world.home().join(".config/outrigger/plugins");
    put(&user.join("needs"), "needs", "depends_on = [\"mcp\"]\n");
    let (entry_of_mcp, answer) = mcp(&world);
    assert_eq!(
        entry_of_mcp["why"],
        "switched on by the plugin needs, which depends on it"
    );
    assert_eq!(entry(&answer, "needs")["enabled"], true);
    granting(&world, "[plugins.mcp]\nenabled = false\n");
    assert_eq!(mcp(&world).0["reason"]["reason"], "SwitchedOff");

    // What a `config` hook adds is known only after it has run.
    let world = World::new([]);
    world.plugin(
        "brings",
        "export const P = async () => ({ config: async (c) => { c.mcp = { s: { type: 'local', command: ['no-such-server'] } } } })",
    );
    let (before, _) = mcp(&world);
    assert_eq!(before["reason"]["reason"], "NotInProfile");
    let server = world.serve(&["--no-auth"]);
    let answer = server.get("/outrigger/plugin").json(200);
    let after = entry(&answer["snapshot"], "mcp");
    assert_eq!(after["why"], "switched on by the plugin brings", "{after}");
    assert!(
        after["reason"].is_null() && after["enabled"] == true,
        "{after}"
    );
}

#[test]
fn a_switch_is_written_into_the_users_own_file() {
    let world = World::new([done(), done(), done()]);
    world.packages();
    let user = world.home().join(".config/outrigger/plugins");
    put(
        &user.join("effects"),
        "effects",
        "[provides]\nhas_side_effects = true\n",
    );
    granting(&world, "# mine\n[plugins.effects] # theirs\npriority = 3\n");
    world.run(&["hi"]).ok();
    assert_eq!(world.mock.last().texts("user"), ["hi"]);
    let done = world.cli(&["plugin", "enable", "effects"]).ok();
    assert!(
        done.stdout.contains("effects is enabled"),
        "{}",
        done.stdout
    );
    let written = fs::read_to_string(world.home().join(".config/outrigger/outrigger.toml"));
    insta::assert_snapshot!(written.unwrap(), @r#"
    # mine
    [plugins.effects] # theirs
    enabled = true
    priority = 3

    [discovery]
    allow = ["effects"]
    "#);
    world.run(&["hi"]).ok();
    assert_eq!(world.mock.last().texts("user"), ["hi effects"]);
    let done = world.cli(&["plugin", "disable", "effects"]).ok();
    assert!(done.stdout.contains("switched off by"), "{}", done.stdout);
    world.run(&["hi"]).ok();
    assert_eq!(world.mock.last().texts("user"), ["hi"]);
    world.cli(&["plugin", "disable", "nobody"]).exited(2);
    let done = world.cli(&["plugin", "disable", "builtin-tools"]).exited(1);
    assert!(
        done.stderr.contains("it cannot be switched off"),
        "{}",
        done.stderr
    );
}
