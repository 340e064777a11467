//! Facts that a turn needs about all messages of its session.
//!
//! They are computed message by message, and cached for messages that no longer change, so that a turn reads only the last few,
//! however long the history is.

use std::collections::HashSet;
use std::path::Path;

use outrigger_prompt::history::active::Used;
use outrigger_protocol::history::History;
use outrigger_protocol::id::{CallId, MessageId, PluginId};
use outrigger_protocol::message::{MessageInfo, MessageWithParts, PartKind};
use outrigger_protocol::provenance::Deed;
use outrigger_workspace::file_changes::StoredChanges;

/// Number of newest messages that are read each time, which includes those that a turn still changes.
const NEWEST: usize = 32;
/// Number of messages at which the older ones are cached.
const MAX_NEWEST: usize = 96;

/// Facts about a history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Incomplete answers.
    pub open: Vec<MessageId>,
    /// Tokens of the last finished step.
    pub used: Used,
    /// Files that the session changed.
    pub changes: StoredChanges,
    /// Plugins that sent or rewrote messages, with answers to these: they stay when the prompt is reverted. The first two
    /// messages of each plugin, since one of them may be the message that a turn begins with.
    pub prompted: Vec<(MessageId, PluginId)>,
}

impl Facts {
    /// Adds the next message.
    pub fn add(&mut self, message: &MessageWithParts, worktree: &Path) {
        self.used.add(message);
        self.changes.add(message, worktree);
        let provenance = match &message.info {
            MessageInfo::User(user) => &user.provenance,
            MessageInfo::Assistant(answer) => {
                if answer.time.completed.is_none() {
                    self.open.push(answer.id.clone());
                }
                &answer.provenance
            }
        };
        for plugin in provenance.plugins_that(Deed::Prompted) {
            let new = (message.info.id().clone(), plugin);
            let known = self.prompted.iter().filter(|(_, it)| *it == new.1);
            if known.count() < 2 && !self.prompted.contains(&new) {
                self.prompted.push(new);
            }
        }
    }

    fn add_all(&mut self, history: &History, places: std::ops::Range<usize>, worktree: &Path) {
        for message in history.iter_from(places.start).take(places.len()) {
            if let Some(message) = message.stored() {
                self.add(message, worktree);
            }
        }
    }
}

/// Returns the ids of a message's tool calls.
fn calls(message: &MessageWithParts) -> impl Iterator<Item = &CallId> {
    message.parts.iter().filter_map(|part| match &part.kind {
        PartKind::Tool(call) => Some(&call.call_id),
        _ => None,
    })
}

/// Cached facts about the older messages of a history.
#[derive(Debug, Default)]
pub struct KeptFacts {
    /// The history whose first messages these are.
    history: History,
    /// Number of these messages.
    len: usize,
    facts: Facts,
    /// Ids of their tool calls.
    calls: HashSet<CallId>,
}

impl KeptFacts {
    /// Returns the facts of a history, which is that of the last call at a later time.
    pub fn of(&mut self, history: &History, worktree: &Path) -> Facts {
        self.advance(history, worktree);
        let mut facts = self.facts.clone();
        facts.add_all(history, self.len..history.len(), worktree);
        facts
    }

    /// Returns whether a tool call of a history used this id.
    pub fn has_call(&mut self, history: &History, worktree: &Path, id: &CallId) -> bool {
        self.advance(history, worktree);
        let mut newest = history.iter_from(self.len).filter_map(|it| it.stored());
        self.calls.contains(id) || newest.any(|message| calls(message).any(|it| it == id))
    }

    /// Computes the facts of the messages that no longer change.
    fn advance(&mut self, history: &History, worktree: &Path) {
        if !history.begins_like(&self.history, self.len) {
            *self = Self::default();
        }
        if history.len() > self.len + MAX_NEWEST {
            let older = history.len() - NEWEST;
            self.facts.add_all(history, self.len..older, worktree);
            let messages = history.iter_from(self.len).take(older - self.len);
            let calls = messages.filter_map(|it| it.stored()).flat_map(calls);
            self.calls.extend(calls.cloned());
            self.len = older;
        }
        self.history = history.clone();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn message(n: usize, kind: u8) -> MessageWithParts {
        let id = format!("msg_{n:04}");
        let user = |more: Value| {
            let mut user = json!({ "role": "user", "id": id, "sessionID": "s", "time": { "created": 1 }, "agent": "build",
                "model": { "providerID": "p", "modelID": "m" } });
            if let (Value::Object(user), Value::Object(more)) = (&mut user, more) {
                user.extend(more);
            }
            user
        };
        let time = if kind == 3 {
            json!({ "created": 1 })
        } else {
            json!({ "created": 1, "completed": 2 })
        };
        let answer = json!({ "role": "assistant", "id": id, "sessionID": "s", "parentID": format!("msg_{:04}", n.saturating_sub(1)),
            "mode": "build", "agent": "build", "path": { "cwd": "/", "root": "/" }, "cost": 0.0, "modelID": "m",
            "providerID": "p", "time": time, "summary": kind == 4, "finish": "stop",
            "tokens": { "input": n, "output": 1, "reasoning": 0, "cache": { "read": 0, "write": 0 } } });
        let part = |kind: Value| {
            let mut part = json!({ "id": "prt_1", "sessionID": "s", "messageID": id });
            if let (Value::Object(part), Value::Object(kind)) = (&mut part, kind) {
                part.extend(kind);
            }
            part
        };
        let diff = json!({ "file": "/w/a", "before": "a", "after": n.to_string(), "additions": 1, "deletions": 1 });
        let call = json!({ "type": "tool", "callID": format!("c{n}"), "tool": "edit", "state": { "status": "completed", "input": {},
            "output": "", "title": "", "metadata": { "filediff": diff }, "time": { "start": 1, "end": 2 } } });
        let (info, parts) = match kind {
            0 => (user(json!({})), json!([])),
            1 => (
                user(
                    json!({ "summary": { "diffs": [{ "file": format!("f{}", n % 3), "additions": n }] } }),
                ),
                json!([]),
            ),
            2 => (
                user(json!({})),
                json!([part(json!({ "type": "compaction", "auto": true }))]),
            ),
            5 => (answer, json!([part(call)])),
            _ => (answer, json!([])),
        };
        let mut message: MessageWithParts =
            serde_json::from_value(json!({ "info": info, "parts": parts })).unwrap();
        if let MessageInfo::User(user) = &mut message.info
            && kind == 0
        {
            let plugin = PluginId(format!("p{}", n % 4));
            let actor = outrigger_protocol::provenance::Actor::plugin(&plugin);
            user.provenance = outrigger_protocol::provenance::Provenance::prompted(actor);
        }
        message
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Messages are added, replaced and removed, between reads that are rare or frequent.
        #[test]
        fn what_is_kept_is_what_a_fresh_look_gives(
            edits in proptest::collection::vec((0_u8..20, 0_usize..1000, 0_u8..6, 1_usize..60), 1..60),
        ) {
            let worktree = Path::new("/w");
            let mut kept = KeptFacts::default();
            let mut history = History::default();
            let mut next = 0;
            for (edit, at, kind, count) in edits {
                match edit {
                    0 if !history.is_empty() => {
                        let at = at % history.len();
                        history.set(at, message(at, kind).into());
                    }
                    1 if !history.is_empty() => {
                        let mut messages: Vec<_> = history.iter().cloned().collect();
                        messages.remove(at % history.len());
                        history = History::of(messages);
                    }
                    2 if history.len() > 4 => {
                        let at = history.len() - 1 - at % 4;
                        history.set(at, message(at, kind).into());
                    }
                    _ => for _ in 0..count {
                        history.push(Arc::new(message(next, (kind + u8::try_from(next % 6).unwrap()) % 6).into()));
                        next += 1;
                    },
                }
                let mut fresh = Facts::default();
                fresh.add_all(&history, 0..history.len(), worktree);
                prop_assert_eq!(kept.of(&history, worktree), fresh);
                let has = |n: &usize| kept.has_call(&history, worktree, &CallId(format!("c{n}")));
                let found: Vec<usize> = (0..=next).filter(has).collect();
                let messages = history.iter().filter_map(|it| it.stored());
                let mut named: Vec<usize> = messages.flat_map(calls).map(|id| id.0[1..].parse().unwrap()).collect();
                named.sort_unstable();
                named.dedup();
                prop_assert_eq!(found, named);
            }
        }
    }
}
