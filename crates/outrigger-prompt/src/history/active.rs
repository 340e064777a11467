//! The active part of a history: after a summary, the messages before it are not sent.

use std::collections::BTreeSet;

use outrigger_protocol::id::MessageId;
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, MessageWithParts, Part, PartKind,
};
use serde_json::Value;

/// A history after its last compaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Active {
    /// The last compaction: its message, and its summary.
    pub compaction: Vec<MessageWithParts>,
    /// Pinned parts of the summarised messages.
    pub pinned: Vec<MessageWithParts>,
    /// Messages that stay unchanged.
    pub rest: Vec<MessageWithParts>,
}

impl Active {
    /// Splits a whole history. The rule is OpenCode's: the summary comes first, then the messages from `tail_start_id` to
    /// the compaction, then those after the summary. Differently from OpenCode, a failed compaction is skipped and pinned
    /// messages follow the summary.
    #[must_use]
    pub fn of(all: Vec<MessageWithParts>) -> Self {
        let roles = roles(&all.iter().collect::<Vec<_>>());
        let mut active = Self::default();
        for (message, role) in all.into_iter().zip(roles) {
            match role {
                Role::Compaction => active.compaction.push(message),
                Role::Summarised => active.pinned.extend(pinned(message)),
                Role::Rest => active.rest.push(message),
                Role::Dropped => {}
            }
        }
        active
    }

    /// Returns the messages in the order in which the model reads them.
    #[must_use]
    pub fn into_messages(self) -> Vec<MessageWithParts> {
        [self.compaction, self.pinned, self.rest].concat()
    }

    /// Returns the text of the last summary.
    #[must_use]
    pub fn summary(&self) -> Option<String> {
        let summary = self.compaction.iter().find(|m| summary_of(m).is_some())?;
        let texts: Vec<&str> = summary.parts.iter().filter_map(text).collect();
        Some(texts.join("\n\n")).filter(|text| !text.is_empty())
    }

    /// Returns the tokens of the last finished step; 0 if it was the summary.
    #[must_use]
    pub fn used(&self) -> u64 {
        let finished = |m: &&MessageWithParts| answer(m).is_some_and(|info| info.finish.is_some());
        self.rest
            .iter()
            .rev()
            .find(finished)
            .and_then(answer)
            .map_or(0, tokens)
    }
}

/// Role of a message after the last compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The last compaction or its summary.
    Compaction,
    /// Replaced by the summary.
    Summarised,
    /// Stays unchanged.
    Rest,
    /// Part of an earlier or a failed compaction.
    Dropped,
}

/// Returns the role of each message.
pub(super) fn roles(all: &[&MessageWithParts]) -> Vec<Role> {
    let done: BTreeSet<&MessageId> = all.iter().filter_map(|m| summary_of(m)).collect();
    let is_last = |m: &&MessageWithParts| done.contains(m.info.id()) && is_compaction(m);
    let found = if done.is_empty() {
        None
    } else {
        all.iter().rposition(is_last)
    };
    let Some((last, compaction)) = found.and_then(|at| Some((at, *all.get(at)?))) else {
        let role = |m: &&MessageWithParts| {
            if is_of_compaction(m) {
                Role::Dropped
            } else {
                Role::Rest
            }
        };
        return all.iter().map(role).collect();
    };
    let tail = tail_start(compaction);
    let tail = tail
        .and_then(|start| all.iter().position(|m| m.info.id().as_str() == start))
        .filter(|at| *at < last)
        .unwrap_or(last);
    let role = |(at, message): (usize, &&MessageWithParts)| {
        if at == last || summary_of(message) == Some(compaction.info.id()) {
            Role::Compaction
        } else if is_of_compaction(message) {
            Role::Dropped
        } else if at < tail {
            Role::Summarised
        } else {
            Role::Rest
        }
    };
    all.iter().enumerate().map(role).collect()
}

/// Incremental computation of [`Active::used`], message by message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Used {
    /// Number of messages.
    len: usize,
    /// Positions of compaction messages, with their ids and the first message that stays.
    compactions: Vec<(usize, MessageId, Option<String>)>,
    /// Those with a finished summary.
    done: BTreeSet<MessageId>,
    /// The last finished step other than a summary, and its tokens.
    step: Option<(usize, u64)>,
}

impl Used {
    /// Adds the next message of the history.
    pub fn add(&mut self, message: &MessageWithParts) {
        self.done.extend(summary_of(message).cloned());
        if is_compaction(message) {
            let id = message.info.id().clone();
            self.compactions.push((self.len, id, tail_start(message)));
        } else if !is_of_compaction(message)
            && let Some(info) = answer(message).filter(|info| info.finish.is_some())
        {
            self.step = Some((self.len, tokens(info)));
        }
        self.len += 1;
    }

    /// Returns the tokens of the last finished step; 0 if it was the summary. `place` returns the position of a message.
    #[must_use]
    pub fn tokens(&self, place: impl FnOnce(&str) -> Option<usize>) -> u64 {
        let last = self
            .compactions
            .iter()
            .rev()
            .into_iter()
            .find(|(_, id, _)| self.done.contains(id));
        let first = last.map_or(0, |(last, _, tail)| {
            tail.as_deref()
                .and_then(place)
                .filter(|at| at < last)
                .unwrap_or(*last)
        });
        self.step
            .filter(|(at, _)| *at >= first)
            .map_or(0, |(_, tokens)| tokens)
    }
}

fn tokens(info: &AssistantMessage) -> u64 {
    let tokens = &info.tokens;
    let sum = tokens.input + tokens.output + tokens.cache.read + tokens.cache.write;
    tokens.total.filter(|total| *total > 0).unwrap_or(sum)
}

fn answer(message: &MessageWithParts) -> Option<&AssistantMessage> {
    match &message.info {
        MessageInfo::Assistant(info) => Some(info),
        MessageInfo::User(_) => None,
    }
}

fn text(part: &Part) -> Option<&str> {
    match &part.kind {
        PartKind::Text(text) => Some(text.text.trim()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

/// Returns the message that a finished summary belongs to.
fn summary_of(message: &MessageWithParts) -> Option<&MessageId> {
    answer(message)
        .filter(|info| info.summary == Some(true) && info.finish.is_some() && info.error.is_none())
        .map(|info| &info.parent_id)
}

/// Returns whether a message stands for a compaction.
#[must_use]
pub fn is_compaction(message: &MessageWithParts) -> bool {
    matches!(message.info, MessageInfo::User(_))
        && message
            .parts
            .iter()
            .any(|part| matches!(part.kind, PartKind::Compaction(_)))
}

pub(super) fn is_of_compaction(message: &MessageWithParts) -> bool {
    is_compaction(message) || answer(message).is_some_and(|info| info.summary == Some(true))
}

fn tail_start(message: &MessageWithParts) -> Option<String> {
    message.parts.iter().find_map(|part| match &part.kind {
        PartKind::Compaction(body) => body.get("tail_start_id")?.as_str().map(str::to_owned),
        _ => None,
    })
}

/// Returns the message with only its pinned texts: `metadata.pinned` of a text part is true.
pub(super) fn pinned(mut message: MessageWithParts) -> Option<MessageWithParts> {
    message.parts.retain(|part| match &part.kind {
        PartKind::Text(text) => {
            let metadata = text.extra.get("metadata");
            metadata
                .and_then(|m| m.get("pinned"))
                .and_then(Value::as_bool)
                == Some(true)
                && text.ignored != Some(true)
        }
        _ => false,
    });
    (!message.parts.is_empty()).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn ids(messages: Vec<MessageWithParts>) -> Vec<String> {
        messages
            .into_iter()
            .map(|m| m.info.id().0.clone())
            .collect()
    }

    #[test]
    fn histories_by_table() {
        let one = || vec![user("u1", "first"), answered("a1", "u1", "one")];
        let compacted = |tail: Option<&str>| {
            let mut all = one();
            all.extend([user("u2", "second"), answered("a2", "u2", "two")]);
            all.extend([compaction("u3", tail), summary("a3", "u3", "sum")]);
            all
        };
        let with = |mut all: Vec<MessageWithParts>, more: Vec<MessageWithParts>| {
            all.extend(more);
            all
        };
        let table = [
            ("none", one(), vec!["u1", "a1"]),
            ("whole", compacted(None), vec!["u3", "a3"]),
            ("tail", compacted(Some("u2")), vec!["u3", "a3", "u2", "a2"]),
            ("tail that is gone", compacted(Some("u9")), vec!["u3", "a3"]),
            (
                "goes on",
                with(compacted(Some("a2")), vec![user("u4", "next")]),
                vec!["u3", "a3", "a2", "u4"],
            ),
            (
                "twice, the second with a tail from before the first",
                with(
                    compacted(Some("u2")),
                    vec![
                        user("u4", "next"),
                        compaction("u5", Some("a2")),
                        summary("a5", "u5", "sum2"),
                    ],
                ),
                vec!["u5", "a5", "a2", "u4"],
            ),
            (
                "the second failed",
                with(
                    compacted(None),
                    vec![
                        user("u4", "next"),
                        compaction("u5", None),
                        failed_summary("a5", "u5"),
                        user("u6", "again"),
                    ],
                ),
                vec!["u3", "a3", "u4", "u6"],
            ),
            (
                "never answered",
                with(one(), vec![compaction("u3", None)]),
                vec!["u1", "a1"],
            ),
        ];
        for (name, all, want) in table {
            // At every length both computations agree.
            for end in 0..=all.len() {
                let part = all.get(..end).unwrap_or_default();
                let mut used = Used::default();
                part.iter().for_each(|message| used.add(message));
                let place = |id: &str| part.iter().position(|m| m.info.id().as_str() == id);
                let whole = Active::of(part.to_vec()).used();
                assert_eq!(used.tokens(place), whole, "{name}, {end}");
            }
            assert_eq!(ids(Active::of(all).into_messages()), want, "{name}");
        }
    }

    #[test]
    fn what_is_pinned_survives_every_compaction() {
        let all = vec![
            pinned_user("u1", "never push"),
            answered("a1", "u1", "fine"),
            compaction("u2", None),
            summary("a2", "u2", "sum"),
            user("u3", "more"),
            compaction("u4", Some("u3")),
            summary("a4", "u4", "sum2"),
        ];
        let active = Active::of(all);
        assert_eq!(active.summary().as_deref(), Some("sum2"));
        let messages = active.into_messages();
        let pinned = messages.get(2).unwrap();
        assert_eq!(pinned.info.id().as_str(), "u1");
        let texts: Vec<_> = pinned.parts.iter().filter_map(text).collect();
        assert_eq!(texts, ["never push"], "only the pinned part of the message");
        assert_eq!(ids(messages), ["u4", "a4", "u1", "u3"]);
    }

    #[test]
    fn a_summary_uses_nothing() {
        let mut all = vec![user("u1", "first"), answered("a1", "u1", "one")];
        assert_eq!(Active::of(all.clone()).used(), 110);
        all.extend([compaction("u2", None), summary("a2", "u2", "sum")]);
        assert_eq!(Active::of(all).used(), 0);
    }
}
