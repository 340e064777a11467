//! One request to one process: its data, and what its answers mean for the chain.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger_js::{HookCall, JsError};
use outrigger_kernel::breaker::Ended;
use outrigger_plugin_status::Notice;
use outrigger_protocol::hook::HookOutcome;
use outrigger_protocol::rpc::{HandlerRef, HookResult};
use outrigger_sandbox::process_time::{self, Instant};

use super::cpu::carried;
use super::missing::Unanswered;
use super::{Drive, Sent, cancelled};
use crate::payload::{open, taken};
use outrigger_plugin_registry::{Bound, Configured};
use outrigger_plugin_supervisor::group::{Counts, Fault, Group, Live};
use outrigger_plugin_supervisor::reconfigure;

/// Minimum time that a call waits for a restarting process (A7: the next call works within 2 s).
const RESTART: Duration = Duration::from_secs(2);
/// Time after which clients are notified that a session waits for a handler.
const SLOW: Duration = Duration::from_secs(2);

/// The process that a request goes to.
pub(super) struct Target {
    pub(super) group: Arc<Group>,
    pub(super) live: Arc<Live>,
}

/// Result of a request to a process.
pub(super) struct Reply {
    results: Vec<HookResult>,
    end: End,
}

pub(super) enum End {
    Answered,
    Cancelled,
    Failed(JsError),
    Gone(Fault),
}

impl Drive<'_> {
    /// Returns the process of a handler, if its breaker lets the handler be called.
    pub(super) async fn reach(&mut self, handler: usize, bound: &Bound) -> Result<Target, String> {
        self.admit(handler)?;
        // A restart continues when the caller stops waiting; at a custom point the caller has a deadline too.
        let longest = self.left(self.deadline(bound).max(RESTART));
        let found = tokio::select! {
            biased;
            () = cancelled(self.context.cancel.clone()) => Err("cancelled".to_owned()),
            found = self.host.processes.live(&self.host.registry, bound.plugin) => found,
            () = process_time::sleep(longest) => Err("its process is still being started".to_owned()),
        };
        if found.is_err() {
            self.settle(handler, Ended::Unclear);
        }
        found.map(|(group, live)| Target { group, live })
    }

    /// Calls consecutive handlers of one process, starting with `bound`, and folds their answers.
    pub(super) async fn request(&mut self, handlers: &[usize], bound: &Bound, target: &Target) {
        let refs: Vec<HandlerRef> = handlers
            .iter()
            .filter_map(|handler| self.bound.get(*handler))
            .map(|bound| HandlerRef {
                plugin: bound.id.clone(),
                instance: bound.instance,
            })
            .collect();
        let deadline = self.left(self.deadline(bound));
        let link = self.link(bound, deadline);
        let informed = self.with_causes(bound).or_else(|| self.without_secrets());
        let call = HookCall {
            chain: link.as_ref().map(|link| link.number),
            hook: &bound.hook,
            handlers: &refs,
            open: &open(self.point, bound.rights),
            items: informed.as_deref().unwrap_or_else(|| self.items()),
            session: self.context.session.as_ref().map(|id| id.0.as_str()),
        };
        let (at, began) = ((self.host.now)(), Instant::now());
        // Send the request first: the input is hashed while the process works.
        let ask = self.ask_visibly(&target.live, &call, deadline);
        let ((reply, sent), given) = tokio::join!(ask, async { self.audit.hash(self.items()) });
        self.audit.called(handlers, given, target.group.is_shared());
        self.note_sent(handlers, &sent, at);
        self.charge(handlers, target, &reply.results, began.elapsed());
        let (answered, theirs) = self.take_answers(handlers, reply.results);
        // The time of earlier handlers is not that of the one that gave no answer.
        let ms = (began.elapsed().as_secs_f64() * 1000.0 - theirs).max(0.0);
        // A run that ends early ends after a handler that violated a rule: the later ones are called again.
        let early = answered > 0 && matches!(reply.end, End::Answered);
        if let Some(handler) = handlers.get(answered).copied()
            && !early
        {
            let all = self.bound;
            if let Some(bound) = all.get(handler) {
                let missing = Unanswered::new(handler, bound, target, sent.call, ms);
                self.missing(missing, reply.end).await;
            }
        } else if let End::Failed(error) = &reply.end {
            target.give_up_after(&bound.hook, error);
        }
        // The later ones were not reached.
        for handler in handlers {
            self.settle(*handler, Ended::Unclear);
        }
    }

    fn note_sent(&mut self, handlers: &[usize], sent: &outrigger_js::Sent, at: u64) {
        for handler in handlers {
            if let Some(place) = self.sent.get_mut(*handler) {
                *place = Sent {
                    bytes: sent.payload,
                    at,
                    carried: carried(sent),
                    cpu_ms: None,
                };
            }
        }
    }

    /// Folds the answers of handlers. Returns how many answered and how many milliseconds they took.
    fn take_answers(&mut self, handlers: &[usize], results: Vec<HookResult>) -> (usize, f64) {
        let (mut answered, mut theirs) = (0, 0.0);
        for result in results {
            theirs += result.ms;
            if let Some(handler) = handlers.get(result.handler) {
                answered = result.handler + 1;
                self.settle(*handler, Ended::Answered);
                self.keep(*handler, &result.outcome);
                self.feed(*handler, taken(&result.outcome), result.ms);
                let run = self.chain.as_ref().and_then(|chain| chain.runs().last());
                self.audit.answered(*handler, &result.outcome, run);
            }
        }
        (answered, theirs)
    }

    /// Stores the input and changes of a `config` hook, which is called again with the same input when its process
    /// restarts.
    fn keep(&self, handler: usize, outcome: &HookOutcome) {
        let changes = match outcome {
            HookOutcome::Failed(_) => return,
            HookOutcome::Patch(patch) => patch.items.first(),
            HookOutcome::Continue | HookOutcome::Block(_) => None,
        };
        if self.point != reconfigure::POINT {
            return;
        }
        let (Some(bound), Some(item)) = (self.bound.get(handler), self.items().first()) else {
            return;
        };
        let configured = Configured {
            instance: bound.instance,
            hook: bound.hook.clone(),
            before: self.shown.as_ref().unwrap_or(&item.output).clone(),
            changes: changes.cloned().unwrap_or_default(),
        };
        self.host.registry.configured(bound.plugin, configured);
    }

    /// Like [`Self::ask`]; clients are notified for which handler their session waits, if that takes long.
    async fn ask_visibly(
        &self,
        live: &Live,
        call: &HookCall<'_>,
        deadline: Duration,
    ) -> (Reply, outrigger_js::Sent) {
        let answered = AtomicUsize::new(0);
        let mut ask = pin!(self.ask(live, call, deadline, &answered));
        let began = Instant::now();
        let notice = |plugin: &str, over| {
            if let Some(session) = call.session {
                (self.host.notice)(Notice::Waiting {
                    plugin: plugin.to_owned(),
                    hook: call.hook.to_owned(),
                    session_id: session.to_owned(),
                    ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                    over,
                });
            }
        };
        // No turn waits for these.
        let is_seen = call.session.is_some() && self.point.name() != "event";
        let mut shown: Option<&str> = None;
        let reply = loop {
            match process_time::timeout(SLOW, &mut ask).await {
                Ok(reply) => break reply,
                Err(_) if !is_seen => {}
                Err(_) => {
                    let current = call.handlers.get(answered.load(Ordering::Relaxed));
                    let current = current.map(|it| it.plugin.as_str());
                    if let Some(plugin) = current.filter(|it| shown != Some(*it)) {
                        notice(plugin, false);
                        shown = Some(plugin);
                    }
                }
            }
        };
        if let Some(plugin) = shown {
            notice(plugin, true);
        }
        reply
    }

    /// Returns the answers and what was sent. Counts the answers while they arrive.
    async fn ask(
        &self,
        live: &Live,
        call: &HookCall<'_>,
        deadline: Duration,
        answered: &AtomicUsize,
    ) -> (Reply, outrigger_js::Sent) {
        let mut results = Vec::new();
        let mut sent = outrigger_js::Sent::default();
        let call = live.process.hook_call(call, deadline, &mut sent, |result| {
            answered.store(result.handler + 1, Ordering::Relaxed);
            results.push(result);
        });
        let call = live.until_gone(call);
        let end = tokio::select! {
            biased;
            ended = call => match ended {
                Ok(Ok(())) => End::Answered,
                Ok(Err(error)) => End::Failed(error),
                Err(fault) => End::Gone(fault),
            },
            () = cancelled(self.context.cancel.clone()) => End::Cancelled,
        };
        (Reply { results, end }, sent)
    }
}

impl Target {
    /// Handles a process that hung or died after all handlers answered: the one that was called last is responsible.
    fn give_up_after(&self, hook: &str, error: &JsError) {
        if !self.group.is_unusable_after(error) {
            return;
        }
        let fault = Fault {
            cause: format!("behind {hook}: {error}"),
            culprit: self.group.sole_suspect(&self.live.process.suspects()),
            counts: Counts::Crash,
        };
        self.group.give_up(self.live.generation, fault);
    }
}
