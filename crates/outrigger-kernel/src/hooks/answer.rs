//! What a handler answered about one item, and what of it is taken.

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

/// Says what is wrong with an output, for points whose outputs have a schema (B8). Pure: it looks at nothing else.
#[derive(Clone)]
pub struct OutputCheck(Arc<Check>);

type Check = dyn Fn(&Value) -> Result<(), String> + Send + Sync;

impl OutputCheck {
    /// A check.
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

/// Changes of one item.
pub(super) struct Answer {
    pub(super) changes: Vec<Change>,
    /// The conversation as the handler arranged it.
    pub(super) history: Option<History>,
    /// In front of the places of this item in records.
    pub(super) prefix: String,
}

/// What became of an answer.
#[derive(Default)]
pub(super) struct Taken {
    /// Places that changed, as JSON pointers.
    pub(super) changed: Vec<String>,
    /// What was not taken: the rule against it, and why.
    pub(super) refused: Vec<(Rule, String)>,
}

impl Answer {
    /// Applies what is allowed. An item that does not have the shape of the point afterwards is as it was.
    pub(super) fn fold_into(
        self,
        item: &mut HookPayload,
        point: HookPoint,
        account: Option<&'static str>,
        check: Option<&OutputCheck>,
    ) -> Taken {
        let (before, messages) = (item.output.clone(), item.history.clone());
        let kept = guard::keep(point, &before);
        let mut taken = self.apply(item, point);
        // A conversation is a list still; one that was replaced must be one again.
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

    /// Change by change.
    fn apply(self, item: &mut HookPayload, point: HookPoint) -> Taken {
        let mut taken = Taken::default();
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
