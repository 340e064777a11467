//! `outrigger demo` on machines with Node, with Bun and with neither: none of the user's settings apply, and nothing is left
//! behind.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{bun_or_skip, outrigger};

/// What a machine has besides a JavaScript runtime. No git, no npm.
const PROGRAMS: [&str; 8] = ["sh", "bash", "cat", "ls", "env", "mkdir", "rm", "uname"];

/// A machine: programs, a home with settings that would prevent any start, a folder for temporary files.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new(runtime: Option<(&str, PathBuf)>) -> Self {
        let machine = Self {
            root: tempfile::tempdir().unwrap(),
        };
        for folder in [
            "bin",
            "home/.config/opencode",
            "home/.config/outrigger",
            "tmp",
            "cwd/.opencode",
        ] {
            fs::create_dir_all(machine.at(folder)).unwrap();
        }
        for program in PROGRAMS {
            symlink(on_path(program).unwrap(), machine.at("bin").join(program)).unwrap();
        }
        if let Some((name, path)) = runtime {
            symlink(path, machine.at("bin").join(name)).unwrap();
        }
        for file in [
            "home/.config/opencode/opencode.json",
            "tmp/opencode.json",
            "cwd/opencode.json",
            "cwd/.opencode/opencode.json",
        ] {
            fs::write(machine.at(file), "{ this is not JSON").unwrap();
        }
        for file in [
            "home/.config/outrigger/outrigger.toml",
            "tmp/outrigger.toml",
            "cwd/outrigger.toml",
        ] {
            fs::write(machine.at(file), "no_such_setting = true").unwrap();
        }
        fs::set_permissions(machine.at("cwd"), fs::Permissions::from_mode(0o555)).unwrap();
        machine
    }

    fn root(&self) -> String {
        self.root
            .path()
            .canonicalize()
            .unwrap()
            .display()
            .to_string()
    }

    fn at(&self, name: &str) -> PathBuf {
        PathBuf::from(self.root()).join(name)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test starts the program from outside"
    )]
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(outrigger());
        command.args(args).current_dir(self.at("cwd")).env_clear();
        command
            .env("PATH", self.at("bin"))
            .env("HOME", self.at("home"))
            .env("TMPDIR", self.at("tmp"));
        command
    }

    /// Returns everything below a folder with its modification times.
    fn trace(&self, folder: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.at(folder)];
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(&next).unwrap().flatten() {
                // The parent of this user's temporary folders stays, empty.
                let is_shared = entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with("outrigger-");
                if is_shared && fs::read_dir(entry.path()).unwrap().next().is_none() {
                    continue;
                }
                found.push(format!(
                    "{} {:?}",
                    entry.path().display(),
                    entry.metadata().unwrap().modified().unwrap()
                ));
                if entry.path().is_dir() {
                    open.push(entry.path());
                }
            }
        }
        found.sort();
        found
    }

    /// Runs the demo with settings that must not apply, and looks for traces.
    fn demo(&self) -> Output {
        let before = ["home", "tmp", "cwd"].map(|folder| self.trace(folder));
        let mut command = self.command(&["demo"]);
        command.env(
            "OPENCODE_CONFIG_CONTENT",
            r#"{"model":"none/none","permission":"deny"}"#,
        );
        command
            .env("OPENCODE_CONFIG", self.at("cwd/opencode.json"))
            .env("OPENCODE_PURE", "1");
        command
            .env("OUTRIGGER_BUN", "/nowhere/bun")
            .env("OUTRIGGER_NO_SUCH_SETTING", "1");
        let output = command.output().unwrap();
        assert_eq!(
            ["home", "tmp", "cwd"].map(|folder| self.trace(folder)),
            before
        );
        output
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Returns the standard output of a successful demo, whose standard error is empty.
fn stdout_of(output: &Output) -> String {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(
        output.status.success(),
        "{:?}\n{stdout}\n{stderr}",
        output.status
    );
    assert_eq!(stderr, "");
    stdout
}

/// Parts that differ by machine and run.
const FILTERS: [(&str, &str); 5] = [
    (r"ROOT/tmp/outrigger-demo-[0-9a-f]{5}", "TEMP"),
    (r"(Node|Bun) \d+\.\d+\.\d+ \(.*\)", "RUNTIME"),
    (r"\$ (node|bun) ", "$ RUNTIME "),
    (r"(?m)(^| +)\+?\d+(\.\d)? ms", " N ms"),
    (r"(?m) +$", ""),
];

fn whole_turn(machine: &Machine) {
    let stdout = stdout_of(&machine.demo()).replace(&machine.root(), "ROOT");
    insta::with_settings!({ filters => FILTERS }, {
        insta::allow_duplicates! { insta::assert_snapshot!(stdout, @r#"
        A whole turn: the model's answers are recorded, all else is done here and now.

        Project     TEMP/project
                    stats.js  test.js  opencode.json  .opencode/plugin/demo.js
        JavaScript  RUNTIME

        ── The test, before ──
        $ RUNTIME test.js  failed, exit code 1 N ms
        ok   mean: 3
        ok   median of an odd count: 2
        ok   median of an even count: 2.5
        FAIL median of larger numbers: 100, expected 10

        ── The turn, from its log ──
        > `npm test` fails. Find out why and fix it.

        │ First, what this project is and how it is tested.
        ⚙ project_facts {"detail":"full"} N ms
        │ project: stats
        │ tests: npm test (runs `node test.js`)
        │ sources: stats.js, test.js
        │ packages needed: 0

        │ The test says what it expects.
        → Read test.js N ms

        │ Now the code under test.
        → Read stats.js N ms

        │ `sort()` without a comparator compares numbers as text, so 100 comes before 9.
        ← Updated stats.js N ms
        │ @@ -5,7 +5,7 @@
        │  }
        │
        │  export function median(values) {
        │ -  const sorted = [...values].sort();
        │ +  const sorted = [...values].sort((a, b) => a - b);
        │    const middle = Math.floor(sorted.length / 2);
        │    if (sorted.length % 2 === 1) return sorted[middle];
        │    return mean([sorted[middle - 1], sorted[middle]]);

        $ "$JS" test.js N ms
        │ ok   mean: 3
        │ ok   median of an odd count: 2
        │ ok   median of an even count: 2.5
        │ ok   median of larger numbers: 10
          by: user prompted, model called, plugin demo changed, plugin demo changed variables

        │ Fixed: `median` sorted its numbers as text. All four checks pass now.

        ── The plugin ──
        active       demo N ms
                     from   .opencode/plugin/demo.js in .opencode
                     hooks  tool.execute.before, shell.env
                     tools  project_facts

              at  hook                 tool           answer        took
         N ms  tool.execute.before  project_facts  unchanged N ms
         N ms  tool.execute.before  read           unchanged N ms
         N ms  tool.execute.before  read           unchanged N ms
         N ms  tool.execute.before  edit           unchanged N ms
         N ms  tool.execute.before  bash           changed N ms  /args/command
                  npm test -> "$JS" test.js
         N ms  shell.env            bash           changed N ms  /env/JS

        ── The test, after ──
        $ RUNTIME test.js  passed N ms
        ok   mean: 3
        ok   median of an odd count: 2
        ok   median of an even count: 2.5
        ok   median of larger numbers: 10

        ── Where to look next ──
        outrigger session show         a session, replayed from its log
        outrigger plugin list          a project's plugins, and why one does not run
        docs/plugins.md, docs/turn.md  how to write a plugin, how a turn works
        `outrigger demo --keep PATH` leaves project and session there to be looked at.
        "#) };
    });
}

#[test]
fn with_node() {
    whole_turn(&Machine::new(Some(("node", on_path("node").unwrap()))));
}

#[test]
fn with_bun() {
    if let Some(bun) = bun_or_skip() {
        whole_turn(&Machine::new(Some(("bun", bun))));
    }
}

#[test]
fn with_neither() {
    let machine = Machine::new(None);
    let stdout = stdout_of(&machine.demo()).replace(&machine.root(), "ROOT");
    insta::with_settings!({ filters => FILTERS }, {
        insta::assert_snapshot!(stdout, @r#"
        A whole turn: the model's answers are recorded, all else is done here and now.

        Project     TEMP/project
                    stats.js  test.js  opencode.json  .opencode/plugin/demo.js
        JavaScript  neither Bun nor Node found, so no plugin is loaded and no test run

        ── The turn, from its log ──
        > `npm test` fails. Find out why and fix it.

        │ The test says what it expects.
        → Read test.js N ms

        │ Now the code under test.
        → Read stats.js N ms

        │ `sort()` without a comparator compares numbers as text, so 100 comes before 9.
        ← Updated stats.js N ms
        │ @@ -5,7 +5,7 @@
        │  }
        │
        │  export function median(values) {
        │ -  const sorted = [...values].sort();
        │ +  const sorted = [...values].sort((a, b) => a - b);
        │    const middle = Math.floor(sorted.length / 2);
        │    if (sorted.length % 2 === 1) return sorted[middle];
        │    return mean([sorted[middle - 1], sorted[middle]]);

        │ Is the comparator where it should be, and nowhere else?
        ✱ grep "sort\(\(a, b\)" 1 file N ms
        │   stats.js

        │ Fixed: `median` sorted its numbers as text. I have not run the test.

        ── The plugin ──
        not loaded   demo  (neither Bun nor Node found)

        ── Where to look next ──
        outrigger session show         a session, replayed from its log
        outrigger plugin list          a project's plugins, and why one does not run
        docs/plugins.md, docs/turn.md  how to write a plugin, how a turn works
        `outrigger demo --keep PATH` leaves project and session there to be looked at.
        "#);
    });
}

#[test]
fn without_plugins_the_bug_is_fixed_all_the_same() {
    let machine = Machine::new(Some(("node", on_path("node").unwrap())));
    let stdout = stdout_of(&machine.command(&["demo", "--pure"]).output().unwrap());
    assert!(
        stdout.contains("passed") && !stdout.contains("project_facts"),
        "{stdout}"
    );
}

#[test]
fn what_is_kept_can_be_looked_at_as_it_says() {
    let machine = Machine::new(Some(("node", on_path("node").unwrap())));
    let keep = machine.at("kept here");
    let keep = keep.to_str().unwrap();
    let stdout = stdout_of(&machine.command(&["demo", "--keep", keep]).output().unwrap());
    assert!(
        fs::read_to_string(Path::new(keep).join("project/stats.js"))
            .unwrap()
            .contains("(a, b) => a - b")
    );

    fs::remove_dir_all(machine.at("home/.config")).unwrap();
    let (project, data) = (format!("{keep}/project"), format!("{keep}/state/data"));
    for (what, wanted) in [
        ("session show", "> `npm test` fails."),
        ("plugin list", "project_facts"),
    ] {
        let hint = format!("XDG_DATA_HOME='{data}' outrigger {what} --dir '{project}'");
        assert!(stdout.contains(&hint), "{hint}\n{stdout}");
        let words: Vec<&str> = what.split(' ').chain(["--dir", &project]).collect();
        let output = machine
            .command(&words)
            .env("XDG_DATA_HOME", &data)
            .output()
            .unwrap();
        assert!(
            String::from_utf8_lossy(&output.stdout).contains(wanted),
            "{output:?}"
        );
    }
}

#[test]
fn a_folder_with_something_in_it_is_not_written_to() {
    let machine = Machine::new(None);
    let output = machine.command(&["demo", "--keep", "."]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r#"
        error: there is something in . already [cli.usage]
          hint: name a folder that does not exist yet, or an empty one
        "#);
}
