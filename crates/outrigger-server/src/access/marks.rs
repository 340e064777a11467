//! What is known of the sender of a request. Marks are set by this program alone: nothing of a request that comes over a channel or a
//! connection can.

/// Marks a request that comes over a plugin's channel: its sender may be what the addressed session waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromPlugin;

/// Marks a request of the person at this program. Only [`crate::LocalClient`] sets it: nothing of a request that comes over a
/// channel or a connection can.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalUser;

/// Which plugin sends a request that is marked with [`FromPlugin`], where that is certain.
#[derive(Clone, Debug)]
pub(crate) struct Sender(pub(crate) Option<String>);
