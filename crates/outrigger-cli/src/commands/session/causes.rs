//! Who caused the messages and tool calls of a session, if not only the user and the model: a plugin, or the project through its own
//! agent or command.

use std::collections::BTreeMap;

use outrigger_protocol::id::SessionId;
use outrigger_protocol::merged::ConversationMessage;
use outrigger_protocol::message::{MessageInfo, MessageWithParts};
use outrigger_protocol::provenance::{Actor, Cause, Provenance};
use outrigger_store::{Scope, Store, StoreError};

use crate::terminal::Paint;

/// Causes by the identifier of a message part or of a call.
#[derive(Default)]
pub(crate) struct Causes(BTreeMap<String, Provenance>);

impl Causes {
    /// Returns the causes of a session, with its messages.
    pub(crate) fn of(
        store: &Store,
        session: &SessionId,
        messages: &[MessageWithParts],
    ) -> Result<Self, StoreError> {
        let mut causes = BTreeMap::new();
        for message in messages {
            if let MessageInfo::User(user) = &message.info {
                let parts = message.parts.iter();
                causes.extend(parts.map(|part| (part.id.0.clone(), user.provenance.clone())));
            }
        }
        let calls = store.tools(Scope::Session(session))?.into_iter();
        causes.extend(calls.map(|tool| (tool.call.call_id.0, tool.provenance)));
        let is_projects = |it: &Cause| it.actor == Actor::Project;
        causes.retain(|_, it| !it.is_plain() || it.causes().iter().any(is_projects));
        Ok(Self(causes))
    }

    /// Returns a line about a message; empty if there is no special cause.
    pub(crate) fn line(&self, message: &ConversationMessage, paint: Paint) -> String {
        let call = message
            .metadata
            .get("tool_use_id")
            .and_then(serde_json::Value::as_str);
        let causes = self.0.get(call.unwrap_or(&message.id));
        causes
            .map(|causes| format!("{}\n", paint.dim(&format!("  by: {causes}"))))
            .unwrap_or_default()
    }
}
