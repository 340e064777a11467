//! A program started by a test, and its result.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{WAIT_TIMEOUT, alive};

/// The result of a run.
#[derive(Debug)]
pub struct Done {
    /// Exit code; 128 + n after signal n, as in shells.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Done {
    /// Asserts that the run succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.exited(0)
    }

    /// Asserts that the run ended with this code.
    #[track_caller]
    pub fn exited(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// Returns standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e} in:\n{}\nstderr:\n{}", self.stdout, self.stderr))
    }

    /// Returns standard output as one JSON value per line.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in the line {line:?}"))
        };
        self.stdout.lines().map(parse).collect()
    }
}

/// A run in progress. Killed on drop.
pub struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    /// Starts a command that writes to these files.
    pub(crate) fn spawn(mut command: Command, stdout: PathBuf, stderr: PathBuf) -> Self {
        let file = |path: &Path| Stdio::from(fs::File::create(path).unwrap());
        command.stdout(file(&stdout)).stderr(file(&stderr));
        Self {
            child: command.spawn().unwrap(),
            stdout,
            stderr,
        }
    }

    fn status(&self) -> String {
        fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default()
    }

    /// Returns the peak memory use so far, without pages of files: the code of a debug build alone takes 80 MB. 0 after
    /// its end.
    pub fn peak_kib(&self) -> u64 {
        let status = self.status();
        let kib = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.unwrap_or_default().trim().trim_end_matches(" kB");
            number.parse().unwrap_or(0)
        };
        kib("VmHWM:").saturating_sub(kib("RssFile:"))
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether it has ended.
    pub fn is_over(&self) -> bool {
        !alive(self.child.id())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Returns its standard error so far.
    pub fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// Returns the other end of its standard input.
    pub fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Returns its standard output so far.
    pub fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// Waits for the end.
    #[track_caller]
    pub fn end(mut self) -> Done {
        let limit = Instant::now() + WAIT_TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > limit {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!(
                    "stuck; stdout:\n{}\nstderr:\n{}",
                    read(&self.stdout),
                    read(&self.stderr)
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let code = status
            .code()
            .or_else(|| status.signal().map(|n| 128 + n))
            .unwrap();
        Done {
            code,
            stdout: read(&self.stdout),
            stderr: read(&self.stderr),
        }
    }
}

/// A failing test leaves no server behind.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a file as text; empty if it does not exist.
pub(crate) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
