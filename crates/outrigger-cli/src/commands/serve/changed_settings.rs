//! Settings of the server's own folder that changed while something in a sandbox ran. No agent starts with them, so a person at the
//! terminal is asked before the server listens, as `run` does; elsewhere one line says what to do.

use std::io;

use crate::args::Global;
use crate::failure::Failure;
use crate::terminal::err;
use crate::terminal::progress::Line;

/// Asks about them, or says that they wait. A configuration that cannot be read is reported to clients.
pub(super) async fn settle(global: &Global) -> Result<(), Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let mut waiting = outrigger_agent::waiting_settings(&boot)
        .await
        .unwrap_or_default();
    if !waiting.is_empty() && boot.trust_folder.is_some() && is_in_foreground() {
        outrigger_agent::settle_folder(&boot).await?;
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

/// A job in the background that reads from its terminal is stopped.
fn is_in_foreground() -> bool {
    let foreground = rustix::termios::tcgetpgrp(io::stdin());
    // That it is nobody's controlling terminal is not an error: there are no jobs then.
    foreground.map_or(true, |group| group == rustix::process::getpgrp())
}
