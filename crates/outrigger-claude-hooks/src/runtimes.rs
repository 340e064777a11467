//! Isolation of a hook's runtime from its working directory: a file there (`json.py`, `bunfig.toml`, `.venv`) would run before
//! the hook, and answer for it. Environment variables prevent that.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use outrigger_sandbox::host_path;

/// Variable with additional options for Bun.
const BUN_OPTIONS: &str = "BUN_OPTIONS";
/// Options of Bun that are followed by a program.
const BUN_PROGRAMS: [&str; 4] = ["-e", "--eval", "-p", "--print"];

/// Module search paths of interpreters.
const MODULES: [&str; 5] = ["PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB", "LUA_PATH"];

/// Git settings that override those of a repository: no monitor, hook, pager, editor or `ssh` of its own, no remote that is a program,
/// and no repository that is a bare folder of files. What git starts could answer for the hook.
const GIT: [(&str, &str); 8] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("core.sshCommand", "ssh"),
    ("core.askPass", ""),
    ("protocol.ext.allow", "never"),
    ("safe.bareRepository", "explicit"),
];
const GIT_COUNT: &str = "GIT_CONFIG_COUNT";

/// A hook that is about to run.
pub(crate) struct Runtimes<'a> {
    /// Its command line.
    pub(crate) line: &'a str,
    /// It can refuse something.
    pub(crate) may_refuse: bool,
    /// Its working directory.
    pub(crate) directory: &'a Path,
    /// Its environment.
    pub(crate) environment: &'a [(OsString, OsString)],
    /// A `bunfig.toml` that is not the project's.
    pub(crate) bun_config: Option<PathBuf>,
}

/// A runtime that reads settings of the working directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runtime {
    Bun,
    Uv,
}

impl Runtimes<'_> {
    /// Returns the variables for it. A user command that is meant to run the project (`bun test`, `uv run pytest`) keeps the
    /// project's settings.
    pub(crate) fn variables(&self, is_users: bool) -> Vec<(Cow<'static, str>, OsString)> {
        let mut all = Vec::new();
        if imports_from_here(self.line) {
            all.push(("PYTHONSAFEPATH", "1".into()));
        }
        if is_users && self.may_refuse {
            all.extend(self.found_elsewhere());
        }
        if is_users && self.reads_nothing_here(Runtime::Bun) {
            all.push((BUN_OPTIONS, self.bun_options()));
        }
        if is_users && self.reads_nothing_here(Runtime::Uv) {
            all.extend(self.uv());
        }
        let mut all: Vec<_> = all
            .into_iter()
            .map(|(name, value)| (Cow::Borrowed(name), value))
            .collect();
        if is_users {
            all.extend(self.git());
        }
        all
    }

    /// Returns the settings for git, after those that the environment has already.
    fn git(&self) -> impl Iterator<Item = (Cow<'static, str>, OsString)> + use<> {
        let count = self
            .variable(GIT_COUNT)
            .and_then(|it| it.to_str()?.parse::<usize>().ok());
        let first = count.unwrap_or(0);
        let count = first.saturating_add(GIT.len()).to_string();
        let pairs = (first..).zip(GIT).flat_map(|(at, (key, value))| {
            [
                (format!("GIT_CONFIG_KEY_{at}").into(), key.into()),
                (format!("GIT_CONFIG_VALUE_{at}").into(), value.into()),
            ]
        });
        pairs.chain([(GIT_COUNT.into(), count.into())])
    }

    /// Returns search paths for a guard's programs and modules outside of what commands can write: a `python3` or `grep` of an
    /// activated `.venv` would answer for it. A program that exists nowhere else is taken from there.
    fn found_elsewhere(&self) -> Vec<(&'static str, OsString)> {
        let mut all = Vec::new();
        if let Some(path) = self.variable("PATH") {
            all.push(("PATH", host_path::last(path)));
        }
        let modules = MODULES.iter().filter_map(|name| {
            let kept = host_path::without(self.variable(name)?);
            Some((*name, kept))
        });
        all.extend(modules);
        all
    }

    /// Returns whether what it runs by this runtime is outside the project. A script may also start it, with a line that does not
    /// show it.
    fn reads_nothing_here(&self, runtime: Runtime) -> bool {
        let mut words = self
            .line
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'']));
        let is_named = |name: &str| match runtime {
            Runtime::Bun => matches!(name, "bun" | "bunx"),
            Runtime::Uv => matches!(name, "uv" | "uvx"),
        };
        let Some(program) = words.find(|word| is_named(file_name(word))) else {
            return self.may_refuse;
        };
        let is_tool = file_name(program) == "uvx";
        is_tool || words.any(|word| BUN_PROGRAMS.contains(&word) || self.lies_elsewhere(word))
    }

    /// Returns whether a word is a path that is not in the project.
    fn lies_elsewhere(&self, word: &str) -> bool {
        let project = [
            "$CLAUDE_PROJECT_DIR",
            "${CLAUDE_PROJECT_DIR",
            "$PWD",
            "/dev/",
        ];
        let is_path = word.starts_with(['/', '~', '$']) && word.contains('/');
        is_path
            && !project.iter().any(|it| word.starts_with(it))
            && !Path::new(word).starts_with(self.directory)
    }

    fn bun_options(&self) -> OsString {
        // Options are separated by blanks, and there is no quoting.
        let plain = |path: &PathBuf| !path.to_string_lossy().contains(char::is_whitespace);
        let config = self.bun_config.clone().filter(plain);
        let mut options = OsString::from("--config=");
        options.push(config.unwrap_or_else(|| PathBuf::from("/dev/null")));
        if let Some(own) = self.variable(BUN_OPTIONS) {
            options.push(" ");
            options.push(own);
        }
        options
    }

    /// Selects the user's own settings of uv instead of those of the folder, and no environment or project of the folder.
    fn uv(&self) -> Vec<(&'static str, OsString)> {
        let mut all = vec![("UV_NO_PROJECT", OsString::from("1"))];
        if self.variable("UV_CONFIG_FILE").is_none() {
            all.push(match self.uv_settings() {
                Some(file) => ("UV_CONFIG_FILE", file.into()),
                None => ("UV_NO_CONFIG", "1".into()),
            });
        }
        // Without a file, uv warns about the option.
        if self
            .directory
            .ancestors()
            .any(|it| it.join(".venv").exists())
        {
            all.push(("UV_ISOLATED", "1".into()));
        }
        all
    }

    fn uv_settings(&self) -> Option<PathBuf> {
        let config = self.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let home = || Some(Path::new(self.variable("HOME")?).join(".config"));
        let users = config.or_else(home).map(|it| it.join("uv/uv.toml"));
        let mut files = users.into_iter().chain([PathBuf::from("/etc/uv/uv.toml")]);
        files.find(|it| it.is_file())
    }

    fn variable(&self, name: &str) -> Option<&OsString> {
        let mut all = self.environment.iter();
        let (_, value) = all.find(|(it, _)| it == name)?;
        Some(value).filter(|it| !it.is_empty())
    }
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Returns whether a command runs Python with the working directory before its own modules: a `json.py` of the project would
/// answer for the hook.
fn imports_from_here(command: &str) -> bool {
    let mut words = command.split_whitespace();
    words.any(|word| word.contains("python")) && words.any(|word| matches!(word, "-c" | "-m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_with_modules_of_the_working_folder() {
        for (command, from_here) in [
            ("python3 -c 'import json'", true),
            ("/usr/bin/python3.12 -I -m guard", true),
            ("env X=1 python -B -c 1", true),
            ("python3 ~/hooks/guard.py", false),
            ("bash -c 'exit 2'", false),
            ("ls python -x", false),
        ] {
            assert_eq!(imports_from_here(command), from_here, "{command}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the user's own git")]
    fn git_of_a_users_hook_starts_no_program_of_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str], variables: &[(Cow<'static, str>, OsString)]| {
            let ran = std::process::Command::new("git")
                .args(arguments)
                .current_dir(folder.path())
                .envs(variables.iter().map(|(name, value)| (&**name, value)))
                .output()
                .unwrap();
            (ran.status.success(), String::from_utf8(ran.stdout).unwrap())
        };
        assert!(git(&["init", "-q"], &[]).0);
        let monitor = "touch started; false";
        assert!(git(&["config", "core.fsmonitor", monitor], &[]).0);
        let environment = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "user.name"),
            ("GIT_CONFIG_VALUE_0", "me"),
        ]
        .map(|(name, value)| (OsString::from(name), value.into()));
        let runtimes = Runtimes {
            line: "git status",
            may_refuse: true,
            directory: folder.path(),
            environment: &environment,
            bun_config: None,
        };
        let mut variables = runtimes.variables(true);
        let own = environment.iter().map(|(name, value)| {
            let name = name.to_str().unwrap().to_owned();
            (Cow::Owned(name), value.clone())
        });
        variables.splice(0..0, own);
        assert!(git(&["status", "--short"], &variables).0);
        assert!(!folder.path().join("started").exists());
        assert_eq!(git(&["config", "user.name"], &variables).1, "me\n");
        let bare = folder.path().join("bare");
        assert!(git(&["init", "-q", "--bare", "bare"], &[]).0);
        let at = bare.to_str().unwrap();
        assert!(!git(&["-C", at, "status"], &variables).0);
        assert!(git(&["status", "--short"], &[]).0);
        assert!(folder.path().join("started").exists());
    }

    /// By command line and whether it is a guard: the settings for Bun and for uv.
    #[test]
    fn a_hook_that_is_not_the_projects_reads_no_settings_of_the_project() {
        let environment =
            [("BUN_OPTIONS", "--smol")].map(|(name, value)| (name.into(), value.into()));
        for (line, may_refuse, bun, uv) in [
            ("bun ~/hooks/guard.js", true, true, true),
            ("bun ~/hooks/guard.js", false, true, false),
            (
                "/opt/bun/bin/bun run \"$HOME/hooks/g.ts\" 2>/dev/null",
                false,
                true,
                false,
            ),
            ("bun -e 'process.exit(2)'", false, true, false),
            ("~/hooks/guard.ts", true, true, true),
            ("~/hooks/format.sh", false, false, false),
            ("bun test > /dev/null", true, false, true),
            ("bun run lint", true, false, true),
            (
                "bun \"$CLAUDE_PROJECT_DIR\"/scripts/x.ts",
                true,
                false,
                true,
            ),
            ("bun /p/scripts/x.ts", true, false, true),
            ("uv run --with x ~/hooks/g.py", false, false, true),
            ("uvx guard", false, false, true),
            ("uv run pytest tests/a.py", true, true, false),
        ] {
            let runtimes = Runtimes {
                line,
                may_refuse,
                directory: Path::new("/p"),
                environment: &environment,
                bun_config: Some("/t/bunfig.toml".into()),
            };
            let all = runtimes.variables(true);
            let set = |name: &str| all.iter().any(|(it, _)| it == name);
            assert_eq!(
                (set("BUN_OPTIONS"), set("UV_NO_PROJECT")),
                (bun, uv),
                "{line} {may_refuse}"
            );
            assert!(runtimes.variables(false).is_empty(), "{line}");
            let options = all.iter().find(|(name, _)| name == "BUN_OPTIONS");
            let want = OsString::from("--config=/t/bunfig.toml --smol");
            assert!(
                options.is_none_or(|(_, value)| *value == want),
                "{options:?}"
            );
        }
    }
}
