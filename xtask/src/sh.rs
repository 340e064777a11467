//! Folders of the repository, and running programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Result, failed};

/// Returns the repository's root folder.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// Returns the folder for everything that tasks install or produce; ignored by git.
pub(crate) fn work(name: &str) -> PathBuf {
    root().join(".work").join(name)
}

/// Returns a command that runs in the repository's root, without standard input.
#[expect(
    clippy::disallowed_methods,
    reason = "the sandbox is for the product; tasks start cargo, npm and python"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Returns the cargo that runs this task. The variables that it set for this task are removed: build scripts that
/// depend on them (ring's) would rerun whenever a task and a direct call of cargo alternate.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    let of_this_task = |name: &str| {
        [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_CRATE_NAME",
            "CARGO_BIN_NAME",
            "CARGO_PRIMARY_PACKAGE",
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix))
    };
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(of_this_task) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a program with its output on the terminal.
///
/// # Errors
/// The program cannot be started, or its exit code is not 0.
pub(crate) fn check(command: &mut Command) -> Result {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => failed(format!("`{}` failed: {status}", shown(command))),
        Err(error) => failed(format!("`{program}` cannot be started: {error}")),
    }
}

/// Runs a program and returns its standard output.
///
/// # Errors
/// As [`check`]; the message then includes the end of standard error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => failed(format!(
            "`{}` failed: {}\n{}",
            shown(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        )),
        Err(error) => failed(format!("`{program}` cannot be started: {error}")),
    }
}

/// Returns whether `program --version`, or its equivalent, runs.
pub(crate) fn there(program: &str) -> bool {
    let mut command = command(program);
    command
        .arg(if program == "tmux" { "-V" } else { "--version" })
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Reads a text file of the repository.
///
/// # Errors
/// The file cannot be read or is not UTF-8.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .or_else(|error| failed(format!("cannot read {}: {error}", path.display())))
}

/// An iterator over the flags, options and values of a command line.
#[derive(Debug)]
pub(crate) struct Arguments<'a>(std::slice::Iter<'a, String>);

impl<'a> Arguments<'a> {
    pub(crate) fn new(arguments: &'a [String]) -> Self {
        Self(arguments.iter())
    }

    /// Returns the next flag or word.
    pub(crate) fn next(&mut self) -> Option<&'a str> {
        self.0.next().map(String::as_str)
    }

    /// Returns the value of the last option.
    ///
    /// # Errors
    /// Nothing follows it.
    pub(crate) fn value(&mut self, option: &str) -> Result<&'a str> {
        match self.next() {
            Some(value) => Ok(value),
            None => crate::usage(format!("{option} needs a value")),
        }
    }
}
