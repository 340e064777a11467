//! Repeats tests as an unprivileged user if they run as root: what the system refuses to root it may allow another user, and the
//! reverse.

use std::collections::{BTreeSet, VecDeque};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use tempfile::TempDir;

use crate::skip::skip;

const ATTEMPTS: &str = include_str!("../../../docs/bypass/attempts.toml");

/// A user without privileges or files.
const NOBODY: u32 = 65534;
/// Number of concurrent test processes, or tests of one process.
const AT_ONCE: usize = 4;

/// Returns the tests below a folder of this repository (`crates/NAME/tests/it/`, `crates/NAME/src/`) that attempts name
/// (docs/bypass/attempts.toml), under their names in the binary: `escapes::a_test`.
#[must_use]
pub fn attempts(folder: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let test = line.trim().strip_prefix('"')?.strip_prefix(folder)?;
        let (file, test) = test.split_once('"')?.0.split_once(".rs::")?;
        let module = file.replace('/', "::");
        Some(match (folder.ends_with("/src/"), &*module) {
            (false, _) => format!("{module}::{test}"),
            (true, "lib") => format!("tests::{test}"),
            (true, module) if module.ends_with("tests") => format!("{module}::{test}"),
            (true, module) => format!("{module}::tests::{test}"),
        })
    };
    ATTEMPTS.lines().filter_map(name).collect()
}

/// Tests of this binary to repeat.
pub struct Again {
    tests: BTreeSet<String>,
    programs: Vec<PathBuf>,
    variables: Vec<(String, String)>,
    together: bool,
}

impl Again {
    /// Creates a repetition of these, each in its own process.
    #[must_use]
    pub fn of(tests: BTreeSet<String>) -> Self {
        Self {
            tests,
            programs: vec![std::env::current_exe().unwrap()],
            variables: Vec::new(),
            together: false,
        }
    }

    /// Runs all of them in one process, for tests that share an expensive start.
    #[must_use]
    pub fn together(mut self) -> Self {
        self.together = true;
        self
    }

    /// Adds a program that they start.
    #[must_use]
    pub fn with(mut self, programs: impl IntoIterator<Item = PathBuf>) -> Self {
        self.programs.extend(programs);
        self
    }

    /// Sets a variable for them.
    #[must_use]
    pub fn var(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs them. What root could try and this user could not is a failure, not a skipped test.
    ///
    /// # Panics
    /// If one fails, does not exist, or is skipped only for this user, and if only root may enter the folder of a program.
    pub fn run(&self) {
        if !rustix::process::geteuid().is_root() {
            return skip("this is a user without rights already");
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|dir| dir.join("setpriv").is_file()) {
            return skip("there is no setpriv");
        }
        for program in &self.programs {
            let shut = program.ancestors().find(|path| !is_open(path));
            assert!(
                shut.is_none(),
                "only root may enter {}, so nobody else starts {}: `chmod o+x` it, or move the checkout (CARGO_TARGET_DIR, OUTRIGGER_BUN)",
                shut.unwrap_or(program).display(),
                program.display()
            );
        }
        assert!(
            !self.tests.is_empty(),
            "no attempt names a test of this crate"
        );
        let all: Vec<&str> = self.tests.iter().map(String::as_str).collect();
        let runs = if self.together {
            VecDeque::from([all])
        } else {
            all.into_iter().map(|test| vec![test]).collect()
        };
        let (left, faults) = (Mutex::new(runs), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let next = left.lock().unwrap().pop_front();
                        let Some(tests) = next else { break };
                        let found = self.faults(&tests);
                        faults.lock().unwrap().extend(found);
                    }
                });
            }
        });
        let faults = faults.into_inner().unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// Returns the failures of these tests as `nobody`.
    fn faults(&self, tests: &[&str]) -> Vec<String> {
        let folders = self.folders();
        for folder in &folders {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let (id, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
        let nobody = ["setpriv", &id, &group, "--clear-groups"];
        let (output, said) = self.run_as(&nobody, tests, &folders);
        let wanted = format!("test result: ok. {} passed", tests.len());
        if !said.contains(&wanted) {
            return vec![format!("{}: {said}", output.status)];
        }
        let skipped = skipped(&said);
        if skipped.is_empty() {
            return Vec::new();
        }
        // Root also skips it if a program is missing.
        let folders = self.folders();
        let by_root = |test: &str| {
            let (_, said) = self.run_as(&["env"], &[test], &folders);
            !self::skipped(&said).is_empty()
        };
        let mut faults = Vec::new();
        for line in skipped {
            let named = tests.iter().find(|test| line.contains(**test));
            let is_of_all = match (named, tests) {
                (Some(test), _) | (None, [test]) => by_root(test),
                _ => false,
            };
            if is_of_all {
                skip(&format!("as a user without rights: {line}"))
            } else {
                faults.push(format!("by this user alone: {line}"))
            }
        }
        faults
    }

    /// Creates folders for temporary files, and a home outside them: tests need a place that commands do not share.
    fn folders(&self) -> [TempDir; 2] {
        let beside = self.programs[0].parent().unwrap();
        // If the checkout is in the temporary folder, root creates one elsewhere for the duration of the tests.
        let elsewhere = ["/srv", "/opt", "/var/lib"].map(Path::new);
        let home = [beside]
            .into_iter()
            .chain(elsewhere)
            .filter(|it| !it.starts_with("/tmp") && !it.starts_with(std::env::temp_dir()))
            .find_map(|it| tempfile::tempdir_in(it).ok());
        [tempfile::tempdir().unwrap(), home.unwrap()]
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "these very tests, as another user"
    )]
    fn run_as(
        &self,
        user: &[&str],
        tests: &[&str],
        [tmp, home]: &[TempDir; 2],
    ) -> (Output, String) {
        let (program, options) = user.split_first().unwrap();
        let output = Command::new(program)
            .args(options)
            .arg(&self.programs[0])
            .args(["--exact", "--nocapture"])
            .arg(format!("--test-threads={AT_ONCE}"))
            .args(tests)
            .env("HOME", home.path())
            .env("TMPDIR", tmp.path())
            .env("INSTA_UPDATE", "no")
            // It would ask cargo otherwise, whose folder may be root's.
            .env(
                "INSTA_WORKSPACE_ROOT",
                concat!(env!("CARGO_MANIFEST_DIR"), "/../.."),
            )
            .env_remove("OUTRIGGER_SKIPPED")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&output.stdout) + &text(&output.stderr);
        (output, said)
    }
}

/// Returns whether every user may enter it.
fn is_open(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
}

fn skipped(said: &str) -> Vec<String> {
    // After the name of the test, if it is on the same stream.
    said.lines()
        .filter(|line| line.contains("skipped: "))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_attempts_are_named_as_their_binary_does() {
        let all = attempts("crates/outrigger-cli/tests/it/");
        assert!(all.len() > 100, "{}", all.len());
        let units = attempts("crates/outrigger-protected-paths/src/");
        let names = "nested_git::tests::";
        assert!(units.iter().any(|it| it.starts_with(names)), "{units:?}");
        assert!(
            units.iter().any(|it| it.starts_with("tests::")),
            "{units:?}"
        );
    }
}
