//! Tests once more as a user without rights, where they run as root: what the system refuses root it may allow somebody else, and
//! the other way round.

use std::collections::{BTreeSet, VecDeque};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use tempfile::TempDir;

use crate::skip::skip;

const ATTEMPTS: &str = include_str!("../../../docs/bypass/attempts.toml");

/// Who has no rights, and no files.
const NOBODY: u32 = 65534;
/// Processes of tests at one time, or tests of one process.
const AT_ONCE: usize = 4;

/// The tests below a folder of this repository (`crates/NAME/tests/it/`, `crates/NAME/src/`) that attempts name
/// (docs/bypass/attempts.toml), as their binary calls them: `escapes::a_test`.
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

/// Tests of this binary that run again.
pub struct Again {
    tests: BTreeSet<String>,
    programs: Vec<PathBuf>,
    variables: Vec<(String, String)>,
    together: bool,
}

impl Again {
    /// These, each in a process of its own.
    #[must_use]
    pub fn of(tests: BTreeSet<String>) -> Self {
        Self {
            tests,
            programs: vec![std::env::current_exe().unwrap()],
            variables: Vec::new(),
            together: false,
        }
    }

    /// All of them in one process, for tests that begin with the same work.
    #[must_use]
    pub fn together(mut self) -> Self {
        self.together = true;
        self
    }

    /// A program that they start.
    #[must_use]
    pub fn with(mut self, programs: impl IntoIterator<Item = PathBuf>) -> Self {
        self.programs.extend(programs);
        self
    }

    /// A variable for them.
    #[must_use]
    pub fn var(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs them. What root could try and this user could not is a failure, not a skipped test.
    ///
    /// # Panics
    /// Where one fails, is not there, or is skipped for this user alone, and where only root may enter the folder of a program.
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
        let runs = match self.together {
            true => VecDeque::from([all]),
            false => all.into_iter().map(|test| vec![test]).collect(),
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

    /// What went wrong with these, as nobody.
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
        // Root skips it as well where a program is not here.
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
            match is_of_all {
                true => skip(&format!("as a user without rights: {line}")),
                false => faults.push(format!("by this user alone: {line}")),
            }
        }
        faults
    }

    /// For temporary files, and a home that is none of these: tests need a place which commands do not share.
    fn folders(&self) -> [TempDir; 2] {
        let beside = self.programs[0].parent().unwrap();
        // Where the checkout lies in the folder for temporary files, root makes one elsewhere for the time of the tests.
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
            // Which it would ask cargo for, whose folder may be root's.
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

/// Whether anybody may go there.
fn is_open(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
}

fn skipped(said: &str) -> Vec<String> {
    // After the name of the test where it is on the same stream.
    let lines = said.lines().filter(|line| line.contains("skipped: "));
    lines.map(str::to_owned).collect()
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
