//! The folders of one test: a home, a project with an `opencode.json`, plugins; and the programs that run in them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sha2::Digest as _;
use tempfile::TempDir;

use crate::model::Mock;
use crate::process::{WAIT_TIMEOUT, wait_until};
use crate::program::{Running, read};
use crate::runtime::bun;

/// The folders of one test, which are removed with it, and the model of its project.
///
/// ```
/// use outrigger_test_support::World;
/// use outrigger_test_support::model::{call, done, turn};
/// use serde_json::json;
///
/// let world = World::new([turn([call("read", json!({ "filePath": "a.txt" }))]), done()]);
/// world.file("a.txt", "one\ntwo\n");
/// world.config(json!({ "share": "disabled" }));
/// world.plugin("quiet", "export default async () => ({})");
///
/// assert_eq!(world.lines("a.txt"), ["one", "two"]);
/// let settings = world.json("opencode.json");
/// assert_eq!(settings["model"], "mock/m1");
/// assert_eq!(settings["share"], "disabled");
/// ```
pub struct World {
    root: TempDir,
    /// The model of the project's `opencode.json`.
    pub mock: Mock,
    runs: std::cell::Cell<usize>,
    is_untrusted: std::cell::Cell<bool>,
}

impl World {
    /// Creates a project whose model answers with these turns.
    pub fn new(turns: impl IntoIterator<Item = Value>) -> Self {
        Self::with(Mock::new(turns))
    }

    /// Creates a project with this model.
    pub fn with(mock: Mock) -> Self {
        let root = tempfile::Builder::new()
            .prefix("outrigger-it-")
            .tempdir()
            .unwrap();
        let world = Self {
            root,
            mock,
            runs: std::cell::Cell::new(0),
            is_untrusted: std::cell::Cell::new(false),
        };
        for folder in [world.project(), world.home(), world.root().join("tmp")] {
            fs::create_dir_all(folder).unwrap();
        }
        let model = json!({ "name": "M1", "tool_call": true, "limit": { "context": 100_000, "output": 4000 } });
        world.file("opencode.json", &json!({
            "model": "mock/m1",
            "provider": { "mock": {
                "npm": "@ai-sdk/openai-compatible", "name": "Mock",
                "options": { "baseURL": world.mock.url(), "apiKey": "x" }, "models": { "m1": model },
            }},
        }).to_string());
        world.file("hello.txt", "hi there\n");
        world
    }

    /// Provides the npm packages that the first run with a plugin would install: no test needs the network.
    pub fn packages(&self) {
        let lock = include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../outrigger-plugin-package/setup/package-lock.json"
        ));
        let digest: String = sha2::Sha256::digest(lock)
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let modules = self
            .store()
            .with_file_name("modules")
            .join(digest)
            .join("node_modules");
        // Some worlds have the real ones, kept between runs behind a link: nothing is added to them.
        if self.store().with_file_name("modules").is_symlink() {
            return;
        }
        for (name, text) in [
            (
                "@opencode-ai/sdk/dist/index.js",
                "export const createOpencodeClient = () => ({})\n",
            ),
            (
                "@opencode-ai/sdk/package.json",
                r#"{"name":"@opencode-ai/sdk","type":"module","main":"dist/index.js"}"#,
            ),
            (
                "@opencode-ai/plugin/package.json",
                r#"{"name":"@opencode-ai/plugin"}"#,
            ),
            ("zod/package.json", r#"{"name":"zod"}"#),
        ] {
            let path = modules.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// Returns the folder that contains all others.
    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    /// Returns the project.
    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// Returns the home of its user.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// Returns the database of sessions.
    pub fn store(&self) -> PathBuf {
        self.home().join(".local/share/outrigger/outrigger.db")
    }

    /// Returns a path in the project.
    pub fn path(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    /// Writes a file of the project.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Reads a file of the project; empty if it does not exist.
    pub fn read(&self, name: &str) -> String {
        read(&self.path(name))
    }

    /// Waits until another process has written JSON to this file of the project: a file exists before it is filled.
    pub fn json(&self, name: &str) -> Value {
        let mut found = None;
        let whole = wait_until(WAIT_TIMEOUT, || {
            let text = std::fs::read(self.path(name)).unwrap_or_default();
            found = serde_json::from_slice(&text).ok();
            found.is_some()
        });
        assert!(whole, "nobody wrote JSON into {name}");
        found.unwrap_or_default()
    }

    /// Returns the lines of a file of the project.
    pub fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }

    /// Writes a plugin that the project finds automatically.
    pub fn plugin(&self, name: &str, source: &str) -> PathBuf {
        self.packages();
        self.file(&format!(".opencode/plugin/{name}.js"), source)
    }

    /// Adds keys to `opencode.json`.
    pub fn config(&self, keys: Value) {
        let mut whole: Value = serde_json::from_str(&self.read("opencode.json")).unwrap();
        merge(&mut whole, keys);
        self.file("opencode.json", &whole.to_string());
    }

    /// Writes our own settings.
    pub fn settings(&self, toml: &str) {
        self.file("outrigger.toml", toml);
    }

    /// Makes the project untrusted from here on. Its settings so far become the user's own.
    pub fn trusts_nothing(&self) {
        let folder = self.home().join(".config/opencode");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::rename(self.path("opencode.json"), folder.join("opencode.json")).unwrap();
        self.is_untrusted.set(true);
    }

    /// Returns whether settings name deadlines.
    fn sets_deadlines(&self) -> bool {
        [
            self.home().join(".config/outrigger/outrigger.toml"),
            self.path("outrigger.toml"),
            self.path(".outrigger/outrigger.toml"),
        ]
        .iter()
        // Some tests put something there that is not a file, or has no end.
        .filter(|file| fs::metadata(file).is_ok_and(|it| it.is_file() && it.len() < 1 << 20))
        .any(|file| read(file).contains("[deadlines]"))
    }

    /// Prepares a command with these arguments in this world: in the project, with the variables of its user and nothing of
    /// the environment that runs the tests.
    ///
    /// ```
    /// # use outrigger_test_support::World;
    /// # #[allow(clippy::disallowed_methods)]
    /// # let sh = std::process::Command::new("sh");
    /// let world = World::new([]);
    /// let done = world.start(world.prepare(sh, &["-c", "cat hello.txt; echo $HOME"])).end().ok();
    /// assert_eq!(done.stdout, format!("hi there\n{}\n", world.home().display()));
    /// ```
    pub fn prepare(&self, mut command: Command, args: &[&str]) -> Command {
        command.args(args).current_dir(self.project()).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC");
        if !self.is_untrusted.get() {
            command.env("OUTRIGGER_TRUST_PROJECT", "1");
        }
        // The system's temporary folder is open to tools, and the project of a test is in it.
        command.env("TMPDIR", self.root().join("tmp"));
        for (name, folder) in [
            ("CONFIG", ".config"),
            ("DATA", ".local/share"),
            ("CACHE", ".cache"),
            ("STATE", ".local/state"),
        ] {
            command.env(format!("XDG_{name}_HOME"), self.home().join(folder));
        }
        if let Some(bun) = bun() {
            command.env("OUTRIGGER_BUN", bun);
        }
        // Lateness on a busy machine is not a missed deadline: a test of deadlines sets them explicitly.
        if !self.sets_deadlines() {
            for class in ["FAST", "NORMAL", "LOAD"] {
                command.env(format!("OUTRIGGER_DEADLINES_{class}_MS"), "60000");
            }
        }
        // The mock and similar servers listen on this machine, which plugins cannot connect to by default.
        command.env("OUTRIGGER_NETWORK_ALLOW", "127.0.0.1,[::1],localhost");
        command.stdin(Stdio::null());
        command
    }

    /// Starts a command of this world.
    pub fn start(&self, command: Command) -> Running {
        let n = self.runs.replace(self.runs.get() + 1);
        let [stdout, stderr] = ["out", "err"].map(|kind| self.root().join(format!("{n}.{kind}")));
        Running::spawn(command, stdout, stderr)
    }

    /// Replaces what differs from run to run in a text.
    pub fn plain(&self, text: &str) -> String {
        let text = text
            .replace(&self.project().display().to_string(), "PROJECT")
            .replace(&self.home().display().to_string(), "HOME");
        text.replace(
            &format!(
                "127.0.0.1:{}",
                self.mock
                    .url()
                    .rsplit(':')
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches("/v1")
            ),
            "MOCK",
        )
    }
}

/// Merges a configuration into another; objects are joined, everything else is replaced.
///
/// ```
/// use outrigger_test_support::merge;
/// use serde_json::json;
///
/// let mut whole = json!({ "agent": { "build": { "steps": 3 } }, "share": "auto" });
/// merge(&mut whole, json!({ "agent": { "plan": {} }, "share": "disabled" }));
/// assert_eq!(whole, json!({ "agent": { "build": { "steps": 3 }, "plan": {} }, "share": "disabled" }));
/// ```
pub fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
