//! Ctrl-C.

use std::sync::OnceLock;

use tokio::sync::watch;

/// How often Ctrl-C was pressed. From the first call on it does not end the program by itself any more.
pub(crate) fn count() -> watch::Receiver<u32> {
    static COUNT: OnceLock<watch::Sender<u32>> = OnceLock::new();
    let sender = COUNT.get_or_init(|| {
        let sender = watch::Sender::new(0);
        let counts = sender.clone();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                counts.send_modify(|n| *n += 1);
            }
        });
        sender
    });
    sender.subscribe()
}
