//! What comes to the loop of a turn: reports of its effects, and requests of others.

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

/// Where what runs for a turn reports to. Messages are on the heap: the channel of each turn has room for 32 from its start.
#[derive(Clone, Debug)]
pub struct Outbox(mpsc::UnboundedSender<Box<Msg>>);

/// What comes to a turn, in order.
pub type Inbox = mpsc::UnboundedReceiver<Box<Msg>>;

impl Outbox {
    /// A channel for one turn.
    pub fn new() -> (Self, Inbox) {
        let (sender, inbox) = mpsc::unbounded_channel();
        (Self(sender), inbox)
    }

    /// Whether both lead to the same turn.
    pub fn same_channel(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }

    /// False when the turn is over.
    pub fn send(&self, message: Msg) -> bool {
        self.0.send(Box::new(message)).is_ok()
    }

    /// Returns when what was sent before is stored and published, or the turn is over.
    pub async fn flushed(&self) {
        let (published, is_published) = oneshot::channel();
        self.send(Msg::Published(published));
        let _ = is_published.await;
    }
}

/// What the running effects report.
pub enum Msg {
    /// For the kernel.
    Input(Input),
    /// A piece of streamed text, published and not stored.
    Delta {
        /// Which block of the answer.
        index: u32,
        /// The piece.
        text: String,
    },
    /// A chain whose output the request is made from.
    Hooked {
        /// The effect that ran the chain.
        effect: EffectId,
        /// Where it was run.
        point: HookPoint,
        /// What its handlers made of it.
        result: outrigger_plugins::PipelineResult,
    },
    /// The tools of a step.
    Tools {
        /// The effect that asked for them.
        effect: EffectId,
        /// As the model is offered them.
        offers: Vec<ToolOffer>,
        /// As the kernel knows them.
        known: Vec<KnownTool>,
    },
    /// What a compaction works with.
    Planned {
        /// The effect that planned it.
        effect: EffectId,
        /// The plan.
        planned: Box<Planned>,
    },
    /// A compaction is requested; the answer says whether this turn makes it.
    Compact(CompactionAsk),
    /// A prompt came, and its message is stored.
    Join(Box<Joining>),
    /// What a tool's output looks like so far, published and not stored.
    Preview {
        /// The effect that runs the tool.
        effect: EffectId,
        /// The part's metadata until then.
        metadata: Value,
    },
    /// Answered when what was sent before it is stored and published.
    Published(oneshot::Sender<()>),
    /// Something that a tool did to the world.
    Event(Box<Event>),
    /// A model request is tried again, with the status of the session until then.
    Retry(SessionStatus),
}

/// A prompt for a turn that runs.
pub struct Joining {
    /// The prompt as the beginning of a turn.
    pub begin: Box<Begin>,
    /// Gets how the turn ended that went on with it; dropped when none did.
    pub ended: oneshot::Sender<TurnOutcome>,
}

/// The parameters of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compact {
    /// Model of the conversation from here on, and of the summary unless the `compaction` agent has one. Absent: the
    /// session's.
    pub model: Option<ModelRef>,
    /// The session goes on by itself afterwards.
    pub auto: bool,
    /// What the user says of the summary, such as what it must keep.
    pub instructions: Option<String>,
    /// Who wants it.
    pub provenance: Provenance,
}

/// A compaction that is asked of a turn that runs.
pub struct CompactionAsk {
    /// What is wanted.
    pub compact: Compact,
    /// Gets whether the turn makes the compaction.
    pub accepted: oneshot::Sender<bool>,
}

impl CompactionAsk {
    /// The input of the kernel that stands for it.
    pub fn input(&self) -> Input {
        Input::Compact {
            auto: self.compact.auto,
            model: self.compact.model.clone(),
            instructions: self.compact.instructions.clone(),
        }
    }

    /// Says whether the turn makes the compaction; one that is about to end does not.
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
