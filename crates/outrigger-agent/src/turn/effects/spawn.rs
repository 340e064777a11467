//! Effects that run beside the loop of a turn.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokio::sync::watch;

use outrigger_session_state::turn_channel::{Msg, Outbox};

/// Waits until a switch is raised; returns false if its sender is dropped, since no one can cancel any longer.
pub(crate) async fn is_raised(switch: &mut watch::Receiver<bool>) -> bool {
    switch.wait_for(|raised| *raised).await.is_ok()
}

/// Runs an effect beside the loop. Every effect reports exactly once, even after a panic: otherwise the turn would wait
/// forever.
pub(crate) fn spawn_effect(
    sender: Outbox,
    lost: Msg,
    work: impl Future<Output = Msg> + Send + 'static,
) {
    tokio::spawn(async move {
        let message = AssertUnwindSafe(work).catch_unwind().await.unwrap_or(lost);
        let _ = sender.send(message);
    });
}
