//! `outrigger plugin bisect` finds the plugin that breaks a command.

use crate::support::*;

/// Returns a world with these plugins, each a file of the project.
fn world(plugins: &[(&str, &str)]) -> World {
    let world = World::new([done()]);
    for (name, source) in plugins {
        world.plugin(name, source);
    }
    world
}

const INNOCENT: &str = "export const P = async () => ({ 'chat.params': async () => {} })";
/// Throws on the message, so that the turn fails.
const BREAKS: &str = "export const P = async () => { throw new Error('no database') }";
/// Leaves a mark where the command looks for it.
fn marks(name: &str) -> String {
    format!(
        "import {{ writeFileSync }} from 'node:fs'
         export const P = async ({{ directory }}) => {{ writeFileSync(directory + '/mark-{name}', ''); return {{}} }}"
    )
}

#[test]
fn the_one_that_breaks_a_run_is_found_by_halving() {
    let world = world(&[
        ("a", INNOCENT),
        ("b", INNOCENT),
        ("c", BREAKS),
        ("d", INNOCENT),
        ("e", INNOCENT),
    ]);
    let exe = outrigger();
    let done = world
        .cli(&[
            "plugin",
            "bisect",
            "--",
            exe,
            "run",
            "--strict-plugins",
            "hi",
        ])
        .ok();
    insta::assert_snapshot!(world.plain(&done.stdout), @r#"
    c breaks the command.
      c  from file://PROJECT/.opencode/plugin/c.js in PROJECT/.opencode
    To go on without: `disabled = true` under [plugins."c"] in outrigger.toml.
    "#);
    insta::assert_snapshot!(world.plain(&done.stderr), @r"
    run 1   with a, b, c, d, e                            bad (exit code 3)
          | ! plugin c failed: plugin c failed at server: export `P`: no database (while starting)
          | error: 1 of the plugins did not load, and strict_plugins makes that an error: c is failed (while starting): plugin c failed at server: export `P`: no database [plugin.strict]
          |   hint: `outrigger plugin list` shows why; fix or disable them, or omit --strict-plugins (setting strict_plugins)
    run 2   with none                                     good
    run 3   with a, b, c                                  bad (exit code 3)
    run 4   with a, b                                     good
    run 5   with c                                        bad (exit code 3)
    run 6   with a, b, d, e                               good
    ");
}

#[test]
fn two_that_only_clash_and_one_more_are_found() {
    let world = world(&[
        ("a", &marks("a")),
        ("b", INNOCENT),
        ("c", &marks("c")),
        ("d", &marks("d")),
    ]);
    // The user calls the script; the program inside it follows the bisection.
    let script = format!(
        "rm -f mark-*; {} plugin list >/dev/null 2>&1; \
         test ! -e mark-d || exit 7; test ! -e mark-a -o ! -e mark-c",
        outrigger()
    );
    let done = world
        .cli(&["plugin", "bisect", "--", "sh", "-c", &script])
        .ok();
    insta::assert_snapshot!(world.plain(&done.stdout), @r#"
    d breaks the command.
      d  from file://PROJECT/.opencode/plugin/d.js in PROJECT/.opencode
    It still fails without that: a, c break the command together; disabling any one of them fixes it.
      a  from file://PROJECT/.opencode/plugin/a.js in PROJECT/.opencode
      c  from file://PROJECT/.opencode/plugin/c.js in PROJECT/.opencode
    To go on without: `disabled = true` under [plugins."d"] and [plugins."a"] in outrigger.toml.
    "#);
}

#[test]
fn what_is_no_plugins_fault_is_said() {
    let world = world(&[("a", INNOCENT)]);
    let bisect = |world: &World, script: &str| {
        let done = world.cli(&[
            "plugin",
            "bisect",
            "--timeout",
            "2",
            "--",
            "sh",
            "-c",
            script,
        ]);
        let error = done.stderr.lines().find(|line| line.starts_with("error:"));
        format!("{} {}", done.code, error.unwrap_or_default())
    };
    let mut seen = Vec::new();
    for script in ["exit 0", "exit 1", "kill -9 $$", "exit 125", "sleep 60"] {
        seen.push(format!("{script}: {}", bisect(&world, script)));
    }
    // Fails with the plugin, and cannot tell without it.
    let unclear = r#"test "$OUTRIGGER_LEAVE_OUT" != "[]" && exit 125; exit 1"#;
    seen.push(format!("unclear: {}", bisect(&world, unclear)));
    seen.push(format!("no program: {}", {
        let done = world.cli(&["plugin", "bisect", "--", "no-such-program"]);
        done.stderr
            .lines()
            .rev()
            .find(|line| line.starts_with("error:"))
            .and_then(|line| line.split(" (searched").next())
            .unwrap_or_default()
            .to_owned()
    }));
    let empty = World::new([done()]);
    seen.push(format!("no plugins: {}", bisect(&empty, "exit 1")));
    insta::assert_snapshot!(seen.join("\n"), @r"
    exit 0: 1 error: the command succeeds with all plugins enabled [bisect.good_with_all]
    exit 1: 1 error: the command also fails without plugins, so no plugin is the cause [bisect.bad_with_none]
    kill -9 $$: 1 error: the command also fails without plugins, so no plugin is the cause [bisect.bad_with_none]
    exit 125: 1 error: the command exited with 125 (skip) with all plugins enabled [bisect.cannot_tell]
    sleep 60: 1 error: the command also fails without plugins, so no plugin is the cause [bisect.bad_with_none]
    unclear: 1 error: the command exited with 125 (skip) without plugins [bisect.cannot_tell]
    no program: error: program no-such-program not found
    no plugins: 1 error: no plugin is configured here, so none can be the culprit [bisect.no_plugins]
    ");
}
