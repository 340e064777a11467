//! One test's folders: a home, a project with an `opencode.json`, plugins, and the binary run in them.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::Digest as _;
use tempfile::TempDir;

use super::Mock;

/// Nothing here takes so long; a run that does is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// What a run left.
#[derive(Debug)]
pub(crate) struct Done {
    /// Exit code; 128 + n after signal n, as shells count.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// The run, which has to have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.exited(0)
    }

    #[track_caller]
    pub(crate) fn exited(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e} in:\n{}\nstderr:\n{}", self.stdout, self.stderr))
    }

    /// Standard output as one JSON value per line.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in the line {line:?}"))
        };
        self.stdout.lines().map(parse).collect()
    }
}

/// A run that has begun.
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    fn status(&self) -> String {
        fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default()
    }

    /// Most memory that it has held so far; 0 when it is over.
    pub(crate) fn peak_kib(&self) -> u64 {
        let status = self.status();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_over(&self) -> bool {
        !alive(self.child.id())
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// The other end of its standard input.
    pub(crate) fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub(crate) fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Done {
        let limit = Instant::now() + STUCK;
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

/// A test that fails leaves no server behind.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// Folders of one test, and the model in them.
pub(crate) struct World {
    root: TempDir,
    pub(crate) mock: Mock,
    runs: std::cell::Cell<usize>,
    is_untrusted: std::cell::Cell<bool>,
}

impl World {
    /// A project whose model speaks these turns.
    pub(crate) fn new(turns: impl IntoIterator<Item = Value>) -> Self {
        Self::with(Mock::new(turns))
    }

    pub(crate) fn with(mock: Mock) -> Self {
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

    /// Stands for the npm packages that the first run with a plugin would install: no test needs the network.
    pub(crate) fn packages(&self) {
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
        // Some worlds have the real ones, kept between runs behind a link: nothing is put among them.
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

    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.home().join(".local/share/outrigger/outrigger.db")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    /// Writes a file of the project.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A file of the project; empty when it is not there.
    pub(crate) fn read(&self, name: &str) -> String {
        read(&self.path(name))
    }

    /// Lines of a file of the project.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }

    /// Writes a plugin that the project finds by itself.
    pub(crate) fn plugin(&self, name: &str, source: &str) -> PathBuf {
        self.packages();
        self.file(&format!(".opencode/plugin/{name}.js"), source)
    }

    /// Puts keys into `opencode.json`.
    pub(crate) fn config(&self, keys: Value) {
        let mut whole: Value = serde_json::from_str(&self.read("opencode.json")).unwrap();
        merge(&mut whole, keys);
        self.file("opencode.json", &whole.to_string());
    }

    /// Writes our own settings.
    pub(crate) fn settings(&self, toml: &str) {
        self.file("outrigger.toml", toml);
    }

    /// The binary in this world: nothing of the environment that runs the tests.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test starts the program from outside"
    )]
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.prepare(Command::new(env!("CARGO_BIN_EXE_outrigger")), args)
    }

    /// Lets the settings of another folder count, as they are now.
    pub(crate) fn trust(&self, folder: &Path) {
        self.cli(&["trust", &folder.display().to_string()]).ok();
    }

    /// A shell script in this world, in which `$OUTRIGGER` is the binary and `$DATA` its data folder.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test starts the program from outside"
    )]
    pub(crate) fn script(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.prepare(Command::new(program), args);
        command
            .env("OUTRIGGER", env!("CARGO_BIN_EXE_outrigger"))
            .env("DATA", self.store().parent().unwrap());
        command
    }

    /// From here on nobody trusts the project. What its settings say so far becomes the user's own.
    pub(crate) fn trusts_nothing(&self) {
        let folder = self.home().join(".config/opencode");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::rename(self.path("opencode.json"), folder.join("opencode.json")).unwrap();
        self.is_untrusted.set(true);
    }

    fn prepare(&self, mut command: Command, args: &[&str]) -> Command {
        command.args(args).current_dir(self.project()).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC");
        if !self.is_untrusted.get() {
            command.env("OUTRIGGER_TRUST_PROJECT", "1");
        }
        // The system's folder for temporary files is open to tools, and the project of a test lies in it.
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
        // The mock and its like listen on this machine, which plugins do not reach by themselves.
        command.env("OUTRIGGER_NETWORK_ALLOW", "127.0.0.1,[::1],localhost");
        command.stdin(Stdio::null());
        command
    }

    /// Starts a command of this world.
    pub(crate) fn start(&self, mut command: Command) -> Running {
        let n = self.runs.replace(self.runs.get() + 1);
        let [stdout, stderr] = ["out", "err"].map(|kind| self.root().join(format!("{n}.{kind}")));
        let file = |path: &Path| Stdio::from(fs::File::create(path).unwrap());
        command.stdout(file(&stdout)).stderr(file(&stderr));
        Running {
            child: command.spawn().unwrap(),
            stdout,
            stderr,
        }
    }

    /// Runs the binary to its end.
    #[track_caller]
    pub(crate) fn cli(&self, args: &[&str]) -> Done {
        self.start(self.command(args)).end()
    }

    /// `outrigger run` with these arguments.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.cli(&[&["run"], args].concat())
    }

    /// The same with variables.
    #[track_caller]
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Done {
        let mut command = self.command(&[&["run"], args].concat());
        command.envs(variables.iter().copied());
        self.start(command).end()
    }

    /// The same with something on standard input.
    #[track_caller]
    pub(crate) fn run_piped(&self, input: &str, args: &[&str]) -> Done {
        let mut command = self.command(&[&["run"], args].concat());
        command.stdin(Stdio::piped());
        let mut running = self.start(command);
        running
            .child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        running.end()
    }

    /// The log replays through the kernel, and its hash chain is intact.
    #[track_caller]
    pub(crate) fn verify(&self) -> String {
        self.cli(&["session", "verify"]).ok().stdout
    }

    /// The last session, as `session export` prints it.
    #[track_caller]
    pub(crate) fn export(&self) -> Value {
        self.cli(&["session", "export"]).ok().json()
    }

    /// Parts of the last session of this kind, in order.
    #[track_caller]
    pub(crate) fn parts(&self, kind: &str) -> Vec<Value> {
        let session = self.export();
        let messages = session["messages"].as_array().cloned().unwrap_or_default();
        let parts = messages
            .iter()
            .filter_map(|m| m["parts"].as_array())
            .flatten();
        parts.filter(|part| part["type"] == kind).cloned().collect()
    }

    /// Text with what differs from run to run replaced.
    pub(crate) fn plain(&self, text: &str) -> String {
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

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// The Bun to run plugins with, if one is at hand; else the program looks for itself.
pub(crate) fn bun() -> Option<PathBuf> {
    let named = std::env::var_os("OUTRIGGER_BUN").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    named
        .or_else(|| Some(root.join(".work/tools/node_modules/@oven/bun-linux-x64/bin/bun")))
        .filter(|path| path.is_file())
}

/// The session's identifier taken out of a line.
pub(crate) fn without_session(line: &str) -> String {
    let Some((before, after)) = line.split_once("in session ses_") else {
        return line.to_owned();
    };
    let rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    format!("{before}in session ID{rest}")
}

/// Numbers of namespaces begin here; those of processes end far below.
const NAMESPACES: u32 = 0xf000_0000;

/// True while a process of this number lives (a zombie does not), or one in the namespace of this number: what is in a sandbox has the same
/// number as others have in theirs, and knows its namespace by `/proc/self/ns/pid`.
pub(crate) fn alive(pid: u32) -> bool {
    if pid >= NAMESPACES {
        return members(pid).into_iter().any(alive);
    }
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// The processes in a namespace; of what is no number of one, that process.
pub(crate) fn members(namespace: u32) -> Vec<u32> {
    if namespace < NAMESPACES {
        return vec![namespace];
    }
    let name = format!("pid:[{namespace}]");
    let all = fs::read_dir("/proc").unwrap().flatten();
    let inside = all.filter(|entry| {
        fs::read_link(entry.path().join("ns/pid")).is_ok_and(|link| link.to_str() == Some(&name))
    });
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    inside.filter_map(number).collect()
}

/// Waits until this holds; false when it does not within the limit.
pub(crate) fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !holds() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Bun, or a word that this test is not run without it.
pub(crate) fn bun_or_skip() -> Option<PathBuf> {
    let bun = bun();
    if bun.is_none() {
        super::skip("there is no Bun (OUTRIGGER_BUN, .work/tools)");
    }
    bun
}
