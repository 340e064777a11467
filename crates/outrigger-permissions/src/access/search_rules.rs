//! Rules about reading as searches ask them, of very many files.

use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;

use outrigger_protocol::permission::Action;
use outrigger_sandbox::{Forbids, SandboxError, Spawner};
use outrigger_tools::DecideRead;

use super::identity::Denied;
use super::{Operation, PathRules};
use crate::deny_policy::is_forbidden;

/// What the rules say of reading each file, whatever it is called.
pub struct SearchRules {
    rules: PathRules,
    /// Files that they deny, for other names of theirs; `None` where no rule denies certain files.
    denied: Option<Result<Arc<Denied>, SandboxError>>,
    approvals: Option<PathRules>,
    /// Knows what the policy of the machine forbids.
    spawner: Option<Spawner>,
}

impl SearchRules {
    /// By these rules. Walks the project where one denies certain files: blocking.
    #[must_use]
    pub fn new(rules: PathRules) -> Self {
        let denied = rules.denies().then(|| rules.denied());
        Self {
            rules,
            denied,
            approvals: None,
            spawner: None,
        }
    }

    /// With what was answered by "always", which lifts no deny.
    #[must_use]
    pub fn with_approvals(mut self, approvals: PathRules) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// With what the policy of the machine forbids, which this one knows.
    #[must_use]
    pub fn with_policy(mut self, spawner: &Spawner) -> Self {
        self.spawner = Some(spawner.clone());
        self
    }

    fn forbids(&self) -> Option<&dyn Forbids> {
        self.spawner.as_ref().and_then(Spawner::forbids)
    }

    /// The answer by the rules of a file's names, where `other` says whether it is denied by another one.
    fn action(
        &self,
        decide: impl Fn(&PathRules) -> Action,
        other: impl FnOnce(&Denied) -> bool,
    ) -> Action {
        let is_denied = || match &self.denied {
            None => false,
            Some(Ok(denied)) => other(denied),
            // Which files are denied is not known.
            Some(Err(_)) => true,
        };
        match decide(&self.rules) {
            Action::Deny => Action::Deny,
            _ if is_denied() => Action::Deny,
            Action::Ask => self.approvals.as_ref().map_or(Action::Ask, decide),
            Action::Allow => Action::Allow,
        }
    }
}

impl DecideRead for SearchRules {
    fn of(&self, file: &Path) -> Action {
        if is_forbidden(self.forbids(), file) {
            return Action::Deny;
        }
        self.action(
            |rules| rules.decide(Operation::Read, file).action,
            |denied| denied.holds(file).is_some(),
        )
    }

    fn of_unlinked(&self, file: &Path) -> Action {
        if self.forbids().is_some_and(|it| it.file(file).is_some()) {
            return Action::Deny;
        }
        self.action(
            |rules| rules.decide_unlinked(Operation::Read, file).action,
            |denied| denied.folder_of(file).is_some(),
        )
    }

    fn denies_file(&self, file: &Metadata) -> bool {
        let denied = self.denied.as_ref();
        denied.is_some_and(|it| it.as_ref().map_or(true, |denied| denied.holds_file(file)))
    }

    fn denies_files(&self) -> bool {
        let denied = self.denied.as_ref();
        denied.is_some_and(|it| it.as_ref().map_or(true, |denied| denied.has_files()))
    }
}
