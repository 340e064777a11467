//! Known facts about the sender of a request. Only this program sets these marks: nothing in a request over a channel or a connection
//! can.

/// Marks a request over a plugin's channel: the addressed session may be waiting for its sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromPlugin;

/// Marks a request of the user of this program. Only [`crate::LocalClient`] sets it: nothing in a request over a channel or a
/// connection can.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalUser;

/// The plugin that sent a request marked with [`FromPlugin`], if that is certain.
#[derive(Clone, Debug)]
pub(crate) struct Sender(pub(crate) Option<String>);
