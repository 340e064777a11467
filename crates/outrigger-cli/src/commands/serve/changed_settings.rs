//! Settings of the server's own folder that changed while something in a sandbox ran. No agent starts with them, so the user at the
//! terminal is asked before the server listens, as in `run`; without a terminal one line says what to do.

use std::io;

use crate::args::Global;
use crate::failure::Failure;
use crate::terminal::err;
use crate::terminal::progress::Line;

/// Asks about them, or reports that they need approval. An unreadable configuration is reported to clients.
pub(super) async fn settle(global: &Global) -> Result<(), Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let mut waiting = outrigger_agent::waiting_settings(&boot)
        .await
        .unwrap_or_default();
    if !waiting.is_empty() && boot.trust_folder.is_some() && is_in_foreground() {
        outrigger_agent::confirm_folder_trust(&boot).await?;
        waiting = outrigger_agent::waiting_settings(&boot).await?;
    }
    if !waiting.is_empty() {
        err(&format!(
            "{} while Outrigger ran: requests for this folder fail until `outrigger config allow`\n",
            waiting.join(", ")
        ));
    }
    Ok(())
}

/// Returns whether the process is in the foreground: a background job that reads from its terminal is stopped.
fn is_in_foreground() -> bool {
    let foreground = rustix::termios::tcgetpgrp(io::stdin());
    // A terminal without a controlling process is not an error: there are no jobs then.
    foreground.map_or(true, |group| group == rustix::process::getpgrp())
}
