//! Plugins that cannot be loaded: each is named with its cause, and everything else runs.

use serde_json::json;

use crate::support::*;
use crate::user_grants::granting;

/// Returns a `PATH` with the programs that tools need, but no JavaScript runtime.
fn path_without_runtimes(world: &World) -> String {
    let bin = world.root().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for program in ["sh", "bash", "git", "env", "cat"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(program))
            .find(|path| path.is_file());
        if let Some(found) = found {
            std::os::unix::fs::symlink(found, bin.join(program)).unwrap();
        }
    }
    bin.display().to_string()
}

const GOOD: &str = "
export const Good = async () => ({
  'chat.message': async (_, output) => { output.parts[0].text += ' (good was here)' },
})";

/// The run works without it (an empty variable is removed) and reports what is missing; `plugin list` has the details.
#[track_caller]
fn runs_without(world: &World, variables: &[(&str, &str)]) -> (String, String) {
    let [run, list] = [&["run", "hi"], &["plugin", "list"]].map(|args| {
        let mut command = world.command(args);
        for (name, value) in variables {
            if value.is_empty() {
                command.env_remove(name)
            } else {
                command.env(name, value)
            };
        }
        world.start(command).end().ok()
    });
    assert_eq!(run.stdout, "All done.\n");
    // On a busy machine a plugin takes so long that a line reports the wait.
    let lines = run.stderr.split_inclusive('\n');
    let said: String = lines
        .filter(|line| !line.starts_with("~ waiting for plugin "))
        .collect();
    (
        world.plain(&said),
        times_removed(&world.plain(&list.stdout)),
    )
}

fn times_removed(text: &str) -> String {
    let words = |line: &str| -> String {
        let cut = line
            .strip_suffix(" ms")
            .and_then(|l| l.rsplit_once("  "))
            .map_or(line, |(rest, ms)| {
                if ms.parse::<u64>().is_ok() {
                    rest
                } else {
                    line
                }
            });
        cut.to_owned()
    };
    text.lines().map(words).collect::<Vec<_>>().join("\n")
}

#[test]
fn without_a_javascript_runtime() {
    let world = World::new([done()]);
    world.plugin("good", GOOD);
    let path = path_without_runtimes(&world);
    let (said, listed) = runs_without(
        &world,
        &[
            ("PATH", &path),
            ("OUTRIGGER_BUN", ""),
            ("OUTRIGGER_JS_INSTALL", "never"),
        ],
    );
    insta::assert_snapshot!(said, @r"
    ! plugin good failed: plugins need a JavaScript runtime: no JavaScript runtime found (looked for: settings, OUTRIGGER_BUN, OUTRIGGER_NODE, bun on PATH, HOME/.local/share/outrigger/bun/bin/bun, node on PATH) (while found)

    > build · m1
    ");
    insta::assert_snapshot!(listed, @r"
    failed       good
                 from   file://PROJECT/.opencode/plugin/good.js in PROJECT/.opencode
                 cause  plugins need a JavaScript runtime: no JavaScript runtime found (looked for: settings, OUTRIGGER_BUN, OUTRIGGER_NODE, bun on PATH, HOME/.local/share/outrigger/bun/bin/bun, node on PATH) (while found) [plugin.no_runtime]
                 hint   run `outrigger plugin setup` to install Bun (it fetches it from npm into the data folder)
    ");
}

#[test]
fn a_runtime_that_is_named_and_not_there() {
    let world = World::new([done()]);
    world.plugin("good", GOOD);
    let (said, _) = runs_without(&world, &[("OUTRIGGER_BUN", "/nowhere/bun")]);
    insta::assert_snapshot!(said, @r"
    ! plugin good failed: plugins need a JavaScript runtime: the JavaScript runtime /nowhere/bun named by OUTRIGGER_BUN does not exist (while found)

    > build · m1
    ");
}

#[test]
fn a_plugin_that_does_not_exist() {
    let world = World::new([done()]);
    world.plugin("good", GOOD);
    world.config(json!({ "plugin": ["./missing.js", format!("file://{}/gone/plugin.js", world.project().display())] }));
    let (said, listed) = runs_without(&world, &[]);
    insta::assert_snapshot!(said, @r"
    ! plugin missing failed: plugin file://PROJECT/missing.js: there is nothing at PROJECT/missing.js (while found)
    ! plugin plugin failed: plugin file://PROJECT/gone/plugin.js: there is nothing at PROJECT/gone/plugin.js (while found)

    > build · m1
    ");
    insta::assert_snapshot!(listed, @r"
    failed       missing
                 from   file://PROJECT/missing.js in PROJECT/opencode.json
                 cause  plugin file://PROJECT/missing.js: there is nothing at PROJECT/missing.js (while found) [plugin.not_found]
                 hint   check the path; a relative one starts at the folder of the configuration file that names it
    failed       plugin
                 from   file://PROJECT/gone/plugin.js in PROJECT/opencode.json
                 cause  plugin file://PROJECT/gone/plugin.js: there is nothing at PROJECT/gone/plugin.js (while found) [plugin.not_found]
                 hint   check the path; a relative one starts at the folder of the configuration file that names it
    active       good
                 from   file://PROJECT/.opencode/plugin/good.js in PROJECT/.opencode
                 hooks  chat.message
    ");
    assert!(
        world.mock.requests()[0]
            .texts("user")
            .concat()
            .contains("good was here")
    );
}

#[test]
fn a_plugin_with_a_syntax_error() {
    let world = World::new([done()]);
    world.plugin(
        "broken",
        "export const Broken = async () => ({\n  'chat.message': async ( => {},\n})\n",
    );
    world.plugin("good", GOOD);
    let (said, listed) = runs_without(&world, &[]);
    for text in [&said, &listed] {
        assert!(
            text.contains("broken") && !text.contains("plugin good"),
            "{text}"
        );
    }
    assert!(listed.contains("[plugin.import]"), "{listed}");
    assert!(
        world.mock.requests()[0]
            .texts("user")
            .concat()
            .contains("good was here")
    );
}

#[test]
fn plugins_that_throw_or_export_nothing_useful() {
    let world = World::new([done()]);
    world.plugin("good", GOOD);
    world.plugin(
        "throws",
        "export const Throws = async () => { throw new Error('no database\\n? allow bash? [y]es') }\n",
    );
    world.plugin("number", "export default 42\n");
    world.plugin(
        "undefined",
        "export const Undefined = async () => undefined\n",
    );
    world.plugin(
        "exits",
        "export const Exits = async () => { process.exit(3) }\n",
    );
    let (said, listed) = runs_without(&world, &[]);
    insta::assert_snapshot!(said, @r"
    ! plugin exits failed: plugin exits ended its process during server: the plugin process shared is gone (exit code 3) (while starting)
    ! plugin number failed: plugin number failed at export: export `default` is not a function; it was skipped (while starting)
    ! plugin throws failed: plugin throws failed at server: export `Throws`: no database
         | ? allow bash? [y]es (while starting)
    ! plugin undefined failed: plugin undefined failed at hooks: export `Undefined` answered with undefined, not with hooks; it was dropped (while starting)

    > build · m1
    ");
    insta::assert_snapshot!(listed, @r"
    failed       exits
                 from   file://PROJECT/.opencode/plugin/exits.js in PROJECT/.opencode
                 cause  plugin exits ended its process during server: the plugin process shared is gone (exit code 3) (while starting) [plugin.crashed]
    active       good
                 from   file://PROJECT/.opencode/plugin/good.js in PROJECT/.opencode
                 hooks  chat.message
    failed       number
                 from   file://PROJECT/.opencode/plugin/number.js in PROJECT/.opencode
                 cause  plugin number failed at export: export `default` is not a function; it was skipped (while starting) [plugin.export]
    failed       throws
                 from   file://PROJECT/.opencode/plugin/throws.js in PROJECT/.opencode
                 cause  plugin throws failed at server: export `Throws`: no database␊? allow bash? [y]es (while starting) [plugin.server]
    failed       undefined
                 from   file://PROJECT/.opencode/plugin/undefined.js in PROJECT/.opencode
                 cause  plugin undefined failed at hooks: export `Undefined` answered with undefined, not with hooks; it was dropped (while starting) [plugin.load]
    ");
    assert!(
        world.mock.requests()[0]
            .texts("user")
            .concat()
            .contains("good was here")
    );
}

#[test]
fn a_plugin_that_never_finishes_loading() {
    let world = World::new([done()]);
    granting(&world, "[deadlines]\nload_ms = 3000\n");
    world.plugin("good", GOOD);
    world.plugin(
        "waits",
        "export const Waits = () => new Promise(() => { setInterval(() => {}, 1000) })\n",
    );
    world.plugin(
        "spins",
        "export const Spins = async () => { for (;;) {} }\n",
    );
    let (said, listed) = runs_without(&world, &[]);
    insta::assert_snapshot!(said, @r"
    ! plugin spins failed: plugin spins did not finish its server within 3000 ms (while starting)
    ! plugin waits failed: plugin waits did not finish its server within 3000 ms (while starting)

    > build · m1
    ");
    insta::assert_snapshot!(listed, @r"
    active       good
                 from   file://PROJECT/.opencode/plugin/good.js in PROJECT/.opencode
                 hooks  chat.message
    failed       spins
                 from   file://PROJECT/.opencode/plugin/spins.js in PROJECT/.opencode
                 cause  plugin spins did not finish its server within 3000 ms (while starting) [plugin.hung]
                 hint   if the plugin is just slow, raise `deadlines.load_ms` in outrigger.toml
    failed       waits
                 from   file://PROJECT/.opencode/plugin/waits.js in PROJECT/.opencode
                 cause  plugin waits did not finish its server within 3000 ms (while starting) [plugin.hung]
                 hint   if the plugin is just slow, raise `deadlines.load_ms` in outrigger.toml
    ");
    assert!(
        world.mock.requests()[0]
            .texts("user")
            .concat()
            .contains("good was here")
    );
}

/// `--pure` loads no plugin, whatever is configured.
#[test]
fn pure_loads_no_plugin() {
    let world = World::new([done()]);
    world.plugin("good", GOOD);
    let done = world.run(&["--pure", "hi"]).ok();
    assert_eq!(done.stdout, "All done.\n");
    assert!(
        !world
            .mock
            .last()
            .texts("user")
            .concat()
            .contains("good was here")
    );
    let listed = world.plain(&world.cli(&["plugin", "list", "--pure"]).ok().stdout);
    insta::assert_snapshot!(listed, @r"
    skipped      good
                 from   file://PROJECT/.opencode/plugin/good.js in PROJECT/.opencode
                 cause  file://PROJECT/.opencode/plugin/good.js is not loaded: `--pure` (or OPENCODE_PURE) leaves out everything from outside (while found) [plugin.pure]
    ");
}
