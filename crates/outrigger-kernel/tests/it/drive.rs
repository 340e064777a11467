//! A turn driven by the test, which simulates the world and prints the machine's inputs and effects, one line each.

use std::collections::BTreeMap;

use outrigger_kernel::turn::Effect;
use outrigger_kernel::turn::{Turn, step};
use outrigger_protocol::compaction::CompactionPlan;
use outrigger_protocol::hook::Block;
use outrigger_protocol::message::{
    MessagePath, ModelRef, NamedError, PartKind, TextPart, UserMessage,
};
use outrigger_protocol::model::Usage;
use outrigger_protocol::session::PartInput;
use outrigger_protocol::tool::{ToolOutcome, ToolOutput};
use outrigger_protocol::turn::{Begin, EffectId, Input, KnownTool, ModelSignal};
use serde_json::{Value, json};

use crate::lines::{input_line, line};

/// Creates a prompt with one line of text; times are counted from 1000.
pub(crate) fn begin() -> Begin {
    let model = ModelRef {
        provider_id: "p".into(),
        model_id: "m".into(),
        variant: None,
    };
    Begin {
        provenance: outrigger_protocol::provenance::Provenance::default(),
        turn: "trn_1".into(),
        session_id: "ses_1".into(),
        seed: 7,
        message: UserMessage {
            agent: "build".into(),
            model: model.clone(),
            ..UserMessage::default()
        },
        parts: vec![text_input("hi")],
        requested: json!({ "sessionID": "ses_1" }),
        command: None,
        agent: "build".into(),
        model,
        path: MessagePath {
            cwd: "/p".into(),
            root: "/p".into(),
        },
        no_reply: false,
        wants_title: false,
        max_steps: 20,
        used_calls: vec![],
        stored: false,
        snapshots: false,
        asks_loops: false,
        asks_before_stop: false,
        asks_after_step: false,
        unaskable: None,
        prices: [1.0, 2.0, 0.5, 0.25].into(),
        compact: None,
        auto_compact: None,
    }
}

pub(crate) fn text_input(text: &str) -> PartInput {
    PartInput {
        id: None,
        kind: PartKind::Text(TextPart {
            text: text.into(),
            ..TextPart::default()
        }),
    }
}

pub(crate) fn known_tools() -> Vec<KnownTool> {
    let tool = |(name, read_only): (&str, bool)| KnownTool {
        name: name.into(),
        read_only,
    };
    [
        ("bash", false),
        ("glob", true),
        ("read", true),
        ("StructuredOutput", true),
        ("write", false),
    ]
    .map(tool)
    .to_vec()
}

pub(crate) fn completed(input: Value, output: &str) -> ToolOutcome {
    let output = ToolOutput {
        title: "t".into(),
        output: output.into(),
        ..ToolOutput::default()
    };
    ToolOutcome::Completed { input, output }
}

pub(crate) fn failed(code: &str, message: &str) -> ToolOutcome {
    ToolOutcome::Failed {
        input: json!({}),
        code: code.into(),
        message: message.into(),
        metadata: None,
    }
}

pub(crate) fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input,
        output,
        ..Usage::default()
    }
}

pub(crate) struct Drive {
    pub(crate) turn: Option<Turn>,
    pub(crate) at: u64,
    open: BTreeMap<u64, Effect>,
    lines: Vec<String>,
    /// All effects so far.
    pub(crate) effects: Vec<Effect>,
    /// All effects so far, by input.
    pub(crate) steps: Vec<(Input, Vec<Effect>)>,
}

impl Drive {
    pub(crate) fn new(begin: Begin) -> Self {
        let mut drive = Self {
            turn: None,
            at: 1000,
            open: BTreeMap::new(),
            lines: vec![],
            effects: vec![],
            steps: vec![],
        };
        drive.take(Input::Begin(Box::new(begin)));
        drive
    }

    /// Creates a turn whose model has just been called; the previous steps are not shown.
    pub(crate) fn asked(begin: Begin) -> Self {
        let mut drive = Self::new(begin);
        drive.prepare();
        drive.lines.clear();
        drive
    }

    pub(crate) fn take(&mut self, input: Input) {
        self.at += 1;
        self.lines.push(format!("< {}", input_line(&input)));
        match &input {
            Input::HookDone { effect, .. }
            | Input::ToolsReady { effect, .. }
            | Input::FilesTracked { effect, .. }
            | Input::LoopAnswered { effect, .. }
            | Input::CompactionPlanned { effect, .. }
            | Input::CompactionRefused { effect, .. }
            | Input::ToolDone { effect, .. } => {
                self.open.remove(&effect.0);
            }
            Input::Model {
                effect,
                signal: ModelSignal::Finished { .. } | ModelSignal::Failed { .. },
            } => {
                self.open.remove(&effect.0);
            }
            _ => {}
        }
        let effects = step(&mut self.turn, self.at, input.clone());
        self.steps.push((input, effects.clone()));
        for effect in effects {
            self.lines.push(line(&effect));
            match &effect {
                Effect::Hooks { effect: id, .. }
                | Effect::PrepareTools { effect: id, .. }
                | Effect::PrepareCompaction { effect: id, .. }
                | Effect::CallModel { effect: id, .. }
                | Effect::TrackFiles { effect: id, .. }
                | Effect::AskLoop { effect: id, .. }
                | Effect::RunTool { effect: id, .. } => {
                    self.open.insert(id.0, effect.clone());
                }
                _ => {}
            }
            self.effects.push(effect);
        }
    }

    fn find(&self, wanted: impl Fn(&Effect) -> bool) -> Option<EffectId> {
        self.open
            .iter()
            .find(|(_, effect)| wanted(effect))
            .map(|(id, _)| EffectId(*id))
    }

    /// Completes the oldest open chain without changes.
    pub(crate) fn hook(&mut self) -> bool {
        let Some(effect) = self.find(|e| matches!(e, Effect::Hooks { .. })) else {
            return false;
        };
        let output = match &self.open[&effect.0] {
            Effect::Hooks { payload, .. } => payload.as_ref().map(|p| p.output.clone()),
            _ => None,
        };
        self.take(Input::HookDone {
            effect,
            output,
            block: None,
            changed_by: vec![],
        });
        true
    }

    pub(crate) fn hook_with(&mut self, output: Value) {
        let effect = self.find(|e| matches!(e, Effect::Hooks { .. })).unwrap();
        self.take(Input::HookDone {
            effect,
            output: Some(output),
            block: None,
            changed_by: vec![],
        });
    }

    pub(crate) fn block(&mut self, message: &str) {
        let effect = self.find(|e| matches!(e, Effect::Hooks { .. })).unwrap();
        let block = Block {
            code: "policy.no".into(),
            message: message.into(),
            details: Value::Null,
            plugin: None,
        };
        self.take(Input::HookDone {
            effect,
            output: None,
            block: Some(block),
            changed_by: vec![],
        });
    }

    pub(crate) fn tools(&mut self) -> bool {
        let Some(effect) = self.find(|e| matches!(e, Effect::PrepareTools { .. })) else {
            return false;
        };
        self.take(Input::ToolsReady {
            effect,
            tools: known_tools(),
        });
        true
    }

    /// Returns the awaited compaction.
    pub(crate) fn planning(&self) -> EffectId {
        self.find(|e| matches!(e, Effect::PrepareCompaction { .. }))
            .unwrap()
    }

    pub(crate) fn planned(&mut self, plan: CompactionPlan) {
        let effect = self.planning();
        let plan = Box::new(plan);
        self.take(Input::CompactionPlanned { effect, plan });
    }

    /// Completes hooks without changes and the tools, until something else is awaited.
    pub(crate) fn prepare(&mut self) {
        while self.hook() || self.tools() {}
    }

    /// Prepares until the awaited chain is at this point.
    pub(crate) fn prepare_until(&mut self, point: &str) {
        let at_point =
            |effect: &Effect| matches!(effect, Effect::Hooks { point: p, .. } if p.name() == point);
        while self.find(at_point).is_none() && (self.hook() || self.tools()) {}
        assert!(self.find(at_point).is_some(), "{point} is never reached");
    }

    pub(crate) fn model(&mut self, signal: ModelSignal) {
        let effect = self
            .find(|e| matches!(e, Effect::CallModel { .. }))
            .unwrap();
        self.take(Input::Model { effect, signal });
    }

    pub(crate) fn started(&mut self) {
        self.model(ModelSignal::Started);
    }

    pub(crate) fn text(&mut self, index: u32, text: &str) {
        self.model(ModelSignal::TextStart { index });
        self.model(ModelSignal::TextEnd {
            index,
            text: text.into(),
        });
        self.hook();
    }

    pub(crate) fn call(&mut self, call_id: &str, tool: &str, raw: &str) {
        self.model(ModelSignal::ToolStart {
            call_id: call_id.into(),
            tool: tool.into(),
        });
        self.model(ModelSignal::ToolEnd {
            call_id: call_id.into(),
            tool: tool.into(),
            raw: raw.into(),
            metadata: None,
        });
    }

    pub(crate) fn finished(&mut self, reason: &str) {
        self.finished_with(reason, 10);
    }

    pub(crate) fn finished_with(&mut self, reason: &str, sent: u64) {
        self.model(ModelSignal::Finished {
            reason: reason.into(),
            usage: usage(sent, 2),
        });
    }

    pub(crate) fn model_failed(&mut self) {
        self.model(ModelSignal::Failed {
            error: NamedError::new("APIError", "500"),
        });
    }

    /// Returns the open call of the tool.
    pub(crate) fn tool(&self, tool: &str) -> (EffectId, Value) {
        let effect = self
            .find(|e| matches!(e, Effect::RunTool { call, .. } if call.tool == tool))
            .unwrap();
        match &self.open[&effect.0] {
            Effect::RunTool { call, .. } => (effect, call.input.clone()),
            _ => unreachable!(),
        }
    }

    pub(crate) fn tool_started(&mut self, tool: &str) {
        let (effect, input) = self.tool(tool);
        self.take(Input::ToolStarted {
            effect,
            input,
            provenance: outrigger_protocol::provenance::Provenance::default(),
        });
    }

    pub(crate) fn tool_progress(&mut self, tool: &str, title: Option<&str>, metadata: Value) {
        let (effect, _) = self.tool(tool);
        self.take(Input::ToolProgress {
            effect,
            title: title.map(ToOwned::to_owned),
            metadata,
        });
    }

    pub(crate) fn tool_completed(&mut self, tool: &str, output: &str) {
        let (effect, input) = self.tool(tool);
        self.take(Input::ToolDone {
            effect,
            outcome: completed(input, output),
        });
    }

    pub(crate) fn tool_failed(&mut self, tool: &str, code: &str, message: &str) {
        let (effect, _) = self.tool(tool);
        self.take(Input::ToolDone {
            effect,
            outcome: failed(code, message),
        });
    }

    pub(crate) fn cancel(&mut self) {
        self.take(Input::Cancel);
    }

    pub(crate) fn resume(&mut self) {
        self.open.clear();
        self.take(Input::Resumed);
    }

    /// Returns inputs and effects since the last call.
    pub(crate) fn seen(&mut self) -> String {
        std::mem::take(&mut self.lines).join("\n")
    }

    pub(crate) fn is_done(&self) -> bool {
        self.turn.as_ref().is_some_and(Turn::is_done)
    }
}
