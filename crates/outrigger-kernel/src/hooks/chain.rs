//! The chain of handlers at a point: which handler is called next, and how answers are folded.
//!
//! A chain is driven only by `plugins::Pipeline::run`: [`Chain::next`] returns what to call, the driver calls it and passes
//! the outcome of each handler to [`Chain::feed`], until `next` returns [`Next::Done`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use outrigger_protocol::history::{History, MESSAGES};
use outrigger_protocol::hook::{
    Block, Change, Decision, HookFailure, HookOutcome, OutcomeKind, Patch,
};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

use super::answer::{ItemChanges, OutputCheck};
use super::fields::open;
use super::points::HookPoint;
use super::rights::Rights;
use super::spec::Failure;
use crate::guard::{self, GuardedValues, Rule};

/// Message for a handler without a right in its plugin's manifest.
const UNNAMED: &str = "its manifest does not name in `hook_policy.allowed_hooks`";

/// A hook function registered at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The plugin.
    pub plugin: PluginId,
    /// Index of the plugin's hook object.
    pub instance: usize,
    /// Process that it runs in; neighbours in one process are called with one request.
    pub process: u64,
    /// Higher runs first (C4).
    pub priority: i32,
    /// Load order, which decides between equal priorities.
    pub order: u32,
    /// Security-critical: a throw or timeout refuses (C5), if [`HookPoint::fails_closed`]. Such a handler may also refuse by
    /// its answer.
    pub fail_closed: bool,
    /// Rights of its plugin at the point.
    pub rights: Rights,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Call these handlers, in this order, in their process.
    Call(Call),
    /// The chain is complete.
    Done(Folded),
}

/// One request to one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Indexes into [`Chain::handlers`]: neighbours in the order.
    pub handlers: Vec<usize>,
    /// Payloads as changed by the previous handlers.
    pub items: Vec<HookPayload>,
}

/// The result of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    /// Outputs, one for each item.
    pub outputs: Vec<Value>,
    /// Conversation of the item that has one; it replaces the field `messages` of its output.
    pub history: Option<History>,
    /// Set if a handler refused; later handlers were not called.
    pub block: Option<Block>,
    /// Results of the handlers that were reached, in order.
    pub runs: Vec<HandlerRun>,
}

/// Result of one handler.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerRun {
    /// Index into [`Chain::handlers`].
    pub handler: usize,
    /// Outcome of its call.
    pub outcome: OutcomeKind,
    /// What was done with the answer.
    pub decision: Decision,
    /// Changed fields, as JSON pointers.
    pub changed: Vec<String>,
    /// Error, refusal, or the rejected part of the answer.
    pub message: Option<String>,
    /// The rule that its answer violated, or the first of several.
    pub refused: Option<Rule>,
    /// Duration in milliseconds.
    pub ms: f64,
}

/// A chain in progress. The driver makes the calls and feeds the outcomes back.
///
/// ```
/// use outrigger_kernel::hooks::{Chain, Handler, HookPoint, Next, Rights};
/// use outrigger_protocol::hook::{Block, HookOutcome};
/// use outrigger_protocol::turn::HookPayload;
/// use serde_json::json;
///
/// let handler = |plugin: &str, priority| Handler {
///     plugin: plugin.into(),
///     instance: 0,
///     process: 1,
///     priority,
///     order: 0,
///     fail_closed: false,
///     rights: Rights::ALL,
/// };
/// let payload = HookPayload::new(json!({"tool": "bash"}), json!({"args": {"command": "ls"}}));
/// let point = HookPoint::parse("tool.before_call").unwrap();
/// let mut chain = Chain::new(point, vec![handler("late", 0), handler("early", 10)], vec![payload]);
/// let Next::Call(call) = chain.next() else { unreachable!() };
/// // Neighbours in one process are called together, in order of priority.
/// assert_eq!(call.handlers, [0, 1]);
/// assert_eq!(chain.handlers()[0].plugin.as_str(), "early");
/// chain.feed(0, HookOutcome::Continue, 0.2);
/// let refusal = Block { code: "acme.policy".into(), message: "not here".into(), details: json!(null), plugin: None };
/// chain.feed(1, HookOutcome::Block(refusal), 0.1);
/// assert!(matches!(chain.next(), Next::Done(folded) if folded.block.is_some()));
/// ```
#[derive(Clone, Debug)]
pub struct Chain {
    point: HookPoint,
    handlers: Vec<Handler>,
    items: Vec<HookPayload>,
    /// Number of handlers that have ended.
    reached: usize,
    runs: Vec<HandlerRun>,
    block: Option<Block>,
    /// Guarded fields before the first handler.
    kept: Vec<GuardedValues>,
    /// Schema of the output besides the point's fields.
    check: Option<OutputCheck>,
}

impl Chain {
    /// Creates a chain over `items` (one for most points). Handlers are sorted: security-critical ones last, so that nothing
    /// changes what they approved; then by descending priority, then by load order, then by the plugin's own order of
    /// exports (A6, C4).
    #[must_use]
    pub fn new(point: HookPoint, mut handlers: Vec<Handler>, items: Vec<HookPayload>) -> Self {
        handlers.sort_by(|a, b| {
            a.fail_closed
                .cmp(&b.fail_closed)
                .then(b.priority.cmp(&a.priority))
                .then(a.order.cmp(&b.order))
                .then(a.instance.cmp(&b.instance))
        });
        let kept = items
            .iter()
            .map(|item| guard::keep(point, &item.output))
            .collect();
        Self {
            check: None,
            kept,
            point,
            handlers,
            items,
            reached: 0,
            runs: Vec::new(),
            block: None,
        }
    }

    /// Also validates every answer against a schema: an answer whose result does not match is rejected as a whole.
    #[must_use]
    pub fn checked(mut self, check: Option<OutputCheck>) -> Self {
        self.check = check;
        self
    }

    /// Returns the handlers in the order in which they are called.
    #[must_use]
    pub fn handlers(&self) -> &[Handler] {
        &self.handlers
    }

    /// Returns the point.
    #[must_use]
    pub fn point(&self) -> HookPoint {
        self.point
    }

    /// Returns what to do next. Calling it twice without [`Self::feed`] gives the same result.
    #[must_use]
    pub fn next(&self) -> Next {
        match self.due() {
            Some(handlers) => Next::Call(Call {
                handlers,
                items: self.items.clone(),
            }),
            None => Next::Done(self.clone().finish()),
        }
    }

    /// Returns the handlers to call next over [`Chain::items`], as in [`Next::Call`] but without a copy of the payloads;
    /// `None` at the end of the chain.
    #[must_use]
    pub fn due(&self) -> Option<Vec<usize>> {
        let first = self
            .handlers
            .get(self.reached)
            .filter(|_| self.block.is_none())?;
        let handlers = (self.reached..self.handlers.len())
            .take_while(|i| {
                self.handlers
                    .get(*i)
                    .is_some_and(|h| h.process == first.process)
            })
            .collect();
        Some(handlers)
    }

    /// Returns the payloads as the handlers so far left them.
    #[must_use]
    pub fn items(&self) -> &[HookPayload] {
        &self.items
    }

    /// Returns the results of the handlers so far, in order.
    #[must_use]
    pub fn runs(&self) -> &[HandlerRun] {
        &self.runs
    }

    /// Returns the result of a complete chain, without handlers that were not reached.
    ///
    /// The guard checks it once more as a whole, so it contains no change that a handler was not allowed to make.
    #[must_use]
    pub fn finish(mut self) -> Folded {
        for (kept, item) in self.kept.iter().zip(&mut self.items) {
            let breaches = guard::uphold(self.point, kept, &mut item.output);
            if let (Some(first), Some(run)) = (breaches.first(), self.runs.last_mut()) {
                run.refused = Some(first.rule);
                run.message = Some(first.message.clone());
            }
        }
        Folded {
            history: self.items.iter_mut().find_map(|item| item.history.take()),
            outputs: self.items.into_iter().map(|item| item.output).collect(),
            block: self.block,
            runs: self.runs,
        }
    }

    /// Reports how the next handler ended. Outcomes arrive in the order of the handlers; one for any other handler is
    /// ignored, so that a process that answers twice or out of turn changes nothing.
    pub fn feed(&mut self, handler: usize, outcome: HookOutcome, ms: f64) {
        if handler != self.reached || self.block.is_some() {
            return;
        }
        let Some(Handler {
            fail_closed,
            rights,
            ..
        }) = self.handlers.get(handler)
        else {
            return;
        };
        let fail_closed = *fail_closed && self.point.fails_closed();
        let rights = *rights;
        let may_block = fail_closed || (self.point.spec().block && rights.block);
        self.reached += 1;
        let mut run = HandlerRun {
            handler,
            outcome: outcome.kind(),
            decision: Decision::Continue,
            changed: Vec::new(),
            message: None,
            refused: None,
            ms,
        };
        match outcome {
            HookOutcome::Continue => {}
            HookOutcome::Patch(patch) => match self.arranged(&patch) {
                Ok(None) => self.fold(patch.items, None, rights, &mut run),
                // There is one conversation, so there is one item.
                Ok(history) => {
                    let changes = patch.items.into_iter().next().unwrap_or_default();
                    self.fold(alloc::vec![changes], history, rights, &mut run);
                }
                Err(failure) => self.fail(failure, fail_closed, may_block, &mut run),
            },
            HookOutcome::Block(block) => self.refuse(block, may_block, &mut run),
            HookOutcome::Failed(failure) => self.fail(failure, fail_closed, may_block, &mut run),
        }
        self.runs.push(run);
    }

    fn refuse(&mut self, block: Block, may_block: bool, run: &mut HandlerRun) {
        if may_block {
            run.decision = Decision::Block;
            run.message = Some(block.record_text());
            self.block = Some(block);
            return;
        }
        run.decision = Decision::Refused;
        run.refused = Some(Rule::Rights);
        let why = if self.point.spec().block {
            format!("{}, which {UNNAMED}, was to be refused", self.point)
        } else {
            format!("{} does not allow a refusal", self.point)
        };
        run.message = Some(format!("{why}: {}", block.record_text()));
    }

    fn fail(
        &mut self,
        failure: HookFailure,
        fail_closed: bool,
        may_block: bool,
        run: &mut HandlerRun,
    ) {
        run.outcome = failure.kind();
        let threw = matches!(failure, HookFailure::Threw { .. });
        let throw_blocks = self.point.spec().failure == Failure::ThrowBlocks && may_block;
        let (code, decision) = if fail_closed {
            ("hook.failed_closed", Decision::FailedClosed)
        } else if threw && throw_blocks {
            // A throw that OpenCode turns into the tool's error text is treated like any other answer.
            ("hook.threw", Decision::Block)
        } else if let HookFailure::Skipped { reason } = failure {
            run.decision = Decision::Skipped;
            run.message = Some(reason);
            return;
        } else {
            run.decision = Decision::FailedOpen;
            run.message = Some(failure.to_string());
            return;
        };
        let message = failure.to_string();
        run.decision = decision;
        run.message = Some(message.clone());
        self.block = Some(Block {
            code: code.to_string(),
            message,
            details: Value::Null,
            plugin: None,
        });
    }

    /// Returns the conversation as arranged by a patch, if it arranges it.
    fn arranged(&self, patch: &Patch) -> Result<Option<History>, HookFailure> {
        let Some(order) = &patch.order else {
            return Ok(None);
        };
        let history = self.items.first().and_then(|item| item.history.as_ref());
        match history.and_then(|history| history.arranged(order)) {
            Some(history) => Ok(Some(history)),
            None => Err(HookFailure::Lost {
                message: "its answer names messages that there are not".to_string(),
            }),
        }
    }

    fn fold(
        &mut self,
        answers: Vec<Vec<Change>>,
        mut rearranged: Option<History>,
        rights: Rights,
        run: &mut HandlerRun,
    ) {
        let mut refused = Vec::new();
        let changes = rearranged.is_some() || answers.iter().any(|it| !it.is_empty());
        if changes && !rights.patch && !self.point.spec().patch.is_empty() {
            run.decision = Decision::Refused;
            run.refused = Some(Rule::Rights);
            run.message = Some(self.may_not_patch(rights));
            return;
        }
        // Messages can be arranged only if there are any and they may be changed.
        if rearranged.is_some() && !open(self.point, MESSAGES) {
            rearranged = None;
            refused.push((
                Rule::Rights,
                format!("/{MESSAGES} may not be changed at {}", self.point),
            ));
        }
        let many = self.items.len() > 1;
        for (i, changes) in answers.into_iter().enumerate() {
            let Some(item) = self.items.get_mut(i) else {
                refused.push((Rule::Shape, format!("there is no item {i}")));
                continue;
            };
            // Most answers change nothing and histories are long: avoid a copy.
            if changes.is_empty() && rearranged.is_none() {
                continue;
            }
            let answer = ItemChanges {
                changes,
                history: rearranged.take(),
                prefix: if many { format!("/{i}") } else { String::new() },
            };
            let taken = answer.fold_into(item, self.point, rights.account, self.check.as_ref());
            run.changed.extend(taken.changed);
            refused.extend(taken.refused);
        }
        run.decision = match (run.changed.is_empty(), refused.is_empty()) {
            (true, true) => Decision::Continue,
            (true, false) => Decision::Refused,
            (false, _) => Decision::Patch,
        };
        run.refused = refused.first().map(|(rule, _)| *rule);
        if !refused.is_empty() {
            let texts: Vec<String> = refused.into_iter().map(|(_, text)| text).collect();
            run.message = Some(texts.join("; "));
        }
    }

    /// Returns why a plugin's changes are not applied at all.
    fn may_not_patch(&self, rights: Rights) -> String {
        let name = self.point;
        match rights.missing {
            Some(grant) => format!(
                "{name} was to be changed, and the plugin may not (`{grant} = true` for it under [plugins.NAME] in your own outrigger.toml grants that)"
            ),
            None => format!("{name}, which {UNNAMED}, was to be changed"),
        }
    }
}
