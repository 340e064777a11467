//! The one way to call a hook (invariant 3): drives the kernel's chain over the plugin processes.

mod causes;
mod commands;
mod config_secrets;
mod cpu;
mod custom_points;
mod missing;
mod records;
mod request;
mod second_pass;
mod sessions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outrigger_claude_hooks::SecondPass;
use outrigger_kernel::breaker::{Ended, Gate};
use outrigger_kernel::hooks::{Chain, Failure, Handler, HookPoint, OutputCheck};
use outrigger_plugin_status::GuardedCall;
use outrigger_protocol::history::History;
use outrigger_protocol::hook::{
    Block, Carried, ChangedValues, Decision, HookFailure, HookOutcome, HookRecord,
};
use outrigger_protocol::id::{PluginId, SessionId, TurnId};
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::process_time::Instant;
use serde_json::Value;
use tokio::sync::watch;

use self::second_pass::{ChangedCall, SeenArguments};
use crate::breakers::HookKey;
use crate::changes::Given;
use crate::hook_audit::ChainAudit;
use crate::host::HookHost;
use outrigger_plugin_registry::Bound;

/// Context of a chain: its session and turn, and what stops it.
#[derive(Clone, Debug, Default)]
pub struct PipelineContext {
    /// Session, for the records.
    pub session: Option<SessionId>,
    /// Turn, for the records.
    pub turn: Option<TurnId>,
    /// Step of the turn at which it was reached, for the records: the turn may have moved on when its handlers answer.
    pub step: Option<String>,
    /// Turns true when the result is no longer needed; handlers not yet called are skipped then.
    pub cancel: Option<watch::Receiver<bool>>,
    /// Points of plugins that it is reached from, outermost first (B8).
    pub path: Vec<&'static str>,
    /// Number of plugin events, and of the points before them, that led to it.
    pub depth: u32,
    /// Deadline of its caller.
    pub by: Option<Instant>,
    /// Call only handlers whose failure refuses, and command hooks: the action is not a tool call, and the guards of tool
    /// calls apply to it.
    pub guards_only: bool,
}

/// Result of a chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PipelineResult {
    /// Outputs, one for each item, as the last handler left them.
    pub outputs: Vec<Value>,
    /// Conversation of the payload, if any: it replaces the field `messages` of its output.
    pub history: Option<History>,
    /// Set if a handler refused; later handlers were not called.
    pub block: Option<Block>,
    /// One record for each handler that was reached, in order (A1, A2, C13).
    pub records: Vec<HookRecord>,
    /// Set if a handler wants the turn to end after this: the reason.
    pub stop: Option<String>,
}

impl PipelineResult {
    /// Returns the plugins whose changes were applied, without duplicates.
    #[must_use]
    pub fn changed_by(&self) -> Vec<PluginId> {
        let mut plugins: Vec<PluginId> = Vec::new();
        let changed = |record: &&HookRecord| record.decision == Decision::Patch;
        for record in self.records.iter().filter(changed) {
            if !plugins.contains(&record.plugin) {
                plugins.push(record.plugin.clone());
            }
        }
        plugins
    }
}

/// Runs hook chains. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline(pub(crate) Arc<HookHost>);

/// Data of a handler's record besides its outcome.
#[derive(Clone, Copy, Default)]
struct Sent {
    bytes: u64,
    at: u64,
    carried: Option<Carried>,
    cpu_ms: Option<f64>,
}

impl Pipeline {
    /// Creates a pipeline over the plugins of this project.
    #[must_use]
    pub fn new(host: Arc<HookHost>) -> Self {
        Self(host)
    }

    /// Returns whether some plugin has a handler there; otherwise [`Pipeline::run`] returns at once, and a caller need not
    /// even build the payloads.
    #[must_use]
    pub fn has(&self, point: HookPoint) -> bool {
        self.0.registry.bound(point).is_some()
    }

    /// Returns the plugins with a handler there, without duplicates.
    #[must_use]
    pub fn plugins_at(&self, point: HookPoint) -> Vec<PluginId> {
        let mut plugins: Vec<PluginId> = Vec::new();
        for bound in self.0.registry.bound(point).iter().flat_map(|it| it.iter()) {
            let plugin = PluginId(bound.id.clone());
            if !plugins.contains(&plugin) {
                plugins.push(plugin);
            }
        }
        plugins
    }

    /// Runs the chain of a point over `items`, one payload for most points.
    ///
    /// Never fails: a handler that throws, hangs or dies is in the records, and the chain continues with the output from
    /// before it (C5), unless the point or the plugin's rules make that a refusal.
    pub async fn run(
        &self,
        point: HookPoint,
        items: Vec<HookPayload>,
        context: PipelineContext,
    ) -> PipelineResult {
        let Some(mut bound) = self.0.registry.bound(point) else {
            return untouched(items);
        };
        if context.guards_only {
            let guards = bound.iter().filter(|it| it.guards());
            bound = guards.cloned().collect();
            if bound.is_empty() {
                return untouched(items);
            }
        }
        if !self.0.settings.seq_hooks && only_observes(point, &bound) {
            return self.at_once(point, &bound, items, context).await;
        }
        let check = self.0.registry.output_check(point);
        self.passes(point, check, &bound, items, &context).await
    }

    /// Runs one chain. If its command hooks approved another call than the one it leads to, they are asked a second time.
    async fn passes(
        &self,
        point: HookPoint,
        check: Option<OutputCheck>,
        bound: &[Bound],
        items: Vec<HookPayload>,
        context: &PipelineContext,
    ) -> PipelineResult {
        let run = ChainRun {
            host: &self.0,
            point,
            check,
            bound,
            context,
        };
        let (first, changed) = run.first_pass(items).await;
        match changed.filter(|_| first.block.is_none()) {
            Some(changed) => run.second_pass(first, changed).await,
            None => first,
        }
    }

    /// Runs a separate chain for each handler, all concurrently (A12, `plugin_seq_hooks` off). Nothing is changed, so the
    /// outputs equal the inputs; the records keep the order of the chain.
    async fn at_once(
        &self,
        point: HookPoint,
        bound: &[Bound],
        items: Vec<HookPayload>,
        context: PipelineContext,
    ) -> PipelineResult {
        let alone = |one| self.passes(point, None, one, items.clone(), &context);
        let all = futures_util::future::join_all(bound.chunks(1).map(alone)).await;
        PipelineResult {
            records: all.into_iter().flat_map(|one| one.records).collect(),
            ..untouched(items)
        }
    }
}

/// The handlers of a point that run one after another.
struct ChainRun<'a> {
    host: &'a HookHost,
    point: HookPoint,
    check: Option<OutputCheck>,
    bound: &'a [Bound],
    context: &'a PipelineContext,
}

impl ChainRun<'_> {
    /// Returns the changed call, if command hooks have to be asked about it.
    async fn first_pass(&self, items: Vec<HookPayload>) -> (PipelineResult, Option<ChangedCall>) {
        let mut drive = self.drive(self.bound, items, None);
        drive.run().await;
        let changed = drive.changed_call();
        (drive.finish(), changed)
    }

    async fn second_pass(&self, first: PipelineResult, changed: ChangedCall) -> PipelineResult {
        let handlers = changed.handlers.iter();
        let bound: Vec<Bound> = handlers
            .filter_map(|it| self.bound.get(*it))
            .cloned()
            .collect();
        let mut items = changed.items;
        for (item, output) in items.iter_mut().zip(&first.outputs) {
            item.output.clone_from(output);
        }
        let mut drive = self.drive(&bound, items, Some(changed.second_pass));
        drive.run().await;
        first.then(drive.finish())
    }

    fn drive<'b>(
        &'b self,
        bound: &'b [Bound],
        items: Vec<HookPayload>,
        second_pass: Option<SecondPass>,
    ) -> Drive<'b> {
        let handlers = bound.iter().map(handler).collect();
        let chain = Chain::new(self.point, handlers, items).checked(self.check.clone());
        Drive {
            host: self.host,
            point: self.point,
            chain: Some(chain),
            sent: vec![Sent::default(); bound.len()],
            audit: ChainAudit::new(bound.len()),
            values: BTreeMap::new(),
            gates: BTreeMap::new(),
            bound,
            context: self.context,
            repeated: None,
            stop: None,
            asked: SeenArguments::default(),
            second_pass,
            shown: None,
        }
    }
}

/// Returns the payloads unchanged.
fn untouched(mut items: Vec<HookPayload>) -> PipelineResult {
    PipelineResult {
        history: items.iter_mut().find_map(|item| item.history.take()),
        outputs: items.into_iter().map(|item| item.output).collect(),
        ..PipelineResult::default()
    }
}

/// Returns whether no handler there can change or refuse anything.
fn only_observes(point: HookPoint, bound: &[Bound]) -> bool {
    point.spec().patch.is_empty()
        && !point.spec().block
        && !bound.iter().any(|bound| bound.fail_closed)
}

fn handler(bound: &Bound) -> Handler {
    Handler {
        plugin: PluginId(bound.id.clone()),
        instance: bound.instance,
        process: bound.group,
        priority: bound.rules.priority,
        order: bound.order,
        fail_closed: bound.fail_closed,
        rights: bound.rights,
    }
}

struct Drive<'a> {
    host: &'a HookHost,
    point: HookPoint,
    /// `None` once the chain is complete.
    chain: Option<Chain>,
    bound: &'a [Bound],
    sent: Vec<Sent>,
    audit: ChainAudit,
    /// What handlers changed.
    values: BTreeMap<usize, ChangedValues>,
    /// Breaker decisions for the running calls.
    gates: BTreeMap<usize, Gate>,
    context: &'a PipelineContext,
    /// The handler that was called again, since the first request never reached it.
    repeated: Option<usize>,
    /// Set if a command wants the turn to end.
    stop: Option<String>,
    asked: SeenArguments,
    /// Set while command hooks are asked again.
    second_pass: Option<SecondPass>,
    /// The configuration as the process of a `config` hook has it: without the secrets of others.
    shown: Option<Value>,
}

/// Settles the open calls of a chain that is dropped early as inconclusive; the next call repeats a trial.
impl Drop for Drive<'_> {
    fn drop(&mut self) {
        for handler in self.gates.keys().copied().collect::<Vec<_>>() {
            self.settle(handler, Ended::Unclear);
        }
    }
}

impl Drive<'_> {
    /// Calls handlers until the chain is complete.
    async fn run(&mut self) {
        while let Some(handlers) = self.chain.as_ref().and_then(Chain::due) {
            self.call(&handlers).await;
        }
    }

    /// Sends one request to one process, or skips handlers that cannot be called.
    async fn call(&mut self, handlers: &[usize]) {
        let Some((first, bound)) = handlers
            .first()
            .and_then(|first| Some((*first, self.bound.get(*first)?)))
        else {
            return;
        };
        if self.cancelled() {
            return self.skip(handlers, "cancelled");
        }
        if let Some(why) = bound.absent.clone() {
            return self.skip(&[first], &why);
        }
        if bound.group == outrigger_plugin_registry::COMMAND_GROUP {
            return self.call_commands(handlers).await;
        }
        let target = match self.reach(first, bound).await {
            Ok(target) => target,
            Err(why) => return self.skip(&[first], &why),
        };
        let width = self.width(first, handlers, target.group.key);
        let rest = handlers
            .iter()
            .copied()
            .take(width)
            .skip(1)
            .take_while(|handler| self.admit(*handler).is_ok());
        let handlers: Vec<usize> = std::iter::once(first).chain(rest).collect();
        self.request(&handlers, bound, &target).await;
    }

    fn items(&self) -> &[HookPayload] {
        self.chain.as_ref().map(Chain::items).unwrap_or_default()
    }

    fn feed(&mut self, handler: usize, outcome: HookOutcome, ms: f64) {
        let outcome = self.hold_secrets(outcome);
        let configured = self.before_step(&outcome);
        let Some(chain) = &mut self.chain else {
            return;
        };
        let changes = matches!(&outcome, HookOutcome::Patch(patch) if !patch.is_empty());
        let redact = self.host.redact.as_ref().filter(|_| changes);
        let given = redact.map(|redact| (Given::of(chain.items()), redact));
        chain.feed(handler, outcome, ms);
        if let Some((given, redact)) = given {
            let values = given.changes(chain.items(), redact);
            self.values.insert(handler, values);
        }
        self.end_step(handler, configured);
    }

    // Asks the breaker; a call that may be made is settled later.
    fn admit(&mut self, handler: usize) -> Result<(), String> {
        let Some(bound) = self.bound.get(handler) else {
            return Ok(());
        };
        let gate = self.host.breakers.ask(&GuardedCall {
            plugin: bound.id.as_str(),
            key: &HookKey::new(bound.plugin, self.point),
            turn: self.context.turn.as_ref(),
        })?;
        self.gates.insert(handler, gate);
        Ok(())
    }

    // Settles a call once: a second attempt finds no gate.
    fn settle(&mut self, handler: usize, ended: Ended) {
        let (Some(gate), Some(bound)) = (self.gates.remove(&handler), self.bound.get(handler))
        else {
            return;
        };
        let call = GuardedCall {
            plugin: bound.id.as_str(),
            key: &HookKey::new(bound.plugin, self.point),
            turn: self.context.turn.as_ref(),
        };
        self.host.breakers.ended(&call, gate, ended);
    }

    // Returns how many neighbours are called with one request. They must still be in that process and share the hook's
    // spelling and the deadline; if a throw refuses, later ones must not be called before the result is known.
    fn width(&self, first: usize, handlers: &[usize], group: u64) -> usize {
        let Some(head) = self.bound.get(first) else {
            return 0;
        };
        if self.point.spec().failure == Failure::ThrowBlocks || head.fail_closed {
            return 1;
        }
        let alike = |handler: &&usize| {
            self.bound.get(**handler).is_some_and(|bound| {
                let place = self.host.registry.with(bound.plugin, |plugin| plugin.group);
                place.flatten() == Some(group)
                    && bound.hook == head.hook
                    && self.deadline(bound) == self.deadline(head)
                    && !bound.fail_closed
            })
        };
        handlers.iter().take_while(alike).count()
    }

    fn deadline(&self, bound: &Bound) -> Duration {
        let class = || self.host.settings.deadlines.of(self.point.spec().deadline);
        let deadline = bound.rules.hook_deadline.unwrap_or_else(class);
        bound
            .rules
            .max_timeout
            .map_or(deadline, |most| most.min(deadline))
    }

    fn cancelled(&self) -> bool {
        self.context
            .cancel
            .as_ref()
            .is_some_and(|cancel| *cancel.borrow())
    }

    fn skip(&mut self, handlers: &[usize], reason: &str) {
        for handler in handlers {
            self.feed(
                *handler,
                HookFailure::Skipped {
                    reason: reason.to_owned(),
                }
                .into(),
                0.0,
            );
        }
    }
}

/// Completes when the flag turns true; never, if there is none or its owner was dropped.
pub async fn cancelled(cancel: Option<watch::Receiver<bool>>) {
    if let Some(mut cancel) = cancel
        && cancel.wait_for(|cancelled| *cancelled).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flag_whose_owner_has_gone_never_cancels() {
        let (sender, flag) = watch::channel(false);
        drop(sender);
        let never = tokio::time::timeout(Duration::from_millis(20), cancelled(Some(flag))).await;
        assert!(never.is_err());
        let (_sender, flag) = watch::channel(true);
        cancelled(Some(flag)).await;
    }
}
