//! What a step changes in the project's files: a tree before the first tool that may write, one when the step is over.
//!
//! Trees are made outside. A step in which nothing may write asks for none, so it costs nothing (D2). Calls that may write
//! are held back until the first tree is there; calls that only read are not.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::effect::Effect;
use outrigger_protocol::Millis;
use outrigger_protocol::id::PartId;
use outrigger_protocol::message::PartKind;
use outrigger_protocol::tool::ToolCall;
use outrigger_protocol::turn::EffectId;
use serde_json::{Value, json};

use super::{Open, Turn};

/// Tools that are not read-only and yet touch no file of the project.
const NO_FILES: [&str; 6] = [
    "invalid",
    "question",
    "skill",
    "todowrite",
    "webfetch",
    "websearch",
];

/// The trees of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Files {
    /// At the first step that may have written.
    first: Option<String>,
    /// Before this step's first call that may write.
    before: Option<String>,
    /// After this step.
    pub(super) after: Option<String>,
    /// The tree before has been asked for in this step.
    begun: bool,
    /// The tree after has been asked for in this step.
    ended: bool,
    changed: Vec<String>,
    /// Calls that wait for the tree before.
    held: Vec<(PartId, Box<ToolCall>)>,
    /// The user message says what changed, and was not published since.
    pub(super) unpublished: bool,
}

impl Files {
    /// A new step: only what holds for the turn is kept.
    pub(super) fn next_step(&mut self) {
        *self = Self {
            first: self.first.take(),
            unpublished: self.unpublished,
            ..Self::default()
        };
    }

    /// The step begins anew, before anything of it could write.
    pub(super) fn again(&mut self) {
        self.begun = false;
        self.before = None;
    }

    /// Files that the step changed, with the tree that they were in before.
    pub(super) fn patch(&self) -> Option<PartKind> {
        let hash = self.before.as_ref().filter(|_| !self.changed.is_empty())?;
        match json!({ "hash": hash, "files": self.changed }) {
            Value::Object(fields) => Some(PartKind::Patch(fields)),
            _ => None,
        }
    }
}

impl Turn {
    fn may_write(&self, tool: &str) -> bool {
        !NO_FILES.contains(&tool)
            && self
                .tools
                .iter()
                .any(|known| known.name == tool && !known.read_only)
    }

    /// The model has named a tool: if it may write, the tree is recorded while the model writes the arguments.
    pub(super) fn before_files(&mut self, tool: &str, out: &mut Vec<Effect>) {
        if !self.begin.snapshots || self.files.begun || self.stopping() || !self.may_write(tool) {
            return;
        }
        self.files.begun = true;
        let effect = self.open(Open::FilesBefore);
        out.push(Effect::TrackFiles {
            effect,
            since: None,
            first: None,
        });
    }

    /// Holds a call back that may write before the tree is there; false when it may run.
    pub(super) fn holds(&mut self, part: &PartId, call: &ToolCall) -> bool {
        let tracking = self.open.values().any(|open| *open == Open::FilesBefore);
        if !tracking || !self.may_write(&call.tool) {
            return false;
        }
        self.files.held.push((part.clone(), Box::new(call.clone())));
        true
    }

    /// Asks for the tree after the step, if the step may have written and nothing of it runs any more; true when it did.
    pub(super) fn after_files(&mut self, out: &mut Vec<Effect>) -> bool {
        if self.files.before.is_none() || self.files.ended {
            return false;
        }
        self.files.ended = true;
        let effect = self.open(Open::FilesAfter);
        out.push(Effect::TrackFiles {
            effect,
            since: self.files.before.clone(),
            first: self.files.first.clone(),
        });
        true
    }

    /// A tree is recorded; if it could not be, the turn continues without one.
    pub(super) fn files_tracked(
        &mut self,
        at: Millis,
        effect: EffectId,
        tree: Option<String>,
        changed: Vec<String>,
        diffs: Option<Vec<Value>>,
        out: &mut Vec<Effect>,
    ) {
        match self.open.get(&effect) {
            Some(Open::FilesBefore) => {
                self.open.remove(&effect);
                if let Some(tree) = &tree {
                    self.files.first.get_or_insert_with(|| tree.clone());
                    self.stamp_step(at, tree, out);
                }
                self.files.before = tree;
                for (part, call) in core::mem::take(&mut self.files.held) {
                    self.run_call(part, *call, out);
                }
            }
            Some(Open::FilesAfter) => {
                self.open.remove(&effect);
                self.files.after = tree;
                self.files.changed = changed;
                if let Some(diffs) = diffs {
                    self.user.summary = Some(json!({ "diffs": diffs }));
                    self.files.unpublished = true;
                }
            }
            _ => {}
        }
    }

    /// The beginning of the step carries the tree, as in OpenCode.
    fn stamp_step(&mut self, at: Millis, tree: &str, out: &mut Vec<Effect>) {
        let begun = self
            .parts
            .values()
            .find(|part| matches!(part.kind, PartKind::StepStart(_)));
        let Some(mut part) = begun.cloned() else {
            return;
        };
        if let PartKind::StepStart(fields) = &mut part.kind {
            fields.insert("snapshot".to_string(), Value::String(tree.to_string()));
        }
        out.push(self.keep_part(at, *part));
    }

    /// The process that made the tree is gone: it is made again, unless the step begins anew anyway.
    pub(super) fn resume_files(&mut self, effect: EffectId, out: &mut Vec<Effect>) {
        match self.open.get(&effect) {
            Some(Open::FilesBefore) if self.calls_in_step == 0 => {
                self.open.remove(&effect);
                self.files.begun = false;
            }
            Some(Open::FilesBefore) => out.push(Effect::TrackFiles {
                effect,
                since: None,
                first: None,
            }),
            Some(Open::FilesAfter) => out.push(Effect::TrackFiles {
                effect,
                since: self.files.before.clone(),
                first: self.files.first.clone(),
            }),
            _ => {}
        }
    }
}
