//! The order in which a turn reads the history of its session.

use std::collections::BTreeSet;

use outrigger_protocol::id::MessageId;
use outrigger_protocol::message::{MessageInfo, MessageWithParts};

/// The history as a turn reads it: without messages that wait, and in the order in which they were answered. What a turn
/// said after a later prompt was stored stands before that prompt.
#[must_use]
pub fn in_order(
    mut history: Vec<MessageWithParts>,
    waiting: &BTreeSet<MessageId>,
    own: &MessageId,
) -> Vec<MessageWithParts> {
    history.retain(|message| message.info.id() == own || !waiting.contains(message.info.id()));
    let parent = |message: &MessageWithParts| match &message.info {
        MessageInfo::Assistant(answer) => Some(answer.parent_id.clone()),
        MessageInfo::User(_) => None,
    };
    let answered: BTreeSet<MessageId> = history.iter().filter_map(parent).collect();
    let mut ordered: Vec<MessageWithParts> = Vec::with_capacity(history.len());
    for message in history {
        // A message of the user that was answered, or will be now, and came between a question and its answer.
        let place = parent(&message).and_then(|asked| {
            let from = ordered.iter().position(|m| *m.info.id() == asked)?;
            let between = ordered.iter().skip(from + 1).position(|m| {
                let id = m.info.id();
                matches!(m.info, MessageInfo::User(_)) && (answered.contains(id) || id == own)
            })?;
            Some(from + 1 + between)
        });
        match place {
            Some(at) => ordered.insert(at, message),
            None => ordered.push(message),
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::message::{AssistantMessage, UserMessage};

    fn user(id: &str) -> MessageWithParts {
        let info = MessageInfo::User(UserMessage {
            id: id.into(),
            ..UserMessage::default()
        });
        MessageWithParts {
            info,
            parts: Vec::new(),
        }
    }

    fn answer(id: &str, parent: &str) -> MessageWithParts {
        let info = MessageInfo::Assistant(AssistantMessage {
            id: id.into(),
            parent_id: parent.into(),
            ..AssistantMessage::default()
        });
        MessageWithParts {
            info,
            parts: Vec::new(),
        }
    }

    #[test]
    fn each_prompt_stands_behind_the_answers_to_those_before_it() {
        let stored = || {
            vec![
                user("u1"),
                answer("a1", "u1"),
                user("u2"),
                answer("a2", "u1"),
                user("n"),
                answer("a3", "u1"),
            ]
        };
        let mut later = stored();
        later.push(answer("a4", "u2"));
        for (history, waiting, own, want) in [
            (stored(), &["u2"][..], "u1", "u1 a1 a2 n a3"),
            (stored(), &[], "u2", "u1 a1 a2 a3 u2 n"),
            (later, &[], "u3", "u1 a1 a2 a3 u2 n a4"),
            (vec![user("u1"), answer("a", "gone")], &[], "u1", "u1 a"),
        ] {
            let waiting = waiting.iter().map(|id| MessageId::from(*id)).collect();
            let ids: Vec<String> = in_order(history, &waiting, &own.into())
                .iter()
                .map(|m| m.info.id().to_string())
                .collect();
            assert_eq!(ids.join(" "), want);
        }
    }
}
