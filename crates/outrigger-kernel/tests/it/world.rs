//! A small simulated world for the machine: a model that follows a script, tools and hooks whose answers are functions of
//! their input. Results depend on nothing else, so that two runs of one script can be compared; only the order of the
//! outcomes depends on a seed.

use std::collections::{BTreeMap, VecDeque};

use outrigger_kernel::digest;
use outrigger_kernel::hooks::HookPoint;
use outrigger_kernel::turn::Effect;
use outrigger_kernel::turn::compact::OVERFLOW;
use outrigger_kernel::turn::{Turn, step};
use outrigger_protocol::compaction::{CompactionPlan, Replay};
use outrigger_protocol::event::Event;
use outrigger_protocol::hook::Block;
use outrigger_protocol::id::{MessageId, PartId};
use outrigger_protocol::message::{MessageInfo, NamedError, Part};
use outrigger_protocol::tool::{ToolCall, ToolOutcome, ToolOutput};
use outrigger_protocol::turn::{EffectId, Input, ModelSignal};
use serde_json::{Value, json};

use crate::drive::{failed, known_tools, text_input, usage};
use crate::script::{Say, Script, joined};

/// Returns a tool's answer, a function of its name and its arguments.
fn answer(call: &ToolCall) -> (Option<Value>, ToolOutcome) {
    let hash = digest::fnv1a(format!("{}{}", call.tool, call.input).as_bytes());
    let changed = json!({ "seen": call.input });
    match hash % 6 {
        0 => (None, failed("tool.denied", "a rule denies it")),
        1 => (
            Some(changed.clone()),
            ToolOutcome::Failed {
                input: changed,
                code: "tool.failed".into(),
                message: "no".into(),
                metadata: Some(Value::Null),
            },
        ),
        2 => (None, failed("tool.rejected", "the user said no")),
        _ => {
            let output = ToolOutput {
                title: call.tool.clone(),
                output: format!("{hash:x}"),
                metadata: json!({ "h": hash }),
                attachments: None,
            };
            (
                Some(changed.clone()),
                ToolOutcome::Completed {
                    input: changed,
                    output,
                },
            )
        }
    }
}

/// Returns a plan: a history that did not fit has a prompt to repeat; otherwise some messages stay.
fn plan(effect: EffectId, overflow: bool) -> Input {
    let replay = overflow.then(|| {
        Box::new(Replay {
            parts: vec![text_input("again")],
            ..Replay::default()
        })
    });
    let plan = CompactionPlan {
        tail_start: (!overflow).then(|| MessageId("msg_tail".into())),
        prices: [3.0, 1.0, 0.0, 0.0].into(),
        replay,
        ..CompactionPlan::default()
    };
    Input::CompactionPlanned {
        effect,
        plan: Box::new(plan),
    }
}

/// A process that runs a turn: its open effects.
pub(crate) struct World {
    script: Script,
    random: u64,
    pub(crate) turn: Option<Turn>,
    now: u64,
    pub(crate) pending: BTreeMap<u64, (Effect, VecDeque<Input>)>,
    /// All inputs of the machine, as stored.
    pub(crate) log: Vec<(u64, Input, String)>,
    /// All requested effects.
    pub(crate) effects: Vec<Effect>,
    reached: BTreeMap<String, usize>,
    advanced: usize,
}

impl World {
    pub(crate) fn new(script: Script, random: u64) -> Self {
        let mut world = Self {
            script,
            random,
            turn: None,
            now: 1000,
            pending: BTreeMap::new(),
            log: vec![],
            effects: vec![],
            reached: BTreeMap::new(),
            advanced: 0,
        };
        let begin = Box::new(world.script.begin.clone());
        world.tell(Input::Begin(begin));
        world
    }

    fn pick(&mut self, n: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        usize::try_from(self.random >> 33).unwrap() % n
    }

    /// Feeds an input, keeps the log, and starts the requested effects.
    pub(crate) fn tell(&mut self, input: Input) -> Vec<Effect> {
        self.now += 1;
        let effects = step(&mut self.turn, self.now, input.clone());
        self.log.push((self.now, input, digest::effects(&effects)));
        for effect in &effects {
            self.start(effect);
        }
        self.effects.extend(effects.clone());
        effects
    }

    fn start(&mut self, effect: &Effect) {
        let inputs = match effect {
            Effect::Hooks {
                effect,
                point,
                payload,
            } => {
                let times = self.reached.entry(point.name().to_owned()).or_default();
                let block = self
                    .script
                    .block
                    .filter(|(p, n)| *p == point.name() && n == times);
                *times += 1;
                let block = block.map(|_| Block {
                    code: "policy.no".into(),
                    message: "no".into(),
                    details: Value::Null,
                    plugin: None,
                });
                let output = payload.as_ref().map(|p| hooked(*point, p.output.clone()));
                vec![Input::HookDone {
                    effect: *effect,
                    output,
                    block,
                    changed_by: vec![],
                }]
            }
            Effect::PrepareTools { effect, .. } => vec![Input::ToolsReady {
                effect: *effect,
                tools: known_tools(),
            }],
            Effect::PrepareCompaction {
                effect, overflow, ..
            } => vec![plan(*effect, *overflow)],
            Effect::CallModel { effect, step, .. } => {
                let signals = self.speak(usize::try_from(*step).unwrap());
                let spoken = |signal| Input::Model {
                    effect: *effect,
                    signal,
                };
                let said = |signal| [used(&signal), Some(spoken(signal))];
                signals.into_iter().flat_map(said).flatten().collect()
            }
            Effect::RunTool { effect, call } => {
                let (input, outcome) = answer(call);
                let mut inputs = vec![];
                if let Some(input) = input {
                    inputs.push(Input::ToolStarted {
                        effect: *effect,
                        input,
                        provenance: outrigger_protocol::provenance::Provenance::default(),
                    });
                    inputs.push(Input::ToolProgress {
                        effect: *effect,
                        title: Some("busy".into()),
                        metadata: Value::Null,
                    });
                }
                inputs.push(Input::ToolDone {
                    effect: *effect,
                    outcome,
                });
                inputs
            }
            Effect::TrackFiles { effect, since, .. } => {
                let changed = since.iter().map(|_| "/p/a.txt".to_owned());
                vec![Input::FilesTracked {
                    effect: *effect,
                    tree: Some("tree".to_owned()),
                    changed: changed.collect(),
                    diffs: since.as_ref().map(|_| vec![json!({ "file": "a.txt" })]),
                }]
            }
            Effect::AskLoop { effect, call } => vec![Input::LoopAnswered {
                effect: *effect,
                refusal: (call.tool == "bash").then(|| "no".to_owned()),
            }],
            Effect::Abort if self.script.obeys => return self.abort(),
            _ => return,
        };
        let id = match effect {
            Effect::Hooks { effect, .. }
            | Effect::PrepareTools { effect, .. }
            | Effect::PrepareCompaction { effect, .. }
            | Effect::CallModel { effect, .. }
            | Effect::TrackFiles { effect, .. }
            | Effect::AskLoop { effect, .. }
            | Effect::RunTool { effect, .. } => effect.0,
            _ => return,
        };
        self.pending.insert(id, (effect.clone(), inputs.into()));
    }

    fn speak(&self, step: usize) -> Vec<ModelSignal> {
        let mut signals = vec![ModelSignal::Started];
        let Some(request) = self.script.requests.get(step - 1) else {
            signals.push(ModelSignal::Finished {
                reason: "stop".into(),
                usage: usage(1, 1),
            });
            return signals;
        };
        for (index, say) in (0_u32..).zip(&request.says) {
            match say.clone() {
                Say::Text { text, open } => {
                    signals.push(ModelSignal::TextStart { index });
                    signals.extend((!open).then_some(ModelSignal::TextEnd { index, text }));
                }
                Say::Thought { text, open } => {
                    signals.push(ModelSignal::ReasoningStart { index });
                    let metadata = (index % 2 == 0).then_some(Value::Null);
                    signals.extend((!open).then_some(ModelSignal::ReasoningEnd {
                        index,
                        text,
                        metadata,
                    }));
                }
                Say::Call {
                    id,
                    tool,
                    raw,
                    unfinished,
                } => {
                    signals.push(ModelSignal::ToolStart {
                        call_id: id.clone(),
                        tool: tool.clone(),
                    });
                    signals.extend((!unfinished).then_some(ModelSignal::ToolEnd {
                        call_id: id,
                        tool,
                        raw,
                        metadata: None,
                    }));
                }
            }
        }
        signals.push(if request.overflows {
            ModelSignal::Failed {
                error: NamedError::new(OVERFLOW, "too long"),
            }
        } else if request.fails {
            ModelSignal::Failed {
                error: NamedError::new("APIError", "500"),
            }
        } else {
            ModelSignal::Finished {
                reason: "stop".into(),
                usage: usage(request.sent, 3),
            }
        });
        signals
    }

    fn abort(&mut self) {
        for (id, (effect, inputs)) in &mut self.pending {
            let effect_id = EffectId(*id);
            match effect {
                Effect::RunTool { .. } => {
                    *inputs = [Input::ToolDone {
                        effect: effect_id,
                        outcome: failed("tool.cancelled", "stopped"),
                    }]
                    .into()
                }
                Effect::CallModel { .. } => {
                    let signal = ModelSignal::Failed {
                        error: NamedError::new("MessageAbortedError", "stopped"),
                    };
                    *inputs = [Input::Model {
                        effect: effect_id,
                        signal,
                    }]
                    .into();
                }
                _ => {}
            }
        }
    }

    /// Reports an open effect; returns false if none is open.
    pub(crate) fn advance(&mut self) -> bool {
        self.pending.retain(|_, (_, inputs)| !inputs.is_empty());
        let ids: Vec<u64> = self.pending.keys().copied().collect();
        if ids.is_empty() {
            return false;
        }
        let id = ids[self.pick(ids.len())];
        let input = self
            .pending
            .get_mut(&id)
            .and_then(|(_, inputs)| inputs.pop_front())
            .unwrap();
        if self.script.joins.contains(&self.advanced) {
            let id = format!("msg_join_{}", self.advanced);
            let begin = Box::new(joined(&self.script.begin, &id));
            self.tell(Input::Joined { begin });
        }
        self.advanced += 1;
        self.tell(input);
        true
    }

    pub(crate) fn is_done(&self) -> bool {
        self.turn.as_ref().is_some_and(Turn::is_done)
    }

    /// Runs to the end of the turn. Panics if it stalls or does not end.
    pub(crate) fn finish(&mut self) {
        let mut steps = 0;
        while !self.is_done() {
            assert!(
                self.advance(),
                "the turn waits for nothing: {:#?}",
                self.turn
            );
            steps += 1;
            assert!(steps < 2000, "the turn does not end");
        }
    }

    /// Another process takes over: it knows the log and nothing else.
    pub(crate) fn killed(self, random: u64) -> Self {
        let mut turn = None;
        for (at, input, digest) in &self.log {
            let stored: Input =
                serde_json::from_value(serde_json::to_value(input).unwrap()).unwrap();
            assert_eq!(digest::effects(&step(&mut turn, *at, stored)), *digest);
        }
        let mut world = Self {
            random,
            turn,
            pending: BTreeMap::new(),
            ..self
        };
        world.tell(Input::Resumed);
        world
    }
}

/// Changes a hook's input in a way that shows how often it ran.
fn hooked(point: HookPoint, mut output: Value) -> Value {
    match point {
        HookPoint::LlmAfterText => {
            let text = output["text"].as_str().unwrap().to_owned();
            output["text"] = json!(format!("<{text}>"));
        }
        HookPoint::CompactionBeforeStart => output["context"]
            .as_array_mut()
            .unwrap()
            .push(json!("from a hook")),
        HookPoint::RunBeforeCommand => output["parts"]
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "text", "text": "from a command"})),
        HookPoint::RunBeforeStart => output["parts"]
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "text", "text": "from a hook"})),
        _ => {}
    }
    output
}

// ---- what is stored in the end ----

/// The session as a store would have it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stored {
    pub(crate) messages: BTreeMap<MessageId, MessageInfo>,
    pub(crate) parts: BTreeMap<PartId, Part>,
    pub(crate) cost: f64,
}

impl Stored {
    pub(crate) fn of(effects: &[Effect]) -> Self {
        let mut stored = Self::default();
        for effect in effects {
            match effect {
                Effect::PatchSession { patch } => stored.cost += patch.cost,
                Effect::Publish { event } => stored.on(event),
                _ => {}
            }
        }
        stored
    }

    fn on(&mut self, event: &Event) {
        match event {
            Event::MessageUpdated { info, .. } => {
                self.messages
                    .insert(info.id().clone(), info.as_ref().clone());
            }
            Event::PartUpdated { part, .. } => {
                assert!(
                    self.messages.contains_key(&part.message_id),
                    "a part comes before its message"
                );
                self.parts.insert(part.id.clone(), part.as_ref().clone());
            }
            Event::PartRemoved { part_id, .. } => {
                assert!(
                    self.parts.remove(part_id).is_some(),
                    "what is taken back was there"
                );
            }
            _ => {}
        }
    }

    /// Returns messages with their parts, without ids and times.
    pub(crate) fn transcript(&self) -> Vec<Value> {
        let bare = |mut value: Value| {
            for key in ["id", "sessionID", "messageID", "parentID", "time", "callID"] {
                value.as_object_mut().unwrap().remove(key);
            }
            if let Some(state) = value.get_mut("state") {
                state.as_object_mut().unwrap().remove("time");
            }
            value
        };
        let of = |id: &MessageId| {
            self.parts
                .values()
                .filter(|part| part.message_id == *id)
                .map(|part| bare(serde_json::to_value(part).unwrap()))
                .collect::<Vec<_>>()
        };
        let one = |(id, info): (&MessageId, &MessageInfo)| json!({ "info": bare(serde_json::to_value(info).unwrap()), "parts": of(id) });
        self.messages.iter().map(one).collect()
    }
}

/// Returns the input before the model names a call of the history.
fn used(signal: &ModelSignal) -> Option<Input> {
    let ids = vec![signal.call_id()?.0];
    (ids == ["used"]).then_some(Input::CallsUsed { ids })
}
