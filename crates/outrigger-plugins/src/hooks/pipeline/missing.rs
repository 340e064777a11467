//! What became of a handler that gave no answer.

use std::sync::Arc;
use std::time::Duration;

use outrigger_js::JsError;
use outrigger_kernel::breaker::Ended;
use outrigger_protocol::hook::HookFailure;
use outrigger_protocol::rpc::Enter;

use super::{Drive, End};
use crate::hooks::payload::named;
use crate::supervisor::blame::{Late, PING, late};
use crate::supervisor::group::{Counts, Fault, Group, Live};

impl Drive<'_> {
    /// A handler has not answered: says what became of it, and sees to the process.
    pub(super) async fn missing(
        &mut self,
        handler: usize,
        (hook, call): (&str, u64),
        group: &Arc<Group>,
        live: &Live,
        end: End,
        ms: f64,
    ) {
        let Some(bound) = self.bound.get(handler) else {
            return;
        };
        let entered = live.process.all_entered();
        // Of this very call: the same hook may run for another session.
        let mine = |enter: &Enter| {
            enter.call == Some(call) && enter.plugin == bound.id && enter.what == hook
        };
        let reached = entered.iter().any(mine);
        let mut ended = Ended::Unclear;
        let failure = match end {
            End::Cancelled => {
                if let Some(enter) = entered.into_iter().rev().find(mine) {
                    group.end_unless_left(live.generation, enter);
                }
                HookFailure::Skipped {
                    reason: "cancelled".into(),
                }
            }
            End::Answered => HookFailure::Lost {
                message: "its process gave no answer for it".into(),
            },
            // Several calls that hang at once are as many timeouts and one restart (A8): whoever was as good as late is. One that
            // was held up by it may have been late first, and ended the process: whoever is late himself is late all the same.
            End::Gone(fault)
                if reached
                    && fault.culprit == Some(bound.plugin)
                    && match fault.counts {
                        Counts::Nothing => nearly(ms, self.deadline(bound)),
                        Counts::HeldUp => is_over(ms, self.deadline(bound)),
                        Counts::Crash | Counts::Excess => false,
                    } =>
            {
                ended = Ended::TimedOut;
                HookFailure::TimedOut {
                    ms: u64::try_from(self.deadline(bound).as_millis()).unwrap_or(u64::MAX),
                }
            }
            End::Gone(fault) => HookFailure::Lost {
                message: fault.cause,
            },
            End::Failed(JsError::CallTimeout { ms, .. }) => {
                let plugin = (bound.plugin, bound.id.as_str());
                let Late { culprit, who } = late(group, live, plugin, hook, reached).await;
                let mine = reached && culprit == Some(bound.plugin);
                if self.inner.settings.self_heal {
                    let fault = Fault {
                        cause: format!("{who} did not answer within {ms} ms"),
                        culprit,
                        // The breaker sees to what it is charged with.
                        counts: if mine && self.inner.breakers.on() {
                            Counts::Nothing
                        } else {
                            Counts::HeldUp
                        },
                    };
                    group.give_up(live.generation, fault);
                }
                if mine {
                    ended = Ended::TimedOut;
                }
                if mine {
                    HookFailure::TimedOut { ms }
                } else {
                    HookFailure::Lost {
                        message: format!("its process was held up by {who}"),
                    }
                }
            }
            End::Failed(error) => {
                if group.ends_with(&error) {
                    let suspects = live.process.suspects();
                    let culprit = group.only(&suspects);
                    if reached && culprit == Some(bound.plugin) {
                        ended = Ended::TimedOut;
                    }
                    let who = if suspects.is_empty() {
                        String::new()
                    } else {
                        format!("{}: ", named(&suspects))
                    };
                    let fault = Fault {
                        cause: format!("{who}{error}"),
                        culprit,
                        counts: Counts::Crash,
                    };
                    group.give_up(live.generation, fault);
                }
                HookFailure::Lost {
                    message: error.to_string(),
                }
            }
        };
        // A handler whose code was never entered has done nothing, so calling it is no repetition (A7). Once is enough:
        // a process that dies twice under a chain is not waited for.
        let lost = matches!(failure, HookFailure::Lost { .. }) && self.inner.settings.self_heal;
        if lost && !reached && self.repeated != Some(handler) {
            self.repeated = Some(handler);
            return;
        }
        self.settle(handler, ended);
        self.trail.reached(handler);
        self.feed(handler, failure.into(), ms);
    }
}

// Whether a call of so many milliseconds has missed its deadline.
fn is_over(ms: f64, deadline: Duration) -> bool {
    ms >= deadline.as_secs_f64() * 1000.0
}

// Whether a call of so many milliseconds would have missed its deadline in the time that it takes to see who is late.
fn nearly(ms: f64, deadline: Duration) -> bool {
    is_over(ms + PING.as_secs_f64() * 1000.0, deadline)
}
