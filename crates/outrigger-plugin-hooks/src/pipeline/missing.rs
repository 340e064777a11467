//! Handlers that gave no answer.

use std::time::Duration;

use outrigger_js::JsError;
use outrigger_kernel::breaker::Ended;
use outrigger_protocol::hook::HookFailure;
use outrigger_protocol::rpc::Enter;

use super::Drive;
use super::request::{End, Target};
use outrigger_plugin_registry::Bound;
use outrigger_plugin_supervisor::blame::named;
use outrigger_plugin_supervisor::blame::{Late, PING, late};
use outrigger_plugin_supervisor::group::{Counts, Fault};

/// A handler that gave no answer to a request.
pub(super) struct Unanswered<'a> {
    handler: usize,
    bound: &'a Bound,
    target: &'a Target,
    /// State of its code in the process; `None` if it was not reached.
    entered: Option<Enter>,
    /// Milliseconds waited for it.
    ms: f64,
}

/// Failure for its record and result for its breaker.
type Verdict = (HookFailure, Ended);

impl<'a> Unanswered<'a> {
    /// Creates it for the request with the number `call`: the same hook may run for another session.
    pub(super) fn new(
        handler: usize,
        bound: &'a Bound,
        target: &'a Target,
        call: u64,
        ms: f64,
    ) -> Self {
        let mine = |enter: &Enter| {
            enter.call == Some(call) && enter.plugin == bound.id && enter.what == bound.hook
        };
        let entered = target.live.process.all_entered();
        Self {
            handler,
            bound,
            target,
            entered: entered.into_iter().rev().find(mine),
            ms,
        }
    }

    fn reached(&self) -> bool {
        self.entered.is_some()
    }

    /// Returns whether its own code is at fault.
    fn is_culprit(&self, culprit: Option<usize>) -> bool {
        self.reached() && culprit == Some(self.bound.plugin)
    }

    fn give_up(&self, fault: Fault) {
        let Target { group, live } = self.target;
        group.give_up(live.generation, fault);
    }
}

fn lost(message: String) -> Verdict {
    (HookFailure::Lost { message }, Ended::Unclear)
}

impl Drive<'_> {
    /// Handles a handler that has not answered: determines the failure and takes care of the process.
    pub(super) async fn missing(&mut self, it: Unanswered<'_>, end: End) {
        let (failure, ended) = match end {
            End::Cancelled => {
                if let Some(enter) = it.entered.clone() {
                    let Target { group, live } = it.target;
                    group.kill_unless_returned(live.generation, enter);
                }
                let reason = "cancelled".to_owned();
                (HookFailure::Skipped { reason }, Ended::Unclear)
            }
            End::Answered => lost("its process gave no answer for it".to_owned()),
            End::Gone(fault) => self.gone(&it, fault),
            End::Failed(JsError::CallTimeout { ms, .. }) => self.late(&it, ms).await,
            End::Failed(error) => self.broken(&it, &error),
        };
        // A handler whose code was never entered has done nothing, so calling it again is not a repetition (A7). Once is
        // enough: a process that dies twice during a chain is abandoned.
        let lost = matches!(failure, HookFailure::Lost { .. }) && self.host.settings.self_heal;
        if lost && !it.reached() && self.repeated != Some(it.handler) {
            self.repeated = Some(it.handler);
            return;
        }
        self.settle(it.handler, ended);
        self.audit.reached(it.handler);
        self.feed(it.handler, failure.into(), it.ms);
    }

    /// Handles a process that another call declared unusable. Several calls that hang at once are as many timeouts and one
    /// restart (A8): a handler close to its deadline counts as late. A handler that is past its own deadline is late too,
    /// even if it was held up by the one that ended the process.
    fn gone(&self, it: &Unanswered<'_>, fault: Fault) -> Verdict {
        let deadline = self.deadline(it.bound);
        let late = it.is_culprit(fault.culprit)
            && match fault.counts {
                Counts::Nothing => nearly(it.ms, deadline),
                Counts::HeldUp => is_over(it.ms, deadline),
                Counts::Crash | Counts::Excess => false,
            };
        if !late {
            return lost(fault.cause);
        }
        let ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        (HookFailure::TimedOut { ms }, Ended::TimedOut)
    }

    /// Handles a missed deadline, by its own code or by something else in its process.
    async fn late(&self, it: &Unanswered<'_>, ms: u64) -> Verdict {
        let Target { group, live } = it.target;
        let Bound {
            plugin, id, hook, ..
        } = it.bound;
        let Late { culprit, who } = late(group, live, *plugin, id, hook, it.reached()).await;
        let mine = it.is_culprit(culprit);
        if self.host.settings.self_heal {
            it.give_up(Fault {
                cause: format!("{who} did not answer within {ms} ms"),
                culprit,
                // The breaker handles what it is charged with.
                counts: if mine && self.host.breakers.on() {
                    Counts::Nothing
                } else {
                    Counts::HeldUp
                },
            });
        }
        if mine {
            (HookFailure::TimedOut { ms }, Ended::TimedOut)
        } else {
            lost(format!("its process was held up by {who}"))
        }
    }

    /// Handles a broken channel or an exited process.
    fn broken(&self, it: &Unanswered<'_>, error: &JsError) -> Verdict {
        let (failure, mut ended) = lost(error.to_string());
        let Target { group, live } = it.target;
        if group.is_unusable_after(error) {
            let suspects = live.process.suspects();
            let culprit = group.sole_suspect(&suspects);
            if it.is_culprit(culprit) {
                ended = Ended::TimedOut;
            }
            let who = if suspects.is_empty() {
                String::new()
            } else {
                format!("{}: ", named(&suspects))
            };
            it.give_up(Fault {
                cause: format!("{who}{error}"),
                culprit,
                counts: Counts::Crash,
            });
        }
        (failure, ended)
    }
}

// Whether a call of this many milliseconds missed its deadline.
fn is_over(ms: f64, deadline: Duration) -> bool {
    ms >= deadline.as_secs_f64() * 1000.0
}

// Whether a call of this many milliseconds would have missed its deadline in the time needed to find out who is late.
fn nearly(ms: f64, deadline: Duration) -> bool {
    is_over(ms + PING.as_secs_f64() * 1000.0, deadline)
}
