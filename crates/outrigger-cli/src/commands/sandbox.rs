//! `outrigger sandbox`: runs a command in the sandbox of the `bash` tool.

use std::ffi::OsString;
use std::io;

use outrigger_agent::Agent;
use outrigger_sandbox::Exit;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::args::Global;
use crate::failure::Failure;
use crate::terminal;
use crate::terminal::progress::Line;

/// The offset that a shell adds to the number of the signal that ended a program.
const SIGNALLED: u8 = 128;

/// Runs the command with its output on ours; returns its exit code.
pub(crate) async fn sandbox(mut global: Global, command: &[OsString]) -> Result<u8, Failure> {
    // Plugins are not involved, so none needs to be started.
    global.pure = true;
    let agent = Agent::boot(crate::boot::boot(&global, &Line::new())?).await?;
    let mut child = agent.start_sandboxed(command).await?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (exit, out, err) = tokio::join!(
        child.wait(),
        pass_on(stdout, terminal::pass_out),
        pass_on(stderr, terminal::pass_err)
    );
    let refused = child.refused();
    let undone = child.finish();
    agent.shutdown().await;
    let failed = |error: io::Error| Failure::new("sandbox.output", error.to_string(), None);
    out.and(err).map_err(failed)?;
    if !refused.is_empty() {
        terminal::err(&format!(
            "warning: blocked connections to {}: `tools.hosts` or the policy of this machine does not allow them\n",
            refused.join(", ")
        ));
    }
    for path in undone.moved_aside {
        terminal::err(&format!(
            "warning: the command created {}, which is not allowed; it was renamed\n",
            path.display()
        ));
    }
    for what in undone.changes {
        terminal::err(&format!("warning: {what}\n"));
    }
    let exit = exit.map_err(|error| Failure::new("sandbox.wait", error.to_string(), None))?;
    Ok(code(exit))
}

/// Returns the exit code, as a shell would.
fn code(exit: Exit) -> u8 {
    match (exit.code, exit.signal) {
        (_, Some(signal)) => SIGNALLED.wrapping_add(u8::try_from(signal).unwrap_or_default()),
        (Some(code), None) => u8::try_from(code & 0xff).unwrap_or(1),
        (None, None) => 1,
    }
}

async fn pass_on(from: Option<impl AsyncRead + Unpin>, to: impl Fn(&[u8])) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    let mut bytes = vec![0; 16 * 1024];
    // The start of an incomplete character.
    let mut kept = Vec::new();
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            to(&kept);
            return Ok(());
        }
        kept.extend_from_slice(bytes.get(..read).unwrap_or_default());
        let whole = match std::str::from_utf8(&kept) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => kept.len(),
        };
        let rest = kept.split_off(whole);
        to(&kept);
        kept = rest;
    }
}
