//! Storage of tool output that is too long for a model: by session, shared with its subagents. Tools and commands of a session
//! can read only its own outputs.

use std::path::PathBuf;

use outrigger_permissions::sandbox_policy::OUTPUTS;
use outrigger_protocol::id::SessionId;

use crate::state::AgentState;

/// Maximum depth of subagents that is followed.
const MAX_DEPTH: usize = 64;

impl AgentState {
    /// Returns the folder of a session's outputs. It is created with the first output.
    pub(crate) fn outputs_of(&self, session: &SessionId) -> PathBuf {
        let mut root = session.clone();
        for _ in 0..MAX_DEPTH {
            let found = self.store.session(&root).ok().flatten();
            let Some(parent) = found.and_then(|it| it.parent_id) else {
                break;
            };
            root = parent;
        }
        self.project
            .folders
            .data
            .join(OUTPUTS)
            .join(name(root.as_str()))
    }
}

/// Returns the folder name of a session. The id may come from a client.
fn name(session: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if !session.is_empty() && session.len() <= 100 && session.chars().all(is_plain) {
        session.to_owned()
    } else {
        outrigger_plugins::hash(&session)
    }
}
