//! The binary in a world.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use outrigger_test_support::{Done, World};
use serde_json::Value;

static OUTRIGGER: LazyLock<String> = LazyLock::new(|| {
    let built = || env!("CARGO_BIN_EXE_outrigger").to_owned();
    std::env::var("OUTRIGGER_TEST_BIN").unwrap_or_else(|_| built())
});

/// Returns the path of the tested program: cargo's, or that of `OUTRIGGER_TEST_BIN`. `cargo xtask test` names the release build,
/// with which these tests take a third less CPU time.
pub(crate) fn outrigger() -> &'static str {
    &OUTRIGGER
}

/// Runs the binary in a [`World`].
pub(crate) trait Program {
    /// Returns the binary in this world, with nothing of the environment that runs the tests.
    fn command(&self, args: &[&str]) -> Command;

    /// Trusts another folder's settings with their current content.
    fn trust(&self, folder: &Path);

    /// Returns a shell script in this world, in which `$OUTRIGGER` is the binary and `$DATA` its
    /// data folder.
    fn script(&self, program: &str, args: &[&str]) -> Command;

    /// Runs the binary until it exits.
    #[track_caller]
    fn cli(&self, args: &[&str]) -> Done;

    /// Runs `outrigger run` with these arguments.
    #[track_caller]
    fn run(&self, args: &[&str]) -> Done;

    /// Does the same with variables.
    #[track_caller]
    fn run_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Done;

    /// Does the same with a text on standard input.
    #[track_caller]
    fn run_piped(&self, input: &str, args: &[&str]) -> Done;

    /// Checks that the log replays through the kernel, and that its hash chain is intact.
    #[track_caller]
    fn verify(&self) -> String;

    /// Returns the last session, as `session export` prints it.
    #[track_caller]
    fn export(&self) -> Value;

    /// Returns the last session's parts of this kind, in order.
    #[track_caller]
    fn parts(&self, kind: &str) -> Vec<Value>;
}

impl Program for World {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test starts the program from outside"
    )]
    fn command(&self, args: &[&str]) -> Command {
        self.prepare(Command::new(outrigger()), args)
    }

    fn trust(&self, folder: &Path) {
        self.cli(&["trust", &folder.display().to_string()]).ok();
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test starts the program from outside"
    )]
    fn script(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.prepare(Command::new(program), args);
        command
            .env("OUTRIGGER", outrigger())
            .env("DATA", self.store().parent().unwrap());
        command
    }

    #[track_caller]
    fn cli(&self, args: &[&str]) -> Done {
        self.start(self.command(args)).end()
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> Done {
        self.cli(&[&["run"], args].concat())
    }

    #[track_caller]
    fn run_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Done {
        let mut command = self.command(&[&["run"], args].concat());
        command.envs(variables.iter().copied());
        self.start(command).end()
    }

    #[track_caller]
    fn run_piped(&self, input: &str, args: &[&str]) -> Done {
        let mut command = self.command(&[&["run"], args].concat());
        command.stdin(Stdio::piped());
        let mut running = self.start(command);
        running.stdin().write_all(input.as_bytes()).unwrap();
        running.end()
    }

    #[track_caller]
    fn verify(&self) -> String {
        self.cli(&["session", "verify"]).ok().stdout
    }

    #[track_caller]
    fn export(&self) -> Value {
        self.cli(&["session", "export"]).ok().json()
    }

    #[track_caller]
    fn parts(&self, kind: &str) -> Vec<Value> {
        let session = self.export();
        let messages = session["messages"].as_array().cloned().unwrap_or_default();
        messages
            .iter()
            .filter_map(|m| m["parts"].as_array())
            .flatten()
            .filter(|part| part["type"] == kind)
            .cloned()
            .collect()
    }
}

/// Removes the session's identifier from a line.
pub(crate) fn without_session(line: &str) -> String {
    let Some((before, after)) = line.split_once("in session ses_") else {
        return line.to_owned();
    };
    let rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    format!("{before}in session ID{rest}")
}
