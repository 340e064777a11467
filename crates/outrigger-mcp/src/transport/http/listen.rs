//! The stream of a server's unsolicited messages: changed lists, log lines, requests. Not every server offers one.

use std::sync::Weak;
use std::time::Duration;

use super::{Broken, RETRY, RETRY_LIMITS, Shared};

/// Reads the stream while the connection is used, and reopens it when it ends. A server that refuses the request has none.
pub(super) async fn listen(shared: Weak<Shared>) {
    let (mut last, mut wait) = (None, RETRY);
    loop {
        let Some(held) = shared.upgrade() else { return };
        let response = match held.stream(last.as_ref()).await {
            Ok(response) => response,
            Err(error) => {
                tracing::debug!("[mcp:{}] no stream of its own: {error}", held.remote.server);
                return;
            }
        };
        let resume = match held.events(response, None).await {
            Ok(resume) | Err(Broken::Lost { resume, .. }) => resume,
            Err(Broken::Wrong(error)) => {
                tracing::warn!("[mcp:{}] its own stream: {error}", held.remote.server);
                return;
            }
        };
        drop(held);
        match resume {
            Some(resume) => (last, wait) = (Some(resume.last), resume.retry),
            // A stream that ends at once each time is reopened at growing intervals.
            None => wait = longer(wait),
        }
        tokio::time::sleep(wait).await;
    }
}

fn longer(wait: Duration) -> Duration {
    let (_, most) = RETRY_LIMITS;
    wait.saturating_mul(2).min(most)
}
