//! `python`: runs a script in the sandbox of shell commands (D5, `core-python`). Not a tool of OpenCode: see
//! [`crate::builtin::optional`].

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_sandbox::{Spec, Stdio, which};
use serde_json::{Value, json};

use super::bash::shell_environment;
use super::optional::specified;
use super::{MAX_SAFE, Options, text};
use crate::error::ToolError;
use crate::files::locate;
use crate::host::{PermissionAsk, ToolContext};
use crate::shell::capture::Capture;
use crate::shell::running::Running;
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Runs a Python 3 script in the working directory and returns its output, standard output and standard error together.

- Every call starts a new process. Print what you want to know. There is no terminal.
- input is the standard input of the script. timeout is in milliseconds (default 120000); when it expires, the script and everything it started are killed.
- The script has the permissions of a shell command.
";
/// Maximum bytes of a script, which is passed as an argument.
const MAX_SCRIPT_BYTES: usize = 100 * 1024;

/// The tool.
pub(super) struct Python {
    spec: ToolSpec,
    options: Options,
}

impl Python {
    pub(super) fn new(options: Options) -> Self {
        let timeout = json!({"type": "integer", "exclusiveMinimum": 0, "maximum": MAX_SAFE});
        let properties = json!({
            "script": {"type": "string"},
            "input": {"type": "string"},
            "timeout": timeout,
        });
        Self {
            spec: specified(
                "core-python",
                "python",
                DESCRIPTION,
                properties,
                &["script"],
            ),
            options,
        }
    }
}

fn program() -> Result<PathBuf, ToolError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    which("python3", &path).ok_or_else(|| {
        ToolError::failed("Cannot find python3 on PATH; install Python 3 or use bash")
    })
}

impl Tool for Python {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Asks as `bash` does, for the equivalent command: a rule that denies `python3 *` applies here, too.
    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let script = text(input, "script");
        if script.contains('\0') || script.len() > MAX_SCRIPT_BYTES {
            return Err(ToolError::failed(format!(
                "The script contains a NUL byte or has more than {MAX_SCRIPT_BYTES} bytes; write it to a file and run that"
            )));
        }
        let _ = ctx;
        Ok(vec![PermissionAsk {
            permission: "bash".to_owned(),
            patterns: vec![format!("python3 -c {script}")],
            always: vec!["python3 -c *".to_owned()],
            metadata: json!({"command": "python3", "script": script}),
            ..PermissionAsk::default()
        }])
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
            let cwd = locate(ctx, ".")?;
            let mut start = Spec::new(program()?)
                .arg("-u")
                .arg("-c")
                .arg(text(&input, "script"))
                .cwd(cwd.shown)
                .vars(shell_environment(&self.options.shell_env, None))
                .stdin(Stdio::Pipe)
                .stdout(Stdio::Pipe)
                .stderr(Stdio::Pipe)
                .allow_new_privs()
                .label("python");
            start.policy = ctx.host.confine().await?;
            let mut child = ctx.spawner.spawn(start).await.map_err(|error| {
                ToolError::failed(format!("The script could not be started: {error}"))
            })?;
            let fed = feed(
                child.stdin.take(),
                text(&input, "input").as_bytes().to_vec(),
            );
            let timeout = self.options.timeout_of(&input);
            let capture = Capture::new(&ctx.limits, &ctx.artifacts, ctx.call.call_id.as_str());
            let mut running = Running::new(capture);
            let feeding = tokio::spawn(fed);
            let exit = running.follow(child, timeout, None, ctx).await;
            // A script need not read all of its input.
            feeding.abort();
            let mut output = running.output("python", exit?, timeout, ctx);
            if let Some(code) = output.metadata["exit"].as_i64().filter(|code| *code != 0) {
                output.output.push_str(&format!("\n\n(exit code {code})"));
            }
            Ok(output)
        })
    }
}

/// Writes the script's input, and then closes it.
async fn feed(stdin: Option<impl tokio::io::AsyncWrite + Unpin>, bytes: Vec<u8>) {
    use tokio::io::AsyncWriteExt as _;
    if let Some(mut stdin) = stdin {
        // A script that ends before it has read everything is not an error.
        let _ = stdin.write_all(&bytes).await;
        let _ = stdin.shutdown().await;
    }
}
