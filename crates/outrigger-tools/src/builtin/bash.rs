//! `bash`: runs a shell command.

mod environment;
mod mentions;
mod outside;
mod paths;
mod rules;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::execute::before_shell;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_sandbox::{ProcessFreeze, Spec, Stdio, host_path};
use serde_json::{Value, json};

pub use self::environment::{PROXIES, shell_environment};
use super::{MAX_SAFE, Options, spec, text};
use crate::error::ToolError;
use crate::files::locate;
use crate::host::{Outside, PermissionAsk, ToolContext};
use crate::shell::capture::Capture;
use crate::shell::running::{Ended, Running};
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Runs a command line with bash and returns its output, standard output and standard error together.

- Every call starts a new shell in the working directory; variables and `cd` do not carry over. To work in another directory, set workdir instead of using `cd`.
- timeout is in milliseconds (default 120000). When it expires, the command and everything it started are killed. Background processes end with the call.
- There is no terminal and no input: use options that prevent prompts (`-y`, `--no-edit`) and pagers.
- Quote paths that contain spaces. Join dependent commands with `&&`; run independent ones as separate calls in one answer.
- Long output is truncated to its end and saved whole in a file that the result names; do not truncate it yourself with head or tail.
- To read, search, change and write files, use read, grep, glob, edit and write. Commit or push only when the user asks.
";

// Shells whose `-c` accepts what models write.
const SHELLS: &[&str] = &["bash", "zsh", "sh", "dash", "ksh"];
/// The tool.
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

    // Returns the environment of a command, with what plugins add to it.
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
    // Returns `TMUX_TMPDIR` of a running plugin tmux server.
    fn tmux(&self) -> Vec<(OsString, OsString)> {
        let folder = self.options.tmux.iter();
        folder
            .filter(|folder| {
                use std::os::unix::fs::MetadataExt as _;
                let uid = folder.metadata().map(|meta| meta.uid());
                uid.is_ok_and(|uid| folder.join(format!("tmux-{uid}/default")).exists())
            })
            .map(|folder| ("TMUX_TMPDIR".into(), folder.as_os_str().to_owned()))
            .collect()
    }
}

/// Returns the environment of a shell: our harmless variables and those named in `extra` (a trailing `*` matches any
/// rest), those that identify an agent, and `added`, which plugins or a client request. Excludes everything that makes
/// programs load code.
#[must_use]
pub fn shell_program(options: &Options) -> PathBuf {
    if let Some(shell) = &options.shell {
        return shell.clone();
    }
    std::env::var_os("SHELL")
        .map(PathBuf::from)
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| SHELLS.contains(&name)) && path.is_file()
        })
        .or_else(|| host_path::find("bash"))
        .unwrap_or_else(|| PathBuf::from("/bin/sh"))
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

    fn deadline(&self, input: &Value) -> Option<Duration> {
        Some(self.options.deadline_of(input))
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
            let timeout = self.options.timeout_of(&input);
            start.policy = ctx.host.confine().await?;
            let (mut running, exit) = run(start.clone(), timeout, None, ctx).await?;
            let printed = running.printed();
            if let Some(why) = outside::reason(start.policy.as_ref(), exit, &printed) {
                // The question takes as long as it takes, and what runs then has the timeout for itself.
                let _paused = ctx.pause_deadline();
                let Outside { policy, freeze } = match ctx
                    .host
                    .outside(command, why, &printed)
                    .await
                {
                    Ok(Some(outside)) => outside,
                    not_run => {
                        running.note(match not_run {
                            Err(error) => format!("It was to run once more outside of the sandbox. {error}"),
                            Ok(_) => format!(
                                "The sandbox of commands may be the reason: {why}. Work within it, or ask the user to run the command."
                            ),
                        });
                        return Ok(running.output(command, exit, timeout, ctx));
                    }
                };
                start.policy = policy;
                let ran = run(start.never_frozen(), timeout, Some(&freeze), ctx).await;
                drop(freeze);
                let (mut again, exit) = ran?;
                again.note(format!(
                    "The command failed in its sandbox ({why}); the user let it run once more outside of it, which this is the output of."
                ));
                return Ok(again.output(command, exit, timeout, ctx));
            }
            Ok(running.output(command, exit, timeout, ctx))
        })
    }
}

/// Runs a command until it ends or its timeout passes; `freeze` is that of the others.
async fn run<'a>(
    start: Spec,
    timeout: Duration,
    freeze: Option<&ProcessFreeze>,
    ctx: &'a ToolContext,
) -> Result<(Running<'a>, Ended), ToolError> {
    let child = ctx.spawner.spawn(start).await;
    let child =
        child.map_err(|e| ToolError::failed(format!("The command could not be started: {e}")))?;
    let capture = Capture::new(&ctx.limits, &ctx.artifacts, ctx.call.call_id.as_str());
    let mut running = Running::new(capture);
    let exit = running.follow(child, timeout, freeze, ctx).await?;
    Ok((running, exit))
}
