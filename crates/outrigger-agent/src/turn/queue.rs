//! Prompts that come while a turn runs. Their messages are stored at once, so that everyone sees what was said. The turn goes
//! on with them (`join.rs`); where it cannot, they are answered one after the other.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, MessageWithParts};
use outrigger_protocol::session::PromptInput;
use outrigger_protocol::turn::{CommandCall, Input};
use outrigger_workspace::file_changes::Changes;
use outrigger_workspace::sync::lock;
use tokio::sync::watch;

use crate::error::AgentError;
use crate::state::{Agent, Inner};
use crate::turn::drive::Driver;

/// What waits, by session.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    entries: Mutex<HashMap<SessionId, Vec<Entry>>>,
    next: std::sync::atomic::AtomicU64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    message: Option<MessageId>,
    /// The turn that runs has gone on with it.
    taken: bool,
    cancel: watch::Sender<bool>,
}

impl Waiting {
    /// Messages that wait for their turn: no other turn reads them.
    pub(crate) fn messages(&self, id: &SessionId) -> BTreeSet<MessageId> {
        let entries = lock(&self.entries);
        let all = entries.get(id).into_iter().flatten();
        let all = all.filter(|entry| !entry.taken);
        all.filter_map(|entry| entry.message.clone()).collect()
    }

    /// These messages wait no longer: the turn that runs has gone on with them.
    pub(crate) fn release(&self, id: &SessionId, messages: &[MessageId]) {
        let mut entries = lock(&self.entries);
        for entry in entries.get_mut(id).into_iter().flatten() {
            entry.taken |= entry.message.as_ref().is_some_and(|m| messages.contains(m));
        }
    }

    /// Whether no prompt waits.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.entries).values().all(Vec::is_empty)
    }

    /// Ends the waiting of all prompts of a session; true when there were any.
    pub(crate) fn cancel(&self, id: &SessionId) -> bool {
        let entries = lock(&self.entries);
        let all = entries.get(id).into_iter().flatten();
        all.filter(|entry| entry.cancel.send(true).is_ok()).count() > 0
    }
}

/// A place in the queue; left when it is dropped.
pub(crate) struct InQueue<'a> {
    inner: &'a Inner,
    id: SessionId,
    number: u64,
}

impl<'a> InQueue<'a> {
    pub(crate) fn enter(inner: &'a Inner, id: &SessionId, cancel: watch::Sender<bool>) -> Self {
        let number = inner
            .waiting
            .next
            .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let entry = Entry {
            number,
            message: None,
            taken: false,
            cancel,
        };
        lock(&inner.waiting.entries)
            .entry(id.clone())
            .or_default()
            .push(entry);
        Self {
            inner,
            id: id.clone(),
            number,
        }
    }

    fn holds(&self, message: &MessageId) {
        self.with_own(|entry| entry.message = Some(message.clone()));
    }

    fn with_own<T>(&self, look: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let mut entries = lock(&self.inner.waiting.entries);
        let mut own = entries.get_mut(&self.id).into_iter().flatten();
        own.find(|entry| entry.number == self.number).map(look)
    }

    /// The message that is stored and waits.
    pub(crate) fn message(&self) -> Option<MessageId> {
        self.with_own(|entry| entry.message.clone()).flatten()
    }

    /// The turn that runs has gone on with it.
    pub(crate) fn is_taken(&self) -> bool {
        self.with_own(|entry| entry.taken) == Some(true)
    }
}

impl Drop for InQueue<'_> {
    fn drop(&mut self) {
        let mut entries = lock(&self.inner.waiting.entries);
        if let Some(own) = entries.get_mut(&self.id) {
            own.retain(|entry| entry.number != self.number);
            if own.is_empty() {
                entries.remove(&self.id);
            }
        }
    }
}

impl Agent {
    /// Stores the message of a prompt whose turn comes later: its hooks run now, as in the reference. The answer is the
    /// prompt that stands for it.
    pub(crate) async fn announce(
        &self,
        place: &InQueue<'_>,
        mut prompt: PromptInput,
        command: Option<CommandCall>,
        cancelled: watch::Receiver<bool>,
    ) -> Result<PromptInput, AgentError> {
        let id = &place.id;
        let given = prompt.message_id.clone();
        let message = given.unwrap_or_else(crate::ids::message);
        // Before it is stored, so that the running turn never reads it.
        place.holds(&message);
        let mut session = self.session(id)?;
        let history = self.inner.store.messages(id)?;
        let mut begin = self.begin(&session, &history, prompt.clone(), command)?;
        begin.no_reply = true;
        begin.message.id = message.clone();
        let changes = Changes::of(&history, &self.inner.place.worktree);
        let driver = Driver::new(
            std::sync::Arc::clone(&self.inner),
            begin.turn.clone(),
            id.clone(),
            changes,
            cancelled,
        );
        driver.run(Input::Begin(Box::new(begin))).await?;
        self.switch_tools(&mut session, prompt.tools.as_ref())
            .await?;
        prompt.message_id = Some(message);
        Ok(prompt)
    }

    /// Takes a message back whose prompt is refused after all.
    pub(crate) async fn retract(
        &self,
        id: &SessionId,
        message: &MessageId,
    ) -> Result<(), AgentError> {
        let event = Event::MessageRemoved {
            session_id: id.clone(),
            message_id: message.clone(),
        };
        self.inner.commit(Vec::new(), vec![event]).await
    }

    /// Ends when no plugin is at work for the session: a prompt that comes out of a hook would run the same hook again.
    pub(crate) async fn free_of_plugins(&self, id: &SessionId) {
        while self.inner.is_with_plugins(id) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The history as a turn reads it: without messages that wait, and in the order in which they were answered. What a turn
/// said after a later prompt was stored stands before that prompt.
pub(crate) fn in_order(
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
