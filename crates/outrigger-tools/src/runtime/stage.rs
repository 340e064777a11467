//! The progress of a call: one event for listeners at each stage (D7).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::tool::ToolCall;

/// A stage of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage<'a> {
    /// A tool of that name exists.
    Found {
        /// Its version.
        version: &'a str,
    },
    /// Its arguments satisfy the schema.
    Validated,
    /// The caller was granted what the tool needs.
    Granted,
    /// Hooks have run.
    Hooked {
        /// They changed the arguments, and the new ones satisfy the schema too.
        rewritten: bool,
    },
    /// It is normalised.
    Canonical {
        /// Fingerprint of the normalised call.
        fingerprint: u64,
    },
    /// The tool's own policy and the permission rules allow it.
    Decided,
    /// It is bound to a provider.
    Routed {
        /// The contract.
        contract: Contract,
        /// The provider: `local`, or the name of a connector.
        provider: &'a str,
        /// The routing rule, from 1; `None` if no rule matches.
        rule: Option<usize>,
    },
    /// An equal call of this step has its answer, or will have it: this one gets the same.
    Joined,
    /// It runs.
    Started {
        /// From 1.
        attempt: u32,
    },
    /// The call failed temporarily, and is retried.
    Again {
        /// The attempt that failed.
        attempt: u32,
        /// The reason.
        reason: &'a str,
    },
    /// The tool answered, and the answer satisfies the output schema, if the tool has one.
    Answered,
    /// It has finished, including the hooks after it.
    Ended {
        /// `completed`, or the error's code.
        outcome: &'a str,
    },
}

impl Stage<'_> {
    /// For logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Found { .. } => "found",
            Self::Validated => "validated",
            Self::Granted => "granted",
            Self::Hooked { .. } => "hooked",
            Self::Canonical { .. } => "canonical",
            Self::Decided => "decided",
            Self::Routed { .. } => "routed",
            Self::Joined => "joined",
            Self::Started { .. } => "started",
            Self::Again { .. } => "again",
            Self::Answered => "answered",
            Self::Ended { .. } => "ended",
        }
    }
}

/// Gets every stage of every call. It must not block.
pub type Listener = Arc<dyn Fn(&ToolCall, &Stage<'_>) + Send + Sync>;

/// The listeners of one call, and what its record contains about its execution.
pub(super) struct CallProgress<'a> {
    call: &'a ToolCall,
    listeners: Arc<Vec<Listener>>,
    retries: AtomicU32,
    joined: AtomicBool,
    began: AtomicBool,
}

impl<'a> CallProgress<'a> {
    pub(super) fn new(call: &'a ToolCall, listeners: Arc<Vec<Listener>>) -> Self {
        Self {
            call,
            listeners,
            retries: AtomicU32::new(0),
            joined: AtomicBool::new(false),
            began: AtomicBool::new(false),
        }
    }

    /// Returns how often the call was retried.
    pub(super) fn retries(&self) -> u32 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Returns whether it got an equal call's answer.
    pub(super) fn joined(&self) -> bool {
        self.joined.load(Ordering::Relaxed)
    }

    /// Returns whether the tool was run, for this call or an equal one.
    pub(super) fn began(&self) -> bool {
        self.began.load(Ordering::Relaxed)
    }

    /// Records that the call has reached a stage.
    pub(super) fn reached(&self, stage: &Stage<'_>) {
        match stage {
            Stage::Again { .. } => {
                self.retries.fetch_add(1, Ordering::Relaxed);
            }
            // The other call may be cancelled, and then this one runs after all.
            Stage::Joined | Stage::Started { .. } => {
                let joined = matches!(stage, Stage::Joined);
                self.joined.store(joined, Ordering::Relaxed);
                self.began.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
        tracing::trace!(tool = %self.call.tool, call = %self.call.call_id, stage = stage.name(), "tool call");
        for listener in self.listeners.iter() {
            // A listener that panics affects neither the call nor the others (C15).
            let called = std::panic::catch_unwind(AssertUnwindSafe(|| listener(self.call, stage)));
            if called.is_err() {
                tracing::warn!(
                    stage = stage.name(),
                    "a listener of tool calls failed inside"
                );
            }
        }
    }
}
