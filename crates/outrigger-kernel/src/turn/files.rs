//! File changes of a step: a snapshot before the first tool that may write, and one at its end.
//!
//! Snapshots are created outside the kernel. A step in which nothing may write requests none, so it costs nothing (D2).
//! Calls that may write are held back until the first snapshot exists; calls that only read are not.

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

use super::{OpenEffect, Turn};

/// Tools that are not read-only but do not touch project files.
const NO_FILES: [&str; 6] = [
    "invalid",
    "question",
    "skill",
    "todowrite",
    "webfetch",
    "websearch",
];

/// The snapshots of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Files {
    /// At the first step that may have written.
    first: Option<String>,
    /// Before this step's first call that may write.
    before: Option<String>,
    /// After this step.
    pub(super) after: Option<String>,
    /// The snapshot before was requested in this step.
    begun: bool,
    /// The snapshot after was requested in this step.
    ended: bool,
    changed: Vec<String>,
    /// Calls that wait for the snapshot before.
    held: Vec<(PartId, Box<ToolCall>)>,
    /// The user message contains changes that are not published yet.
    pub(super) unpublished: bool,
}

impl Files {
    /// Starts a new step: keeps only the state of the turn.
    pub(super) fn next_step(&mut self) {
        *self = Self {
            first: self.first.take(),
            unpublished: self.unpublished,
            ..Self::default()
        };
    }

    /// Restarts the step before anything of it could write.
    pub(super) fn again(&mut self) {
        self.begun = false;
        self.before = None;
    }

    /// Returns the files that the step changed, with the snapshot of their state before.
    pub(super) fn patch(&self) -> Option<PartKind> {
        let hash = self.before.as_ref().filter(|_| !self.changed.is_empty())?;
        match json!({ "hash": hash, "files": self.changed }) {
            Value::Object(fields) => Some(PartKind::Patch(fields)),
            _ => None,
        }
    }
}

/// A snapshot of the project's files.
pub(super) struct TrackedFiles {
    /// `None` if it failed.
    pub(super) tree: Option<String>,
    /// Files that changed since the snapshot before the step.
    pub(super) changed: Vec<String>,
    /// Changes of the whole turn so far, if they were read.
    pub(super) diffs: Option<Vec<Value>>,
}

impl Turn {
    fn may_write(&self, tool: &str) -> bool {
        !NO_FILES.contains(&tool)
            && self
                .tools
                .iter()
                .any(|known| known.name == tool && !known.read_only)
    }

    /// Handles a tool name from the model: if the tool may write, the snapshot is created while the model writes the
    /// arguments.
    pub(super) fn before_files(&mut self, tool: &str, out: &mut Vec<Effect>) {
        if !self.begin.snapshots || self.files.begun || self.stopping() || !self.may_write(tool) {
            return;
        }
        self.files.begun = true;
        let effect = self.open(OpenEffect::FilesBefore);
        out.push(Effect::TrackFiles {
            effect,
            since: None,
            first: None,
        });
    }

    /// Holds back a call that may write until the snapshot exists; returns false if it may run.
    pub(super) fn holds(&mut self, part: &PartId, call: &ToolCall) -> bool {
        let tracking = self
            .open
            .values()
            .any(|open| *open == OpenEffect::FilesBefore);
        if !tracking || !self.may_write(&call.tool) {
            return false;
        }
        self.files.held.push((part.clone(), Box::new(call.clone())));
        true
    }

    /// Requests the snapshot after the step, if the step may have written and none of its calls is running; returns true
    /// if it did.
    pub(super) fn after_files(&mut self, out: &mut Vec<Effect>) -> bool {
        if self.files.before.is_none() || self.files.ended {
            return false;
        }
        self.files.ended = true;
        let effect = self.open(OpenEffect::FilesAfter);
        out.push(Effect::TrackFiles {
            effect,
            since: self.files.before.clone(),
            first: self.files.first.clone(),
        });
        true
    }

    /// Records a snapshot; without one, the turn continues.
    pub(super) fn files_tracked(
        &mut self,
        at: Millis,
        effect: EffectId,
        tracked: TrackedFiles,
        out: &mut Vec<Effect>,
    ) {
        match self.open.get(&effect) {
            Some(OpenEffect::FilesBefore) => {
                self.open.remove(&effect);
                if let Some(tree) = &tracked.tree {
                    self.files.first.get_or_insert_with(|| tree.clone());
                    self.stamp_step(at, tree, out);
                }
                self.files.before = tracked.tree;
                for (part, call) in core::mem::take(&mut self.files.held) {
                    self.run_call(part, *call, out);
                }
            }
            Some(OpenEffect::FilesAfter) => {
                self.open.remove(&effect);
                self.files.after = tracked.tree;
                self.files.changed = tracked.changed;
                if let Some(diffs) = tracked.diffs {
                    self.user.summary = Some(json!({ "diffs": diffs }));
                    self.files.unpublished = true;
                }
            }
            _ => {}
        }
    }

    /// Adds the snapshot to the start of the step, as in OpenCode.
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

    /// Requests a snapshot again whose process died, unless the step restarts anyway.
    pub(super) fn resume_files(&mut self, effect: EffectId, out: &mut Vec<Effect>) {
        match self.open.get(&effect) {
            Some(OpenEffect::FilesBefore) if self.calls_in_step == 0 => {
                self.open.remove(&effect);
                self.files.begun = false;
            }
            Some(OpenEffect::FilesBefore) => out.push(Effect::TrackFiles {
                effect,
                since: None,
                first: None,
            }),
            Some(OpenEffect::FilesAfter) => out.push(Effect::TrackFiles {
                effect,
                since: self.files.before.clone(),
                first: self.files.first.clone(),
            }),
            _ => {}
        }
    }
}
