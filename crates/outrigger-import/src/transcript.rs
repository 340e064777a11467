//! What a session of another program says, as it was read. Nothing of it is trusted.

use outrigger_protocol::Millis;
use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::origin::Origin;

use crate::program::Program;

/// Messages of a session, at most; what is beyond is a problem that is named.
pub(crate) const MAX_MESSAGES: usize = 100_000;

/// A session as its program stored it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// Whose.
    pub program: Program,
    /// Its identifier there.
    pub id: String,
    /// The session whose agent began it.
    pub parent: Option<String>,
    /// Title.
    pub title: String,
    /// The folder that it worked in.
    pub directory: String,
    /// The program's version.
    pub version: String,
    /// When it began.
    pub created: Millis,
    /// When it was last used.
    pub updated: Millis,
    /// Where it was imported from, in an export of ours.
    pub origin: Option<Origin>,
    /// Its messages in order. Identifiers only say which answers which, and which parts belong to which.
    pub messages: Vec<MessageWithParts>,
}
