//! `bash`: runs a shell command.

mod outside;
mod rules;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::execute::before_shell;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_sandbox::absent::SUFFIX;
use outrigger_sandbox::{Child, Exit, Spec, Stdio, env, which};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::{MAX_SAFE, Options, number, spec, text};
use crate::error::ToolError;
use crate::files::locate;
use crate::host::{Outside, PermissionAsk, ToolContext};
use crate::shell::capture::Capture;
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Runs a command line with bash and answers with what it printed, standard output and standard error together.

- Every call is a new shell in the working directory; variables and `cd` do not carry over. To work elsewhere give workdir instead of `cd`.
- timeout is in milliseconds, 120000 when left out. When it passes, the command and all that it started are killed. What it leaves running in the background ends with the call.
- There is no terminal and no input: use options that keep a command from asking (`-y`, `--no-edit`) and from paging.
- Quote paths that have spaces. Join commands that depend on each other with `&&`; make independent ones separate calls in one answer.
- Long output is cut to its end and kept whole in a file that the result names; do not cut it yourself with head or tail.
- For reading, searching, changing and writing files use read, grep, glob, edit and write. Commit or push only when the user asks for it.
";

// Shells whose `-c` takes what models write.
const SHELLS: &[&str] = &["bash", "zsh", "sh", "dash", "ksh"];
// Beyond the harmless variables: what build tools need to find their things. No keys, no tokens.
const VARIABLES: &[&str] = &[
    "ANDROID_*",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CC",
    "CFLAGS",
    "CI",
    "CONDA_*",
    "CPATH",
    "CXX",
    "CXXFLAGS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DEBIAN_FRONTEND",
    "DISPLAY",
    "DOCKER_CONFIG",
    "DOCKER_HOST",
    "EDITOR",
    "GIT_AUTHOR_*",
    "GIT_COMMITTER_*",
    "GIT_SSL_CAINFO",
    "GOCACHE",
    "GOFLAGS",
    "GOMODCACHE",
    "GOPATH",
    "GOPROXY",
    "GOROOT",
    "GPG_TTY",
    "JAVA_HOME",
    "KUBECONFIG",
    "LDFLAGS",
    "LIBRARY_PATH",
    "MAKEFLAGS",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "NODE_PATH",
    "NVM_*",
    "PAGER",
    "PIP_*",
    "PKG_CONFIG_PATH",
    "PNPM_HOME",
    "PYENV_*",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "RUSTUP_*",
    "RUST_*",
    "SDKMAN_DIR",
    "SSH_AUTH_SOCK",
    "UV_*",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    "WAYLAND_DISPLAY",
    "no_proxy",
    "NO_PROXY",
];
const PROXIES: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
];
// The end of the output that is shown while a command runs, as the reference has it.
const PREVIEW: usize = 30_000;
const PROGRESS: Duration = Duration::from_millis(150);
// How long output is still read when the shell has ended but something of it holds the pipe.
const LINGER: Duration = Duration::from_millis(250);

/// The bash tool.
pub(super) struct Bash {
    spec: ToolSpec,
    options: Options,
}

impl Bash {
    pub(super) fn new(options: Options) -> Self {
        Self {
            spec: spec(
                "bash",
                DESCRIPTION,
                json!({
                    "command": {"type": "string"},
                    "timeout": {"type": "integer", "minimum": -MAX_SAFE, "exclusiveMinimum": 0, "maximum": MAX_SAFE},
                    "workdir": {"type": "string"},
                }),
                &["command"],
            ),
            options,
        }
    }

    fn timeout(&self, input: &Value) -> Duration {
        number(input, "timeout").map_or(self.options.shell_timeout, Duration::from_millis)
    }

    // What the command sees: harmless variables, what says that an agent runs it, what plugins add.
    async fn environment(
        &self,
        cwd: &Path,
        ctx: &ToolContext,
    ) -> Result<Vec<(OsString, OsString)>, ToolError> {
        let input = before_shell::Input {
            cwd: &cwd.to_string_lossy(),
            session_id: Some(&ctx.call.session_id),
            call_id: Some(&ctx.call.call_id),
        };
        let (point, payload) = input.call(&before_shell::Output::default());
        let verdict = ctx.host.hooks(point, payload).await;
        if let Some(block) = verdict.block {
            return Err(ToolError::Blocked(block.message));
        }
        let added = before_shell::read(&verdict.output);
        let mut vars = self.tmux();
        vars.extend(shell_environment(&self.options.shell_env, added));
        Ok(vars)
    }
}

impl Bash {
    /// The way to a tmux server of a plugin, while there is one.
    fn tmux(&self) -> Vec<(OsString, OsString)> {
        let folder = self.options.tmux.iter();
        let runs = folder.filter(|folder| {
            use std::os::unix::fs::MetadataExt as _;
            let uid = folder.metadata().map(|meta| meta.uid());
            uid.is_ok_and(|uid| folder.join(format!("tmux-{uid}/default")).exists())
        });
        runs.map(|folder| ("TMUX_TMPDIR".into(), folder.as_os_str().to_owned()))
            .collect()
    }
}

/// The shell that runs commands.
#[must_use]
pub fn shell_program(options: &Options) -> PathBuf {
    if let Some(shell) = &options.shell {
        return shell.clone();
    }
    let named = std::env::var_os("SHELL").map(PathBuf::from).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| SHELLS.contains(&name)) && path.is_file()
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    named
        .or_else(|| which("bash", &path))
        .unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

/// What a shell sees: harmless variables of ours and those named in `extra` (a trailing `*` stands for any rest), what
/// says that an agent runs it, and `added`, which plugins or a client wish for. Nothing that makes programs load code.
#[must_use]
pub fn shell_environment(
    extra: &[String],
    added: Option<&serde_json::Map<String, Value>>,
) -> Vec<(OsString, OsString)> {
    let mut names: Vec<&str> = VARIABLES.to_vec();
    names.extend(extra.iter().map(String::as_str));
    let mut vars = env::allow_list(&names);
    // A proxy is needed for most that builds fetch, but one with a password in it is a secret.
    vars.extend(PROXIES.iter().filter_map(|name| {
        let value = std::env::var(name)
            .ok()
            .filter(|value| !value.contains('@'))?;
        Some((OsString::from(name), OsString::from(value)))
    }));
    // `OPENCODE` is what scripts already look for.
    for name in ["AGENT", "OPENCODE", "OUTRIGGER"] {
        vars.push((name.into(), "1".into()));
    }
    for (name, value) in added.into_iter().flatten() {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Null => continue,
            other => other.to_string(),
        };
        let unfit = name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
        if unfit || env::is_forbidden(name) {
            tracing::warn!(%name, "a plugin's variable is not passed to the shell");
            continue;
        }
        vars.push((name.into(), value.into()));
    }
    vars
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        rules::asks(input, &shell_program(&self.options), ctx)
    }

    // The tool ends by itself at its timeout and tells what was printed until then.
    fn deadline(&self, input: &Value) -> Option<Duration> {
        Some(self.timeout(input).saturating_add(Duration::from_secs(10)))
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let command = text(&input, "command");
            let cwd = rules::workdir(&input, ctx)?;
            let vars = self.environment(&cwd.shown, ctx).await?;
            ctx.progress(None, json!({"output": ""}));
            if !cwd.real.is_dir() {
                return Err(ToolError::failed(format!(
                    "There is no directory {} to run the command in",
                    cwd.shown.display()
                )));
            }
            let mut start = Spec::new(shell_program(&self.options))
                .arg("-c")
                .arg(command)
                .cwd(cwd.shown)
                .vars(vars)
                .stdout(Stdio::Pipe)
                .stderr(Stdio::Pipe)
                .allow_new_privs()
                .label("bash");
            let timeout = self.timeout(&input);
            start.policy = ctx.host.confine().await?;
            let (mut running, exit) = run(start.clone(), timeout, ctx).await?;
            let printed = running.capture.preview(PREVIEW);
            if let Some(why) = outside::reason(start.policy.as_ref(), exit, &printed) {
                let Some(Outside(policy)) = ctx.host.outside(command, why).await? else {
                    running.notes.push(format!(
                        "The sandbox of commands may be the reason: {why}. Work within it, or ask the user to run the command."
                    ));
                    return Ok(running.output(command, exit, timeout, ctx));
                };
                start.policy = policy;
                let (mut again, exit) = run(start, timeout, ctx).await?;
                again.notes.push(format!(
                    "The command failed in its sandbox ({why}); the user let it run once more outside of it, which this is the output of."
                ));
                return Ok(again.output(command, exit, timeout, ctx));
            }
            Ok(running.output(command, exit, timeout, ctx))
        })
    }
}

/// Runs a command to its end, or until its time is up.
async fn run(
    start: Spec,
    timeout: Duration,
    ctx: &ToolContext,
) -> Result<(Running<'_>, Ended), ToolError> {
    let child = ctx.spawner.spawn(start).await;
    let child =
        child.map_err(|e| ToolError::failed(format!("The command could not be started: {e}")))?;
    let capture = Capture::new(&ctx.limits, &ctx.artifacts, ctx.call.call_id.as_str());
    let mut running = Running::new(capture);
    let exit = running.follow(child, timeout, ctx).await?;
    Ok((running, exit))
}

/// A command under way, with what it prints.
pub(super) struct Running<'a> {
    capture: Capture<'a>,
    /// Ends of the two streams by themselves, for display (E3).
    stdout: Tail,
    stderr: Tail,
    fresh: bool,
    /// Hosts that the command was refused.
    refused: Vec<String>,
    /// What else the model has to know.
    notes: Vec<String>,
    /// Files that it made and must not make.
    aside: Vec<PathBuf>,
}

#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        if self.0.len() > 2 * PREVIEW {
            self.0.drain(..self.0.len() - PREVIEW);
        }
    }
    fn text(&self) -> String {
        let from = self.0.len().saturating_sub(PREVIEW);
        String::from_utf8_lossy(self.0.get(from..).unwrap_or_default()).into_owned()
    }
}

// How the command ended; `None` when its time was up.
pub(super) type Ended = Option<Exit>;

impl<'a> Running<'a> {
    pub(super) fn new(capture: Capture<'a>) -> Self {
        Self {
            capture,
            stdout: Tail::default(),
            stderr: Tail::default(),
            fresh: false,
            refused: Vec::new(),
            notes: Vec::new(),
            aside: Vec::new(),
        }
    }

    // Reads until the shell has ended and its output with it. Dropping this future drops the child, which kills the whole tree.
    pub(super) async fn follow(
        &mut self,
        mut child: Child,
        timeout: Duration,
        ctx: &ToolContext,
    ) -> Result<Ended, ToolError> {
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let (mut out, mut err) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
        let mut exit: Option<Ended> = None;
        let mut until = Instant::now() + timeout;
        let mut tick = interval(PROGRESS);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while exit.is_none() || stdout.is_some() || stderr.is_some() {
            tokio::select! {
                n = read(&mut stdout, &mut out), if stdout.is_some() => self.take(&out[..n], false),
                n = read(&mut stderr, &mut err), if stderr.is_some() => self.take(&err[..n], true),
                ended = child.wait(), if exit.is_none() => {
                    exit = Some(Some(ended.map_err(|e| ToolError::failed(e.to_string()))?));
                    until = Instant::now() + LINGER;
                }
                _ = tick.tick(), if self.fresh => {
                    self.fresh = false;
                    ctx.progress(None, json!({"output": self.capture.preview(PREVIEW)}));
                }
                () = sleep_until(until) => match exit {
                    Some(_) => break,
                    None => {
                        child.kill_tree();
                        exit = Some(None);
                        until = Instant::now() + LINGER;
                    }
                }
            }
        }
        // What a command prints last is reported even when it ends at once, as in the reference.
        if self.fresh {
            ctx.progress(None, json!({"output": self.capture.preview(PREVIEW)}));
        }
        self.refused = child.refused();
        self.aside = child.put_aside();
        // What it left is looked at where nothing else waits for it.
        let (child, cleared) = tokio::task::spawn_blocking(move || {
            let cleared = child.cleared();
            (child, cleared)
        })
        .await
        .map_err(|e| ToolError::failed(e.to_string()))?;
        drop(child);
        self.notes.extend(cleared);
        Ok(exit.flatten())
    }

    fn take(&mut self, bytes: &[u8], error: bool) {
        self.capture.add(bytes);
        if error {
            self.stderr.add(bytes);
        } else {
            self.stdout.add(bytes);
        }
        self.fresh |= !bytes.is_empty();
    }

    pub(super) fn output(
        self,
        command: &str,
        ended: Ended,
        timeout: Duration,
        ctx: &ToolContext,
    ) -> ToolOutput {
        let mut preview = self.capture.preview(PREVIEW);
        let got = self.capture.finish();
        let mut output = got.text;
        if output.is_empty() {
            output = "(no output)".to_owned();
            preview.clone_from(&output);
        }
        if got.truncated {
            let mut saved = got
                .path
                .as_ref()
                .map(|path| format!("Full output saved to: {}", path.display()))
                .unwrap_or_default();
            if let Some(why) = &got.lost {
                saved.push_str(&format!(" (not all of it could be saved: {why})"));
            }
            output = format!("...output truncated...\n\n{}\n\n{output}", saved.trim());
        }
        let note = match ended {
            None => Some(format!(
                "shell tool terminated command after exceeding timeout {} ms. If this command is expected to take longer and is not waiting for interactive input, retry with a larger timeout value in milliseconds.",
                timeout.as_millis()
            )),
            Some(Exit {
                signal: Some(signal),
                ..
            }) => Some(format!("The command was ended by signal {signal}.")),
            Some(_) => None,
        };
        let refused = (!self.refused.is_empty()).then(|| {
            let hosts = self.refused.join(", ");
            format!("No connection was made to {hosts}: the user's `tools.hosts` or the policy of this machine does not allow it.")
        });
        let aside = self.aside.iter().map(|path| {
            let path = path.display();
            format!("Commands must not make {path}; it was renamed to {path}{SUFFIX}-*.")
        });
        let notes = note.into_iter().chain(refused).chain(aside);
        let notes: Vec<String> = notes.chain(self.notes).collect();
        if !notes.is_empty() {
            let note = notes.join("\n");
            output.push_str(&format!("\n\n<shell_metadata>\n{note}\n</shell_metadata>"));
        }
        let mut metadata = json!({
            "output": preview,
            "exit": ended.and_then(|exit| exit.code),
            "truncated": got.truncated,
        });
        if let Some(path) = got.path {
            ctx.keeps(&path);
            metadata["outputPath"] = json!(path);
        }
        if !self.stderr.0.is_empty() {
            metadata["stdout"] = json!(self.stdout.text());
            metadata["stderr"] = json!(self.stderr.text());
        }
        ToolOutput {
            title: command.to_owned(),
            output,
            metadata,
            attachments: None,
        }
    }
}

// Reads some bytes; at the end of the stream, or when it cannot be read, the stream is put away.
async fn read<R: AsyncRead + Unpin>(from: &mut Option<R>, into: &mut [u8]) -> usize {
    let n = match from {
        Some(stream) => stream.read(into).await.unwrap_or(0),
        None => 0,
    };
    if n == 0 {
        *from = None;
    }
    n
}
