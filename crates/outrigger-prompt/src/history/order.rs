//! Order of a session's history as a turn reads it.

use std::collections::{BTreeSet, HashMap, HashSet};

use outrigger_protocol::id::MessageId;
use outrigger_protocol::message::{MessageInfo, MessageWithParts};

/// Returns the positions of the messages that a turn reads, without queued ones, in the order in which they were answered.
/// Answers that were written after a later prompt was stored come before that prompt.
#[must_use]
pub fn in_order(
    history: &[&MessageWithParts],
    waiting: &BTreeSet<MessageId>,
    own: &MessageId,
) -> Vec<usize> {
    let is_read = |id: &MessageId| id == own || !waiting.contains(id);
    let read: Vec<(usize, &MessageInfo)> = history
        .iter()
        .enumerate()
        .map(|(place, message)| (place, &message.info))
        .filter(|(_, info)| is_read(info.id()))
        .collect();
    if is_ordered(&read) {
        return read.into_iter().map(|(place, _)| place).collect();
    }
    let answered: HashSet<&MessageId> = read.iter().filter_map(|(_, info)| parent(info)).collect();
    // Each user message that was answered, or will be now, begins a stretch that contains its answers.
    let mut stretches: Vec<Vec<usize>> = vec![Vec::new()];
    let mut stretch_of: HashMap<&MessageId, usize> = HashMap::with_capacity(read.len());
    for (place, info) in read {
        let asked = parent(info);
        if asked.is_none() && (answered.contains(info.id()) || info.id() == own) {
            stretches.push(Vec::new());
        }
        let last = stretches.len() - 1;
        let at = asked
            .and_then(|asked| stretch_of.get(asked).copied())
            .unwrap_or(last);
        stretch_of.insert(info.id(), at);
        if let Some(stretch) = stretches.get_mut(at) {
            stretch.push(place);
        }
    }
    stretches.concat()
}

pub(super) fn parent(info: &MessageInfo) -> Option<&MessageId> {
    match info {
        MessageInfo::Assistant(answer) => Some(&answer.parent_id),
        MessageInfo::User(_) => None,
    }
}

/// Returns whether each answer follows the prompt that it answers, with at most other answers in between: as in nearly
/// every history.
fn is_ordered(read: &[(usize, &MessageInfo)]) -> bool {
    let mut prompt = None;
    read.iter().all(|(_, info)| match parent(info) {
        None => {
            prompt = Some(info.id());
            true
        }
        Some(asked) => prompt == Some(asked),
    })
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
            let history: Vec<&MessageWithParts> = history.iter().collect();
            let ids: Vec<String> = in_order(&history, &waiting, &own.into())
                .iter()
                .map(|place| history[*place].info.id().to_string())
                .collect();
            assert_eq!(ids.join(" "), want);
        }
    }

    /// The rule, literally: an answer comes before the first answered prompt after its own.
    fn one_by_one(
        history: &[MessageWithParts],
        waiting: &BTreeSet<MessageId>,
        own: &MessageId,
    ) -> Vec<MessageWithParts> {
        let read = |m: &&MessageWithParts| m.info.id() == own || !waiting.contains(m.info.id());
        let history: Vec<&MessageWithParts> = history.iter().filter(read).collect();
        let answered: BTreeSet<&MessageId> =
            history.iter().filter_map(|m| parent(&m.info)).collect();
        let mut ordered: Vec<&MessageWithParts> = Vec::new();
        for message in history.iter().copied() {
            let place = parent(&message.info).and_then(|asked| {
                let from = ordered.iter().position(|m| m.info.id() == asked)?;
                let between = ordered.iter().skip(from + 1).position(|m| {
                    let id = m.info.id();
                    matches!(m.info, MessageInfo::User(_)) && (answered.contains(id) || id == own)
                })?;
                Some(from + 1 + between)
            });
            ordered.insert(place.unwrap_or(ordered.len()), message);
        }
        ordered.into_iter().cloned().collect()
    }

    proptest::proptest! {
        #[test]
        fn the_order_is_what_the_rule_says(
            made in proptest::collection::vec((0_u8..3, 0_usize..14), 0..14),
            waits in proptest::collection::btree_set(0_usize..14, 0..3),
            own in 0_usize..16,
        ) {
            let id = |n: usize| format!("m{n:02}");
            let history: Vec<MessageWithParts> = made
                .iter()
                .enumerate()
                .map(|(n, (kind, other))| match kind {
                    0 => user(&id(n)),
                    // Mostly of an earlier one, sometimes of one that does not exist.
                    1 => answer(&id(n), &id(other % n.max(1))),
                    _ => answer(&id(n), &id(*other)),
                })
                .collect();
            let waiting = waits.into_iter().map(|n| MessageId(id(n))).collect();
            let own = MessageId(id(own));
            let shown: Vec<&MessageWithParts> = history.iter().collect();
            let got: Vec<MessageWithParts> = in_order(&shown, &waiting, &own)
                .into_iter()
                .map(|place| history[place].clone())
                .collect();
            proptest::prop_assert_eq!(got, one_by_one(&history, &waiting, &own));
        }
    }
}
