use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_lsp::{Limits, Lsp, Options, Programs};
use outrigger_sandbox::Spawner;
use serde_json::{Value, json};

/// Longer than anything takes, however busy the machine.
pub(crate) const PLENTY: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + PLENTY;
    while !so() {
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A project with one scripted server for `*.txt`.
pub(crate) struct Project {
    root: tempfile::TempDir,
    pub(crate) limits: Limits,
}

impl Project {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        let limits = Limits {
            start: PLENTY,
            ready: PLENTY,
            document: PLENTY,
            after_silences: Duration::from_millis(50),
            answer: PLENTY,
        };
        Self { root, limits }
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.root.path().join("project").canonicalize().unwrap()
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the servers, one of which behaves like this.
    pub(crate) fn lsp(&self, mode: &str) -> Lsp {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
        self.configured(&json!({ "scripted": {
            "command": ["python3", script, mode, self.log_path()],
            "extensions": [".txt"],
            "env": {"LANG": "C.UTF-8"},
            "initialization": {"a": {"b": 7}},
        }}))
    }

    pub(crate) fn configured(&self, config: &Value) -> Lsp {
        let path = std::env::var_os("PATH").unwrap();
        Lsp::new(
            Some(config),
            Options {
                spawner: Spawner::new().unwrap(),
                directory: self.directory(),
                worktree: self.directory(),
                env: vec![(OsString::from("PATH"), path)],
                limits: self.limits,
                programs: Programs::default(),
                may_see: Arc::new(|file| !file.ends_with("secret.txt")),
            },
        )
    }

    fn log_path(&self) -> PathBuf {
        self.root.path().join("log")
    }

    /// Returns what the server has written down.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.log().iter().filter(|l| *l == line).count()
    }

    /// Returns `file: message, message` of all diagnostics.
    pub(crate) fn diagnostics(&self, lsp: &Lsp) -> String {
        lsp.diagnostics()
            .into_iter()
            .map(|(path, list)| {
                let texts: Vec<_> = list
                    .iter()
                    .map(|d| d["message"].as_str().unwrap().to_owned())
                    .collect();
                let path = path
                    .strip_prefix(self.directory())
                    .unwrap()
                    .display()
                    .to_string();
                format!("{path}: {}", texts.join(", "))
            })
            .collect::<Vec<_>>()
            .join("; ")
    }
}

/// Returns `id root status` of all servers.
pub(crate) fn listed(lsp: &Lsp) -> String {
    lsp.status()
        .into_iter()
        .map(|s| format!("{} {:?} {}", s.id, s.root, s.status))
        .collect::<Vec<_>>()
        .join("; ")
}
