//! Prompts that arrive while the turn runs. Their messages are stored at once; the turn reads them in its next step and
//! continues with them, even if it would have ended, as OpenCode does.

use alloc::vec::Vec;

use super::effect::Effect;
use outrigger_protocol::Millis;
use outrigger_protocol::id::{CallId, MessageId};
use outrigger_protocol::message::PartKind;
use outrigger_protocol::turn::Begin;

use super::Turn;

impl Turn {
    /// Returns the prompts that the turn has not read yet, oldest first. If it ends without them, another turn takes
    /// them.
    #[must_use]
    pub fn joined(&self) -> Vec<&MessageId> {
        self.joined.iter().map(|begin| &begin.message.id).collect()
    }

    pub(super) fn join(&mut self, begin: Begin) {
        if !self.cancelled && begin.stored {
            self.joined.push(begin);
        }
    }

    pub(super) fn leave(&mut self, message: &MessageId) {
        self.joined.retain(|begin| begin.message.id != *message);
    }

    /// Continues with joined prompts; returns false if there are none or no step is left. `used` is the token count of
    /// the last request.
    pub(super) fn go_on_with_joined(
        &mut self,
        at: Millis,
        used: u64,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(task) = self.take_joined(out) else {
            return false;
        };
        self.answer(at, task, used, out);
        true
    }

    /// Makes the newest prompt the turn's own. A prompt for a subagent ends the batch: later ones follow afterwards.
    fn take_joined(&mut self, out: &mut Vec<Effect>) -> Option<Option<outrigger_protocol::Object>> {
        if self.joined.is_empty() || self.step >= self.begin.max_steps {
            return None;
        }
        let mut task = None;
        while task.is_none() && !self.joined.is_empty() {
            let next = self.joined.remove(0);
            task = next.parts.iter().find_map(|part| match &part.kind {
                PartKind::Subtask(task) => Some(task.clone()),
                _ => None,
            });
            self.adopt(next, out);
        }
        Some(task)
    }

    fn adopt(&mut self, next: Begin, out: &mut Vec<Effect>) {
        // The changes of this turn so far belong to the previous prompt.
        if core::mem::take(&mut self.files.unpublished) {
            out.push(self.publish_user());
        }
        let used = next.used_calls.iter().map(|id| CallId(id.clone()));
        self.used_calls.extend(used);
        self.commands.extend(self.begin.command.take());
        self.user = next.message.clone();
        // A new request of the user is not a repetition of the last one.
        self.loops = super::loops::Loops::default();
        self.answer = super::answer::StructuredAnswer::default();
        let own = &self.begin;
        // The turn keeps the causes of what it has read before: they also cause what follows.
        let mut provenance = own.provenance.clone();
        provenance.extend(next.provenance.clone());
        *self.begin = Begin {
            provenance,
            turn: own.turn.clone(),
            session_id: own.session_id.clone(),
            seed: own.seed,
            wants_title: own.wants_title,
            compact: own.compact.clone(),
            no_reply: false,
            ..next
        };
    }
}
