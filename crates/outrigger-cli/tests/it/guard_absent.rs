//! A user's guard that is not admitted still guards, and no project takes its place (C5, D1 to D4).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::plugin_admission::put;
use crate::support::*;
use crate::user_grants::granting;

const GUARDED: &str = "[plugins.guard]\nfail_closed = [\"tool.execute.before\"]\n";

fn user(world: &World, name: &str) -> PathBuf {
    world.home().join(".config/outrigger/plugins").join(name)
}

/// Creates a guard that refuses everything.
fn guard(folder: &Path, more: &str) {
    put(folder, "guard", more);
    let refuses = "export const G = async () => ({ 'tool.execute.before': async () => { throw new Error('guard says no') } })\n";
    fs::write(folder.join("main.js"), refuses).unwrap();
}

/// Creates a plugin with a guard's id that does nothing.
fn impostor(folder: &Path, more: &str) {
    put(folder, "guard", more);
}

fn bash() -> serde_json::Value {
    turn([call(
        "bash",
        json!({ "command": "echo ran >> ran.txt", "description": "x" }),
    )])
}

/// Returns what the model read of its call, and the screen output.
fn run_turn(world: &World, variables: &[(&str, &str)]) -> (String, String) {
    let run = world.run_with(variables, &["hi"]).ok();
    let result = world.mock.last().texts("tool").concat();
    assert!(!world.path("ran.txt").exists(), "{result}\n{}", run.stderr);
    (result, run.stderr)
}

#[test]
fn a_guard_that_is_not_admitted_refuses_and_is_named() {
    struct Case {
        manifest: &'static str,
        settings: &'static str,
        more: fn(&World),
        says: &'static str,
    }
    let plain = |manifest: &'static str, says: &'static str| Case {
        manifest,
        settings: "",
        more: |_| {},
        says,
    };
    for case in [
        plain(
            "[requirements]\nexternal_bins = [\"no-such-program\"]\n",
            "MissingExternalBin",
        ),
        plain("nonsense = 1\n", "UnsupportedExternalPlugin"),
        plain("description = \"\n", "UnsupportedExternalPlugin"),
        plain(
            "[provides]\nhas_side_effects = true\n",
            "SideEffectsNotAllowed",
        ),
        plain("enabled_by_default = false\n", "OffByDefault"),
        plain("depends_on = [\"nobody\"]\n", "MissingDependency"),
        Case {
            more: |world| {
                let open = fs::Permissions::from_mode(0o777);
                fs::set_permissions(user(world, "x"), open).unwrap();
            },
            ..plain("", "WorldWritablePath")
        },
        Case {
            settings: "[discovery]\ndeny = [\"gu*\"]\n",
            ..plain("", "Denied")
        },
        Case {
            more: |world| impostor(&world.root().join("env/one"), ""),
            ..plain("", "ShadowedByHigherPrecedence")
        },
        Case {
            more: |world| {
                let policy = "[plugins]\ndeny = [\"guard\"]\n";
                fs::write(world.root().join("policy.toml"), policy).unwrap();
            },
            ..plain("", "ForbiddenByManagedPolicy")
        },
    ] {
        let world = World::new([bash(), done()]);
        fs::create_dir_all(world.root().join("env")).unwrap();
        fs::write(world.root().join("policy.toml"), "").unwrap();
        guard(&user(&world, "x"), case.manifest);
        granting(&world, &format!("{GUARDED}{}", case.settings));
        (case.more)(&world);
        let (env, policy) = (world.root().join("env"), world.root().join("policy.toml"));
        let variables = [
            ("OUTRIGGER_PLUGIN_PATH", env.to_str().unwrap()),
            ("OUTRIGGER_POLICY", policy.to_str().unwrap()),
        ];
        let (result, screen) = run_turn(&world, &variables);
        assert!(
            result.contains("not called: guard is "),
            "{}: {result}\n{screen}",
            case.says
        );
        assert!(
            screen.contains(case.says)
                && screen.contains("without it tool.execute.before is refused"),
            "{}: {screen}",
            case.says
        );
        let audit = world.cli(&["audit", "list", "--plugin", "guard", "--json"]);
        assert!(audit.stdout.contains("failed_closed"), "{}", audit.stdout);
    }
}

/// A later guard with the same id and the same hooks replaces it.
#[test]
fn another_guard_of_its_name_stands_for_it() {
    let world = World::new([bash(), done()]);
    guard(&user(&world, "x"), "");
    guard(&world.root().join("env/one"), "");
    granting(&world, GUARDED);
    let env = world.root().join("env");
    let (result, _) = run_turn(&world, &[("OUTRIGGER_PLUGIN_PATH", env.to_str().unwrap())]);
    assert!(result.contains("guard says no"), "{result}");
}

/// If the user names a guard that no plugin provides, or a hook that it does not have, this is reported at the start, and
/// nothing passes.
#[test]
fn a_guard_that_is_missing_misnamed_or_left_out_refuses_and_is_named() {
    let named = |id: &str, hook: &str| format!("[plugins.\"{id}\"]\nfail_closed = [\"{hook}\"]\n");
    let before = "tool.execute.before";
    type Case<'a> = (String, &'a [&'a str], &'a str, &'a str);
    let cases: [Case<'_>; 6] = [
        (
            named("gaurd", before),
            &["hi"],
            "`fail_closed` is set for plugin gaurd, which is not installed",
            "without it tool.execute.before is refused",
        ),
        (
            named("/nowhere/guard.js", before),
            &["hi"],
            "`fail_closed` is set for plugin /nowhere/guard.js, which is not installed",
            "correct the name",
        ),
        (
            named("claude:user", before),
            &["hi"],
            "`fail_closed` is set for plugin claude:user, which is not installed",
            "that file of command hooks is missing",
        ),
        (
            named("third", before),
            &["--pure", "hi"],
            "`--pure` (or OPENCODE_PURE) leaves out",
            "without it tool.execute.before is refused",
        ),
        (
            named("other", before),
            &["hi"],
            "it brings no tool.execute.before, which `fail_closed` names",
            "does not bring a hook that `fail_closed` names",
        ),
        (
            named("other", "tool.execute.befor"),
            &["hi"],
            "`fail_closed` names tool.execute.befor, which is not a hook",
            "does not bring a hook that `fail_closed` names",
        ),
    ];
    for (settings, arguments, says, screen) in cases {
        let world = World::new([bash(), done()]);
        // It has no hook of that name, and the other one is not named as a guard.
        impostor(&user(&world, "guard"), "");
        put(&user(&world, "other"), "other", "");
        world.plugin("third", "export const T = async () => ({})");
        granting(&world, &settings);
        let run = world.run(arguments).ok();
        let result = world.mock.last().texts("tool").concat();
        assert!(result.contains(says), "{says}: {result}");
        assert!(run.stderr.contains(screen), "{screen}: {}", run.stderr);
        assert!(!world.path("ran.txt").exists(), "{settings}");
    }
    // A project's command hooks, which not every project has, and a plugin of another folder.
    let world = World::new([bash(), done()]);
    let elsewhere = world.root().join("elsewhere.js");
    fs::write(&elsewhere, "").unwrap();
    let elsewhere = elsewhere.display().to_string();
    granting(
        &world,
        &[named("claude:project", before), named(&elsewhere, before)].concat(),
    );
    world.run(&["hi"]).ok();
    assert!(world.path("ran.txt").exists());
}

#[test]
fn no_project_takes_the_place_of_a_guard_of_the_user() {
    type Setup = fn(&World);
    let cases: [(Setup, &str); 6] = [
        (
            |world| {
                let folder = world.path(".outrigger/plugins/x");
                impostor(&folder, "enabled_by_default = false\n");
            },
            "ReservedUserPluginId",
        ),
        (
            |world| impostor(&world.path(".outrigger/plugins/x"), ""),
            "ReservedUserPluginId",
        ),
        (
            |world| {
                impostor(&world.path("tools/x"), "");
                world.config(json!({ "plugin": ["./tools/x"] }));
            },
            "ReservedUserPluginId",
        ),
        (
            |world| {
                impostor(&world.path(".outrigger/plugins/x"), "");
                granting(world, &format!("{GUARDED}[trust]\nprojects = \"deny\"\n"));
            },
            "ReservedUserPluginId",
        ),
        (
            |world| world.settings("[plugins.guard]\ndisabled = true\n"),
            "",
        ),
        (
            |world| world.settings("[plugins.guard]\nenabled = false\n"),
            "",
        ),
    ];
    for (setup, says) in cases {
        let world = World::new([bash(), done()]);
        guard(&user(&world, "guard"), "");
        granting(&world, GUARDED);
        setup(&world);
        let (result, screen) = run_turn(&world, &[]);
        assert!(result.contains("guard says no"), "{result}\n{screen}");
        assert!(screen.contains(says), "{says}: {screen}");
        let explained = world
            .cli(&["plugin", "snapshot", "--explain", "guard"])
            .ok()
            .stdout;
        let is_taken = explained.contains("identity      no: the id of");
        assert_eq!(is_taken, !says.is_empty(), "{explained}");
    }
}

/// Without rules of the user's, D1's order applies to trusted plugins; a project's switch applies to its own plugins only.
#[test]
fn what_is_not_trusted_displaces_nothing() {
    for (setting, heard) in [("trust", "hi theirs"), ("deny", "hi mine")] {
        let world = World::new([done(), done()]);
        put(&user(&world, "acme"), "acme", "");
        put(&world.path(".outrigger/plugins/acme"), "acme", "");
        let says = |folder: &Path, word: &str| {
            let file = folder.join("main.js");
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, text.replace("' acme'", &format!("' {word}'"))).unwrap();
        };
        says(&user(&world, "acme"), "mine");
        says(&world.path(".outrigger/plugins/acme"), "theirs");
        granting(&world, &format!("[trust]\nprojects = \"{setting}\"\n"));
        let run = world.run(&["hi"]).ok();
        assert_eq!(world.mock.last().texts("user"), [heard], "{}", run.stderr);
        world.settings("[plugins.acme]\ndisabled = true\n");
        world.run(&["hi"]).ok();
        assert_eq!(world.mock.last().texts("user"), ["hi mine"]);
    }
}

/// A plugin that runs in place of a bundled one is reported.
#[test]
fn a_bundled_plugin_that_is_replaced_is_named() {
    let world = World::new([done()]);
    put(&world.path(".outrigger/plugins/web"), "core-web", "");
    let screen = world.run(&["hi"]).ok().stderr;
    assert!(
        screen.contains("bundled plugin core-web does not run"),
        "{screen}"
    );
    assert!(!world.mock.last().tools().contains(&"webfetch".to_owned()));
}

#[test]
fn bundled_plugins_stay_when_what_would_replace_them_is_off() {
    let world = World::new([done()]);
    for id in ["core-fs", "core-command"] {
        let folder = world.path(".outrigger/plugins").join(id);
        put(&folder, id, "enabled_by_default = false\n");
    }
    world.run(&["hi"]).ok();
    let tools = world.mock.last().tools();
    for tool in ["bash", "read", "edit"] {
        assert!(tools.contains(&tool.to_owned()), "{tools:?}");
    }
}

/// A user's setting by id for the user's own plugin does not admit a project's plugin with the same id; a setting by location
/// does.
#[test]
fn switches_of_the_user_are_for_his_own() {
    let world = World::new([]);
    let folder = world.path(".outrigger/plugins/fx");
    put(
        &folder,
        "fx",
        "enabled_by_default = false\n[provides]\nhas_side_effects = true\n",
    );
    granting(
        &world,
        "[discovery]\nallow = [\"fx\"]\n[plugins.fx]\nenabled = true\n",
    );
    let explain = || {
        world
            .cli(&["plugin", "snapshot", "--explain", "fx"])
            .ok()
            .stdout
    };
    assert!(
        explain().contains("its manifest leaves it off"),
        "{}",
        explain()
    );
    granting(&world, "");
    let enabled = world.cli(&["plugin", "enable", "fx"]).ok().stdout;
    assert!(enabled.contains("does not name it"), "{enabled}");
    let enabled = world.cli(&["plugin", "enable", "fx"]).ok().stdout;
    assert!(enabled.contains("fx is enabled"), "{enabled}");
    let written = fs::read_to_string(world.home().join(".config/outrigger/outrigger.toml"));
    let place = folder.canonicalize().unwrap().display().to_string();
    assert_eq!(
        written.unwrap().matches(&place).count(),
        2,
        "by its place, twice"
    );
}

/// A plugin that an administrator requires cannot be bypassed in any way, and no project's plugin replaces it.
#[test]
fn what_the_policy_requires_is_refused_without_it() {
    type Setup = fn(&World);
    let cases: [(Setup, &[&str], &str); 6] = [
        (|_| {}, &[], "requires it"),
        (
            |world| impostor(&world.path(".outrigger/plugins/x"), ""),
            &[],
            "the policy requires",
        ),
        (
            |world| impostor(&user(world, "x"), ""),
            &[],
            "it brings no tool.execute.before",
        ),
        (
            |world| {
                guard(&user(world, "x"), "");
                granting(world, "[plugins.guard]\nenabled = false\n");
            },
            &[],
            "guard says no",
        ),
        (
            |world| {
                guard(&user(world, "x"), "");
                let path = user(world, "x").canonicalize().unwrap();
                let path = path.display();
                granting(world, &format!("[plugins.\"{path}\"]\ndisabled = true\n"));
            },
            &[],
            "switched off",
        ),
        (
            |world| guard(&user(world, "x"), ""),
            &["--pure"],
            "guard is skipped",
        ),
    ];
    for (setup, arguments, says) in cases {
        let world = World::new([bash(), done()]);
        setup(&world);
        let policy = world.root().join("policy.toml");
        fs::write(
            &policy,
            "[plugins.require]\nguard = [\"tool.execute.before\"]\n",
        )
        .unwrap();
        let arguments = [arguments, &["hi"]].concat();
        let run = world
            .run_with(
                &[("OUTRIGGER_POLICY", policy.to_str().unwrap())],
                &arguments,
            )
            .ok();
        let result = world.mock.last().texts("tool").concat();
        assert!(result.contains(says), "{says}: {result}\n{}", run.stderr);
        assert!(!world.path("ran.txt").exists(), "{says}: {result}");
    }
}
