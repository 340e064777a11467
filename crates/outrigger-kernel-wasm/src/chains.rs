//! Hook chains: which handler is called next, and folding the answers.

use outrigger_kernel::hooks::{Chain, Handler, HookPoint, Next, PointSpec, Rights};
use outrigger_protocol::hook::{Block, Change, Decision, HookFailure, HookOutcome, OutcomeKind};
use outrigger_protocol::turn::HookPayload;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::open::Open;
use crate::{Answer, Empty, Failure, text};

/// Operations about chains.
#[derive(Deserialize)]
pub(crate) enum ChainOp {
    /// Opens a chain at a point; returns the first handler.
    #[serde(rename = "chain.open")]
    Open {
        /// Outrigger's or OpenCode's name.
        point: HookPoint,
        /// Handlers.
        handlers: Vec<GivenHandler>,
        /// Their input and output.
        items: Vec<HookPayload>,
    },
    /// A handler has ended; returns the next handler, or the result of the chain, which is then closed.
    #[serde(rename = "chain.feed")]
    Feed {
        /// Number.
        chain: u32,
        /// Index in the order.
        handler: usize,
        /// How it ended.
        outcome: GivenOutcome,
        /// Milliseconds.
        ms: f64,
    },
    /// Returns the table of points.
    #[serde(rename = "chain.points")]
    Points(Empty),
}

/// A handler of the host. Each is called separately, because there are no processes.
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
    /// Whether its plugin's manifest lists the hook.
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
    open: Open<Chain>,
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
                let chain = Chain::new(point, handlers.collect(), items);
                let number = self.open.insert(chain);
                self.next(number)
            }
            ChainOp::Feed {
                chain,
                handler,
                outcome,
                ms,
            } => {
                let open = self.open.get_mut(chain);
                let open = open.ok_or_else(|| Failure::number("chain", chain))?;
                open.feed(handler, outcome.into(), ms);
                self.next(chain)
            }
            ChainOp::Points(Empty {}) => {
                let rows = HookPoint::ALL.iter().map(|it| Point::of(it.spec()));
                Ok(text(&rows.collect::<Vec<_>>()))
            }
        }
    }

    fn next(&mut self, number: u32) -> Answer {
        let chain = self.open.get(number);
        let chain = chain.ok_or_else(|| Failure::number("chain", number))?;
        match chain.next() {
            Next::Call(call) => {
                let called = |place: &usize| {
                    let handler = chain.handlers().get(*place);
                    Called {
                        handler: *place,
                        plugin: handler.map_or("", |it| it.plugin.as_str()),
                        instance: handler.map_or(0, |it| it.instance),
                    }
                };
                let items = chain.items().iter().map(|it| Item {
                    input: &it.input,
                    output: &it.output,
                });
                Ok(text(&Step::Calls {
                    chain: number,
                    call: call.handlers.iter().map(called).collect(),
                    items: items.collect(),
                }))
            }
            Next::Done(folded) => {
                let name = |place: usize| {
                    chain
                        .handlers()
                        .get(place)
                        .map_or("", |it| it.plugin.as_str())
                };
                let runs = folded.runs.iter().map(|run| Run {
                    plugin: name(run.handler),
                    outcome: run.outcome,
                    decision: run.decision,
                    changed: &run.changed,
                    message: run.message.as_deref(),
                    refused: run.refused.map(|it| it.name()),
                    ms: run.ms,
                });
                let done = Done {
                    outputs: &folded.outputs,
                    block: folded.block.as_ref(),
                    runs: runs.collect(),
                };
                let answer = text(&Step::Done {
                    chain: number,
                    done,
                });
                self.open.close(number);
                Ok(answer)
            }
        }
    }
}

/// State of a chain.
#[derive(Serialize)]
#[serde(untagged)]
enum Step<'a> {
    Calls {
        chain: u32,
        call: Vec<Called<'a>>,
        items: Vec<Item<'a>>,
    },
    Done {
        chain: u32,
        done: Done<'a>,
    },
}

/// The next handler.
#[derive(Serialize)]
struct Called<'a> {
    handler: usize,
    plugin: &'a str,
    instance: usize,
}

/// Its arguments.
#[derive(Serialize)]
struct Item<'a> {
    input: &'a Value,
    output: &'a Value,
}

/// Result of a chain.
#[derive(Serialize)]
struct Done<'a> {
    outputs: &'a [Value],
    block: Option<&'a Block>,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    plugin: &'a str,
    outcome: OutcomeKind,
    decision: Decision,
    changed: &'a [String],
    message: Option<&'a str>,
    refused: Option<&'static str>,
    ms: f64,
}

/// A row of the table of points.
#[derive(Serialize)]
struct Point {
    name: &'static str,
    hook: &'static str,
    block: bool,
    deadline_ms: u64,
    patch: Vec<&'static str>,
}

impl Point {
    fn of(spec: &'static PointSpec) -> Self {
        Self {
            name: spec.name,
            hook: spec.hook,
            block: spec.block,
            deadline_ms: spec.deadline.default_ms(),
            patch: spec.patch.iter().map(|it| it.key).collect(),
        }
    }
}
