//! Chains of hooks: who is called next, and what becomes of the answers.

use std::collections::BTreeMap;

use outrigger_kernel::hooks::{Chain, Handler, HookPoint, Next, PointSpec, Rights};
use outrigger_protocol::hook::{Block, Change, HookFailure, HookOutcome};
use outrigger_protocol::turn::HookPayload;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Answer, Failure, text};

/// Operations about chains.
#[derive(Deserialize)]
pub(crate) enum ChainOp {
    /// A chain at a point; the answer says whom to call first.
    #[serde(rename = "chain.open")]
    Open {
        /// Our name or OpenCode's.
        point: HookPoint,
        /// Who is there.
        handlers: Vec<GivenHandler>,
        /// What they are given.
        items: Vec<HookPayload>,
    },
    /// A handler has ended; the answer says whom to call next, or what the chain came to. Then it is closed.
    #[serde(rename = "chain.feed")]
    Feed {
        /// Number.
        chain: u32,
        /// Its place in the order.
        handler: usize,
        /// How it ended.
        outcome: GivenOutcome,
        /// Milliseconds.
        ms: f64,
    },
    /// The table of points.
    #[serde(rename = "chain.points")]
    Points {},
}

/// A handler, as a host names it. Each is called by itself: there are no processes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenHandler {
    plugin: String,
    #[serde(default)]
    instance: usize,
    #[serde(default)]
    priority: i32,
    order: u32,
    #[serde(default)]
    fail_closed: bool,
    /// Its plugin's manifest names the hook.
    #[serde(default)]
    named: bool,
}

/// How a handler ended.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GivenOutcome {
    Continue,
    Patch(Vec<Vec<Change>>),
    Block(Block),
    Threw(String),
    TimedOut(u64),
    Skipped(String),
}

impl From<GivenOutcome> for HookOutcome {
    fn from(given: GivenOutcome) -> Self {
        match given {
            GivenOutcome::Continue => Self::Continue,
            GivenOutcome::Patch(items) => Self::patch(items),
            GivenOutcome::Block(block) => Self::Block(block),
            GivenOutcome::Threw(message) => Self::Failed(HookFailure::Threw { message }),
            GivenOutcome::TimedOut(ms) => Self::Failed(HookFailure::TimedOut { ms }),
            GivenOutcome::Skipped(reason) => Self::Failed(HookFailure::Skipped { reason }),
        }
    }
}

/// The chains of a host.
#[derive(Default)]
pub(crate) struct Chains {
    last: u32,
    open: BTreeMap<u32, Chain>,
}

impl Chains {
    pub(crate) fn answer(&mut self, op: ChainOp) -> Answer {
        match op {
            ChainOp::Open {
                point,
                handlers,
                items,
            } => {
                let handlers = handlers.into_iter().zip(0..).map(|(it, place)| Handler {
                    plugin: it.plugin.into(),
                    instance: it.instance,
                    process: place,
                    priority: it.priority,
                    order: it.order,
                    fail_closed: it.fail_closed,
                    rights: if it.named {
                        Rights::ALL
                    } else {
                        Rights::unnamed(point)
                    },
                });
                self.last += 1;
                let chain = Chain::new(point, handlers.collect(), items);
                self.open.insert(self.last, chain);
                self.next(self.last)
            }
            ChainOp::Feed {
                chain,
                handler,
                outcome,
                ms,
            } => {
                let open = self.open.get_mut(&chain);
                let open = open.ok_or_else(|| Failure::number("chain", chain))?;
                open.feed(handler, outcome.into(), ms);
                self.next(chain)
            }
            ChainOp::Points {} => {
                let rows = HookPoint::ALL.iter().map(|it| row(it.spec()));
                Ok(text(&rows.collect::<Vec<_>>()))
            }
        }
    }

    fn next(&mut self, number: u32) -> Answer {
        let chain = self.open.get(&number);
        let chain = chain.ok_or_else(|| Failure::number("chain", number))?;
        match chain.next() {
            Next::Call(call) => {
                let plugins = call.handlers.iter().map(|place| {
                    let handler = chain.handlers().get(*place);
                    let plugin = handler.map_or("", |it| it.plugin.as_str());
                    json!({ "handler": place, "plugin": plugin, "instance": handler.map_or(0, |it| it.instance) })
                });
                let call: Vec<Value> = plugins.collect();
                let items: Vec<Value> = chain
                    .items()
                    .iter()
                    .map(|it| json!({ "input": it.input, "output": it.output }))
                    .collect();
                Ok(json!({ "chain": number, "call": call, "items": items }).to_string())
            }
            Next::Done(folded) => {
                let name = |place: usize| {
                    let handler = chain.handlers().get(place);
                    handler.map_or("", |it| it.plugin.as_str()).to_owned()
                };
                let runs = folded.runs.iter().map(|run| {
                    json!({
                        "plugin": name(run.handler), "outcome": run.outcome, "decision": run.decision, "changed": run.changed,
                        "message": run.message, "refused": run.refused.map(|it| it.name()), "ms": run.ms,
                    })
                });
                let runs: Vec<Value> = runs.collect();
                let done =
                    json!({ "outputs": folded.outputs, "block": folded.block, "runs": runs });
                self.open.remove(&number);
                Ok(json!({ "chain": number, "done": done }).to_string())
            }
        }
    }
}

fn row(spec: &PointSpec) -> Value {
    json!({
        "name": spec.name, "hook": spec.hook, "block": spec.block, "deadline_ms": spec.deadline.default_ms(),
        "patch": spec.patch.iter().map(|it| it.key).collect::<Vec<_>>(),
    })
}
