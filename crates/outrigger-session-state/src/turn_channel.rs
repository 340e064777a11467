//! Messages to the loop of a turn: reports of its effects, and requests.

use outrigger_kernel::hooks::HookPoint;
use outrigger_kernel::turn::Turn;
use outrigger_protocol::event::Event;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::ToolOffer;
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::turn::{Begin, EffectId, Input, KnownTool, TurnOutcome};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use outrigger_prompt::compaction::plan::Planned;

/// Sender of messages to a turn. Messages are on the heap: the channel of each turn has room for 32 from its start.
#[derive(Clone, Debug)]
pub struct Outbox(mpsc::UnboundedSender<Box<Msg>>);

/// Receiver of a turn's messages, in order.
pub type Inbox = mpsc::UnboundedReceiver<Box<Msg>>;

impl Outbox {
    /// Creates a channel for one turn.
    pub fn new() -> (Self, Inbox) {
        let (sender, inbox) = mpsc::unbounded_channel();
        (Self(sender), inbox)
    }

    /// Returns whether both belong to the same turn.
    pub fn same_channel(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }

    /// Sends a message; returns false if the turn is over.
    pub fn send(&self, message: Msg) -> bool {
        self.0.send(Box::new(message)).is_ok()
    }

    /// Returns once everything sent before is stored and published, or the turn is over.
    pub async fn flushed(&self) {
        let (published, is_published) = oneshot::channel();
        self.send(Msg::Published(published));
        let _ = is_published.await;
    }
}

/// A message to a turn.
pub enum Msg {
    /// For the kernel.
    Input(Input),
    /// A chunk of streamed text, published and not stored.
    Delta {
        /// Index of the block of the answer.
        index: u32,
        /// The chunk.
        text: String,
    },
    /// A chain whose output becomes part of the request.
    Hooked {
        /// The effect that ran the chain.
        effect: EffectId,
        /// The hook point.
        point: HookPoint,
        /// Result of its handlers.
        result: outrigger_plugins::PipelineResult,
    },
    /// The tools of a step.
    Tools {
        /// The effect that requested them.
        effect: EffectId,
        /// As offered to the model.
        offers: Vec<ToolOffer>,
        /// As the kernel knows them.
        known: Vec<KnownTool>,
    },
    /// The plan of a compaction.
    Planned {
        /// The effect that planned it.
        effect: EffectId,
        /// The plan.
        planned: Box<Planned>,
    },
    /// A compaction is requested; the answer states whether this turn makes it.
    Compact(CompactionAsk),
    /// A prompt arrived, and its message is stored.
    Join(Box<Joining>),
    /// A tool's output so far, published and not stored.
    Preview {
        /// The effect that runs the tool.
        effect: EffectId,
        /// The part's metadata so far.
        metadata: Value,
    },
    /// Answered once everything sent before is stored and published.
    Published(oneshot::Sender<()>),
    /// A tool's change of the world.
    Event(Box<Event>),
    /// A model request is retried, with the status of the session until then.
    Retry(SessionStatus),
}

/// A prompt for a running turn.
pub struct Joining {
    /// The prompt as the start of a turn.
    pub begin: Box<Begin>,
    /// Receives the outcome of the turn that answered it; dropped if none did.
    pub ended: oneshot::Sender<TurnOutcome>,
}

/// The parameters of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compact {
    /// Model of the conversation from here on, and of the summary unless the `compaction` agent has one. `None`: the
    /// session's.
    pub model: Option<ModelRef>,
    /// The session continues automatically afterwards.
    pub auto: bool,
    /// The user's instructions for the summary, such as what it must keep.
    pub instructions: Option<String>,
    /// Who requests it.
    pub provenance: Provenance,
}

/// A compaction requested of a running turn.
pub struct CompactionAsk {
    /// The parameters.
    pub compact: Compact,
    /// Receives whether the turn makes the compaction.
    pub accepted: oneshot::Sender<bool>,
}

impl CompactionAsk {
    /// Returns the kernel's input for it.
    pub fn input(&self) -> Input {
        Input::Compact {
            auto: self.compact.auto,
            model: self.compact.model.clone(),
            instructions: self.compact.instructions.clone(),
        }
    }

    /// Answers whether the turn makes the compaction; one that is about to end does not.
    pub fn answer(self, state: Option<&Turn>) {
        let _ = self
            .accepted
            .send(state.is_some_and(Turn::has_asked_compaction));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_question_comes_after_what_its_call_reported() {
        let (outbox, mut inbox) = Outbox::new();
        outbox.send(Msg::Delta {
            index: 0,
            text: "before".into(),
        });
        let mut flushed = std::pin::pin!(outbox.flushed());
        assert!((&mut flushed).now_or_never().is_none());
        let first = inbox.recv().await.map(|it| *it);
        assert!(matches!(first, Some(Msg::Delta { .. })));
        assert!((&mut flushed).now_or_never().is_none());
        let Some(Msg::Published(answer)) = inbox.recv().await.map(|it| *it) else {
            panic!("what waits is the next message");
        };
        answer.send(()).unwrap();
        flushed.await;
    }

    #[tokio::test]
    async fn nobody_waits_for_a_turn_that_is_over() {
        let (outbox, inbox) = Outbox::new();
        drop(inbox);
        outbox.flushed().await;
    }
}
