//! Effects beside the loop of a turn.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokio::sync::watch;

use outrigger_session_state::turn_channel::{Msg, Outbox};

/// Waits until a switch is raised; false when it is gone, since a canceller that is gone can cancel nothing any more.
pub(crate) async fn is_raised(switch: &mut watch::Receiver<bool>) -> bool {
    switch.wait_for(|raised| *raised).await.is_ok()
}

/// Runs an effect beside the loop. Every effect reports exactly once, a panic included: a turn that waits for an effect that
/// is gone would wait for ever.
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
