//! The content of another program's session. Untrusted.

use outrigger_protocol::Millis;
use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::origin::Origin;

use crate::program::Program;

/// Maximum number of messages of a session; exceeding it is a problem.
pub(crate) const MAX_MESSAGES: usize = 100_000;

/// A session as its program stored it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The program.
    pub program: Program,
    /// Its identifier there.
    pub id: String,
    /// The session whose agent started it.
    pub parent: Option<String>,
    /// Title.
    pub title: String,
    /// Its working directory.
    pub directory: String,
    /// The program's version.
    pub version: String,
    /// When it started.
    pub created: Millis,
    /// When it was last used.
    pub updated: Millis,
    /// Its origin before that, in our own export of an imported session.
    pub origin: Option<Origin>,
    /// Its messages in order. Identifiers only relate answers and parts to messages.
    pub messages: Vec<MessageWithParts>,
}
