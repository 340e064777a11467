//! Formatters: `formatter` of `opencode.json`, run on a file that `edit` or `write` has written.
//!
//! The list is OpenCode's. A built-in one is enabled if its program is installed and the project is set up for it;
//! nothing is downloaded. A failing one logs a warning; a hanging one is ended, and skipped after the second time.

mod builtin;
mod command_line;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use outrigger_lsp::{Programs, texts_at, variables_at};
use outrigger_sandbox::{Spawner, Spec, run, which};
use outrigger_tools::Formatted;
use serde::Serialize;
use serde_json::Value;

use self::builtin::{BUILT_IN, When};
use crate::project_location::ProjectLocation;
use outrigger_stdx::sync::lock;

/// Deadline of a run.
const DEADLINE: Duration = Duration::from_secs(10);
/// After this many consecutive missed deadlines it is skipped.
const MAX_LATE: u32 = 2;
/// Bytes of its output in the warning.
const OUTPUT: usize = 2_000;

/// A formatter, in the form of `GET /formatter`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FormatterStatus {
    /// Its name in the configuration.
    pub name: String,
    /// Extensions of its files, with the dot.
    pub extensions: Vec<String>,
    /// It would run.
    pub enabled: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Formatter {
    name: String,
    extensions: Vec<String>,
    environment: Vec<(String, String)>,
    command: Command,
}

#[derive(Clone, Debug, PartialEq)]
enum Command {
    /// A built-in one: program and arguments, where to find them, and the condition.
    BuiltIn(&'static [&'static str], When),
    Given(Vec<String>),
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    NotRun,
    Ran,
    /// It was ended at its deadline.
    Late,
}

/// The formatters of a project.
pub struct Formatters {
    list: Vec<Formatter>,
    directory: PathBuf,
    worktree: PathBuf,
    env: Vec<(OsString, OsString)>,
    spawner: Spawner,
    programs: Programs,
    /// Reported refusals.
    refused: Mutex<BTreeMap<String, String>>,
    deadline: Duration,
    /// Consecutive missed deadlines, by name.
    late: Mutex<BTreeMap<String, u32>>,
    /// Commands of the built-in ones, looked up once.
    found: Mutex<BTreeMap<String, Option<Vec<String>>>>,
}

impl Formatters {
    /// Reads the configuration; does not look for programs yet.
    pub fn new(
        config: Option<&Value>,
        location: &ProjectLocation,
        spawner: &Spawner,
        env: Vec<(OsString, OsString)>,
    ) -> Self {
        Self {
            list: configured(config),
            directory: location.directory.clone(),
            worktree: location.worktree.clone(),
            env,
            spawner: spawner.clone(),
            programs: Programs::default(),
            refused: Mutex::default(),
            deadline: DEADLINE,
            late: Mutex::default(),
            found: Mutex::default(),
        }
    }

    /// Restricts the programs that may be started.
    #[must_use]
    pub fn with_programs(mut self, programs: Programs) -> Self {
        self.programs = programs;
        self
    }

    /// Runs the formatters of this kind of file, one after another.
    pub async fn format(&self, file: &Path) -> Formatted {
        let mut done = Formatted::default();
        let Some(extension) = file.extension().and_then(OsStr::to_str) else {
            return done;
        };
        let extension = format!(".{extension}");
        for formatter in self
            .list
            .iter()
            .filter(|f| f.extensions.contains(&extension))
        {
            if let Some(command) = self.command(formatter) {
                let end = self.run(formatter, &command, file).await;
                done.ran |= end != End::NotRun;
                if end == End::Late {
                    done.ended
                        .push((formatter.name.clone(), self.deadline.as_secs()));
                }
            }
        }
        done
    }

    /// Returns all of them, and which would run.
    #[must_use]
    pub fn status(&self) -> Vec<FormatterStatus> {
        let of = |formatter: &Formatter| FormatterStatus {
            name: formatter.name.clone(),
            extensions: formatter.extensions.clone(),
            enabled: self.command(formatter).is_some(),
        };
        self.list.iter().map(of).collect()
    }

    fn command(&self, formatter: &Formatter) -> Option<Vec<String>> {
        let (command, when) = match &formatter.command {
            Command::Given(command) => return Some(command.clone()),
            Command::BuiltIn(command, when) => (command, when),
        };
        if let Some(known) = lock(&self.found).get(&formatter.name) {
            return known.clone();
        }
        let found = self.built_in(command, when);
        lock(&self.found).insert(formatter.name.clone(), found.clone());
        found
    }

    fn built_in(&self, command: &[&str], when: &When) -> Option<Vec<String>> {
        let (program, rest) = command.split_first()?;
        if !when.holds(&self.directory, &self.worktree) {
            return None;
        }
        let path = self.env.iter().rev().find(|(name, _)| name == "PATH");
        let on_path = path.and_then(|(_, path)| which(program, path));
        let local = when.local(program, &self.directory, &self.worktree);
        if let Some(local) = local.as_ref().filter(|_| !self.programs.of_project) {
            tracing::warn!(
                "[formatter:{program}] {} is not run: the folder is not trusted (`outrigger trust`)",
                local.display()
            );
        }
        let local = local.filter(|_| self.programs.of_project);
        let program = local.or(on_path)?;
        let rest = rest.iter().map(|part| (*part).to_owned());
        Some(
            std::iter::once(program.display().to_string())
                .chain(rest)
                .collect(),
        )
    }

    async fn run(&self, formatter: &Formatter, command: &[String], file: &Path) -> End {
        let name = &formatter.name;
        if lock(&self.late)
            .get(name)
            .is_some_and(|late| *late >= MAX_LATE)
        {
            return End::NotRun;
        }
        let shown = file.display().to_string();
        let Some(words) = words(name, command, &shown) else {
            return End::NotRun;
        };
        let mut parts = words.into_iter();
        let Some(program) = parts.next() else {
            return End::NotRun;
        };
        if self.is_refused(name, &program).await {
            return End::NotRun;
        }
        let spec = Spec::new(&program)
            .args(parts)
            .cwd(&self.directory)
            .vars(self.env.iter().cloned())
            .vars(formatter.environment.iter().cloned())
            .vars([(command_line::VARIABLE, shown.as_str())])
            .label(format!("formatter:{name}"));
        match run(&self.spawner, spec, self.deadline, OUTPUT).await {
            Ok(output) if output.timed_out => {
                let mut late = lock(&self.late);
                let count = late.entry(name.clone()).or_default();
                *count += 1;
                let off = if *count >= MAX_LATE {
                    "; skipped from now on"
                } else {
                    ""
                };
                tracing::warn!(
                    "[formatter:{name}] {shown}: ended after {} s{off}",
                    self.deadline.as_secs()
                );
                End::Late
            }
            Ok(output) => {
                lock(&self.late).remove(name);
                if !output.exit.success() {
                    let said = String::from_utf8_lossy(&output.stderr);
                    let said = said.lines().next().unwrap_or_default();
                    tracing::warn!("[formatter:{name}] {shown}: {} {said}", output.exit);
                }
                End::Ran
            }
            Err(error) => {
                tracing::warn!("[formatter:{name}] {shown}: {error}");
                End::NotRun
            }
        }
    }
}

impl Formatters {
    /// Returns whether its program must not be started, which is reported once.
    async fn is_refused(&self, name: &str, program: &str) -> bool {
        let path = self.env.iter().rev().find(|(name, _)| name == "PATH");
        let found = path
            .filter(|_| !program.contains('/'))
            .and_then(|(_, path)| which(program, path));
        let program = found.unwrap_or_else(|| self.directory.join(program));
        let Some(reason) = self.programs.refusal(name, &program).await else {
            lock(&self.refused).remove(name);
            return false;
        };
        let before = lock(&self.refused).insert(name.to_owned(), reason.clone());
        if before.as_ref() != Some(&reason) {
            tracing::warn!("[formatter:{name}] is not run: {reason}");
        }
        true
    }
}

/// Returns the command of a formatter with the file name, or why there is none.
fn words(name: &str, command: &[String], file: &str) -> Option<Vec<String>> {
    let words = command_line::filled(command, file).inspect_err(|word| {
        tracing::warn!(
            "[formatter:{name}] {file}: is not run, since the name of the file would be a part of `{word}`: give `$FILE` as a word of \
             its own (`[\"sh\", \"-c\", \"x \\\"$0\\\"\", \"$FILE\"]`)"
        );
    });
    words.ok()
}

/// Returns the names of the built-in ones.
pub fn built_in() -> Vec<&'static str> {
    BUILT_IN.iter().map(|it| it.name).collect()
}

// The rules are OpenCode's: absent or `false` means none, `true` the built-in ones, an object changes and adds some.
fn configured(value: Option<&Value>) -> Vec<Formatter> {
    let changes = match value {
        None | Some(Value::Null | Value::Bool(false)) => return Vec::new(),
        Some(Value::Object(changes)) => Some(changes),
        Some(_) => None,
    };
    let mut list: Vec<Formatter> = BUILT_IN
        .iter()
        .map(|built_in| Formatter {
            name: built_in.name.to_owned(),
            extensions: built_in
                .extensions
                .iter()
                .map(|e| (*e).to_owned())
                .collect(),
            environment: Vec::new(),
            command: Command::BuiltIn(built_in.command, built_in.when),
        })
        .collect();
    for (name, entry) in changes.into_iter().flatten() {
        let disabled = entry.get("disabled") == Some(&Value::Bool(true));
        // These two are one program and its successor: disabling one disables both.
        if disabled && ["ruff", "uv"].contains(&name.as_str()) {
            list.retain(|f| f.name != "ruff" && f.name != "uv");
            continue;
        }
        if disabled {
            list.retain(|f| f.name != *name);
            continue;
        }
        let at = list.iter().position(|f| f.name == *name);
        let Some(formatter) = change(name, entry, at.and_then(|at| list.get(at))) else {
            tracing::warn!("[formatter] `formatter.{name}` has no `command`; skipped");
            continue;
        };
        match at.and_then(|at| list.get_mut(at)) {
            Some(old) => *old = formatter,
            None => list.push(formatter),
        }
    }
    list
}

fn change(name: &str, entry: &Value, before: Option<&Formatter>) -> Option<Formatter> {
    let list = |key: &str| texts_at(entry, key);
    let command = match list("command").filter(|command| !command.is_empty()) {
        Some(command) => Command::Given(command),
        None => before?.command.clone(),
    };
    Some(Formatter {
        name: name.to_owned(),
        extensions: list("extensions")
            .or_else(|| before.map(|f| f.extensions.clone()))
            .unwrap_or_default(),
        environment: variables_at(entry, "environment"),
        command,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A hanging formatter is ended, named, and tried only once more.
    #[tokio::test]
    async fn one_that_hangs_is_ended_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.txt");
        std::fs::write(&file, "x").unwrap();
        let script = "echo ran >> log; echo half > $1; exec sleep 300";
        let config = json!({
            "hangs": {"command": ["sh", "-c", script, "sh", "$FILE"], "extensions": [".txt"]},
            "fine": {"command": ["sh", "-c", "echo fine >> log", "sh", "$FILE"], "extensions": [".txt"]},
        });
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut formatters = Formatters::new(
            Some(&config),
            &ProjectLocation::find(dir.path()),
            &Spawner::new().unwrap(),
            vec![("PATH".into(), path)],
        );
        formatters.deadline = Duration::from_secs(3);
        let mut results = Vec::new();
        for _ in 0..3 {
            results.push(formatters.format(&file).await);
        }
        let late = Formatted {
            ran: true,
            ended: vec![("hangs".to_owned(), 3)],
        };
        let without = Formatted {
            ran: true,
            ended: Vec::new(),
        };
        assert_eq!(results, [late.clone(), late, without]);
        let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(log, "ran\nfine\nran\nfine\nfine\n");
    }

    /// A name with shell syntax is formatted, also with a line for a shell, and runs nothing.
    #[tokio::test]
    async fn names_of_files_run_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "a;touch EVIL1;.txt",
            "b$(touch EVIL2).txt",
            "c';touch EVIL3;'.txt",
            "d e.txt",
        ];
        let line = |line: &str| json!({"command": ["sh", "-c", line], "extensions": [".txt"]});
        let config = json!({
            "bare": line("echo 1 >> $FILE"), "double": line("echo 2 >> \"$FILE\""), "single": line("echo 3 >> '$FILE'"),
            "other": {"command": ["nice", "sh", "-c", "echo 4 >> $FILE"], "extensions": [".txt"]},
        });
        let formatters = Formatters::new(
            Some(&config),
            &ProjectLocation::find(dir.path()),
            &Spawner::new().unwrap(),
            vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        );
        for name in names {
            let file = dir.path().join(name);
            std::fs::write(&file, "").unwrap();
            formatters.format(&file).await;
            assert_eq!(
                std::fs::read_to_string(&file).unwrap(),
                "1\n2\n3\n",
                "{name}"
            );
        }
        let plain = dir.path().join("plain.txt");
        formatters.format(&plain).await;
        assert_eq!(std::fs::read_to_string(&plain).unwrap(), "1\n2\n3\n4\n");
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            names.len() + 1
        );
    }

    #[test]
    fn off_on_and_changed() {
        for off in [None, Some(json!(false)), Some(Value::Null)] {
            assert!(configured(off.as_ref()).is_empty());
        }
        assert_eq!(configured(Some(&json!(true))).len(), BUILT_IN.len());
        let list = configured(Some(&json!({
            "gofmt": {"disabled": true},
            "uv": {"disabled": true},
            "rustfmt": {"environment": {"A": "1"}},
            "prettier": {"command": ["my-prettier", "$FILE"]},
            "acme": {"command": ["acme", "-w", "$FILE"], "extensions": [".acme"]},
            "none": {"extensions": [".x"]},
        })));
        let of = |name: &str| list.iter().find(|f| f.name == name);
        assert!(
            ["gofmt", "uv", "ruff", "none"]
                .iter()
                .all(|name| of(name).is_none())
        );
        let rustfmt = of("rustfmt").unwrap();
        assert_eq!(rustfmt.environment, [("A".to_owned(), "1".to_owned())]);
        assert!(matches!(rustfmt.command, Command::BuiltIn(..)));
        let prettier = of("prettier").unwrap();
        assert!(prettier.extensions.contains(&".ts".to_owned()));
        assert_eq!(
            prettier.command,
            Command::Given(vec!["my-prettier".into(), "$FILE".into()])
        );
        assert_eq!(of("acme").unwrap().extensions, [".acme"]);
    }
}
