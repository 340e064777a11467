//! What became of a handler that gave no answer.

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
    /// Its code as the process entered it; none where it was not reached.
    entered: Option<Enter>,
    /// How long it was waited for.
    ms: f64,
}

/// What its record says, and what its breaker is given.
type Verdict = (HookFailure, Ended);

impl<'a> Unanswered<'a> {
    /// Of the request with the number `call`: the same hook may run for another session.
    pub(super) fn new(
        (handler, bound): (usize, &'a Bound),
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

    /// Whether its own code is what went wrong.
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
    /// A handler has not answered: says what became of it, and sees to the process.
    pub(super) async fn missing(&mut self, it: Unanswered<'_>, end: End) {
        let (failure, ended) = match end {
            End::Cancelled => {
                if let Some(enter) = it.entered.clone() {
                    let Target { group, live } = it.target;
                    group.end_unless_left(live.generation, enter);
                }
                let reason = "cancelled".to_owned();
                (HookFailure::Skipped { reason }, Ended::Unclear)
            }
            End::Answered => lost("its process gave no answer for it".to_owned()),
            End::Gone(fault) => self.gone(&it, fault),
            End::Failed(JsError::CallTimeout { ms, .. }) => self.late(&it, ms).await,
            End::Failed(error) => self.broken(&it, &error),
        };
        // A handler whose code was never entered has done nothing, so calling it is no repetition (A7). Once is enough:
        // a process that dies twice under a chain is not waited for.
        let lost = matches!(failure, HookFailure::Lost { .. }) && self.host.settings.self_heal;
        if lost && !it.reached() && self.repeated != Some(it.handler) {
            self.repeated = Some(it.handler);
            return;
        }
        self.settle(it.handler, ended);
        self.audit.reached(it.handler);
        self.feed(it.handler, failure.into(), it.ms);
    }

    /// Another call has found the process to be of no more use. Several calls that hang at once are as many timeouts and one
    /// restart (A8): a handler that was as good as late was late. One that was held up by it may have been late first, and
    /// ended the process: a handler that is past its own deadline is late all the same.
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

    /// It is past its deadline, or something else in its process holds it up.
    async fn late(&self, it: &Unanswered<'_>, ms: u64) -> Verdict {
        let Target { group, live } = it.target;
        let plugin = (it.bound.plugin, it.bound.id.as_str());
        let late = late(group, live, plugin, &it.bound.hook, it.reached()).await;
        let Late { culprit, who } = late;
        let mine = it.is_culprit(culprit);
        if self.host.settings.self_heal {
            it.give_up(Fault {
                cause: format!("{who} did not answer within {ms} ms"),
                culprit,
                // The breaker sees to what it is charged with.
                counts: if mine && self.host.breakers.on() {
                    Counts::Nothing
                } else {
                    Counts::HeldUp
                },
            });
        }
        match mine {
            true => (HookFailure::TimedOut { ms }, Ended::TimedOut),
            false => lost(format!("its process was held up by {who}")),
        }
    }

    /// The channel broke, or the process ended.
    fn broken(&self, it: &Unanswered<'_>, error: &JsError) -> Verdict {
        let (failure, mut ended) = lost(error.to_string());
        let Target { group, live } = it.target;
        if group.ends_with(error) {
            let suspects = live.process.suspects();
            let culprit = group.only(&suspects);
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

// Whether a call of so many milliseconds has missed its deadline.
fn is_over(ms: f64, deadline: Duration) -> bool {
    ms >= deadline.as_secs_f64() * 1000.0
}

// Whether a call of so many milliseconds would have missed its deadline in the time that it takes to see who is late.
fn nearly(ms: f64, deadline: Duration) -> bool {
    is_over(ms + PING.as_secs_f64() * 1000.0, deadline)
}
