//! Cancellation of calls.

use std::sync::Arc;

use tokio::sync::watch;

/// Signals to a call that its turn was cancelled. A flag whose sender was dropped is raised: the caller no
/// longer exists.
#[derive(Clone, Debug)]
pub struct CancelFlag {
    raised: watch::Receiver<bool>,
    /// The sender of a flag that is never raised.
    _never: Option<Arc<watch::Sender<bool>>>,
}

impl CancelFlag {
    /// Creates a sender and its flag.
    #[must_use]
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (tx, rx) = watch::channel(false);
        (tx, rx.into())
    }
    /// Creates a flag that is never raised.
    #[must_use]
    pub fn never() -> Self {
        let (tx, raised) = watch::channel(false);
        Self {
            raised,
            _never: Some(Arc::new(tx)),
        }
    }
    /// Returns the flag as a channel, for callers that wait for several things.
    #[must_use]
    pub fn receiver(&self) -> watch::Receiver<bool> {
        self.raised.clone()
    }
    /// Returns whether it is raised.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.raised.borrow() || self.raised.has_changed().is_err()
    }
    /// Waits until it is raised.
    pub async fn cancelled(&self) {
        let mut raised = self.raised.clone();
        let _ = raised.wait_for(|raised| *raised).await;
    }
}

impl From<watch::Receiver<bool>> for CancelFlag {
    fn from(raised: watch::Receiver<bool>) -> Self {
        Self {
            raised,
            _never: None,
        }
    }
}
