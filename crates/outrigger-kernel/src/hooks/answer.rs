//! A handler's answer about one item, and the part of it that is applied.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use outrigger_protocol::history::{History, MESSAGES};
use outrigger_protocol::hook::Change;
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

use super::fields::{broken_field, forbidden};
use super::fold::{apply_to, pointer, take_history};
use super::points::HookPoint;
use crate::guard::{self, Rule};

/// Validates an output, for points whose outputs have a schema (B8). Pure.
#[derive(Clone)]
pub struct OutputCheck(Arc<Check>);

type Check = dyn Fn(&Value) -> Result<(), String> + Send + Sync;

impl OutputCheck {
    /// Creates a check.
    pub fn new(check: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// What is wrong with it.
    ///
    /// # Errors
    /// The text of the check.
    pub fn check(&self, output: &Value) -> Result<(), String> {
        (self.0)(output)
    }
}

impl core::fmt::Debug for OutputCheck {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OutputCheck").finish_non_exhaustive()
    }
}

/// Changes to one item.
pub(super) struct ItemChanges {
    pub(super) changes: Vec<Change>,
    /// The conversation as arranged by the handler.
    pub(super) history: Option<History>,
    /// Prefix of this item's JSON pointers in records.
    pub(super) prefix: String,
}

/// Result of applying an answer.
#[derive(Default)]
pub(super) struct FoldReport {
    /// Changed fields, as JSON pointers.
    pub(super) changed: Vec<String>,
    /// Rejected changes: the rule and the reason.
    pub(super) refused: Vec<(Rule, String)>,
}

impl ItemChanges {
    /// Applies the allowed changes. If the result does not match the point's schema, the item is left unchanged.
    pub(super) fn fold_into(
        self,
        item: &mut HookPayload,
        point: HookPoint,
        account: Option<&'static str>,
        check: Option<&OutputCheck>,
    ) -> FoldReport {
        let (before, messages) = (item.output.clone(), item.history.clone());
        let kept = guard::keep(point, &before);
        let mut taken = self.apply(item, point);
        // A conversation must remain a list, also if it was replaced.
        let replaced = messages.is_some() && item.history.is_none();
        let touched = |key: &str| {
            let fields = || before.get(key) != item.output.get(key);
            (replaced && key == MESSAGES) || fields()
        };
        let wrong = broken_field(point.spec().patch, touched, &item.output);
        let fits = |output: &Value| check.and_then(|check| check.check(output).err());
        if let Some(wrong) = wrong.or_else(|| fits(&item.output)) {
            taken.refused.push((Rule::Shape, wrong));
            (item.output, item.history) = (before, messages);
            taken.changed.clear();
            return taken;
        }
        let mut breaches = guard::uphold(point, &kept, &mut item.output);
        if let Some(grant) = account {
            let request = guard::uphold_request(point, grant, &before, &mut item.output);
            breaches.extend(request);
        }
        if !breaches.is_empty() && item.output == before && item.history == messages {
            taken.changed.clear();
        }
        if replaced {
            item.history = take_history(&mut item.output);
        }
        let breaches = breaches.into_iter().map(|it| (it.rule, it.message));
        taken.refused.extend(breaches);
        taken
    }

    /// Applies the changes one by one.
    fn apply(self, item: &mut HookPayload, point: HookPoint) -> FoldReport {
        let mut taken = FoldReport::default();
        if let Some(history) = self.history {
            item.history = Some(history);
            taken.changed.push(format!("/{MESSAGES}"));
        }
        for change in &self.changes {
            let place = pointer(&change.path);
            if let Some(place) = forbidden(point, &item.output, change) {
                let message = format!("{place} may not be changed at {point}");
                taken.refused.push((Rule::Rights, message));
            } else if let Err(why) = apply_to(item, change) {
                taken.refused.push((Rule::Shape, why.to_string()));
            } else {
                taken.changed.push(format!("{}{place}", self.prefix));
            }
        }
        taken
    }
}
