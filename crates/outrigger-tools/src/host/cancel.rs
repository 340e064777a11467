//! Cancelling calls.

use std::sync::Arc;

use tokio::sync::watch;

/// Says to a call that its turn was cancelled. A flag whose switch is gone counts as raised: the caller is gone.
#[derive(Clone, Debug)]
pub struct CancelFlag {
    raised: watch::Receiver<bool>,
    /// Keeps the switch of a flag that nobody raises.
    _never: Option<Arc<watch::Sender<bool>>>,
}

impl CancelFlag {
    /// A switch and its flag.
    #[must_use]
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (tx, rx) = watch::channel(false);
        (tx, rx.into())
    }
    /// A flag that is never raised.
    #[must_use]
    pub fn never() -> Self {
        let (tx, raised) = watch::channel(false);
        Self {
            raised,
            _never: Some(Arc::new(tx)),
        }
    }
    /// The flag as a channel, for those who wait on several things.
    #[must_use]
    pub fn receiver(&self) -> watch::Receiver<bool> {
        self.raised.clone()
    }
    /// True once it is raised.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.raised.borrow() || self.raised.has_changed().is_err()
    }
    /// Ends when it is raised.
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
